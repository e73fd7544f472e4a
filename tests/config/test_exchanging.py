"""A file is exchanged whole, while it is what was read; otherwise it stays as it is, and nothing lies beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from signoff.config import file_exchange
from signoff.config.file_exchange import exchange
from signoff.errors import WrongFile

OLD, NEW = "policy: []\r\n# é\n", "policy: [{allow: a}]\r\n# é\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "signoff.yaml"
    path.write_bytes(OLD.encode())
    return path


def names(directory: Path) -> list[str]:
    return sorted(one.name for one in directory.iterdir())


def test_it_is_exchanged_and_keeps_its_rights(file: Path) -> None:
    file.chmod(0o640)
    was = file.stat()
    exchange(str(file), OLD, NEW)
    now = file.stat()
    assert file.read_bytes() == NEW.encode()
    assert (now.st_mode, now.st_uid, now.st_gid) == (was.st_mode, was.st_uid, was.st_gid)
    assert names(file.parent) == ["signoff.yaml"]


def test_a_link_stays_and_what_it_leads_to_is_exchanged(file: Path, tmp_path: Path) -> None:
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    link = directory / "link.yaml"
    link.symlink_to(file)
    exchange(str(link), OLD, NEW)
    assert link.is_symlink()
    assert file.read_bytes() == NEW.encode()
    assert names(directory) == ["link.yaml"]


@pytest.mark.parametrize("other", [OLD + "# more\n", "", OLD.replace("\r\n", "\n")])
def test_one_that_changed_meanwhile_is_left_alone(file: Path, other: str) -> None:
    file.write_bytes(other.encode())
    with pytest.raises(WrongFile, match="changed in the meantime; nothing was written"):
        exchange(str(file), OLD, NEW)
    assert file.read_bytes() == other.encode()
    assert names(file.parent) == ["signoff.yaml"]


def test_one_that_changes_in_the_last_moment_is_left_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sync(handle: int) -> None:
        file.write_text("policy: [{deny: b}]\n")

    monkeypatch.setattr(file_exchange.os, "fsync", sync)
    with pytest.raises(WrongFile, match="changed in the meantime"):
        exchange(str(file), OLD, NEW)
    assert file.read_text() == "policy: [{deny: b}]\n"
    assert names(file.parent) == ["signoff.yaml"]


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_nothing_is_half_written_when_the_disk_fails(file: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file_exchange.os, step, fail)
    with pytest.raises(WrongFile, match="No space left on device; nothing was written"):
        exchange(str(file), OLD, NEW)
    assert file.read_bytes() == OLD.encode()
    assert names(file.parent) == ["signoff.yaml"]


def test_an_interrupt_leaves_nothing_behind(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(file_exchange.os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        exchange(str(file), OLD, NEW)
    assert file.read_bytes() == OLD.encode()
    assert names(file.parent) == ["signoff.yaml"]


def test_other_names_of_a_file_are_not_lost(file: Path, tmp_path: Path) -> None:
    os.link(file, tmp_path / "other.yaml")
    with pytest.raises(WrongFile, match="has 2 names"):
        exchange(str(file), OLD, NEW)
    assert file.read_bytes() == OLD.encode()


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "signoff.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(WrongFile, match="symbolic link is broken"):
        exchange(str(tmp_path / "signoff.yaml"), OLD, NEW)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_write_protected_file_is_left_alone(file: Path) -> None:
    file.chmod(0o444)
    with pytest.raises(WrongFile, match="write-protected; nothing was written"):
        exchange(str(file), OLD, NEW)
    assert file.read_bytes() == OLD.encode()
