"""A request for approval: the question whether a call may run, its votes and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from signoff.core.call import Call
from signoff.core.canonical import digest
from signoff.core.claim import Claim
from signoff.core.comment import Comment
from signoff.core.decision import ApprovalDecision, Ending, Keeps
from signoff.core.people import ActorKind, Parties
from signoff.core.preview import basis_of, differing
from signoff.core.request_context import NO_CONTEXT, RequestContext
from signoff.core.values import cached
from signoff.core.verdict import ANYONE, Requirement, Verdict
from signoff.core.vote import Vote

CARD, LONG = "_card", "_long"
"""Where `core.card` caches a request's card, and whether it is long. `changed_to` drops both."""


class State(StrEnum):
    """The state of a request. `lifecycle.TABLE` holds the transitions."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    CLAIMED = "claimed"
    """The approval is used; the tool is running."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """The process died between claim and outcome: it is not known whether the call was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What an approval is valid for. If any of it differs when the call is about to run, signoff asks again."""

    tool: str
    args_digest: str
    schema_hash: str = ""
    policy_revision: str = ""
    toolset: str | None = None
    root: str = ""
    """The directory that relative paths start from."""
    leads: str = ""
    """Digest of where the paths in the arguments lead, once symlinks are followed."""
    basis: Mapping[str, str] = field(default_factory=dict[str, str])
    """Digests of what the preview was made from, by name."""

    def changed_since(self, then: Binding) -> tuple[str, ...]:
        """What differs from the binding that was approved, in words."""
        if self == then:
            return ()
        changed: list[str] = []
        if self.tool != then.tool:
            changed.append(f"the tool (it was {then.tool})")
        if self.args_digest != then.args_digest:
            changed.append("the arguments")
        if self.schema_hash != then.schema_hash:
            changed.append("the tool's definition")
        if self.policy_revision != then.policy_revision:
            changed.append("the policy")
        if self.toolset != then.toolset:
            changed.append(f"the toolset (it was {then.toolset or 'another'})")
        if self.root != then.root:
            changed.append("the directory its paths start from")
        elif self.leads and then.leads and self.leads != then.leads:
            changed.append("where its paths lead")
        changed += differing(then.basis, self.basis)
        return tuple(changed)


@dataclass(frozen=True, kw_only=True)
class ApprovalRequest:
    """A request for approval. A user interface needs the first five fields; the rest is bookkeeping."""

    tool_call_id: str
    tool_name: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the tool or the toolset said about the call: `summary`, `reason`, `path`, `diff` …"""
    summary: str = ""
    """One line for a list."""

    id: str = ""
    call: Call | None = None
    verdict: Verdict | None = None
    policy_revision: str = ""
    schema: Mapping[str, Any] | None = None
    """The tool's JSON schema, for editors of arguments."""
    changed: tuple[str, ...] = ()
    """Why it is asked again although it was answered before, one sentence each."""
    stands_for: str = ""
    """Digest of the arguments that the call was made with, where this asks about others that a person had chosen."""
    written: str = ""
    """Digest of the arguments as the model wrote them, where the tool reads them as others: `"3"` as 3, or a default.

    A chat client shows these."""
    problem: str = ""
    """Why the last answer was not accepted."""
    opened_at: datetime | None = None
    deadline: datetime | None = None
    escalated: bool = False
    state: State = State.PENDING
    votes: tuple[Vote, ...] = ()
    decision: ApprovalDecision | None = None
    claim: Claim | None = None
    """Who used the approval, and the outcome of the call."""
    context: RequestContext = NO_CONTEXT
    """The prompt of the run, and what led to the call."""
    keeps: Keeps = Keeps.ALWAYS
    """The longest that the answer can be remembered, in the place that asks."""
    root: str = ""
    """The directory that relative paths in the arguments start from."""
    secrets: tuple[str, ...] = ()
    """Secrets that the program declared: these values are masked wherever the request is shown."""
    may_vary: tuple[Mapping[str, Any], ...] = ()
    """What of the call may vary in calls like it, narrowest first: conditions on arguments, as in a rule's `args`. The
    other arguments stay as they are."""
    requester: str = ""
    """Who the run is for."""
    owners: tuple[str, ...] = ()
    """The owners of the agent, and of the agents around it."""
    run: str = ""
    """Id of the saved run that waits for the answer."""
    title: str = ""
    """The call as it would run, or ran, on one line: with the arguments of a person who approved others.

    Safe to show anywhere: secrets masked, hidden characters made visible.
    """
    assigned: str = ""
    """Who is working on the answer, so that nobody else starts."""
    remind_at: datetime | None = None
    waiter: str = ""
    """Id of the process that waits for the answer, and without which nobody makes the call: once it is gone, the
    request is withdrawn. Empty: the request stays without it, as that of a run, which can be resumed."""
    takes_edits: bool = True
    """Whether the program that makes the call can run it with other arguments. Otherwise it is told them."""
    comments: tuple[Comment, ...] = ()
    """Comments in order, if the request was loaded to be shown. A store keeps them separately."""
    shortage: str = ""
    """Why too few people may approve it now, if it was loaded to be shown; empty if there are enough. Not stored."""
    refused: str = ""
    """Why an approval of the person it was loaded to be shown to would not count; empty if it would. Not stored."""
    version: int = 0
    """Counts changes, for optimistic locking: a store updates a request only if the version is unchanged."""

    @classmethod
    def made(cls, **given: Any) -> ApprovalRequest:
        """Make a request as the constructor does, several times faster. `args` and `metadata` must be given."""
        request = object.__new__(cls)
        held = request.__dict__
        held.update(_DEFAULTS)
        held.update(given)
        return request

    def changed_to(self, **fields: Any) -> ApprovalRequest:
        """Copy the request with other values in some fields: `dataclasses.replace`, several times faster."""
        request = object.__new__(type(self))
        request.__dict__.update(self.__dict__)
        request.__dict__.pop(CARD, None)
        request.__dict__.pop(LONG, None)
        if "decision" in fields or "args" in fields:
            request.__dict__.pop("args_digest", None)
        request.__dict__.update(fields)
        return request

    @property
    def silence(self) -> str:
        """The note for a request that expires."""
        return "too few people answered in time" if self.votes else "nobody answered in time"

    @property
    def requirement(self) -> Requirement:
        """Who must approve, after escalation."""
        requirement = self.verdict.requirement if self.verdict else ANYONE
        return requirement.escalated if self.escalated else requirement

    @property
    def parties(self) -> Parties:
        """The people that a rule may exclude from answering."""
        return Parties(requester=self.requester, owners=self.owners)

    @property
    def owner(self) -> str:
        """The owners as one text, one per line."""
        return "\n".join(self.owners)

    @property
    def worker(self) -> tuple[str, ...]:
        """The chain of workers that led to the call, outermost first."""
        return self.call.worker if self.call else ()

    @property
    def answer(self) -> Literal["", "approved", "edited", "denied"]:
        """How people settled it; empty if it is open, or if anything but a person settled or cancelled it."""
        decision = self.decision
        if decision is None or decision.by is None or decision.by.kind is not ActorKind.PERSON:
            return ""
        if decision.ending is Ending.APPROVED:
            return "approved" if decision.edited_args is None else "edited"
        return "denied" if decision.ending is Ending.DENIED else ""

    @property
    def effective_args(self) -> Mapping[str, Any]:
        """The arguments that would run: the edited ones, if a person edited them."""
        if self.decision is not None and self.decision.edited_args is not None:
            return self.decision.edited_args
        return self.args

    @property
    def other_args(self) -> Mapping[str, Any] | None:
        """The arguments that would run instead of those the call was made with; None if they are the same."""
        if self.decision is not None and self.decision.edited_args is not None:
            return self.decision.edited_args
        return self.args if self.stands_for else None

    @property
    def effective_call(self) -> Call | None:
        """The call that would run: with the edited arguments, if a person edited them."""
        return self.call.changed(args=self.effective_args) if self.call is not None else None

    @property
    def made_with(self) -> str:
        """Digest of the arguments that the call was made with."""
        return self.stands_for or (self.call.args_digest if self.call is not None else "")

    @cached
    def args_digest(self) -> str:
        """Digest of the arguments that would run."""
        args, call = self.effective_args, self.call
        return call.args_digest if call is not None and args is call.args else digest(args)

    @property
    def binding(self) -> Binding:
        """What an approval of this request is valid for."""
        return Binding(
            tool=self.tool_name,
            args_digest=self.args_digest,
            schema_hash=self.call.schema_hash if self.call else "",
            policy_revision=self.policy_revision,
            toolset=self.call.toolset if self.call else None,
            root=self.root,
            leads=self._leads,
            basis=basis_of(self.metadata),
        )

    @property
    def _leads(self) -> str:
        """Empty for edited arguments: their paths are resolved when the call is about to run."""
        edited = self.decision is not None and self.decision.edited_args is not None
        return "" if edited or self.call is None else digest_of_leads(self.call.resolved)


WithEdit: TypeAlias = Callable[[Mapping[str, Any]], ApprovalRequest | None]
"""Returns a request as it would be asked with edited arguments; None if that is not known. It may block."""
_DEFAULTS = {one.name: one.default for one in fields(ApprovalRequest) if one.default is not MISSING}


def digest_of_leads(resolved: Mapping[str, Any]) -> str:
    """Digest that tells whether the paths of two calls lead to the same places. Most calls have no paths."""
    return digest(resolved) if resolved else _NOWHERE


_NOWHERE = digest({})
