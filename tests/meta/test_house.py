"""Facts about the house: how large it is, and that every class in it is found by searching for its name."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "signoff"
BORROWED = PACKAGE / "compat"
"""Has the names of other libraries, which programs that move here import."""
_CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)


def test_no_class_has_the_name_of_another(capsys: pytest.CaptureFixture[str]) -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    texts = {file.relative_to(PACKAGE): file.read_text() for file in sorted(PACKAGE.rglob("*.py"))}
    for file, text in texts.items():
        for name in _CLASS.findall(text) if PACKAGE / file.parts[0] != BORROWED else ():
            homes[name].append(str(file))
    twice = {name: files for name, files in homes.items() if len(files) > 1}
    sizes = sorted(((text.count("\n"), str(file), text) for file, text in texts.items()), reverse=True)
    lines = sum(size for size, _, _ in sizes)
    with capsys.disabled():
        print(f"\n{len(texts)} files, {lines:,} lines, {len(homes)} classes, {len(twice)} names twice")
        for size, file, text in sizes[:10]:
            print(f"  {size:4}  {file:30} {text.partition(chr(10))[0].strip(chr(34))}")
    assert len(homes) > 500
    assert twice == {}


def test_no_module_has_the_name_of_another() -> None:
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted(PACKAGE.rglob("*.py")):
        if file.name != "__init__.py":
            homes[file.name].append(str(file.relative_to(PACKAGE)))
    assert len(homes) > 400
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}


@pytest.mark.nightly  # a minute; pyright reads the same file each day, with the sources
def test_a_program_of_a_user_passes_mypy_and_a_wrong_one_does_not(tmp_path: Path) -> None:
    def checked(file: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(file)]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)

    right = ROOT / "tests" / "typing" / "programs.py"
    passed = checked(right)
    assert passed.returncode == 0, passed.stdout
    wrong = tmp_path / "wrong.py"
    wrong.write_text(right.read_text().replace("AgentRunResult[Refund])", "AgentRunResult[str])", 1))
    failed = checked(wrong)
    assert failed.returncode == 1
    assert "assert-type" in failed.stdout


def test_outside_its_folder_only_these_name_discord() -> None:
    """A channel is its folder and a line of the registry; the others have public names and tables of what is secret."""
    folder = PACKAGE / "channels" / "discord"
    files = [file for file in PACKAGE.rglob("*") if file.suffix in {".py", ".toml", ".yaml", ".html", ".md"}]
    naming = {
        str(file.relative_to(PACKAGE)): file
        for file in files
        if folder not in file.parents and "discord" in file.read_text("utf-8").casefold()
    }
    assert set(naming) == {
        "channel_kinds.py",  # the registry
        "channels/__init__.py",  # the public name
        "core/credential.py",  # what secrets of services look like
        "policy/secret.toml",  # where programs keep secrets
    }
