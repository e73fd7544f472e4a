"""What nobody gets by a second identity: a program's key, another's place, the work on a request, a lifted no."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest
from tests.server.api_desk import Control
from tests.server.doors import Doors, problem_of

from signoff.config import Person
from signoff.core.access import EVERYTHING
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor, Delegation
from signoff.core.request import ApprovalRequest, State
from signoff.core.terms import Terms
from signoff.core.verdict import Requirement

NOT_ME = Requirement(not_by=frozenset({"requester"}))
CLEO = Person(name="cleo", roles=frozenset({"dev"}))


@pytest.fixture
def doors() -> Doors:
    doors = Doors(runs=Control)
    doors.people["cleo"] = CLEO
    return doors


async def program(doors: Doors, name: str = "deployer", maker: str = "ana") -> dict[str, str]:
    """The header of a program's key, which somebody made over the API."""
    admin = await doors.signed_in(maker)
    made = await admin.post("/api/v1/tokens", json={"program": name, "permissions": ["read", "answer", "run"]})
    assert made.status_code == 201, made.text
    return {"Authorization": f"Bearer {made.json()['secret']}"}


async def begun(doors: Doors, header: dict[str, str], need: Requirement = NOT_ME) -> ApprovalRequest:
    """What a run asks that was begun with a key."""
    async with doors.browser() as client:
        run = (await client.post("/api/v1/runs", json={"worker": "triage"}, headers=header)).json()
    return await doors.ask(need=need, run=run["id"], requester=run["requester"])


async def votes(
    client: httpx.AsyncClient, request: ApprovalRequest, decision: str = "approve", **more: Any
) -> httpx.Response:
    body = {"decision": decision, "args_digest": request.args_digest, **more.pop("body", {})}
    return await client.post(f"/api/v1/requests/{request.id}/votes", json=body, **more)


def is_refused(answer: httpx.Response) -> bool:
    return (answer.status_code, problem_of(answer)) == (403, "not-entitled")


# --- the requester ---


async def test_whoever_made_a_programs_key_is_the_requester_of_its_runs(doors: Doors) -> None:
    request = await begun(doors, await program(doors))
    answer = await votes(await doors.signed_in("ana"), request)
    assert is_refused(answer) and "created the key of the requester deployer" in answer.json()["detail"]
    assert (await votes(await doors.signed_in("ben"), request)).status_code == 200
    assert (await doors.broker.get(request.id)).state is State.APPROVED


async def test_nor_does_somebody_answer_in_their_place(doors: Doors) -> None:
    now = doors.clock.now()
    away = Delegation(absent="ana", deputy="cleo", since=now, until=now + timedelta(hours=1))
    await doors.broker.people.delegate(away)
    header, need = await program(doors), Requirement(role="ops", not_by=frozenset({"requester"}))
    assert is_refused(await votes(await doors.signed_in("cleo"), await begun(doors, header, need)))


async def test_where_nobody_known_made_the_key_nobody_can_be_told_apart(doors: Doors) -> None:
    _, header = await doors.token("deployer", EVERYTHING, is_program=True)  # made by `admin`, who is not on file
    request = await begun(doors, header)
    for name in ("ana", "ben"):
        answer = await votes(await doors.signed_in(name), request)
        assert is_refused(answer) and "does not know who created its key" in answer.json()["detail"]


async def test_a_rule_that_excludes_nobody_is_not_about_keys(doors: Doors) -> None:
    request = await begun(doors, await program(doors), Requirement())
    assert (await votes(await doors.signed_in("ana"), request)).status_code == 200


# --- programs ---


async def test_a_program_denies_and_comments_and_approves_nothing_where_there_are_people(doors: Doors) -> None:
    header, request = await program(doors), await doors.ask()
    async with doors.browser() as client:
        client.headers.update(header)
        assert is_refused(await votes(client, request))
        together = {"request": request.id, "decision": "approve", "args_digest": request.args_digest}
        [result] = (await client.post("/api/v1/votes", json={"votes": [together]})).json()["results"]
        assert result["problem"]["type"] == "urn:signoff:not-entitled"
        assert is_refused(await votes(client, request, "deny", body={"remember": {}}))
        assert (await client.post(f"/api/v1/requests/{request.id}/claim")).status_code == 403
        assert (await votes(client, request, "deny")).json()["state"] == "denied"


async def test_where_there_is_nobody_a_program_approves_but_nothing_of_its_own() -> None:
    doors = Doors(people={}, runs=Control)
    _, header = await doors.token("deployer", EVERYTHING, is_program=True)
    async with doors.browser() as client:
        client.headers.update(header)
        assert is_refused(await votes(client, await begun(doors, header, Requirement())))
        assert (await votes(client, await doors.ask(requester="otto"))).json()["state"] == "approved"


async def test_where_everybody_was_taken_off_the_file_it_does_not(doors: Doors) -> None:
    header, request = await program(doors), await doors.ask()
    for name in list(doors.people):
        doors.take_off(name)
    async with doors.browser() as client:
        assert is_refused(await votes(client, request, headers=header))


# --- who works on a request ---


