"""API endpoints: a row of a table that routes, checks, parses and documents each of them.

A handler gets validated input, and returns a model or raises one of our errors. The rest is here, once: authentication,
permissions, CSRF protection, the limit of a body, and idempotency keys (a write that is sent twice is done once).
"""

from __future__ import annotations

import json
import logging
import re
from asyncio import Lock
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from hmac import compare_digest
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from signoff.core.access import Permission
from signoff.core.people import Actor, ActorKind
from signoff.core.safe_text import error_line
from signoff.core.strict_json import MOST_BYTES, MOST_LEVELS, TooManyParts, is_deeper, read_json
from signoff.core.visible_text import visible
from signoff.errors import SignoffError, StoreError
from signoff.http_exchange import FORMAT_HEADER
from signoff.large_work import done
from signoff.ports import Transaction
from signoff.server.identity import Identity
from signoff.server.problem import MEDIA_TYPE, ProblemRaised, problem_of
from signoff.server.state import ServerState
from signoff.store.texts import KeptReply
from signoff.views.json_form import FORMAT, plain_value, to_json

LONGEST_BODY = MOST_BYTES
"""Maximum size of a body in bytes."""
REPLIES_KEPT = timedelta(days=1)
CSRF_HEADER = "x-signoff-csrf"
KEY_HEADER = "idempotency-key"
_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_LONGEST_NUMBER = 20
"""Maximum digits of a `Content-Length` header."""
_MOST_PROBLEMS = 20
PASSING = "is_passing"
"""Set in the request's state if part of the response is only temporary, so that it is not stored for its idempotency
key."""
_STARTED = 0
"""In place of the status of a write that was started and whose end was not recorded."""
_log = logging.getLogger("signoff.server")

Q = TypeVar("Q", bound=BaseModel)
B = TypeVar("B", bound=BaseModel)


class ApiModel(BaseModel):
    """Base of request and response models: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ProblemView(ApiModel):
    """What went wrong (RFC 9457)."""

    type: str = Field(description="A code for programs, as in `urn:signoff:already-settled`.")
    title: str
    status: int
    detail: str = Field(description="A sentence for people.")
    problems: list[str] = Field(default_factory=list[str], description="Each error.")


class Nothing(ApiModel):
    """No query, or no body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit(Generic[Q, B]):
    """One HTTP request, authenticated and validated."""

    state: ServerState
    identity: Identity
    path: Mapping[str, str]
    query: Q
    body: B
    request: Request


