"""The reference is complete: every option, flag, key, event and error is on its page."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import click
import pytest

from signoff import Signoff, errors
from signoff.channels.keys import ALL, BACK, KEYS, NONE, ONE_BY_ONE
from signoff.cli.main import COMMANDS, program
from signoff.core.event import CallStep
from signoff.gate.capability import UnknownToolWarning

DOCS = Path(__file__).parents[2] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def test_every_error_is_documented_and_drawn() -> None:
    names = [name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)]
    for name in names:
        assert f"`{name}`" in page("errors.md"), f"docs/reference/errors.md lacks {name}"
        assert name in (errors.__doc__ or ""), f"the tree in errors.py lacks {name}"
    assert f"`{UnknownToolWarning.__name__}`" in page("errors.md")


def test_every_option_of_the_capability_is_documented() -> None:
    inherited = {"id", "description", "defer_loading"}
    for field in dataclasses.fields(Signoff):
        if field.init and not field.name.startswith("_") and field.name not in inherited:
            assert f"`{field.name}`" in page("gate.md"), f"docs/explanation/gate.md lacks {field.name}"


@pytest.mark.parametrize("event", list(CallStep))
def test_every_event_is_documented(event: CallStep) -> None:
    assert f"| `{event}` |" in page("gate.md")


def test_every_key_is_documented() -> None:
    text = page("terminal.md")
    for key in (*KEYS.values(), BACK, ONE_BY_ONE, ALL, NONE):
        for word in (key.letter, *(key.words if key in KEYS.values() else ())):
            assert f"`{word}`" in text, f"docs/reference/terminal.md lacks {word}"


def test_every_command_and_flag_is_documented() -> None:
    text, context = page("commands.md"), click.Context(program)
    for name in COMMANDS:
        command = program.get_command(context, name)
        assert command is not None
        commands = (
            {name: command}
            if not isinstance(command, click.Group)
            else {f"{name} {inner}": below for inner, below in command.commands.items()}
        )
        for full, one in commands.items():
            assert f"## `signoff {full}" in text, f"docs/reference/commands.md lacks {full}"
            for parameter in one.params:
                for flag in parameter.opts if isinstance(parameter, click.Option) else ():
                    if flag not in ("-h", "--help"):
                        assert f"`{flag}" in text, f"docs/reference/commands.md lacks {full} {flag}"


def test_every_module_has_a_decision_record_index() -> None:
    records = sorted(file.name for file in (DOCS / "adr").glob("*.md"))
    assert [int(name[:4]) for name in records] == list(range(1, len(records) + 1))
