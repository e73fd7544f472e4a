"""Run an agent once, until it has an output or waits for people."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any, cast

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.run import AgentRunResult

from signoff.broker.conversations import was_said
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.run import SavedRun
from signoff.gate.capability import Signoff
from signoff.gate.gated_agents import signoff_of
from signoff.gate.gated_calls import asking
from signoff.gate.resume import following, resume_run
from signoff.gate.run_saver import conversation_of, executing
from signoff.ports import ApproverLike
from signoff.workers.stream_events import Listener, listening
from signoff.workers.worker_prompt import Prompt, attached

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerUsage:
    """What a run used so far, including everything it delegated."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    """In US dollars; None if the price of any answer is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a run ended: with an output, or waiting for people."""

    output: Any
    paused: bool = False
    """Whether it is not over. What it waited for may have been answered since, or may be done elsewhere."""
    waiting: tuple[ApprovalRequest, ...] = ()
    elsewhere: tuple[str, ...] = ()
    """Externally executed tools whose results it waits for."""
    run: str = ""
    """Id of the run, if it is saved."""
    store: str = ""
    """The store that it is saved in, if not the default one."""
    resumer: str = ""
    """The program that resumes it by itself once it is answered, if one does."""
    spent: WorkerUsage = field(default_factory=WorkerUsage)
    conversation: Conversation | None = field(default=None, repr=False)
    """The conversation, for a run that continues it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """An agent behind a gate: its own, or one that is added for the run. `approver` is asked in either case."""

    agent: Agent[Any, Any]
    gate: Signoff
    approver: ApproverLike
    model: Model | None = None
    may_pause: bool = False
    adds_pause: bool = False
    """Whether a run may end with open questions although the agent, with a gate of its own, does not declare it."""
    listener: Listener | None = None
    """Gets what the agent says, and what its calls return."""
    reader: str = ""
    """Who reads what it waits for, if it is one person: each request says why their approval would not count."""

    async def run(
        self,
        prompt: Prompt,
        kept: SavedRun | None = None,
        *,
        after: Conversation | None = None,
        options: Mapping[str, Any] = _NOTHING,
    ) -> Finished:
        """Run the agent from the beginning; `kept` is its run in the store, begun by the caller.

        `after` is a conversation that it continues; limits count for this run alone. `options` go to `agent.run`.
        """
        options = self._options(options) | following(after)
        with asking(self.approver):
            if kept is None:
                return await self._finished(await self.agent.run(prompt, **options))
            with executing(kept):
                return await self._finished(await self.agent.run(prompt, **options), kept.id)

    async def resume(
        self,
        run_id: str,
        begin: Callable[[SavedRun], Awaitable[tuple[Prompt, Conversation | None]]],
        *,
        options: Mapping[str, Any] = _NOTHING,
    ) -> Finished:
        """Resume a saved run. If it made no progress, `begin` gives its prompt and the conversation that it follows."""

        async def begins(run: SavedRun) -> Mapping[str, Any]:
            prompt, after = await begin(run)
            conversation = {"conversation_id": run.conversation_id} if run.conversation_id else {}
            return {"user_prompt": prompt, **conversation, **following(after)}

        options = self._options(options)
        with asking(self.approver):
            result = await resume_run(self.agent, run_id, self.gate, begin=begins, **options)
        return await self._finished(result, run_id)

    async def said_in(self, run_id: str) -> Conversation | None:
        """Return the conversation of a finished turn from the store; None if it was not saved completely."""
        broker = self.gate.broker
        run = await broker.runs.inside(run_id)
        return await conversation_of(broker, self.gate.histories, run) if run is not None and was_said(run) else None

    @staticmethod
    def last_answer(said: Conversation) -> str:
        """Return what the model said last: its text, or the arguments of its last tool call."""
        for message in reversed(said.messages):
            if isinstance(message, ModelResponse):
                return message.text or next((call.args_as_json_str() for call in reversed(message.tool_calls)), "")
        return ""

    def _options(self, more: Mapping[str, Any]) -> dict[str, Any]:
        # PydanticAI would name an unnamed agent after the variable it is called through, which is ours.
        options: dict[str, Any] = {"infer_name": False, "model": self.model, **more}
        own = signoff_of(self.agent) is not None
        heard = [listening(self.listener, self.model or self.agent.model)] if self.listener is not None else []
        if heard or not own:
            options["capabilities"] = [*heard, *([] if own else [self.gate])]
        if (self.may_pause and not own) or (self.adds_pause and not can_pause(self.agent)):
            options["output_type"] = [self.agent.output_type, DeferredToolRequests]
        return options

    async def _finished(self, result: AgentRunResult[Any], run: str = "") -> Finished:
        spent = _spent(result)
        if not isinstance(result.output, DeferredToolRequests):
            return Finished(output=result.output, run=run, spent=spent, conversation=result.conversation)
        if run:
            waiting = await self.gate.broker.runs.waiting(run)
        else:
            requests = await self.gate.requests_of(result.conversation_id)
            waiting = tuple(one for one in requests if one.decision is None)
        reader = Actor(name=self.reader) if self.reader else None
        waiting = tuple([await self.gate.broker.shown(one, reader) for one in waiting])
        own = self.gate.store if isinstance(self.gate.store, str) else ""
        elsewhere = tuple(part.tool_name for part in result.output.calls)
        return Finished(output=None, paused=True, waiting=waiting, elsewhere=elsewhere, run=run, store=own, spent=spent)


def finished_of(result: object) -> Finished | None:
    """Return how a run ended that a program executed, from its result; None if that is no result of an agent."""
    if not isinstance(result, AgentRunResult):
        return None
    output = cast("AgentRunResult[Any]", result).output
    if isinstance(output, DeferredToolRequests):
        return Finished(output=None, paused=True, elsewhere=tuple(part.tool_name for part in output.calls))
    return Finished(output=output)


def can_pause(agent: Agent[Any, Any]) -> bool:
    """Return whether a run of the agent may end with open questions."""
    kinds: Any = agent.output_type
    listed = cast("Sequence[Any]", kinds) if isinstance(kinds, list | tuple) else (kinds,)
    return any(kind is DeferredToolRequests for kind in listed)


def _spent(result: AgentRunResult[Any]) -> WorkerUsage:
    usage = result.usage
    answers = [message for message in result.new_messages() if isinstance(message, ModelResponse)]
    # A sum that leaves out answers without a price would look complete.
    is_known = usage.cost is not None and all(answer.usage.cost is not None for answer in answers)
    return WorkerUsage(
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost=usage.cost if is_known else None,
    )


def with_files(text: str, files: Sequence[str]) -> Prompt:
    """Return a prompt with files attached to it. Raises `WrongUse` for a file that cannot be attached."""
    return [text, *(attached(file)[0] for file in files)] if files else text
