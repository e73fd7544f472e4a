"""The repository keeps its promises: pinned locks, no traces of a machine, readable files, one script that works."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from signoff.store.memory_store import MemoryStore
from signoff.store.transaction import Transaction
from signoff.workers.providers import PROVIDERS

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
COMMANDS = ("demo", "run", "test", "check", "fmt", "docs", "bench", "lock", "help")

ADDRESS = re.compile(r"://|--(extra-)?index-url|--find-links|^\s*-[if]\b", re.MULTILINE)
MACHINE_PATH = re.compile(r"(?<![\w.}/~-])/(work|farm|root)/[a-z.]")
PIN = re.compile(r"^(?P<name>[a-z0-9][a-z0-9.-]*)(\[[a-z0-9,.-]+\])?==(?P<version>[^\s;]+)")


def project_files() -> list[Path]:
    """What is tracked, or would be with the next `git add`."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file()]


def locked(lock: Path) -> dict[str, set[str]]:
    """Name -> versions of a lock; a universal lock may hold several, each for its own platform."""
    versions: dict[str, set[str]] = defaultdict(set)
    for requirement in requirements(lock):
        pin = PIN.match(requirement)
        assert pin, f"{lock.name}: not pinned: {requirement[:80]}"
        versions[pin["name"]].add(pin["version"])
    return versions


def requirements(lock: Path) -> list[str]:
    """The logical lines of a lock: continuations joined, comments and blanks left out."""
    lines = [line for line in lock.read_text("utf-8").splitlines() if not line.lstrip().startswith("#")]
    return [line for line in "\n".join(lines).replace("\\\n", " ").splitlines() if line.strip()]


def test_the_locks_are_there() -> None:
    assert [lock.stem for lock in LOCKS] == ["bench", "dev", "docs", "run", "uv"]


def test_every_extra_has_code_that_needs_it() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    needed = re.compile(r'MissingExtra\("[^"]+", "(\w+)"\)|extra="signoff\[(\w+)\]"')
    files = [file.read_text("utf-8") for file in (ROOT / "src").rglob("*.py")]
    named = {one or other for text in files for one, other in needed.findall(text)}
    assert set(extras) == named | {provider.extra for provider in PROVIDERS.values()}


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_requirement_is_pinned_with_hashes(lock: Path) -> None:
    assert locked(lock)
    assert [line for line in requirements(lock) if "--hash=sha256:" not in line] == []


@pytest.mark.parametrize("file", [*LOCKS, ROOT / "pyproject.toml"], ids=lambda file: file.name)
def test_dependency_files_hold_no_address(file: Path) -> None:
    assert ADDRESS.search(file.read_text("utf-8")) is None


@pytest.mark.parametrize("wider", ["dev", "bench"])
def test_one_environment_can_hold_every_lock(wider: str) -> None:
    """`run` is inside the others with the same versions, so what was tested is what a newcomer gets."""
    run, other = locked(ROOT / "requirements/run.txt"), locked(ROOT / f"requirements/{wider}.txt")
    assert {name: versions for name, versions in run.items() if versions != other.get(name)} == {}


@pytest.mark.parametrize("other", ["bench", "docs"])
def test_dev_and_others_agree(other: str) -> None:
    dev, beside = locked(ROOT / "requirements/dev.txt"), locked(ROOT / f"requirements/{other}.txt")
    assert {name for name in dev.keys() & beside.keys() if dev[name] != beside[name]} == set()


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, hit.start()) + 1}"
        for path in project_files()
        for text in (path.read_bytes().decode("utf-8", "replace"),)
        for hit in MACHINE_PATH.finditer(text)
    ]
    assert found == []


def sleeps(source: str) -> list[int]:
    """The lines that wait for time to pass. `asyncio.sleep(0)` only lets others run, and is fine."""
    found: list[int] = []
    for node in ast.walk(ast.parse(source)) if "sleep" in source else ():
        match node:
            case ast.Call(func=ast.Attribute(attr="sleep"), args=[ast.Constant(value=0)]):
                continue
            case ast.Call(func=ast.Attribute(value=ast.Name(id="time" | "asyncio" | "anyio"), attr="sleep")):
                found.append(node.lineno)
            case ast.ImportFrom(module="time" | "asyncio" | "anyio") if any(a.name == "sleep" for a in node.names):
                found.append(node.lineno)
            case _:
                pass
    return sorted(found)


