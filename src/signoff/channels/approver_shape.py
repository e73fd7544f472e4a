"""What an approver has to look like: an object with `choose`, or a function of the request."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, get_type_hints

from signoff.core.decision import ApprovalDecision
from signoff.core.mode import ApprovalMode
from signoff.core.request import ApprovalRequest

_OURS = {one.__name__: one for one in (ApprovalRequest, ApprovalDecision)}


def approver_problem(approver: object) -> str | None:
    """Return what is wrong with an approver, or None. A signature that cannot be read is taken as it is."""
    if isinstance(approver, type):
        return f"it is a class; give an object of it: {approver.__name__}(…)"
    choose, choose_all = getattr(approver, "choose", None), getattr(approver, "choose_all", None)
    if callable(choose):
        several = _method_problem("choose_all", "requests", choose_all) if callable(choose_all) else None
        return _method_problem("choose", "request", choose) or several
    if not callable(approver):
        name = type(approver).__name__
        article = "an" if name[0] in "aeiou" else "a"
        return f"it must be an object with `choose`, or a function of the request, not {article} {name}"
    takes = _signature(approver)
    if takes is None or _fits(takes, **_extra(takes, ApprovalMode.INTERACTIVE)):
        return _foreign(approver)
    return f"it must be a function of the request, as in `def ask(request)`; it takes {takes}"


def as_function(approver: Any, mode: ApprovalMode) -> Callable[[ApprovalRequest], Any]:
    """Return the function that answers a request. A function that requires `mode` gets it, as `choose` does."""
    if callable(choose := getattr(approver, "choose", None)):
        return partial(choose, mode=mode)
    takes = _signature(approver)
    extra = _extra(takes, mode) if takes is not None else {}
    return partial(approver, **extra) if extra else approver


def _method_problem(name: str, what: str, method: Callable[..., Any]) -> str | None:
    takes = _signature(method)
    if takes is None or _fits(takes, mode=ApprovalMode.INTERACTIVE):
        return _foreign(method)
    return f"`{name}` takes {takes}; write `def {name}(self, {what}, *, mode)`"


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # a builtin
        return None


def _fits(takes: inspect.Signature, **extra: object) -> bool:
    try:
        takes.bind(None, **extra)
    except TypeError:
        return False
    return True


def _extra(takes: inspect.Signature, mode: ApprovalMode) -> dict[str, ApprovalMode]:
    asked = takes.parameters.get("mode")
    by_name = asked is not None and asked.kind in (asked.KEYWORD_ONLY, asked.POSITIONAL_OR_KEYWORD)
    is_first = next(iter(takes.parameters), "") == "mode"
    return {"mode": mode} if asked is not None and by_name and asked.default is asked.empty and not is_first else {}


def _foreign(function: Callable[..., Any]) -> str | None:
    """Return a problem if a function is annotated with a class of another library that has the name of one of ours."""
    try:
        hints = get_type_hints(function).values()
    except Exception:  # a name that only a type checker knows
        return None
    for one in hints:
        if isinstance(one, type) and one is not _OURS.get(one.__name__, one):
            return f"it is written for the {one.__name__} of {one.__module__}; import {one.__name__} from signoff"
    return None
