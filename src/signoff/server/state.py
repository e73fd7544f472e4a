"""The state that every handler of the server uses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from signoff.broker import Broker
from signoff.channels.rule_drafts import RuleDrafts
from signoff.config import Person
from signoff.core.call import Call
from signoff.core.comment import Comment
from signoff.core.request import ApprovalRequest
from signoff.delivery.channel_inbox import StoreInbox
from signoff.policy.explain import Explanation
from signoff.server.identity import Identify
from signoff.server.live_events import LiveEvents
from signoff.server.meters import Meters
from signoff.server.presence import Presence

if TYPE_CHECKING:
    from signoff.outside.client_gate import ClientGate


class RunControl(Protocol):
    """Starts and resumes runs; implemented in a layer above the server."""

    async def start(
        self,
        worker: str,
        prompt: str,
        *,
        input: Mapping[str, Any] | None,
        requester: str,
        behind: str | None = None,
    ) -> str:
        """Start a run, and return its id. Raises `WrongUse` for an unknown worker.

        `behind` is who answers for a requester that is a program, as `SavedRun.behind`.
        """
        ...

    async def resume(self, run_id: str) -> None:
        """Resume a run now, if it can continue. Raises `RunError` if it cannot."""
        ...

    async def hindrance(self, run_id: str) -> str:
        """Why a run that could continue cannot continue here; empty if it can. Not yet safe to show."""
        ...

    async def check_agent(self, request: ApprovalRequest) -> None:
        """Raise if the agent that waits for a request cannot be asked about it here."""
        ...

    def ask_agent(self, question: Comment) -> None:
        """Have the agent answer a question about the request, beside its run. The answer comes later."""
        ...

    def workers(self) -> Mapping[str, str]:
        """Return the workers that can be started, by name, each with its description."""
        ...


class Rules(Protocol):
    """The project's policy, for questions about it."""

    async def explain(self, call: Call) -> Explanation:
        """Return the verdict for a call, and how it came about."""
        ...

    async def drafts(self, request: ApprovalRequest) -> RuleDrafts:
        """Return proposed rules for the call of a request. Raises `WrongUse` if none may be written."""
        ...


class CallGates(Protocol):
    """Makes gates for calls of remote agents, by the project's policy; implemented in a layer above the server."""

    @property
    def directory(self) -> str:
        """Where relative paths in their calls start from."""
        ...

    async def gate(self, requester: str) -> ClientGate:
        """Return a gate with the current policy, for agents that `requester` answers for.

        Raises if it cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """What all handlers share."""

    broker: Broker
    inbox: StoreInbox
    """Answers that come in here are checked by the project's rules."""
    identify: Identify
    people: Callable[[], Mapping[str, Person]]
    """Who is listed now."""
    runs: RunControl | None = None
    rules: Rules | None = None
    gates: CallGates | None = None
    """None: remote agents are not served."""
    meters: Meters = field(default_factory=Meters)
    """Metrics for operators."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server is shutting down: nothing new is started."""
    is_mounted: bool = False
    """Whether another application mounts this one and signs people in and out: there are no access keys here."""
    sign_in_url: str = ""
    """Where that application signs people in; empty if it does not say."""
    title: str = "signoff"
    """The title of the pages: the project's name."""
    ready: Callable[[], Awaitable[str]] | None = None
    """Returns why the server is not ready; empty if it is."""
    live: LiveEvents = field(init=False)
    """Events for listeners."""
    presence: Presence = field(init=False)
    """Who is looking at which request."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "live", LiveEvents(self.broker.store))
        object.__setattr__(self, "presence", Presence(self.live))
