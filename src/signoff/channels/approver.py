"""Any approver as a channel: what is shown to it is asked there, and what it answers goes to the inbox.

```python
ApproverChannel(terminal_approver(actor=ana), name="terminal")
```
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from signoff.channels.outcome import outcome_text, result_text
from signoff.channels.sync_calls import drop, in_thread
from signoff.channels.turns import Outcome
from signoff.core.card import card_for
from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.inbox_row import agreed
from signoff.core.mode import ApprovalMode
from signoff.core.moment import error_text
from signoff.core.notice import Asked, Notice, RunResult, Together
from signoff.core.people import Actor, ActorKind
from signoff.core.quorum import why_excluded, why_not_entitled
from signoff.core.redact import Redactor
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import settled_text
from signoff.core.safe import safe_text
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
from signoff.ports import ApproverLike, Inbox

UNNAMED = Actor(name="approver", kind=ActorKind.SCRIPT)
"""Who answered, where the only approver of a run does not say. It never counts as a particular person."""

_LEFT = "the person asked there has left"
_STOPPED = "nobody is waiting for the answer here any more"
_GRACE = 2.0
"""Seconds that a screen has to let go of its questions."""
_REMEMBERED = 1_000
_TRIES = 3
"""How often a question is put to somebody whose answer was fine, and could not be taken."""
_ENDS = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)
"""What ends whatever runs, and is no failure of an approver."""
_NO_ANSWER = ApprovalDecision(approved=False, note=_STOPPED, ending=Ending.CANCELLED)


@runtime_checkable
class Asks(Protocol):
    """An approver that is asked without waiting for it; `TuiApprover` and `TerminalApprover` are."""

    def ask(self, request: ApprovalRequest) -> Outcome:
        """Put a question before people; they may be asked several at once. Raises `NobodyHere`."""
        ...

    def withdraw(self, request_id: str, why: str) -> None: ...

    def close(self) -> None:
        """Leave everything undecided, and let go of the terminal."""
        ...


_Ask: TypeAlias = Callable[[Sequence[ApprovalRequest]], Awaitable[Sequence[ApprovalDecision | None]]]
"""Puts questions to people and waits: a decision for each, None where they leave without one."""


# --- the channel ---


class ApproverChannel:
    """An approver as a `Channel`: pending calls are put to it one at a time, or all at once if it can list them.

    A channel answers for nobody. What an approver says without a person having said it is not passed on: where there is
    no terminal nothing is denied, whatever `headless` says; Ctrl-C and the end of input leave, they do not deny; a
    decision counts only with somebody's name, its own or `by`. Then the call stays open for other channels, and showing
    anything here fails with `ChannelFailed` until the channel is started again. A `ScriptedApprover` answers as a
    script, which the broker takes where no rule wants particular people.

    `in_place` is for the approver of a run that waits for it: nobody else is asked, so what it returns is the answer,
    by whomever, and several calls may be decided together by its `choose_all`.

    A question that stands on a screen is gone with the program, so a start has everything that waits shown anew.
    """

    def __init__(
        self,
        approver: ApproverLike | Asks,
        *,
        name: str = "terminal",
        by: Actor | None = None,
        in_place: bool = False,
        mode: ApprovalMode = ApprovalMode.INTERACTIVE,
        is_moot: Callable[[ApprovalRequest], Awaitable[bool]] | None = None,
    ) -> None:
        """`by` is who answers, where the decisions do not say.

        `is_moot` is asked before a question is put that waited for others: whether it need not be any longer.
        """
        self._approver = approver
        self._name = name
        self._by = by or (UNNAMED if in_place else None)
        self._in_place = in_place
        self._asks = approver if isinstance(approver, Asks) and not in_place else None
        self._calls = ApproverCalls(approver, mode)
        self._turn = asyncio.Lock()
        """Held by what is asked, where the approver has to be waited for. It is of one event loop, as each start is."""
        self._is_moot = is_moot
        self._inbox: Inbox | None = None
        self._left = ""
        self._is_stopping = False
        self._open: dict[str, asyncio.Task[None]] = {}
        """What is asked about now."""
        self._answering: set[str] = set()
        """What has an answer from here that is on its way to the inbox."""
        self._answered: set[str] = set()
        """What had its answer here; some wait for others to agree."""
        self._withdrawn: dict[str, str] = {}
        """What was settled elsewhere while it was asked about here, and how."""
        self._failures: dict[str, int] = {}
        """How often an answer could not be taken for no fault of whoever gave it."""
        self._troubles: dict[str, BaseException] = {}
        """Why something that was shown here is not any longer, though it waits."""
        self._is_over = False
        """Whether the approver of a run failed: then it is asked nothing more."""
        self._shown: dict[str, int] = {}
        """Versions by subject, of what stands here or stood here last."""

    @property
    def name(self) -> str:
        return self._name

    async def start(self, inbox: Inbox) -> None:
        """Take questions from now on. What another program had on its screen is shown anew."""
        if self._inbox is not None:
            raise WrongUse(f"the channel {self._name} was started already")
        if not self._in_place:
            for request in await inbox.pending():
                if await inbox.where(request.id):
                    await inbox.gone(request.id)
        self._inbox, self._turn = inbox, asyncio.Lock()
        self._left, self._is_stopping, self._is_over = "", False, False

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        """Ask, withdraw what was settled elsewhere, or say what came of something, as far as the approver can."""
        if self._inbox is None:
            raise ChannelFailed(f"the channel {self._name} is not running", whole=True)
        if isinstance(notice, Asked) and notice.request.state is State.PENDING:
            await self._put(notice.request, self._inbox)
        elif isinstance(notice, Together):
            self._put_together(notice.requests, self._inbox)
        elif self._shown.get(notice.subject) != notice.version:
            self._tell(notice)
            if isinstance(notice, Asked):
                await self._let_go(notice.request.id)
        self._shown.pop(notice.subject, None)
        self._shown[notice.subject] = notice.version  # at the end: the oldest are forgotten first
        while len(self._shown) > _REMEMBERED:
            del self._shown[next(iter(self._shown))]
        return self._name

    async def _let_go(self, request_id: str) -> None:
        """Wait until whoever was asked in place is so no longer: what the run prints next is not for their prompt."""
        task = self._open.get(request_id)
        if task is not None and self._in_place and self._calls.can_be_told and request_id in self._withdrawn:
            if list(self._open.values()).count(task) == 1:  # others may still be asked in the same place
                await asyncio.wait({task}, timeout=_GRACE)

    async def stop(self) -> None:
        """Take back every open question. What was answered before still reaches the inbox."""
        self._is_stopping = True
        # At once: whoever is being stopped may not come beyond the first thing that is waited for.
        self._calls.stop()
        for request_id in list(self._open):
            if request_id not in self._withdrawn:  # else they were told why, and better
                self._withdraw(request_id, _STOPPED)
        if self._asks is not None:
            await asyncio.to_thread(self._asks.close)
        if tasks := set(self._open.values()):
            _, stuck = await asyncio.wait(tasks, timeout=_GRACE)
            for task in stuck if self._in_place else stuck - {self._open.get(one) for one in self._answering}:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)
        for known in (self._open, self._withdrawn, self._failures, self._troubles, self._shown):
            known.clear()
        self._answering.clear()
        self._answered.clear()
        self._inbox = None

    def withdraw(self, request_id: str, why: str) -> None:
        """Stop asking about a request that still waits, for others."""
        if request_id in self._open and request_id not in self._withdrawn:
            self._withdrawn[request_id] = why
            if request_id not in self._answering:
                self._withdraw(request_id, why)

    # --- asking ---

    async def _put(self, request: ApprovalRequest, inbox: Inbox) -> None:
        """Have a question asked, unless it is being asked or had its answer from here. Raises `ChannelFailed`."""
        if request.id in self._open:
            self._redraw(request)
            return
        if request.id in self._answered:
            return
        if (trouble := self._troubles.get(request.id)) is not None:
            raise ChannelFailed(_text(trouble), again=False, whole=self._is_over) from trouble
        if self._left:
            raise ChannelFailed(self._left, again=False, whole=True)
        if not self._in_place:
            try:
                card_for(request)
            except (SignoffError, ValueError, TypeError, RecursionError) as error:
                raise ChannelFailed(f"the call cannot be shown here: {visible(str(error))}", again=False) from error
        if self._asks is None:
            self._begin([request], self._in_turn([request], inbox), inbox)
            return
        await self._bar(request, inbox)
        try:
            shown = await _put_on_screen(self._asks, request)
        except NobodyHere as nobody:
            raise ChannelFailed(str(nobody), again=False, whole=True) from nobody
        self._begin([request], self._on_screen(self._asks, request, shown, inbox), inbox)

    def _put_together(self, requests: Sequence[ApprovalRequest], inbox: Inbox) -> None:
        """Have several decided together, where the approver of a run can do that. Otherwise each is asked by itself."""
        if self._in_place and self._calls.takes_several:
            new = [one for one in requests if one.state is State.PENDING and one.id not in self._open]
            self._begin(new, self._in_turn(new, inbox), inbox)

    def _begin(self, requests: Sequence[ApprovalRequest], work: Coroutine[Any, Any, None], inbox: Inbox) -> None:
        task = asyncio.ensure_future(self._seen_to(requests, work, inbox))
        for request in requests:
            self._open[request.id] = task

    async def _seen_to(self, requests: Sequence[ApprovalRequest], work: Awaitable[None], inbox: Inbox) -> None:
        """Whatever goes wrong, somebody hears of it: a question that nobody sees to would be waited for for ever."""
        try:
            await work
        except _ENDS:
            raise
        except BaseException as error:
            for request in requests:
                if request.id in self._open:
                    await self._unanswered(request, error, inbox, is_over=True)

    async def _on_screen(self, asks: Asks, request: ApprovalRequest, shown: Outcome, inbox: Inbox) -> None:
        """See to a question that stands on a screen, beside others."""
        first: list[Outcome] = [shown]

        async def ask(requests: Sequence[ApprovalRequest]) -> Sequence[ApprovalDecision | None]:
            [changed] = requests
            if not first:
                await self._bar(changed, inbox)
            if self._is_stopping and not first:
                self._say(changed.problem, request)
                return [None]
            return [await asyncio.wrap_future(first.pop() if first else await _put_on_screen(asks, changed))]

        await self._until_accepted([request], ask, inbox)

    async def _in_turn(self, requests: Sequence[ApprovalRequest], inbox: Inbox) -> None:
        """See to questions that wait in line: the next one is put when the answer before it was taken."""
        has_waited = self._turn.locked()

        async def ask(requests: Sequence[ApprovalRequest]) -> Sequence[ApprovalDecision]:
            for request in requests:
                await self._bar(request, inbox)
            return await self._choose(requests)

        async with self._turn:
            await self._until_accepted(requests, ask, inbox, has_waited=has_waited)

    async def _bar(self, request: ApprovalRequest, inbox: Inbox) -> None:
        """Tell an approver beforehand that whoever sits there cannot answer, if it can be told: by `bar`.

        The inbox knows who has which role, and who stands in for whom; why it is so can be said from here.
        """
        bar, by = getattr(self._approver, "bar", None), getattr(self._approver, "actor", None)
        if callable(bar) and isinstance(by, Actor) and not await inbox.entitled(request.id, [by]):
            why = why_excluded(request.requirement, by, request.parties) or why_not_entitled(
                request.requirement, replace(by, roles=frozenset()), request.parties
            )
            bar(request.id, why or f"{by.name} is not listed under `people`, and only listed people may answer here")

    async def _choose(self, requests: Sequence[ApprovalRequest]) -> Sequence[ApprovalDecision]:
        """Have the approver decide; no answer where it was cancelled."""
        try:
            return await self._calls.ask([_copy(request) for request in requests])
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return [_NO_ANSWER] * len(requests)

    def _is_gone(self, request: ApprovalRequest) -> bool:
        """Whether nobody waits for the answer any longer."""
        return self._is_stopping or self._is_over or request.id in self._withdrawn

    def _close(self, request: ApprovalRequest) -> None:
        self._open.pop(request.id, None)
        self._withdrawn.pop(request.id, None)
        self._failures.pop(request.id, None)

    async def _until_accepted(
        self, requests: Sequence[ApprovalRequest], ask: _Ask, inbox: Inbox, *, has_waited: bool = False
    ) -> None:
        """Ask until each answer was accepted, saying why the one before was not."""
        while requests := [one for one in requests if await self._is_still_asked(one, inbox, has_waited=has_waited)]:
            try:
                decisions = await ask(requests)
            except _ENDS:
                raise
            except BaseException as error:  # nobody is there, or the approver is broken: told when it is shown again
                for request in requests:
                    await self._unanswered(request, error, inbox, is_over=True)
                return
            again: list[ApprovalRequest] = []
            for request, decision in zip(requests, decisions, strict=True):
                if (refused := await self._offer(request, decision, inbox)) is not None:
                    again.append(refused)
            requests, has_waited = again, True

    async def _is_still_asked(self, request: ApprovalRequest, inbox: Inbox, *, has_waited: bool) -> bool:
        """Whether a question is to be put: it may have been settled while it waited for its turn."""
        if self._is_gone(request):
            if request.problem and (why := self._withdrawn.get(request.id)):
                self._say(why)  # their answer was refused, and there is no other
            self._close(request)
            return False
        if self._left:
            await self._unanswered(request, None, inbox)
            return False
        is_settled = bool(request.problem) and (await inbox.request(request.id)).state is not State.PENDING
        if is_settled or (has_waited and self._is_moot is not None and await self._is_moot(request)):
            self._close(request)
            return False
        return True

    async def _offer(
        self, request: ApprovalRequest, decision: ApprovalDecision | None, inbox: Inbox
    ) -> ApprovalRequest | None:
        """Give an answer to the inbox; where it is not accepted, the request to ask again with, which says why."""
        if self._is_over:  # an answer before it could not be taken, and that ends the run
            self._close(request)
            return None
        if decision is None or not self._is_answer(decision):
            await self._unanswered(request, None, inbox)
            return None
        self._answering.add(request.id)
        try:
            taken = await self._answer(request.id, decision, inbox)
            if decision.approved and taken.state is State.PENDING and taken.requirement.quorum > 1:
                self._say(_more_needed(taken), request)
        except AlreadySettled as late:
            self._say(error_text(late, datetime.astimezone), request)
        except Exception as problem:
            if self._is_worth_asking(request, problem):
                draft = {"draft": decision.edited_args} if decision.edited_args is not None else {}
                now = await _as_it_stands(request, inbox)
                return now.changed_to(problem=str(problem), metadata={**request.metadata, **draft})
            fate = "does not count" if isinstance(problem, NotEntitled) else "was not accepted"
            self._say(f"your answer to {request.tool_name} (request {request.id}) {fate}: {problem}", request)
            await self._unanswered(request, problem, inbox, is_over=not isinstance(problem, NotEntitled))
            return None
        finally:
            self._answering.discard(request.id)
        self._answered.add(request.id)
        self._close(request)
        return None

    def _is_answer(self, decision: ApprovalDecision) -> bool:
        """Whether somebody decided. In place, only one that was taken back is none."""
        endings = (Ending.CANCELLED,) if self._in_place else (Ending.CANCELLED, Ending.EXPIRED)
        return decision.ending not in endings

    async def _answer(self, request_id: str, decision: ApprovalDecision, inbox: Inbox) -> ApprovalRequest:
        by = decision.by or self._by
        if by is None:
            raise ChannelFailed("an answer without a name does not count; set `by`")
        return await inbox.answer(request_id, decision.changed(by=by))

    def _is_worth_asking(self, request: ApprovalRequest, problem: Exception) -> bool:
        """Whether whoever is asked again, and told the problem, could do something about it."""
        match problem:
            case EditRefused():
                return True
            case NotEntitled():
                return request.problem != str(problem)  # told once and tried again: whoever this is cannot answer
            case ChannelFailed() | UnknownRequest():
                return False
            case SignoffError() if not self._in_place:
                self._failures[request.id] = self._failures.get(request.id, 0) + 1
                return self._failures[request.id] < _TRIES
            case _:
                return False

    async def _unanswered(
        self, request: ApprovalRequest, why: BaseException | None, inbox: Inbox, *, is_over: bool = False
    ) -> None:
        """A question had no answer here, so it is open to others. `is_over`: of the approver of a run."""
        is_gone = self._is_gone(request)
        self._close(request)
        if is_gone:
            return
        if why is not None or self._in_place:
            self._troubles[request.id] = why or NobodyHere("it was left undecided")
            self._is_over = self._is_over or (self._in_place and is_over)
        else:
            self._leave()
        await inbox.gone(request.id)

    def _leave(self) -> None:
        """Whoever was asked here has left: nothing more is asked, and what is open goes elsewhere."""
        self._left = _LEFT
        for request_id in list(self._open):
            self._withdraw(request_id, _LEFT)

    def _redraw(self, request: ApprovalRequest) -> None:
        """What is asked about has changed. An approver whose questions stay on a screen may have `redraw(request)`."""
        redraw = getattr(self._approver, "redraw", None)
        if callable(redraw):
            with _survived("an approver could not be told that a question has changed"):
                redraw(_copy(request))

    def _withdraw(self, request_id: str, why: str) -> None:
        with _survived("an approver could not be told that a question is settled"):
            (self._calls if self._asks is None else self._asks).withdraw(request_id, why)

    # --- telling ---

    def _tell(self, notice: Asked | RunResult) -> None:
        """Something that needs no answer: settled, run, what came of a run."""
        if isinstance(notice, RunResult):
            self._say(result_text(notice))
            return
        request = notice.request
        if request.id in self._open and request.id not in self._withdrawn:
            text = settled_text(request, datetime.astimezone)
            self.withdraw(request.id, Redactor(request.secrets, avoid=text).text(text))
        elif notice.subject in self._shown and (text := outcome_text(request, answered=request.id in self._answered)):
            self._say(text)
        if not notice.is_live:
            self._answered.discard(request.id)
            self._troubles.pop(request.id, None)

    def _say(self, text: str, about: ApprovalRequest | None = None) -> None:
        """Tell whoever sits there, if the approver can: it may have `say(text)`, and gets a safe text.

        Where a run waits, what comes of calls is told by the run itself; what came of an answer, `about` a request,
        nobody else can tell.
        """
        say = getattr(self._approver, "say", None)
        if callable(say) and (about is not None or not self._in_place):
            say(text if about is None else safe_text(text, secrets=about.secrets))


async def _put_on_screen(asks: Asks, request: ApprovalRequest) -> Outcome:
    return await asyncio.to_thread(asks.ask, request)  # it may have to wait until a screen was closed


@contextmanager
def _survived(what: str) -> Generator[None]:
    """Whatever fails within is reported, and no more: it is somebody's code, and nothing depends on it."""
    try:
        yield
    except Exception as error:
        told = {"message": f"signoff: {what}", "exception": error}
        asyncio.get_running_loop().call_exception_handler(told)


