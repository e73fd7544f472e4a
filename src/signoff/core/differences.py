"""What tells requests with the same title apart, for a list that has one line for each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from signoff.core.redact import redact
from signoff.core.request import ApprovalRequest
from signoff.core.visible_text import visible
from signoff.errors import CannotCanonicalise

_BEFORE, _AFTER = 12, 48
"""Characters that are shown before and from the first one that differs."""
_LONGEST = 20_000
"""Of longer values only the length is compared: a list is drawn often."""
_MOST = 2
"""Arguments that are named."""


def differences(requests: Sequence[ApprovalRequest]) -> list[str]:
    """Say for each request, on one line that is safe to show, where its arguments differ from those of the others.

    Empty where they do not differ, or differ only in what is masked.
    """
    every = [_texts(one) for one in requests]
    names = [name for name in dict.fromkeys(name for texts in every for name in texts) if _differs(name, every)]
    found: list[list[str]] = [[] for _ in every]
    for name in names[:_MOST]:
        values = [texts.get(name) for texts in every]
        same = _same([one for one in values if one is not None])
        for said, value in zip(found, values, strict=True):
            said.append(f"no {visible(name)}" if value is None else f"{visible(name)}: {_around(value, same)}")
    return [", ".join(said) for said in found]


def _same(values: Sequence[str]) -> int:
    """Return how many characters all values begin with."""
    first, last = min(values), max(values)
    return next(
        (at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), min(len(first), len(last))
    )


def _differs(name: str, every: Sequence[Mapping[str, str]]) -> bool:
    return len({texts.get(name) for texts in every}) > 1


def _texts(request: ApprovalRequest) -> dict[str, str]:
    long = {name: one for name, value in request.effective_args.items() if (one := len(_text(value))) > _LONGEST}
    short = {name: value for name, value in request.effective_args.items() if name not in long}
    try:
        shown = redact(short, secrets=request.secrets).args
    except (ValueError, CannotCanonicalise):
        return {}
    return {name: _text(value) for name, value in shown.items()} | {
        name: f"{length:,} characters" for name, length in long.items()
    }


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _around(value: str, same: int) -> str:
    """Return the part of a text around the first character that differs."""
    start = max(0, min(same, len(value)) - _BEFORE)
    start = 0 if start < _BEFORE else start
    end = max(start + _BEFORE, same) + _AFTER
    return f"{'…' if start else ''}{visible(value[start:end])}{'…' if end < len(value) else ''}"
