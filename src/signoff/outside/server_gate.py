"""The gate for calls that people are asked about elsewhere: policy here decides first, and a server about the rest.

The server judges by its own policy, asks its people, and keeps the record. Whatever it does not clearly approve does
not run, and an approval is spent there before the call runs here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from os import urandom
from typing import Any

from signoff.core.canonical import digest
from signoff.errors import ServerFailed
from signoff.outside.aap_client import LONGEST_POLL, AapClient
from signoff.outside.outside_call import OutsideCall
from signoff.outside.outside_gate import TIMEOUT, CallPermission, OutsideGate

SERVER = "the server"
AWAY = 30.0
"""Seconds that a server may be away while people are waited for: it may be restarted."""
_AGAIN = 1.0
_LEAST = 1.0


@dataclass(slots=True)
class ServerGate:
    """Decides about the calls of another program's agent, with the people of a server."""

    gate: OutsideGate
    """What decides first: a call that it denies or allows never gets to the server."""
    client: AapClient
    window: int
    """Seconds that the server is told a decision is waited for."""

    async def decide(self, outside: OutsideCall, *, until: datetime) -> CallPermission:
        """As `OutsideGate.decide`. Raises `ServerFailed` where the server cannot be asked."""
        here = await self.gate.at_once(outside)
        if here is not None:
            return here
        import asyncio

        left = (until - self.gate.broker.clock.now()).total_seconds()
        return await asyncio.to_thread(self._asked, outside, time.monotonic() + left)

    async def report(self, outside: OutsideCall, *, error: str | None = None) -> None:
        """Tell the server what came of a call that ran on its approval."""
        if self.gate.asks(outside):
            import asyncio

            await asyncio.to_thread(self._reported, outside, error is not None)

    def _asked(self, outside: OutsideCall, until: float) -> CallPermission:
        _, answer = self.client.submit(self._key(outside), self._body(outside))
        request = str(answer["id"])
        answer = self._decided(request, answer, until)
        if answer is None:
            return self._given_up(outside, request)
        told: Mapping[str, Any] = answer.get("decision") or {}
        note = str(told.get("note", ""))
        if answer.get("status") != "approved":
            reason = note or f"the request was {answer.get('status')}"
            return CallPermission(allowed=False, args=outside.args, by=SERVER, reason=reason, request=request)
        if "consumption" in answer:
            reason = "its approval was already used: an approved call runs once"
            return CallPermission(
                allowed=False, args=outside.args, by=SERVER, reason=reason, request=request, spent=True
            )
        self.client.consume(request, urandom(16).hex())
        return CallPermission(
            allowed=True, args=outside.args, by=SERVER, reason=note or f"approved on {self.client.url}", request=request
        )

    def _decided(self, request: str, answer: dict[str, Any], until: float) -> dict[str, Any] | None:
        """The request once it is decided; None where that takes too long. A server may be away for a moment."""
        heard = time.monotonic()
        while answer.get("status") == "pending":
            left = until - time.monotonic()
            if left < _LEAST:
                return None
            try:
                answer, heard = self.client.look(request, int(min(left, LONGEST_POLL))), time.monotonic()
            except ServerFailed:
                if time.monotonic() - heard > min(AWAY + LONGEST_POLL, left):
                    raise
                time.sleep(_AGAIN)
        return answer

    def _given_up(self, outside: OutsideCall, request: str) -> CallPermission:
        reason = "nobody answered before the agent stopped waiting"
        try:
            self.client.cancel(request)
        except ServerFailed as error:  # then its own deadline ends it, and nobody here consumes it
            reason = f"{reason}; {error}"
        return CallPermission(allowed=False, args=outside.args, by=TIMEOUT, reason=reason, request=request)

    def _reported(self, outside: OutsideCall, failed: bool) -> None:
        is_new, answer = self.client.submit(self._key(outside), self._body(outside))
        request = str(answer["id"])
        if is_new and answer.get("status") == "pending":
            self.client.cancel(request)  # nobody was asked before: there is nothing to report
        elif "outcome" not in (answer.get("consumption") or {"outcome": None}):
            self.client.report(request, failed=failed)

    def _key(self, outside: OutsideCall) -> str:
        """The same for the same call of the same session with the same arguments, and for no other."""
        return f"hook-{digest([outside.session, outside.call_id, outside.tool, dict(outside.args)])}"

    def _body(self, outside: OutsideCall) -> dict[str, Any]:
        body: dict[str, Any] = {
            "tool": outside.tool,
            "arguments": {**outside.args, **outside.reads(outside.args)},
            "timeout": f"{self.window}s",
            "context": {"directory": outside.directory, "agents": list(outside.agents), "session": outside.session},
        }
        return body
