"""`Signoff`, the PydanticAI capability that allows, asks about or denies every tool call of an agent."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from datetime import timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary, WeakValueDictionary

from pydantic_ai import RunContext
from pydantic_ai.agent import AbstractAgent, UserPromptNode
from pydantic_ai.capabilities import (
    AbstractCapability,
    AgentNode,
    CapabilityOrdering,
    CombinedCapability,
    WrapperCapability,
)
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from signoff.attached.marks import mark_attributes
from signoff.broker import Broker
from signoff.channels.terminal import TerminalApprover
from signoff.core.decision import ApprovalDecision
from signoff.core.event import CallEvent
from signoff.core.grant import Grant
from signoff.core.mode import ApprovalMode
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.safe_text import safe_text
from signoff.core.verdict import Requirement
from signoff.errors import AlreadySettled, PolicyError, WrongUse
from signoff.gate.answers import GateAnswers
from signoff.gate.early_tools import refuse_early
from signoff.gate.execution import begin, execute, go_on, pause_of
from signoff.gate.gate import Gate, Judge
from signoff.gate.gated_run import GatedRun
from signoff.gate.likeness import prepare as prepare_likeness
from signoff.gate.missing_gate import require_gate
from signoff.gate.nesting import is_left_over
from signoff.gate.offered_tools import leave_allowed, refuse_session
from signoff.gate.options import (
    GivenRules,
    Rules,
    Who,
    as_wait,
    check_names,
    check_options,
    open_given,
    read_rules,
    rooted,
    signer,
)
from signoff.gate.remembered_answers import Memory, OwnMemory, StoreMemory
from signoff.gate.run_saver import Histories
from signoff.gate.tools import CallReader, as_function
from signoff.gate.tracing import Traces, report_refused
from signoff.gate.workflow_loop import has_threads, in_event_loop, loop_of_workflow, refuse_to_wait
from signoff.policy.engine import Policy
from signoff.policy.phrases import nearest
from signoff.ports import ApproverLike, Clock, GrantStore, Store
from signoff.store.approval_memory import ApprovalMemory
from signoff.store.dropped_stores import close_with
from signoff.store.memory_store import MemoryStore


@dataclass
class Signoff(AbstractCapability[Any]):
    """Human sign-off for every tool call of an agent.

    ```python
    agent = Agent("anthropic:claude-sonnet-5", capabilities=[Signoff("signoff.yaml")])
    ```

    One instance serves one global agent and any number of runs at once. List it last among an agent's capabilities.
    """

    policy: Rules
    """A policy file, a `Policy`, or the rules themselves as Python mappings."""

    _: KW_ONLY

    approver: ApproverLike | None = None
    """Who is asked: an object with `choose`, or a function of the request. By default the people a channel in this
    process reaches (a bot of its own), else the terminal; without one, calls that need an answer are denied."""
    wait: Literal["inline", "suspend"] | float | timedelta = "inline"
    """`inline`: the run waits for the answer. `suspend`: the run ends with `DeferredToolRequests`, to be resumed later.
    A number of seconds is a timeout: the run waits that long, then suspends."""
    mode: ApprovalMode | str = ApprovalMode.INTERACTIVE
    memory: GrantStore | None = None
    """Where answers are remembered. By default an *always* answer goes to a file per project in your home directory, or
    to the store where that outlives the process."""
    on_denied: Literal["tell", "raise"] | None = None
    """Tell the model of a denial as JSON, or raise it as `ApprovalDenied` / `ApprovalBlocked`. By default as the policy
    file says, else `tell`."""
    judge: Judge | None = None
    """Your own function of the call and the `RunContext`. The stricter of its verdict and the policy's wins."""
    reviewers: bool = False
    """Whether another capability of the agent (such as a reviewer model) may answer instead of people, where the rule
    names nobody in particular."""
    labels: Mapping[str, Iterable[str] | str] = field(default_factory=dict[str, "Iterable[str] | str"])
    """Capability labels by tool name or glob, for tools that declare none."""
    tools: Iterable[str] | None = None
    """All tools there are, if you know them: a rule that names another then raises `PolicyError` instead of warning."""
    secrets: Iterable[str] = ()
    """Values to mask wherever a call is shown, besides those that look like secrets."""
    people: Mapping[str, Iterable[str]] = field(default_factory=dict[str, "Iterable[str]"])
    """Roles by person's name, added to those in the policy file."""
    owner: Who = ""
    """Who the agent belongs to, for rules with `not_by: owner`; a name, or a function of the `RunContext`."""
    requester: Who = ""
    """Who a run is for, for rules with `not_by: requester`; a name, or a function of the `RunContext`:
    `lambda ctx: ctx.deps.user`. The function is called once, when the run begins; a resumed run keeps its requester."""
    nested: bool = False
    """Whether a tool that runs another gated agent pauses while that agent waits for people. On resume the tool is
    called again from its beginning and the inner agent continues where it was: code before the inner run repeats."""
    by: str | None = None
    """The role that has to answer every question about this agent, where the rule names none."""
    native: Mapping[str, Policy | Sequence[Policy]] = field(default_factory=dict[str, "Policy | Sequence[Policy]"])
    """Rules for provider-executed (native) tools by `unique_id` or kind, besides `policy`. A tool that the rules do not
    allow is not offered to the model."""
    observe: Callable[[CallEvent], None] | None = None
    """Callback for every step of every call, for progress and logs. It cannot change anything."""
    store: Store | str | None = None
    """Where requests, answers and runs are kept: `sqlite:FILE`, `postgresql://…`, or memory (the default), which ends
    with the process."""
    clock: Clock | None = None

    _names: set[str] = field(init=False, default_factory=set[str], repr=False, compare=False)
    """Names that its agents were given when they were made."""
    _rules: GivenRules | None = field(init=False, default=None, repr=False, compare=False)
    """What `policy` says, once it is read."""
    _made: Gate | None = field(init=False, default=None, repr=False, compare=False)
    _of_workflows: WeakKeyDictionary[asyncio.AbstractEventLoop, Gate] = field(
        init=False, default_factory=WeakKeyDictionary[asyncio.AbstractEventLoop, Gate], repr=False, compare=False
    )
    _making: Lock = field(init=False, default_factory=Lock, repr=False, compare=False)
    _runs: WeakValueDictionary[str, GatedRun] = field(
        init=False, default_factory=WeakValueDictionary[str, GatedRun], repr=False, compare=False
    )
    """The state of each run under way, by its id. The run's toolset keeps it."""

    if not TYPE_CHECKING:

        def __new__(cls, *args: object, **options: object) -> Signoff:
            """Raise `WrongUse` for an unknown option, and suggest the one that was probably meant."""
            check_names(options)
            return super().__new__(cls)

    def __post_init__(self) -> None:
        """Raise `WrongUse` for an option of the wrong type or value, `PolicyError` for wrong rules.

        In a running event loop, nothing is read from the disk here, but where the first run begins; see `ready`.
        """
        check_options({one.name: getattr(self, one.name) for one in fields(self) if one.init})
        blocks = in_event_loop()
        if not blocks or not isinstance(self.policy, str | os.PathLike):
            self._rules = self._read()
        if not blocks:
            self._made = self._make()

    def _read(self) -> GivenRules:
        given = read_rules(self.policy)
        if self.tools is not None and (problems := given.policy.unknown_tools(self.tools)):
            raise PolicyError("\n".join(str(problem) for problem in problems))
        for name, roles in self.people.items():
            given.people[name] = given.people.get(name, frozenset()) | frozenset(roles)
        return given

    def _make(self, own_store: Store | None = None, own_memory: GrantStore | None = None) -> Gate:
        self._rules = self._rules or self._read()
        policy, people, on_denied, names_store = self._rules
        # Symlinks in path arguments are resolved, so the directory they are compared with must be a real path too.
        policy = rooted(policy)
        if names_store and self.store is None and own_store is None and as_wait(self.wait) is not None:
            warnings.warn(_OTHER_STORE.format(self.policy), RuntimeWarning, stacklevel=2)
        store, memory = own_store or open_given(self.store), own_memory or self.memory
        remembers = memory is None and store.is_durable
        broker = Broker(
            store, self.clock, people=people, masked=tuple(self.secrets), remembers=remembers, signer=signer(store)
        )
        if isinstance(self.store, str):
            close_with(broker.ledger, store)
        return Gate(
            policy=policy,
            answers=GateAnswers(broker, self._memory(broker, memory), policy),
            reader=CallReader(
                labels={
                    tool: [given] if isinstance(given, str) else list(given) for tool, given in self.labels.items()
                },
                policy=policy,
                root=policy.root or os.sep,
            ),
            mode=ApprovalMode(self.mode),
            wait=as_wait(self.wait),
            approver=self.approver,
            fallback=lambda: _terminal(self.gate),
            secrets=tuple(self.secrets),
            on_denied=self.on_denied or on_denied,
            judges=(self.judge,) if self.judge is not None else (),
            reviewers=self.reviewers,
            observe=self.observe,
            nested=self.nested,
            native={kind: (own,) if isinstance(own, Policy) else tuple(own) for kind, own in self.native.items()},
            owner=self.owner,
            owners=(self.owner,) if isinstance(self.owner, str) and self.owner else (),
            requester=self.requester,
            actors=Requirement(role=self.by) if self.by else None,
            names=self._names,
        )

    def _memory(self, broker: Broker, given: GrantStore | None) -> Memory:
        if broker.remembers:
            return StoreMemory(broker, lambda call: self.gate.reader.read_for_memory(call))
        return OwnMemory(given if given is not None else ApprovalMemory())

    @property
    def broker(self) -> Broker:
        """The broker of this gate's store, for everything else that requests, runs and grants allow."""
        return self.gate.broker

    @property
    def gate(self) -> Gate:
        """The state that all runs of this capability share; in a workflow, those of this workflow."""
        if self._made is None:
            with self._making:
                self._made = self._made or self._make()
        if not self._made.keeps_record and (loop := loop_of_workflow()) is not None:
            return self._gate_of_workflow(loop)
        return self._made

    def _gate_of_workflow(self, loop: asyncio.AbstractEventLoop) -> Gate:
        """The engine runs a workflow's code from its beginning again: then it must not find what it did before."""
        gate = self._of_workflows.get(loop)
        if gate is None:
            gate = self._of_workflows[loop] = self._make(MemoryStore(), ApprovalMemory(file=None))
        return gate

    async def ready(self) -> None:
        """Read the policy file and open the store, in a thread, if that is still to be done.

        A `Signoff` that is made inside a running event loop leaves it for its first run. Await this where a program
        starts, and a wrong file is an error there.
        """
        if self._made is None and has_threads():
            await asyncio.to_thread(self._get_ready)

    def _get_ready(self) -> None:
        """Make the gate, and import what the first question would import."""
        if self.gate.keeps_record:
            prepare_likeness()

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The policies that judge its calls, one for each layer."""
        rules = self.gate.policy
        return (rules,) if isinstance(rules, Policy) else tuple(rules.policies)

    @property
    def histories(self) -> Histories:
        """Messages of saved runs that this process has read or written."""
        return self.gate.histories

    def report_refused(self, requests: Iterable[ApprovalRequest]) -> None:
        """Report calls to `observe` that were refused before their run was resumed."""
        report_refused(self.gate, requests)

    # --- answering from elsewhere ---

    async def pending(self) -> Sequence[ApprovalRequest]:
        """Requests waiting for an answer, oldest first."""
        return await self.gate.broker.pending()

    async def answer(self, request_id: str, decision: ApprovalDecision, *, by: Actor | str) -> ApprovalRequest:
        """Answer a request from outside the run, such as from a web handler, a bot or a test.

        Raises `AlreadySettled` if somebody answered first, `NotEntitled` if this answer does not count, `EditRefused`
        if edited arguments do not fit the tool.
        """
        who = self.gate.broker.people.signed_in(Actor(name=by, via="api") if isinstance(by, str) else by)
        try:
            return await self.gate.answers.take_by_id(request_id, decision, who)
        except AlreadySettled as late:  # the message quotes a note, which may contain secrets
            request = await self.gate.broker.get(request_id)
            raise AlreadySettled(safe_text(str(late), secrets=request.secrets)).with_moment(late.moment) from late

    def reached_through(self, channel: str) -> None:
        """Register a channel of this process that reaches people: runs without an approver wait for its answers."""
        self.gate.channels.append(channel)

    def not_reached_through(self, channel: str) -> None:
        """Unregister a channel that has ended."""
        self.gate.channels.remove(channel)

    async def cancel(self, request_id: str, reason: str = "withdrawn") -> ApprovalRequest:
        """Withdraw a request, or an approval that was not used."""
        return await self.gate.broker.cancel(request_id, reason)

    async def about(self, call_key: str) -> ApprovalRequest | None:
        """Return the newest request about a call, by `Call.key`."""
        return await self.gate.broker.about(call_key)

    async def requests_of(self, conversation_id: str) -> Sequence[ApprovalRequest]:
        """Return every request of a conversation, oldest first."""
        return await self.gate.broker.of_conversation(conversation_id)

    async def remembered_for(self, ctx: RunContext[Any], tool: ToolsetTool[Any], args: dict[str, Any]) -> Grant | None:
        """Inside a run: return the grant that a person had remembered for such a call, if it would count now."""
        return await self.run_of(ctx).remembered(ctx, tool, args)

    # --- hooks ---

    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return None

    def for_agent(self, agent: AbstractAgent[Any, Any]) -> Signoff:
        own = _gates_in(agent.root_capability)
        if len(own) > 1 and any(one is self for one in own):
            raise _second_gate([(one, _ON_AGENT) for one in own])
        # While an agent is constructed, the name that PydanticAI later guesses from a variable is not set yet. It may
        # be set where this capability is given to a single run, besides the agent's own capabilities.
        if any(one is self for one in own):
            require_gate(agent, _gates_in)
            if agent.name:
                self._names.add(agent.name)
        return self

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        run = self.run_of(ctx)
        if run.going:
            raise WrongUse(_TWICE.format(run_id=ctx.run_id))
        run.going = True
        try:
            return await execute(run, ctx, handler)
        finally:
            run.going = False

    async def before_node_run(self, ctx: RunContext[Any], *, node: AgentNode[Any]) -> AgentNode[Any]:
        """Continue a nested run from where it was saved, whatever it is asked now."""
        run = self.run_of(ctx)
        if run.saved is not None and isinstance(node, UserPromptNode):
            return await go_on(run, ctx, node)
        return node

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> AgentRunResult[Any]:
        run = self.run_of(ctx)
        if run.questions.parked and is_left_over(error):
            raise pause_of(run) if run.level.pauses_with_call else WrongUse(_CANNOT_PAUSE) from error
        raise error

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        mark_attributes(toolset)
        return GatedToolset(toolset, self)

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Turn tools of kind `unapproved` and `external` into plain functions, so that they are judged first."""
        if ctx.realtime and not self.run_of(ctx).checked:
            await refuse_session(self.run_of(ctx).gate, ctx)
        self._look_at_neighbours(ctx)
        self._warn_of_unknown_tools(tool_defs)
        return [as_function(one) for one in tool_defs]

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        run = self.run_of(ctx)
        run.gate.broker.switch.check_now()
        level = run.level
        level.paused.clear()
        if level.saver is not None:
            await level.saver.stepped(ctx)
        elif level.root is not None:
            await level.root.still_ours()
        run.gate.broker.audit_buffer.flush()
        return request_context

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Offer only those provider-executed (native) tools that policy allows: their calls never reach the gate.

        This hook runs for every attempt at a request: a fallback model may bring native tools of its own.
        """
        return await leave_allowed(self.run_of(ctx).gate, ctx, request_context)

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Note that the calls of this response are new: nothing can be on record about them."""
        if response.run_id in (None, ctx.run_id):  # a model that answers from a cache returns an old response
            self.run_of(ctx).questions.made_here[id(response)] = response
        return response

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Gate the tools that other capabilities put on top of the gated toolset, one step earlier."""
        run = self.run_of(ctx)
        if run.trusts_names and tool_def.name in run.covered:
            return await handler(args)
        if run.hooks_below and tool_def.name not in run.covered:
            raise WrongUse(f"{tool_def.name} could be changed by a capability after it was judged: list Signoff last")
        tool = ctx.tool_manager.tools.get(tool_def.name) if ctx.tool_manager and ctx.tool_manager.tools else None
        if tool is None:
            raise WrongUse(f"{tool_def.name} is called, but no toolset of this run has it")
        return await run.run_call(ctx, tool, args, handler, above=True)

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        return await self.run_of(ctx).resolve(ctx, requests) if requests.approvals else None

    # --- parts ---

    async def begin_run(self, ctx: RunContext[Any]) -> GatedRun:
        """Begin the gate's part of a run.

        Raises `WrongUse` if the run has another gate, or if a run with this id is under way here,
        or if its event loop has no threads and the store needs them.
        """
        if len(gates := _gates_in(ctx.root_capability)) > 1:
            agent = [one.gate for one in _gates_in(ctx.agent.root_capability)] if ctx.agent is not None else []
            raise _second_gate([(one, _ON_AGENT if one.gate in agent else _FOR_RUN) for one in gates])
        key = ctx.run_id or ""
        if (other := self._runs.get(key)) is not None and other.going:
            raise WrongUse(_TWICE.format(run_id=key))
        await self.ready()
        if self.gate.keeps_record:
            refuse_to_wait("a Signoff with a store")
        await self.gate.prepare()
        self._runs[key] = run = await begin(self.gate, ctx)
        run.reporter.traces = Traces.of_run(ctx.tracer)
        return run

    def run_of(self, ctx: RunContext[Any]) -> GatedRun:
        """Return the gate's part of the run. Raises `WrongUse` outside one."""
        if (run := self._runs.get(ctx.run_id or "")) is None:
            raise WrongUse("a Signoff capability works inside agent runs only: pass it to Agent(capabilities=[…])")
        return run

    def _look_at_neighbours(self, ctx: RunContext[Any]) -> None:
        """Once per run, look at the other capabilities.

        Refuse those that run tools before the gate or wrap them below it; note those that wrap tools above it.
        """
        run = self.run_of(ctx)
        if run.checked:
            return
        run.checked = True
        root = ctx.root_capability
        if root is not None:
            refuse_early(root)
        chain = list(root.capabilities) if isinstance(root, CombinedCapability) else [root]
        place = next((index for index, one in enumerate(chain) if one is self), None)
        if place is None:
            raise WrongUse("Signoff cannot find its position among the capabilities: list it directly, not wrapped")
        for other in chain[place + 1 :]:
            if _wraps_tools(other):
                raise WrongUse(
                    f"{type(other).__name__} wraps tools below Signoff and could change a call after it was judged.\n"
                    "  List Signoff last: Agent(…, capabilities=[…, Signoff(…)])"
                )
        run.hooks_below = any(_hooks_execution(other) for other in chain[place + 1 :])
        run.trusts_names = not any(_wraps_tools(other) for other in chain[:place])

    def _warn_of_unknown_tools(self, tool_defs: Sequence[ToolDefinition]) -> None:
        """Warn once about tool names in rules that look like typos.

        A name close to one of the agent's tools is a typo; any other may be meant for another agent.
        """
        gate = self.gate
        if gate.checked_names:
            return
        gate.checked_names = True
        names = frozenset(one.name for one in tool_defs)
        for name in sorted(gate.policy.tool_names - names):
            if (close := nearest(name, names, cutoff=0.75)) is not None:
                unknown = f"a rule names the tool {name!r}, which this agent does not have; it has {close!r}"
                warning = f"{gate.policy.file}: {unknown}"
                warnings.warn(warning, UnknownToolWarning, stacklevel=2)


