"""Save a run in the store as it progresses, so that any process can resume it after a pause or a crash.

A message history is a chain of segments, each stored once: a pause writes only what is new since the last one. The
messages that this process read or wrote are recognised by identity, so they are neither compared nor read back.
"""

from __future__ import annotations

import json
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field, replace
from hashlib import sha256
from operator import is_
from typing import Any, NamedTuple, TypeAlias, cast

from pydantic_ai import RunContext
from pydantic_ai.conversation import Conversation, ConversationTypeAdapter
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolReturn,
    ToolReturnPart,
)
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RunUsage
from pydantic_core import PydanticSerializationError, from_json, to_json

from signoff.broker import Broker
from signoff.broker.runs import RunProgress, text_of
from signoff.core.call import Call
from signoff.core.request import ApprovalRequest, State
from signoff.core.result_text import exit_text
from signoff.core.run import RunState, SavedRun, Segment
from signoff.errors import Stale, StoreDamaged
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers

MOST_CHAINS = 64
_REFUSED = (State.DENIED, State.EXPIRED)
SMALL = 1_000
"""Segments up to this many bytes are stored without compression."""
LARGEST_RESULT = 1_000_000
"""Results up to this many bytes are saved. Of a larger one, only its digest and its beginning are."""
LONGEST_SHOWN = 100_000


# --- messages ---


class Histories:
    """Cache of message chains that are in the store, found by the identity of their messages."""

    def __init__(self) -> None:
        self._chains: OrderedDict[str, list[ModelMessage]] = OrderedDict()
        self._beginning: dict[int, set[str]] = {}
        """Chains by the identity of their first message, which they keep alive."""
        self._lock = threading.Lock()

    def known(self, messages: Sequence[ModelMessage]) -> tuple[str, int]:
        """Return the longest chain that these messages begin with: its last segment, and how many messages it holds."""
        best = ("", 0)
        with self._lock:
            for tip in self._beginning.get(id(messages[0]), ()) if messages else ():
                chain = self._chains[tip]
                if best[1] < len(chain) <= len(messages) and _begins_with(messages, chain):
                    best = (tip, len(chain))
            if best[0]:
                self._chains.move_to_end(best[0])
        return best

    def remember(self, tip: str, messages: list[ModelMessage]) -> None:
        if not messages:
            return
        with self._lock:
            self._drop(tip)
            self._chains[tip] = messages
            self._beginning.setdefault(id(messages[0]), set()).add(tip)
            while len(self._chains) > MOST_CHAINS:
                self._drop(next(iter(self._chains)))

    def _drop(self, tip: str) -> None:
        if (chain := self._chains.pop(tip, None)) is not None:
            tips = self._beginning[id(chain[0])]
            tips.discard(tip)
            if not tips:
                del self._beginning[id(chain[0])]

    def of(self, tip: str) -> list[ModelMessage] | None:
        """Return the messages of a chain, or None if this process does not have them."""
        return self._chains.get(tip)

    def forget(self) -> None:
        with self._lock:
            self._chains.clear()
            self._beginning.clear()


def _begins_with(messages: Sequence[ModelMessage], chain: Sequence[ModelMessage]) -> bool:
    """Compare by identity. Only the last may be a copy: PydanticAI copies the response that a run is resumed with."""
    last = len(chain) - 1
    return all(map(is_, chain[:last], messages)) and (chain[last] is messages[last] or chain[last] == messages[last])


# --- a run ---


class Point(NamedTuple):
    """The part of a run's context that is saved."""

    messages: list[ModelMessage]
    usage: RunUsage
    run_id: str | None
    conversation_id: str

    @classmethod
    def of(cls, ctx: RunContext[Any]) -> Point:
        return cls(list(ctx.messages), copy(ctx.usage), ctx.run_id, ctx.conversation_id or "")


