"""A write that is sent twice is done once: the same key, at once or later, in this process or in the next."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.server.api_desk import ApiDesk, yes

from signoff.errors import StoreUnavailable
from signoff.ports import Transaction
from signoff.store.texts import KeptReply


def key(name: str) -> dict[str, str]:
    return {"idempotency-key": name}


async def comments(desk: ApiDesk, request: str) -> int:
    return len((await desk.get(f"/requests/{request}/comments"))["comments"])


async def test_the_same_again_is_answered_as_before_and_does_nothing(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    path, body = f"/requests/{asked.id}/comments", {"text": "why?"}
    first = await api_desk.call("POST", path, body, headers=key("one"))
    again = await api_desk.call("POST", path, body, headers=key("one"))
    assert (first.status_code, first.json()) == (again.status_code, again.json()) == (201, first.json())
    assert await comments(api_desk, asked.id) == 1
    await api_desk.call("POST", path, body, headers=key("two"))
    await api_desk.call("POST", path, body, headers=key("one"), who="ana")
    assert await comments(api_desk, asked.id) == 3, "another key, and another person"


async def test_a_vote_that_is_sent_twice_says_twice_that_it_counted(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    path = f"/requests/{asked.id}/votes"
    first = await api_desk.post(path, yes(asked), headers=key("one"))
    assert await api_desk.post(path, yes(asked), headers=key("one")) == first
    await api_desk.refused(409, "already-settled", "POST", path, yes(asked), headers=key("two"))
    again = await api_desk.call("POST", path, yes(asked), headers=key("two"))
    assert (again.status_code, again.headers["content-type"]) == (409, "application/problem+json")


async def test_another_body_or_path_under_the_same_key_is_a_mistake(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    path = f"/requests/{asked.id}/comments"
    await api_desk.post(path, {"text": "one"}, status=201, headers=key("one"))
    await api_desk.refused(422, "key-reused", "POST", path, {"text": "two"}, headers=key("one"))
    await api_desk.refused(422, "key-reused", "POST", f"/requests/{asked.id}/claim", headers=key("one"))
    await api_desk.post("/halt", {"why": "first"})
    assert (await api_desk.call("DELETE", "/halt", headers=key("lift"), why="over")).json()["halted"] is False
    await api_desk.post("/halt", {"why": "second"})
    await api_desk.refused(422, "key-reused", "DELETE", "/halt", headers=key("lift"), why="over, too")
    await api_desk.call("DELETE", "/halt")
    assert await comments(api_desk, asked.id) == 1
    for bad in ("", " ", "ü", "x" * 201):
        sent = {"idempotency-key": bad.encode("latin-1")}
        reply = await api_desk.client.post(path, json={"text": "x"}, headers={"x-who": b"ben", **sent})  # type: ignore[arg-type]
        assert reply.status_code == 400, bad


async def test_many_at_once_are_one(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    path = f"/requests/{asked.id}/comments"
    sent = [api_desk.call("POST", path, {"text": "why?"}, headers=key("one")) for _ in range(8)]
    replies = await asyncio.gather(*sent)
    assert {reply.status_code for reply in replies} == {201}
    assert len({reply.json()["id"] for reply in replies}) == 1
    assert await comments(api_desk, asked.id) == 1


async def test_a_server_that_starts_anew_knows_what_was_answered(tmp_path: Path) -> None:
    before = ApiDesk(tmp_path)
    asked = await before.ask()
    path = f"/requests/{asked.id}/comments"
    first = await before.post(path, {"text": "why?"}, status=201, headers=key("one"))
    await before.close()
    after = ApiDesk(tmp_path)
    assert await after.post(path, {"text": "why?"}, status=201, headers=key("one")) == first
    assert await comments(after, asked.id) == 1
    await after.close()


async def test_what_was_cut_off_half_way_is_not_done_again_blindly(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    path, body = f"/requests/{asked.id}/comments", {"text": "why?"}
    await api_desk.post(path, body, status=201, headers=key("one"))

    def cut_off(tx: Transaction) -> None:  # as a process leaves it that dies before it has written its answer down
        done = tx.replies.get("ben", "one")
        assert done is not None
        tx.replies.put("ben", "one", KeptReply(done.asked, 0, ""), api_desk.broker.clock.now())

    await api_desk.store.write("cut off", cut_off)
    assert "check before" in await api_desk.refused(409, "in-doubt", "POST", path, body, headers=key("one"))
    assert await comments(api_desk, asked.id) == 1


async def test_what_was_done_is_told_although_the_answer_could_not_be_kept(
    api_desk: ApiDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = await api_desk.ask("mail", {"to": "ana", "body": "hi"})
    real = api_desk.store.write

    async def full(name: str, work: Any, *, synced: bool = True) -> Any:
        if name == "keep reply":
            raise StoreUnavailable("the disk is full")
        return await real(name, work, synced=synced)

    monkeypatch.setattr(api_desk.store, "write", full)
    vote = {"decision": "approve", "args_digest": asked.args_digest}
    voted = await api_desk.post(f"/requests/{asked.id}/votes", vote, headers=key("one"))
    assert voted["state"] == "approved"


async def test_a_vote_that_failed_for_the_stores_sake_may_be_sent_again_under_its_key(
    api_desk: ApiDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = await api_desk.ask("mail", {"to": "ana", "body": "hi"})
    real = api_desk.store.write

    async def full(name: str, work: Any, *, synced: bool = True) -> Any:
        if name == "vote":
            raise StoreUnavailable("the disk is full")
        return await real(name, work, synced=synced)

    votes = {"votes": [{"request": asked.id, "decision": "approve", "args_digest": asked.args_digest}]}
    with monkeypatch.context() as patched:
        patched.setattr(api_desk.store, "write", full)
        [first] = (await api_desk.post("/votes", votes, headers=key("one")))["results"]
        assert (first["ok"], first["problem"]["status"]) == (False, 503)
    [again] = (await api_desk.post("/votes", votes, headers=key("one")))["results"]
    assert again["ok"]
