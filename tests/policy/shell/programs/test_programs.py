"""The table of programs: every entry loads, and every entry has cases that show what it lets through and what not."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from signoff.policy.shell import table
from signoff.policy.shell.facts import read_shell
from tests.policy.shell.programs.cases_a import CASES_A
from tests.policy.shell.programs.cases_git import CASES_GIT

CASES = [*CASES_A, *CASES_GIT]
TABLES = [file for file in files("signoff.policy.shell").joinpath("programs").iterdir() if file.name.endswith(".toml")]


@pytest.mark.parametrize(("command", "expected"), CASES, ids=[command for command, _ in CASES])
def test_case(command: str, expected: str) -> None:
    facts = read_shell(command)

    assert ("read" if facts.read_only else "asks") == expected, facts.why


@pytest.mark.parametrize("name", sorted(table.known_programs()))
def test_every_entry_loads_and_has_a_case(name: str) -> None:
    assert table.program(name) is not None
    firsts = {
        simple.words[0].text for command, _ in CASES if (line := read_shell(command).line) for simple in line.commands
    }

    assert name in firsts, f"no case shows what `{name}` may do"


@pytest.mark.parametrize("file", TABLES, ids=lambda file: file.name)
def test_a_programs_slice_is_its_table(file: object) -> None:
    """Programs are parsed one by one, from the lines between their headers: nothing may fall between."""
    whole = tomllib.loads(file.read_text())  # type: ignore[attr-defined]

    for name, entry in whole.items():
        assert tomllib.loads(table._slices()[name])[name] == entry


def test_the_table_is_of_everyday_size() -> None:
    assert len(table.known_programs()) >= 150
