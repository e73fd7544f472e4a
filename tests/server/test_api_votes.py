"""Answers over HTTP: bound to what was read, checked as everywhere, remembered as far as is said, one by one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.server.api_desk import ApiDesk, no, yes

from signoff.core.request import State
from signoff.core.strict_json import MOST_PARTS

SOON = (datetime.now(UTC) + timedelta(hours=2)).replace(microsecond=0).isoformat()


async def test_the_right_person_approves_what_they_read(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    path = f"/requests/{asked.id}/votes"
    assert "finance" in await api_desk.refused(403, "not-entitled", "POST", path, yes(asked), who="ana")
    assert "finance" in await api_desk.refused(403, "not-entitled", "POST", path, yes(asked), who="mallory")
    await api_desk.refused(403, "not-entitled", "POST", path, yes(asked), who="bot")
    await api_desk.refused(409, "args-changed", "POST", path, {**yes(asked), "args_digest": "another"})
    settled = await api_desk.post(path, yes(asked, note="checked \u202e"))
    assert (settled["state"], settled["decided_by"], settled["note"]) == ("approved", "ben", "checked ⟦U+202E⟧")
    assert [(vote["by"], vote["via"], vote["approved"]) for vote in settled["votes"]] == [("ben", "api", True)]
    assert "approved by ben" in await api_desk.refused(409, "already-settled", "POST", path, no(asked), who="cleo")


async def test_nobody_votes_in_the_name_of_another(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    for field in ("by", "as", "actor"):
        await api_desk.refused(422, "invalid", "POST", f"/requests/{asked.id}/votes", {**yes(asked), field: "cleo"})
    assert (await api_desk.get(f"/requests/{asked.id}"))["state"] == "pending"


async def test_other_arguments_are_checked_by_schema_and_policy_before_they_count(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    path = f"/requests/{asked.id}"

    async def problems(**args: object) -> str:
        return " ".join((await api_desk.post(f"{path}/edit-check", {"args": args}))["problems"])

    assert "amount: should be of type integer" in await problems(order="A1", amount="a lot")
    assert "by the bank" in await problems(order="A1", amount=501)
    assert "takes no such argument" in await problems(order="A1", amount=1, more=True)
    assert await problems(order="A1", amount=30) == ""
    assert "by the bank" in await api_desk.refused(
        422, "edit-refused", "POST", f"{path}/votes", yes(asked, args={"order": "A1", "amount": 501})
    )
    assert (await api_desk.get(path))["state"] == "pending"
    await api_desk.refused(422, "invalid", "POST", f"{path}/votes", no(asked, args={"order": "A1", "amount": 1}))
    settled = await api_desk.post(f"{path}/votes", yes(asked, args={"order": "A1", "amount": 30}))
    assert (settled["state"], settled["args"]) == ("approved", {"order": "A1", "amount": 30})
    assert settled["votes"][0]["edited"] is True


async def test_what_an_edit_changes_is_told_or_said_to_be_unknown(api_desk: ApiDesk) -> None:
    plain, told = await api_desk.ask(), await api_desk.ask(metadata={"diff": "@@ -1 +1 @@\n-a\n+b"})
    body = {"args": {"order": "A1", "amount": 30}}
    assert (await api_desk.post(f"/requests/{plain.id}/edit-check", body))["effect"] is None
    effect = (await api_desk.post(f"/requests/{told.id}/edit-check", body))["effect"]
    assert effect["kind"] == "text" and effect["text"].startswith("Not known here. The preview is of the call")


async def test_a_secret_is_masked_and_put_back_where_it_was_not_touched(api_desk: ApiDesk) -> None:
    body = "the password is hunter2-hunter2"
    asked = await api_desk.ask("mail", {"to": "ana", "body": body}, secrets=("hunter2-hunter2",))
    path = f"/requests/{asked.id}"
    reply = await api_desk.call("GET", path)
    assert "hunter2-hunter2" not in reply.text
    masked = reply.json()["args"]["body"]
    assert masked.startswith("the password is ⟦masked")
    settled = await api_desk.call("POST", f"{path}/votes", yes(asked, args={"to": "cleo", "body": masked}))
    assert settled.status_code == 200 and "hunter2-hunter2" not in settled.text
    stored = await api_desk.broker.get(asked.id)
    assert dict(stored.effective_args) == {"to": "cleo", "body": body}


async def test_an_answer_is_remembered_exactly_as_it_was_spelled_out(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    path = f"/requests/{asked.id}"
    offers = (await api_desk.get(f"{path}/offers"))["offers"]
    assert [(one["number"], one["name"]) for one in offers] == [(1, "exact"), (2, "amount")]
    assert offers[0]["text"].startswith('always refund, exactly as in: refund(order="A1", amount=40)')
    assert "only with a limit" in offers[1]["problem"] and offers[1]["text"] == ""
    limited = (await api_desk.get(f"{path}/offers", uses=3, until=SOON, budget_arg="amount", budget=200))["offers"][1]
    assert "amount from 0 to 40" in limited["text"] and "at most 3 times" in limited["text"]
    remember = {"which": "amount", "uses": 3, "until": SOON, "budget": {"arg": "amount", "limit": "200"}}
    other = {**remember, "uses": 4, "text": limited["text"]}
    assert "at most 4 times" in await api_desk.refused(
        409, "offer-changed", "POST", f"{path}/votes", yes(asked, remember=other)
    )
    await api_desk.post(f"{path}/votes", yes(asked, remember={**remember, "text": limited["text"]}))
    [grant] = (await api_desk.get("/grants"))["grants"]
    assert grant["text"] == limited["text"]
    assert (grant["by"], grant["max_uses"], grant["budget"]["limit"]) == ("ben", 3, "200")


async def test_what_may_not_be_remembered_is_refused_and_nothing_is_answered(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    path = f"/requests/{asked.id}/votes"
    assert "it offers 1 (exact), 2 (amount)" in await api_desk.refused(
        422, "refused", "POST", path, yes(asked, remember={"which": "everything"})
    )
    await api_desk.refused(422, "refused", "POST", path, yes(asked, remember=9))
    await api_desk.refused(422, "refused", "POST", path, yes(asked, remember={"which": "2"}))
    await api_desk.refused(422, "refused", "POST", path, yes(asked, remember={"scope": "run"}))
    past = "2020-01-01T00:00:00Z"
    assert "before it starts" in await api_desk.refused(
        422, "refused", "POST", path, yes(asked, remember={"until": past})
    )
    edited = {"order": "A1", "amount": 1}
    await api_desk.refused(422, "refused", "POST", path, yes(asked, remember=1, args=edited))
    assert (await api_desk.get(f"/requests/{asked.id}"))["state"] == "pending"
    assert (await api_desk.get("/grants"))["grants"] == []
    await api_desk.post(path, yes(asked, remember=1))
    assert len((await api_desk.get("/grants"))["grants"]) == 1


async def test_together_each_answer_has_a_result_of_its_own(api_desk: ApiDesk) -> None:
    asked = [await api_desk.ask("mail", {"to": "ana", "body": str(number)}) for number in range(3)]
    long = await api_desk.ask("mail", {"to": "ana", "body": "word " * 400})
    refund = await api_desk.ask()
    votes = [
        {"request": asked[0].id, **yes(asked[0])},
        {"request": "nothing", **yes(asked[0])},
        {"request": asked[1].id, **yes(asked[2])},
        {"request": long.id, **yes(long)},
        {"request": refund.id, **yes(refund)},
        {"request": asked[2].id, **no(asked[2], note="later")},
        {"request": asked[0].id, **yes(asked[0])},
    ]
    results = (await api_desk.post("/votes", {"votes": votes}, who="ana"))["results"]
    words = [one["problem"]["type"].removeprefix("urn:signoff:") if one["problem"] else one["state"] for one in results]
    assert words == [
        "approved",
        "unknown-request",
        "args-changed",
        "not-read",
        "not-entitled",
        "denied",
        "already-settled",
    ]
    assert [one["ok"] for one in results] == [True, False, False, False, False, True, False]
    await api_desk.refused(422, "invalid", "POST", "/votes", {"votes": []})
    await api_desk.refused(422, "invalid", "POST", "/votes", {"votes": [votes[0]] * 201})


async def test_bodies_that_are_no_plain_json_are_refused(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    path = f"/api/v1/requests/{asked.id}/votes"

    async def sent(content: bytes, kind: str = "application/json") -> int:
        headers = {"x-who": "ben", "content-type": kind}
        return (await api_desk.client.post(f"http://inbox.test{path}", content=content, headers=headers)).status_code

    good = b'{"decision": "approve", "args_digest": "%s"}' % asked.args_digest.encode()
    assert await sent(good, "text/plain") == 415, "what a form of another site can send"
    assert await sent(b"{") == 400
    assert await sent(b'{"args": NaN}') == 400
    assert await sent(b'{"args": ' + b'{"a":' * 70 + b"1" + b"}" * 70 + b"}") == 400
    assert await sent(b"[" * 100_000) == 400
    assert await sent(good.replace(b"approve", b"\\ud800")) == 422
    assert await sent(b" " * (1024 * 1024 + 1)) == 413
    assert (await api_desk.get(f"/requests/{asked.id}"))["state"] == "pending"
    assert await sent(good) == 200


DOUBLED = {
    "at the top": '{"decision": "deny", "args_digest": "%s", "decision": "approve"}',
    "the same value": '{"decision": "approve", "decision": "approve", "args_digest": "%s"}',
    "written with an escape": '{"decision": "deny", "args_digest": "%s", "decisio\\u006e": "approve"}',
    "inside": '{"decision": "approve", "args_digest": "%s", "edited_args": {"target": "staging", "target": "prod"}}',
}


@pytest.mark.parametrize("how", DOUBLED)
async def test_a_key_that_is_given_twice_answers_nothing(api_desk: ApiDesk, how: str) -> None:
    """What a proxy in between reads may be the first of them, and what counts the last."""
    asked = await api_desk.ask()
    body = DOUBLED[how] % asked.args_digest
    headers = {"x-who": "ben", "content-type": "application/json"}
    reply = await api_desk.client.post(f"/requests/{asked.id}/votes", content=body, headers=headers)
    assert (reply.status_code, reply.json()["type"]) == (400, "urn:signoff:bad-json"), reply.text
    assert "is given twice" in reply.json()["detail"]
    after = await api_desk.broker.get(asked.id)
    assert after.state is State.PENDING and not after.votes


async def test_a_body_of_too_many_parts_is_refused(api_desk: ApiDesk) -> None:
    body = {"tool": "look", "args": {f"a{number}": 1 for number in range(MOST_PARTS)}}
    said = await api_desk.refused(413, "too-long", "POST", "/policy/explain", body)
    assert said == f"the body has more than {MOST_PARTS:,} names and values"
