"""Any approver as a channel: what is shown to it is asked there, and what it says goes to the desk.

```python
UIChannel(terminal_approver(answerer=ana), name="terminal")
```
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from signoff.channels.turns import Outcome, Turns
from signoff.core.card import card_for
from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.inbox import agreed
from signoff.core.lifecycle import settled_text
from signoff.core.mode import ApprovalMode
from signoff.core.moment import error_text
from signoff.core.notice import Asked, Notice, RunResult, Together
from signoff.core.people import Answerer
from signoff.core.redact import Redactor
from signoff.core.request import ApprovalRequest, State
from signoff.core.safe import kept_text, redacted_text, safe_text
from signoff.core.visible import visible
from signoff.errors import (
    AlreadySettled,
    ChannelFailed,
    EditRefused,
    NobodyHere,
    NotEntitled,
    SignoffError,
    UnknownRequest,
    WrongUse,
)
from signoff.ports import Answer, ApprovalUI, Desk

_LEFT = "whoever was asked there has left"
_STOPPED = "it is no longer asked about here"
_GRACE = 2.0
"""Seconds that a user interface has to let go of a question: one that cannot be withdrawn is left to itself."""
_LOOK_AFTER = 0.5
"""Seconds after which the wait for an async approver looks whether its event loop is still there."""
_REMEMBERED = 1_000
_TRIES = 3
"""How often a question is put to somebody whose answer was fine, and could not be taken."""


@runtime_checkable
class Asks(Protocol):
    """A user interface that is asked without waiting for it; `TuiApprover` and `TerminalApprover` are."""

    def ask(self, request: ApprovalRequest) -> Outcome:
        """Put a question before people; they may be asked several at once. Raises `NobodyHere`."""
        ...

    def withdraw(self, request_id: str, why: str) -> None: ...

    def close(self) -> None:
        """Leave everything undecided, and let go of the terminal."""
        ...


async def until_taken(
    request: ApprovalRequest,
    shown: Outcome,
    *,
    again: Callable[[ApprovalRequest], Awaitable[Outcome | None]],
    answer: Answer,
    tell: Callable[[str], None],
) -> ApprovalDecision | None:
    """Ask until an answer is taken, saying why the one before was not; the last decision, None where they leave.

    `again` puts the question anew, with the problem and what was written; it gives None where that is no use now.
    `tell` gets what whoever answered has to be told. What keeps every answer from being taken is raised in the end.
    """
    troubles = 0
    while True:
        decision = await asyncio.wrap_future(shown)
        if decision is None or decision.ending in (Ending.CANCELLED, Ending.EXPIRED):
            return decision
        try:
            taken = await answer(request.id, decision)
            if decision.approved and taken.state is State.PENDING and taken.requirement.quorum > 1:
                tell(_more_needed(taken))
        except AlreadySettled as late:
            tell(error_text(late, datetime.astimezone))
        except (ChannelFailed, UnknownRequest):
            raise  # whoever is asked again could do nothing about it
        except SignoffError as problem:
            if not isinstance(problem, EditRefused | NotEntitled) and (troubles := troubles + 1) == _TRIES:
                tell(f"your answer could not be taken: {problem}")
                raise
            draft = {"draft": decision.edited_args} if decision.edited_args is not None else {}
            request = replace(request, problem=str(problem), metadata={**request.metadata, **draft})
            if (asked := await again(request)) is not None:
                shown = asked
                continue
            tell(str(problem))
            return None
        return decision


def _more_needed(request: ApprovalRequest) -> str:
    """For somebody whose approval counts, and is not enough."""
    return f"{agreed(request)} of {request.requirement.quorum} have agreed so far; it waits: {card_for(request).title}"


class UIChannel:
    """An `ApprovalUI` as a `Channel`: pending calls are put to it one at a time, or all at once if it can list them.

    A channel answers for nobody. What an approver says without a person having said it is not passed on: where there is
    no terminal nothing is denied, whatever `headless` says; Ctrl-C and the end of input leave, they do not deny; a
    decision counts only with somebody's name, its own or `by`. Then the call stays open for other channels, and showing
    anything here fails with `ChannelFailed` until the channel is started again. A `ScriptedUI` answers as a script,
    which the broker takes where no rule wants particular people.

    A question that stands on a screen is gone with the program, so a start has everything that waits shown anew.
    """

    def __init__(self, ui: ApprovalUI | Asks, *, name: str = "terminal", by: Answerer | None = None) -> None:
        """`by` is who answers, where the decisions do not say."""
        self._ui = ui
        self._name = name
        self._by = by
        self._asks: Asks = ui if isinstance(ui, Asks) else _Asking(ui)
        self._desk: Desk | None = None
        self._left = ""
        self._is_stopping = False
        self._open: dict[str, asyncio.Task[None]] = {}
        """What is asked about now."""
        self._answered: set[str] = set()
        """What had its answer here; some wait for others to agree."""
        self._withdrawn: set[str] = set()
        """What was settled elsewhere while it was asked about here."""
        self._troubles: dict[str, str] = {}
        """Why something that was shown here is not any longer, though it waits."""
        self._shown: dict[str, int] = {}
        """Versions by subject, of what stands here or stood here last."""

    @property
    def name(self) -> str:
        return self._name

    async def start(self, desk: Desk) -> None:
        """Take questions from now on. What another program had on its screen is shown anew."""
        if self._desk is not None:
            raise WrongUse(f"the channel {self._name} was started already")
        if isinstance(self._asks, _Asking):
            self._asks.loop = asyncio.get_running_loop()
        for request in await desk.pending():
            if await desk.where(request.id):
                await desk.gone(request.id)
        self._desk, self._left, self._is_stopping = desk, "", False

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        """Ask, withdraw what was settled elsewhere, or say what came of something, as far as the approver can."""
        if self._desk is None:
            raise ChannelFailed(f"the channel {self._name} is not running", whole=True)
        if isinstance(notice, Asked) and notice.request.state is State.PENDING:
            await self._put(notice.request, self._desk)
        elif self._shown.get(notice.subject) != notice.version:
            self._tell(notice)
        self._shown.pop(notice.subject, None)
        self._shown[notice.subject] = notice.version  # at the end: the oldest are forgotten first
        while len(self._shown) > _REMEMBERED:
            del self._shown[next(iter(self._shown))]
        return self._name

    async def stop(self) -> None:
        """Take back every open question. What was answered before still reaches the desk."""
        self._is_stopping = True
        for request_id in list(self._open):
            self._asks.withdraw(request_id, _STOPPED)
        await asyncio.to_thread(self._asks.close)
        if tasks := list(self._open.values()):
            _, stuck = await asyncio.wait(tasks, timeout=_GRACE)
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)
        self._open.clear()
        self._answered.clear()
        self._withdrawn.clear()
        self._troubles.clear()
        self._shown.clear()
        self._desk = None

    # --- asking ---

    async def _put(self, request: ApprovalRequest, desk: Desk) -> None:
        """Have a question asked, unless it is being asked or had its answer from here. Raises `ChannelFailed`."""
        if request.id in self._open or request.id in self._answered:
            return
        if trouble := self._troubles.get(request.id):
            raise ChannelFailed(trouble, again=False)
        if self._left:
            raise ChannelFailed(self._left, again=False, whole=True)
        try:
            card_for(request)
        except (SignoffError, ValueError, TypeError, RecursionError) as error:
            raise ChannelFailed(f"the call cannot be shown here: {visible(str(error))}", again=False) from error
        try:
            shown = await self._ask(request)
        except NobodyHere as nobody:
            raise ChannelFailed(str(nobody), again=False, whole=True) from nobody
        self._open[request.id] = asyncio.ensure_future(self._follow(request, shown, desk))

    async def _ask(self, request: ApprovalRequest) -> Outcome:
        return await asyncio.to_thread(self._asks.ask, request)  # it may have to wait until a screen was closed

    async def _follow(self, request: ApprovalRequest, shown: Outcome, desk: Desk) -> None:
        """What becomes of a question: an answer for the desk, or nothing, and then it is open to other channels."""

        async def again(changed: ApprovalRequest) -> Outcome | None:
            return None if self._is_stopping else await self._ask(changed)

        async def answer(request_id: str, decision: ApprovalDecision) -> ApprovalRequest:
            by = decision.by or self._by
            if by is None:
                raise ChannelFailed("an answer came without a name, so it does not count; say whose with `by`")
            return await desk.answer(request_id, replace(decision, by=by))

        def tell(text: str) -> None:
            self._say(safe_text(text, secrets=request.secrets))

        try:
            decision = await until_taken(request, shown, again=again, answer=answer, tell=tell)
        except Exception as error:  # nobody is there, or the approver is broken: told when shown again
            self._troubles[request.id] = visible(str(error) or type(error).__name__)
        else:
            if decision is not None and decision.ending in (Ending.APPROVED, Ending.DENIED):
                self._answered.add(request.id)
                return
            if request.id in self._withdrawn or self._is_stopping:
                return
            self._leave()
        finally:
            self._open.pop(request.id, None)
        if not self._is_stopping:
            await desk.gone(request.id)

    def _leave(self) -> None:
        """Whoever was asked here has left: nothing more is asked, and what is open goes elsewhere."""
        self._left = _LEFT
        for request_id in list(self._open):
            self._asks.withdraw(request_id, _LEFT)

    # --- telling ---

    def _tell(self, notice: Notice) -> None:
        """Something that needs no answer: settled, run, said."""
        if isinstance(notice, Together):
            return  # each of them is asked about by itself
        if isinstance(notice, RunResult):
            self._say(said_text(notice))
            return
        request = notice.request
        if request.id in self._open and request.id not in self._withdrawn:
            self._withdrawn.add(request.id)
            text = settled_text(request, datetime.astimezone)
            self._asks.withdraw(request.id, Redactor(request.secrets, avoid=text).text(text))
        elif notice.subject in self._shown and (text := outcome_text(request, answered=request.id in self._answered)):
            self._say(text)
        if not notice.is_live:
            for known in (self._answered, self._withdrawn):
                known.discard(request.id)
            self._troubles.pop(request.id, None)

    def _say(self, text: str) -> None:
        """Tell whoever sits there, if the approver can: it may have `say(text)`, and gets a safe text."""
        say = getattr(self._ui, "say", None)
        if callable(say):
            say(text)


def outcome_text(request: ApprovalRequest, *, answered: bool = False) -> str:
    """What became of a call, safe to show; nothing to whoever `answered` while all that is known is their answer."""
    claim = request.claim
    match request.state:
        case State.PENDING | State.CLAIMED:
            return ""
        case State.APPROVED | State.DENIED if answered:
            return ""
        case State.SUCCEEDED if claim is not None:
            return safe_text(f"request {request.id} ran", secrets=request.secrets) + _told(claim.preview)
        case State.FAILED if claim is not None:
            return safe_text(f"request {request.id} failed", secrets=request.secrets) + _told(claim.error)
        case State.UNKNOWN:
            text = f"request {request.id} was started, and nobody knows whether it happened: signoff show {request.id}"
            return visible(text)
        case _:
            return safe_text(settled_text(request, datetime.astimezone), secrets=request.secrets)


def said_text(said: RunResult) -> str:
    """What a run came to, safe to show."""
    return visible(f"{said.worker} ({said.state})") + f": {redacted_text(said.text, lines=True)}"


def _told(text: str) -> str:
    return f": {kept_text(text)}" if text else ""


class _Asking:
    """An approver that waits for its answer, asked one question at a time; `choose` may be plain or async."""

    def __init__(self, ui: ApprovalUI) -> None:
        self._ui = ui
        self._turns = Turns(self._choose)
        self._gone: set[str] = set()
        """What was withdrawn when its turn had come and the approver may not have heard of it yet."""
        self._running: tuple[str, asyncio.Task[Any]] | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        """Where async approvers run."""

    def ask(self, request: ApprovalRequest) -> Outcome:
        self._gone.discard(request.id)
        outcome = self._turns.ask(request)
        outcome.add_done_callback(lambda _: self._gone.discard(request.id))
        return outcome

    def withdraw(self, request_id: str, why: str) -> None:
        """Where the approver has no way to be told, one that is awaited is cancelled; a plain one is left to itself."""
        self._gone.add(request_id)
        self._turns.withdraw(request_id, why)
        withdraw, running = getattr(self._ui, "withdraw", None), self._running
        if callable(withdraw):
            withdraw(request_id, why)
        elif running is not None and running[0] == request_id:
            _cancel(running[1])

    def close(self) -> None:
        self._turns.leave()
        if (running := self._running) is not None:
            _cancel(running[1])

    def _choose(self, request: ApprovalRequest) -> ApprovalDecision:
        if request.id in self._gone:
            return _TAKEN_BACK
        chosen = self._ui.choose(request, mode=ApprovalMode.INTERACTIVE)
        if not inspect.isawaitable(chosen):
            return chosen
        assert self.loop is not None, "questions come after the start"
        return self._in_loop(self.loop, request.id, chosen)

    def _in_loop(
        self, loop: asyncio.AbstractEventLoop, request_id: str, chosen: Awaitable[ApprovalDecision]
    ) -> ApprovalDecision:
        """Wait for an async approver. A loop that has ended asks nobody: then the question is taken back."""
        decided: Future[ApprovalDecision] = Future()

        def begin() -> None:
            tasks.append(loop.create_task(self._awaited(request_id, chosen, decided)))

        tasks: list[asyncio.Task[None]] = []  # a loop does not hold on to its tasks
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(begin)
        while not wait([decided], timeout=_LOOK_AFTER).done:
            if loop.is_closed():
                _leave_alone(chosen)
                self._running = None
                return _TAKEN_BACK
        return decided.result()

    async def _awaited(
        self, request_id: str, chosen: Awaitable[ApprovalDecision], decided: Future[ApprovalDecision]
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running, decision = (request_id, task), _TAKEN_BACK
        try:
            if request_id in self._gone:
                _leave_alone(chosen)
            else:
                decision = await chosen
        except asyncio.CancelledError:
            pass
        except Exception as error:
            decided.set_exception(error)
        finally:
            self._running = None
            if not decided.done():
                decided.set_result(decision)


def _leave_alone(chosen: Awaitable[ApprovalDecision]) -> None:
    """Close what nobody will await; Python warns of it otherwise."""
    if inspect.iscoroutine(chosen) and inspect.getcoroutinestate(chosen) == inspect.CORO_CREATED:
        chosen.close()


def _cancel(task: asyncio.Task[Any]) -> None:
    with suppress(RuntimeError):  # its loop is closed, and it with it
        task.get_loop().call_soon_threadsafe(task.cancel)


_TAKEN_BACK = ApprovalDecision(approved=False, note=_STOPPED, ending=Ending.CANCELLED)
