"""HTTP endpoints of the Agent Approval Protocol (AAP): remote agents have their calls judged, asked about and consumed.

It has its own root, paths, errors and keys, apart from the API. The key of an instance is valid only here. The key
of a program with the permission to provision works here only for the endpoints that manage instances.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import logging
from asyncio import Lock
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4
from weakref import WeakValueDictionary

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from signoff.broker.aap_requests import NOT_JUDGED, REVOKED, AapAnswer
from signoff.broker.access_keys import INSTANCE_MARK
from signoff.core.aap import (
    LEASE_HEADER,
    LONGEST_LEASE,
    NO_OUTCOME,
    OUTCOME,
    AapDecision,
    AapInstance,
    AapRequest,
    AapStage,
    AapStatus,
)
from signoff.core.access import AccessKey, AccessKind, Permission, digest_of
from signoff.core.safe_text import error_line, safe_text
from signoff.core.visible_text import visible
from signoff.errors import Halted, StoreError, UnknownRequest, WrongFile, WrongUse
from signoff.large_work import done
from signoff.outside.background import Background
from signoff.outside.client_gate import ClientCall, ClientQuestion, SecondLook
from signoff.server.aap_wire import (
    LONGEST_NOTE,
    LONGEST_WAIT,
    AapProblem,
    AapSubmission,
    checked_key,
    credential_data,
    digest_of_fields,
    duration,
    instance_data,
    name_of,
    read_fields,
    read_submission,
    request_text,
    submission_of,
    text_of,
)
from signoff.server.endpoint import read_body
from signoff.server.problem import ProblemRaised
from signoff.server.rate_limit import RateLimit
from signoff.server.request_log import REQUEST_ID
from signoff.server.state import CallGates, ServerState

ROOT = "/aap"
"""The path prefix of the protocol; clients get it as part of the address."""
MOST_WAITING = 200
"""Calls of one instance that may wait for people at once."""
MOST_POLLS = 100
"""Long polls of one instance that may wait at once."""
MOST_TOGETHER = 500
"""Long polls of all instances together, so that people who want to answer can still connect."""
EACH_MINUTE = 600
"""Rate limit: calls of one instance that are judged in a minute."""
MOST_REFUSED = 60
"""Rate limit: requests with an invalid key from one address in a minute."""
LASTS = timedelta(days=90)
"""Expiry of an instance key that a program makes."""
_AGAIN = {"Retry-After": "5"}
_BEGIN = "aap instance "
_log = logging.getLogger("signoff.server")


@dataclass(frozen=True, slots=True, kw_only=True)
class AapExchange:
    """One HTTP request of a client, and its access key."""

    request: Request
    access: AccessKey
    secret: str

    @property
    def instance(self) -> str:
        return self.access.holder

    @property
    def key(self) -> str:
        return checked_key(self.request.headers.getlist("idempotency-key"))

    @property
    def id(self) -> str:
        """The id in the path, as a normalised UUID."""
        try:
            return str(UUID(self.request.path_params["id"]))
        except ValueError as error:
            raise _unknown() from error


@dataclass(frozen=True, slots=True, kw_only=True)
class AapOperation:
    """A row of the endpoint table, the only place where its permission is declared."""

    method: str
    path: str
    permission: Permission
    handle: Callable[[AapApi, AapExchange], Awaitable[Response]]


@dataclass(slots=True)
class AapApi:
    """Handles the requests of the protocol."""

    state: ServerState
    gates: CallGates
    _turns: WeakValueDictionary[tuple[str, str], Lock] = field(
        default_factory=WeakValueDictionary[tuple[str, str], Lock]
    )
    """Locks: requests with the same idempotency key run one after the other."""
    _polls: Counter[str] = field(default_factory=Counter[str])
    _refused: RateLimit = field(default_factory=lambda: RateLimit(each=MOST_REFUSED))
    _judged: RateLimit = field(default_factory=lambda: RateLimit(each=EACH_MINUTE))

    def routes(self) -> list[BaseRoute]:
        """Return a route for each row of the table."""

        def route(operation: AapOperation) -> Route:
            async def answer(request: Request) -> Response:
                return await self.answer(operation, request)

            return Route(operation.path, answer, methods=[operation.method])

        return [route(one) for one in OPERATIONS]

    async def answer(self, operation: AapOperation, request: Request) -> Response:
        """Handle one request. Every error becomes a response."""
        try:
            access, secret = await self._admitted(request, operation.permission)
            return _marked(
                await operation.handle(self, AapExchange(request=request, access=access, secret=secret)), request
            )
        except AapProblem as problem:
            return aap_problem(request, problem)
        except ProblemRaised as problem:  # the body is too long
            return aap_problem(request, AapProblem(problem.status, "request_too_large", problem.detail))
        except ClientDisconnect:
            return aap_problem(request, AapProblem(400, "incomplete_request", "the body ended too early"))
        except UnknownRequest:
            return aap_problem(request, _unknown())
        except Halted as error:
            return aap_problem(request, AapProblem(503, "halted", error_line(error), headers=_AGAIN))
        except StoreError as error:
            _log.warning("the store failed an agent: %s", error_line(error))
            return aap_problem(request, AapProblem(503, "store_unavailable", "try again later", headers=_AGAIN))
        except (WrongFile, WrongUse) as error:
            _log.warning("a call could not be evaluated: %s", error_line(error))
            return aap_problem(
                request, AapProblem(503, "policy_unavailable", "calls cannot be evaluated now", headers=_AGAIN)
            )
        except Exception:
            _log.exception("%s %s failed", operation.method, operation.path)
            return aap_problem(request, AapProblem(500, "internal", "internal error; see the server's log"))

    async def _admitted(self, request: Request, permission: Permission) -> tuple[AccessKey, str]:
        """Return the access key and its secret if it has the permission; raises `AapProblem`.

        Cookies do not count here.
        """
        sent = request.headers.getlist("authorization")
        scheme, _, secret = sent[0].strip().partition(" ") if len(sent) == 1 else ("", "", "")
        secret = secret.strip()
        kind = AccessKind.INSTANCE if secret.startswith(INSTANCE_MARK) else AccessKind.TOKEN
        what = "send the key of an instance" if permission is Permission.REQUEST else "send a provisioner's key"
        key = await self.state.broker.access.find(kind, secret) if scheme.lower() == "bearer" and secret else None
        if key is None:
            if seconds := self._refused.wait(request.client.host if request.client is not None else ""):
                raise _too_often("too many requests without a valid key", seconds)
            known = "; this key is unknown, expired or revoked" if secret else ", as `Authorization: Bearer …`"
            headers = {"WWW-Authenticate": "Bearer"}
            raise AapProblem(401, "invalid_credential", f"{what}{known}", headers=headers)
        # An ordinary program token does not count as an instance, and an instance key cannot provision.
        is_meant = (kind is AccessKind.INSTANCE) == (permission is Permission.REQUEST)
        if permission not in key.permissions or not key.is_program or not is_meant:
            raise AapProblem(403, "not_permitted", f"{what}; this key is for something else")
        return key, secret

    # --- requests ---

    async def create(self, sent: AapExchange) -> Response:
        key, raw = sent.key, await _json_body(sent.request)
        submission = await done("reading a call of an agent", raw, lambda: read_submission(raw))
        async with self._turns.setdefault((sent.instance, key), Lock()):
            known = await self.state.broker.aap.known(sent.instance, key)
            if known is None:
                instance = await self._instance(sent)
                if seconds := self._judged.wait(sent.instance):
                    raise _too_often("too many calls in a minute", seconds)
                answer = await self._submitted(submission, key, instance, _lease_of(sent.request))
                if answer.is_new:
                    return _request_response(answer.request, 201)
                known = answer.request
        if known.asked != submission.digest:
            raise AapProblem(409, "idempotency_conflict", "this Idempotency-Key was used with other fields before")
        return _request_response(known)

    async def _submitted(
        self, submission: AapSubmission, key: str, instance: AapInstance, lease: timedelta | None
    ) -> AapAnswer:
        now = self.state.broker.clock.now()
        row = AapRequest(
            id=str(uuid4()),
            instance=instance.id,
            key=key,
            asked=submission.digest,
            body=submission.text,
            created_at=now,
            deadline=now,
        )
        gate = await self.gates.gate(instance.owner)
        ruling = await gate.judge(self._call(row, submission, instance), submission.timeout)
        aap = self.state.broker.aap
        if isinstance(ruling, ClientQuestion):
            asked = await aap.submit(
                row,
                window=ruling.window,
                question=ruling.request,
                is_deadline=ruling.is_deadline,
                policy=gate.policy,
                most=MOST_WAITING,
                lease=lease,
            )
        else:
            status = AapStatus.APPROVED if ruling.allowed else AapStatus.DENIED
            note = "" if ruling.allowed else f"{ruling.by}: {ruling.reason}" if ruling.reason else ruling.by
            decided = row.changed(decision=AapDecision(status=status, at=now, note=note), grant=ruling.grant)
            asked = await aap.submit(decided, window=submission.timeout, most=MOST_WAITING)
        if asked.conflict == REVOKED:
            raise _revoked()
        if asked.conflict:
            raise AapProblem(429, asked.conflict, asked.message, headers={"Retry-After": "30"})
        return asked

    async def show(self, sent: AapExchange) -> Response:
        wait, lease, instance = _wait_of(sent.request), _lease_of(sent.request), sent.instance
        row = await self.state.broker.aap.look(sent.id, instance)
        if lease is not None and row.stage is AapStage.OPEN:
            waits = min(wait, LONGEST_WAIT) if wait is not None else timedelta(0)
            await self.state.broker.aap.renew(row.id, instance, waits + lease)
        if wait is None or row.stage is not AapStage.OPEN:
            return _request_response(row)
        if self._polls[instance] >= MOST_POLLS or self._polls.total() >= MOST_TOGETHER:
            raise _too_often("too many polls are waiting", 5)
        self._polls[instance] += 1
        try:
            if await self._waited(row, wait, sent.request) and lease is not None:
                await self.state.broker.aap.renew(row.id, instance, lease)  # it may come back
        finally:
            self._polls[instance] -= 1
            if not self._polls[instance]:
                del self._polls[instance]
        await self._admitted(sent.request, Permission.REQUEST)  # the key may have been revoked in the meantime
        return _request_response(await self.state.broker.aap.look(row.id, instance))

    async def _waited(self, row: AapRequest, wait: timedelta, request: Request) -> bool:
        """Wait until the request is settled, the deadline or the wait has passed, or the server shuts down.

        Return whether the client has closed the connection before.
        """
        broker = self.state.broker
        until = min(broker.clock.now() + min(wait, LONGEST_WAIT), row.deadline)
        left = asyncio.ensure_future(_disconnected(request))
        tasks: list[asyncio.Future[Any]] = [
            left,
            asyncio.ensure_future(broker.wait(row.request)),
            asyncio.ensure_future(broker.clock.sleep_until(until)),
            asyncio.ensure_future(self.state.stopping.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return left.done()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def cancel(self, sent: AapExchange) -> Response:
        return _answered(await self.state.broker.aap.cancel(sent.id, sent.instance))

    async def consume(self, sent: AapExchange) -> Response:
        key, aap = sent.key, self.state.broker.aap
        tells = sent.request.headers.get(OUTCOME) != NO_OUTCOME
        if (raw := await read_body(sent.request)).strip():
            await _fields(raw)
        async with self._turns.setdefault((sent.id, "consume"), Lock()):
            while True:
                row = await aap.look(sent.id, sent.instance)
                if row.stage is AapStage.APPROVED:
                    found = await self._second_look(row, sent)
                    answer = await aap.consume(
                        row.id, sent.instance, key, found.hindrance, found.uses, tells_outcome=tells
                    )
                else:
                    answer = await aap.consume(row.id, sent.instance, key, tells_outcome=tells)
                if answer.conflict == REVOKED:
                    raise _revoked()
                if answer.conflict != NOT_JUDGED:
                    return _answered(answer)

    async def _second_look(self, row: AapRequest, sent: AapExchange) -> SecondLook:
        """Check the policy again for an approved call, as before every call."""
        instance = await self._instance(sent)
        gate = await self.gates.gate(instance.owner)
        request = await self.state.broker.get(row.request) if row.request else None
        submission = await done("reading a call of an agent", row.body, lambda: submission_of(row))
        return await gate.second_look(self._call(row, submission, instance), request, row.grant)

    async def report(self, sent: AapExchange) -> Response:
        found = await _fields(await _json_body(sent.request), required=("status",), others=("note",))
        if found["status"] not in ("succeeded", "failed"):
            raise AapProblem(400, "invalid_field", "status: succeeded or failed", param="status")
        note = text_of(found, "note", LONGEST_NOTE, least=0) if "note" in found else ""
        succeeded = found["status"] == "succeeded"
        aap = self.state.broker.aap
        return _answered(await aap.report(sent.id, sent.instance, succeeded=succeeded, note=note))

    async def _instance(self, sent: AapExchange) -> AapInstance:
        found = await self.state.broker.aap.instance(sent.instance)
        if found is None or found.revoked_at is not None:
            raise _revoked()
        return found

    def _call(self, row: AapRequest, submission: AapSubmission, instance: AapInstance) -> ClientCall:
        return ClientCall(
            agents=(instance.worker,),
            session=f"aap:{instance.id}",
            call_id=row.id,
            tool=submission.tool,
            args=submission.arguments,
            directory=self.gates.directory,
            shown_session=submission.session,
            background=lambda: Background(prompt=submission.task, words=submission.reasoning),
            claims=submission.claims,
            claimed_directory=submission.directory,
            is_here=instance.is_here,
        )

    # --- instances ---

    async def provision(self, sent: AapExchange) -> Response:
        key, raw = sent.key, await _json_body(sent.request)
        found = await _fields(raw, others=("instance_name", "delivery"))
        _refuse_delivery(found)
        name, aap, by = name_of(found), self.state.broker.aap, sent.access
        async with self._turns.setdefault((by.holder, f"provision {key}"), Lock()):
            made = str(uuid4())
            instance, access, is_new = await aap.provision(
                made,
                name or f"instance-{made[:8]}",
                _secret_of(sent.secret, made),
                owner=by.created_by,
                by=by.holder,
                lasts=LASTS,
                provisioner=by.holder,
                key=key,
                asked=digest_of_fields(found),
            )
        # The secret is not stored. It is derived from the provisioner's, so that a retry can return it again.
        secret = _secret_of(sent.secret, instance.id)
        if instance.revoked_at is not None:
            raise AapProblem(
                409, "instance_deleted", "the instance that was created with this Idempotency-Key was deleted"
            )
        if instance.asked != digest_of_fields(found) or access.digest != digest_of(secret):
            raise AapProblem(
                409, "idempotency_conflict", "this Idempotency-Key was used with other fields or another token before"
            )
        body = {"instance": instance_data(instance), "credential": credential_data(access, secret)}
        return _json_response(body, 201 if is_new else 200)

    async def show_instance(self, sent: AapExchange) -> Response:
        return _json_response(instance_data(await self._provisioned(sent)))

    async def rename(self, sent: AapExchange) -> Response:
        raw = await _json_body(sent.request)
        key, found = sent.key, await _fields(raw, others=("instance_name", "delivery"), nullable=("delivery",))
        if not found:
            raise AapProblem(400, "missing_field", "name at least one field to change", param="instance_name")
        _refuse_delivery(found)
        update = await self.state.broker.aap.rename(
            sent.id, sent.access.holder, name_of(found), key=key, asked=digest_of_fields(found)
        )
        if update is None:
            raise AapProblem(409, "idempotency_conflict", "this Idempotency-Key was used with other fields before")
        return _json_response({"id": sent.id, "name": update.name})

    async def delete(self, sent: AapExchange) -> Response:
        instance = await self._provisioned(sent, also_revoked=True)
        await self.state.broker.aap.revoke(instance.id, by=sent.access.holder)
        return Response(status_code=204)

    async def _provisioned(self, sent: AapExchange, *, also_revoked: bool = False) -> AapInstance:
        """Return an instance that this provisioner made; instances of others are reported as not found."""
        found = await self.state.broker.aap.instance(sent.id)
        if found is None or found.provisioner != sent.access.holder:
            raise _unknown()
        if found.revoked_at is not None and not also_revoked:
            raise _unknown()
        return found


OPERATIONS: Sequence[AapOperation] = (
    AapOperation(method="POST", path="/v1/requests", permission=Permission.REQUEST, handle=AapApi.create),
    AapOperation(method="GET", path="/v1/requests/{id}", permission=Permission.REQUEST, handle=AapApi.show),
    AapOperation(method="DELETE", path="/v1/requests/{id}", permission=Permission.REQUEST, handle=AapApi.cancel),
    AapOperation(method="POST", path="/v1/requests/{id}/consume", permission=Permission.REQUEST, handle=AapApi.consume),
    AapOperation(method="POST", path="/v1/requests/{id}/outcome", permission=Permission.REQUEST, handle=AapApi.report),
    AapOperation(method="POST", path="/v1/instances", permission=Permission.PROVISION, handle=AapApi.provision),
    AapOperation(method="GET", path="/v1/instances/{id}", permission=Permission.PROVISION, handle=AapApi.show_instance),
    AapOperation(method="PATCH", path="/v1/instances/{id}", permission=Permission.PROVISION, handle=AapApi.rename),
    AapOperation(method="DELETE", path="/v1/instances/{id}", permission=Permission.PROVISION, handle=AapApi.delete),
)
"""All operations of the protocol except callbacks."""


def aap_problem(request: Request, problem: AapProblem) -> Response:
    """Return an error response in the protocol's format."""
    name = _request_id(request)
    response = _json_response(problem.data(name), problem.status)
    response.headers.update(problem.headers)
    return _marked(response, request)