class UnknownToolWarning(UserWarning):
    """A rule names a tool that the agent does not have, and the agent has one with a similar name."""


_OTHER_STORE = (
    "{} names a store, and this Signoff was given none: what it suspends ends with this process, and neither "
    "`signoff inbox` nor another process sees it.\n"
    'Give it the address, Signoff(…, store="…"); or, if it is meant so, store="memory:"'
)
_TWICE = "run_id={run_id!r} belongs to two runs that are under way at once: give each run an id of its own"
_CANNOT_PAUSE = (
    "the policy asks about a call and the run has to pause for the answer, but the agent's output type does not "
    "allow it.\n  Add DeferredToolRequests to it: Agent(…, output_type=[str, DeferredToolRequests]), "
    "or let the run wait in place: Signoff(…, wait='inline')."
)


def _terminal(gate: Gate) -> ApproverLike:
    return TerminalApprover(secrets=gate.secrets)


# --- the last step before a tool runs ---


@dataclass
class GatedToolset(WrapperToolset[Any]):
    """All toolsets of an agent behind the gate. No other capability comes between this wrapper and the tool.

    A run begins here, not in `Signoff.for_run`: a capability that hands out another instance for a run makes PydanticAI
    choose the run's model a second time, which calls a user's function twice.
    """

    signoff: Signoff
    run: GatedRun | None = None

    async def for_run(self, ctx: RunContext[Any]) -> GatedToolset:
        return GatedToolset(await self.wrapped.for_run(ctx), self.signoff, await self.signoff.begin_run(ctx))

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await self.wrapped.get_tools(ctx)
        self._of(ctx).covered = frozenset(tools)
        return tools

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        async def execute(args: dict[str, Any]) -> Any:
            return await self.wrapped.call_tool(name, args, ctx, tool)

        return await self._of(ctx).run_call(ctx, tool, tool_args, execute)

    def _of(self, ctx: RunContext[Any]) -> GatedRun:
        """Return the run that this toolset was made for. Raises `WrongUse` if the context is another run's."""
        if self.run is None:
            raise WrongUse("the gated toolset was not told that a run began: a toolset around it keeps `for_run` back")
        if self.run is not self.signoff.run_of(ctx):
            raise WrongUse(_TWICE.format(run_id=ctx.run_id))
        return self.run


