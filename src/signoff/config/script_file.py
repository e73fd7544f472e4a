"""Script files of the scripted model: what it says and calls, turn by turn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from signoff.errors import PolicyError, ScriptError
from signoff.policy.document import Document
from signoff.policy.format import ANY_MAPPING, Format, MappingFormat
from signoff.policy.operators import kind_of
from signoff.policy.placed_value import ConfigValue

REFERENCE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
LAST = re.compile(r"last(?:\.(\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """One tool call of a turn."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One response of the model."""

    say: str | None = None
    calls: tuple[ScriptedCall, ...] = ()


def parse_script(document: Document) -> tuple[Turn, ...]:
    """Parse the turns of a script; raises `ScriptError` with the position of the error."""
    try:
        return SCRIPT.read(ConfigValue.top(document))
    except PolicyError as error:
        raise ScriptError(error.what, place=error.place, fix=error.fix) from error


def _read_script(spot: ConfigValue) -> tuple[Turn, ...]:
    if not spot.value or not isinstance(spot.value, list):
        example = '- calls: [{tool: read_file, args: {path: a.txt}}]\n    - say: "It holds {{last}}"'
        raise spot.wrong("a script is a list of turns", f"for example:\n    {example}")
    return tuple(_read_turn(item) for item in spot.items("a list of turns"))


def _read_turn(spot: ConfigValue) -> Turn:
    turn = Turn(**_TURN.read(spot))
    if turn.say is None and not turn.calls:
        raise spot.wrong("a turn needs `say`, or at least one call", 'write it as in {say: "Done."}')
    return turn


def _read_calls(spot: ConfigValue) -> tuple[ScriptedCall, ...]:
    items = spot.items("a list of calls") if spot.value != [] else ()
    return tuple(ScriptedCall(**_CALL.read(item)) for item in items)


def _read_text(spot: ConfigValue) -> str | None:
    """Read a text that may be empty or null."""
    if spot.value is not None and not isinstance(spot.value, str):
        raise spot.wrong(f"this should be a text, not {kind_of(spot.value)}", "write it in quotes")
    return spot.value


def _read_tool(spot: ConfigValue) -> str:
    if not (tool := _read_text(spot)):
        raise spot.wrong(*_NO_TOOL)
    return tool


def _check_references(spot: ConfigValue) -> None:
    for text in _texts(spot.value):
        for name in REFERENCE.findall(text):
            if not LAST.fullmatch(name):
                fix = "only {{last}} and {{last.0}}, {{last.1}} … are known: the results of the previous turn"
                raise spot.wrong(f"{{{{{name}}}}} refers to nothing", fix)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in cast("dict[str, Any]", value).values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in cast("list[Any]", value) for text in _texts(item)]
    return []


def _referring(one: Format[Any]) -> Format[Any]:
    """The same format, with `{{last}}` allowed in every text."""

    def read(spot: ConfigValue) -> Any:
        found = one.read(spot)
        _check_references(spot)
        return found

    return one.by(read)


_NO_TOOL = ("a call needs `tool`, the tool's name", "write it as in {tool: read_file, args: {path: a.txt}}")
_TEXT = Format(_read_text, {"type": ["string", "null"]})
_CALL = MappingFormat(
    {
        "tool": Format(_read_tool, {"type": "string", "minLength": 1}).about("The tool's name."),
        "args": _referring(ANY_MAPPING).about("Its arguments by name."),
        "id": _TEXT.about("The call's id. Default: call-TURN-NUMBER."),
    },
    what="a call: a mapping such as {tool: read_file}",
    required={"tool": _NO_TOOL},
)
_TURN = MappingFormat(
    {
        "say": _referring(_TEXT).about("A text."),
        "calls": Format(_read_calls, {"type": "array", "items": _CALL}).about("Tool calls, in order."),
    },
    what="a turn: a mapping with `say` and `calls`",
    description="One response of the model. {{last}} is replaced by the results of the previous turn, {{last.0}} by "
    "the first of them.",
    schema={
        "minProperties": 1,
        "anyOf": [
            {"required": ["say"], "properties": {"say": {"type": "string"}}},
            {"required": ["calls"], "properties": {"calls": {"type": "array", "minItems": 1}}},
        ],
    },
)
SCRIPT = Format(
    _read_script,
    {
        "description": "The responses of a scripted model (--model script:FILE), turn by turn.",
        "type": "array",
        "minItems": 1,
        "items": _TURN,
    },
)
