"""The state that all runs of a gated agent share: the policy, who is asked, where answers are kept, how it refuses."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, Literal

from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition

from signoff.attached.checks import said
from signoff.broker import Broker
from signoff.broker.secret_key import secret_key
from signoff.channels.headless import ELSEWHERE
from signoff.core.call import Call
from signoff.core.event import CallEvent
from signoff.core.loosening import NOT_LOOSENED, Loosened
from signoff.core.mode import ApprovalMode
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.gate.answers import GateAnswers
from signoff.gate.options import Who, name_of
from signoff.gate.run_saver import Histories
from signoff.gate.tools import KIND, CallReader, Origin
from signoff.policy.engine import Policy
from signoff.policy.index import NOT_MATCHED
from signoff.policy.joint_requirement import together
from signoff.policy.layers import Layers
from signoff.policy.policy_text import layers_of
from signoff.policy.strictest_verdict import strictest
from signoff.ports import ApproverLike, judging

Judge = Callable[[Call, RunContext[Any]], object]
"""A function of yours that gets the call and the run's context, and returns an effect's name, a `Verdict`, or None."""

_STRICTEST = (ApprovalMode.AUTO_DENY, ApprovalMode.INTERACTIVE, ApprovalMode.AUTO_APPROVE)
CHANGED = "its arguments changed while they were judged"


TOOL_ASKS = Verdict(effect=Effect.ASK, rules=("tool",), reason="the tool itself asks for approval")


@dataclass(slots=True)
class Gate:
    """The shared part of a `Signoff` capability."""

    policy: Policy | Layers
    answers: GateAnswers
    reader: CallReader
    mode: ApprovalMode
    wait: timedelta | None
    """How long a run waits in place for an answer (timeout): None = until it comes, zero = not at all."""
    approver: ApproverLike | None
    fallback: Callable[[], ApproverLike]
    """Makes the approver to use where none is named."""
    on_denied: Literal["tell", "raise"]
    judges: tuple[Judge, ...]
    """The caller's own functions, of this run and of the runs around it."""
    reviewers: bool
    """Whether another capability's approval in the same run counts where the rule wants nobody in particular."""
    secrets: tuple[str, ...] = ()
    """Values that are masked wherever a call is shown."""
    observe: Callable[[CallEvent], None] | None = None
    nested: bool = False
    """Whether a call whose tool runs another gated agent pauses with it, and is made again from its beginning."""
    loosened: Loosened = NOT_LOOSENED
    """What was loosened when the run was started, where a command says so; `mode` alone says nothing about that."""
    native: Mapping[str, tuple[Policy, ...]] = field(default_factory=dict[str, "tuple[Policy, ...]"])
    """More rules for provider-executed (native) tools, by their unique id or kind."""
    owner: Who = ""
    """Who the agent belongs to, for rules with `not_by: owner`; for a run, a name."""
    owners: tuple[str, ...] = ()
    """Who the agents of a run belong to: this one and those around it."""
    requester: Who = ""
    """Who runs are for, for rules with `not_by: requester`; for a run, a name."""
    actors: Requirement | None = None
    """What every question requires besides what the rules say."""
    checked_names: bool = False
    """Whether the rules' tool names were compared with an agent's tools."""
    histories: Histories = field(default_factory=Histories)
    """Messages of saved runs that are already in the store."""
    names: set[str] = field(default_factory=set[str])
    """Explicit names of the agents it was made for."""
    channels: list[str] = field(default_factory=list[str])
    """Channels in this process that reach people: where no approver is named, runs wait for their answers."""
    broker: Broker = field(init=False)
    keeps_record: bool = field(init=False)
    """Whether events are recorded in a durable store."""
    _default: ApproverLike | None = None
    _prepared: bool = False

    def __post_init__(self) -> None:
        self.broker = self.answers.broker
        self.keeps_record = self.broker.store.is_durable

    @property
    def suspends(self) -> bool:
        """Whether a run that asks ends at once, to be resumed later."""
        return self.wait is not None and not self.wait

    def named_for(self, ctx: RunContext[Any], requester: str = "") -> Gate:
        """Return this gate for one run, with the names that its functions return for it.

        `requester` is who the run is for, if that is known already: the run was resumed, or is nested.
        """
        if not callable(self.owner) and not callable(self.requester):
            return self
        owner = name_of("owner", self.owner, ctx)
        requester = requester or name_of("requester", self.requester, ctx)
        return replace(self, owner=owner, owners=(owner,) if owner else (), requester=requester)

    def inside(self, outer: Gate, *, pauses: bool) -> Gate:
        """Return this gate for a run nested in one of another gate, whose rules bind it and which takes its answers.

        With `pauses` it waits for answers as the outer one does.
        """
        policy = Layers(_distinct((*layers_of(outer.policy), *layers_of(self.policy))))
        reader = replace(
            self.reader,
            key=outer.reader.key,
            claims=(*outer.reader.claims, *((outer.reader.labels,) if outer.reader.labels else ())),
            policy=policy,
            several_roots=len({one.root for one in policy.policies}) > 1,
        )
        asked = tuple(one for one in (outer.actors, self.actors) if one is not None)
        kinds = {*outer.native, *self.native}
        return replace(
            self,
            policy=policy if len(policy.policies) > 1 else self.policy,
            answers=outer.answers,
            approver=outer.approver,
            fallback=outer.default_approver,
            channels=outer.channels,
            _default=None,
            reader=reader,
            mode=min(outer.mode, self.mode, key=_STRICTEST.index),
            reviewers=outer.reviewers and self.reviewers,
            judges=(*outer.judges, *self.judges),
            native={kind: (*outer.native.get(kind, ()), *self.native.get(kind, ())) for kind in kinds},
            actors=together(asked) if asked else None,
            owners=tuple(dict.fromkeys((*outer.owners, *self.owners))),
            requester=outer.requester,
            wait=outer.wait if pauses else self.wait,
            secrets=tuple(dict.fromkeys((*self.secrets, *outer.secrets))),
            observe=self.observe or outer.observe,
            loosened=outer.loosened | self.loosened,
            histories=outer.histories,
        )

    async def prepare(self) -> None:
        """Before a run, load the key with which the processes of a store tell secrets apart."""
        if not self._prepared and self.keeps_record:
            self.reader = replace(self.reader, key=await secret_key(self.broker.store))
            self._prepared = True

    def default_approver(self) -> ApproverLike:
        """Return the approver for where none is named."""
        if self.channels:
            return ELSEWHERE
        self._default = self._default or self.fallback()
        return self._default

    def plain_verdict(self, tool_def: ToolDefinition, call: Call, origin: Origin) -> Verdict | None:
        """Return the policy's verdict if it alone decides; None if the tool, its toolset or a judge decides too."""
        by_kind = tool_def.metadata is not None and tool_def.metadata.get(KIND) == "unapproved"
        if self.judges or by_kind or origin.checks:
            return None
        return self._asked_of(self._reasoned(self.policy.judge_layer(call), call))

    async def verdict(self, ctx: RunContext[Any], tool_def: ToolDefinition, call: Call, origin: Origin) -> Verdict:
        """Return the strictest verdict of the policy, the tool, its toolset and the caller's own functions."""
        layers = [found] if (found := self.policy.judge_layer(call)) is not None else []
        if tool_def.metadata is not None and tool_def.metadata.get(KIND) == "unapproved":
            layers.append(TOOL_ASKS)
        before = json.dumps(call.args)
        token = judging.set(call)
        layers.extend(await said(origin.checks, partial(json.loads, before), ctx))
        judging.reset(token)
        for judge in self.judges:
            layers.extend(await judged_by(judge, call.changed(args=json.loads(before)), ctx))
        if json.dumps(call.args) != before:
            layers.append(Verdict(effect=Effect.ASK, reason=CHANGED, errors=(CHANGED,)))
        return self._asked_of(self._reasoned(strictest(layers), call))

    def _reasoned(self, found: Verdict | None, call: Call) -> Verdict:
        """Return the verdict. If nobody decided, its reason says why the nearest rule of the policy does not match."""
        if found is not None and not found.yields:
            return found
        silent = found or self.policy.silence(call)
        why = self.policy.nearly(call)
        return replace(silent, reason=f"{NOT_MATCHED.reason}: {why}") if why else silent

    def _asked_of(self, verdict: Verdict) -> Verdict:
        if self.actors is None or verdict.effect is not Effect.ASK:
            return verdict
        return replace(verdict, requirement=together((verdict.requirement, self.actors)))


