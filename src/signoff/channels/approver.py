"""`ApproverChannel`: runs any approver as a channel. It asks the approver and passes the answers to the inbox.

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
from typing import Any, Protocol, TypeAlias, runtime_checkable

from signoff.channels.approver_shape import approver_problem, as_function
from signoff.channels.outcome import outcome_text, result_text
from signoff.channels.turns import Outcome
from signoff.core.card import card_for
from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.inbox_row import agreed
from signoff.core.mode import ApprovalMode
from signoff.core.moment import error_text
from signoff.core.notice import Asked, Notice, RunResult, Together
from signoff.core.people import UNNAMED, Actor
from signoff.core.quorum import why_excluded, why_not_entitled
from signoff.core.redact import Redactor
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import settled_text
from signoff.core.safe_text import safe_text
from signoff.core.visible_text import visible
from signoff.errors import (
    AlreadySettled,
    ChannelFailed,
    EditRefused,
    NobodyHere,
    NotEntitled,
    NotRead,
    SignoffError,
    UnknownRequest,
    WrongUse,
)
from signoff.ports import ApproverLike, Inbox
from signoff.side_thread import drop, in_side_thread

_LEFT = "the person asked there has left"
_STOPPED = "nobody is waiting for the answer here any more"
_GRACE = 2.0
"""Timeout in seconds for an approver to let go of its questions."""
_REMEMBERED = 1_000
_TRIES = 3
"""How often a question is asked when the answers were valid but could not be stored."""
_ENDS = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)
"""Exceptions that end any task. They are not failures of the approver."""
_NO_ANSWER = ApprovalDecision(approved=False, note=_STOPPED, ending=Ending.CANCELLED)


@runtime_checkable
class Asks(Protocol):
    """An approver that can be asked without blocking, such as `TuiApprover` and `TerminalApprover`."""

    def ask(self, request: ApprovalRequest) -> Outcome:
        """Show a question and return a future for its outcome. Several may be open at once. Raises `NobodyHere`."""
        ...

    def withdraw(self, request_id: str, why: str) -> None: ...

    def close(self) -> None:
        """Leave all questions undecided and release the terminal."""
        ...


_Ask: TypeAlias = Callable[[Sequence[ApprovalRequest]], Awaitable[Sequence[ApprovalDecision | None]]]
"""Asks people and waits: returns a decision for each request, or None if they left without one."""


# --- the channel ---


class ApproverChannel:
    """Runs an approver as a `Channel`: asks it about pending calls one at a time, or all at once if it can list them.

    The channel never answers on its own. What an approver returns without a person having decided is not passed on:
    without a terminal nothing is denied, whatever `headless` says; Ctrl-C and end of input leave the question, they do
    not deny; a decision counts only with an actor, its own or `by`. The request then stays open for other channels, and
    `show` raises `ChannelFailed` for every further question until the channel is started again. A `ScriptedApprover`
    answers as a script; the broker accepts that if no rule requires particular people.

    `in_place` is for the approver of a run that waits for it. Nobody else is asked, so what it returns is the answer,
    with or without an actor, and its `choose_all` may decide several calls together.

    A question on a screen disappears when the program ends, so `start` has everything that is pending shown again.
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
        """`by` is the actor for decisions that do not name one.

        `is_moot` is called before a question is asked that had to wait for others: it returns True if the question is
        no longer needed.
        """
        if not isinstance(approver, Asks) and (wrong := approver_problem(approver)) is not None:
            raise WrongUse(f"ApproverChannel({name}): {wrong}")
        self._approver = approver
        self._name = name
        self._by = by or (UNNAMED if in_place else None)
        self._in_place = in_place
        self._asks = approver if isinstance(approver, Asks) and not in_place else None
        self._calls = ApproverCalls(approver, mode)
        self._turn = asyncio.Lock()
        """Held while a blocking approver is asked. It belongs to one event loop, so each `start` makes a new one."""
        self._is_moot = is_moot
        self._inbox: Inbox | None = None
        self._left = ""
        self._is_stopping = False
        self._open: dict[str, asyncio.Task[None]] = {}
        """The task for each request that is being asked about."""
        self._answering: set[str] = set()
        """Requests whose answer is on its way to the inbox."""
        self._answered: set[str] = set()
        """Requests that were answered here. Some still wait for other people to agree."""
        self._withdrawn: dict[str, str] = {}
        """Requests that were settled elsewhere while they were asked about here, with the reason."""
        self._failures: dict[str, int] = {}
        """How often an answer could not be stored although the person made no mistake."""
        self._troubles: dict[str, BaseException] = {}
        """Why a pending request is no longer shown here."""
        self._is_over = False
        """Whether the approver of a run failed. It is asked nothing more."""
        self._shown: dict[str, int] = {}
        """Version last shown, by subject."""

    @property
    def name(self) -> str:
        return self._name

    async def start(self, inbox: Inbox) -> None:
        """Accept questions from now on. Requests that another process had on its screen are shown again."""
        if self._inbox is not None:
            raise WrongUse(f"the channel {self._name} was started already")
        if not self._in_place:
            for request in await inbox.pending():
                if await inbox.where(request.id):
                    await inbox.gone(request.id)
        self._inbox, self._turn = inbox, asyncio.Lock()
        self._left, self._is_stopping, self._is_over = "", False, False

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        """Ask a question, withdraw a settled one, or report an outcome if the approver can show it."""
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
        self._shown[notice.subject] = notice.version  # moved to the end, so that the oldest are dropped first
        while len(self._shown) > _REMEMBERED:
            del self._shown[next(iter(self._shown))]
        return self._name

    async def _let_go(self, request_id: str) -> None:
        """Wait until the approver in place has closed its prompt, so that output of the run does not land in it."""
        task = self._open.get(request_id)
        if task is not None and self._in_place and self._calls.can_be_told and request_id in self._withdrawn:
            if list(self._open.values()).count(task) == 1:  # other requests may still be open in the same prompt
                await asyncio.wait({task}, timeout=_GRACE)

    async def stop(self) -> None:
        """Withdraw every open question. Answers given before still reach the inbox."""
        self._is_stopping = True
        # First, before any await: a caller that is being cancelled may not get past the first one.
        self._calls.stop()
        for request_id in list(self._open):
            if request_id not in self._withdrawn:  # otherwise the approver already knows a better reason
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
        """Stop asking about a request that stays pending for others."""
        if request_id in self._open and request_id not in self._withdrawn:
            self._withdrawn[request_id] = why
            if request_id not in self._answering:
                self._withdraw(request_id, why)

    # --- asking ---

    async def _put(self, request: ApprovalRequest, inbox: Inbox) -> None:
        """Ask a question, unless it is being asked or was answered here. Raises `ChannelFailed`."""
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
        """Have several requests decided together if the approver of a run can. Otherwise each is asked on its own."""
        if self._in_place and self._calls.takes_several:
            new = [one for one in requests if one.state is State.PENDING and one.id not in self._open]
            self._begin(new, self._in_turn(new, inbox), inbox)

    def _begin(self, requests: Sequence[ApprovalRequest], work: Coroutine[Any, Any, None], inbox: Inbox) -> None:
        task = asyncio.ensure_future(self._seen_to(requests, work, inbox))
        for request in requests:
            self._open[request.id] = task

    async def _seen_to(self, requests: Sequence[ApprovalRequest], work: Awaitable[None], inbox: Inbox) -> None:
        """Run `work` and record any failure. Without that the run would wait forever for an unanswered question."""
        try:
            await work
        except _ENDS:
            raise
        except BaseException as error:
            for request in requests:
                if request.id in self._open:
                    await self._unanswered(request, error, inbox, is_over=True)

    async def _on_screen(self, asks: Asks, request: ApprovalRequest, shown: Outcome, inbox: Inbox) -> None:
        """Handle a question that is on a screen together with others."""
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
        """Handle questions in a queue: the next one is asked after the answer before it was accepted."""
        has_waited = self._turn.locked()

        async def ask(requests: Sequence[ApprovalRequest]) -> Sequence[ApprovalDecision]:
            for request in requests:
                await self._bar(request, inbox)
            return await self._choose(requests)

        async with self._turn:
            await self._until_accepted(requests, ask, inbox, has_waited=has_waited)

    async def _bar(self, request: ApprovalRequest, inbox: Inbox) -> None:
        """Tell the approver in advance, through its `bar` method, that its person is not entitled to answer.

        The inbox knows roles and deputies. The reason is worked out here.
        """
        bar, by = getattr(self._approver, "bar", None), getattr(self._approver, "actor", None)
        if callable(bar) and isinstance(by, Actor) and not await inbox.entitled(request.id, [by]):
            why = why_excluded(request.requirement, by, request.parties) or why_not_entitled(
                request.requirement, replace(by, roles=frozenset()), request.parties
            )
            bar(request.id, why or f"{by.name} is not listed under `people`, and only listed people may answer here")

    async def _choose(self, requests: Sequence[ApprovalRequest]) -> Sequence[ApprovalDecision]:
        """Have the approver decide. Returns a cancelled decision for each request if the approver was cancelled."""
        try:
            return await self._calls.ask([_copy(request) for request in requests])
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return [_NO_ANSWER] * len(requests)

    def _is_gone(self, request: ApprovalRequest) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._is_stopping or self._is_over or request.id in self._withdrawn

    def _close(self, request: ApprovalRequest) -> None:
        self._open.pop(request.id, None)
        self._withdrawn.pop(request.id, None)
        self._failures.pop(request.id, None)

    async def _until_accepted(
        self, requests: Sequence[ApprovalRequest], ask: _Ask, inbox: Inbox, *, has_waited: bool = False
    ) -> None:
        """Ask until every answer was accepted. Each repeated question says why the last answer was refused."""
        while requests := [one for one in requests if await self._is_still_asked(one, inbox, has_waited=has_waited)]:
            try:
                decisions = await ask(requests)
            except _ENDS:
                raise
            except BaseException as error:  # nobody is there, or the approver is broken: `show` raises it next time
                for request in requests:
                    await self._unanswered(request, error, inbox, is_over=True)
                return
            again: list[ApprovalRequest] = []
            for request, decision in zip(requests, decisions, strict=True):
                if (refused := await self._offer(request, decision, inbox)) is not None:
                    again.append(refused)
            requests, has_waited = again, True

    async def _is_still_asked(self, request: ApprovalRequest, inbox: Inbox, *, has_waited: bool) -> bool:
        """Whether a question must still be asked: it may have been settled while it was in the queue."""
        if self._is_gone(request):
            if request.problem and (why := self._withdrawn.get(request.id)):
                self._say(why)  # their answer was refused, and they will not be asked again
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
        """Pass an answer to the inbox. If it is refused, return the request to ask again, with the problem in it."""
        if self._is_over:  # an earlier answer could not be stored, which ends the run
            self._close(request)
            return None
        if decision is None or not self._is_answer(decision):
            await self._unanswered(request, None, inbox)
            return None
        self._answering.add(request.id)
        try:
            taken = await self._answer(request, decision, inbox)
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
        """Whether somebody decided. In place, only a cancelled decision is no answer."""
        endings = (Ending.CANCELLED,) if self._in_place else (Ending.CANCELLED, Ending.EXPIRED)
        return decision.ending not in endings

    async def _answer(self, request: ApprovalRequest, decision: ApprovalDecision, inbox: Inbox) -> ApprovalRequest:
        by = decision.by or self._by
        if by is None:
            raise ChannelFailed("an answer without a name does not count; set `by`")
        decision = decision.changed(by=by)
        try:
            return await inbox.answer(request.id, decision)
        except NotRead:  # an approver is given the whole call, and shows all of it before it approves
            await inbox.opened(request.id, by)
            return await inbox.answer(request.id, decision)

    def _is_worth_asking(self, request: ApprovalRequest, problem: Exception) -> bool:
        """Whether asking again, with the problem shown, can help."""
        match problem:
            case EditRefused():
                return True
            case NotEntitled():
                return request.problem != str(problem)  # told once and tried again: this person cannot answer
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
        """Record that a question got no answer here, so that others can answer it.

        `is_over` stops the approver of a run for good.
        """
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
        """The person here has left: ask nothing more, and leave open questions to other channels."""
        self._left = _LEFT
        for request_id in list(self._open):
            self._withdraw(request_id, _LEFT)

    def _redraw(self, request: ApprovalRequest) -> None:
        """Tell an approver with a `redraw(request)` method that an open question has changed."""
        redraw = getattr(self._approver, "redraw", None)
        if callable(redraw):
            with _survived("an approver could not be told that a question has changed"):
                redraw(_copy(request))

    def _withdraw(self, request_id: str, why: str) -> None:
        with _survived("an approver could not be told that a question is settled"):
            (self._calls if self._asks is None else self._asks).withdraw(request_id, why)

    # --- reporting ---

    def _tell(self, notice: Asked | RunResult) -> None:
        """Report something that needs no answer: a settled request, an executed call, the result of a run."""
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
        """Tell the person here, if the approver has `say(text)`. The text is safe to show.

        While a run waits in place, the run itself reports what happens to calls. Only what became of an answer, `about`
        a request, is reported from here.
        """
        say = getattr(self._approver, "say", None)
        if callable(say) and (about is not None or not self._in_place):
            say(text if about is None else safe_text(text, secrets=about.secrets))


