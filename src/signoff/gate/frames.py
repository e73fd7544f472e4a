"""What a nested run inherits from the call it was started in: the worker chain, the call path, and who is asked."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from signoff.core.request import ApprovalRequest
from signoff.core.run import KeptRun
from signoff.errors import WrongUse
from signoff.gate.keeper import Keeper
from signoff.ports import ApprovalUI, Passed, passed

if TYPE_CHECKING:
    from signoff.gate.nest import Nest


class Frame(NamedTuple):
    """A gated call that is running, seen from the runs started inside it."""

    workers: tuple[str, ...] = ()
    path: str = ""
    approver: ApprovalUI | None = None
    keeper: Keeper | None = None
    """Keeps the outermost run, which all of this belongs to."""
    key: Callable[[], str] | None = None
    """Makes the key of the call that is running."""
    nest: Nest | None = None
    """The call, for the runs inside it."""


TOP = Frame()
Taken: TypeAlias = tuple[KeptRun, Sequence[ApprovalRequest]]
"""A kept run, and the requests it was taken up with."""
_frame: ContextVar[Frame] = ContextVar("signoff_frame", default=TOP)
_kept: ContextVar[list[Taken] | None] = ContextVar("signoff_kept", default=None)
_entering: ContextVar[tuple[Frame, bool] | None] = ContextVar("signoff_entering", default=None)
_approver: ContextVar[ApprovalUI | None] = ContextVar("signoff_approver", default=None)


def current_frame() -> Frame:
    """The innermost gated call around this code; `TOP` outside of any."""
    return _frame.get()


Entered: TypeAlias = tuple[Token[Frame], Token[Passed | None]]


def enter(frame: Frame, passing: Passed | None = None) -> Entered:
    """Runs started from here on belong to `frame`, until `leave`. Every call does this: two plain functions."""
    return _frame.set(frame), passed.set(passing)


def leave(tokens: Entered) -> None:
    """Undo `enter`."""
    _frame.reset(tokens[0])
    passed.reset(tokens[1])


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


@contextmanager
def keeping(run: KeptRun, requests: Sequence[ApprovalRequest] = ()) -> Generator[None]:
    """Within, the first gated run is this one, begun or taken up by whoever calls, with these requests."""
    token = _kept.set([(run, requests)])
    try:
        yield
    finally:
        _kept.reset(token)


def kept_run() -> Taken | None:
    """The run set by `keeping`, for whoever comes first: other runs beside it are runs of their own."""
    waiting = _kept.get()
    return waiting.pop() if waiting else None


@contextmanager
def entering(frame: Frame, *, ends_call: bool) -> Generator[None]:
    """Within, a run started by the call of `frame` pauses together with it, whatever its gate says about that.

    With `ends_call` the call does nothing more once that run is over.
    """
    token = _entering.set((frame, ends_call))
    try:
        yield
    finally:
        _entering.reset(token)


def entered() -> bool | None:
    """Whether the call around this code does nothing more after the run it starts; None where nobody said anything."""
    said = _entering.get()
    return said[1] if said is not None and said[0] is current_frame() else None


def idempotency_key() -> str:
    """For use inside a tool: a key for this very call, the same if it has to be made again after a crash.

    Hand it to whatever does the work (a payment service, a queue), which then does it once. For a call that was allowed
    without asking it is another one if the model has to be asked anew.
    """
    key = current_frame().key
    if key is None:
        raise WrongUse("there is no gated tool call around this code, so there is no key for it")
    return sha256(key().encode()).hexdigest()[:32]
