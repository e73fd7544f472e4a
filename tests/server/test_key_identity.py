"""Who is let in by which key, what they may do with it, and that it ends when it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from tests.ready import ready
from tests.server.doors import HERE, LOCAL_HOST, PUBLIC, Doors, problem_of

from signoff.core.access import EVERYTHING, WORKING, AccessKind, Permission
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.core.verdict import Requirement
from signoff.ports import Transaction
from signoff.server.app import ENDPOINTS
from signoff.server.endpoint import CSRF_HEADER, LONGEST_BODY, Endpoint
from signoff.server.identity import is_still_admitted
from signoff.store.memory_store import MemoryStore
from signoff.store.sqlite import SqliteStore


@pytest.fixture
def doors() -> Doors:
    return Doors()


async def me(doors: Doors, **headers: str) -> Any:
    async with doors.browser() as program:
        return await program.get("/api/v1/me", headers=headers)


async def test_nobody_is_told_to_sign_in(doors: Doors) -> None:
    answer = await me(doors)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert problem_of(answer) == "not-signed-in"


async def test_who_one_is(doors: Doors) -> None:
    browser = await doors.signed_in("ana")
    told = (await browser.get("/api/v1/me")).json()
    assert told.pop("csrf") == browser.headers[CSRF_HEADER] != ""
    assert told.pop("expires_at") == "2026-01-02T00:00:00.000Z"
    assert told == {"name": "ana", "kind": "person", "roles": ["ops"], "permissions": sorted(EVERYTHING)}
    _, header = await doors.token("ben", frozenset({Permission.READ, Permission.ADMIN}))
    told = (await me(doors, **header)).json()
    assert (told["name"], told["permissions"], told["csrf"]) == ("ben", ["read"], ""), "ben is not an admin"
    _, header = await doors.token("cron", WORKING, is_program=True)
    told = (await me(doors, **header)).json()
    assert (told["name"], told["kind"], told["roles"]) == ("cron", "script", [])


class Counting(MemoryStore):
    """Counts how often it is looked into."""

    reads = 0

    async def read(self, work: Callable[[Transaction], Any]) -> Any:
        self.reads += 1
        return await super().read(work)


async def test_what_was_not_signed_here_is_refused_without_a_look_into_the_store() -> None:
    store = Counting(record=True)
    doors, others = Doors(store=store), Doors()
    browser = await doors.signed_in()
    value, foreign = browser.cookies["signoff"], (await others.signed_in()).cookies["signoff"]
    secret, _, mark = value.rpartition(".")
    async with doors.browser() as thief:
        before = store.reads
        for wrong in (
            *(secret, f"{secret}.", f".{mark}", f"{secret}.{mark[:-1]}", f"{secret}x.{mark}", f"{value}.{mark}"),
            *("x" * 5_000, foreign, "sos_.", "."),
        ):
            thief.cookies.set("signoff", wrong, domain=LOCAL_HOST)
            assert (await thief.get("/api/v1/me")).status_code == 401, wrong
        for wrong in ("sot", "Bearer", secret, "sol_x"):
            thief.cookies.clear()
            assert (await thief.get("/api/v1/me", headers={"Authorization": f"Bearer {wrong}"})).status_code == 401
        assert store.reads == before
        assert (await thief.get("/api/v1/me", headers={"Authorization": "Bearer sot_x"})).status_code == 401
        assert store.reads == before + 1


async def test_a_cookie_counts_only_where_it_was_given(doors: Doors) -> None:
    plain = (await doors.signed_in()).cookies["signoff"]
    safe = (await doors.signed_in(url=PUBLIC)).cookies["__Host-signoff"]
    for url, name, value in ((PUBLIC, "signoff", plain), (PUBLIC, "signoff", safe), (HERE, "__Host-signoff", safe)):
        async with doors.browser(url) as browser:
            answer = await browser.get("/api/v1/me", headers={"Cookie": f"{name}={value}"})
            assert answer.status_code == 401, (url, name)


async def test_a_wrong_token_is_not_made_good_by_a_cookie(doors: Doors) -> None:
    browser = await doors.signed_in()
    assert (await browser.get("/api/v1/me", headers={"Authorization": "Bearer sot_x"})).status_code == 401
    basic = await browser.get("/api/v1/me", headers={"Authorization": "Basic eDp5"})
    assert basic.status_code == 200, "that is for a proxy in front"


# --- changes need more than a cookie ---


@pytest.mark.parametrize(
    ("headers", "word"),
    [
        ({CSRF_HEADER: ""}, "no-csrf-token"),
        ({CSRF_HEADER: "wrong"}, "no-csrf-token"),
        ({CSRF_HEADER: "BEN"}, "no-csrf-token"),
        ({"Origin": "https://evil.example"}, "foreign-origin"),
        ({"Origin": "http://127.0.0.1:3000"}, "foreign-origin"),
        ({"Origin": "https://127.0.0.1:8420"}, "foreign-origin"),
        ({"Origin": "null"}, "foreign-origin"),
    ],
)
async def test_another_site_changes_nothing(doors: Doors, headers: dict[str, str], word: str) -> None:
    browser, ben = await doors.signed_in("ana"), await doors.signed_in("ben")
    headers = {name: ben.headers[CSRF_HEADER] if value == "BEN" else value for name, value in headers.items()}
    request = await doors.ask()
    body = {"decision": "approve", "args_digest": request.args_digest}
    answer = await browser.post(f"/api/v1/requests/{request.id}/votes", json=body, headers=headers)
    assert (answer.status_code, problem_of(answer)) == (403, word)
    assert (await doors.broker.get(request.id)).state is State.PENDING
    good = await browser.post(f"/api/v1/requests/{request.id}/votes", json=body, headers={"Origin": HERE})
    assert good.status_code == 200, good.text


async def test_every_change_needs_it(doors: Doors) -> None:
    browser = await doors.signed_in("ana")
    del browser.headers[CSRF_HEADER]
    for endpoint in ENDPOINTS:
        if endpoint.writes:
            answer = await browser.request(endpoint.method, path_of(endpoint), json={})
            assert (answer.status_code, problem_of(answer)) == (403, "no-csrf-token"), endpoint.name


# --- the table of permissions ---


def path_of(endpoint: Endpoint) -> str:
    return "/api/v1" + "".join("x" if "}" in part else part for part in _parts(endpoint.path))


def _parts(path: str) -> list[str]:
    return path.replace("{", "\0{").replace("}", "}\0").split("\0")


@pytest.mark.parametrize("endpoint", [one for one in ENDPOINTS if one.permission], ids=lambda one: one.name)
async def test_each_endpoint_needs_its_permission(doors: Doors, endpoint: Endpoint) -> None:
    assert endpoint.permission is not None
    _, lacking = await doors.token("cron", EVERYTHING - {endpoint.permission}, is_program=True)
    async with doors.browser() as program:
        assert (await program.request(endpoint.method, path_of(endpoint), json={})).status_code == 401
        answer = await program.request(endpoint.method, path_of(endpoint), json={}, headers=lacking)
    assert (answer.status_code, problem_of(answer)) == (403, "not-permitted")
    assert answer.json()["detail"] == f"this needs the permission `{endpoint.permission}`"


@pytest.mark.parametrize(
    "endpoint", [one for one in ENDPOINTS if one.tag in ("access", "requests")], ids=lambda one: one.name
)
async def test_and_no_other(doors: Doors, endpoint: Endpoint) -> None:
    if endpoint.returns is None:
        pytest.skip("it does not end")
    assert endpoint.permission is not None
    _, header = await doors.token("cron", frozenset({endpoint.permission}), is_program=True)
    async with doors.browser() as program:
        answer = await program.request(endpoint.method, path_of(endpoint), json={}, headers=header)
    assert answer.status_code != 401
    assert "this needs the permission" not in answer.text


LETS_MORE_RUN = {"unhalt", "delegate", "end_delegation", "make_token", "write_rule"}
OTHERS = set(
    "claim_request release_request assign_request tell_outcome read_request note_presence vote vote_together "
    "check_edit add_comment start_run resume_run cancel_run revoke_grant judge_call explain_call halt "
    "revoke_token".split()
)
"""Programs may do these, as far as each of them goes: a vote is a denial, and a remembered denial is not revoked."""


@pytest.mark.parametrize("endpoint", [one for one in ENDPOINTS if one.people_only], ids=lambda one: one.name)
async def test_a_program_with_every_permission_lets_no_more_run(doors: Doors, endpoint: Endpoint) -> None:
    await doors.broker.switch.halt(by="ana")
    _, header = await doors.token("ana", EVERYTHING, is_program=True)  # also one that is called like an admin
    async with doors.browser() as program:
        answer = await program.request(endpoint.method, path_of(endpoint), json={}, headers=header)
    assert (answer.status_code, problem_of(answer)) == (403, "not-permitted"), answer.text
    assert await doors.broker.switch.state()


def test_what_lets_more_run_is_for_people() -> None:
    """A new endpoint that writes has to be sorted: what lets more run is not for programs."""
    assert {one.name for one in ENDPOINTS if one.people_only} == LETS_MORE_RUN
    assert {one.name for one in ENDPOINTS if one.writes} == LETS_MORE_RUN | OTHERS


async def test_a_token_can_do_at_most_what_its_holder_can(doors: Doors) -> None:
    _, header = await doors.token("ana", EVERYTHING)
    assert (await me(doors, **header)).json()["permissions"] == sorted(EVERYTHING)
    doors.change("ana", admin=False)
    assert (await me(doors, **header)).json()["permissions"] == sorted(WORKING)
    _, header = await doors.token("ben", EVERYTHING)
    assert (await me(doors, **header)).json()["permissions"] == sorted(WORKING)


async def test_the_word_of_a_program_never_counts_as_a_persons(doors: Doors) -> None:
    both = await doors.ask(need=Requirement(role="ops", quorum=2))
    plain = await doors.ask()
    for name in ("deployer", "ana", "ben"):  # also one that is called like a person
        _, header = await doors.token(name, EVERYTHING, is_program=True)
        async with doors.browser() as program:
            body = {"decision": "approve", "args_digest": both.args_digest}
            answer = await program.post(f"/api/v1/requests/{both.id}/votes", json=body, headers=header)
            assert (answer.status_code, problem_of(answer)) == (403, "not-entitled")
    assert (await doors.broker.get(both.id)).votes == ()
    async with doors.browser() as program:
        body = {"decision": "deny", "args_digest": plain.args_digest}
        answer = await program.post(f"/api/v1/requests/{plain.id}/votes", json=body, headers=header)
        assert answer.json()["decided_by"] == "ben (script)", "the record says what it was"


async def test_one_person_with_many_keys_is_one_person(doors: Doors) -> None:
    request = await doors.ask(need=Requirement(role="ops", quorum=2))
    browser, (_, header) = await doors.signed_in("ana"), await doors.token("ana")
    body = {"decision": "approve", "args_digest": request.args_digest}
    assert (await browser.post(f"/api/v1/requests/{request.id}/votes", json=body)).status_code == 200
    async with doors.browser() as program:
        again = await program.post(f"/api/v1/requests/{request.id}/votes", json=body, headers=header)
    assert (again.status_code, (await doors.broker.get(request.id)).state) == (200, State.PENDING)
    ben = await doors.signed_in("ben")
    await ben.post(f"/api/v1/requests/{request.id}/votes", json=body)
    assert (await doors.broker.get(request.id)).state is State.APPROVED


async def test_a_vote_is_of_whoever_sends_it_whatever_else_they_send(doors: Doors) -> None:
    request, browser = await doors.ask(), await doors.signed_in("ben")
    body = {"decision": "approve", "args_digest": request.args_digest, "by": "ana"}
    refused = await browser.post(f"/api/v1/requests/{request.id}/votes", json=body)
    assert refused.status_code == 422
    del body["by"]
    headers = {"X-Forwarded-User": "ana", "X-Remote-User": "ana"}
    told = await browser.post(f"/api/v1/requests/{request.id}/votes?as=ana", json=body, headers=headers)
    assert told.status_code in (200, 422)
    votes = (await doors.broker.get(request.id)).votes
    assert [str(one.by) for one in votes] in ([], ["ben"])


# --- what ends, ends at once ---


async def test_what_is_revoked_is_out_at_once_also_where_it_listens(doors: Doors) -> None:
    admin, ben = await doors.signed_in("ana"), await doors.signed_in("ben")
    listening = _connection(ben.cookies["signoff"])
    identity = await doors.keys(listening)
    assert identity is not None
    assert await is_still_admitted(doors.keys, listening, identity, Permission.READ)
    [key] = (await admin.get("/api/v1/tokens", params={"kind": "session", "holder": "ben"})).json()["tokens"]
    assert (await admin.delete(f"/api/v1/tokens/{key['id']}")).json()["refusal"] == "this session was revoked"
    assert (await ben.get("/api/v1/me")).status_code == 401
    assert not await is_still_admitted(doors.keys, listening, identity, Permission.READ)


async def test_what_expires_is_out_at_once(doors: Doors) -> None:
    browser, (_, header) = await doors.signed_in("ben"), await doors.token("ben")
    listening = _connection(browser.cookies["signoff"])
    identity = await doors.keys(listening)
    assert identity is not None
    doors.clock.advance(timedelta(hours=12) - timedelta(seconds=1))
    assert (await browser.get("/api/v1/me")).status_code == 200
    assert await is_still_admitted(doors.keys, listening, identity, Permission.READ)
    doors.clock.advance(1)
    assert (await browser.get("/api/v1/me")).status_code == 401
    assert not await is_still_admitted(doors.keys, listening, identity, Permission.READ)
    assert (await me(doors, **header)).status_code == 200
    doors.clock.advance(timedelta(hours=12))
    assert (await me(doors, **header)).status_code == 401


async def test_who_is_taken_off_the_file_is_out_at_once(doors: Doors) -> None:
    browser, (_, header) = await doors.signed_in("ben"), await doors.token("ben")
    listening = _connection(browser.cookies["signoff"])
    identity = await doors.keys(listening)
    assert identity is not None
    doors.take_off("ben")
    assert (await browser.get("/api/v1/me")).status_code == 401
    assert (await me(doors, **header)).status_code == 401
    assert not await is_still_admitted(doors.keys, listening, identity, Permission.READ)
    doors.take_off("ana")
    _, local = await doors.token(doors.local)
    assert (await me(doors, **local)).status_code == 401, "nobody is on file any longer, which is not the same as never"


async def test_a_stream_ends_where_the_permission_does(doors: Doors) -> None:
    _, header = await doors.token("ana")
    listening = _connection("", header["Authorization"])
    identity = await doors.keys(listening)
    assert identity is not None
    doors.change("ana", admin=False)
    assert await is_still_admitted(doors.keys, listening, identity, Permission.READ)
    assert not await is_still_admitted(doors.keys, listening, identity, Permission.ADMIN)


def _connection(cookie: str, authorization: str = "") -> Request:
    headers = [(b"host", b"127.0.0.1:8420"), (b"cookie", f"signoff={cookie}".encode())]
    headers += [(b"authorization", authorization.encode())] if authorization else []
    return Request(
        {
            "type": "http",
            "method": "GET",
            "scheme": "http",
            "path": "/api/v1/events",
            "query_string": b"",
            "server": ("127.0.0.1", 8420),
            "headers": headers,
        }
    )


async def test_where_nobody_is_on_file_there_is_one_person() -> None:
    doors = Doors(people={})
    browser = await doors.signed_in("otto")
    told = (await browser.get("/api/v1/me")).json()
    assert (told["name"], told["permissions"]) == ("otto", sorted(EVERYTHING))
    for name in ("ana", "root", ""):
        _, header = await doors.token(name)
        assert (await me(doors, **header)).status_code == 401, name
    doors.people["ana"] = Doors().people["ana"]
    assert (await browser.get("/api/v1/me")).status_code == 401, "from now on, people on file only"
    nobody = Doors(people={}, local="")
    _, header = await nobody.token("")
    assert (await me(nobody, **header)).status_code == 401


# --- tokens over the API ---


async def test_a_person_makes_looks_at_and_revokes_their_own(doors: Doors) -> None:
    ben, (others, _) = await doors.signed_in("ben"), await doors.token("ana")
    body = {"label": "laptop", "permissions": ["read", "answer"], "lasts": 3600}
    made = await ben.post("/api/v1/tokens", json=body)
    assert made.status_code == 201
    token, header = made.json()["token"], {"Authorization": f"Bearer {made.json()['secret']}"}
    assert (token["holder"], token["created_by"], token["label"]) == ("ben", "ben", "laptop")
    assert (await me(doors, **header)).json()["permissions"] == ["answer", "read"]
    listed = (await ben.get("/api/v1/tokens")).json()["tokens"]
    assert [one["id"] for one in listed] == [token["id"]]
    assert "secret" not in str(listed) and "digest" not in str(listed)
    assert (await ben.get("/api/v1/tokens", params={"holder": "ana"})).json()["tokens"] == []
    assert (await ben.delete(f"/api/v1/tokens/{others.id}")).status_code == 404
    assert (await ben.delete("/api/v1/tokens/no-such")).status_code == 404
    assert (await ben.delete(f"/api/v1/tokens/{token['id']}")).status_code == 200
    assert (await me(doors, **header)).status_code == 401
    assert (await ben.get("/api/v1/tokens")).json()["tokens"] == []
    [over] = (await ben.get("/api/v1/tokens", params={"all": True})).json()["tokens"]
    assert over["refusal"] == "this token was revoked"


async def test_a_token_revokes_itself_and_nothing_else(doors: Doors) -> None:
    """Or else one that only reads, and was stolen, would sign its holder out everywhere."""
    browser, (other, _) = await doors.signed_in("ben"), await doors.token("ben")
    own, header = await doors.token("ben", frozenset({Permission.READ}))
    sessions = (await browser.get("/api/v1/tokens", params={"kind": "session"})).json()["tokens"]
    async with doors.browser() as program:
        for key in (other.id, sessions[0]["id"]):
            assert (await program.delete(f"/api/v1/tokens/{key}", headers=header)).status_code == 404
        assert (await program.delete(f"/api/v1/tokens/{own.id}", headers=header)).status_code == 200
    assert (await browser.delete(f"/api/v1/tokens/{other.id}")).status_code == 200, "a browser ends them all"
    _, admins = await doors.token("ana")
    async with doors.browser() as program:
        assert (await program.delete(f"/api/v1/tokens/{sessions[0]['id']}", headers=admins)).status_code == 200


async def test_the_settings_tell_who_is_in_as_somebody(doors: Doors) -> None:
    ana = await doors.signed_in("ana")
    await ana.post("/api/v1/tokens", json={"label": "laptop\u202e<b>"})
    await ana.post("/api/v1/tokens", json={"program": "bot"})
    await doors.token("ben", label="not hers")
    page = (await ana.get("/settings")).text
    assert page.count("signoff tokens revoke ") == 3
    assert "laptop" in page and "\u202e" not in page and "<b>" not in page
    assert "of the program" in page and "this one" in page and "not hers" not in page


async def test_a_session_is_listed_with_what_its_person_may_do(doors: Doors) -> None:
    ana, ben = await doors.signed_in("ana"), await doors.signed_in("ben")
    [page, own] = [(await one.get("/settings")).text for one in (ben, ana)]
    assert ": answer, read, run; " in page and ": admin, answer, read, run; " in own
    [key] = (await ana.get("/api/v1/tokens", params={"kind": "session", "holder": "ben"})).json()["tokens"]
    assert key["permissions"] == ["answer", "read", "run"]


async def test_nobody_makes_more_than_they_have(doors: Doors) -> None:
    ana, ben = await doors.signed_in("ana"), await doors.signed_in("ben")
    assert (await ben.post("/api/v1/tokens", json={"permissions": ["admin"]})).status_code == 403
    assert (await ben.post("/api/v1/tokens", json={"program": "bot"})).status_code == 403
    assert (await ben.post("/api/v1/tokens", json={"permissions": []})).status_code == 422
    for lasts in (10**12, 90 * 86_400 + 1):
        assert (await ben.post("/api/v1/tokens", json={"lasts": lasts})).status_code == 422, "90 days at most"
    taken = await ana.post("/api/v1/tokens", json={"program": "BEN "})
    assert (taken.status_code, problem_of(taken)) == (422, "name-taken")
    made = await ana.post("/api/v1/tokens", json={"program": "bot", "permissions": ["read", "admin"]})
    assert made.json()["token"]["is_program"] is True
    _, header = await doors.token("ben", WORKING)
    async with doors.browser() as program:
        stolen = await program.post("/api/v1/tokens", json={}, headers=header)
        assert (stolen.status_code, problem_of(stolen)) == (403, "not-permitted"), "or it would never end"
        bots = {"Authorization": f"Bearer {made.json()['secret']}"}
        assert (await program.post("/api/v1/tokens", json={}, headers=bots)).status_code == 403
        more = {"program": "bot2", "permissions": ["answer"]}
        assert (await program.post("/api/v1/tokens", json=more, headers=bots)).status_code == 403, "it cannot answer"


async def test_a_program_sees_only_its_own_keys_not_those_of_a_person_of_its_name(doors: Doors) -> None:
    persons, _ = await doors.token("ben")
    own, header = await doors.token("ben", WORKING, is_program=True)
    async with doors.browser() as program:
        listed = (await program.get("/api/v1/tokens", headers=header)).json()["tokens"]
        assert [one["id"] for one in listed] == [own.id]
        assert (await program.delete(f"/api/v1/tokens/{persons.id}", headers=header)).status_code == 404


async def test_a_secret_is_sent_once_and_kept_nowhere(tmp_path: Path) -> None:
    file = ready(tmp_path / "signoff.db")
    store = SqliteStore(file)
    doors = Doors(store=store)
    browser = await doors.signed_in("ben")
    headers = {"Idempotency-Key": "once"}
    made = await browser.post("/api/v1/tokens", json={}, headers=headers)
    again = await browser.post("/api/v1/tokens", json={}, headers=headers)
    assert (made.status_code, again.status_code) == (201, 201)
    assert again.json() == {**made.json(), "secret": None}
    assert len(await doors.broker.access.list(kind=AccessKind.TOKEN)) == 1
    await store.flush()
    store.close()
    kept = _bytes_in(tmp_path)
    session = browser.cookies["signoff"].partition(".")[0]
    assert b"laptop" not in kept and made.json()["token"]["id"].encode() in kept, "this is where it would be"
    for secret in (made.json()["secret"], session):
        assert secret.encode() not in kept


def _bytes_in(directory: Path) -> bytes:
    return b"".join(one.read_bytes() for one in directory.iterdir())


async def test_replies_of_a_person_are_not_for_a_program_of_that_name(doors: Doors) -> None:
    request, ben = await doors.ask(), await doors.signed_in("ben")
    body, headers = {"decision": "approve", "args_digest": request.args_digest}, {"Idempotency-Key": "k"}
    first = await ben.post(f"/api/v1/requests/{request.id}/votes", json=body, headers=headers)
    assert first.status_code == 200
    _, token = await doors.token("ben", WORKING, is_program=True)
    async with doors.browser() as program:
        second = await program.post(f"/api/v1/requests/{request.id}/votes", json=body, headers={**headers, **token})
    assert second.status_code == 409, "it came late, and is told so"


async def test_a_body_that_is_too_long(doors: Doors) -> None:
    browser = await doors.signed_in()
    whole = await browser.post(
        "/api/v1/tokens", content=b" " * (LONGEST_BODY + 1), headers={"Content-Type": "application/json"}
    )
    assert (whole.status_code, problem_of(whole)) == (413, "too-long")

    async def parts() -> Any:
        for _ in range(20):
            yield b" " * 65_536

    pieces = await browser.post("/api/v1/tokens", content=parts(), headers={"Content-Type": "application/json"})
    assert (pieces.status_code, problem_of(pieces)) == (413, "too-long")


async def test_what_keys_are_called_is_made_visible(doors: Doors) -> None:
    browser = await doors.signed_in("ana")
    made = await browser.post("/api/v1/tokens", json={"program": "bot\u202e", "label": "a\u200bb <script>"})
    token = made.json()["token"]
    assert "\u202e" not in token["holder"] and "\u200b" not in token["label"]


async def test_the_record_tells_who_gave_what(doors: Doors) -> None:
    browser = await doors.signed_in("ana")
    made = (await browser.post("/api/v1/tokens", json={"program": "bot"})).json()["token"]
    await browser.delete(f"/api/v1/tokens/{made['id']}")
    entries = await doors.broker.store.read(lambda tx: tx.record.entries())
    bodies = [(one.kind, json.loads(one.body)) for one in entries if one.kind.startswith("access")]
    told = [(kind, body["holder"], body["by"]) for kind, body in bodies]
    assert told[-2:] == [("access given", "bot", "ana"), ("access revoked", "bot", "ana")]
    assert "sot_" not in str([one.body for one in entries])


async def test_an_answer_by_the_broker_is_still_checked_by_the_file(doors: Doors) -> None:
    """The other door: whoever was let in before is asked for by name when they vote."""
    request = await doors.ask()
    doors.take_off("ben")
    from signoff.errors import NotEntitled

    with pytest.raises(NotEntitled, match="only listed people may answer"):
        await doors.broker.answer(request.id, ApprovalDecision(approved=True), by=Actor(name="ben"))