async def test_only_who_may_approve_a_request_says_who_works_on_it(doors: Doors) -> None:
    request = await doors.ask(need=Requirement(role="ops"))
    ana, ben, cleo = [await doors.signed_in(name) for name in ("ana", "ben", "cleo")]
    path = f"/api/v1/requests/{request.id}"
    for word, body in (("claim", None), ("release", None), ("assign", {"to": "cleo"})):
        assert is_refused(await cleo.post(f"{path}/{word}", json=body))
    assert (await ben.post(f"{path}/assign", json={"to": "cleo"})).status_code == 200
    assert (await cleo.post(f"{path}/release")).status_code == 200, "whoever has it may leave it"
    doors.change("ana", roles=frozenset[str]())
    assert (await ana.post(f"{path}/assign", json={"to": "cleo"})).status_code == 200, "an admin may"
    assert is_refused(await votes(ben, request))
    assert (await votes(ben, request, "deny")).json()["state"] == "denied", "a no needs nobody's leave"


# --- a remembered no ---


async def no_of(doors: Doors, name: str, need: Requirement | None = None) -> str:
    """The id of a no that somebody had remembered."""
    request = await doors.ask(need=need)
    decision = ApprovalDecision(approved=False, terms=Terms())
    await doors.broker.answer(request.id, decision, by=Actor(name=name))
    return (await doors.broker.grants.list())[-1].id


async def test_who_may_revoke_a_no(doors: Doors) -> None:
    doors.broker.remembers = True
    bens, ops = await no_of(doors, "ben"), await no_of(doors, "ben", Requirement(role="ops"))
    cleo, header = await doors.signed_in("cleo"), await program(doors)
    _, admins = await doors.token("cron", EVERYTHING, is_program=True)
    for client, headers in ((cleo, {}), (doors.browser(), header), (doors.browser(), admins)):
        for grant in (bens, ops):
            assert is_refused(await client.post(f"/api/v1/grants/{grant}/revoke", headers=headers))
    assert len(await doors.broker.grants.list()) == 2
    doors.people["dan"] = Person(name="dan", roles=frozenset({"ops"}))
    dan = await doors.signed_in("dan")
    assert is_refused(await dan.post(f"/api/v1/grants/{bens}/revoke"))
    assert (await dan.post(f"/api/v1/grants/{ops}/revoke")).status_code == 200
    assert (await (await doors.signed_in("ben")).post(f"/api/v1/grants/{bens}/revoke")).status_code == 200


async def test_an_admin_may_revoke_any_no_and_anybody_a_yes(doors: Doors) -> None:
    doors.broker.remembers = True
    bens = await no_of(doors, "ben")
    assert (await (await doors.signed_in("ana")).post(f"/api/v1/grants/{bens}/revoke")).status_code == 200
    request = await doors.ask()
    await doors.broker.answer(request.id, ApprovalDecision(approved=True, terms=Terms()), by=Actor(name="ben"))
    [yes] = await doors.broker.grants.list()
    assert (await (await doors.signed_in("cleo")).post(f"/api/v1/grants/{yes.id}/revoke")).status_code == 200


# --- standing in ---


async def test_somebody_stands_in_no_longer(doors: Doors) -> None:
    ana, ben, cleo = [await doors.signed_in(name) for name in ("ana", "ben", "cleo")]

    async def stands_in(client: httpx.AsyncClient, absent: str, **more: Any) -> httpx.Response:
        until = (doors.clock.now() + timedelta(days=more.pop("days", 2))).isoformat()
        return await client.post(
            "/api/v1/delegations", json={"absent": absent, "deputy": "cleo", "until": until}, **more
        )

    assert (await stands_in(ben, "ben", days=91)).status_code == 422, "not for ever"
    for name in ("ana", "ben"):
        assert (await stands_in(ana, name)).status_code == 201, "an admin arranges it for anybody"
    _, admins = await doors.token("cron", EVERYTHING, is_program=True)
    for client, headers, why in ((ben, {}, "not-entitled"), (doors.browser(), admins, "not-permitted")):
        answer = await client.delete("/api/v1/delegations/ana/cleo", headers=headers)
        assert (answer.status_code, problem_of(answer)) == (403, why)
    assert (await stands_in(doors.browser(), "cron", headers=admins)).status_code == 403
    request = await doors.ask(need=Requirement(role="ops"))
    assert (await ben.delete("/api/v1/delegations/BEN/cleo")).json()["absent"] == "ben"
    assert (await cleo.delete("/api/v1/delegations/ana/cleo")).status_code == 200, "a deputy may leave it, too"
    assert is_refused(await votes(cleo, request))
    assert (await ana.get("/api/v1/delegations")).json()["delegations"] == []
    assert (await ana.delete("/api/v1/delegations/ana/cleo")).status_code == 422
    kinds = [one.kind for one in await doors.broker.store.read(lambda tx: tx.record.entries())]
    assert kinds.count("delegation ended") == 2


async def test_why_things_run_again_is_on_record(doors: Doors) -> None:
    ana = await doors.signed_in("ana")
    await ana.post("/api/v1/halt", json={"why": "fire"})
    assert (await ana.delete("/api/v1/halt", params={"why": "it is out"})).status_code == 200
    last = (await doors.broker.store.read(lambda tx: tx.record.entries()))[-1]
    assert (last.kind, "it is out" in last.body) == ("unhalted", True)
