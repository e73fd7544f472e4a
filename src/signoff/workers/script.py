"""A model that follows a script: for demos, examples and tests that need no provider.

A script is a YAML list of turns. Each turn says something, calls tools, or both:

```yaml
- calls:
    - {tool: read_file, args: {path: notes.txt}}
- say: "The notes hold: {{last}}"
```

`{{last}}` stands for the results of the tools called in the turn before, one below the other; `{{last.0}}` for the
first of them. It may stand in `say` and in any text of `args`. The model keeps no position of its own: the turn is the
number of answers the conversation holds already, so one instance serves many runs at once, and a resumed run goes on
where it paused.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.usage import RequestUsage

from signoff.errors import Place, PolicyError, ScriptEnded, ScriptError
from signoff.policy.composer import read_document
from signoff.policy.document import Document, document_of

_REFERENCE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_LAST = re.compile(r"last(?:\.(\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """One tool call of a turn."""

    tool: str
    args: Mapping[str, Any]
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the model."""

    say: str | None = None
    calls: tuple[ScriptedCall, ...] = ()


class ScriptedModel(FunctionModel):
    """A PydanticAI model that plays a list of turns."""

    def __init__(self, turns: Sequence[Turn | Mapping[str, Any]], *, file: str = "the script") -> None:
        self.file = file
        ready = [turn for turn in turns if isinstance(turn, Turn)]
        self.turns = tuple(ready) if len(ready) == len(turns) else parse_script(document_of(turns, file=file))
        super().__init__(self._answer, stream_function=self._stream, model_name=f"script:{file}")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> ScriptedModel:
        """Read a script; a wrong one raises `ScriptError` with the place and the fix."""
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise ScriptError("there is no such file", place=Place(str(path))) from error
        except (OSError, UnicodeDecodeError) as error:
            raise ScriptError(f"cannot be read: {error}", place=Place(str(path))) from error
        try:
            document = read_document(text, file=str(path))
        except PolicyError as error:
            raise ScriptError(error.what, place=error.place, fix=error.fix) from error
        return cls(parse_script(document), file=str(path))

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn, results, number = self._turn(messages)
        parts: list[TextPart | ToolCallPart] = []
        if turn.say is not None:
            parts.append(TextPart(_filled(turn.say, results)))
        for index, call in enumerate(turn.calls):
            parts.append(ToolCallPart(call.tool, _filled(call.args, results), tool_call_id=_id(call, number, index)))
        # Without a figure of ours, the base class would count words over the whole history at every turn.
        return ModelResponse(parts=parts, usage=RequestUsage(input_tokens=0, output_tokens=0))

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        turn, results, number = self._turn(messages)
        if turn.say is not None:
            for word in re.findall(r"\S+\s*|\s+", _filled(turn.say, results)) or [""]:  # a stream is never empty
                yield word
        for index, call in enumerate(turn.calls):
            yield {
                index: DeltaToolCall(
                    name=call.tool,
                    json_args=json.dumps(_filled(call.args, results)),
                    tool_call_id=_id(call, number, index),
                )
            }

    def _turn(self, messages: Sequence[ModelMessage]) -> tuple[Turn, list[str], int]:
        number = sum(isinstance(message, ModelResponse) for message in messages)
        if number >= len(self.turns):
            raise ScriptEnded(f"{self.file}: {self._ended(number)}")
        return self.turns[number], _results(messages), number

    def _ended(self, number: int) -> str:
        count = f"{len(self.turns)} turn{'s' if len(self.turns) != 1 else ''}"
        told = f"the agent asks for turn {number + 1}, but the script holds {count}.\n  "
        if self.turns[-1].calls:
            return f"{told}End the script with a turn that only says something: - say: Done."
        return f"{told}It is all said. Add turns to the script, or use a model: --model anthropic:claude-sonnet-5"


def parse_script(document: Document) -> tuple[Turn, ...]:
    """Turns from a parsed file; raises `ScriptError` with the place of what is wrong."""
    turns = document.value
    if not isinstance(turns, list) or not turns:
        raise ScriptError(
            "a script is a list of turns",
            place=document.place_of(()),
            fix='for example:\n    - calls: [{tool: read_file, args: {path: a.txt}}]\n    - say: "It holds {{last}}"',
        )
    return tuple(_parse_turn(document, (index,), turn) for index, turn in enumerate(cast("list[Any]", turns)))