def _distinct(policies: Iterable[Policy]) -> tuple[Policy, ...]:
    """Return each layer once: agents of one project share most of them."""
    return tuple({(one.revision or id(one), one.root, one.name): one for one in policies}.values())


async def judged_by(judge: Judge, call: Call, ctx: RunContext[Any]) -> list[Verdict]:
    """Return the verdict of a caller's function about a call, if it has one. If it raises, the call is asked about."""
    try:
        answer = judge(call, ctx)
        if inspect.isawaitable(answer):
            answer = await answer
        return [] if answer is None else [_as_verdict(answer)]
    except Exception as error:
        problem = f"the judge's own check failed: {error!r}"
        return [Verdict(effect=Effect.ASK, rules=("judge",), reason=problem, errors=(problem,))]


def _as_verdict(answer: object) -> Verdict:
    if isinstance(answer, Verdict):
        return answer
    if isinstance(answer, bool):
        effect = Effect.ASK if answer else Effect.ALLOW
    elif isinstance(answer, str):
        effect = Effect(answer)
    else:
        raise TypeError(f"expected allow, ask, deny, a Verdict, a bool or None, not {answer!r}")
    verb = {Effect.ALLOW: "allows", Effect.ASK: "asks about", Effect.DENY: "refuses"}[effect]
    return Verdict(effect=effect, rules=("judge",), reason=f"the judge's own check {verb} this call")
