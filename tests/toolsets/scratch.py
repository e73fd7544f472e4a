"""Directories with things to read, and a look at every file in them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path

LINES = "".join(f"line {number} of one, two and three\n" for number in range(1, 31))
_WHO = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.com", "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z", "GIT_CONFIG_NOSYSTEM": "1", "PATH": "/usr/bin:/bin"}  # fmt: skip


def lay_out(base: Path) -> Path:
    """Make `work`, `home`, `tmp` and `beside` below `base`; `work` is what commands look at, and a git repository."""
    work = base / "work"
    for directory in (work / "src" / "deep", work / "docs", base / "home", base / "tmp", base / "beside"):
        directory.mkdir(parents=True)
    for name in ("file.txt", "other.txt", "a b.txt", "test.txt", "input.txt", "README.md", "docs/guide.md", "app.log"):
        (work / name).write_text(LINES)
    (work / "src" / "main.py").write_text("import os\n\n\ndef main():\n    print('one')  # TODO: two\n")
    (work / "src" / "deep" / "util.py").write_text("VALUE = 1\n")
    (work / "data.json").write_text('{"a": 1, "b": [1, 2, {"c": "x"}], "name": "one"}\n')
    (work / "package.json").write_text('{"name": "x", "version": "1.0.0", "dependencies": {}}\n')
    (work / "table.csv").write_text("id,name\n1,one\n2,two\n3,one\n")
    (work / "page.xml").write_text("<page><a>1</a><a>2</a></page>\n")
    (work / "link").symlink_to("file.txt")
    (work / "script.sh").write_text("#!/bin/sh\ntouch made-by-script\n")
    (work / "script.sh").chmod(0o755)
    (base / "beside" / "precious.txt").write_text("kept\n")
    (base / "home" / ".profile").write_text("# kept\n")
    _archives(work)
    if shutil.which("git"):
        _repository(work, base / "home")
    return work


def _archives(work: Path) -> None:
    with tarfile.open(work / "pack.tar", "w") as archive:
        archive.add(work / "src", "src")
    for name in ("pack.tar.gz", "archive.tar.gz"):
        with tarfile.open(work / name, "w:gz") as archive:
            archive.add(work / "file.txt", "file.txt")
            archive.add(work / "src", "src")
    for name in ("pack.zip", "archive.zip"):
        with zipfile.ZipFile(work / name, "w") as packed:
            packed.write(work / "file.txt", "file.txt")
    for name, packer in (
        ("text.gz", gzip.compress),
        ("file.gz", gzip.compress),
        ("text.bz2", bz2.compress),
        ("text.xz", lzma.compress),
    ):
        (work / name).write_bytes(packer(LINES.encode()))


def _repository(work: Path, home: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=work, env={**_WHO, "HOME": str(home)}, check=True, capture_output=True)

    git("init", "-q", "-b", "master")
    git("add", "file.txt", "src")
    git("commit", "-q", "-m", "one")
    (work / "src" / "main.py").write_text("import os\n\n\ndef main():\n    print('two')  # TODO: two\n")
    git("add", ".")
    git("commit", "-q", "-m", "two")
    git("tag", "v1")
    git("branch", "topic")
    (work / "file.txt").write_text(LINES + "changed\n")
    (work / "new.txt").write_text("not in git\n")


def seen_files(base: Path) -> dict[str, tuple[object, ...]]:
    """Every file and directory below `base`: kind and rights, and for files what they hold and when it was written."""
    found: dict[str, tuple[object, ...]] = {}
    for directory, directories, files in os.walk(base):
        for name in (*directories, *files):
            path = os.path.join(directory, name)
            known = os.lstat(path)
            said: tuple[object, ...] = (known.st_mode, known.st_uid, known.st_gid)
            if stat.S_ISLNK(known.st_mode):
                said += (os.readlink(path),)
            elif stat.S_ISREG(known.st_mode):
                said += (known.st_mtime_ns, known.st_nlink, Path(path).read_bytes())
            found[os.path.relpath(path, base)] = said
    return found
