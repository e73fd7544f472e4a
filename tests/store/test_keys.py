"""The key that signs the record: made once, for its owner alone, and beside it what was signed last."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests import start
from tests.records import chain, checkpoint

from signoff.errors import StoreError, WrongFile, WrongUse
from signoff.store.signing_key import Keys, is_signed, keys_directory, read_public_key

NEWEST = checkpoint(chain(3)[-1])


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "state" / "keys")


def test_a_key_is_made_when_it_is_first_needed(keys: Keys) -> None:
    assert keys.public_key() == ""
    assert not keys.directory.exists()
    key, signature = keys.sign(b"text")
    assert is_signed(key, signature, b"text")
    assert keys.public_key() == key == Keys(keys.directory).public_key()
    assert (keys.directory / "record.key").stat().st_mode & 0o777 == 0o600
    assert keys.directory.stat().st_mode & 0o777 == 0o700
    assert read_public_key(str(keys.directory / "record.pub")) == key


def test_many_at_once_make_one_key(keys: Keys) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: Keys(keys.directory).public_key(make=True), range(24)))
    assert len(set(made)) == 1


def test_many_processes_at_once_make_one_key(keys: Keys) -> None:
    code = "import sys; from signoff.store.signing_key import Keys; print(Keys(sys.argv[1]).public_key(make=True))"
    command = [sys.executable, "-c", code, str(keys.directory)]
    running = [start.Process(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert len({one.communicate(timeout=60)[0] for one in running}) == 1


def test_nothing_heavy_is_loaded_before_it_is_used() -> None:
    code = "import sys, signoff.store.signing_key, signoff.broker.checkpoints; print('cryptography' in sys.modules)"
    assert start.fresh(code) == "False\n"


def test_the_key_lives_in_the_state_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert Keys().directory == tmp_path / "signoff" / "keys"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert keys_directory() == tmp_path / "home" / ".local" / "state" / "signoff" / "keys"
    monkeypatch.setenv("HOME", "/")
    with pytest.raises(StoreError, match="XDG_STATE_HOME"):
        Keys()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_read_is_refused(keys: Keys, mode: int) -> None:
    keys.public_key(make=True)
    (keys.directory / "record.key").chmod(mode)
    with pytest.raises(WrongFile, match=r"others can read this file\n.*chmod 600"):
        Keys(keys.directory).sign(b"text")


def test_a_key_that_is_a_link_is_refused(keys: Keys) -> None:
    keys.public_key(make=True)
    file = keys.directory / "record.key"
    file.rename(keys.directory / "elsewhere")
    file.symlink_to(keys.directory / "elsewhere")
    with pytest.raises(WrongFile, match="other users can access this file"):
        Keys(keys.directory).sign(b"text")


@pytest.mark.parametrize(
    "content", [b"", b"garbage", b"-----BEGIN PRIVATE KEY-----\nMC4=\n-----END PRIVATE KEY-----\n"]
)
def test_a_damaged_key_is_told(keys: Keys, content: bytes) -> None:
    keys.public_key(make=True)
    (keys.directory / "record.key").write_bytes(content)
    with pytest.raises(WrongFile, match="move the file away"):
        Keys(keys.directory).sign(b"text")


def test_a_key_of_another_kind_is_told(keys: Keys) -> None:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    keys.public_key(make=True)
    other = X25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (keys.directory / "record.key").write_bytes(other)
    with pytest.raises(WrongFile, match="not an Ed25519 key"):
        Keys(keys.directory).sign(b"text")


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be (written|accessed)"):
        Keys(tmp_path / "file" / "keys").sign(b"text")
    with pytest.raises(StoreError, match=r"cannot be (written|accessed)"):
        Keys(tmp_path / "file").keep("store", NEWEST)


# --- copies ---


def test_the_newest_checkpoint_is_kept(keys: Keys) -> None:
    assert keys.newest("store") is None
    keys.keep("store", NEWEST)
    keys.keep("store", NEWEST._replace(seq=2))
    keys.keep("other", NEWEST._replace(seq=1))
    assert keys.newest("store") == NEWEST
    assert Keys(keys.directory).newest("other") == NEWEST._replace(seq=1)
    assert keys.copy_of("store").stat().st_mode & 0o777 == 0o600


def test_many_at_once_keep_the_newest(keys: Keys) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda seq: Keys(keys.directory).keep("store", NEWEST._replace(seq=seq)), range(1, 40)))
    newest = keys.newest("store")
    assert newest is not None
    assert newest.seq == 39
    assert not [name for name in os.listdir(keys.directory) if name.startswith(".")], "nothing half-written is left"


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "", "A", "ü", "x" * 65, "\udcff"])
def test_a_stores_name_never_leads_elsewhere(keys: Keys, name: str) -> None:
    keys.keep(name, NEWEST)
    assert keys.copy_of(name).parent == keys.directory
    assert keys.newest(name) == NEWEST


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"seq": "x", "hash": 1, "at": 1, "key": 1, "signature": 1}'])
def test_a_damaged_copy_is_told(keys: Keys, content: str) -> None:
    keys.keep("store", NEWEST)
    keys.copy_of("store").write_text(content)
    with pytest.raises(WrongFile, match="copy of a checkpoint cannot be read"):
        keys.newest("store")


def test_a_copy_that_others_can_write_is_refused(keys: Keys) -> None:
    keys.keep("store", NEWEST)
    keys.copy_of("store").chmod(0o622)
    with pytest.raises(WrongFile, match="others can write"):
        keys.newest("store")


# --- keys that people give ---


def test_a_public_key_in_hex_or_in_a_file(tmp_path: Path) -> None:
    assert read_public_key("AB" * 32) == "ab" * 32
    (tmp_path / "key").write_text(f"  {'AB' * 32}\n")
    assert read_public_key(str(tmp_path / "key")) == "ab" * 32


def test_what_is_no_public_key(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="neither a public key of 64 hex digits nor a file"):
        read_public_key("abc")
    for content in (b"nonsense", b"\xff\xfe", b"ab" * 33):
        (tmp_path / "key").write_bytes(content)
        with pytest.raises((WrongFile, WrongUse), match="public key"):
            read_public_key(str(tmp_path / "key"))
