"""`signoff inbox` and `signoff show`: what a person sees before answering."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import unicodedata
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pexpect
import pytest
from tests import start
from tests.cli.desk import Desk, asks
from tests.cli.program import signoff
from tests.cli.wording import AGO, MOMENT, Wording

from signoff.broker import Broker
from signoff.cli.inbox_watch import WatchScreen, part_of
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.core.verdict import OnTimeout, Requirement
from signoff.testing import FakeClock
from signoff.views.inbox_view import InboxFilter

OPS = Requirement(role="ops", quorum=2, timeout=timedelta(minutes=15), message="Two ops people, please")
HOSTILE = "fine\x1b[2J\x1b[H\r\nsignoff: approved\u202e\u200b\x9b2J\u3164\ufe0f"


def plain(text: str) -> None:
    """Nothing in it moves the cursor or hides."""
    hides = {"Cc", "Cf", "Cs"}
    odd = {one for one in text if one != "\n" and (unicodedata.category(one) in hides or one in "\u3164\ufe0f")}
    assert odd == set()


# --- inbox ---


def test_an_inbox_nobody_has_used_says_so_and_leaves_no_file(desk: Desk, wording: Wording) -> None:
    said = desk.run("inbox")
    assert said.code == 0
    assert said.out == wording()
    assert desk.run("inbox", "--json").data == {"requests": [], "waiting": 0, "halted": "", "next": None}
    for command in (["runs"], ["people"], ["grants", "list"], ["show", "x"], ["approve", "x"], ["cancel", "x"]):
        desk.run(*command)
    assert sorted(file.name for file in desk.directory.iterdir()) == ["signoff.yaml"]


def test_what_waits_is_listed_oldest_first(desk: Desk, wording: Wording) -> None:
    desk.clock = FakeClock(datetime.now(UTC) - timedelta(minutes=4, seconds=5))
    [first, second] = desk.open(asks(), asks("write_file", {"path": "notes/a.md"}, needs=OPS))
    desk.clock = FakeClock(datetime.now(UTC))
    [third] = desk.open(asks(summary="Tell everyone", args={"to": "all", "amount": 1}))
    desk.run("assign", third, "ben")
    said = desk.run("inbox")
    assert said.code == 0
    assert said.out == wording(request=(first, second, third))


def test_for_programs(desk: Desk) -> None:
    desk.clock = FakeClock(datetime(2031, 5, 24, 12, tzinfo=UTC))
    [one] = desk.open(asks(needs=OPS))
    desk.do(lambda broker: broker.switch.halt(by="ana", why="stop"))
    told = desk.run("inbox", "--json").data
    assert told["requests"] == [
        {
            "id": one,
            "state": "pending",
            "title": 'pay(to="ana", amount=250, currency="EUR")',
            "tool": "pay",
            "worker": "triage",
            "run": "",
            "session": "",
            "task": "",
            "loosened": [],
            "needs": "2 people with the role ops",
            "apart": "",
            "short": False,
            "questions": 0,
            "role": "ops",
            "quorum": 2,
            "votes": 0,
            "assigned": "",
            "opened_at": "2031-05-24T12:00:00.000Z",
            "deadline": "2031-05-24T12:15:00.000Z",
            "then": "it is denied",
            "escalated": False,
            "answers": ["approve", "deny"],
            "deliveries": [],
            "damaged": "",
        }
    ]
    assert told["next"] is None
    assert told["halted"].startswith("halted by ana at 2031-05-24 12:00:00 UTC: “stop”")


def test_votes_count_and_halts_stand_at_the_top(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks(needs=OPS))
    assert desk.run("approve", one, "--as", "ben").code == 0
    desk.run("halt", "--note", "wrong prices", "--as", "ben")
    out = desk.run("inbox").out
    assert "needs 2 people with the role ops; 1 of 2 (ben)" in out
    assert out == wording(request=one, time=MOMENT, ago=AGO)
    assert desk.run("runs").out == wording()


def test_an_unknown_outcome_stands_out_with_its_three_answers(desk: Desk, wording: Wording) -> None:
    one = desk.start_and_die(asks(run=desk.begin("runabc2345")))
    out = desk.run("inbox").out
    assert out == wording(request=one, ago=AGO)
    for answer in ("happened", "did-not", "stop-run"):
        assert f"signoff outcome {one} {answer}" in out
    [told] = desk.run("inbox", "--json").data["requests"]
    assert (told["state"], told["answers"]) == ("unknown", ["happened", "did-not", "stop-run"])


def test_without_a_run_nobody_is_offered_to_end_it(desk: Desk) -> None:
    one = desk.start_and_die(asks())
    for out in (desk.run("inbox").out, desk.run("show", one).out):
        assert f"signoff outcome {one} did-not" in out and "stop-run" not in out
    [told] = desk.run("inbox", "--json").data["requests"]
    assert told["answers"] == desk.run("show", one, "--json").data["answers"] == ["happened", "did-not"]


def test_time_is_fed_before_it_is_shown(desk: Desk, wording: Wording) -> None:
    desk.clock = FakeClock(datetime.now(UTC) - timedelta(minutes=20))
    up = Requirement(role="dev", timeout=timedelta(minutes=15), on_timeout=OnTimeout.ESCALATE, escalate_to="ops")
    [expired, escalated] = desk.open(asks(needs=OPS), asks(needs=up))
    out = desk.run("inbox").out
    assert expired not in out
    assert f"{escalated}  20 min ago" in out
    assert out == wording(request=escalated)
    assert "nobody answered in time" in desk.run("show", expired).out


def test_only_so_many(desk: Desk, wording: Wording) -> None:
    ids = desk.open(*(asks() for _ in range(4)))
    said = desk.run("inbox", "--limit", "3")
    assert said.out == wording(request=ids, ago=AGO)
    assert [one in said.out for one in ids] == [True, True, True, False]
    told = desk.run("inbox", "--limit", "3", "--json").data
    assert (len(told["requests"]), bool(told["next"])) == (3, True)
    assert desk.run("inbox", "--limit", "0").code == 2


def test_what_is_mine(desk: Desk, wording: Wording) -> None:
    [anyone, ops, dev, taken, kept] = desk.open(
        asks(), asks(needs=Requirement(role="ops")), asks(needs=Requirement(role="dev")), asks(), asks()
    )
    desk.run("assign", taken, "ana")
    desk.run("assign", kept, "cleo")

    def mine(name: str) -> list[str]:
        return [one["id"] for one in desk.run("inbox", "--mine", "--as", name, "--json").data["requests"]]

    assert mine("cleo") == [anyone, dev, kept]
    assert mine("ana") == [anyone, ops, dev, taken]
    desk.run("delegate", "ana", "cleo", "--until", "1h")
    assert mine("cleo") == [anyone, ops, dev, kept], "who stands in for ana sees what ana may answer"
    every = (anyone, ops, dev, taken, kept)
    assert desk.run("inbox", "--mine", "--as", "ana").out == wording(request=every, ago=AGO)
    desk.run("release", kept)
    for one in (anyone, dev, kept, ops):
        desk.decide(one, approved=False)
    assert desk.run("inbox", "--mine", "--as", "cleo").out == wording()
    said = desk.run("inbox", "--mine", "--as", "anna")
    assert said.code == 2
    assert said.err == wording()


def test_nothing_a_call_brings_along_moves_the_cursor(desk: Desk) -> None:
    needs = Requirement(role="ops\x1b[31m\n", message=HOSTILE)
    [one] = desk.open(asks(f"tool{HOSTILE}", {"text": HOSTILE}, needs=needs, summary=HOSTILE, requester=HOSTILE))
    two = desk.start_and_die(asks(summary=HOSTILE))
    desk.do(lambda broker: broker.assign(one, HOSTILE, by=Actor(name=HOSTILE), admin=True))
    desk.do(lambda broker: broker.switch.halt(by=HOSTILE, why=HOSTILE))
    for command in (["inbox"], ["show", one], ["show", two], ["inbox", "--json"], ["show", one, "--json"]):
        said = desk.run(*command)
        assert said.code == 0, said.err
        plain(said.out)
        assert "\nsignoff: approved" not in said.out
    plain(desk.run("approve", one, "--as", "ben").err)
    plain(desk.run("show", HOSTILE).err)


# --- inbox --watch ---


def test_watching_for_programs_prints_a_line_for_every_change(desk: Desk) -> None:
    command = [*start.SIGNOFF, "inbox", "--watch", "--json"]
    with start.Process(command, stdout=subprocess.PIPE, text=True, env=desk.environment, cwd=desk.directory) as watch:
        printed = start.Lines(watch)
        assert json.loads(printed.next("the empty inbox"))["requests"] == []
        [one] = desk.open(asks())
        [told] = json.loads(printed.next("the new request"))["requests"]
        assert (told["id"], told["assigned"]) == (one, "")
        desk.run("take", one, "--as", "ben")
        [told] = json.loads(printed.next("who took it"))["requests"]
        assert told["assigned"] == "ben"
        desk.run("deny", one, "--as", "ben")
        assert json.loads(printed.next("the inbox without it"))["requests"] == []
        watch.send_signal(signal.SIGINT)
        assert watch.wait(20) == 0


def test_watching_at_a_terminal_redraws_and_leaves_it_as_it_was(desk: Desk) -> None:
    program = desk.sits_down("inbox", "--watch")
    program.expect_exact("\x1b[?1049h")
    program.expect_exact("No pending requests.")
    [one] = desk.open(asks(summary=HOSTILE))
    program.expect_exact(one)
    program.expect_exact("fine⟦ESC⟧[2J⟦ESC⟧[H⟦CR⟧⟦LF⟧signoff: approved")
    desk.decide(one)
    program.expect_exact("No pending requests.")
    program.sendintr()
    program.expect_exact("\x1b[?1049l")
    program.expect(pexpect.EOF)
    assert (program.before or "").strip() in ("", "^C")
    program.close()
    assert program.exitstatus == 0


def test_a_key_opens_the_card_of_a_request_and_answers_it_there(desk: Desk) -> None:
    lost = desk.start_and_die(asks())
    [one, two] = desk.open(asks(), asks("write_file", {"path": "notes/a.md"}))
    program = desk.sits_down("inbox", "--watch")
    program.expect_exact(f"> \x1b[36m{lost}")
    program.send("\x1b[B\x1b[B")
    program.expect_exact(f"> \x1b[36m{two}")
    program.send("\r")
    program.expect_exact("\x1b[?1049l")
    program.expect_exact("may write_file run?")
    program.expect_exact("your answer >")
    program.sendline("a")
    program.expect_exact("\x1b[?1049h")
    program.expect_exact('approved: write_file(path="notes/a.md")')
    assert desk.request(two).state is State.APPROVED
    program.expect_exact(f"> \x1b[36m{lost}")
    program.send("j\r")
    program.expect_exact("your answer >")
    program.sendintr()
    program.expect_exact("still open: pay(")
    assert desk.request(one).state is State.PENDING, "Ctrl-C on the card denies nothing"
    program.send("k\r")
    program.expect_exact("What happened?")
    program.expect_exact("your answer >")
    program.sendline("yes")
    program.expect_exact("“yes” is not one of the answers. Nothing is on record.")
    program.sendline("h")
    program.expect_exact("on record: it happened")
    assert desk.request(lost).state is State.SUCCEEDED
    [new] = desk.open(asks())
    program.expect_exact("\a")
    program.expect_exact(new)
    program.send("q")
    program.expect(pexpect.EOF)
    program.close()
    assert program.exitstatus == 0


def test_a_full_line_keeps_its_last_character(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.monkeypatch.setenv("TERM", "xterm")
    desk.monkeypatch.setenv("COLUMNS", "60")
    desk.open(asks(summary="x" * 200))
    screen = WatchScreen()
    screen.show(desk.do(lambda broker: InboxFilter(limit=10).page(broker.store)))
    rows = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", capsys.readouterr().out).split("\r\n")
    assert max(map(len, rows)) == 59 and any(row.endswith("…") for row in rows)


def test_a_long_list_follows_the_chosen_request() -> None:
    body = [f"line {at}" for at in range(30)]
    for at in range(30):
        shown = part_of(body, 10, at)
        assert body[at] in shown and len(shown) <= 10
        assert (body[0] in shown) is ("more above" not in shown[0])
        assert (body[-1] in shown) is ("more below" not in shown[-1])


def test_watching_needs_a_terminal_or_json(desk: Desk, wording: Wording) -> None:
    said = desk.run("inbox", "--watch")
    assert said.code == 2
    assert said.err == wording()


# --- show ---


def test_the_whole_card_and_what_may_be_remembered(desk: Desk) -> None:
    args = {"path": "notes/a.md", "content": "x" * 5000 + "THE END", "api_token": "s3cr3t-value-17"}
    [one] = desk.open(asks("write_file", args))
    said = desk.run("show", one[:6])
    assert said.code == 0
    assert "may write_file run?" in said.out
    assert "THE END" in "".join(said.out.split()).replace("│↳", "").replace("THEEND", "THE END")
    assert "s3cr3t" not in said.out
    assert "⟦masked 1: token⟧" in said.out
    assert f"request {one}" in said.out
    assert "it waits for an answer" in said.out
    assert "1  exact: write_file with exactly these arguments" in said.out
    assert "3  path: write_file with path any path inside" in said.out
    assert f"signoff approve {one}, or signoff deny {one} --note WHY" in said.out
    assert "asked: a person" in said.out


def test_votes_decision_outcome_and_history(desk: Desk) -> None:
    [one] = desk.open(asks(needs=OPS, requester="cleo", run=desk.begin("runabc2345")))
    desk.run("approve", one, "--as", "ana", "--note", "fine by me")
    assert "1 of 2 (ana)" in desk.run("show", one).out
    desk.run("approve", one, "--as", "ben")

    async def work(broker: Broker) -> None:
        await broker.claim(one)
        broker.finish(one, digest="abc", preview="paid 250")

    desk.do(work)
    out = desk.run("show", one).out
    for text in (
        "it ran",
        "for      cleo",
        "run      runabc2345",
        "approved by ana (command) at ",
        ": “fine by me”",
        "approved by ben (command) at ",
        "result   paid 250",
        "voted: approved, by ben, via command",
        "settled: approved, by ben, via command",
        "claimed: by process ",
        "ran: paid 250",
    ):
        assert text in out, out
    assert "signoff approve" not in out


def test_show_for_programs(desk: Desk) -> None:
    [one] = desk.open(asks(args={"to": "ana", "amount": 2, "password": "hunter2hunter2"}, needs=OPS))
    desk.run("approve", one, "--as", "ben", "--note", "ok")
    told = desk.run("show", one, "--json").data
    assert told["args"] == {"to": "ana", "amount": 2, "password": "⟦masked 1: password⟧"}
    assert (told["state"], told["role"], told["quorum"], told["agreed"]) == ("pending", "ops", 2, 1)
    assert told["card"]["needs"] == "2 people with the role ops; 1 of 2 (ben)"
    assert (told["votes"][0]["by"], told["votes"][0]["via"], told["approved_by"]) == ("ben", "command", ["ben"])
    assert (told["offers"], told["answers"]) == ([], ["approve", "deny"])
    assert [event["kind"] for event in told["history"]] == ["asked", "voted"]
    assert "hunter2" not in json.dumps(told)


def test_what_cannot_be_shown_says_so(desk: Desk, wording: Wording) -> None:
    deep: object = "x"
    for _ in range(120):
        deep = [deep]
    [one] = desk.open(asks(args={"deep": 1}))
    request = desk.request(one)

    async def spoil(broker: Broker) -> None:
        spoilt = request.changed_to(args={"deep": deep}, version=request.version + 1)
        await broker.store.write("spoil", lambda tx: tx.requests.put(spoilt))

    desk.do(spoil)
    said = desk.run("show", one)
    assert said.code == 0
    assert "this call cannot be shown, so it cannot be approved" in " ".join(said.out.split())
    assert desk.run("show", one, "--json").data["card"] is None
    said = desk.run("approve", one)
    assert said.code == 1
    assert said.err == wording(request=one)


# --- ids and stores ---


def test_ids_may_be_shortened_while_they_are_unambiguous(desk: Desk, wording: Wording) -> None:
    desk.open(asks(id="abcd234567"), asks(id="abce234567"))
    assert desk.run("show", "abcd").code == 0
    said = desk.run("show", "abc")
    assert said.code == 1
    assert said.err == wording()
    assert desk.run("show", "zz").err == wording()
    assert desk.run("show", "").code == 1
    plain(desk.run("show", "zz\x1b[2J").err)


def test_a_damaged_database_is_one_message(desk: Desk, wording: Wording) -> None:
    desk.file.write_bytes(b"this is no database, " * 500)
    told = set[str]()
    for command in (["inbox"], ["show", "x"], ["approve", "x"], ["runs"], ["halt"]):
        said = desk.run(*command)
        assert (said.code, said.out) == (1, "")
        told.add(said.err)
    assert "".join(told) == wording(), "the same for each"
    assert desk.file.read_bytes().startswith(b"this is no database")


@pytest.mark.parametrize(
    "url",
    ["mysql://x", "nonsense", "sqlite:", "redis://user:pa55word@host/1"],
    ids=["mysql", "nonsense", "sqlite", "password"],
)
def test_a_store_nobody_knows(desk: Desk, url: str, wording: Wording) -> None:
    said = desk.run("inbox", "--store", url)
    assert said.code == 2
    assert said.err == wording()
    assert "pa55word" not in said.err


def test_a_directory_that_cannot_be_written(tmp_path: Path, wording: Wording) -> None:
    done = signoff("halt", cwd=tmp_path, SIGNOFF_STORE="sqlite:/proc/nowhere/s.db")
    assert done.returncode == 1
    assert done.stderr == wording(reason=re.compile(r"(?<=cannot be opened \()[^)]+"))
    assert "Traceback" not in done.stderr
    done = signoff("inbox", cwd=tmp_path, SIGNOFF_STORE="sqlite:/proc/nowhere/s.db")
    assert done.returncode == 0
    assert done.stdout == wording()


def test_the_store_in_the_policy_file_is_used(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks())
    desk.monkeypatch.delenv("SIGNOFF_STORE")
    assert desk.run("inbox").out == wording()
    (desk.directory / "signoff.yaml").write_text("store: sqlite:approvals.db\npolicy: []\n")
    assert one in desk.run("inbox").out
    assert one in desk.run("inbox", "--store", f"sqlite:{desk.file}").out
    other = desk.directory / "other.yaml"
    other.write_text("store: sqlite:approvals.db\npolicy: []\n")
    (desk.directory / "signoff.yaml").unlink()
    assert one in desk.run("inbox", "--policy", "other.yaml").out
    assert desk.run("inbox", "--policy", "missing.yaml").code == 2