Handle: TypeAlias = Callable[[Visit[Any, Any]], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A row of the endpoint table, the only place where its permission is declared."""

    method: str
    path: str
    """Below the API's root, as `/requests/{request_id}`."""
    name: str
    """The operation id, for programs."""
    about: str
    permission: Permission | None
    """None: no authentication needed."""
    handle: Handle
    people_only: str = ""
    """What a program is told that it cannot do, whatever its key permits: all that lets more run. Empty: it may."""
    query: type[BaseModel] = Nothing
    body: type[BaseModel] = Nothing
    returns: type[Any] | None = None
    """A view, or a model; None: the response is not JSON."""
    status: int = 200
    tag: str = "requests"
    media_type: str = "application/json"
    once: bool = False
    """Whether doing it twice differs from doing it once. Then its idempotency key is stored before it is done: if the
    server dies meanwhile, a retry is refused, because nobody knows whether it was done."""
    told_once: tuple[str, ...] = ()
    """Fields of the response that are not stored: a retry with the same idempotency key gets null for them."""

    @property
    def writes(self) -> bool:
        return self.method not in _SAFE


@dataclass(slots=True)
class Dispatch:
    """Handles HTTP requests to endpoints."""

    state: ServerState
    origins: Callable[[Request], Sequence[str]]
    """Origins of pages that may write with a session."""
    _turns: WeakValueDictionary[tuple[str, str], Lock] = field(
        default_factory=WeakValueDictionary[tuple[str, str], Lock]
    )
    """Locks: writes with the same idempotency key run one after the other."""

    async def answer(self, endpoint: Endpoint, request: Request) -> Response:
        """Handle one request. Every error becomes a response."""
        response = await self._answer(endpoint, request)
        response.headers[FORMAT_HEADER] = str(FORMAT)
        return response

    async def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        try:
            return await self._answered(endpoint, request)
        except ProblemRaised as problem:
            return problem_response(problem)
        except SignoffError as error:
            return problem_response(problem_of(error))
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it, and it is no error of the server
        except Exception:
            _log.exception("%s %s failed", endpoint.method, endpoint.path)
            return problem_response(ProblemRaised(500, "error", "internal error; see the server's log"))

    async def _answered(self, endpoint: Endpoint, request: Request) -> Response:
        identity = await self.admitted(request, endpoint.permission, writes=endpoint.writes)
        if endpoint.people_only and identity.actor.kind is not ActorKind.PERSON:
            raise ProblemRaised(403, "not-permitted", f"a program cannot {endpoint.people_only}")
        raw = await read_body(request) if endpoint.writes else b""
        query = _checked(lambda: endpoint.query.model_validate(_query_of(request)), "the query")
        body = await _read_json(endpoint.body, request, raw) if endpoint.body is not Nothing else Nothing()
        visit: Visit[Any, Any] = Visit(
            state=self.state, identity=identity, path=request.path_params, query=query, body=body, request=request
        )
        name = request.headers.get(KEY_HEADER)
        if name is None or not endpoint.writes:
            return await _handled(endpoint, visit)
        if not _KEY.fullmatch(name):
            raise ProblemRaised(400, "bad-key", f"{KEY_HEADER}: send 1 to 200 visible ASCII characters")
        turn = self._turns.setdefault((identity.holder, name), Lock())
        async with turn:
            return await self._once(endpoint, visit, name, raw)

    async def admitted(self, request: Request, permission: Permission | None, *, writes: bool) -> Identity:
        """Return the authenticated caller; raises `ProblemRaised` without the permission or a valid CSRF token."""
        if permission is None:
            return _NOBODY
        identity = await self.state.identify(request)
        if identity is None:
            raise not_signed_in()
        if permission not in identity.permissions:
            raise ProblemRaised(403, "not-permitted", f"this needs the permission `{permission}`")
        if writes and identity.is_session:
            self._refuse_foreign(request, identity)
        return identity

    def _refuse_foreign(self, request: Request, identity: Identity) -> None:
        """Raise if another site may have made the browser send this (CSRF)."""
        origin = request.headers.get("origin")
        is_elsewhere = request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
        if is_elsewhere:
            raise ProblemRaised(403, "foreign-origin", "this request comes from another site")
        if origin is not None and origin not in (own := self.origins(request)):
            raise ProblemRaised(
                403,
                "foreign-origin",
                f"this request comes from another site: its page is at {visible(origin[:200])}, and this server at "
                f"{visible(', '.join(own)[:200])}. Behind a proxy: have it pass on Host and X-Forwarded-Proto, and the "
                "server take them from it (uvicorn: --proxy-headers --forwarded-allow-ips)",
            )
        sent = request.headers.get(CSRF_HEADER, "")
        if identity.csrf and not compare_digest(sent.encode(), identity.csrf.encode()):
            raise ProblemRaised(403, "no-csrf-token", "the page is out of date: reload it")

    async def _once(self, endpoint: Endpoint, visit: Visit[Any, Any], name: str, raw: bytes) -> Response:
        """Do a write with an idempotency key; a retry gets the stored response and does nothing."""
        store, holder, broker = self.state.broker.store, visit.identity.holder, self.state.broker
        url = visit.request.url
        asked = sha256(b"\0".join((endpoint.method.encode(), f"{url.path}?{url.query}".encode(), raw))).hexdigest()

        async def keep(status: int, body: str) -> None:
            now = broker.clock.now()

            def work(tx: Transaction) -> None:
                tx.replies.forget(now - REPLIES_KEPT)
                tx.replies.put(holder, name, KeptReply(asked, status, body), now)

            await store.write("keep reply", work)

        before = await store.read(lambda tx: tx.replies.get(holder, name))
        if before is not None:
            return _replayed(endpoint, before, asked, name)
        if endpoint.once:
            await keep(_STARTED, "")
        try:
            response = await _handled(endpoint, visit)
        except ProblemRaised as problem:
            response = problem_response(problem)
        except SignoffError as error:
            response = problem_response(problem_of(error))
        if response.status_code < 500 and not getattr(visit.request.state, PASSING, False):
            try:
                await keep(response.status_code, _kept(endpoint, response))
            except StoreError as error:  # it was done, and the caller has to know that
                _log.warning("the response could not be saved for its idempotency key: %s", error_line(error))
        return response


_NOBODY = Identity(actor=Actor(name="nobody", kind=ActorKind.SCRIPT), permissions=frozenset())


def _kept(endpoint: Endpoint, response: Response) -> str:
    """The part of a response that is stored."""
    body = bytes(response.body).decode()
    if not endpoint.told_once or response.status_code >= 400:
        return body
    return json.dumps({key: None if key in endpoint.told_once else value for key, value in json.loads(body).items()})


def _replayed(endpoint: Endpoint, before: KeptReply, asked: str, name: str) -> Response:
    """Return the stored response of an earlier write; raises `ProblemRaised` if the key was used otherwise."""
    if before.asked != asked:
        raise ProblemRaised(422, "key-reused", f"the {KEY_HEADER} {name} was used for another request before")
    if before.status == _STARTED:
        what = "this request is still being processed or was interrupted: check before you send it again"
        raise ProblemRaised(409, "in-doubt", what)
    media_type = endpoint.media_type if before.status < 400 else MEDIA_TYPE
    return Response(before.body, before.status, media_type=media_type)


async def _handled(endpoint: Endpoint, visit: Visit[Any, Any]) -> Response:
    given = await endpoint.handle(visit)
    if isinstance(given, Response):
        return given
    return Response(json_body(given), endpoint.status, media_type=endpoint.media_type)


def json_body(answer: object) -> bytes:
    """Write a view or a model as JSON. Where a text is not valid Unicode, as with a lone surrogate, it is escaped."""
    text = to_json(answer, _plain)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(json.loads(text)).encode()


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, BaseModel) else plain_value(value)


