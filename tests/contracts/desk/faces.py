"""The ways to do it: commands, the HTTP API, a program's inbox, a gate in the program, and presses on Discord."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx
import pytest
from tests.contracts.desk.cases import COMMENTS, PROGRAM, VOTES, Act, Place, soon
from tests.discord.house import House, thread_of
from tests.discord.service import Answered, Service
from tests.server.api_desk import ROOT, Control, identify

from signoff import Signoff
from signoff.channels import open_inbox
from signoff.channels.discord.custom_id import Press, Verb
from signoff.channels.discord.forms import ARGS, REASON
from signoff.cli.main import main
from signoff.core.access import EVERYTHING, WORKING
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Terms
from signoff.errors import SignoffError
from signoff.policy.offer import offer_called
from signoff.ports import Inbox
from signoff.server.app import application
from signoff.server.state import ServerState
from signoff.wiring.program_inbox import project_inbox


@dataclass
class Commands:
    """`signoff approve` and its like, in the directory of the project."""

    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    async def do(self, act: Act, request: ApprovalRequest | None, place: Place) -> tuple[bool, str]:
        words = [*self._words(act, request, place), "--as", act.by]
        return await asyncio.to_thread(self._run, place, words)

    def _words(self, act: Act, request: ApprovalRequest | None, place: Place) -> list[str]:
        asked = request.id if request is not None else ""
        match act.act:
            case "approve" | "deny":
                words = [act.act, asked, *(["--note", act.note] if act.note else [])]
                words += ["--args", json.dumps(act.args)] if act.args is not None else []
                words += ["--remember", act.remember, "--yes"] if act.remember else []
                return [*words, *(["--until", act.until] if act.until else [])]
            case "take" | "release":
                return [act.act, asked]
            case "assign":
                return ["assign", asked, act.to]
            case "outcome":
                return ["outcome", asked, "happened"]
            case "open":
                return ["show", asked, "--no-pager"]
            case "note" | "ask":
                return [{"note": "comment", "ask": "ask-back"}[act.act], asked, act.note]
            case "delegate":
                return ["delegate", act.whose or act.by, act.to, "--until", "2h"]
            case "undelegate":
                return ["delegate", act.whose, act.to, "--end"]
            case "revoke":
                return ["grants", "revoke", place.grant]
            case "cancel":
                return ["cancel", place.run]
            case _:
                return [act.act]

    def _run(self, place: Place, words: list[str]) -> tuple[bool, str]:
        for name, value in {"SIGNOFF_STORE": place.url, "COLUMNS": "200", "TERM": "dumb"}.items():
            self.monkeypatch.setenv(name, value)
        self.monkeypatch.chdir(place.directory)
        self.monkeypatch.setattr(sys, "argv", ["signoff", *words])
        self.capsys.readouterr()
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        said = self.capsys.readouterr()
        assert "Traceback" not in said.err
        assert "No such" not in said.err, said.err
        return code in (0, None), said.out + said.err


@dataclass
class Api:
    """The HTTP API of a server of the project, and the web inbox, which answers through it."""

    async def do(self, act: Act, request: ApprovalRequest | None, place: Place) -> tuple[bool, str]:
        state = ServerState(
            broker=place.broker,
            inbox=project_inbox(place.broker, place.settings, "api"),
            identify=identify,
            people=lambda: place.settings.people,
            runs=Control(place.broker),
        )
        person = place.settings.people.get(act.by)
        may = EVERYTHING if act.by == PROGRAM or (person is not None and person.admin) else WORKING
        headers = {"x-who": act.by, "x-may": ",".join(may)}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(application(state)), base_url=ROOT) as client:
            method, path, body = self._sent(act, request, place)
            reply = await client.request(method, path, json=body, headers=headers)
        assert reply.status_code < 500, reply.text
        told = reply.json()
        return reply.is_success, " ".join([str(told.get("detail", "")), *told.get("problems", [])])

    def _sent(self, act: Act, request: ApprovalRequest | None, place: Place) -> tuple[str, str, object]:
        at = f"/requests/{request.id}" if request is not None else ""
        digest = request.args_digest if request is not None else ""
        if act.act in VOTES:
            body: dict[str, Any] = {"decision": act.act, "args_digest": digest, "note": act.note, "args": act.args}
            if act.remember:
                body["remember"] = {"which": act.remember, "until": act.until or None}
            return "POST", f"{at}/votes", body
        if act.act in COMMENTS:
            return "POST", f"{at}/comments", {"text": act.note, "kind": COMMENTS[act.act]}
        deputy = {"absent": act.whose, "deputy": act.to, "until": soon().isoformat()}
        return {
            "take": ("POST", f"{at}/claim", None),
            "release": ("POST", f"{at}/release", None),
            "assign": ("POST", f"{at}/assign", {"to": act.to}),
            "open": ("POST", f"{at}/read", {"args_digest": digest}),
            "outcome": ("POST", f"{at}/outcome", {"happened": True}),
            "delegate": ("POST", "/delegations", deputy),
            "undelegate": ("DELETE", f"/delegations/{act.whose}/{act.to}", None),
            "revoke": ("POST", f"/grants/{place.grant}/revoke", None),
            "halt": ("POST", "/halt", {}),
            "unhalt": ("DELETE", "/halt", None),
            "cancel": ("POST", f"/runs/{place.run}/cancel", {}),
        }[act.act]


async def answered(inbox: Inbox | Signoff, act: Act, request: ApprovalRequest, by: Actor) -> tuple[bool, str]:
    """Answer as a program does."""
    try:
        if act.act in ("outcome", "open"):
            assert not isinstance(inbox, Signoff)
            done = inbox.opened(request.id, by) if act.act == "open" else inbox.tell(request.id, happened=True, by=by)
            await done
            return True, ""
        terms = None
        if act.remember:
            offer = offer_called(request, act.remember)
            until = datetime.fromisoformat(act.until) if act.until else None
            terms = Terms(match=offer.match if offer is not None else None, until=until)
        approved = act.act == "approve"
        decision = ApprovalDecision(approved=approved, note=act.note, edited_args=act.args, terms=terms, by=by)
        await (
            inbox.answer(request.id, decision, by=by)
            if isinstance(inbox, Signoff)
            else inbox.answer(request.id, decision)
        )
    except SignoffError as error:
        return False, str(error)
    return True, ""


@dataclass
class Program:
    """`signoff.channels.open_inbox`."""

    async def do(self, act: Act, request: ApprovalRequest | None, place: Place) -> tuple[bool, str]:
        assert request is not None
        inbox = open_inbox(place.store, project=place.file)
        try:
            return await answered(inbox, act, request, place.actor(act.by))
        finally:
            inbox.broker.watch.close()


@dataclass
class Gate:
    """`Signoff.answer`, in the program that runs the agent."""

    async def do(self, act: Act, request: ApprovalRequest | None, place: Place) -> tuple[bool, str]:
        assert request is not None
        people = {name: person.roles for name, person in place.settings.people.items()}
        signoff = Signoff(place.settings.policy, store=place.store, people=people)
        try:
            return await answered(signoff, act, request, place.actor(act.by))
        finally:
            signoff.broker.watch.close()


class PressHouse(House):
    """A house that works in the project of the table."""

    def __init__(self, service: Service, place: Place) -> None:
        self.service = service
        self.store = place.store
        self.broker = place.broker
        self.settings = place.settings
        self.people = {name: service.person(name) for name in (*place.settings.people, "mallory")}

    @property
    def accounts(self) -> Mapping[str, Actor]:
        listed = self.settings.people.items()
        return {str(self.people[name].id): Actor(name=name, roles=person.roles) for name, person in listed}


class Presses:
    """Buttons and forms on Discord, at one bot for all cases."""

    def __init__(self, service: Service, place: Place) -> None:
        self.house = PressHouse(service, place)
        self._running = AsyncExitStack()

    async def __aenter__(self) -> Presses:
        await self._running.enter_async_context(self.house.running())
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._running.aclose()

    async def do(self, act: Act, request: ApprovalRequest | None, place: Place) -> tuple[bool, str]:
        assert request is not None
        person, message = self.house.people[act.by], await self.house.message(request)
        verb = {"approve": Verb.APPROVE, "deny": Verb.DENY, "outcome": Verb.HAPPENED, "open": Verb.WHOLE}[act.act]
        verb, rest = (Verb.REMEMBER_YES, "0-project") if act.remember else (verb, "")
        verb = Verb.EDIT if act.args is not None else verb
        verb = Verb.DENY_NOTE if act.note else verb
        pressed = Press(verb=verb, request=request.id, digest=request.args_digest, rest=rest).id
        answer = await person.forge(thread_of(message), pressed, message)
        if verb in (Verb.EDIT, Verb.DENY_NOTE):
            first = await answer.reply()
            if first.modal is None:
                return False, first.text
            filled = {ARGS: json.dumps(act.args)} if act.args is not None else {REASON: act.note}
            answer = await (await answer.modal()).submit(filled)
        return await self._came_of(answer, request)

    async def _came_of(self, answer: Answered, request: ApprovalRequest) -> tuple[bool, str]:
        """Whoever pressed is told something, unless the message itself tells it."""
        changed = asyncio.create_task(self._changed(request))
        said = asyncio.create_task(answer.reply())
        await asyncio.wait((changed, said), return_when=asyncio.FIRST_COMPLETED)
        accepted = await self._version(request) != request.version
        for task in (changed, said):
            task.cancel()
        await asyncio.wait((changed, said))
        return accepted, "" if accepted else said.result().text

    async def _changed(self, request: ApprovalRequest) -> None:
        async def changed() -> bool:
            return await self._version(request) != request.version

        await self.house.until(changed, "nothing came of it")

    async def _version(self, request: ApprovalRequest) -> int:
        return (await self.house.broker.get(request.id)).version