@dataclass(slots=True)
class RunSaver:
    """Saves one run."""

    broker: Broker
    histories: Histories
    run: SavedRun
    resumed: bool = False
    """Whether the caller began or resumed the run, and is responsible for it."""
    saved: bool = False
    """Whether the run is in the store."""
    done: dict[str, ToolReturnPart] = field(default_factory=dict[str, ToolReturnPart])
    """Results of this step's calls so far, by call id: they must not run again because a sibling waits."""
    known: dict[str, ApprovalRequest] = field(default_factory=dict[str, ApprovalRequest])
    """The run's requests as they were when it was resumed, by call key."""
    secrets: set[str] = field(default_factory=set[str])
    """Values of nested runs to mask in what is saved of the run, besides those the broker knows."""
    held: bool = True
    """Whether this process executes the run."""
    is_inner: bool = False
    """Whether the run is inside a call of another run."""
    root: RunSaver | None = None
    """Saver of the outermost run, where this run is inside it and that run is saved."""
    _point: Point | None = None
    """The run's state when its model was last called."""
    _over: bool = False

    async def opened(
        self,
        ctx: RunContext[Any],
        requests: Sequence[ApprovalRequest],
        deferred: DeferredToolRequests,
        policy: Policy | Layers,
        *,
        put_down: bool,
        around: Callable[[], Sequence[RunProgress]],
        places: Mapping[str, str],
    ) -> list[ApprovalRequest]:
        """Open the requests, asked under `policy`, and save the run and what is `around` it, in one transaction."""

        point = Point.of(ctx)
        deferred = _by_the_model(deferred, point.messages)

        def progress() -> list[RunProgress]:
            return [*around(), self._progress(point, deferred, put_down=put_down)]

        try:
            opened = await self.broker.open(requests, progress(), policy, places)
        except Stale:  # something that was stored is gone: store it again
            self.histories.forget()
            opened = await self.broker.open(requests, progress(), policy, places)
        self.saved, self.held = True, not put_down
        return opened

    def at_call(self, ctx: RunContext[Any], entered: tuple[str, str]) -> RunProgress:
        """Return the run's progress while one of its calls runs. Calls without a result are made again on resume."""
        progress = self._progress(Point.of(ctx), DeferredToolRequests(), put_down=False)
        return replace(progress, entered=entered)

    async def opened_inside(
        self, requests: Sequence[ApprovalRequest], policy: Policy | Layers, places: Mapping[str, str]
    ) -> list[ApprovalRequest]:
        """Open the requests of a nested run, and save this run with the state it had when its model was last called."""
        if self.saved or self._point is None:
            return await self.broker.open(requests, policy=policy, places=places)
        opened = await self.broker.open(requests, [self._progress(self._point, None, put_down=False)], policy, places)
        self.saved = True
        return opened

    @property
    def _heard(self) -> tuple[str, ...]:
        """Ids of the refusals that the run knows of: nothing is left to do about them."""
        return tuple(sorted(one.id for one in self.known.values() if one.state in _REFUSED))

    async def stepped(self, ctx: RunContext[Any]) -> None:
        """Note that a step ended with its results in the history, and save it with the next write.

        Raises `RunTaken` or `RunOver` if another process has taken over the run, or it was cancelled.
        """
        self.done.clear()
        self._point = point = Point.of(ctx)
        if self.root is not None or self.saved:
            await self.still_ours()
        if not self.saved:
            return
        # The writer calls this later. It writes nothing if the run is over by then.
        self.broker.runs.save_later(
            lambda: None if self._over else self._progress(point, None, put_down=False), lost=self.histories.forget
        )

    def note(self, answer: ApprovalRequest) -> None:
        """Keep an answer so that its call need not look it up again: the claim reports what changed since."""
        if answer.call is not None:
            self.known[answer.call.key] = answer

    async def still_ours(self) -> None:
        """Raise `RunTaken` or `RunOver` if another process has taken over the run, or it was cancelled."""
        if self.root is not None:
            await self.root.still_ours()
        elif self.saved and not self.is_inner:
            await self.broker.runs.still(self.run.id, self.run.epoch)

    def returned(self, call_id: str, tool: str, result: Any) -> None:
        """Note what a call returned."""
        if isinstance(result, ToolReturn):
            whole = cast("ToolReturn[Any]", result)
            part = ToolReturnPart(tool, whole.return_value, call_id, metadata=whole.metadata)
        else:
            part = ToolReturnPart(tool, result, call_id)
        self.done[call_id] = part

    def fence(self, request: ApprovalRequest) -> tuple[str, int]:
        """Return run id and epoch, the fencing token for a claim: valid while this process executes the run.

        Empty if the run is not saved, or the request belongs to another run.
        """
        return (self.run.id, self.run.epoch) if self.saved and request.run == self.run.id else ("", 0)

    def answered(self, memo: str) -> RunProgress:
        """Mark a nested run as done. `memo` is its answer, for when its call is made again."""
        self._over = True
        self.run = self.run.changed(state=RunState.DONE, rest=memo, tip="")
        return RunProgress(run=self.run, fence=self._fence)

    def failed(self, state: RunState) -> RunProgress:
        """Mark a nested run as failed. If its call is made again, it continues from where it was last saved."""
        self._over = True
        self.run = self.run.changed(state=state)
        return RunProgress(run=self.run, fence=self._fence)

    @property
    def _fence(self) -> tuple[str, int]:
        return (self.root.run.id, self.root.run.epoch) if self.root is not None else ("", 0)

    async def put_down(self, said: Conversation) -> None:
        """Release the run, so that any process can resume it. `said` is the conversation to continue with.

        If the run asked questions, it was saved when they were opened. If it only waits for external calls, it is saved
        here: otherwise the calls that started that work would be made again.
        """
        if not self.saved or not self.held:
            return
        waits = said.deferred_tool_requests
        if waits is not None and waits.calls and not waits.approvals:
            try:
                await self._save(said)
            except Stale:  # as in `opened`
                self.histories.forget()
                await self._save(said)
        await self.broker.runs.put_down(self.run.id, self.run.epoch, self._heard)
        self.held = False

    async def _save(self, said: Conversation) -> None:
        last = self._last(said)
        if last.run.rest:
            await self.broker.runs.save(last)

    def dropped(self) -> None:
        """Release the run without waiting for the write, for a caller that is being stopped."""
        if self.saved and self.held:
            self.broker.runs.put_down_later(self.run.id, self.run.epoch)
            self.held = False

    def stopped(self, state: RunState, detail: str) -> None:
        """End the run without waiting for the write, for a caller that is being stopped."""
        self._over = True
        if self.saved:
            self.broker.runs.end_later(self.run.id, self.run.epoch, state, detail, secrets=tuple(self.secrets))

    async def ended(self, state: RunState, detail: str, said: Conversation | None = None) -> None:
        """End the run. `said` is the whole conversation, if it should be kept."""
        self._over = True
        if not self.saved:
            return
        end, secrets = self.broker.runs.end, tuple(self.secrets)
        if said is None:
            await end(self.run.id, self.run.epoch, state, detail, secrets=secrets)
            return
        try:
            await end(self.run.id, self.run.epoch, state, detail, secrets=secrets, last=self._last(said))
        except Stale:  # as in `opened`
            self.histories.forget()
            await end(self.run.id, self.run.epoch, state, detail, secrets=secrets, last=self._last(said))

    def _last(self, said: Conversation) -> RunProgress:
        """Return the whole conversation as it is saved, or nothing of it if a part has no JSON form."""
        try:
            segments = self._segments(said.messages, said.messages[-1].run_id if said.messages else None)
            rest = ConversationTypeAdapter.dump_json(replace(said, messages=[])).decode()
        except PydanticSerializationError:
            return RunProgress(run=self.run.changed(tip="", rest=""))
        tip = segments[-1].id if segments else self.histories.known(said.messages)[0]
        return RunProgress(run=self.run.changed(tip=tip, rest=rest), segments=tuple(segments))

    def _progress(self, point: Point, deferred: DeferredToolRequests | None, *, put_down: bool) -> RunProgress:
        segments = self._segments(point.messages, point.run_id)
        tip = segments[-1].id if segments else self.histories.known(point.messages)[0]
        self.run = self.run.changed(
            conversation_id=point.conversation_id, tip=tip, rest=self._rest(point, deferred), heard=self._heard
        )
        return RunProgress(run=self.run, segments=tuple(segments), put_down=put_down, fence=self._fence)

    def _segments(self, messages: list[ModelMessage], run_id: str | None) -> list[Segment]:
        """Return the messages that are not stored yet, with those from before this run in a segment of their own."""
        tip, count = self.histories.known(messages)
        before = next((index for index, one in enumerate(messages) if one.run_id == run_id), len(messages))
        segments: list[Segment] = []
        for start, end in ((count, max(before, count)), (max(before, count), len(messages))):
            if start < end:
                segments.append(_segment(tip, messages[start:end]))
                tip = segments[-1].id
                self.histories.remember(tip, messages[:end])
        return segments

    def _rest(self, point: Point, deferred: DeferredToolRequests | None) -> str:
        parts = [part for part in self.done.values() if _has_json(part)]
        conversation = Conversation(
            messages=[ModelRequest(parts=parts)] if parts else [],
            usage=point.usage,
            conversation_id=point.conversation_id,
            deferred_tool_requests=deferred,
        )
        return ConversationTypeAdapter.dump_json(conversation).decode()