def not_signed_in() -> ProblemRaised:
    """The problem for callers who are not, or no longer, authenticated."""
    return ProblemRaised(401, "not-signed-in", "sign in first, or send a token", headers={"WWW-Authenticate": "Bearer"})


def problem_response(problem: ProblemRaised) -> Response:
    """Return a problem as a response."""
    return JSONResponse(problem.data, problem.status, headers=problem.headers, media_type=MEDIA_TYPE)


async def read_body(request: Request) -> bytes:
    """Read the body; raises `ProblemRaised` (413) if it is too long."""
    said = request.headers.get("content-length", "")
    if said.isdecimal() and (len(said) > _LONGEST_NUMBER or int(said) > LONGEST_BODY):
        raise _too_long()
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > LONGEST_BODY:
            raise _too_long()
        parts.append(part)
    return b"".join(parts)


def _too_long() -> ProblemRaised:
    return ProblemRaised(413, "too-long", f"the body is longer than {LONGEST_BODY:,} bytes")


async def _read_json(model: type[BaseModel], request: Request, raw: bytes) -> BaseModel:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ProblemRaised(415, "not-json", "send application/json")
    return await done("reading a request", raw, lambda: _parsed(model, raw))


def _parsed(model: type[BaseModel], raw: bytes) -> BaseModel:
    """Parse a body strictly: a string is not a number, and `"no"` is not false."""
    try:
        found = read_json(raw.decode(), bounded=True)
    except TooManyParts as error:
        raise ProblemRaised(413, "too-long", f"the body has {error}") from error
    except (ValueError, RecursionError) as error:
        raise ProblemRaised(400, "bad-json", f"the body is not JSON: {visible(str(error))}") from error
    if is_deeper(found):
        raise ProblemRaised(400, "too-deep", f"the body is nested more than {MOST_LEVELS} levels deep")
    return _checked(lambda: model.model_validate_json(raw, strict=True), "the body")


def _query_of(request: Request) -> dict[str, Any]:
    """Return the query parameters; a repeated name gives a list."""
    found: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        found[name] = values[0] if len(values) == 1 else values
    return found


def _checked(read: Callable[[], BaseModel], what: str) -> BaseModel:
    try:
        return read()
    except ValidationError as error:
        problems = [
            f"{visible('.'.join(map(str, one['loc'])) or what)}: {visible(one['msg'])}"
            for one in error.errors(include_url=False, include_input=False)[:_MOST_PROBLEMS]
        ]
        raise ProblemRaised(422, "invalid", f"{what} is not valid", problems) from error
