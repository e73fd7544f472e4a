"""The rest of the API over HTTP: comments, runs, grants, the record, people, policy and rules, and the switch."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.server.api_desk import ApiDesk, no, yes

LATER = (datetime.now(UTC) + timedelta(days=1)).isoformat()


async def test_people_ask_back_and_answer_and_the_request_waits_on(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    path = f"/requests/{asked.id}/comments"
    question = await api_desk.post(path, {"text": "which order?\u202e", "kind": "question"}, status=201)
    assert (question["by"], question["text"]) == ("ben", "which order?⟦U+202E⟧")
    assert (await api_desk.get(path))["unanswered"] == [question["id"]]
    answer = {"text": "the first", "kind": "answer", "answers": question["id"]}
    await api_desk.post(path, answer, status=201, who="ana")
    found = await api_desk.get(path)
    assert ([one["kind"] for one in found["comments"]], found["unanswered"]) == (["question", "answer"], [])
    await api_desk.refused(422, "refused", "POST", path, {"text": "x", "kind": "answer", "answers": "nothing"})
    await api_desk.refused(422, "invalid", "POST", path, {"text": ""})
    await api_desk.refused(422, "refused", "POST", path, {"text": "  "})
    assert (await api_desk.get(f"/requests/{asked.id}"))["state"] == "pending"


async def test_a_client_that_hangs_up_half_way_is_no_error_of_ours(
    api_desk: ApiDesk, caplog: pytest.LogCaptureFixture
) -> None:
    parts: list[Any] = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    path, headers = "/api/v1/policy/judge", [(b"host", b"127.0.0.1"), (b"x-who", b"ben")]
    scope: Any = {
        "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "path": path,
        "raw_path": path.encode(), "query_string": b"", "root_path": "", "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8420), "headers": [*headers, (b"content-type", b"application/json")],
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return parts.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    await api_desk.app(scope, receive, send)
    assert not parts and sent[0]["status"] == 400
    assert [one for one in caplog.records if one.exc_info] == []


async def test_runs_are_started_shown_resumed_and_cancelled(api_desk: ApiDesk) -> None:
    assert (await api_desk.get("/workers"))["workers"] == [{"name": "triage", "about": "sorts what comes in"}]
    said = await api_desk.refused(422, "wrong-use", "POST", "/runs", {"worker": "triag", "prompt": "x"})
    assert said == "there is no worker `triag`; did you mean `triage`?"
    run = await api_desk.post("/runs", {"worker": "triage", "prompt": "sort these\x1b"}, status=201)
    assert (run["state"], run["agent"], run["requester"], run["prompt"]) == (
        "ready",
        "worker:triage",
        "ben",
        "sort these⟦ESC⟧",
    )
    asked = await api_desk.ask(run=run["id"])
    shown = await api_desk.get(f"/runs/{run['id'][:6]}")
    assert (shown["run"]["state"], [one["id"] for one in shown["run"]["waiting"]]) == ("waiting", [asked.id])
    assert [one["kind"] for one in shown["timeline"]] == ["run started", "asked"]
    last = await api_desk.get(f"/runs/{run['id']}", limit=1)
    assert ([one["kind"] for one in last["timeline"]], last["earlier"]) == (["asked"], 1)
    assert (await api_desk.call("POST", f"/runs/{run['id']}/resume")).status_code == 202
    assert api_desk.control.looked_at == [run["id"]]
    assert (await api_desk.get("/requests", run=run["id"]))["requests"][0]["id"] == asked.id
    ended = await api_desk.post(f"/runs/{run['id']}/cancel", {"reason": "wrong customer"})
    assert ended["state"] == "cancelled" and "ben cancelled the run: “wrong customer”" in ended["detail"]
    assert (await api_desk.get(f"/requests/{asked.id}"))["state"] == "cancelled"
    await api_desk.refused(409, "run-over", "POST", f"/runs/{run['id']}/cancel", {})
    await api_desk.refused(404, "unknown-run", "GET", "/runs/nothing")


async def test_runs_are_listed_page_by_page_the_newest_first(api_desk: ApiDesk) -> None:
    runs = [(await api_desk.post("/runs", {"worker": "triage"}, status=201))["id"] for _ in range(3)]
    await api_desk.post(f"/runs/{runs[1]}/cancel", {})
    assert [one["id"] for one in (await api_desk.get("/runs"))["runs"]] == [runs[2], runs[0]]
    first = await api_desk.get("/runs", state="all", limit=2)
    assert [one["id"] for one in first["runs"]] == [runs[2], runs[1]]
    second = await api_desk.get("/runs", state="all", limit=2, cursor=first["next"])
    assert ([one["id"] for one in second["runs"]], second["next"]) == ([runs[0]], None)


async def test_a_remembered_answer_is_revoked(api_desk: ApiDesk) -> None:
    for number in range(3):
        asked = await api_desk.ask("mail", {"to": "ana", "body": str(number)})
        await api_desk.post(f"/requests/{asked.id}/votes", yes(asked, remember={"scope": "project"}))
    first = await api_desk.get("/grants", limit=2)
    rest = await api_desk.get("/grants", limit=2, cursor=first["next"])
    assert (len(first["grants"]), len(rest["grants"]), rest["next"]) == (2, 1, None)
    grant = first["grants"][0]["id"]
    revoked = await api_desk.post(f"/grants/{grant[:6]}/revoke", who="ana")
    assert (revoked["revoked_by"], revoked["asleep"]) == ("ana", "revoked by ana")
    assert len((await api_desk.get("/grants"))["grants"]) == 2
    assert len((await api_desk.get("/grants", revoked=True))["grants"]) == 3
    await api_desk.refused(404, "unknown-grant", "POST", "/grants/nothing/revoke")


async def test_the_record_is_read_by_number_request_and_run_and_verified(api_desk: ApiDesk) -> None:
    one, two = await api_desk.ask(), await api_desk.ask("mail", {"to": "ana", "body": "\u202eevil"})
    await api_desk.post(f"/requests/{one.id}/votes", no(one))
    page = await api_desk.get("/audit", after=0, limit=2)
    assert ([event["seq"] for event in page["events"]], page["head"], page["next"]) == ([1, 2], 4, 2)
    rest = await api_desk.get("/audit", after=page["next"])
    assert [event["kind"] for event in rest["events"]] == ["voted", "settled"] and rest["next"] is None
    assert [event["seq"] for event in (await api_desk.get("/audit", limit=1))["events"]] == [4], "the last, by default"
    of_one = (await api_desk.get("/audit", request=one.id[:6]))["events"]
    assert {event["request"] for event in of_one} == {one.id} and len(of_one) == 3
    assert "body" in of_one[0] and of_one[0]["body"] is None
    whole = (await api_desk.get("/audit", request=two.id, whole=True))["events"]
    assert whole[0]["hash"] and whole[0]["body"].startswith("{")
    assert "\u202e" not in whole[0]["what"]
    await api_desk.refused(404, "unknown-request", "GET", "/audit", request="nothing")
    await api_desk.refused(404, "unknown-run", "GET", "/audit", run="nothing")
    assert (await api_desk.get("/audit/verify"))["ok"] is True


async def test_a_record_that_was_changed_is_found_out(api_desk: ApiDesk, tmp_path: Path) -> None:
    import sqlite3

    asked = await api_desk.ask()
    await api_desk.post(f"/requests/{asked.id}/votes", no(asked))
    await api_desk.store.flush()
    with sqlite3.connect(tmp_path / "signoff.db") as db:
        db.execute("update events set kind = 'allowed' where seq = 2")
    db.close()
    found = await api_desk.get("/audit/verify")
    assert (found["ok"], found["event"]) == (False, 2) and "event 2 was changed" in found["error"]


async def test_people_stand_in_for_each_other_and_only_an_admin_arranges_it_for_others(api_desk: ApiDesk) -> None:
    people = await api_desk.get("/people")
    assert people["people"][1] == {"name": "ben", "roles": ["finance"]}
    made = await api_desk.post("/delegations", {"deputy": "Ana", "until": LATER}, status=201, may="answer")
    assert (made["absent"], made["deputy"], made["by"]) == ("ben", "ana", "ben")
    other = {"absent": "cleo", "deputy": "ana", "until": LATER}
    assert "admin" in await api_desk.refused(403, "not-entitled", "POST", "/delegations", other, may="answer")
    await api_desk.post("/delegations", other, status=201, who="ana", may="answer,admin")
    await api_desk.refused(422, "wrong-use", "POST", "/delegations", {"deputy": "ben", "until": LATER})
    await api_desk.refused(422, "wrong-use", "POST", "/delegations", {"deputy": "ana", "until": "2020-01-01T00:00:00Z"})
    await api_desk.refused(422, "invalid", "POST", "/delegations", {"deputy": "ana", "until": "2031-01-01T00:00:00"})
    assert [one["absent"] for one in (await api_desk.get("/delegations"))["delegations"]] == ["ben", "cleo"]
    asked = await api_desk.ask()
    settled = await api_desk.post(f"/requests/{asked.id}/votes", yes(asked), who="ana")
    assert settled["votes"][0]["stands_for"] in ("ben", "cleo")


async def test_the_policy_says_what_it_would_do_and_why(api_desk: ApiDesk) -> None:
    asked = await api_desk.post("/policy/judge", {"tool": "refund", "args": {"amount": 40}}, may="read")
    assert (asked["verdict"], asked["needs"]) == ("ask", "somebody with the role finance")
    denied = await api_desk.post("/policy/explain", {"tool": "refund", "args": {"amount": 501}})
    assert (denied["verdict"], denied["reason"]) == ("deny", "more than 500 is refunded by the bank")
    assert [one["decided"] for one in denied["considered"]] == [True, False, False, False]
    assert denied["place"].endswith("signoff.yaml:6:5: policy[0]") or "signoff.yaml" in denied["place"]
    assert "fs.read" in await api_desk.refused(
        422, "wrong-use", "POST", "/policy/judge", {"tool": "x", "labels": ["fs.raed"]}
    )
    api_desk.file.write_text(api_desk.file.read_text().replace("allow: look", "deny: look"))
    assert (await api_desk.post("/policy/judge", {"tool": "look"}))["verdict"] == "deny", "as the file is now"
    api_desk.file.write_text("policy: [{nonsense: 1}]")
    assert "nonsense" in await api_desk.refused(422, "wrong-file", "POST", "/policy/judge", {"tool": "look"})


async def test_exactly_the_rule_that_was_shown_is_written(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask("mail", {"to": "ana", "body": "hi"})
    path = f"/requests/{asked.id}"
    found = await api_desk.get(f"{path}/rule-drafts")
    draft = found["drafts"][0]
    assert draft["number"] == 1 and any(line.startswith("+") and "mail" in line for line in draft["diff"])
    before = api_desk.file.read_text()
    await api_desk.refused(409, "draft-changed", "POST", f"{path}/rules", {"draft": 1, "digest": "another"})
    await api_desk.refused(409, "draft-changed", "POST", f"{path}/rules", {"draft": 99, "digest": draft["digest"]})
    api_desk.file.write_text(before + "# somebody was here\n")
    await api_desk.refused(409, "draft-changed", "POST", f"{path}/rules", {"draft": 1, "digest": draft["digest"]})
    api_desk.file.write_text(before)
    wanted = {"draft": 1, "digest": draft["digest"]}
    await api_desk.refused(403, "not-permitted", "POST", f"{path}/rules", wanted, who="bot")
    written = await api_desk.post(f"{path}/rules", wanted, status=201)
    [event] = [
        one for one in await api_desk.broker.store.read(lambda tx: tx.record.entries()) if one.kind == "rule written"
    ]
    told = json.loads(event.body)
    assert (told["by"], told["via"], told["digest"]) == ("ben", "api", draft["digest"])
    assert (told["text"], told["file"], event.request) == (draft["text"], str(api_desk.file), path.rpartition("/")[2])
    assert written["text"] == draft["text"]
    added = [line[1:] for line in draft["diff"] if line.startswith("+") and not line.startswith("+++")]
    assert all(line in api_desk.file.read_text() for line in added)
    judged = await api_desk.post("/policy/judge", {"tool": "mail", "args": {"to": "ana", "body": "hi"}})
    assert judged["verdict"] == "allow"
    assert (await api_desk.get(path))["state"] == "pending", "the call itself still waits"


async def test_the_switch_is_pulled_by_an_admin_and_nothing_new_runs(api_desk: ApiDesk) -> None:
    assert await api_desk.get("/halt") == {"halted": False, "text": ""}
    said = await api_desk.post("/halt", {"why": "wrong prices"})
    assert said["halted"] is True and "halted by ben" in said["text"] and "“wrong prices”" in said["text"]
    assert "wrong prices" in await api_desk.refused(409, "halted", "POST", "/runs", {"worker": "triage"})
    assert (await api_desk.get("/runs"))["halted"]
    assert (await api_desk.call("DELETE", "/halt")).json() == {"halted": False, "text": ""}
    await api_desk.post("/runs", {"worker": "triage"}, status=201)


async def test_a_path_or_a_method_that_is_not_there_is_a_problem_too(api_desk: ApiDesk) -> None:
    await api_desk.refused(404, "not-found", "GET", "/nothing")
    await api_desk.refused(405, "no-such-method", "PATCH", "/halt")
    await api_desk.refused(404, "not-found", "GET", "/requests/%2e%2e%2f%2e%2e%2fetc%2fpasswd")