def _by_the_model(deferred: DeferredToolRequests, messages: Sequence[ModelMessage]) -> DeferredToolRequests:
    """Return the calls that the model itself made last.

    A call inside another one, as in code mode, is made again by that one on resume, and finds its answer on record.
    PydanticAI takes no result for a call that is not in the history.
    """
    last = next((one for one in reversed(messages) if isinstance(one, ModelResponse)), None)
    made = {part.tool_call_id for part in last.tool_calls} if last is not None else set[str]()
    return replace(
        deferred,
        approvals=[part for part in deferred.approvals if part.tool_call_id in made],
        calls=[part for part in deferred.calls if part.tool_call_id in made],
        metadata={call_id: told for call_id, told in deferred.metadata.items() if call_id in made},
    )


async def conversation_of(broker: Broker, histories: Histories, run: SavedRun) -> Conversation | None:
    """Return the conversation that a saved run continues with, or None if it never paused.

    For a finished turn of a chat this is what the next turn continues with.
    """
    if not run.rest:
        return None
    with _damage("runs", run.id, "rest"):
        rest = ConversationTypeAdapter.validate_json(run.rest)
    messages = histories.of(run.tip)
    if messages is None:
        messages = list[ModelMessage]()
        for segment in await broker.runs.messages(run):
            with _damage("segments", segment.id, "body"):
                messages.extend(ModelMessagesTypeAdapter.validate_json(text_of(segment)))
            histories.remember(segment.id, list(messages))
    return replace(rest, messages=[*messages, *rest.messages])


