"""Patterns stand for the same files as in bash, and what is not clear is not guessed at."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff import found_files
from signoff.disk_steps import DiskSteps
from signoff.policy.shell.file_patterns import escaped
from signoff.policy.step_count import Unclear

BASH = shutil.which("bash")
NAMES = (
    *("a", "b", "ab", "abc", "A", "B1", "b-c", "-rf", ".hidden", ".git", "..x", "a b", "x*y", "x?y", "[a]", "]", "!a"),
    *("^", "é", "zé", "日本", "a.txt", "b.txt", "c.md", "9", "\\", "a\\b", "d\nd", "~", "#", "$x", "'q'"),
)
PIECES = (
    *("*", "?", "a", "b", "c", ".", "/", "x", "y", ".txt", "-", "~", "é", "\\*", "\\?", "\\[", "\\]", "\\\\", "1", " "),
    *("[a-c]", "[!a]", "[^a]", "[]a]", "[!]]", "[a-]", "[-a]", "[[:alpha:]]", "[[:digit:]]", "[![:upper:]]", "[abé]"),
    *("[[:punct:]]", "[[:space:]]", "[\\]a]", "[a\\-c]", "[.]", "[*?]", "[b-]", "..", "./", "../", "**", "[!.]", "[[]"),
)


def expand(pattern: str, directory: str, **given: Any) -> list[str]:
    return found_files.expand(pattern, directory, count=DiskSteps(), **given)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directories three deep with awkward names, links to directories, to files and to nothing."""
    root = tmp_path_factory.mktemp("tree")
    for name in NAMES:
        (root / name).touch()
    for directory in ("d", "da", ".d", "x", "d/dd", "d/.e", "x/.y", "da/é", "x/a c"):
        (root / directory).mkdir()
        for name in NAMES[:12]:
            (root / directory / name).touch()
    (root / "link").symlink_to("d")
    (root / "gone").symlink_to("nowhere")
    (root / "filelink").symlink_to("a")
    return root


def in_bash(patterns: list[str], directory: Path) -> list[list[str]]:
    """What bash passes to a program for each pattern, written so that nothing but the looking for files happens."""
    words = [re.sub(r"([^\w*?\[\]!^.:/\\-])", r"\\\1", pattern) for pattern in patterns]
    script = "".join(f'printf "%s\\0" {word}; printf "\\1\\0";' for word in words)
    done = subprocess.run(
        [BASH or "bash", "--noprofile", "--norc", "-c", script],
        cwd=directory,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )
    assert not done.stderr
    return [one.removesuffix("\0").split("\0") for one in os.fsdecode(done.stdout).split("\1\0")[:-1]]


PATTERN = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)


@pytest.mark.skipif(BASH is None, reason="needs bash")
@examples(600, daily=15)
@given(st.lists(PATTERN, min_size=10, max_size=20))
def test_a_pattern_stands_for_what_bash_finds(tree: Path, patterns: list[str]) -> None:
    patterns = [one for one in patterns if not one.startswith("/") and re.search(r"(?<!\\)[*?\[]", one)]
    for pattern, theirs in zip(patterns, in_bash(patterns, tree), strict=True):
        try:
            ours = expand(pattern, str(tree)) or [re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)]
        except Unclear:
            continue
        assert ours == theirs, pattern


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_any_depth_is_looked_at_where_a_shell_does(tree: Path) -> None:
    for pattern in ("**/a", "d/**/a", "***/a", "**/*", "**/dd/*", "link/**/b", "**/.hidden", "x/**", "**"):
        command = ["zsh", "-f", "-c", f"print -rN -- {pattern}"]
        done = subprocess.run(command, cwd=tree, capture_output=True, check=True)
        theirs = {name.rstrip("/") for name in os.fsdecode(done.stdout).split("\0")[:-1]}
        assert theirs <= set(expand(re.sub(r"\*+", lambda some: some[0][:2], pattern), str(tree), deep=True)), pattern


def test_nothing_found_is_an_empty_list(tree: Path) -> None:
    assert expand("nothing*", str(tree)) == []
    assert expand("*", str(tree / "no such directory")) == []


def test_only_what_starts_with_a_dot_finds_names_that_do(tree: Path) -> None:
    assert not [one for one in expand("*", str(tree)) if one.startswith(".")]
    assert expand(".*", str(tree)) == ["..x", ".d", ".git", ".hidden"]
    assert expand("[.]*", str(tree)) == []


def test_an_absolute_pattern_and_a_trailing_slash(tree: Path) -> None:
    assert expand(f"{escaped(str(tree))}/d*/", "/") == [f"{tree}/d/", f"{tree}/da/"]
    assert expand("link/d*", str(tree)) == ["link/dd"]


@pytest.mark.parametrize(
    "pattern",
    ["[[:nothing:]]*", "[[.a.]]", "[[=a=]]", "[z-a]", "[a-é]", "[a*", "[!", "a//*", "x\0*"],
)
def test_what_shells_read_differently_is_not_guessed_at(tree: Path, pattern: str) -> None:
    with pytest.raises(Unclear):
        expand(pattern, str(tree))


def test_a_name_that_is_not_text_is_not_guessed_at(tmp_path: Path) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"\xff"), "wb"):
        pass
    with pytest.raises(Unclear, match="not text"):
        expand("?", str(tmp_path))


def test_there_is_a_limit_to_matches(tree: Path) -> None:
    with pytest.raises(Unclear, match="more than 3 files"):
        expand("*", str(tree), most=3)


def test_it_can_be_stopped(tree: Path) -> None:
    with pytest.raises(Unclear, match="too long"):
        expand("*", str(tree), stop=lambda: True)


def test_many_stars_take_no_time(tmp_path: Path) -> None:
    """A matcher that goes back to every star would take years for this."""
    (tmp_path / ("a" * 250)).touch()
    assert expand("*a" * 60 + "*b", str(tmp_path)) == []


def test_many_parts_of_a_pattern_are_too_many_or_one(tree: Path) -> None:
    for piece in ("./", "*/", "**/", "a/"):
        with pytest.raises(Unclear, match="has more than 200 parts"):
            expand(piece * 1300 + "x", str(tree), deep=True)
    assert expand("**/" * 150 + "a", str(tree), deep=True) == expand("**/a", str(tree), deep=True)
