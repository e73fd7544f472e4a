"""Which project files their user has trusted. A hook installed for all of a user's work applies no others.

A repository that was just cloned brings its own `signoff.yaml`. It could allow everything, or name a store whose
approvals somebody else writes. So a file applies only once the user has trusted it, and as long as its SHA-256 digest
is the same.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from signoff.errors import WrongUse
from signoff.regular_file import bytes_of
from signoff.store.place import state_root

TRUSTED = "trusted.json"
"""File in the state directory: the digest of each trusted file, by its path."""
_LARGEST = 4 * 1024 * 1024


def is_trusted(file: str) -> bool:
    """Return whether the user has trusted this file with its current content."""
    try:
        text = bytes_of(file)
    except OSError:
        return False
    return _trusted().get(os.path.realpath(file)) == _digest(text)


def trust(file: str) -> bool:
    """Trust a file with its current content. Returns whether that is new. Raises `WrongUse` if that cannot be saved."""
    root = state_root()
    if root is None:
        raise WrongUse("there is no home directory to record what you trust: set HOME or XDG_STATE_HOME")
    try:
        found, known = _digest(bytes_of(file)), _trusted()
        if known.get(os.path.realpath(file)) == found:
            return False
        _write(root, known | {os.path.realpath(file): found})
    except OSError as error:
        raise WrongUse(
            f"the list of trusted files cannot be written to {root / TRUSTED}: {error.strerror or error}"
        ) from error
    return True


def distrust(file: str) -> bool:
    """Stop trusting a file. Returns whether it was trusted. Raises `WrongUse` if it cannot be recorded."""
    root, known = state_root(), _trusted()
    if root is None or known.pop(os.path.realpath(file), None) is None:
        return False
    try:
        _write(root, known)
    except OSError as error:
        raise WrongUse(
            f"the list of trusted files cannot be written to {root / TRUSTED}: {error.strerror or error}"
        ) from error
    return True


def keep_trust(file: str, before: str, after: str) -> None:
    """Keep a trusted file trusted after signoff itself changed it."""
    known, path, root = _trusted(), os.path.realpath(file), state_root()
    if root is not None and known.get(path) == _digest(before.encode()):
        with suppress(OSError):  # then the user is asked to trust it again
            _write(root, known | {path: _digest(after.encode())})


def _digest(text: bytes) -> str:
    return sha256(text).hexdigest()


def _trusted() -> dict[str, str]:
    """Return the recorded digests by path. Empty if the record is unreadable or belongs to another user."""
    root = state_root()
    if root is None:
        return {}
    try:
        with (root / TRUSTED).open("rb") as file:
            owner = os.fstat(file.fileno()).st_uid
            if hasattr(os, "getuid") and owner not in (os.getuid(), 0):
                return {}
            found: Any = json.loads(file.read(_LARGEST))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(path): str(digest) for path, digest in cast("dict[Any, Any]", found).items()}


def _write(root: Path, trusted: dict[str, str]) -> None:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = root / f"{TRUSTED}.{os.getpid()}"
    with suppress(FileNotFoundError):
        temporary.unlink()
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(trusted, file, indent=1)
    temporary.replace(root / TRUSTED)