def _marked(response: Response, request: Request) -> Response:
    response.headers["X-Request-ID"] = _request_id(request)
    return response


def _request_id(request: Request) -> str:
    """The id that identifies this request in the log."""
    return request.scope.setdefault(REQUEST_ID, str(uuid4()))


def _unknown() -> AapProblem:
    return AapProblem(404, "not_found", "not found for this key")


def _revoked() -> AapProblem:
    return AapProblem(401, "invalid_credential", "the instance was revoked", headers={"WWW-Authenticate": "Bearer"})


def _too_often(what: str, seconds: int) -> AapProblem:
    return AapProblem(429, "too_many_requests", what, headers={"Retry-After": str(seconds)})


def _answered(answer: AapAnswer) -> Response:
    if answer.conflict:
        raise AapProblem(409, answer.conflict, safe_text(answer.message))
    return _request_response(answer.request)


def _request_response(row: AapRequest, status: int = 200) -> Response:
    return Response(request_text(row), status, media_type="application/json")


def _json_response(data: object, status: int = 200) -> Response:
    return Response(json.dumps(data), status, media_type="application/json")


async def _json_body(request: Request) -> bytes:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise AapProblem(400, "invalid_content_type", "send application/json")
    return await read_body(request)


async def _fields(
    raw: bytes, *, required: Sequence[str] = (), others: Sequence[str] = (), nullable: Sequence[str] = ()
) -> dict[str, Any]:
    """`read_fields`, where nobody else waits for a large body."""
    read = partial(read_fields, raw, required=required, others=others, nullable=nullable)
    return await done("reading a request of an agent", raw, read)


