"""Parse a call from JSON: `{"tool": …, "args": {…}}`, with `toolset`, `worker`, `label` or `labels` if known."""

from __future__ import annotations

from typing import Any, cast

from signoff.core.call import Call
from signoff.core.strict_json import read_json
from signoff.policy.operators import kind_of
from signoff.policy.phrases import did_you_mean, shown

_KEYS = frozenset({"tool", "toolset", "worker", "args", "label", "labels"})


class BadRecord(ValueError):
    """JSON that is not a call; the message says why, `fix` what to write."""

    def __init__(self, what: str, fix: str = "") -> None:
        self.what = what
        self.fix = fix
        super().__init__(what)


def read_call(text: bytes) -> Call:
    """Parse a call from a JSON text. Raises `BadRecord`."""
    try:
        record: Any = read_json(text.decode())
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"this is not JSON: {' '.join(str(error).split())}") from error
    if not isinstance(record, dict):
        raise BadRecord(f"this should be a JSON object, not {kind_of(record)}")
    fields = cast("dict[str, Any]", record)
    if not fields.keys() <= _KEYS:
        key = next(key for key in fields if key not in _KEYS)
        raise BadRecord(f"unknown key {shown(key)}", did_you_mean(key, _KEYS))
    tool, args = fields.get("tool"), fields.get("args", {})
    if not isinstance(tool, str) or not tool:
        raise BadRecord(f"`tool` should be the name of a tool, not {kind_of(tool)}")
    if not isinstance(args, dict):
        raise BadRecord(f"`args` should be an object, not {kind_of(args)}")
    arguments = cast("dict[str, Any]", args)
    if len(fields) <= 2 and fields.keys() <= {"tool", "args"}:
        return Call(tool=tool, args=arguments)
    toolset = fields.get("toolset")
    if toolset is not None and not isinstance(toolset, str):
        raise BadRecord(f"`toolset` should be a text, not {kind_of(toolset)}")
    return Call(
        tool=tool,
        args=arguments,
        toolset=toolset,
        worker=_texts(fields, "worker"),
        labels=frozenset((*_texts(fields, "label"), *_texts(fields, "labels"))),
    )


def _texts(fields: dict[str, Any], key: str) -> tuple[str, ...]:
    """Return a text or a list of texts as a tuple."""
    value = fields.get(key)
    if value is None:
        return ()
    texts = cast("list[Any]", value) if isinstance(value, list) else [value]
    for text in texts:
        if not isinstance(text, str):
            raise BadRecord(f"`{key}` should be a text or a list of texts, not {kind_of(text)}")
    return tuple(texts)