@contextmanager
def _damage(table: str, row: str, field: str) -> Generator[None]:
    """Raise `StoreDamaged` if what a run continues with cannot be read: the run stays as it is."""
    try:
        yield
    except (ValueError, zlib.error) as error:
        raise StoreDamaged(
            "holds what this version of PydanticAI cannot read", table=table, row=row, field=field
        ) from error


def _segment(parent: str, messages: list[ModelMessage]) -> Segment:
    text = ModelMessagesTypeAdapter.dump_json(messages)
    return Segment(
        id=sha256(parent.encode() + b"\n" + text).hexdigest()[:32],
        parent=parent,
        count=len(messages),
        body=b"z" + zlib.compress(text, 1) if len(text) > SMALL else b"j" + text,
    )


def _has_json(part: ToolReturnPart) -> bool:
    try:
        ModelMessagesTypeAdapter.dump_json([ModelRequest(parts=[part])])
    except PydanticSerializationError:  # it cannot be saved, so the call will run again
        return False
    return True


# --- which run the next one is ---

Given: TypeAlias = tuple[SavedRun, Sequence[ApprovalRequest]]
"""A saved run, and its requests as they were when it was resumed."""
_given: ContextVar[list[Given] | None] = ContextVar("signoff_given_run", default=None)


@contextmanager
def executing(run: SavedRun, requests: Sequence[ApprovalRequest] = ()) -> Generator[None]:
    """Within the context, the first gated run is this one, begun or resumed by the caller, with these requests."""
    token = _given.set([(run, requests)])
    try:
        yield
    finally:
        _given.reset(token)