# --- other capabilities of the agent, which could change a call after it was judged ---

_HARMLESS = frozenset({"ToolSearch", "IncludeReturnSchemas", "SetToolMetadata", "DeferredCapabilityLoader"})
"""PydanticAI's own capabilities whose toolsets only add, hide or describe tools."""


def _wraps_tools(capability: AbstractCapability[Any] | None) -> bool:
    """Return whether the capability, or one it wraps, puts a toolset of its own around others."""
    if capability is None or isinstance(capability, Signoff):
        return False
    kind = type(capability)
    if kind.__module__.startswith("pydantic_ai.capabilities.") and kind.__qualname__ in _HARMLESS:
        return False
    if isinstance(capability, CombinedCapability):
        return any(_wraps_tools(one) for one in capability.capabilities)
    if isinstance(capability, WrapperCapability):
        own = kind.get_wrapper_toolset is not WrapperCapability.get_wrapper_toolset
        return own or "get_wrapper_toolset" in vars(capability) or _wraps_tools(capability.wrapped)
    own = kind.get_wrapper_toolset is not AbstractCapability.get_wrapper_toolset
    return own or "get_wrapper_toolset" in vars(capability)


_ON_AGENT, _FOR_RUN = "Agent(capabilities=[…])", "run(capabilities=[…])"


