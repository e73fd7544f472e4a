"""What every handler works with."""

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
from signoff.server.event_stream import LiveEvents
from signoff.server.identity import Identify
from signoff.server.meters import Meters
from signoff.server.presence import Presence

if TYPE_CHECKING:
    from signoff.outside.client_gate import ClientGate


class RunControl(Protocol):
    """Starts and resumes runs; what is above the server implements it."""

    async def start(
        self,
        worker: str,
        prompt: str,
        *,
        input: Mapping[str, Any] | None,
        requester: str,
        behind: str | None = None,
    ) -> str:
        """Begin a run, and give its id. Raises `WrongUse` for a worker that is not there.

        `behind` is who answers for a program that is the requester, as `SavedRun.behind`.
        """
        ...

    async def resume(self, run_id: str) -> None:
        """Have a run looked at now: it goes on if it can. Raises `RunError` where it cannot."""
        ...

    async def hindrance(self, run_id: str) -> str:
        """Why a run that could go on cannot go on here; empty where it can. Not yet safe to show."""
        ...

    async def check_agent(self, request: ApprovalRequest) -> None:
        """Raise where the agent that waits for a request cannot be asked about it here."""
        ...

    def ask_agent(self, question: Comment) -> None:
        """Have it answer a question about the request, beside its run. The answer comes when it does."""
        ...

    def workers(self) -> Mapping[str, str]:
        """What can be started, by name, each with what it is for."""
        ...


class Rules(Protocol):
    """The project's policy, for questions about it."""

    async def explain(self, call: Call) -> Explanation:
        """What the policy says about a call, and how it comes about."""
        ...

    async def drafts(self, request: ApprovalRequest) -> RuleDrafts:
        """Rules that could be made of a call that was asked about. Raises `WrongUse` where none may be written."""
        ...


class CallGates(Protocol):
    """Makes gates for calls of agents elsewhere, by the project's policy; what is above the server implements it."""

    @property
    def directory(self) -> str:
        """Where relative paths in their calls are taken to start from."""
        ...

    async def gate(self, requester: str) -> ClientGate:
        """The gate as the policy is now, for agents that somebody answers for. Raises where it cannot be read."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """What the server is about."""

    broker: Broker
    inbox: StoreInbox
    """Answers that come in here are checked by the project's rules."""
    identify: Identify
    people: Callable[[], Mapping[str, Person]]
    """Who is on file now."""
    runs: RunControl | None = None
    rules: Rules | None = None
    gates: CallGates | None = None
    """None: no agent elsewhere is served."""
    meters: Meters = field(default_factory=Meters)
    """What is counted for whoever watches over the server."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server is shutting down: nothing new is begun."""
    is_mounted: bool = False
    """Whether another application is around it, which signs people in and out: there are no keys of ours."""
    sign_in_url: str = ""
    """Where that application signs people in; empty: it does not say."""
    title: str = "signoff"
    """What the pages are about: the project's name."""
    ready: Callable[[], Awaitable[str]] | None = None
    """Why the server is not ready; empty where it is."""
    live: LiveEvents = field(init=False)
    """What happens, for those who listen."""
    presence: Presence = field(init=False)
    """Who looks at what."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "live", LiveEvents(self.broker.store))
        object.__setattr__(self, "presence", Presence(self.live))