async def _put_on_screen(asks: Asks, request: ApprovalRequest) -> Outcome:
    return await asyncio.to_thread(asks.ask, request)  # in a thread: it may have to wait until a screen has closed


@contextmanager
def _survived(what: str) -> Generator[None]:
    """Report an exception to the event loop's handler and go on: the code is the user's, and nothing depends on it."""
    try:
        yield
    except Exception as error:
        told = {"message": f"signoff: {what}", "exception": error}
        asyncio.get_running_loop().call_exception_handler(told)


async def _as_it_stands(request: ApprovalRequest, inbox: Inbox) -> ApprovalRequest:
    """Return the request with its current deadline, votes, comments and so on from the inbox."""
    now = await inbox.request(request.id)
    fields = ("deadline", "remind_at", "escalated", "votes", "assigned", "comments", "version")
    return request.changed_to(**{name: getattr(now, name) for name in fields})


def _more_needed(request: ApprovalRequest) -> str:
    """Say that an approval counts but the quorum is not reached."""
    so_far = f"{agreed(request)} of {request.requirement.quorum} have agreed so far"
    return f"{so_far}; it is still pending: {card_for(request).title}"


class ApproverCalls:
    """Calls a blocking approver, sync or async, one call at a time."""

    def __init__(self, approver: ApproverLike | Asks, mode: ApprovalMode) -> None:
        choose_all = getattr(approver, "choose_all", None)
        self._choose = as_function(approver, mode)
        self._choose_all = partial(choose_all, mode=mode) if callable(choose_all) else None
        withdraw = getattr(approver, "withdraw", None)
        self._withdraw: Callable[[str, str], object] | None = withdraw if callable(withdraw) else None
        self._asked: frozenset[str] = frozenset()
        """Ids of the requests that are being asked about."""
        self._waits: asyncio.Future[Any] | None = None
        """What is being awaited: a thread's result, or the user's own coroutine."""
        self._is_awaited = False
        """Whether it is a coroutine, which can be cancelled."""
        self._is_taken_back = False
        """Whether nobody waits for the current answer any more."""

    @property
    def can_be_told(self) -> bool:
        """Whether the approver can be told that a question is settled."""
        return self._withdraw is not None

    @property
    def takes_several(self) -> bool:
        return self._choose_all is not None

    async def ask(self, requests: Sequence[ApprovalRequest]) -> Sequence[ApprovalDecision]:
        """Return one decision for each request, in order."""
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
        """Tell the approver, or cancel its coroutine. A sync approver without `withdraw` is left running."""
        if self._withdraw is not None:
            self._withdraw(request_id, why)
        elif self._asked == frozenset((request_id,)):
            self._is_taken_back = True
            if self._is_awaited and self._waits is not None:
                self._waits.cancel()

    def stop(self) -> None:
        """Stop waiting for the approver."""
        self._is_taken_back = True
        if self._waits is not None:
            self._waits.cancel()

    async def _called(self, function: Callable[[Any], Any], given: object) -> Any:
        if inspect.iscoroutinefunction(function):
            return await self._result(function(given), is_awaited=True)
        # An approver that can be told will return, and may have a terminal to restore. Another may block forever:
        # daemon.
        thread = in_side_thread(
            lambda: function(given),
            name="signoff-approver",
            daemon=self._withdraw is None,
            raises=BaseException,
        )
        result = await self._result(thread, is_awaited=False)
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
    """Return a copy of a request to hand out, so that the approver cannot change the stored one."""
    return request.changed_to(args=deepcopy(request.args), metadata=deepcopy(request.metadata))


def _text(error: BaseException) -> str:
    """Return an exception's text, safe to show. Its `__str__` is the user's code and may fail too."""
    try:
        return visible(str(error)) or type(error).__name__
    except Exception:
        return type(error).__name__


def _decision(returned: object) -> ApprovalDecision:
    if isinstance(returned, ApprovalDecision):
        return returned
    if isinstance(returned, bool):
        return ApprovalDecision(approved=returned)
    kind = type(returned)
    theirs = f"the one of {kind.__module__}" if kind.__name__ == "ApprovalDecision" else kind.__name__
    raise WrongUse(f"an approver returns an ApprovalDecision, True or False, not {theirs}")
