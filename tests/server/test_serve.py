"""`signoff serve` as a program of its own: what was answered goes on, once, whatever happens to the process."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from tests import start
from tests.server.serving import AGENT, PROJECT, TWICE, Shop, until

from signoff.server.meters import Meters


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop").write()


def test_what_is_answered_goes_on_and_the_tool_runs_once(shop: Shop) -> None:
    run, request = shop.asks()
    with shop.serving() as served:
        told = served.event("listening")
        assert told["waiting"] == 1
        assert told["projects"] == [str(shop.directory)]
        assert served.get("/readyz") == (200, '{"status":"ready"}')
        shop.signoff("approve", request)
        until(lambda: served.metric('signoff_resumes_total{result="ok"}'), "the run went on")
        assert shop.run_word(run) == "done"
        other, second = shop.asks()
        shop.signoff("deny", second, "--note", "no")
        until(lambda: shop.run_word(other) == "done", "the model heard of the no")
        until(lambda: served.metric("signoff_decision_seconds_count") == 2, "both are counted")
        assert served.metric('signoff_requests_decided_total{state="approved"}') == 1
        assert served.metric('signoff_requests_decided_total{state="denied"}') == 1
        assert served.stop() == 0
        assert served.events()[-1]["event"] == "stopped"
    assert shop.lines() == ["one"]
    assert "nothing is missing" in shop.signoff("audit", "verify")


def test_each_line_of_the_log_is_one_object_without_a_secret(shop: Shop) -> None:
    shop.write("policy: [{ask: '*', timeout: 1s, on_timeout: escalate, escalate_to: boss}]\n")
    _, request = shop.asks()
    with shop.serving() as served:
        named = {"request": request, "title": 'stamp(text="one")'}
        assert served.event("escalated").items() >= {**named, "to": "somebody with the role boss"}.items()
        until(lambda: not shop.waiting(), "it expires, as another process finds")
        assert served.event("expired").items() >= named.items()
        secret = "sol_thisIsAKeyThatNobodyMaySee"
        served.get(f"/sign-in?link={secret}", **{"x-request-id": "mine-1"})
        served.get("/api/v1/requests/%E2%80%AEevil", authorization=f"Bearer {secret}")
        assert served.stop() == 0
        events, told = served.events(), served.errors()
    assert all(one["at"].endswith("+00:00") for one in events)
    asked = {one["path"]: one for one in events if one["event"] == "request"}
    assert asked["/sign-in"]["id"] == "mine-1"
    assert {"method", "status", "ms", "id"} <= asked["/sign-in"].keys()
    assert any("evil" in path and "\u202e" not in path for path in asked)
    assert secret not in served.printed.text
    assert not re.search(r"sol_|\.localhost", served.printed.text), "what lets somebody in is on standard error"
    found = re.search(r"http://signoff-[0-9a-f]{16}\.localhost:\d+/sign-in\?link=sol_\S+", told)
    assert found is not None
    assert [one["event"] for one in events if one.get("request") == request] == ["escalated", "expired"]
    others = [one for one in events if one.get("request") != request]
    assert "stamp" not in json.dumps(others), "no arguments, no tools"


def test_the_metrics_can_be_read_and_their_labels_are_ours(shop: Shop) -> None:
    shop.asks()
    with shop.serving() as served:
        until(lambda: served.metric('signoff_requests_waiting{state="pending"}') == 1, "it is counted")
        text = served.get("/metrics")[1]
    kinds = dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE"))
    assert kinds["signoff_decision_seconds"] == "histogram"
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            assert float(value) >= 0
            base = name.partition("{")[0]
            assert base in kinds or base.rpartition("_")[0] in kinds
    assert "scribe" not in text
    assert "stamp" not in text


def test_buckets_of_the_histogram_count_those_below() -> None:
    meters = Meters()
    for seconds in (0.5, 1.0, 7.0, 1e9):
        meters.time_to_decision.add(seconds)
    text = meters.text({})
    assert 'signoff_decision_seconds_bucket{le="1"} 2' in text
    assert 'signoff_decision_seconds_bucket{le="10"} 3' in text
    assert 'signoff_decision_seconds_bucket{le="+Inf"} 4' in text
    assert "signoff_decision_seconds_count 4" in text


def test_a_program_starts_a_run_answers_it_and_hears_of_it_over_the_api(shop: Shop) -> None:
    token = shop.token("read", "answer", "run")
    with shop.serving() as served:
        assert served.call("GET", "/workers", token)[1] == {"workers": [{"name": "scribe", "about": "Stamps things."}]}
        status, problem = served.call("POST", "/runs", token, {"worker": "nobody", "prompt": "x"})
        assert (status, problem["type"]) == (422, "urn:signoff:wrong-use")
        status, run = served.call("POST", "/runs", token, {"worker": "scribe", "prompt": "Stamp it"})
        assert status in (200, 201, 202), run
        [request] = until(lambda: served.call("GET", f"/runs/{run['id']}", token)[1]["run"]["waiting"], "it asks")
        status, problem = served.call("POST", f"/runs/{run['id']}/resume", token)
        assert (status, problem["type"]) == (409, "urn:signoff:run-refused"), "it waits"
        seen = served.call("GET", f"/requests/{request['id']}", token)[1]
        vote = {"decision": "approve", "args_digest": seen["args_digest"]}
        assert served.call("POST", f"/requests/{request['id']}/votes", token, vote)[0] == 200
        until(lambda: shop.run_word(run["id"]) == "done", "it went on")
        assert served.call("POST", f"/runs/{run['id']}/resume", token)[0] == 409, "it is over"
        with urllib.request.urlopen(
            urllib.request.Request(f"{served.url}/api/v1/events", headers={"Authorization": f"Bearer {token}"}),
            timeout=60,
        ) as stream:
            until(lambda: served.metric("signoff_event_streams") == 1, "somebody listens")
            assert served.stop() == 0
            assert b"event: closed" in stream.read(), "the stream ended politely"
    assert shop.lines() == ["one"]


# --- the end ---


def test_killed_while_a_tool_runs_nothing_is_lost_and_nothing_twice(shop: Shop) -> None:
    run, request = shop.asks()
    wait = shop.put("wait")
    with shop.serving() as served:
        shop.signoff("approve", request)
        until(lambda: shop.lines() == ["one"], "the tool runs")
        served.process.send_signal(signal.SIGKILL)
        served.process.wait(30)
    wait.unlink()
    with shop.serving() as served:
        until(lambda: served.metric('signoff_requests_waiting{state="unknown"}') == 1, "nobody knows what became of it")
        shop.signoff("outcome", request, "happened")
        until(lambda: shop.run_word(run) == "done", "it goes on with what somebody said")
        assert served.stop() == 0
    assert shop.lines() == ["one"], "it did not run again"


def test_killed_between_an_answer_and_what_comes_of_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop").write(turns=TWICE)
    run, request = shop.asks()
    with shop.serving() as served:
        assert served.url
        served.process.send_signal(signal.SIGKILL)
        served.process.wait(30)
    shop.signoff("approve", request)
    with shop.serving() as served:
        [second] = until(lambda: [one for one in shop.waiting() if one != request], "it asks the next thing")
        shop.signoff("approve", second)
        until(lambda: shop.run_word(run) == "done", "it is done")
    assert shop.lines() == ["one", "two"]


def test_sigterm_lets_what_runs_finish_and_begins_nothing_new(shop: Shop) -> None:
    (run, request), (later, unanswered) = shop.asks(), shop.asks()
    wait = shop.put("wait")
    with shop.serving() as served:
        shop.signoff("approve", request)
        until(lambda: shop.lines() == ["one"], "the tool runs")
        served.process.send_signal(signal.SIGTERM)
        served.event("draining")
        status, body = served.get("/readyz")
        assert (status, json.loads(body)["why"]) == (503, "the server is shutting down")
        assert served.get("/healthz")[0] == 200
        shop.signoff("approve", unanswered)
        wait.unlink()
        served.printed.rest()
        assert served.process.wait(60) == 0
    assert (shop.run_word(run), shop.run_word(later)) == ("done", "ready")
    assert shop.lines() == ["one"]


def test_a_second_signal_puts_down_what_runs(shop: Shop) -> None:
    run, request = shop.asks()
    shop.put("wait")
    with shop.serving("--drain", "1h") as served:
        shop.signoff("approve", request)
        until(lambda: shop.lines() == ["one"], "the tool runs")
        served.process.send_signal(signal.SIGTERM)
        served.event("draining")
        assert served.stop(signal.SIGINT) == 0
        assert served.event("put down")["runs"] == 1
    assert shop.run_word(run) == "waiting", "somebody has to say whether the call happened"


# --- who is there ---


def test_a_second_server_is_told_who_serves_the_store_and_takes_over_once_it_is_gone(shop: Shop) -> None:
    with shop.serving() as served:
        address = served.url
        said = shop.signoff("serve", "--port", "0", code=2)
        assert f"this store is already served at {address}: by process {served.process.pid} on " in said
        assert "since 20" in said
        served.process.send_signal(signal.SIGKILL)
        served.process.wait(30)
        with shop.serving() as second:
            assert second.get("/readyz")[0] == 200


def test_a_taken_port_says_who_is_there(shop: Shop, tmp_path: Path) -> None:
    other = Shop(tmp_path / "other").write()
    with shop.serving() as served:
        port = served.url.rpartition(":")[2]
        said = other.signoff("serve", "--port", port, code=2)
        assert (
            f"127.0.0.1:{port} is in use: a signoff server runs there, process {served.process.pid}, since 20" in said
        )


# --- several projects ---


def test_several_projects_share_a_server_each_in_its_own_directory(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'both.db'}"
    one, two = (Shop(tmp_path / name, store).write() for name in ("one", "two"))
    begun = [one.asks(), two.asks()]
    with one.serving("--project", str(one.directory), "--project", str(two.directory)) as served:
        assert served.event("listening")["projects"] == [str(one.directory), str(two.directory)]
        for _, request in begun:
            one.signoff("approve", request)
        for run, _ in begun:
            until(lambda run=run: one.run_word(run) == "done", "both are done")
        assert served.stop() == 0
    assert (one.lines(), two.lines()) == (["one"], ["one"])


@pytest.mark.parametrize(
    ("project", "said"),
    [
        (f"{PROJECT}store: sqlite:own.db\n", "use different stores"),
        (f"{PROJECT}people: {{ana: {{roles: [ops]}}}}\n", "name different people, or give them different roles"),
    ],
    ids=["stores", "people"],
)
def test_projects_that_do_not_go_together_are_refused(tmp_path: Path, project: str, said: str) -> None:
    one = Shop(tmp_path / "one", environment={"SIGNOFF_STORE": ""}).write(f"{PROJECT}store: sqlite:{tmp_path}/a.db\n")
    two = Shop(tmp_path / "two").write(project if "store:" in project else f"{project}store: sqlite:{tmp_path}/a.db\n")
    told = one.signoff("serve", "--port", "0", "--project", str(one.directory), "--project", str(two.directory), code=2)
    assert said in " ".join(told.split())


# --- agents of programs ---


def begins(shop: Shop, name: str = "shop") -> None:
    """The program begins a run of its agent, which suspends."""
    shop.put(f"{name}_agents.py", AGENT % {"store": shop.store.partition(":")[2], "name": name})
    start.run([sys.executable, f"{name}_agents.py"], cwd=shop.directory, check=True)


def test_an_agent_of_a_program_goes_on_by_its_name_and_no_other_does(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop").write(f'{PROJECT}agents: {{shop: "shop_agents:agent"}}\n')
    begins(shop)
    begins(shop, "other")
    with shop.serving() as served:
        for request in shop.waiting():
            shop.signoff("approve", request)
        until(lambda: served.metric('signoff_resumes_total{result="ok"}'), "the run went on")
        assert served.stop() == 0
    assert shop.lines("paid.txt") == ["shop pays ben"], "the other is left to its program"
    assert sorted(one["state"] for one in shop.runs()) == ["done", "ready"]


def test_an_agent_that_is_not_called_so_is_refused_at_the_start(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop").write(f'{PROJECT}agents: {{till: "shop_agents:agent"}}\n')
    begins(shop)
    said = shop.signoff("serve", "--port", "0", code=2)
    assert "`shop_agents:agent` is called `shop`: its runs are not those of `till`" in said


def test_without_a_server_resume_watch_goes_on_with_workers_and_agents(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop").write(f'{PROJECT}agents: {{shop: "shop_agents:agent"}}\n')
    begins(shop)
    shop.asks()
    shop.signoff("halt")
    process = start.Process(
        ["sh", "-c", 'trap "" INT; exec "$@"', "as a script starts it with &", *start.SIGNOFF, "resume", "--watch"],
        cwd=shop.directory,
        env=shop.plain,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        printed = start.Lines(process)
        printed.until("as they are answered")
        for request in shop.waiting():
            shop.signoff("approve", request)
        until(lambda: [one["state"] for one in shop.runs()] == ["ready", "ready"], "both are answered")
        shop.signoff("unhalt")
        until(lambda: shop.lines() and shop.lines("paid.txt"), "both went on")
        until(lambda: [one["state"] for one in shop.runs()] == ["done", "done"], "both are over")
        process.send_signal(signal.SIGTERM)
        assert "Stopped." in printed.rest()
        assert process.wait(60) == 0
    assert (shop.lines(), shop.lines("paid.txt")) == (["one"], ["shop pays ben"])


def test_the_demo_asks_in_the_web_inbox_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    process = start.Process(
        [*start.SIGNOFF, "demo", "--web", "--dir", str(tmp_path / "demo")],
        cwd=shop.directory,
        env=shop.plain,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        printed = start.Lines(process)
        assert "/sign-in?link=sol_" in printed.until("/sign-in?link=")
        printed.until("waits for an answer")
        process.send_signal(signal.SIGINT)
        assert "rm -r" in printed.rest()
        assert process.wait(60) == 0
    there = Shop(tmp_path / "demo", f"sqlite:{tmp_path}/demo/approvals.db")
    assert len(there.waiting()) == 1
