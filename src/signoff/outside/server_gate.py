"""The gate for calls that people are asked about elsewhere: policy here decides first, and a server about the rest.

The server judges by its own policy, asks its people, and keeps the record. Whatever it does not clearly approve does
not run. Policy here decides once more after its answer, and an approval is spent there before the call runs here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from os import urandom
from typing import Any, TypeVar

from signoff.broker.wall_clock import pause_for
from signoff.core.aap import AapStatus
from signoff.core.canonical import digest
from signoff.errors import ServerFailed
from signoff.outside.aap_client import AapClient, AapReply, ServerAway
from signoff.outside.consumed_calls import ConsumedCalls
from signoff.outside.outside_call import OutsideCall
from signoff.outside.outside_gate import TIMEOUT, CallPermission, OutsideGate
from signoff.ports import Clock

T = TypeVar("T")

SERVER = "the server"
AWAY = timedelta(seconds=30)
"""How long a server may be away while people are waited for: it may be restarted."""
_AGAIN = timedelta(seconds=1)
"""Between two exchanges, also where a server does not wait for people although it is told to."""


@dataclass(slots=True)
class ServerGate:
    """Decides about the calls of another program's agent, with the people of a server."""

    gate: Callable[[], OutsideGate]
    """Makes what decides first, by what policy says now: a call that it denies or allows never gets to the server."""
    client: AapClient
    consumed: ConsumedCalls
    patience: timedelta
    """How long a decision is waited for."""

    async def decide(self, outside: OutsideCall) -> CallPermission:
        """As `OutsideGate.decide`. Raises `ServerFailed` where the server cannot be asked."""
        import asyncio

        gate = self.gate()
        if (here := await gate.at_once(outside)) is not None:
            return here
        # It runs evenly: whoever sets the clock on the wall changes nothing about it.
        over = asyncio.ensure_future(pause_for(gate.broker.clock, self.patience))
        try:
            request = await self.client.submit(self._key(outside), self._body(outside))
            answered = asyncio.ensure_future(self._answered(outside, request, gate.broker.clock))
            try:
                await asyncio.wait([answered, over], return_when=asyncio.FIRST_COMPLETED)
            finally:
                answered.cancel()  # before the request is withdrawn: nothing is consumed for a call that is refused
            return answered.result() if answered.done() else await self._given_up(outside, request)
        finally:
            over.cancel()

    def has_run(self, outside: OutsideCall) -> bool:
        """Whether a call ran on an approval of the server, and nobody has told it what came of it."""
        return bool(self.consumed.find(outside))

    async def report(self, outside: OutsideCall, *, error: str | None = None) -> None:
        """Tell the server what came of a call that ran on its approval."""
        if request := self.consumed.take(outside):
            await self.client.report(request, failed=error is not None)

    async def _answered(self, outside: OutsideCall, request: AapReply, clock: Clock) -> CallPermission:
        while request.status is AapStatus.PENDING:
            request = await self._patiently(clock, lambda request=request: self.client.look(request))
            if request.status is AapStatus.PENDING:
                await pause_for(clock, _AGAIN)
        refused = CallPermission(allowed=False, args=outside.args, by=SERVER, request=request.id)
        if request.status is not AapStatus.APPROVED:
            return replace(refused, reason=request.note or f"the request was {request.status}")
        if request.is_consumed:
            return replace(refused, reason="its approval was used: a call runs once", spent=True)
        here = await self.gate().at_once(outside)
        if here is not None and not here.allowed:
            reason = f"it was approved on {self.client.url}, but is refused here by now: {here.reason}"
            return replace(here, reason=reason, request=request.id)
        key = urandom(16).hex()
        await self._patiently(clock, lambda: self.client.consume(request, key))
        self.consumed.add(outside, request.id)
        reason = request.note or f"approved on {self.client.url}"
        return CallPermission(allowed=True, args=outside.args, by=SERVER, reason=reason, request=request.id)

    async def _patiently(self, clock: Clock, send: Callable[[], Awaitable[T]]) -> T:
        """What the server answers, which may be away for a moment, or busy as long as it likes."""
        import asyncio

        gone = None
        try:
            while True:
                try:
                    return await send()
                except ServerAway as away:
                    if away.pause:
                        await pause_for(clock, timedelta(seconds=away.pause))
                        continue
                    gone = gone or asyncio.ensure_future(pause_for(clock, AWAY))
                    if gone.done():
                        raise
                    await pause_for(clock, _AGAIN)
        finally:
            if gone is not None:
                gone.cancel()

    async def _given_up(self, outside: OutsideCall, request: AapReply) -> CallPermission:
        reason = "nobody answered before the agent stopped waiting"
        try:
            await self.client.cancel(request)
        except ServerFailed as error:  # then its own deadline ends it, and nobody here consumes it
            reason = f"{reason}; {error}"
        return CallPermission(allowed=False, args=outside.args, by=TIMEOUT, reason=reason, request=request.id)

    def _key(self, outside: OutsideCall) -> str:
        """The same for the same call of the same session with the same arguments there, and for no other."""
        called = [outside.session, outside.call_id, outside.tool, dict(outside.args), outside.directory]
        return f"hook-{digest(called)}"

    def _body(self, outside: OutsideCall) -> dict[str, Any]:
        context = {"directory": outside.directory, "agents": list(outside.agents), "session": outside.session}
        if outside.doubt:
            context["doubt"] = outside.doubt
        return {
            "tool": outside.tool,
            "arguments": {**outside.args, **outside.reads(outside.args)},
            # A little less than is waited here, so that the server is the one to say that nobody answered.
            "timeout": f"{max(1, int(self.patience.total_seconds()) - 1)}s",
            "context": context,
        }
