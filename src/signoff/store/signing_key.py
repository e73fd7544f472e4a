"""The key that signs the audit log, and copies of the newest checkpoint of every store that this machine signed.

The copies detect truncation: if the end of a database's audit log is cut off together with its checkpoints, the log no
longer matches the copy. The Ed25519 key and the copies are in the user's state directory, away from the project and its
agents.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, cast

from signoff.core.canonical import canonical
from signoff.core.record import Checkpoint
from signoff.errors import Place, StoreError, WrongFile, WrongUse

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_KEY_FILE = "record.key"
_PUBLIC_FILE = "record.pub"
_FIELDS = ("seq", "hash", "at", "key", "signature")
_PLAIN_NAME = re.compile(r"[0-9a-z-]{1,64}")
_HEX_KEY = re.compile(r"[0-9a-f]{64}")
_HEX_SIGNATURE = re.compile(r"[0-9a-f]{128}")


def keys_directory() -> Path | None:
    """The directory of the keys: `signoff/keys` in `$XDG_STATE_HOME` or `~/.local/state`. None if there is no home."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # the XDG standard says to ignore a relative path
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    if not os.path.isabs(state) or state.startswith("/.local"):
        return None
    return Path(state) / "signoff" / "keys"


def is_signed(key: str, signature: str, text: bytes) -> bool:
    """Verify an Ed25519 signature of a text. Only lower-case hex is accepted, so that a signature has one spelling."""
    if not _HEX_KEY.fullmatch(key) or not _HEX_SIGNATURE.fullmatch(signature):
        return False
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature), text)
    except (InvalidSignature, ValueError):
        return False
    return True


def read_public_key(given: str) -> str:
    """Read a public key from user input: 64 hex digits, or the path of a file that holds them."""
    text, place = given.strip(), None
    if not _HEX_KEY.fullmatch(text.lower()):
        place = Place(given)
        try:
            with open(given, encoding="utf-8") as stream:
                text = stream.read(4_096).strip()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not a text"
            what = f"{given!r} is neither a public key of 64 hex digits nor a file that can be read: {reason}"
            raise WrongUse(what) from error
    if not _HEX_KEY.fullmatch(text.lower()):
        raise WrongFile(
            "this is not a public key", place=place, fix=f"it should be 64 hex digits, as in {_PUBLIC_FILE}"
        )
    return text.lower()


class Keys:
    """This machine's signing key. It is created only when something is to be signed for the first time."""

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        found = Path(directory) if directory is not None else keys_directory()
        if found is None:
            raise StoreError("there is no directory for the key that signs the audit log\n  set HOME or XDG_STATE_HOME")
        self.directory = found
        self._private: Ed25519PrivateKey | None = None
        self._copies: dict[str, Path] = {}
        """The files of the checkpoint copies, by store."""

    def public_key(self, *, make: bool = False) -> str:
        """The public key in hex. Without `make`, empty if there is no key yet."""
        if self._private is None and not make and _status(self._file) is None:
            return ""
        return self._loaded().public_key().public_bytes_raw().hex()

    def sign(self, text: bytes) -> tuple[str, str]:
        """Sign a text. Returns the public key and the signature, both in hex."""
        key = self._loaded()
        return key.public_key().public_bytes_raw().hex(), key.sign(text).hex()

    def newest(self, store: str) -> Checkpoint | None:
        """The copy of the newest checkpoint of a store, by one of the store's names. None if there is none."""
        return _read_copy(self.copy_of(store))

    def keep(self, store: str, checkpoint: Checkpoint) -> None:
        """Store a copy of a checkpoint, unless there is one that is as new or newer."""
        file = self.copy_of(store)
        with self._ready(), _locked(self.directory):
            kept = _read_copy(file)
            if kept is None or kept.seq < checkpoint.seq:
                fields = {name: getattr(checkpoint, name) for name in _FIELDS}
                _write(file, f"{canonical(fields)}\n".encode())

    def copy_of(self, store: str) -> Path:
        """The file that holds the checkpoint copy of a store."""
        # The id comes from an untrusted database: it must not name any other file (path traversal).
        if (file := self._copies.get(store)) is None:
            plain = _PLAIN_NAME.fullmatch(store)
            name = store if plain else sha256(store.encode("utf-8", "backslashreplace")).hexdigest()
            file = self._copies[store] = self.directory / f"seen-{name}.json"
        return file

    @property
    def _file(self) -> Path:
        return self.directory / _KEY_FILE

    def _loaded(self) -> Ed25519PrivateKey:
        if self._private is None:
            if _status(self._file) is None:
                self._make()
            self._private = _read_key(self._file)
        return self._private

    def _make(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        with self._ready(), _locked(self.directory):
            if _status(self._file) is not None:  # another process created it first
                return
            key = Ed25519PrivateKey.generate()
            _write(self.directory / _PUBLIC_FILE, f"{key.public_key().public_bytes_raw().hex()}\n".encode())
            _write(self._file, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    @contextmanager
    def _ready(self) -> Generator[None]:
        try:
            for directory in (self.directory.parent, self.directory):
                directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            yield
        except OSError as error:
            raise StoreError(
                f"{self.directory} cannot be written: {error.strerror}\n"
                "  the key that signs the audit log is stored there; set XDG_STATE_HOME to use another directory"
            ) from error


def _read_key(file: Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    fix = "move the file away to create a new key; signatures of the old key then count as unknown"
    _check_owner(file, 0o077, fix)
    try:
        key = load_pem_private_key(file.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise WrongFile(f"the key cannot be read: {error}", place=Place(str(file)), fix=fix) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise WrongFile("this is not an Ed25519 key", place=Place(str(file)), fix=fix)
    return key


def _read_copy(file: Path) -> Checkpoint | None:
    if _status(file) is None:
        return None
    fix = "move the file away if you know why; then only the store can show that the end of the audit log was cut off"
    _check_owner(file, 0o022, fix)
    try:
        content = json.loads(file.read_bytes())
        fields: dict[str, Any] = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
        texts = {name: str(fields[name]) for name in _FIELDS if name in fields and name != "seq"}
        if sorted(fields) != sorted(_FIELDS) or type(fields["seq"]) is not int:
            raise ValueError("it does not hold a checkpoint")
    except (OSError, ValueError) as error:
        what = f"the copy of a checkpoint cannot be read: {error}"
        raise WrongFile(what, place=Place(str(file)), fix=fix) from error
    return Checkpoint(seq=fields["seq"], **texts)


def _status(file: Path) -> os.stat_result | None:
    """`lstat` of a file; None if it does not exist."""
    try:
        return file.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"{file} cannot be accessed: {error.strerror}") from error


def _check_owner(file: Path, forbidden: int, fix: str) -> None:
    status = _status(file)
    if status is None or not S_ISREG(status.st_mode) or status.st_uid != os.getuid():
        raise WrongFile("other users can access this file", place=Place(str(file)), fix=fix)
    if status.st_mode & forbidden:
        can = "read" if forbidden & 0o044 else "write"
        raise WrongFile(f"others can {can} this file", place=Place(str(file)), fix=f"chmod 600 it, or {fix}")


def _write(file: Path, content: bytes) -> None:
    """Replace a file atomically, readable by its owner only, and sync it to disk."""
    import tempfile

    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    directory = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def _locked(directory: Path) -> Generator[None]:
    handle = os.open(directory / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        try:
            import fcntl
        except ImportError:  # Windows has no flock; the user must run one process at a time
            pass
        else:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
