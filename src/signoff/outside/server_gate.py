"""`ServerGate`: the gate for calls that a server is asked about: local policy decides first, the server the rest.

The server applies its own policy, asks its people, and keeps the record. A call that it does not clearly approve does
not run. Local policy decides once more after its answer, and the approval is consumed there before the call runs here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from os import urandom
from typing import Any, TypeVar

from signoff.broker.wall_clock import pause_for
from signoff.core.aap import AapStatus
from signoff.core.canonical import digest
from signoff.core.redact import redact_text
from signoff.core.request_context import RequestContext
from signoff.core.visible_text import CLOSE, OPEN
from signoff.errors import ServerFailed
from signoff.outside.aap_client import AapClient, AapReply, ServerAway
from signoff.outside.background import read_background
from signoff.outside.consumed_calls import ConsumedCalls
from signoff.outside.outside_call import OutsideCall
from signoff.outside.outside_gate import TIMEOUT, CallPermission, OutsideGate
from signoff.ports import Clock

T = TypeVar("T")

SERVER = "the server"
UNTOLD = "it did not run: the agent was gone when it was approved"
AWAY = timedelta(seconds=30)
"""How long a server may be unreachable while people are waited for: it may be restarting."""
_AGAIN = timedelta(seconds=1)
"""Pause between two requests, also if a server ignores the long-poll wait."""


@dataclass(slots=True)
class ServerGate:
    """Decides about the calls of another program's agent, with the people of a server."""

    gate: Callable[[], OutsideGate]
    """Returns the local gate with the current policy. A call that it denies or allows never gets to the server."""
    client: AapClient
    consumed: ConsumedCalls
    patience: timedelta
    """Timeout for a decision."""

    async def decide(self, outside: OutsideCall) -> CallPermission:
        """See `OutsideGate.decide`. Raises `ServerFailed` if the server cannot be asked."""
        import asyncio

        gate = self.gate()
        if (here := await gate.at_once(outside)) is not None:
            return here
        # Monotonic: changes of the wall clock do not affect it.
        over = asyncio.ensure_future(pause_for(gate.broker.clock, self.patience))
        context = outside.context(await read_background(outside.background, gate.broker.clock))
        body = self._body(outside, context)
        submitting = asyncio.ensure_future(self.client.submit(self._key(outside, body), body))
        answered: asyncio.Future[CallPermission] | None = None
        try:
            request = await asyncio.shield(submitting)
            answered = asyncio.ensure_future(self._answered(outside, request, gate.broker.clock))
            try:
                await asyncio.wait([answered, over], return_when=asyncio.FIRST_COMPLETED)
            finally:
                answered.cancel()  # before the request is withdrawn, so that nothing is consumed for a refused call
            return answered.result() if answered.done() else await self._given_up(outside, request)
        except asyncio.CancelledError:  # nobody waits for the answer any more
            await asyncio.wait([submitting, *([answered] if answered is not None else [])])
            if submitting.exception() is None:
                await self._left(outside, submitting.result())
            raise
        finally:
            over.cancel()

    def has_run(self, outside: OutsideCall) -> bool:
        """Return whether a call ran on an approval of the server, and its outcome was not reported yet."""
        return bool(self.consumed.find(outside))

    async def report(self, outside: OutsideCall, *, error: str | None = None) -> None:
        """Report the outcome of a call that ran on the server's approval."""
        if request := self.consumed.take(outside):
            await self.client.report(request, failed=error is not None)

    async def _left(self, outside: OutsideCall, request: AapReply) -> None:
        """Withdraw a request whose call will not be made, also if it was consumed at this very moment."""
        await self._given_up(outside, request)
        self.consumed.take(outside)
        with suppress(ServerFailed):  # or else there is no outcome to report
            await self.client.report(request.id, failed=True, note=UNTOLD)

    async def undelivered(self, outside: OutsideCall) -> None:
        """Report that a call does not run although the server approved it: the agent was gone by then."""
        if request := self.consumed.take(outside):
            await self.client.report(request, failed=True, note=UNTOLD)

    async def _answered(self, outside: OutsideCall, request: AapReply, clock: Clock) -> CallPermission:
        while request.status is AapStatus.PENDING:
            request = await self._patiently(clock, lambda request=request: self.client.look(request))
            if request.status is AapStatus.PENDING:
                await pause_for(clock, _AGAIN)
        refused = CallPermission(allowed=False, args=outside.args, by=SERVER, request=request.id)
        if request.status is not AapStatus.APPROVED:
            return replace(refused, reason=request.note or f"the request was {request.status}")
        if request.is_consumed:
            return replace(refused, reason="its approval was already used: an approved call runs once", spent=True)
        here = await self.gate().at_once(outside)
        if here is not None and not here.allowed:
            reason = f"it was approved on {self.client.url}, but is refused here by now: {here.reason}"
            return replace(here, reason=reason, request=request.id)
        key = urandom(16).hex()
        tells = self.gate().tells_outcomes
        await self._patiently(clock, lambda: self.client.consume(request, key, tells_outcome=tells))
        if tells:
            self.consumed.add(outside, request.id)
        reason = request.note or f"approved on {self.client.url}"
        return CallPermission(allowed=True, args=outside.args, by=SERVER, reason=reason, request=request.id)

    async def _patiently(self, clock: Clock, send: Callable[[], Awaitable[T]]) -> T:
        """Send with retries: an unreachable server gets `AWAY`, a busy one (Retry-After) has no limit here."""
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
        except ServerFailed as error:  # then its own deadline ends it, and nothing here consumes it
            reason = f"{reason}; {error}"
        return CallPermission(allowed=False, args=outside.args, by=TIMEOUT, reason=reason, request=request.id)

    def _key(self, outside: OutsideCall, body: Mapping[str, Any]) -> str:
        """Return the idempotency key: the same only for the same call, session, arguments, directory and background.

        A server refuses a key that comes again with anything else.
        """
        called = [outside.session, outside.call_id, outside.tool, dict(outside.args), outside.directory]
        called += [body["context"].get("task", ""), body.get("agent_reasoning", "")]
        return f"hook-{digest(called)}"

    def _body(self, outside: OutsideCall, context: RequestContext) -> dict[str, Any]:
        told: dict[str, Any] = {"directory": outside.directory, "agents": list(outside.agents)}
        told["session"] = context.session or outside.session
        if context.prompt:
            told["task"] = _masked(context.prompt)
        if outside.doubt:
            told["doubt"] = outside.doubt
        return {
            **({"agent_reasoning": _masked(context.words)} if context.words else {}),
            "tool": outside.tool,
            "arguments": {**outside.args, **outside.reads(outside.args)},
            # A little less than is waited here, so that the server is the one to say that nobody answered.
            "timeout": f"{max(1, int(self.patience.total_seconds()) - 1)}s",
            "context": told,
        }


def _masked(text: str) -> str:
    """Mask secrets in a text for a server, which spells out brackets of masks that are not its own."""
    return redact_text(text).replace(OPEN, "[").replace(CLOSE, "]")