def given_run() -> Given | None:
    """Take the run set by `executing`. Only the first caller gets it: other runs beside it are runs of their own."""
    waiting = _given.get()
    return waiting.pop() if waiting else None


# --- what a call returned ---


@dataclass(frozen=True, slots=True)
class SavedResult:
    """What a call returned, as it is saved."""

    digest: str = ""
    preview: str = ""
    body: bytes | None = None
    """The result as JSON; None if it has no JSON form, or is too large."""


def saved_result(result: Any) -> SavedResult:
    """Convert a tool's result to its saved form, without a digest if it has no JSON form."""
    value = cast("ToolReturn[Any]", result).return_value if isinstance(result, ToolReturn) else result
    try:
        text = to_json(value)
    except (PydanticSerializationError, ValueError):
        return SavedResult(preview=f"<{type(value).__qualname__}>")
    return SavedResult(sha256(text).hexdigest(), _shown(value, text), text if len(text) <= LARGEST_RESULT else None)


def result_text(result: Any) -> str:
    """Return a tool's result as it is shown to people, for the audit log; empty if it has no text."""
    value = cast("ToolReturn[Any]", result).return_value if isinstance(result, ToolReturn) else result
    if isinstance(value, str):
        return _shown(value, b"")
    try:
        return _shown(value, to_json(value))
    except (PydanticSerializationError, ValueError):
        return f"<{type(value).__qualname__}>"


def _shown(value: Any, text: bytes) -> str:
    shown = value if isinstance(value, str) else text[: LONGEST_SHOWN + 1].decode("utf-8", "replace")
    if len(shown) <= LONGEST_SHOWN:
        return shown
    ended = f"\n[{told}]" if (told := exit_text(shown)) else ""
    return f"{shown[: LONGEST_SHOWN - 1]}…{ended}"  # a secret that is cut is recognised by what follows it


def is_of(request: ApprovalRequest, call: Call, run: str) -> bool:
    """Return whether a request is about exactly this call of a saved run: providers reuse call ids."""
    return request.run == run and request.tool_name == call.tool and request.args_digest == call.args_digest


def replayed(request: ApprovalRequest, saved: bytes | None) -> Any:
    """Return what the model is told about a call that already ran in a process that has ended."""
    if saved is not None:
        with _damage("results", request.id, "result"):
            return from_json(saved)
    claim = request.claim
    note: dict[str, Any] = {"note": "this call was already made, in a process that has ended; it was not repeated"}
    if request.state is State.FAILED:
        note["error"] = claim.error if claim else ""
    elif claim is not None and claim.told_by:
        note["note"] = f"{claim.told_by} confirmed that this call happened; it was not repeated"
        note["result"] = claim.preview
    elif claim is not None:
        note["result, shortened"] = claim.preview
    return json.dumps({name: value for name, value in note.items() if value}, ensure_ascii=False)
