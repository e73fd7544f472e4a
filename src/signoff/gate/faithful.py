"""Whether the JSON form of an argument says all there is to it, so that what is approved cannot differ unseen."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic_ai import RunContext
from pydantic_ai.toolsets import ToolsetTool

from signoff.core.call import Call

_LEAVES = (str, int, float, bool, bytes, type(None), Decimal, datetime, date, time, timedelta, UUID, PurePath)


def unfaithful(ctx: RunContext[Any], tool: ToolsetTool[Any], args: Mapping[str, Any], call: Call) -> tuple[str, ...]:
    """Arguments that are something else when their JSON form is read back: a field is left out, a secret nested."""
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
    """Equal in every part, asking no type but plain ones: an `__eq__` may leave out just what is hidden."""
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


_PLAIN_MODULES = frozenset({"builtins", "decimal", "datetime", "uuid", "pathlib", "pathlib._local"})
