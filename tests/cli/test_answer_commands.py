"""`signoff approve`, `deny`, `outcome`, `take`, `release`, `assign`: answers from anywhere."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pexpect
import pytest
from tests.cli.desk import POLICY, SCHEMA, Desk, Said, asks
from tests.cli.wording import MOMENT, RECURSION, Wording

from signoff.config import load_policy
from signoff.core.call import Veiled
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.core.run import RunSetup
from signoff.core.verdict import Requirement
from signoff.errors import AlreadySettled
from signoff.testing import FakeClock
from signoff.wiring.resumers import WATCH, note_resumer
from signoff.wiring.serve_lease import take_store

OPS = Requirement(role="ops", quorum=2)


# --- yes and no ---


def test_approve_and_deny(desk: Desk, wording: Wording) -> None:
    [one, two] = desk.open(asks(), asks())
    said = desk.run("approve", one[:7], "--note", "checked")
    assert (said.code, said.err) == (0, "")
    assert said.out == wording(request=one)
    approved = desk.request(one)
    assert approved.state is State.APPROVED
    assert approved.decision is not None
    assert approved.decision.by is not None
    assert (approved.decision.note, approved.decision.by.name, approved.decision.by.via) == (
        "checked",
        "ana",
        "command",
    )
    said = desk.run("deny", two, "--as", "Ben", "--note", "not today")
    assert said.out == wording(request=two)
    denied = desk.request(two).decision
    assert denied is not None and denied.by is not None
    assert (denied.by.name, denied.by.roles, denied.note) == ("ben", frozenset({"ops"}), "not today")


def test_several_at_once_a_line_each(desk: Desk, wording: Wording) -> None:
    [one, two, three] = desk.open(asks(), asks(), asks())
    desk.decide(two, note="I was faster")
    said = desk.run("approve", one, two, "nothing", three, one[:6])
    assert said.code == 1
    assert [line.split()[:2] for line in said.out.splitlines()] == [["approved", one], ["approved", three]]
    assert said.err == wording(request=(one, two, three), time=MOMENT)
    rows = desk.run("approve", one, "nothing", "--json")
    assert rows.code == 1
    assert [(row["id"], row["ok"]) for row in rows.rows] == [(one, False), ("nothing", False)]


def test_a_late_answer_is_told_who_when_and_what_by_the_clock_on_the_wall(desk: Desk, wording: Wording) -> None:
    desk.monkeypatch.setenv("TZ", "Etc/GMT-5")
    time.tzset()
    try:
        desk.clock = FakeClock(datetime(2031, 5, 24, 22, 30, tzinfo=UTC))
        [one] = desk.open(asks())
        desk.decide(one, approved=False, note="no\x1b[2J\nsignoff: approved")
        said = desk.run("approve", one)
    finally:
        desk.monkeypatch.setenv("TZ", "UTC")
        time.tzset()
    assert said.code == 1
    assert "2031-05-25 03:30:00 +05" in said.err
    assert said.err == wording(request=one)


def test_a_call_that_was_asked_again_is_named_with_its_new_request(desk: Desk) -> None:
    asked = asks()
    [old] = desk.open(asked)
    desk.decide(old)
    desk.do(lambda broker: broker.cancel(old, "`a.txt` changed"))
    assert "asked again" not in desk.run("approve", old).err
    [new] = desk.open(replace(asked, id=""))
    said = desk.run("approve", old)
    assert said.code == 1
    assert said.err.endswith(f": `a.txt` changed; it was asked again as request {new}: signoff show {new}\n")
    late = ApprovalDecision(approved=True)
    with pytest.raises(AlreadySettled, match=f"signoff show {new}$"):  # as on every other channel
        desk.do(lambda broker: broker.answer(old, late, by=Actor(name="ana")))


def test_a_quorum_is_counted(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks(needs=OPS))
    said = desk.run("approve", one, "--as", "ana")
    assert said.code == 0
    assert said.out == wording(request=one)
    again = desk.run("approve", one, "--as", "Ana").out
    assert again.replace("you have already approved it; ", "") == said.out != again
    assert desk.run("approve", one, "--as", "ben", "--json").data == {
        "id": one,
        "ok": True,
        "state": "approved",
        "approvals": 2,
        "quorum": 2,
        "run": "",
        "remembered": "",
    }


def test_only_the_right_people(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks(needs=OPS))
    said = desk.run("approve", one, "--as", "cleo")
    assert said.code == 1
    assert said.err == wording(request=one)
    said = desk.run("approve", one, "--as", "bem")
    assert said.code == 2
    assert said.err == wording()
    [two] = desk.open(asks(needs=Requirement(not_by=frozenset({"requester"})), requester="ana"))
    said = desk.run("approve", two)
    assert said.code == 1
    assert said.err == wording(request=two)
    assert desk.request(one).state is desk.request(two).state is State.PENDING


def test_somebody_stands_in(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks(needs=Requirement(role="ops")))
    said = desk.run("delegate", "ana", "cleo", "--until", "2d", "--as", "ben")
    assert said.out == wording(time=MOMENT)
    assert desk.run("approve", one, "--as", "cleo").code == 0
    assert "approved by cleo (command)" in desk.run("show", one).out
    assert "in the place of ana" in desk.run("show", one).out


def test_time_ran_out(desk: Desk, wording: Wording) -> None:
    desk.clock = FakeClock(datetime.now(UTC) - timedelta(hours=1))
    [one] = desk.open(asks(needs=Requirement(timeout=timedelta(minutes=15))))
    said = desk.run("approve", one)
    assert said.code == 1
    assert said.err == wording(request=one, time=MOMENT)


def test_what_cannot_be_shown_cannot_be_approved_but_denied(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks(call={"unreadable": ("handle: Socket",)}))
    said = desk.run("approve", one)
    assert said.code == 1
    assert said.err == wording(request=one)
    assert desk.run("deny", one).code == 0


def test_the_run_that_can_go_on_is_named(desk: Desk, wording: Wording) -> None:
    run = desk.begin("runabc2345")
    [one, two] = desk.open(asks(run=run), asks(run=run))
    assert "resume" not in desk.run("approve", one).out
    said = desk.run("deny", two)
    assert f"signoff resume {run}" in said.out
    assert said.out == wording(request=(one, two))


@pytest.mark.parametrize("what", ["a server", "a server of others", "a command"])
def test_what_resumes_the_run_by_itself_is_named_instead(desk: Desk, what: str) -> None:
    project, url = str(desk.directory), "http://127.0.0.1:18320"
    (desk.directory / "signoff.yaml").write_text(POLICY + "agents: {shop: shop:agent}\n")
    here, served = "others" not in what, "/somewhere/else" if "others" in what else project
    text = "`signoff resume --watch`" if what == "a command" else f"The server at {url}"
    if what == "a command":
        desk.do(lambda broker: note_resumer(broker.ledger, WATCH))
    else:
        desk.do(lambda broker: take_store(broker.ledger, url, projects=(served,)))
    setup = RunSetup(directory=project, project=project)
    desk.begin("runabc2345", setup=setup)
    desk.begin("runabc2346", agent="", name="shop", setup=setup)
    for run in ("runabc2345", "runabc2346"):
        [one] = desk.open(asks(run=run))
        said = desk.run("approve", one).out
        assert (f"{text} resumes its run." in said) is here
        assert ("Its run can be resumed" in said) is not here
        step = text.replace("The", "the") + " resumes it"
        assert all((step in desk.run("runs", *more).out) is here for more in ((), ("show", run)))


# --- other arguments ---


def edited(desk: Desk, one: str, args: Any, *more: str) -> Said:
    return desk.run("approve", one, "--args", json.dumps(args), *more)


def test_other_arguments_run_instead_and_are_shown(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks())
    said = edited(desk, one, {"to": "ana", "amount": 20})
    assert said.code == 0, said.err
    assert said.out == wording(request=one)
    assert desk.request(one).effective_args == {"to": "ana", "amount": 20, "currency": "EUR"}, "whole, with defaults"
    shown = desk.run("show", one).out
    assert "amount    20" in shown
    assert "approved with other arguments by ana" in shown
    [two] = desk.open(asks(args={"to": "ana", "amount": 250}))
    assert edited(desk, two, {"to": "ben", "amount": 1}).code == 0
    assert desk.request(two).effective_args == {"to": "ben", "amount": 1}, "the tool fills in for itself"


def test_an_agent_that_cannot_run_other_arguments_is_only_told_them(desk: Desk) -> None:
    [one] = desk.open(asks(takes_edits=False))
    said = edited(desk, one, {"to": "ana", "amount": 20}).out
    assert said.startswith(f"refused   {one}  ") and "this agent cannot run a call with other arguments" in said


def test_what_the_tool_said_about_other_arguments_is_not_shown_after_an_edit(desk: Desk) -> None:
    said = {"summary": "Pay Ana 250", "note": "by tonight", "before": "250 owed\n", "after": "0 owed\n", "path": "ana"}
    [one] = desk.open(asks(metadata=said))
    asked = desk.run("show", one).out
    assert "Pay Ana 250" in asked and "0 owed" in asked and "by tonight" in asked
    assert edited(desk, one, {"to": "ben", "amount": 20, "currency": "EUR"}).code == 0
    shown = desk.run("show", one).out
    assert (
        "0 owed" not in shown
        and "by tonight" not in shown
        and "description of the original call is left out" in " ".join(shown.split())
    )
    assert "Pay Ana 250" not in shown and "to        ben" in shown
    card = json.loads(desk.run("show", one, "--json").out)
    assert "0 owed" not in json.dumps(card)


def test_two_people_have_to_agree_on_the_same_arguments(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks(needs=OPS))
    assert edited(desk, one, {"to": "ana", "amount": 20}, "--as", "ana").code == 0
    assert "amount: 20, not 250" in desk.run("show", one).out, "the second one sees what the first one changed"
    assert desk.run("approve", one, "--as", "ben").out == wording(request=one)
    assert desk.request(one).state is State.PENDING
    assert edited(desk, one, {"to": "ana", "amount": 20}, "--as", "ben").code == 0
    assert desk.request(one).state is State.APPROVED


def test_from_a_file_or_standard_input(desk: Desk) -> None:
    [one, two] = desk.open(asks(), asks())
    (desk.directory / "args.json").write_text('{"to": "ben", "amount": 1}')
    assert desk.run("approve", one, "--args", "@args.json").code == 0
    assert desk.request(one).effective_args["to"] == "ben"
    program = desk.sits_down("approve", two, "--args", "@-")
    program.sendline('{"to": "cleo", "amount": 1}')
    program.sendeof()
    program.expect(pexpect.EOF)
    assert desk.request(two).effective_args["to"] == "cleo"


def test_the_same_arguments_are_no_edit(desk: Desk) -> None:
    [one] = desk.open(asks())
    assert edited(desk, one, {"currency": "EUR", "amount": 250.0, "to": "ana"}).code == 0
    decision = desk.request(one).decision
    assert decision is not None and decision.edited_args is None


@pytest.mark.parametrize(
    ("args", "problems"),
    [
        pytest.param({"to": 5, "amount": 1}, 1, id="type"),
        pytest.param({"to": "ana", "amount": -1}, 1, id="minimum"),
        pytest.param({"to": "ana", "amont": 1, "x": [1]}, 3, id="names"),
        pytest.param({"to": "mallory", "amount": 1}, 1, id="denied"),
        pytest.param({"to": "ana", "amount": 5000}, 1, id="needs-more"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_every_problem(
    desk: Desk, args: dict[str, Any], problems: int, wording: Wording
) -> None:
    [one] = desk.open(asks())
    said = edited(desk, one, args)
    assert (said.code, said.out) == (1, "")
    assert len(said.err.splitlines()) == problems
    assert said.err == wording(request=one)
    assert desk.request(one).state is State.PENDING
    told = edited(desk, one, args, "--json")
    assert len(told.data["problems"]) == problems


def test_where_a_path_leads_counts(desk: Desk, wording: Wording) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    [one] = desk.open(asks("read", {"path": "a.txt"}, schema=schema))
    (desk.directory / ".env").write_text("KEY=1")
    (desk.directory / "innocent").symlink_to(".env")
    told = set[str]()
    for path in (".env", "sub/../.env", "innocent"):
        said = edited(desk, one, {"path": path})
        assert said.code == 1
        told.add(said.err)
    assert "".join(told) == wording(request=one), "the same for each"
    assert edited(desk, one, {"path": "b.txt"}).code == 0


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="cut-off"),
        pytest.param("[1]", id="list"),
        pytest.param('{"a": NaN}', id="nan"),
        pytest.param('{"a": 1, "a": 2}', id="twice"),
        pytest.param("[" * 100_000, id="deep"),
        pytest.param("@missing.json", id="no-file"),
        pytest.param("@.", id="directory"),
    ],
)
def test_what_is_no_json_object_is_wrong_use(desk: Desk, text: str, wording: Wording) -> None:
    [one] = desk.open(asks())
    said = desk.run("approve", one, "--args", text)
    assert said.code == 2
    assert said.err == wording(recursion=RECURSION)
    assert desk.request(one).state is State.PENDING


def test_other_arguments_are_for_one_request_and_once(desk: Desk, wording: Wording) -> None:
    [one, two] = desk.open(asks(), asks())
    assert desk.run("approve", one, two, "--args", "{}").err == wording()
    said = desk.run("approve", one, "--args", "{}", "--remember", "exact")
    assert said.code == 2
    assert said.err == wording()


def test_masks_that_were_left_alone_are_filled_in_again(desk: Desk, wording: Wording) -> None:
    schema = {"type": "object", "properties": {"to": {"type": "string"}, "password": {"type": "string"}}}
    [one, two] = (desk.open(asks(args={"to": "a", "password": "hunter2hunter2"}, schema=schema))[0] for _ in range(2))
    shown = desk.run("show", one, "--json").data["args"]
    assert shown["password"] == "⟦masked 1: password⟧"
    said = edited(desk, one, {**shown, "to": "b"})
    assert said.code == 0, said.err
    assert said.out == wording(request=one)
    assert desk.request(one).effective_args == {"to": "b", "password": "hunter2hunter2"}
    said = edited(desk, two, {"to": shown["password"], "password": "x"})
    assert (said.code, said.out) == (1, "")
    assert said.err == wording(request=two)


def test_a_veiled_secret_cannot_be_edited_around(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks(args={"to": "a", "amount": 1, "key": Veiled("<secret 12>")}))
    said = edited(desk, one, {"to": "b", "amount": 1, "key": "k"})
    assert said.code == 1
    assert said.err == wording(request=one)
    assert desk.run("approve", one).code == 0
    [plain] = desk.open(asks(args={"to": "a", "amount": 1, "key": f"<secret {'ab' * 8}>"}))
    assert edited(desk, plain, {"to": "b", "amount": 1, "key": "k"}).code == 1


def test_without_a_schema_nothing_can_be_checked(desk: Desk, wording: Wording) -> None:
    [none, broken, remote] = desk.open(
        asks(schema=None),
        asks(schema={"type": 7, "properties": {"to": {}, "amount": {}}}),
        asks(schema={**SCHEMA, "properties": {"to": {"$ref": "http://127.0.0.1:9/x.json"}, "amount": {}}}),
    )
    for one in (none, broken, remote):
        said = edited(desk, one, {"to": "b", "amount": 1})
        assert said.code == 1
        assert said.err == wording(request=one)


def test_an_edit_is_judged_by_the_policy_it_was_asked_under(desk: Desk, wording: Wording) -> None:
    [other] = desk.open(asks(policy_revision="f" * 64))
    said = edited(desk, other, {"to": "ben", "amount": 1})
    assert said.code == 1
    assert said.err == wording(request=other)
    here = load_policy("signoff.yaml").revision
    [mine] = desk.open(asks(policy_revision=here))
    assert edited(desk, mine, {"to": "ben", "amount": 1}).code == 0
    # From another directory, the run says which file it began with.
    run = desk.begin("runabc2345", setup=RunSetup(directory=str(desk.directory)))
    [theirs, strict] = desk.open(asks(policy_revision=here, run=run), asks(policy_revision=here, run=run))
    (desk.directory / "elsewhere").mkdir()
    desk.monkeypatch.chdir(desk.directory / "elsewhere")
    assert edited(desk, theirs, {"to": "ben", "amount": 1}).code == 0
    assert edited(desk, strict, {"to": "ben", "amount": 5000}).err == wording(request=strict)


# --- remembering ---


def remembered(desk: Desk) -> list[Any]:
    return desk.run("grants", "list", "--json").data["grants"]


def test_what_will_be_remembered_is_spelled_out_first(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks("write_file", {"path": "notes/a.md", "content": "hi"}))
    said = desk.run("approve", one, "--remember", "path", "--until", "2d", "--uses", "3", "--yes", "--json")
    assert said.code == 0, said.err
    [grant] = remembered(desk)
    assert said.err == wording(time=MOMENT)
    assert said.data["remembered"] == grant["text"]
    assert grant["text"] in said.err
    assert (grant["max_uses"], grant["used"], grant["by"]) == (3, 0, "ana")


def test_without_a_terminal_nothing_is_remembered_unless_it_is_meant(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks())
    said = desk.run("approve", one, "--remember", "exact")
    assert (said.code, said.out) == (2, "")
    assert said.err == wording()
    assert desk.request(one).state is State.PENDING


@pytest.mark.parametrize(("typed", "answered"), [("y", True), ("", False), ("n", False)])
def test_at_a_terminal_it_asks_back(desk: Desk, typed: str, answered: bool) -> None:
    [one] = desk.open(asks())
    program = desk.sits_down("approve", one, "--remember", "1")
    program.expect_exact("This would be remembered:")
    program.expect_exact("always pay, exactly as in: pay(")
    program.expect_exact("Confirm? [y/N]: ")
    assert desk.request(one).state is State.PENDING
    program.sendline(typed)
    program.expect(pexpect.EOF)
    program.close()
    assert program.exitstatus == (0 if answered else 1)
    assert (desk.request(one).state is State.APPROVED) is answered
    assert len(remembered(desk)) == answered


def test_a_budget(desk: Desk, wording: Wording) -> None:
    [one, two] = desk.open(asks(), asks())
    said = desk.run("approve", one, "--remember", "amount", "--yes")
    assert said.code == 1
    assert said.err == wording(request=one)
    assert "This" not in said.err, "what cannot be is not announced"
    assert desk.run("approve", one, "--remember", "amount", "--budget", "amount 200/day", "--yes").code == 0
    assert desk.run("approve", two, "--remember", "2", "--budget", "amount 500", "--yes").code == 0
    [daily, whole] = remembered(desk)
    assert daily["budget"] == {"arg": "amount", "limit": "200", "daily": True, "spent": "0"}
    assert whole["budget"] == {"arg": "amount", "limit": "500", "daily": False, "spent": "0"}
    assert "amount at most 200 each day (UTC)" in daily["text"]
    [three] = desk.open(asks())
    for wrong in ("amount", "amount lots", "200", "amount 0", "amount -5", "amount 5/week"):
        said = desk.run("approve", three, "--remember", "amount", "--budget", wrong, "--yes")
        assert said.code == 2
        assert said.err == wording()
    said = desk.run("approve", three, "--remember", "exact", "--budget", "to 5", "--yes")
    assert (said.code, desk.request(three).state) == (1, State.PENDING)


def test_a_no_can_be_remembered_too(desk: Desk) -> None:
    run = desk.begin("runabc2345")
    [one] = desk.open(asks(run=run))
    assert desk.run("deny", one, "--remember", "exact", "--for", "run", "--yes").code == 0
    [grant] = remembered(desk)
    assert (grant["approved"], grant["scope"], grant["where"]) == (False, "run", run)
    assert grant["text"].startswith("never pay, exactly as in: pay(")


def test_what_is_not_on_offer(desk: Desk, wording: Wording) -> None:
    [one, strict] = desk.open(asks(), asks(needs=OPS))
    said = desk.run("approve", one, "--remember", "to", "--yes")
    assert said.code == 1
    assert said.err == wording(request=one)
    assert desk.run("approve", one, "--remember", "3", "--yes").code == 1
    said = desk.run("approve", strict, "--remember", "exact", "--yes")
    assert said.code == 1
    assert said.err == wording(request=strict)
    said = desk.run("approve", one, "--remember", "exact", "--for", "run", "--yes")
    assert (said.code, desk.request(one).state) == (1, State.PENDING)
    told = set[str]()
    for limit in (["--uses", "3"], ["--for", "run"], ["--until", "2d"], ["--budget", "amount 5"]):
        said = desk.run("approve", one, *limit)
        assert said.code == 2
        told.add(said.err)
    assert "".join(told) == wording(), "the same for each"
    for when in ("soon", "2020-01-01", "0d", "9999999d", "2d2d"):
        said = desk.run("approve", one, "--remember", "exact", "--until", when, "--yes")
        assert said.code == 2, when
        assert when in said.err


def test_secrets_do_not_show_in_what_is_remembered(desk: Desk) -> None:
    [one] = desk.open(asks("put", {"path": "a/b.txt", "password": "hunter2hunter2"}))
    assert "hunter2" not in desk.run("show", one).out
    said = desk.run("approve", one, "--remember", "path", "--yes")
    assert said.code == 0, said.err
    assert "hunter2" not in said.err + said.out
    assert "⟦masked 1: password⟧" in said.err
    for command in (["grants", "list"], ["grants", "list", "--json"]):
        assert "hunter2" not in desk.run(*command).out


# --- unknown outcomes ---


def test_an_unknown_outcome_is_not_approved_again(desk: Desk, wording: Wording) -> None:
    one = desk.start_and_die(asks())
    told = set[str]()
    for command in ("approve", "deny"):
        said = desk.run(command, one)
        assert said.code == 1
        assert f"signoff outcome {one} " in said.err
        told.add(said.err)
    assert "".join(told) == wording(request=one), "the same for each"
    assert desk.request(one).state is State.UNKNOWN


@pytest.mark.parametrize(
    ("said", "state"), [("happened", State.SUCCEEDED), ("did-not", State.CANCELLED)], ids=["happened", "did-not"]
)
def test_somebody_says_what_became_of_it(desk: Desk, said: str, state: State, wording: Wording) -> None:
    run = desk.begin("runabc2345")
    one = desk.start_and_die(asks(run=run))
    done = desk.run("outcome", one, said, "--as", "ben", "--note", "I looked")
    assert done.code == 0, done.err
    assert done.out == wording(request=one)
    assert f"signoff resume {run}" in done.out
    assert desk.request(one).state is state
    shown = desk.run("show", one).out
    assert "ben says so" in shown
    assert "I looked" in shown
    assert desk.run("outcome", one, said).code == 1


def test_stopping_the_run_leaves_it_unknown(desk: Desk, wording: Wording) -> None:
    run = desk.begin("runabc2345")
    one = desk.start_and_die(asks(run=run))
    done = desk.run("outcome", one, "stop-run", "--note", "who knows")
    assert done.code == 0
    assert done.out.startswith(f"cancelled  run {run}\n")
    assert desk.request(one).state is State.UNKNOWN
    assert desk.run("runs", "--all", "--json").data["runs"][0]["state"] == "cancelled"
    alone = desk.start_and_die(asks())
    assert desk.run("outcome", alone, "stop-run").err == wording(request=alone)
    [pending] = desk.open(asks())
    assert desk.run("outcome", pending, "stop-run").code == 1
    said = desk.run("outcome", pending, "happened")
    assert said.code == 1
    assert said.err == wording(request=pending)
    assert desk.run("outcome", pending, "perhaps").code == 2


def test_only_the_right_people_say_what_happened(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks(needs=Requirement(role="ops")))
    desk.decide(one)

    async def work(broker: Any) -> None:
        await broker.claim(one)
        await broker.lose(one)

    desk.do(work)
    said = desk.run("outcome", one, "happened", "--as", "cleo")
    assert said.code == 1
    assert said.err == wording(request=one)


# --- one card, one person ---


def test_take_release_and_assign(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks())
    assert desk.run("take", one, "--as", "ben").out == wording(request=one)
    said = desk.run("approve", one, "--as", "ana")
    assert said.code == 1
    assert said.err == wording()
    assert desk.run("take", one[:5], "--as", "ana").out == wording()
    assert desk.run("assign", one, "CLEO").out == wording()
    assert desk.run("release", one).out == wording()
    assert desk.run("approve", one, "--as", "ana").code == 0
    assert desk.run("take", one).code == 1, "it is settled"
    said = desk.run("assign", one, "clea")
    assert said.code == 2
    assert said.err == wording()


def test_without_people_on_file_anyone_answers_by_their_name(desk: Desk) -> None:
    (desk.directory / "signoff.yaml").unlink()
    [one, two] = desk.open(asks(), asks())
    assert desk.run("approve", one, "--as", "zoe").code == 0
    assert desk.run("assign", two, "zoe").out.startswith("zoe has it")
    decision = desk.request(one).decision
    assert decision is not None and decision.by is not None and decision.by.name == "zoe"


def test_somebody_is_faster_in_the_same_instant(desk: Desk, monkeypatch: pytest.MonkeyPatch, wording: Wording) -> None:
    from signoff.broker import Broker

    [one] = desk.open(asks())
    answer = Broker.answer

    async def slow(self: Broker, request_id: str, decision: Any, *, by: Any) -> Any:
        await answer(self, request_id, ApprovalDecision(approved=False), by=replace(by, name="ben"))
        return await answer(self, request_id, decision, by=by)

    monkeypatch.setattr(Broker, "answer", slow)
    said = desk.run("approve", one)
    assert (said.code, said.out) == (1, "")
    assert said.err == wording(request=one, time=MOMENT)


def test_what_was_answered_before_the_store_failed_is_told(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    from signoff.broker import Broker
    from signoff.errors import StoreError

    [one, two] = desk.open(asks(), asks())
    answer = Broker.answer

    async def failing(self: Broker, request_id: str, decision: Any, *, by: Any) -> Any:
        if request_id == two:
            raise StoreError("the disk is full")
        return await answer(self, request_id, decision, by=by)

    monkeypatch.setattr(Broker, "answer", failing)
    said = desk.run("approve", one, two)
    assert said.code == 1
    assert said.err == "signoff: the disk is full\n"
    assert said.out == wording(request=one)
    assert (desk.request(one).state, desk.request(two).state) == (State.APPROVED, State.PENDING)


def test_no_traceback_when_the_terminal_lacks_letters(desk: Desk) -> None:
    [one] = desk.open(asks(summary="Überweisung → 資料"))
    program = desk.sits_down("approve", one, PYTHONIOENCODING="koi8-r")
    program.expect_exact("\\xdcberweisung \\u2192 \\u8cc7\\u6599")
    program.expect(pexpect.EOF)
    program.close()
    assert program.exitstatus == 0


# --- mistaken ids and times ---


def test_the_id_of_a_run_is_told_from_that_of_a_request(desk: Desk) -> None:
    run = desk.begin("runabc2345")
    [one, two, other] = desk.open(asks(run=run), asks(run=run), asks())
    desk.decide(two)
    for command in (["approve", "runabc"], ["deny", run], ["show", run]):
        said = desk.run(*command)
        assert said.code == 1
        assert f"{run} is a run; its open questions are {one}" in said.err
        assert two not in said.err
        assert other not in said.err
    desk.decide(one)
    assert f"{run} is a run; it has no open question" in desk.run("approve", run).err


def test_until_tomorrow_is_where_tomorrow_begins(desk: Desk) -> None:
    [one] = desk.open(asks())
    assert desk.run("approve", one, "--remember", "exact", "--until", "Tomorrow", "--yes").code == 0
    [grant] = desk.run("grants", "list", "--json").data["grants"]
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    assert grant["until"] == f"{tomorrow}T00:00:00.000Z"
