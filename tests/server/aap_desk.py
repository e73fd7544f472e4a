"""A server that answers the Agent Approval Protocol, over a real store and a project's file, and who talks to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from starlette.types import ASGIApp
from tests.ready import ready

from signoff.broker import Broker
from signoff.core.access import EVERYTHING, AccessKind, Permission
from signoff.core.request import ApprovalRequest
from signoff.ports import Clock
from signoff.server.app import application
from signoff.server.guard import Guard
from signoff.server.key_identity import KeyIdentity
from signoff.server.meters import Meters
from signoff.server.request_log import AnsweredRequest, RequestLog
from signoff.server.sign_in import SignIn
from signoff.server.state import ServerState
from signoff.wiring.aap_gates import ProjectGates
from signoff.wiring.served_projects import served_projects
from signoff.wiring.service import TeamRules, team_inbox

RULES = """\
people:
  ana: {roles: [ops]}
  ben: {roles: [finance]}
  cleo: {roles: [finance]}
policy:
  - deny: {tool: refund, amount: {">": 500}}
    reason: more than 500 is refunded by the bank
  - allow: {tool: refund, amount: {"<": 5}}
  - ask: refund
    by: finance
  - ask: own
    by: ops
    not_by: requester
  - ask: brief
    timeout: 5m
  - ask: lenient
    timeout: 5m
    on_timeout: allow
  - ask: passed_on
    timeout: 5m
    on_timeout: escalate
    escalate_to: ops
  - allow: look
"""
REFUND: dict[str, Any] = {"tool": "refund", "arguments": {"order": "A1", "amount": 40}, "timeout": "30m"}
LOOK: dict[str, Any] = {"tool": "look", "arguments": {"at": "A1"}, "timeout": "30m"}
HERE = "http://127.0.0.1:8420"


class AapDesk:
    """The server, what is behind it, and who stands before it."""

    def __init__(self, directory: Path, *, clock: Clock | None = None, rules: str = RULES, store: str = "") -> None:
        self.file = directory / "signoff.yaml"
        if not self.file.exists():
            self.file.write_text(rules)
        store = store or f"sqlite:{ready(directory / 'signoff.db')}"
        self.projects = served_projects([str(directory)], store)
        self.broker = broker = Broker(self.projects.store.open(), clock, people=self.projects.roles())
        self.keys = KeyIdentity(broker, self.projects.people)
        self.rules = TeamRules(broker, self.projects)
        self.state = ServerState(
            broker=broker,
            inbox=team_inbox(broker, self.projects, "web"),
            identify=self.keys,
            people=self.projects.people,
            rules=self.rules,
            gates=ProjectGates(broker, self.projects),
        )
        self.log: list[AnsweredRequest] = []
        guarded = Guard(application(self.state, SignIn(self.keys)))
        self.app: ASGIApp = RequestLog(guarded, Meters(), self.log.append)
        transport = httpx.ASGITransport(self.app, client=("127.0.0.1", 50_000))
        self.client = httpx.AsyncClient(transport=transport, base_url=HERE)

    async def instance(self, name: str = "support-bot", owner: str = "ana", *, is_here: bool = False) -> Agent:
        """An agent with a credential of its own, as the command makes it."""
        secret = f"soi_{uuid4().hex}"
        made, _, _ = await self.broker.aap.provision(
            str(uuid4()), name, secret, owner=owner, by=owner, lasts=timedelta(days=1), is_here=is_here
        )
        return Agent(self, made.id, secret)

    async def provisioner(self, name: str = "platform", by: str = "ana") -> Agent:
        """A program that may make instances."""
        key, secret = await self.broker.access.issue(
            AccessKind.TOKEN,
            name,
            by=by,
            lasts=timedelta(days=1),
            is_program=True,
            permissions=frozenset({Permission.PROVISION}),
        )
        return Agent(self, key.id, secret)

    async def answer(self, request: str, decision: str = "approve", *, who: str = "ben", **more: Any) -> Any:
        """Somebody answers a request of the inbox, over the API."""
        _, secret = await self.broker.access.issue(
            AccessKind.TOKEN, who, by=who, lasts=timedelta(hours=1), permissions=EVERYTHING
        )
        args_digest = (await self.broker.get(request)).args_digest
        reply = await self.client.post(
            f"/api/v1/requests/{request}/votes",
            json={"decision": decision, "args_digest": args_digest, **more},
            headers={"Authorization": f"Bearer {secret}"},
        )
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def only(self) -> ApprovalRequest:
        """The one request that waits for people."""
        [found] = await self.broker.pending()
        return found

    async def kinds(self) -> list[str]:
        """What is on the record, in order."""
        await self.broker.store.flush()
        return [one.kind for one in await self.broker.store.read(lambda tx: tx.record.entries())]

    async def close(self) -> None:
        await self.client.aclose()
        self.broker.watch.close()
        self.broker.store.close()


class Agent:
    """Whoever sends a credential."""

    def __init__(self, desk: AapDesk, id: str, secret: str) -> None:
        self.desk = desk
        self.id = id
        self.secret = secret

    async def send(
        self, method: str, path: str, body: object = None, *, key: str = "", headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """A body that is bytes is sent as it is."""
        sent = {
            "Authorization": f"Bearer {self.secret}",
            **({"Idempotency-Key": key} if key else {}),
            **(headers or {}),
        }
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        return await self.desk.client.request(method, f"/aap/v1{path}", content=content, headers=sent)

    async def data(self, method: str, path: str, body: object = None, *, status: int = 200, **more: Any) -> Any:
        """What is answered, where all is well."""
        reply = await self.send(method, path, body, **more)
        assert reply.status_code == status, reply.text
        assert reply.headers["x-request-id"]
        return reply.json()

    async def refused(self, status: int, code: str, method: str, path: str, body: object = None, **more: Any) -> str:
        """Send what is refused; what is said about it."""
        reply = await self.send(method, path, body, **more)
        assert reply.headers["content-type"] == "application/json", reply.text
        error = reply.json()["error"]
        assert (reply.status_code, error["code"]) == (status, code), reply.text
        assert error.keys() - {"param"} == {"type", "code", "message", "request_id"}
        assert error["request_id"] == reply.headers["x-request-id"]
        return error["message"]

    async def ask(self, body: Mapping[str, Any] = REFUND, *, key: str = "", status: int = 201) -> Any:
        return await self.data("POST", "/requests", dict(body), key=key or str(uuid4()), status=status)

    async def get(self, request: Mapping[str, Any], wait: str = "") -> Any:
        return await self.data("GET", f"/requests/{request['id']}{f'?wait={wait}' if wait else ''}")

    async def consume(self, request: Mapping[str, Any], key: str = "run-1") -> Any:
        return await self.data("POST", f"/requests/{request['id']}/consume", key=key)
