"""`AapClient`: HTTP client for the Agent Approval Protocol, with the credential of an instance.

Answers of a server are not trusted as such: each must be about the call that was asked about. Each exchange has its own
thread and a timeout, so that a server that hangs or sends without end blocks nothing.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, cast
from uuid import UUID

from signoff.core.aap import LEASE_HEADER, NO_OUTCOME, OUTCOME, AapStatus
from signoff.core.canonical import digest
from signoff.core.request_context import shortened
from signoff.core.strict_json import read_object
from signoff.core.visible_text import visible
from signoff.errors import CannotCanonicalise, ServerFailed, WrongUse
from signoff.http_exchange import AnswerTooLarge, HttpExchange, server_address
from signoff.processes import LEASE
from signoff.regular_file import open_regular

PATIENCE = 10.0
"""Timeout in seconds for a complete answer, in addition to the long-poll wait."""
LONGEST_POLL = 25
"""Long-poll wait in seconds that is requested from the server."""
NO_HEADERS: Mapping[str, str] = {}
_LARGEST = 4 * 1024 * 1024
_WAITING = {LEASE_HEADER: str(int(LEASE.total_seconds()))}
_LONGEST_NOTE = 4_000
_LONGEST_PAUSE = 30
_MARK = "soi_"
_CREATE = "signoff aap instance create NAME"


class ServerAway(ServerFailed):
    """The server is unreachable or busy. The same request may be retried."""

    def __init__(self, message: str, *, pause: int = 0) -> None:
        super().__init__(message)
        self.pause = pause
        """Retry-After in seconds; 0: the server did not say, and may be gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AapReply:
    """The state of a request, as a server reports it."""

    id: str
    call: str
    """Digest of the tool and the arguments."""
    status: AapStatus
    note: str = ""
    is_consumed: bool = False


