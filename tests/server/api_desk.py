"""A server over a real store and a project's own rules, and people who talk to it over HTTP.

Who they are is what a header says here: how it is found out otherwise is tested elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from tests.matches import varying
from tests.ready import ready

from signoff.broker import Broker, new_id
from signoff.config import load_settings
from signoff.core.access import EVERYTHING, AccessKey, AccessKind, Permission
from signoff.core.call import Call
from signoff.core.comment import Comment
from signoff.core.people import Actor, ActorKind
from signoff.core.request import ApprovalRequest
from signoff.core.run import SavedRun
from signoff.errors import WrongUse
from signoff.policy.phrases import did_you_mean, shown
from signoff.ports import Clock
from signoff.server.app import application
from signoff.server.identity import Identity
from signoff.server.state import ServerState
from signoff.store.sqlite import SqliteStore
from signoff.wiring.program_inbox import project_inbox
from signoff.wiring.project import roles_of
from signoff.wiring.project_rules import ProjectRules

RULES = """\
people:
  ana: {roles: [ops]}
  ben: {roles: [finance]}
  cleo: {roles: [finance]}
policy:
  - deny: {tool: refund, amount: {">": 500}}
    reason: more than 500 is refunded by the bank
  - ask: refund
    by: finance
  - ask: mail
  - allow: look
"""
REFUND: dict[str, Any] = {"order": "A1", "amount": 40}
SCHEMAS: dict[str, dict[str, Any]] = {
    "refund": {
        "type": "object",
        "properties": {"order": {"type": "string"}, "amount": {"type": "integer"}},
        "required": ["order", "amount"],
        "additionalProperties": False,
    },
    "mail": {
        "type": "object",
        "properties": {"to": {"type": "string"}, "body": {"type": "string"}},
        "required": ["to", "body"],
        "additionalProperties": False,
    },
}
ROOT = "http://inbox.test/api/v1"


@dataclass
class Control:
    """Keeps runs that are started, for nobody to take up: what runs agents is above the server."""

    broker: Broker
    looked_at: list[str] = field(default_factory=list[str])
    asked: list[Comment] = field(default_factory=list[Comment])

    async def start(
        self,
        worker: str,
        prompt: str,
        *,
        input: Mapping[str, Any] | None,
        requester: str,
        behind: str | None = None,
    ) -> str:
        if worker not in self.workers():
            raise WrongUse(f"there is no worker {shown(worker)}\n  {did_you_mean(worker, self.workers())}")
        run = SavedRun(id=new_id(), agent=f"worker:{worker}", prompt=prompt, requester=requester, behind=behind)
        return (await self.broker.runs.begin(run, put_down=True)).id

    async def resume(self, run_id: str) -> None:
        self.looked_at.append(run_id)

    async def hindrance(self, run_id: str) -> str:
        return ""

    async def check_agent(self, request: ApprovalRequest) -> None:
        """Anything may be asked."""

    def ask_agent(self, question: Comment) -> None:
        self.asked.append(question)

    def workers(self) -> Mapping[str, str]:
        return {"triage": "sorts what comes in"}


async def identify(connection: HTTPConnection) -> Identity | None:
    """Whoever `x-who` says, with a token; with `x-session`, in a browser."""
    name = connection.headers.get("x-who", "")
    if not name:
        return None
    may = frozenset(Permission(one) for one in connection.headers.get("x-may", "").split(",") if one)
    session = connection.headers.get("x-session", "")
    kind = AccessKind.SESSION if session else AccessKind.TOKEN
    key = AccessKey(id="key", kind=kind, digest="", holder=name, created_at=datetime(2026, 1, 1, tzinfo=UTC))
    is_program = name.startswith("bot")
    actor = Actor(name=name, kind=ActorKind.SCRIPT if is_program else ActorKind.PERSON, via="api")
    return Identity(
        actor=actor, permissions=may if "x-may" in connection.headers else EVERYTHING, key=key, csrf=session
    )


class ApiDesk:
    """The server, what is behind it, and who stands before it."""

    def __init__(self, directory: Path, *, rules: str = RULES, clock: Clock | None = None) -> None:
        self.file = directory / "signoff.yaml"
        if not self.file.exists():
            self.file.write_text(rules)
        self.settings = load_settings(str(self.file))
        self.store = SqliteStore(ready(directory / "signoff.db"))
        self.broker = Broker(self.store, clock, people=roles_of(self.settings))
        self.control = Control(self.broker)
        self.state = ServerState(
            broker=self.broker,
            inbox=project_inbox(self.broker, self.settings, "api"),
            identify=identify,
            people=lambda: self.settings.people,
            runs=self.control,
            rules=ProjectRules(self.broker, self.settings),
        )
        self.app: Starlette = application(self.state)
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=ROOT)

    async def ask(
        self, tool: str = "refund", args: Mapping[str, Any] | None = None, *, run: str = "", **fields: Any
    ) -> ApprovalRequest:
        """An agent asks."""
        given = dict(REFUND if args is None else args)
        call = Call(
            tool=tool, args=given, call_id=new_id(), run_id=run, conversation_id="c", worker=fields.pop("worker", ())
        )
        asked = ApprovalRequest(
            tool_call_id=call.call_id,
            tool_name=tool,
            args=call.args,
            call=call,
            may_vary=varying(call),
            verdict=self.settings.policy.judge(call),
            policy_revision=self.settings.policy.revision,
            schema=SCHEMAS.get(tool),
            run=run,
            **fields,
        )
        [opened] = await self.broker.open([asked], policy=self.settings.policy)
        return opened

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        who: str = "ben",
        may: str | None = None,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> httpx.Response:
        """Somebody sends something."""
        sent = {"x-who": who, **({"x-may": may} if may is not None else {}), **(headers or {})}
        return await self.client.request(method, path, json=body, headers=sent, params=query)

    async def get(self, path: str, **more: Any) -> Any:
        """What is answered, where all is well."""
        reply = await self.call("GET", path, **more)
        assert reply.status_code == 200, reply.text
        return reply.json()

    async def post(self, path: str, body: object = None, *, status: int = 200, **more: Any) -> Any:
        reply = await self.call("POST", path, body, **more)
        assert reply.status_code == status, reply.text
        return reply.json()

    async def refused(self, status: int, word: str, method: str, path: str, body: object = None, **more: Any) -> str:
        """Send what is refused; what is said about it."""
        reply = await self.call(method, path, body, **more)
        assert reply.headers["content-type"] == "application/problem+json", reply.text
        problem = reply.json()
        assert (reply.status_code, problem["type"]) == (status, f"urn:signoff:{word}"), reply.text
        assert problem["status"] == status
        return " ".join([problem["detail"], *problem.get("problems", [])])

    async def close(self) -> None:
        await self.client.aclose()
        self.broker.watch.close()
        self.store.close()


def yes(request: ApprovalRequest, **more: Any) -> dict[str, Any]:
    """An approval of what was read."""
    return {"decision": "approve", "args_digest": request.args_digest, **more}


def no(request: ApprovalRequest, **more: Any) -> dict[str, Any]:
    return {"decision": "deny", "args_digest": request.args_digest, **more}
