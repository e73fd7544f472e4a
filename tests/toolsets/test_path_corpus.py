"""The corpus of path escapes, each built on a real file system and tried with the tools themselves."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.exceptions import ToolFailed

from signoff.policy.places import path_trouble, runs_later
from signoff.toolsets.builtin.files.file_toolset import FilesToolset
from signoff.toolsets.builtin.files.root_directory import How, Root

CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "path_escapes.jsonl"
ROWS: list[dict[str, Any]] = (
    [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()] if CORPUS.exists() else []
)
needs_corpus = pytest.mark.skipif(not ROWS, reason=f"no corpus of path escapes at {CORPUS.parent}")
PLAIN = ("allow", "deny", "strict-deny")
WAYS: tuple[How, ...] = ("openat2", "walk")


def chosen(platform: str, lexical: bool) -> list[dict[str, Any]]:
    return [row for row in ROWS if row["platform"] == platform and ("allowed_dirs" in row) == lexical]


def rows_and_ways(*, lexical: bool = False) -> Any:
    """Each row with each way to open files; by day with one of them, in turn."""
    return pytest.mark.parametrize(
        ("row", "way"),
        [
            pytest.param(row, way, id=f"{row['id']}-{way}", marks=[pytest.mark.nightly] * ((number + turn) % 2))
            for number, row in enumerate(chosen("posix", lexical))
            for turn, way in enumerate(WAYS)
        ],
    )


def tools(root: str, way: How) -> FilesToolset:
    return FilesToolset(
        Root(root, how=way), read_only=False, max_bytes=10_000, max_chars=10_000, max_results=100, id="files"
    )


def build(root: Path, entries: list[str]) -> None:
    """What a row lists: `dir/`, `link => target`, `!fifo name`, `!hardlink name target`, or a file."""
    for entry in entries:
        name, arrow, target = entry.partition(" => ")
        words = name.split(" ")
        path = root / (words[1] if name.startswith("!") else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if arrow:
            path.symlink_to(target)
        elif words[0] == "!fifo":
            os.mkfifo(path)
        elif words[0] == "!hardlink":
            os.link(root / words[2], path)
        elif name.startswith("!"):
            raise AssertionError(f"an entry nobody knows: {entry}")
        elif name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_text("inside")


def put_target(base: Path, path: str) -> None:
    """Something at the end of the path, inside or outside, so that a refusal is one, and no missing file."""
    with suppress(OSError, ValueError):
        real = Path(os.path.realpath(path))
        if real.is_relative_to(base) and not real.exists():
            real.parent.mkdir(parents=True, exist_ok=True)
            if path.endswith(("/", "/.")):
                real.mkdir()
            else:
                real.write_text("inside" if real.is_relative_to(base / "ROOT") else "outside")


def around(base: Path) -> dict[str, str]:
    """Everything outside of the root."""
    found = {}
    for directory, _, names in os.walk(base):
        if not Path(directory).is_relative_to(base / "ROOT"):
            found |= {f"{directory}/{name}": Path(directory, name).read_text() for name in names}
    return found


def attempt(files: FilesToolset, row: dict[str, Any], path: str) -> str | None:
    """What the tool says; None where it refuses."""
    try:
        if row["op"] == "write":
            return files.write_file(path, "written")
        try:
            return files.read_file(path)
        except ToolFailed as error:
            if "is a directory" not in error.message:
                raise
            return f"directory: {files.list_files(path)}"
    except ToolFailed:
        return None


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A root, a neighbour whose name starts alike, and an outside with a secret."""
    for directory in ("ROOT", "ROOT_evil", "outside"):
        (tmp_path / directory).mkdir()
    for directory in ("ROOT_evil", "outside"):
        (tmp_path / directory / "secret").write_text("outside")
    return tmp_path


def swap_in(root: Path, row: dict[str, Any]) -> None:
    """What happens, in rows about races, after a call was judged and before it runs."""
    match row["id"]:
        case "toctou-approve-then-swap":
            (root / "a.txt").unlink()
            (root / "a.txt").symlink_to("../outside/secret")
        case "toctou-parent-mkdir":
            (root / "d/new").symlink_to("../../outside")
        case "toctou-glob":
            (root / "d/link").symlink_to("../../outside")
        case "rule-symlink-deny":
            (root / ".ssh").mkdir()
            (root / ".ssh/id_rsa").write_text("outside")
            (root / row["path"]).symlink_to(".ssh/id_rsa")
        case _:
            pass


@needs_corpus
@rows_and_ways()
def test_paths_on_a_real_file_system(base: Path, row: dict[str, Any], way: How) -> None:
    root = base / "ROOT"
    build(root, row["fs"])
    path = row["path"].replace("$ABS", str(root))
    if row["op"] == "read" and row["expected"] in PLAIN and not row["id"].startswith(("toctou", "rule-symlink")):
        put_target(base, path if path.startswith("/") else f"{root}/{path}")
    swap_in(root, row)
    before = around(base)
    files = tools(str(root), way)
    said = attempt(files, row, path)
    match row["expected"]:
        case "allow":
            assert said is not None
            assert said == "inside" or said.startswith("directory: ")
        case "deny" | "strict-deny":
            assert said is None
        case "deny-or-exact":
            assert said is None or said == "inside"
        case "documented-limit":
            files.write_file(path, "written")
        case "ask-high":
            assert runs_later(path)
            assert "proc.exec" in files.capability_labels("write_file", {"path": path}, None)
            assert files.needs_approval("write_file", {"path": path}, None) is not False
        case expected:
            assert expected == "scope", "about rules, not about tools"
    assert around(base) == before, "something outside was changed"


@needs_corpus
@rows_and_ways(lexical=True)
def test_absolute_paths_and_several_roots(tmp_path: Path, row: dict[str, Any], way: How) -> None:
    """The whole tree of a row is moved below a directory of its own; a root that cannot be opened allows nothing."""
    path = f"{tmp_path}{row['path']}"
    said = None
    for root in row["allowed_dirs"]:
        if not isinstance(root, str) or "\0" in root:
            continue
        Path(f"{tmp_path}{root}").mkdir(parents=True, exist_ok=True)
        if os.path.realpath(path) != os.path.realpath(f"{tmp_path}{root}"):
            put_target(tmp_path, path)
        said = said or attempt(tools(f"{tmp_path}{root}", way), row, path)
    assert (said is not None) == (row["expected"] == "allow")


@needs_corpus
@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in chosen("windows", lexical=False)])
def test_names_that_windows_reads_differently(row: dict[str, Any]) -> None:
    assert bool(path_trouble(row["path"], windows=True)) == (row["expected"] != "allow")
    if row["expected"] != "allow":
        assert path_trouble(row["path"]), "refused on other systems as well"
