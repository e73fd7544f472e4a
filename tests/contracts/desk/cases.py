"""The table of what people may do (`../desk.toml`), and the project and store that each of its cases starts from."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from tests.matches import varying
from tests.ready import ready

from signoff.broker import Broker, new_id
from signoff.broker.readers import note_reader
from signoff.config import Settings, load_settings
from signoff.core.call import Call
from signoff.core.comment import CommentKind
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.people import Actor, ActorKind, Delegation
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import SavedRun
from signoff.store.sqlite import SqliteStore
from signoff.wiring.project import roles_of

FACES = ("cli", "api", "program", "gate", "discord")
VOTES = ("approve", "deny")
PROGRAM = "bot"
_EVERY = frozenset(FACES)
_ANSWERS = frozenset({*VOTES, "outcome"})
_HTTP = frozenset({"cli", "api"})
_SCHEMAS: dict[str, dict[str, Any]] = {
    "mail": {
        "type": "object",
        "properties": {"to": {"type": "string"}, "body": {"type": "string"}},
        "required": ["to", "body"],
        "additionalProperties": False,
    }
}
_REFUND: dict[str, Any] = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "amount": {"type": "integer"}},
    "required": ["order", "amount"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Act:
    """What somebody does."""

    act: str
    by: str
    args: dict[str, Any] | None = None
    note: str = ""
    remember: str = ""
    until: str = ""
    to: str = ""
    whose: str = ""
    """In whose place, if not their own: of a delegation."""


@dataclass(frozen=True)
class Case:
    """One row."""

    name: str
    does: Act
    then: str
    says: str = ""
    call: str = ""
    run: bool = False
    before: tuple[Act, ...] = ()
    was: Mapping[str, str] = field(default_factory=dict[str, str])
    stays: Mapping[str, str] = field(default_factory=dict[str, str])
    why: str = ""

    def has(self, face: str) -> bool:
        """Whether a face has this operation for whoever does it."""
        if face in ("cli", "discord") and self.does.by == PROGRAM:
            return False
        if face in _HTTP:
            return True
        if self.does.act not in _ANSWERS or (face == "gate" and self.does.act == "outcome"):
            return False
        if face == "discord":  # it remembers approvals only, until moments of its own, and never with an edit
            return not self.does.remember or (
                self.does.act == "approve" and not self.does.until and self.does.args is None
            )
        return True

    def answer_of(self, face: str) -> str:
        return self.stays.get(face, self.then)


@dataclass(frozen=True)
class Table:
    rules: str
    calls: Mapping[str, Mapping[str, Any]]
    cases: tuple[Case, ...]


@cache
def table() -> Table:
    found = tomllib.loads((Path(__file__).parents[1] / "desk.toml").read_text())
    return Table(found["rules"], found["calls"], tuple(_case(dict(one)) for one in found["case"]))


def _case(row: dict[str, Any]) -> Case:
    told = {
        name: row.pop(name) for name in ("name", "then", "says", "call", "run", "was", "stays", "why") if name in row
    }
    before = tuple(_act(dict(one)) for one in row.pop("before", ()))
    assert _EVERY.issuperset(told.get("was", {})) and _EVERY.issuperset(told.get("stays", {})), told
    return Case(**told, before=before, does=_act(row))


def _act(row: dict[str, Any]) -> Act:
    remember = row.pop("remember", "")
    return Act(whose=row.pop("for", ""), remember="exact" if remember is True else remember, **row)


class Face(Protocol):
    """One way to do it."""

    async def do(self, act: Act, request: ApprovalRequest | None, place: Place) -> tuple[bool, str]:
        """Do it; whether it was accepted, and what whoever did it was told."""
        ...


class Place:
    """A project with people and rules, a store in a file, and what was asked."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = directory / "signoff.yaml"
        self.file.write_text(table().rules)
        self.settings: Settings = load_settings(str(self.file))
        self.store = SqliteStore(ready(directory / "approvals.db"))
        self.broker = Broker(self.store, people=roles_of(self.settings))
        self.grant = ""
        self.run = ""

    @property
    def url(self) -> str:
        return f"sqlite:{self.directory / 'approvals.db'}"

    def actor(self, name: str) -> Actor:
        person = self.settings.people.get(name)
        kind = ActorKind.SCRIPT if name == PROGRAM else ActorKind.PERSON
        return Actor(name=name, kind=kind, roles=person.roles if person is not None else frozenset())

    async def asked(self, case: Case) -> ApprovalRequest | None:
        """Ask about the call of a case, in a run if it says so."""
        if case.run:
            begun = await self.broker.runs.begin(SavedRun(id=new_id(), agent="shop:agent", prompt="Pay"), put_down=True)
            self.run = begun.id
        if not case.call:
            return None
        [opened] = await self.broker.open([self.request(case.call)], policy=self.settings.policy)
        return opened

    def request(self, name: str) -> ApprovalRequest:
        told = table().calls[name]
        args = dict(told["args"])
        if "long" in told:
            args[told["long"]] = "word " * 2_000
        call = Call(
            tool=told["tool"],
            args=args,
            call_id=new_id(),
            run_id=self.run,
            conversation_id=new_id(),
            unreadable=tuple(told.get("unreadable", ())),
        )
        return ApprovalRequest(
            tool_call_id=call.call_id,
            tool_name=call.tool,
            args=args,
            call=call,
            may_vary=varying(call),
            verdict=self.settings.policy.judge(call),
            policy_revision=self.settings.policy.revision,
            schema=_SCHEMAS.get(call.tool, _REFUND),
            run=self.run,
            requester=told.get("requester", ""),
        )

    async def happened(self, act: Act, request: ApprovalRequest | None) -> None:
        """What somebody did before, as the store holds it."""
        broker, by = self.broker, self.actor(act.by)
        match act.act:
            case "delegate":
                now = broker.clock.now()
                made = Delegation(absent=act.by, deputy=act.to, until=now + timedelta(days=1), since=now, by=act.by)
                await broker.people.delegate(made)
            case "halt":
                await broker.switch.halt(by=act.by, why="")
            case "cancel":
                await broker.runs.cancel(self.run, by=act.by, reason="")
            case _:
                assert request is not None
                await self._answered(act, request, by)

    async def _answered(self, act: Act, request: ApprovalRequest, by: Actor) -> None:
        broker = self.broker
        match act.act:
            case "approve" | "deny":
                keeps = Remember.ALWAYS if act.remember else Remember.NONE
                approved = act.act == "approve"
                decision = ApprovalDecision(approved=approved, edited_args=act.args, remember=keeps)
                await broker.answer(request.id, decision, by=by)
                if act.remember:
                    [grant] = await broker.grants.list()
                    self.grant = grant.id
            case "take":
                await broker.assign(request.id, act.by, by=by)
            case "open":
                await note_reader(broker.ledger, request.id, by)
            case "lose":
                await broker.answer(request.id, ApprovalDecision(approved=True), by=by)
                await broker.claim(request.id)
                await broker.lose(request.id)
            case _:
                raise AssertionError(act)

    async def outcome(self, act: Act, request: ApprovalRequest | None, before: ApprovalRequest | None) -> str:
        """What came of it, as the store holds it; empty if nothing changed."""
        if request is None or before is None or act.act not in VOTES:
            return ""
        after = await self.broker.get(request.id)
        if after.version == before.version:
            assert not await self.broker.grants.list() or self.grant, (
                "nothing was answered, but something is remembered"
            )
            return ""
        state = {State.APPROVED: "approved", State.DENIED: "denied", State.PENDING: "counted"}[after.state]
        return f"{state}, remembered" if await self.broker.grants.list() else state

    async def cleared(self) -> None:
        """Nobody is anybody's deputy, nothing is remembered, and nothing is halted."""
        for one in await self.broker.people.delegations():
            await self.broker.people.end_delegation(one.absent, one.deputy, by=one.by)
        for grant in await self.broker.grants.list():
            await self.broker.grants.revoke(grant.id, by=grant.by)
        for request in await self.broker.pending():
            await self.broker.cancel(request.id, "")
        await self.broker.switch.unhalt(by="cleo", why="")

    async def close(self) -> None:
        self.broker.watch.close()
        await self.store.flush()
        self.store.close()


def soon() -> datetime:
    return datetime.now(UTC).replace(microsecond=0) + timedelta(hours=2)


COMMENTS = {"note": CommentKind.NOTE, "ask": CommentKind.QUESTION}
