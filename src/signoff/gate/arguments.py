"""The arguments of a call: their JSON form, whether it is complete, and a person's edits of them."""

from __future__ import annotations

import dataclasses
import hmac
import inspect
import json
import marshal
import math
import secrets
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

from pydantic import BaseModel, SecretBytes, SecretStr, ValidationError
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.messages import ToolReturn
from pydantic_ai.toolsets import ToolsetTool
from pydantic_core import PydanticSerializationError, to_jsonable_python

from signoff.core.call import Call, Veiled
from signoff.core.canonical import canonical
from signoff.core.result_text import EDITED
from signoff.errors import EditRefused

PROCESS_KEY = secrets.token_bytes(32)
"""HMAC key that tells secrets apart without showing them, where no store has one."""

_MOST_BITS = 14_000
"""Python neither reads nor writes whole numbers of more than 4,300 digits."""

_TOO_LARGE = "a whole number of more than 4,300 digits"

# --- as JSON ---


def as_json(args: Mapping[str, Any], key: bytes = PROCESS_KEY) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the arguments as JSON values, and the names of those that have no JSON form."""
    if _is_json(args):
        return args, ()
    values: dict[str, Any] = {}
    unreadable: list[str] = []
    for name, value in args.items():
        values[name], kinds = _json_value(value, key)
        unreadable.extend(f"{name}: {kind}" for kind in kinds)
    return values, tuple(unreadable)


def _json_value(value: object, key: bytes) -> tuple[Any, list[str]]:
    """Return a JSON value, and the types in it that have no JSON form and are named instead."""
    found: list[str] = []
    if isinstance(value, SecretStr | SecretBytes):
        # A secret always prints as stars. The HMAC tells the approved secret from one that is swapped in for it.
        held = str(value.get_secret_value()).encode("utf-8", "surrogatepass")
        return Veiled(f"<secret {hmac.new(key, held, 'sha256').hexdigest()[:16]}>"), found
    if isinstance(value, Iterator):
        kind = type(cast("object", value)).__qualname__  # not read: that would exhaust it
        return f"<{kind}>", [kind]

    def named(part: object) -> str:
        found.append(_TOO_LARGE if isinstance(part, _HugeInteger) else type(part).__qualname__)
        return f"<{found[-1]}>"

    try:
        return to_jsonable_python(_ordered(value), inf_nan_mode="strings", fallback=named), found
    except (PydanticSerializationError, ValueError, RecursionError):
        return named(value), found


def _ordered(value: object) -> object:
    """Return sets as sorted lists, the same in every process: a call may be approved in one and run in another."""
    if isinstance(value, set | frozenset):
        members = cast("set[object]", value)
        return sorted(members, key=lambda one: json.dumps(to_jsonable_python(one, fallback=repr), sort_keys=True))
    if type(value) is list or type(value) is tuple:
        return [_ordered(item) for item in cast("list[object]", value)]
    if type(value) is dict:
        return {key: _ordered(item) for key, item in cast("dict[object, object]", value).items()}
    return _HugeInteger() if isinstance(value, int) and _is_huge(value) else value


class _HugeInteger:
    """Takes the place of a whole number with more digits than Python writes."""


def _is_huge(number: int) -> bool:
    return number.bit_length() > _MOST_BITS


def _is_json(value: object) -> bool:
    """Return whether an object or an array is already plain JSON."""
    kind = type(value)
    if kind is dict:
        for key in cast("dict[object, object]", value):
            if type(key) is not str:
                return False
        items = cast("dict[str, object]", value).values()
    elif kind is list:
        items = cast("list[object]", value)
    else:
        return False
    for item in items:
        kind = type(item)
        if kind is str or kind is bool or item is None or (kind is int and not _is_huge(cast("int", item))):
            continue
        if kind is float:
            if not math.isfinite(cast("float", item)):
                return False
        elif not _is_json(item):
            return False
    return True


def copied(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of arguments in JSON form that nobody else can change. Placeholders for secrets stay such."""
    try:
        return marshal.loads(marshal.dumps(cast("dict[str, Any]", args)))
    except ValueError:  # it contains a subclass of str
        copies = json.loads(json.dumps(args))
    return {name: Veiled(copies[name]) if isinstance(value, Veiled) else copies[name] for name, value in args.items()}


# --- whether the JSON form is complete ---

_LEAVES = (str, int, float, bool, bytes, type(None), Decimal, datetime, date, time, timedelta, UUID, PurePath)
_PLAIN_MODULES = frozenset({"builtins", "decimal", "datetime", "uuid", "pathlib", "pathlib._local"})


