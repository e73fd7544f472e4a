"""The reference is complete: every option, flag, key, event and error is on its page."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click

from signoff import Signoff, errors
from signoff.channels.answer_keys import ALL, BACK, KEYS, NONE, ONE_BY_ONE
from signoff.cli.main import COMMANDS, program
from signoff.core.event import CallStep
from signoff.core.record import KINDS
from signoff.gate.capability import UnknownToolWarning

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


BOUND = re.compile(
    r"^\| (?P<what>[^|]+) \| (?P<most>[^|]+) \| [^|]+ \| `(?P<module>signoff[\w.]+)\.(?P<name>[A-Z_]+)` \|$",
    re.MULTILINE,
)


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def test_every_error_is_drawn_and_says_when_it_is_raised() -> None:
    names = [name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)]
    for name in names:
        assert f"`{name}`" in page("reference/errors.md"), f"docs/reference/errors.md lacks {name}"
        assert name in (errors.__doc__ or ""), f"the tree in errors.py lacks {name}"
    assert f"`{UnknownToolWarning.__name__}`" in page("reference/errors.md")


def test_every_bound_is_what_its_constant_says() -> None:
    rows = [row for row in page("reference/bounds.md").splitlines() if row.startswith("| ") and "| --- |" not in row]
    bounds = list(BOUND.finditer(page("reference/bounds.md")))
    assert len(bounds) == sum("constant |" not in row for row in rows) > 30
    for bound in bounds:
        value = getattr(import_module(bound["module"]), bound["name"])
        number, unit = re.match(r"([\d,]+) ?(MiB|KiB)?", bound["most"]).groups()  # pyright: ignore[reportOptionalMemberAccess]
        said = int(number.replace(",", "")) * {"MiB": 1024 * 1024, "KiB": 1024}.get(unit, 1)
        assert said == value, f"docs/reference/bounds.md: {bound['what']}: {value:,}"


def test_every_option_of_the_capability_is_documented() -> None:
    inherited = {"id", "description", "defer_loading"}
    for field in dataclasses.fields(Signoff):
        if field.init and not field.name.startswith("_") and field.name not in inherited:
            assert f"`{field.name}`" in page("explanation/gate.md"), f"docs/explanation/gate.md lacks {field.name}"


def test_every_kind_of_event_on_the_record_is_known() -> None:
    """`KINDS` is what is written to records: the steps of a call, and whatever the code gives a name of its own."""
    written = {str(step) for step in CallStep} - {CallStep.APPROVED}  # with a request, which is voted on and claimed
    for file in (ROOT / "src" / "signoff").rglob("*.py"):
        if re.search(r"EventDraft|journal|_record\(", text := file.read_text("utf-8")):
            for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
                written |= set(_kinds(call))
    assert written == set(KINDS)


def _kinds(call: ast.Call) -> Iterator[str]:
    """The kinds that a call of the journal, or of `EventDraft`, names."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    named = [word.value for word in call.keywords if word.arg == "kind"] if name == "EventDraft" else []
    receiver = getattr(call.func, "value", None)
    if getattr(receiver, "attr", getattr(receiver, "id", "")) == "journal" or name in ("about", "_record"):
        named += call.args[:2]
    yield from (one.value for one in named if isinstance(one, ast.Constant) and isinstance(one.value, str))


def test_every_key_is_documented() -> None:
    text = page("reference/terminal.md")
    for key in (*KEYS.values(), BACK, ONE_BY_ONE, ALL, NONE):
        for word in (key.letter, *(key.words if key in KEYS.values() else ())):
            assert f"`{word}`" in text, f"docs/reference/terminal.md lacks {word}"


def test_every_command_and_flag_is_documented() -> None:
    text, context = page("reference/commands.md"), click.Context(program, **program.context_settings)
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


def test_decisions_are_numbered_without_gaps() -> None:
    records = sorted(file.name for file in (DOCS / "adr").glob("0*.md"))
    assert [int(name[:4]) for name in records] == list(range(1, len(records) + 1))
