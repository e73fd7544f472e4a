"""Resume paused runs, which are saved as text or in the store."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation, ConversationTypeAdapter
from pydantic_ai.messages import UserContent
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests

from signoff.core.request import ApprovalRequest
from signoff.core.run import SavedRun
from signoff.errors import WaitsElsewhere, WrongUse
from signoff.gate.capability import Signoff
from signoff.gate.gated_agents import signoff_of
from signoff.gate.nesting import entry_id
from signoff.gate.pause import results_of, waited_for
from signoff.gate.run_saver import conversation_of, executing

DepsT = TypeVar("DepsT")
OutT = TypeVar("OutT")

VERSION = 1
"""1: the conversation as PydanticAI writes it, with the requests it waits for."""


@dataclass(frozen=True, kw_only=True)
class SuspendedRun:
    """A run that ended with `DeferredToolRequests`. It permits nothing by itself: approvals are in the store."""

    conversation: Conversation
    version: int = field(default=VERSION)

    @classmethod
    def of(cls, result: AgentRunResult[Any]) -> SuspendedRun:
        """Return what to keep of a run that waits for answers. Raises `WrongUse` if it does not."""
        if not isinstance(result, AgentRunResult):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise WrongUse(f"give a run's ID, a SuspendedRun, or the result it was suspended with, not {result!r}")
        if not isinstance(result.output, DeferredToolRequests):
            raise WrongUse("this run is finished: its output is a result, not DeferredToolRequests")
        return cls(conversation=result.conversation)

    def to_json(self) -> str:
        conversation = ConversationTypeAdapter.dump_python(self.conversation, mode="json")
        return json.dumps({"version": self.version, "conversation": conversation})

    @classmethod
    def from_json(cls, text: str | bytes) -> SuspendedRun:
        """Read a saved run. Raises `WrongUse` for an unknown version."""
        state = json.loads(text)
        if not isinstance(state, dict) or state.get("version") != VERSION:  # pyright: ignore[reportUnknownMemberType]
            raise WrongUse(f"this is not a suspended run of version {VERSION}")
        return cls(conversation=ConversationTypeAdapter.validate_python(state["conversation"]))

    @property
    def requests(self) -> DeferredToolRequests:
        """The calls it waits for."""
        return self.conversation.deferred_tool_requests or DeferredToolRequests()


async def resume(
    agent: Agent[DepsT, OutT],
    run: str | SuspendedRun | AgentRunResult[Any],
    signoff: Signoff | None = None,
    *,
    calls: Mapping[str, Any] | None = None,
    prompt: str | Sequence[UserContent] | None = None,
    **options: Any,
) -> AgentRunResult[OutT]:
    """Continue a paused run: calls that were answered run or are refused, the others stay open.

    `run` is a `SuspendedRun`, the result the run was suspended with, or the id of a run in the store of the agent's
    gate (or the beginning of the id), including a run whose process died. `calls` are results of externally executed
    tools by call id. `prompt` is needed where such a run died before it asked anything and its prompt was more than
    text. `options` go to `agent.run` (`deps`, `usage_limits` …). Resuming twice is safe: every approval is used once.
    Raises `RunTaken` if another process executes the run, `RunOver` if it has ended.
    """
    if isinstance(run, str):
        return await resume_run(agent, run, signoff, calls=calls, prompt=prompt, **options)
    if not isinstance(run, SuspendedRun):
        run = SuspendedRun.of(run)
    gate = signoff or signoff_of(agent)
    if gate is None:
        raise WrongUse("this agent has no Signoff capability, so its run cannot be resumed")
    known = await _on_record(gate, run.conversation)
    if saved := await _saved_as(gate, run.conversation, known):
        return await resume_run(agent, saved, gate, calls=calls, **options)
    return await _go_on(agent, gate, run.conversation, known, calls, options)


async def resume_run(
    agent: Agent[DepsT, OutT],
    run_id: str,
    signoff: Signoff | None = None,
    *,
    calls: Mapping[str, Any] | None = None,
    prompt: Any = None,
    begin: Callable[[SavedRun], Awaitable[Mapping[str, Any]]] | None = None,
    **options: Any,
) -> AgentRunResult[OutT]:
    """Take a run in the gate's store, execute it until it ends or waits, and put it down.

    The run is named by its id or the beginning of it. Raises `RunTaken` if another process executes it, `RunOver` if it
    has ended. A run that died before it asked anything starts again with its prompt: the saved text, or `prompt` if it
    was more than text. `begin` gives the arguments of `agent.run` for that instead, and is only called then: what was
    read of a run before it was taken may be out of date. `calls` and `options` are as for `resume`.
    """
    gate = signoff or signoff_of(agent)
    if gate is None:
        raise WrongUse("this agent has no Signoff capability, so its run cannot be resumed")
    broker = gate.broker
    run, requests = await broker.runs.take_up(run_id, loosened=gate.gate.loosened)
    try:
        conversation = await conversation_of(broker, gate.histories, run)
        with executing(run, requests):
            if conversation is None:
                begins = await begin(run) if begin is not None else {"user_prompt": prompt or run.prompt}
                return await agent.run(**{"infer_name": cast("Any", False), **options, **begins})
            _refuse_without_results(run.id, conversation, calls or {})
            known = {request.call.key: request for request in requests if request.call is not None}
            return await _go_on(agent, gate, conversation, known, calls, options)
    except BaseException:
        broker.runs.put_down_later(run.id, run.epoch)
        raise
    finally:
        broker.runs.let_go(run.id)


def _refuse_without_results(run_id: str, conversation: Conversation, calls: Mapping[str, Any]) -> None:
    """Raise `WaitsElsewhere` if results of external tools are missing: without them the step cannot continue.

    PydanticAI would refuse it too, but as an error of the run, which would end the run.
    """
    waits = conversation.deferred_tool_requests
    missing = [part for part in (waits.calls if waits is not None else ()) if part.tool_call_id not in calls]
    if missing:
        names = ", ".join(f"{part.tool_name} ({part.tool_call_id})" for part in missing)
        raise WaitsElsewhere(
            f"run {run_id} waits for external results: {names}.\n"
            "  Supply them: await signoff.resume(agent, run_id, calls={call id: result}); "
            f"or end it: signoff cancel {run_id}"
        )


def following(said: Conversation | None) -> dict[str, Any]:
    """Return options for `agent.run` to continue a conversation with a new turn. Usage limits count for it alone."""
    if said is None:
        return {}
    return {"message_history": said.messages, "conversation_id": said.conversation_id}


async def _saved_as(gate: Signoff, conversation: Conversation, known: Mapping[str, ApprovalRequest]) -> str:
    """Return the id of the run in the store whose calls wait for people or for nested runs; empty if there is none."""
    if not gate.broker.store.is_durable:
        return ""
    for key in waited_for(conversation).values():
        if (request := known.get(key)) is not None and request.run:
            return request.run
        if (entry := await gate.broker.runs.inside(entry_id(key))) is not None:
            return entry.parent
    return ""


async def _on_record(gate: Signoff, conversation: Conversation) -> dict[str, ApprovalRequest]:
    """Return the requests about the calls that a conversation waits for, by call key."""
    known: dict[str, ApprovalRequest] = {}
    for key in waited_for(conversation).values():
        if (request := await gate.about(key)) is not None:
            known[key] = request
    return known


async def _go_on(
    agent: Agent[DepsT, OutT],
    gate: Signoff,
    conversation: Conversation,
    known: Mapping[str, ApprovalRequest],
    calls: Mapping[str, Any] | None,
    options: Mapping[str, Any],
) -> AgentRunResult[OutT]:
    run_options: dict[str, Any] = {"infer_name": False, **options}
    raises = gate.on_denied == "raise"
    if (results := results_of(conversation, known, raises=raises)) is not None:
        waited = waited_for(conversation).values() if not raises else ()  # otherwise the gate reports it when it raises
        gate.report_refused(one for key in waited if (one := known.get(key)) is not None)
        results.calls.update(calls or {})
        run_options["deferred_tool_results"] = results
    return await agent.run(conversation=conversation, **run_options)