class AapClient:
    """Client of one server. Raises `ServerFailed` if the server cannot be reached or refuses."""

    def __init__(self, url: str, token: str, *, patience: float = PATIENCE) -> None:
        self._parts = server_address(url)
        if not token.startswith(_MARK):
            raise WrongUse(f"a hook needs the credential of an instance: {_CREATE}")
        self._token = token
        self._patience = patience
        # Other clients of the protocol use the address with /aap at its end.
        self._path = self._parts.path.rstrip("/").removesuffix("/aap")
        self.url = self._parts._replace(path=self._path).geturl()
        """The address for messages."""

    async def submit(self, key: str, body: Mapping[str, Any]) -> AapReply:
        """Submit a request about a call. The same idempotency key gives the same request.

        It is withdrawn if `look` is not called for `LEASE` until it is decided and consumed.
        """
        return self._read(await self._answer("POST", "", body, key=key, more=_WAITING), call=_digest(body))

    async def look(self, request: AapReply) -> AapReply:
        """Long-poll the state of a request: returns once it is decided or `LONGEST_POLL` has passed."""
        path = f"/{request.id}?wait={LONGEST_POLL}s"
        return self._read(
            await self._answer("GET", path, wait=LONGEST_POLL, more=_WAITING), request.id, call=request.call
        )

    async def cancel(self, request: AapReply) -> None:
        """Withdraw a request."""
        await self._answer("DELETE", f"/{request.id}")

    async def consume(self, request: AapReply, key: str, *, tells_outcome: bool = True) -> None:
        """Consume an approval. Any key but the first one is refused. `tells_outcome`: `report` will follow."""
        more = {} if tells_outcome else {OUTCOME: NO_OUTCOME}
        answer = await self._answer("POST", f"/{request.id}/consume", key=key, more=more)
        found = self._read(answer, request.id, call=request.call)
        if found.status is not AapStatus.APPROVED or not found.is_consumed:
            raise self._failure("it does not say that the approval was used")

    async def report(self, request: str, *, failed: bool, note: str = "") -> None:
        """Report the outcome of a call."""
        outcome = {"status": "failed" if failed else "succeeded", **({"note": note} if note else {})}
        await self._answer("POST", f"/{request}/outcome", outcome)

    def _read(self, answer: Mapping[str, Any], request: str = "", *, call: str) -> AapReply:
        decision = answer.get("decision")
        note = cast("dict[str, Any]", decision).get("note") if isinstance(decision, dict) else None
        try:
            found = AapReply(
                id=str(UUID(answer["id"])),
                call=_digest(answer),
                status=AapStatus(answer["status"]),
                note=shortened(visible(note), _LONGEST_NOTE) if isinstance(note, str) else "",
                is_consumed="consumption" in answer,
            )
        except (CannotCanonicalise, KeyError, ValueError, TypeError, AttributeError) as error:
            raise self._failure("it answers what no server of signoff does: is this the right address?") from error
        if found.call != call or (request and found.id != request):
            raise self._failure("it answered about another call")
        return found

    # --- one exchange ---

    async def _answer(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        key: str = "",
        wait: float = 0,
        more: Mapping[str, str] = NO_HEADERS,
    ) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", "User-Agent": "signoff"}
        headers |= more
        if key:
            headers["Idempotency-Key"] = key
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        import asyncio

        seconds = self._patience + wait
        exchange = HttpExchange(self._parts, seconds=seconds, most=_LARGEST)
        try:
            answer = exchange.begin(method, f"{self._path}/aap/v1/requests{path}", content, headers)
            async with asyncio.timeout(seconds):  # `wait_for` may swallow a cancellation
                status, said, pause, _ = await asyncio.wrap_future(answer)
        except TimeoutError as error:
            raise ServerAway(self._about(f"no whole answer within {seconds:g} seconds")) from error
        except AnswerTooLarge as error:
            raise self._failure(f"its answer is larger than {_LARGEST:,} bytes: is this the right address?") from error
        except (OSError, HTTPException, ValueError) as error:
            told = error.strerror if isinstance(error, OSError) else None
            what = visible(told or str(error) or type(error).__name__)
            raise ServerAway(self._about(f"it cannot be reached: {what}")) from error
        finally:
            exchange.give_up()
        return self._checked(status, pause, said.replace(self._token.encode(), b"[credential]"))

    def _checked(self, status: int, pause: str, said: bytes) -> dict[str, Any]:
        """Return the answer as an object. Raises for a redirect, anything but JSON, or an error status."""
        if 300 <= status < 400:
            raise self._failure("it redirects elsewhere, where the credential is not sent: install the final address")
        try:
            answer = read_object(said, what="its answer", most=_LARGEST)
        except ValueError as error:
            told = self._about(f"its answer is not JSON (status {status}): is this the right address?")
            raise (ServerAway if status >= 500 else ServerFailed)(told) from error
        if status in (200, 201):
            return answer
        code, told = _problem(status, answer)
        if status == 429:
            seconds = int(pause) if pause.isascii() and pause.isdigit() and len(pause) < 9 else 1
            raise ServerAway(self._about(told), pause=min(max(1, seconds), _LONGEST_PAUSE))
        if status >= 500 and code != "halted":
            raise ServerAway(self._about(told))
        raise self._failure(f"{told}; {_CREATE} makes a new one there" if status == 401 else told)

    def _failure(self, what: str) -> ServerFailed:
        return ServerFailed(self._about(what))

    def _about(self, what: str) -> str:
        return f"the server {self.url}: {what}"


def read_token(file: str) -> str:
    """Read the credential from a file that belongs to this user and that nobody else can read (permissions)."""
    try:
        with open_regular(file) as opened:
            found = os.fstat(opened.fileno())
            token = opened.read(10_000).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is not text"
        told = f"the credential cannot be read from {visible(file)}: {why}"
        raise WrongUse(f"{told}\n  put what `{_CREATE}` prints into that file") from error
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise WrongUse(f"others can read {visible(file)}: chmod 600 {visible(file)}")
    if not token or not (token.isascii() and token.isprintable()) or " " in token:
        raise WrongUse(f"{visible(file)} holds no credential\n  put what `{_CREATE}` prints into that file")
    return token


def _digest(call: Mapping[str, Any]) -> str:
    return digest([call["tool"], call["arguments"]])


def _problem(status: int, answer: Mapping[str, Any]) -> tuple[str, str]:
    """Return the error code of a server, and its message."""
    error: object = answer.get("error")
    told = cast("dict[str, Any]", error) if isinstance(error, dict) else dict[str, Any]()
    code = str(told.get("code", status))
    return code, visible(f"{code}: {told.get('message', 'it refuses')}"[:500])