async def _disconnected(request: Request) -> None:
    """Wait until the client closes the connection. Its request has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _lease_of(request: Request) -> timedelta | None:
    """After which time of silence the agent counts as gone; None if it need not be heard of."""
    text = request.headers.get(LEASE_HEADER, "")
    if not (text.isascii() and text.isdigit() and len(text) < 9):
        return None
    return min(max(timedelta(seconds=1), timedelta(seconds=int(text))), LONGEST_LEASE)


def _wait_of(request: Request) -> timedelta | None:
    """How long a long poll may wait; None if it does not wait."""
    names = [name for name, _ in request.query_params.multi_items()]
    if other := next((one for one in names if one != "wait"), None):
        raise AapProblem(
            400, "unknown_parameter", "the only query parameter is wait", param=visible(other[:100]) or "query"
        )
    if len(names) > 1:
        raise AapProblem(400, "invalid_field", "wait is given twice", param="wait")
    return duration(request.query_params["wait"], "wait") if names else None


def _refuse_delivery(found: dict[str, object]) -> None:
    if found.get("delivery") is not None:
        what = "this provider has no callbacks: leave delivery out and poll"
        raise AapProblem(400, "unsupported_delivery_type", what, param="delivery")


def _secret_of(provisioner: str, instance: str) -> str:
    """Derive the secret of an instance from the provisioner's key (HMAC), so that it can be derived again."""
    mark = hmac.new(provisioner.encode(), f"{_BEGIN}{instance}".encode(), sha256).digest()
    return f"{INSTANCE_MARK}{base64.urlsafe_b64encode(mark).decode().rstrip('=')}"
