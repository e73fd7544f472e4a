"""Requests over HTTP: listed by filters and pages, shown, taken, handed over, read, and what became of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.api_desk import ApiDesk, no, yes

from signoff.broker import new_id
from signoff.broker.run_status import MOST_NAMED
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request_context import RequestContext
from signoff.core.run import SavedRun
from signoff.ports import Transaction
from signoff.server.look_back import MOST_REQUESTS, run_page
from signoff.store.request_table import WholeRequests


async def test_what_waits_is_listed_page_by_page_the_oldest_first(api_desk: ApiDesk) -> None:
    asked = [(await api_desk.ask(args={"order": f"A{number}", "amount": 1})).id for number in range(5)]
    first = await api_desk.get("/requests", limit=2)
    assert [one["id"] for one in first["requests"]] == asked[:2] and first["waiting"] == 5
    second = await api_desk.get("/requests", limit=2, cursor=first["next"])
    third = await api_desk.get("/requests", limit=2, cursor=second["next"])
    assert [one["id"] for one in (*second["requests"], *third["requests"])] == asked[2:]
    assert third["next"] is None
    assert first["requests"][0]["title"] == 'refund(order="A0", amount=1)'
    await api_desk.refused(422, "bad-cursor", "GET", "/requests", cursor="nonsense")
    await api_desk.refused(422, "invalid", "GET", "/requests", limit=0)
    await api_desk.refused(422, "invalid", "GET", "/requests", nonsense=1)


async def test_rows_say_which_session_and_task_they_come_from(api_desk: ApiDesk) -> None:
    told = {"session": "8bba97ae-5c36-4623-9314-4392726408f9", "directory": "/home/ana/shop"}
    await api_desk.ask(context=RequestContext(prompt="Tidy up\x1b", **told))
    run = await api_desk.post("/runs", {"worker": "triage", "prompt": "sort these"}, status=201)
    await api_desk.ask(run=run["id"])
    rows = (await api_desk.get("/requests"))["requests"]
    assert [(one["session"], one["task"]) for one in rows] == [
        ("…726408f9 in /home/ana/shop", "“Tidy up⟦ESC⟧”"),
        ("", "sort these (for ben)"),
    ]


async def test_filters_choose_and_what_is_settled_is_history(api_desk: ApiDesk) -> None:
    one = await api_desk.ask(worker=("triage", "desk"), run="")
    two = await api_desk.ask("mail", {"to": "ana", "body": "Hello there"})
    await api_desk.broker.assign(two.id, "ana", by=Actor(name="ana", via="test"))
    denied = await api_desk.ask("mail", {"to": "ben", "body": "no"})
    await api_desk.post(f"/requests/{denied.id}/votes", no(denied))

    async def found(**query: str) -> list[str]:
        return [row["id"] for row in (await api_desk.get("/requests", **query))["requests"]]

    assert await found() == [one.id, two.id]
    assert await found(tool="mail") == [two.id]
    assert await found(worker="desk") == [one.id]
    assert await found(q="HELLO") == [two.id]
    assert await found(assigned=" ANA ") == [two.id], "as the file spells her"
    assert await found(assigned="") == [one.id]
    assert await found(state="settled") == [denied.id]
    assert await found(state="all") == [denied.id, two.id, one.id]


async def test_a_request_is_shown_whole_by_the_beginning_of_its_id(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    shown = await api_desk.get(f"/requests/{asked.id[:6]}")
    assert (shown["id"], shown["state"], shown["args"]) == (asked.id, "pending", {"order": "A1", "amount": 40})
    assert shown["args_digest"] == asked.args_digest == shown["card"]["digest"]
    assert (shown["role"], shown["long"], shown["read"]) == ("finance", False, False)
    assert shown["card"]["needs"] == "somebody with the role finance"
    await api_desk.refused(404, "unknown-request", "GET", "/requests/nothing")


async def test_somebody_takes_a_request_hands_it_over_and_leaves_it(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    path = f"/requests/{asked.id}"
    taken = await api_desk.post(f"{path}/claim")
    assert (taken["request"]["assigned"], taken["warning"]) == ("ben", "")
    assert "ben is working on" in await api_desk.refused(
        403, "not-entitled", "POST", f"{path}/votes", yes(asked), who="cleo"
    )
    handed = await api_desk.post(f"{path}/assign", {"to": "Ana"})
    assert handed["request"]["assigned"] == "ana"
    assert "ana may not answer it" in handed["warning"]
    assert "no listed person is called" in await api_desk.refused(
        422, "wrong-use", "POST", f"{path}/assign", {"to": "mallory"}
    )
    left = await api_desk.post(f"{path}/release")
    assert (left["request"]["assigned"], left["warning"]) == ("", "")


async def test_a_long_call_is_approved_only_by_whoever_has_read_it(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask("mail", {"to": "ana", "body": "word " * 400})
    path = f"/requests/{asked.id}"
    shown = await api_desk.get(path)
    assert (shown["long"], shown["read"]) == (True, False)
    assert "read all of it" in await api_desk.refused(409, "not-read", "POST", f"{path}/votes", yes(asked))
    edited = {"to": "ana", "body": "short"}
    await api_desk.refused(409, "not-read", "POST", f"{path}/votes", yes(asked, args=edited))
    await api_desk.refused(409, "args-changed", "POST", f"{path}/read", {"args_digest": "another"})
    assert (await api_desk.post(f"{path}/read", {"args_digest": asked.args_digest}))["read"] is True
    assert (await api_desk.get(path, who="cleo"))["read"] is False
    await api_desk.refused(409, "not-read", "POST", f"{path}/votes", yes(asked), who="cleo")
    assert (await api_desk.post(f"{path}/votes", yes(asked)))["state"] == "approved"
    other = await api_desk.ask("mail", {"to": "ana", "body": "more " * 400})
    assert (await api_desk.post(f"/requests/{other.id}/votes", no(other)))["state"] == "denied", "a no needs no reading"


async def test_a_person_says_what_became_of_a_lost_call(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask("mail", {"to": "ana", "body": "hi"})
    path = f"/requests/{asked.id}"
    await api_desk.refused(422, "refused", "POST", f"{path}/outcome", {"happened": True})
    await api_desk.post(f"{path}/votes", yes(asked))
    await api_desk.broker.claim(asked.id)
    await api_desk.broker.lose(asked.id)
    assert [one["state"] for one in (await api_desk.get("/requests"))["requests"]] == ["unknown"]
    told = await api_desk.post(f"{path}/outcome", {"happened": True, "note": "I saw it"})
    assert (told["state"], told["result"]) == ("succeeded", "I saw it")
    await api_desk.refused(422, "invalid", "POST", f"{path}/outcome", {"happened": "no"})


async def test_who_looks_at_a_request_is_told_while_they_do(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    path = f"/requests/{asked.id}/presence"
    assert await api_desk.post(path, {}, who="ben") == {"people": ["ben"]}
    assert await api_desk.post(path, {}, who="ana") == {"people": ["ana", "ben"]}
    assert await api_desk.post(path, {"looking": False}, who="ben") == {"people": ["ana"]}
    await api_desk.refused(404, "unknown-request", "POST", "/requests/nothing/presence", {})


async def test_a_page_of_runs_names_few_of_their_requests_and_counts_the_others(
    api_desk: ApiDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model makes hundreds of calls in one response: whole, they would hold up everybody else."""
    runs = [await api_desk.broker.runs.begin(SavedRun(id=new_id(), agent="a"), put_down=True) for _ in range(4)]
    asked = await api_desk.ask()

    def add(tx: Transaction) -> None:
        for number in range(1_000):
            tx.requests.add(asked.changed_to(id=f"m{number:05}", run=runs[number % 4].id, version=0))

    await api_desk.store.write("many", add)
    read = list[str]()
    whole = WholeRequests._read
    monkeypatch.setattr(WholeRequests, "_read", lambda self, row: read.append(row[0]) or whole(self, row))
    page = await api_desk.get("/runs", limit=200)
    for one in page["runs"]:
        assert (one["state"], one["waiting_count"], len(one["waiting"])) == ("waiting", 250, MOST_NAMED)
        assert [each["id"] for each in one["waiting"]] == sorted(each["id"] for each in one["waiting"])
    assert read == [], "no whole question is read for a list"
    account = await run_page(api_desk.broker, runs[0].id)
    assert (account.history.run.waiting_count, len(account.requests), account.has_more) == (250, MOST_REQUESTS, True)
    assert account.requests[-1].id == "m00996", "the newest"
    assert len(read) == MOST_REQUESTS + 1
    monkeypatch.undo()
    for number in range(0, 40, 4):
        await api_desk.broker.answer(f"m{number:05}", ApprovalDecision(approved=False), by=Actor(name="ben"))
    [ready] = [one for one in (await api_desk.get("/runs"))["runs"] if one["id"] == runs[0].id]
    assert (ready["waiting_count"], ready["answered_count"]) == (240, 10)
    await api_desk.refused(422, "invalid", "GET", "/runs", limit=201)
    await api_desk.refused(422, "invalid", "GET", "/requests", limit=201)
    await api_desk.refused(422, "invalid", "GET", "/requests", mine=True, state="all")
    mine, seen = await api_desk.get("/requests", mine=True, limit=200, who="dan"), 0
    while mine["next"]:
        assert mine["requests"] == []
        mine, seen = await api_desk.get("/requests", mine=True, cursor=mine["next"], who="dan"), seen + 1
    assert seen == 1, "it looks at some hundreds at once, and goes on where it was"


async def test_the_end_of_a_long_timeline_is_told_without_the_rest(api_desk: ApiDesk) -> None:
    run = await api_desk.broker.runs.begin(SavedRun(id=new_id(), agent="a"), put_down=True)
    asked = await api_desk.ask()
    assert asked.call is not None
    calls = [asked.call.changed(run_id=run.id, call_id=f"c{number}") for number in range(50)]
    await api_desk.broker.open([asked.changed_to(id="", version=0, run=run.id, call=call) for call in calls])
    shown = await api_desk.get(f"/runs/{run.id}", limit=5)
    assert (len(shown["timeline"]), shown["earlier"]) == (5, 46)
    whole = (await api_desk.get(f"/runs/{run.id}"))["timeline"]
    assert shown["timeline"] == whole[-5:]


async def test_ten_thousand_waiting_are_read_a_page_at_a_time(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    many = [asked.changed_to(id=f"m{number:05}", version=0) for number in range(10_000)]

    def add(tx: Transaction) -> None:
        for one in many:
            tx.requests.add(one)

    await api_desk.store.write("many", add)
    page = await api_desk.get("/requests", limit=200)
    assert page["waiting"] == 10_001 and len(page["requests"]) == 200
