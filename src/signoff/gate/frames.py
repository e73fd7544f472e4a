"""What a nested run inherits from the call it was started in: the worker chain, the call path, and who is asked."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import NamedTuple

from signoff.ports import ApprovalUI


class Frame(NamedTuple):
    """A gated call that is running, seen from the runs started inside it."""

    workers: tuple[str, ...] = ()
    path: str = ""
    approver: ApprovalUI | None = None


TOP = Frame()
_frame: ContextVar[Frame] = ContextVar("signoff_frame", default=TOP)
_approver: ContextVar[ApprovalUI | None] = ContextVar("signoff_approver", default=None)


def current_frame() -> Frame:
    """The innermost gated call around this code; `TOP` outside of any."""
    return _frame.get()


def enter(frame: Frame) -> Token[Frame]:
    """Runs started from here on belong to `frame`, until `leave`. Every call does this: two plain functions."""
    return _frame.set(frame)


def leave(token: Token[Frame]) -> None:
    """Undo `enter`."""
    _frame.reset(token)


@contextmanager
def asking(approver: ApprovalUI) -> Generator[None]:
    """Within, every gated run asks `approver`, whatever its own capability says. Reaches nested runs."""
    token = _approver.set(approver)
    try:
        yield
    finally:
        _approver.reset(token)


def asked_approver() -> ApprovalUI | None:
    """The approver set by `asking`, if any."""
    return _approver.get()
