"""The table of programs: every entry loads, and every entry has cases that show what it lets through and what not."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.resources import files

import pytest
from tests import tables
from tests.policy.shell.programs.cases_a import CASES_A
from tests.policy.shell.programs.cases_git import CASES_GIT

from signoff.policy.shell import simple_command, table
from signoff.policy.shell.command_facts import forget, read_shell

CASES = [*CASES_A, *CASES_GIT]


@pytest.fixture
def every_program_may_run_unasked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of programs that are asked about whatever they do, the table is still to say what they do."""
    monkeypatch.setattr(simple_command, "unasked_programs", table.known_programs)
    forget()
    yield
    forget()


def test_no_program_runs_unasked_that_is_not_among_those_that_may() -> None:
    allowed = [read_shell(command) for command, _ in CASES if read_shell(command).read_only]
    names = {simple.words[0].text.rpartition("/")[2] for one in allowed if one.line for simple in one.line.commands}
    told = {facts.text.split()[0] for facts in allowed if facts.text.split()[1:] in (["--version"], ["--help"], ["-h"])}
    assert names - told - {"[["} <= table.unasked_programs()
    assert {"rpm", "yq", "ag", "hg", "keytool"}.isdisjoint(names), "they expand, include or look elsewhere"
    assert table.unasked_programs() <= table.known_programs() | {"[["}


@pytest.mark.usefixtures("every_program_may_run_unasked")
@pytest.mark.parametrize("expected", ["read", "asks"])
def test_cases(expected: str) -> None:
    judged = {command: read_shell(command) for command, wanted in CASES if wanted == expected}
    wrong = {command: facts.why for command, facts in judged.items() if facts.read_only is not (expected == "read")}

    assert wrong == {}


def test_every_entry_loads() -> None:
    for name in table.known_programs():
        known = table.program(name)
        assert known is not None
        assert all(below.name.startswith(name) for below in known.commands.values())


def test_every_entry_has_a_case() -> None:
    lines = [line for command, _ in CASES if (line := read_shell(command).line)]
    shown = {simple.whole.words[0].text.rpartition("/")[2] for line in lines for simple in line.commands}

    assert sorted(table.known_programs() - shown) == []


def test_a_programs_slice_is_its_table() -> None:
    """Programs are parsed one by one, from the lines between their headers: nothing may fall between."""
    tables = [
        file for file in files("signoff.policy.shell").joinpath("programs").iterdir() if file.name.endswith(".toml")
    ]
    whole = {name: entry for file in tables for name, entry in tomllib.loads(file.read_text()).items()}

    assert whole.keys() == table.known_programs()
    for name, entry in whole.items():
        assert tomllib.loads(table._slices()[name])[name] == entry  # pyright: ignore[reportPrivateUsage]


@tables.table(
    "entry",
    [
        {}, {"does": "x", "flag": "-a"}, {"does": "x", "style": "bsd"}, {"does": "x", "operands": "file"},
        {"does": "x", "effect": "breaks"}, {"does": "x", "flags": "-a -a"}, {"does": "x", "flags": "a"},
        {"does": "x", "asks": {"-o": "its output"}}, {"does": "x", "language": "perl"},
    ],
)  # fmt: skip
def test_a_wrong_entry_says_so(entry: dict[str, object]) -> None:
    with pytest.raises(table.BadTable, match="`frob`"):
        table._build("frob", entry)  # pyright: ignore[reportPrivateUsage]


def test_the_table_is_of_everyday_size() -> None:
    assert len(table.known_programs()) >= 150
