"""A model that follows a script, for demos, examples and tests that need no provider.

A script is a YAML list of turns. Each turn says something, calls tools, or both:

```yaml
- calls:
    - {tool: read_file, args: {path: notes.txt}}
- say: "The notes hold: {{last}}"
```

`{{last}}` stands for the results of the tools called in the turn before, one below the other; `{{last.0}}` for the
first of them. Both can be used in `say` and in any string of `args`. The model keeps no position of its own: the turn
is the number of answers already in the conversation, so one instance serves many runs at once, and a resumed run
continues where it paused.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.usage import RequestUsage

from signoff.config.script_file import LAST, REFERENCE, ScriptedCall, Turn, parse_script
from signoff.errors import Place, PolicyError, ScriptEnded, ScriptError
from signoff.policy.composer import read_document
from signoff.policy.document import document_of


class ScriptedModel(FunctionModel):
    """A PydanticAI model that plays a list of turns."""

    def __init__(self, turns: Sequence[Turn | Mapping[str, Any]], *, file: str = "the script") -> None:
        self.file = file
        ready = [turn for turn in turns if isinstance(turn, Turn)]
        self.turns = tuple(ready) if len(ready) == len(turns) else parse_script(document_of(turns, file=file))
        super().__init__(self._answer, stream_function=self._stream, model_name=f"script:{file}")

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> ScriptedModel:
        """Read a script. Raises `ScriptError` with the place and the fix if it is wrong."""
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            at = "" if file.is_absolute() else f" in {Path.cwd()}"
            raise ScriptError(
                f"the model's script is missing: there is no file of this name{at}",
                place=Place(str(path)),
                fix="create it, or name another script or model",
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
            raise ScriptError(
                f"the model's script cannot be read: {why}",
                place=Place(str(path)),
                fix="make it a text in UTF-8 that you may read, or name another script or model",
            ) from error
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
        # Without usage given here, the base class would count words over the whole history at every turn.
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
        return f"{told}The script has no more turns. Add turns, or use a model: --model anthropic:claude-sonnet-5"


def _results(messages: Sequence[ModelMessage]) -> list[str]:
    last = messages[-1] if messages else None
    if not isinstance(last, ModelRequest):
        return []
    return [part.model_response_str() for part in last.parts if isinstance(part, ToolReturnPart)]


def _filled(value: Any, results: Sequence[str]) -> Any:
    if isinstance(value, str):
        return REFERENCE.sub(lambda found: _result(found.group(1), results), value)
    if isinstance(value, dict):
        return {key: _filled(item, results) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_filled(item, results) for item in cast("list[Any]", value)]
    return value


def _result(name: str, results: Sequence[str]) -> str:
    found = LAST.fullmatch(name)
    assert found is not None, "references are checked when a script is read"
    if found.group(1) is None:
        return "\n".join(results)
    number = int(found.group(1))
    if number >= len(results):
        raise ScriptEnded(f"{{{{{name}}}}}: the turn before had {len(results)} results")
    return results[number]


def _id(call: ScriptedCall, turn: int, index: int) -> str:
    return call.id or f"call-{turn + 1}-{index + 1}"
