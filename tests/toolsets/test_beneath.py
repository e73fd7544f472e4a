"""Opening beneath a root: links inside are followed, nothing outside is reached, nothing waits."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from signoff.toolsets.builtin.files.root_directory import Outside, Root
from signoff.toolsets.builtin.files.spot import NotPlain
from signoff.toolsets.builtin.files.system_calls import has_open_beneath, rename_new

WAYS = ["openat2", "walk"]


@pytest.fixture(params=WAYS)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Root]:
    """A root beside a secret, opened either way."""
    inside = tmp_path / "root"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "b" / "file").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("outside")
    yield from opened(inside, request.param)


def opened(directory: Path, way: Any) -> Iterator[Root]:
    try:
        made = Root(directory, how=way)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        pytest.skip("this kernel has no openat2")
    yield made
    made.close()


def read(root: Root, path: str) -> str:
    with root.reach(path) as found:
        return found.read(1000).decode()


def link(root: Root, name: str, target: str) -> None:
    os.symlink(target, Path(root.path, name))


@pytest.mark.parametrize("path", ["a/b/file", "./a//b/./file", "a/../a/b/../b/file", "a/b/../../a/b/file"])
def test_paths_inside_are_read(root: Root, path: str) -> None:
    assert read(root, path) == "inside"


def test_absolute_paths_inside_are_read_as_given_and_as_they_really_are(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("inside")
    os.symlink("real", tmp_path / "alias")
    root = Root(tmp_path / "alias")
    for path in (tmp_path / "alias" / "file", tmp_path / "real" / "file"):
        assert read(root, str(path)) == "inside"
    assert read(root, f"{tmp_path}//alias//file") == "inside"
    for path in (f"{tmp_path}/alias_evil/file", f"{tmp_path}/alias/../real/file", f"/{tmp_path}/alias/file"):
        with pytest.raises(Outside):
            read(root, path)


@pytest.mark.parametrize(
    "path",
    ["../outside/secret", "a/../../outside/secret", "../root/a/b/file", "a/../../root/a/b/file", "..", "/", "/etc"],
)
def test_leaving_is_refused_even_where_the_path_comes_back(root: Root, path: str) -> None:
    with pytest.raises(Outside):
        root.reach(path, directory=None)


@pytest.mark.parametrize(
    "target", ["../outside/secret", "/etc/passwd", "a/../../outside/secret", "../root/a/b/file", "ABSOLUTE"]
)
def test_links_that_leave_are_refused(root: Root, target: str) -> None:
    target = target.replace("ABSOLUTE", f"{root.path}/a/b/file")
    link(root, "link", target)
    with pytest.raises(Outside):
        read(root, "link")
    link(root, "directory", os.path.dirname(target))
    with pytest.raises((Outside, FileNotFoundError)):
        root.reach(f"directory/{os.path.basename(target)}")


@pytest.mark.parametrize(
    ("links", "path", "where"),
    [
        ({"l": "a/b/file"}, "l", "a/b/file"),
        ({"l": "a/"}, "l/b/file", "a/b/file"),
        ({"l": "a/b", "a/up": "../l"}, "a/up/file", "a/b/file"),
        ({"l": "a/b/.."}, "l/b/file", "a/b/file"),
        ({"l": "a/b"}, "l/../b/file", "a/b/file"),
    ],
)
def test_links_inside_are_followed_and_known(root: Root, links: dict[str, str], path: str, where: str) -> None:
    for name, target in links.items():
        link(root, name, target)
    with root.reach(path) as found:
        assert found.where == where
    assert root.where(path) == where


def test_links_in_circles_end(root: Root) -> None:
    link(root, "l", "l")
    with pytest.raises(OSError, match="symbolic links") as caught:
        read(root, "l")
    assert caught.value.errno == errno.ELOOP
    with pytest.raises(OSError, match="symbolic links"):
        root.replace("l", b"x")


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_what_is_no_path_is_refused(root: Root, path: str) -> None:
    with pytest.raises(ValueError, match="must not be empty or hold a NUL"):
        root.open(path)


def test_pipes_sockets_devices_and_directories_are_not_files(root: Root) -> None:
    os.mkfifo(Path(root.path, "pipe"))
    link(root, "to-pipe", "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(root.path)  # the address of a socket is short
        listening.bind("socket")
        for path in ("pipe", "to-pipe", "socket", "a"):
            for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
                with pytest.raises(OSError, match=r".") as caught:
                    root.open(path, flags)
                assert isinstance(caught.value, NotPlain | IsADirectoryError) or caught.value.errno == errno.ENXIO
            with pytest.raises((NotPlain, IsADirectoryError)):
                root.replace(path, b"x")


@pytest.fixture(autouse=True)
def _stay_here() -> Iterator[None]:
    here = os.getcwd()
    yield
    os.chdir(here)


def test_devices_are_not_read() -> None:
    for way in WAYS:
        for root in opened(Path("/"), way):
            with pytest.raises(NotPlain, match="is a device"):
                root.open("dev/null")
            with pytest.raises(OSError, match=r"symbolic links|outside"):
                root.open("proc/self/root/etc/passwd")


def test_nothing_is_emptied_but_a_regular_file(root: Root) -> None:
    os.close(root.open("a/b/file", os.O_WRONLY | os.O_TRUNC))
    assert read(root, "a/b/file") == ""


def test_writing_replaces_the_name_and_keeps_the_mode(root: Root) -> None:
    file = Path(root.path, "a/b/file")
    file.chmod(0o640)
    os.link(file, Path(root.path, "twin"))
    root.replace("a/b/file", b"new")
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert Path(root.path, "twin").read_text() == "inside", "a hard link was written through"
    assert sorted(os.listdir(file.parent)) == ["file"], "something was left behind"


def test_writing_follows_links_inside_only(root: Root, tmp_path: Path) -> None:
    link(root, "in", "a/b/file")
    root.replace("in", b"through")
    assert Path(root.path, "in").is_symlink()
    assert read(root, "a/b/file") == "through"
    link(root, "out", "../outside/secret")
    link(root, "dangling", "../outside/new")
    link(root, "directory", "../outside")
    link(root, "absolute", str(tmp_path / "outside" / "new"))
    for path in ("out", "dangling", "absolute", "directory/new", "directory/deep/new", "../outside/new"):
        with pytest.raises(Outside):
            root.replace(path, b"x")
    assert os.listdir(tmp_path / "outside") == ["secret"]
    assert (tmp_path / "outside" / "secret").read_text() == "outside"


def test_directories_are_made_inside_only(root: Root, tmp_path: Path) -> None:
    root.replace("new/deep/file", b"x")
    assert read(root, "new/deep/file") == "x"
    with pytest.raises(FileNotFoundError):
        root.replace("missing/../file", b"x")
    link(root, "planted", "../outside/made")
    for path in ("planted", "planted/x"):
        with pytest.raises((Outside, FileNotFoundError)):
            root.mkdir(path)
    assert os.listdir(tmp_path / "outside") == ["secret"]


def test_a_file_that_may_not_be_written_is_not_replaced(root: Root) -> None:
    Path(root.path, "a/b/file").chmod(0o444)
    with pytest.raises(PermissionError):
        root.replace("a/b/file", b"x")
    assert read(root, "a/b/file") == "inside"


def test_names_are_moved_and_never_over_others_unasked(root: Root, tmp_path: Path) -> None:
    root.replace("other", b"other")
    with pytest.raises(FileExistsError):
        root.rename("a/b/file", "other")
    assert read(root, "other") == "other"
    root.rename("a/b/file", "other", overwrite=True)
    assert read(root, "other") == "inside"
    root.rename("other", "new/place/file")
    assert read(root, "new/place/file") == "inside"
    link(root, "directory", "../outside")
    for source, target in (
        ("directory/secret", "stolen"),
        ("new/place/file", "directory/sent"),
        ("new", "../outside/new"),
    ):
        with pytest.raises(Outside):
            root.rename(source, target)
    assert os.listdir(tmp_path / "outside") == ["secret"]


def test_a_rename_that_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    (tmp_path / "two").touch()
    directory = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(FileExistsError):
            rename_new(directory, "one", directory, "two")
        rename_new(directory, "one", directory, "three")
    finally:
        os.close(directory)
    assert sorted(os.listdir(tmp_path)) == ["three", "two"]


def test_removing_takes_the_link_not_what_it_leads_to(root: Root, tmp_path: Path) -> None:
    link(root, "link", "../outside/secret")
    root.unlink("link")
    assert (tmp_path / "outside" / "secret").exists()
    with pytest.raises(OSError, match="not empty"):
        root.unlink("a")
    root.unlink("a/b/file")
    root.unlink("a/b")
    assert os.listdir(Path(root.path, "a")) == []
    for path in (".", "..", "a/.."):
        with pytest.raises(IsADirectoryError):
            root.unlink(path)


def test_listing_says_what_things_are(root: Root) -> None:
    link(root, "l", "a")
    os.mkfifo(Path(root.path, "p"))
    root.replace("f", b"four")
    found = {entry.name: (entry.kind, entry.size) for entry in root.scandir(".")}
    assert found == {"a": ("directory", 0), "f": ("file", 4), "l": ("link", 0), "p": ("other", 0)}
    link(root, "out", "..")
    with pytest.raises(Outside):
        root.scandir("out")


def test_where_things_will_be(root: Root) -> None:
    link(root, "l", "a/b")
    assert root.where("l/new/deep") == "a/b/new/deep"
    assert root.where(".") == "." and root.where("l") == "a/b"
    link(root, "gone", "a/missing")
    assert root.where("gone") == "a/missing"
    with pytest.raises(Outside):
        root.where("l/../../../outside")
    with pytest.raises(FileNotFoundError):
        root.where("new/../x")


def test_no_descriptor_is_left_open(root: Root) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    link(root, "out", "../outside")
    before = count()
    for path in ("a/b/file", "out/secret", "missing/x", "a", "a/b/../../..", "../x"):
        for attempt in (
            lambda p=path: os.close(root.open(p)),
            lambda p=path: root.where(p),
            lambda p=path: root.stat(p),
        ):
            with suppress(OSError):
                attempt()
    assert count() == before


def test_a_root_has_to_be_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        Root(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        Root(tmp_path / "missing")


def test_the_probe_does_not_raise(tmp_path: Path) -> None:
    assert has_open_beneath(-1) is False