def _parse_turn(document: Document, path: tuple[str | int, ...], turn: Any) -> Turn:
    _check_keys(document, path, turn, {"say", "calls"}, "a turn")
    if not turn:
        raise ScriptError("a turn needs `say` or `calls`", place=document.place_of(path))
    say = turn.get("say")
    if say is not None and not isinstance(say, str):
        raise ScriptError("`say` is not a text; put it in quotes", place=document.place_of((*path, "say")))
    _check_references(document, (*path, "say"), say)
    calls = turn.get("calls", [])
    if not isinstance(calls, list):
        raise ScriptError("`calls` is not a list", place=document.place_of((*path, "calls")))
    parsed = [_parse_call(document, (*path, "calls", n), one) for n, one in enumerate(cast("list[Any]", calls))]
    if say is None and not parsed:
        raise ScriptError("a turn needs `say`, or at least one call", place=document.place_of(path))
    return Turn(say=say, calls=tuple(parsed))


def _parse_call(document: Document, path: tuple[str | int, ...], call: Any) -> ScriptedCall:
    _check_keys(document, path, call, {"tool", "args", "id"}, "a call")
    tool, args, call_id = call.get("tool"), call.get("args", {}), call.get("id")
    if not isinstance(tool, str) or not tool:
        raise ScriptError("a call needs `tool`, the tool's name", place=document.place_of(path))
    if not isinstance(args, dict):
        raise ScriptError("`args` is not a mapping of names to values", place=document.place_of((*path, "args")))
    if call_id is not None and not isinstance(call_id, str):
        raise ScriptError("`id` is not a text", place=document.place_of((*path, "id")))
    _check_references(document, (*path, "args"), cast("dict[str, Any]", args))
    return ScriptedCall(tool=tool, args=cast("dict[str, Any]", args), id=call_id)


def _check_keys(document: Document, path: tuple[str | int, ...], value: Any, known: set[str], what: str) -> None:
    if not isinstance(value, dict):
        raise ScriptError(f"{what} is a mapping with {_listed(known)}", place=document.place_of(path))
    for key in cast("dict[str, Any]", value):
        if key not in known:
            raise ScriptError(
                f"{what} has no key {key!r}", place=document.place_of((*path, key)), fix=f"it takes {_listed(known)}"
            )


def _listed(names: set[str]) -> str:
    return " and ".join(f"`{name}`" for name in sorted(names))


def _check_references(document: Document, path: tuple[str | int, ...], value: Any) -> None:
    for text in _texts(value):
        for name in _REFERENCE.findall(text):
            if not _LAST.fullmatch(name):
                raise ScriptError(
                    f"{{{{{name}}}}} refers to nothing",
                    place=document.place_of(path),
                    fix="only {{last}} and {{last.0}}, {{last.1}} … are known: the results of the turn before",
                )


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in cast("dict[str, Any]", value).values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in cast("list[Any]", value) for text in _texts(item)]
    return []


def _results(messages: Sequence[ModelMessage]) -> list[str]:
    last = messages[-1] if messages else None
    if not isinstance(last, ModelRequest):
        return []
    return [part.model_response_str() for part in last.parts if isinstance(part, ToolReturnPart)]


def _filled(value: Any, results: Sequence[str]) -> Any:
    if isinstance(value, str):
        return _REFERENCE.sub(lambda found: _result(found.group(1), results), value)
    if isinstance(value, dict):
        return {key: _filled(item, results) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_filled(item, results) for item in cast("list[Any]", value)]
    return value


def _result(name: str, results: Sequence[str]) -> str:
    found = _LAST.fullmatch(name)
    assert found is not None, "references are checked when a script is read"
    if found.group(1) is None:
        return "\n".join(results)
    number = int(found.group(1))
    if number >= len(results):
        raise ScriptEnded(f"{{{{{name}}}}}: the turn before had {len(results)} results")
    return results[number]


def _id(call: ScriptedCall, turn: int, index: int) -> str:
    return call.id or f"call-{turn + 1}-{index + 1}"