def unfaithful(ctx: RunContext[Any], tool: ToolsetTool[Any], args: Mapping[str, Any], call: Call) -> tuple[str, ...]:
    """Return the arguments that differ after a JSON round trip: a field is left out, or a secret is nested."""
    named = {one.partition(":")[0] for one in call.unreadable}
    rest = [
        name for name, value in args.items() if name not in named and not isinstance(value, SecretStr | SecretBytes)
    ]
    try:
        again = tool.args_validator.validate_json(json.dumps(call.args), context=ctx.validation_context)
        lost = [name for name in rest if not _same(args[name], again.get(name))]
    except Exception:  # whatever a validator raises, the value cannot be read back
        lost = rest
    return tuple(f"{name}: more than its JSON form says" for name in lost)


def _same(one: Any, other: Any) -> bool:
    """Compare every part, and trust `__eq__` of plain types only: another one may ignore just what is hidden."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Enum):
        return one is other
    if isinstance(one, BaseModel):
        parts = ("__dict__", "__pydantic_extra__", "__pydantic_private__")
        return all(_same(getattr(one, part, None), getattr(other, part, None)) for part in parts)
    if dataclasses.is_dataclass(one):
        names = [field.name for field in dataclasses.fields(one)]
        return all(_same(getattr(one, name, None), getattr(other, name, None)) for name in names)
    if isinstance(one, dict):
        mine, theirs = cast("dict[Any, Any]", one), cast("dict[Any, Any]", other)
        return mine.keys() == theirs.keys() and all(_same(mine[key], theirs[key]) for key in mine)
    if isinstance(one, list | tuple):
        mine, theirs = cast("list[Any]", one), cast("list[Any]", other)
        return len(mine) == len(theirs) and all(map(_same, mine, theirs))
    if isinstance(one, set | frozenset):
        return all(type(item) in _LEAVES for item in cast("set[Any]", one)) and bool(one == other)
    return isinstance(one, _LEAVES) and type(one).__module__ in _PLAIN_MODULES and bool(one == other)


# --- a person's edits ---


async def validated(
    ctx: RunContext[Any], tool: ToolsetTool[Any], args: Mapping[str, Any], *, by_person: bool = True
) -> dict[str, Any]:
    """Return the arguments as the tool would get them. Raises `EditRefused` with every problem found.

    A person's arguments are checked more strictly than a model's, which PydanticAI has already validated.
    """
    try:
        # As JSON, because a model's arguments arrive like that: a date is a string, a tuple a list.
        values = tool.args_validator.validate_json(json.dumps(args), context=ctx.validation_context)
    except ValidationError as error:
        raise EditRefused(tuple(_problem(detail) for detail in error.errors(include_url=False))) from error
    except (TypeError, ValueError) as error:
        raise EditRefused((f"the arguments are not valid JSON: {error}",)) from error
    if not by_person:
        return values
    if problems := tuple(_misfits(tool, args)):
        raise EditRefused(problems)
    if tool.args_validator_func is not None:
        try:
            result = tool.args_validator_func(ctx, **values)
            if inspect.isawaitable(result):
                await result
        except (ModelRetry, ToolFailed) as error:
            raise EditRefused((error.message,)) from error
        except (ApprovalRequired, CallDeferred):
            pass  # the arguments are fine; the validator wants approval, which is being asked for
    return values


def with_notice(result: Any, args: Mapping[str, Any]) -> Any:
    """Return a tool's result with a notice for the model that a person changed the arguments."""
    notice = f"{EDITED}{canonical(args)}"
    if isinstance(result, ToolReturn):
        whole = cast("ToolReturn[Any]", result)
        return dataclasses.replace(whole, return_value=with_notice(whole.return_value, args))
    if isinstance(result, str):
        return f"[{notice}]\n{result}"
    return {"notice": notice, "result": result}


def _problem(detail: Any) -> str:
    where = ".".join(str(part) for part in detail["loc"])
    return f"{where}: {detail['msg']}" if where else str(detail["msg"])


def _misfits(tool: ToolsetTool[Any], args: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the tool's validator may accept: Pydantic drops unknown names, and an MCP tool checks nothing here."""
    schema = tool.tool_def.parameters_json_schema
    if not schema.get("additionalProperties", False):
        for name in sorted(set(args) - set(schema.get("properties", {}))):
            yield f"{name}: {tool.tool_def.name} takes no such argument"
    for name in sorted(set(schema.get("required", ())) - set(args)):
        yield f"{name}: {tool.tool_def.name} needs this argument"