def test_no_test_sleeps() -> None:
    files = (ROOT / "tests").rglob("*.py")
    assert [f"{path.relative_to(ROOT)}:{line}" for path in files for line in sleeps(path.read_text("utf-8"))] == []


def test_no_test_waits_for_a_signal_that_may_have_come() -> None:
    """`pause` waits for the next one: what came just before it is noted, and the process hangs."""
    wanted = "signal." + "pause"
    assert [str(path) for path in (ROOT / "tests").rglob("*.py") if wanted in path.read_text("utf-8")] == []


def test_sleeps_are_found() -> None:
    source = "import time\ntime.sleep(1)\nfrom asyncio import sleep\nasyncio.sleep(0)\nasyncio.sleep(0.1)"
    assert sleeps(source) == [2, 3, 5]


def test_ci_runs_the_tests_and_nothing_else() -> None:
    run = ROOT / ".ci" / "run"
    assert os.access(run, os.X_OK)
    calls = [line for line in run.read_text("utf-8").splitlines() if "dev" in line and not line.startswith("#")]
    assert calls == ["./dev test"]


@pytest.mark.parametrize("command", ["./dev demo", "./dev test"])
def test_the_readme_shows_how_to_start(command: str) -> None:
    assert command in (ROOT / "README.md").read_text("utf-8")


def dev(*arguments: str, root: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [root / "dev", *arguments], env=os.environ | environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"]], ids=["nothing", "help", "--help"])
def test_dev_explains_itself(arguments: list[str]) -> None:
    outcome = dev(*arguments)
    assert outcome.returncode == 0
    assert outcome.stderr == ""
    assert [name for name in COMMANDS if not re.search(rf"^  {name} ", outcome.stdout, re.MULTILINE)] == []


def test_dev_refuses_what_it_does_not_know() -> None:
    outcome = dev("tset")
    assert outcome.returncode == 2
    assert "no such command: tset" in outcome.stderr
    assert "usage: ./dev" in outcome.stderr


@pytest.mark.parametrize(
    ("answer", "told"), [("echo 3.9.18", "(3.9.18)"), ("echo 3.10.4", "(3.10.4)"), ("exit 127", "found none")]
)
def test_dev_says_which_python_it_found_and_which_it_needs(tmp_path: Path, answer: str, told: str) -> None:
    python = tmp_path / "old python"
    python.write_text(f"#!/bin/sh\n{answer}\n", encoding="utf-8")
    python.chmod(0o755)
    shutil.copy(ROOT / "dev", tmp_path)
    outcome = dev("check", root=tmp_path, PYTHON=str(python))
    assert outcome.returncode == 1
    assert "needs Python 3.11 or newer" in outcome.stderr
    assert told in outcome.stderr
    assert not (tmp_path / ".venv").exists()


def test_no_regex_repeats_a_group_possessively() -> None:
    """Python before 3.11.5 matches `(…)*+` wrongly where the group can backtrack; single characters are fine."""
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in (ROOT / "src").rglob("*.py")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.search(r"(?<!\\)\)(?:[*+?]|\{[0-9,]+\})\+(?!\+)", line) and ("re." in line or 'r"' in line)
    ]
    assert found == []


def test_no_noun_of_the_store_has_more_than_eight_methods() -> None:
    """A transaction is made of nouns; a noun that grows beyond this is two."""
    tx = MemoryStore(record=True)._tx
    nouns = {name: type(getattr(tx, name)) for name in Transaction.__annotations__}
    sizes = {
        name: sum(key[0] != "_" and callable(getattr(noun, key)) for key in dir(noun)) for name, noun in nouns.items()
    }
    assert len(sizes) == 23
    assert {name: size for name, size in sizes.items() if not 2 <= size <= 8} == {}