def _gates_in(capability: AbstractCapability[Any] | None) -> list[Signoff]:
    """Return every gate in a capability, also inside others."""
    if isinstance(capability, Signoff):
        return [capability]
    if isinstance(capability, CombinedCapability):
        return [gate for one in capability.capabilities for gate in _gates_in(one)]
    return _gates_in(capability.wrapped) if isinstance(capability, WrapperCapability) else []


def _second_gate(gates: Sequence[tuple[Signoff, str]]) -> WrongUse:
    """Return the error for a run with two gates: the first would answer the questions of the others."""
    places = " and ".join(f"{place} ({gate.gate.policy.file})" for gate, place in sorted(gates, key=lambda one: one[1]))
    return WrongUse(
        f"two Signoff on one run, in {places}: one would ask its approver what the other asks.\n"
        "  Keep one. It can judge by both policies: Signoff(Layers((one, other)))"
    )


def _hooks_execution(capability: AbstractCapability[Any] | None) -> bool:
    """Return whether the capability has hooks that run when a tool is executed."""
    if capability is None or isinstance(capability, Signoff):
        return False
    kind = type(capability)
    return (
        kind.before_tool_execute is not AbstractCapability.before_tool_execute
        or kind.wrap_tool_execute is not AbstractCapability.wrap_tool_execute
    )