async def _as_it_stands(request: ApprovalRequest, inbox: Inbox) -> ApprovalRequest:
    """A request with what time and other people have made of it since it was asked about."""
    now = await inbox.request(request.id)
    fields = ("deadline", "remind_at", "escalated", "votes", "assigned", "comments", "version")
    return request.changed_to(**{name: getattr(now, name) for name in fields})


def _more_needed(request: ApprovalRequest) -> str:
    """For somebody whose approval counts, and is not enough."""
    so_far = f"{agreed(request)} of {request.requirement.quorum} have agreed so far"
    return f"{so_far}; it is still pending: {card_for(request).title}"


class ApproverCalls:
    """Calls an approver that has to be waited for, one thing at a time; it may be plain or async."""

    def __init__(self, approver: ApproverLike | Asks, mode: ApprovalMode) -> None:
        choose, choose_all = getattr(approver, "choose", None), getattr(approver, "choose_all", None)
        function = partial(choose, mode=mode) if callable(choose) else approver
        self._choose = cast("Callable[[ApprovalRequest], Any]", function)
        self._choose_all = partial(choose_all, mode=mode) if callable(choose_all) else None
        withdraw = getattr(approver, "withdraw", None)
        self._withdraw: Callable[[str, str], object] | None = withdraw if callable(withdraw) else None
        self._asked: frozenset[str] = frozenset()
        """What is asked about now."""
        self._waits: asyncio.Future[Any] | None = None
        """What is waited for now: the end of a thread, or somebody's own coroutine."""
        self._is_awaited = False
        """Whether it is a coroutine, which can be cancelled."""
        self._is_taken_back = False
        """Whether nobody waits any longer for what is asked now."""

    @property
    def can_be_told(self) -> bool:
        """Whether it can be told that a question is settled."""
        return self._withdraw is not None

    @property
    def takes_several(self) -> bool:
        return self._choose_all is not None

    async def ask(self, requests: Sequence[ApprovalRequest]) -> Sequence[ApprovalDecision]:
        """One decision for each, in order."""
        self._asked, self._is_taken_back = frozenset(request.id for request in requests), False
        try:
            if len(requests) == 1:
                return [_decision(await self._called(self._choose, requests[0]))]
            assert self._choose_all is not None, "only who can decide several is asked about several"
            decisions = [_decision(one) for one in await self._called(self._choose_all, tuple(requests))]
        finally:
            self._asked = frozenset()
        if len(decisions) != len(requests):
            raise WrongUse(f"choose_all got {len(requests)} requests and returned {len(decisions)} decisions")
        return decisions

    def withdraw(self, request_id: str, why: str) -> None:
        """Tell the approver, or cancel it, if it can be; a plain one that cannot be told is left to itself."""
        if self._withdraw is not None:
            self._withdraw(request_id, why)
        elif self._asked == frozenset((request_id,)):
            self._is_taken_back = True
            if self._is_awaited and self._waits is not None:
                self._waits.cancel()

    def stop(self) -> None:
        """Wait for nothing any longer."""
        self._is_taken_back = True
        if self._waits is not None:
            self._waits.cancel()

    async def _called(self, function: Callable[[Any], Any], given: object) -> Any:
        if inspect.iscoroutinefunction(function):
            return await self._result(function(given), is_awaited=True)
        # One that can be told comes to its end, and may have a terminal to put right. Another one may wait for ever.
        result = await self._result(in_thread(function, given, daemon=self._withdraw is None), is_awaited=False)
        if not inspect.isawaitable(result):
            return result
        if self._is_taken_back:
            drop(result)
            raise asyncio.CancelledError
        return await self._result(result, is_awaited=True)

    async def _result(self, work: Awaitable[Any], *, is_awaited: bool) -> Any:
        self._waits, self._is_awaited = asyncio.ensure_future(work), is_awaited
        try:
            return await self._waits
        finally:
            self._waits = None


def _copy(request: ApprovalRequest) -> ApprovalRequest:
    """A request to hand out: whoever is shown it cannot change what is on record."""
    return request.changed_to(args=deepcopy(request.args), metadata=deepcopy(request.metadata))


def _text(error: BaseException) -> str:
    """What an exception says, safe to show. It is somebody's code, which may fail at that too."""
    try:
        return visible(str(error)) or type(error).__name__
    except Exception:
        return type(error).__name__


def _decision(returned: object) -> ApprovalDecision:
    if isinstance(returned, ApprovalDecision):
        return returned
    if isinstance(returned, bool):
        return ApprovalDecision(approved=returned)
    raise WrongUse(f"an approver returns an ApprovalDecision, True or False, not {type(returned).__name__}")
