"""The saved answer of a nested run, as text, for when its call is made again after a pause or a crash."""

from __future__ import annotations

import json
from typing import Any, cast, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_ai import NativeOutput, PromptedOutput, TextOutput, ToolOutput
from pydantic_ai.tools import DeferredToolRequests
from pydantic_core import PydanticSerializationError, to_json

from signoff.errors import RunError, WrongUse


class DoesNotFit(WrongUse, RunError):
    """An agent's output type has changed since. This ends no run: each can be resumed with the former type."""


def memo_of(agent: Any, output: object) -> str | None:
    """Return an output as it is saved; None if it has no JSON form that can be converted back."""
    try:
        value = json.loads(to_json(output))
    except (PydanticSerializationError, ValueError):
        return None
    if type(output) in (str, int, float, bool, type(None)):
        return json.dumps({"kind": None, "output": value, "declared": _is_declared(agent, output)})
    for number, kind in enumerate(_kinds(agent)):
        if _leads_back(kind, value, output):
            return json.dumps({"kind": number, "output": value})
    if type(output) in (dict, list) and value == output:
        return json.dumps({"kind": None, "output": value})
    return None


def output_of(agent: Any, memo: str) -> Any:
    """Return the output of a memo. Raises `DoesNotFit` if the agent's output type no longer accepts it."""
    kept = json.loads(memo)
    if kept["kind"] is None:
        if kept.get("declared") and not _is_declared(agent, kept["output"]):
            raise _does_not_fit(agent)
        return kept["output"]
    try:
        return _validated(_kinds(agent)[kept["kind"]], kept["output"])
    except (IndexError, ValidationError, PydanticUserError) as error:
        raise _does_not_fit(agent) from error


def _does_not_fit(agent: Any) -> DoesNotFit:
    name = getattr(agent, "name", None) or "an agent"
    return DoesNotFit(
        f"{name} answered before this run was resumed, and its answer no longer fits its output type.\n"
        "  Resume it with the output type it had, or end it: signoff cancel RUN"
    )


def _is_declared(agent: Any, plain: object) -> bool:
    """Return whether an agent's output type accepts a string, a number or None. A run may have a type of its own."""
    return any(_leads_back(kind, plain, plain) for kind in _flat(getattr(agent, "output_type", None)))


def _leads_back(kind: Any, value: object, output: object) -> bool:
    try:
        back = _validated(kind, value)
    except (ValidationError, PydanticUserError):
        return False
    return type(back) is type(output) and back == output


def _validated(kind: Any, value: object) -> Any:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    return adapter.validate_python(value)


def _kinds(agent: Any) -> list[Any]:
    """Return the types an agent may answer with besides text, in the order of its output type."""
    return [kind for kind in _flat(getattr(agent, "output_type", None)) if kind is not str]


def _flat(kind: Any) -> list[Any]:
    if isinstance(kind, list | tuple):
        return [one for part in cast("list[Any]", kind) for one in _flat(part)]
    if isinstance(kind, ToolOutput | NativeOutput | PromptedOutput | TextOutput):
        marked = cast("Any", kind)
        return _flat(getattr(marked, "outputs", None) or getattr(marked, "output", None) or marked.output_function)
    if isinstance(kind, type) or get_origin(kind) is not None:
        return [] if kind is DeferredToolRequests else [kind]
    try:
        return _flat(get_type_hints(kind).get("return")) if callable(kind) else []
    except (NameError, TypeError):  # a function whose annotations cannot be resolved
        return []
