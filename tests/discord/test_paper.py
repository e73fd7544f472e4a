"""The message for a call: what it says, which buttons it has, in every state."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.discord.asking import ANA, AT, BEN, asked, check_sheet, settled

from signoff.channels.discord.custom_id import Press
from signoff.channels.discord.lists import history_sheet, pending_sheet, show_sheet
from signoff.channels.discord.notice_message import sheet_for, shows_whole
from signoff.channels.discord.request_file import whole
from signoff.channels.discord.sheet import MessageSheet
from signoff.core.canonical import digest
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.lifecycle import SILENCE
from signoff.core.notice import Asked
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Requirement
from signoff.core.vote import Vote
from signoff.errors import WrongUse

LATER = AT + timedelta(minutes=5)


def drawn(request: ApprovalRequest, number: int = 1, of: int = 1) -> MessageSheet:
    sheet = sheet_for(Asked(request=request, number=number, of=of))
    check_sheet(sheet)
    return sheet


def labels(sheet: MessageSheet) -> list[list[str]]:
    return [[button.label for button in row] for row in sheet.rows if isinstance(row, tuple)]


def test_a_call_that_waits() -> None:
    request = asked(metadata={"summary": "pay ACME", "note": "from the business account"}, deadline=LATER)
    sheet = drawn(request, 2, 3)
    assert sheet.title == "May `pay_invoice` run? (2 of 3)"
    assert sheet.text == "\n".join(
        (
            "`pay ACME`",
            "**By** `triage > billing > pay_invoice`",
            "**From** `bank`",
            "**Why** `payments need a yes`",
            "**Rule** `payments:2`",
            "**Note** `from the business account`",
            "**2 arguments**",
            "`to` = `ACME`",
            "`amount` = `250`",
            "**Until** <t:1767269100:T> (<t:1767269100:R>), then it is denied",
        )
    )
    assert sheet.footer == f"request k3f9abcdef · sha256 {request.args_digest[:12]}"
    assert labels(sheet) == [["Approve", "Deny", "Deny with reason…", "Edit…", "Remember…"]]
    verbs = [Press.of(button.id) for row in sheet.rows if isinstance(row, tuple) for button in row]
    assert [press.verb for press in verbs if press] == ["approve", "deny", "deny_note", "edit", "remember"]
    assert {(press.request, press.digest) for press in verbs if press} == {("k3f9abcdef", request.args_digest[:12])}


@pytest.mark.mission("H9")
def test_h9_the_effect_is_shown_before_it_happens() -> None:
    diff = drawn(
        asked("write_file", {"path": "a.txt"}, metadata={"before": "a\nb\n", "after": "a\nc\n", "path": "a.txt"})
    )
    assert (
        "**What would change:** +1 -1\n```diff\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n```" in diff.text
    )
    text = drawn(asked(metadata={"preview": "To: ACME\n250 EUR"}))
    assert "**What it would do**\n```text\nTo: ACME\n250 EUR\n```" in text.text
    assert "**Nothing would change**" in drawn(asked(metadata={"before": "a\n", "after": "a\n"})).text


@pytest.mark.mission("H9")
def test_h9_secrets_are_masked_everywhere() -> None:
    secret = "hunter2-hunter2"
    request = asked(
        args={"password": secret, "url": f"https://x.example/?q={secret}", "to": "ACME"},
        metadata={"preview": f"log in with {secret}"},
        secrets=(secret,),
        requirement=Requirement(message=f"is {secret} right?"),
        problem=f"{secret} was wrong",
    )
    for state in State:
        there = settled(request, state, note=f"use {secret}", edited_args={"password": secret, "to": "B"})
        for sheet in (drawn(there), show_sheet(there), history_sheet([there]), pending_sheet([there], {})):
            assert secret not in repr(sheet)
    sheet = drawn(request)
    assert "`password` = `⟦masked" in sheet.text
    assert "**Masked:** `password: named like a secret (password), 15 characters`" in sheet.text
    assert "`to` = `ACME`" in sheet.text, "the target is never masked"
    assert secret not in whole(request).text


@pytest.mark.mission("H9")
def test_h9_long_values_are_whole_behind_a_button_and_locked_until_then() -> None:
    body = "\n".join(f"line {number}" for number in range(2000))
    request = asked("write_file", {"path": "a.txt", "content": body, "mode": "w"})
    sheet = drawn(request)
    assert not shows_whole(request)
    assert labels(sheet) == [
        ["Approve: open it first", "Deny", "Deny with reason…", "Edit…", "Remember…"],
        ["Show whole"],
    ]
    assert "`path` = `a.txt`" in sheet.text and "`mode` = `w`" in sheet.text
    assert "line 0\n" in sheet.text and "line 1999" in sheet.text
    missing = len(body) - len(sheet.text.partition("```text\n")[2].partition("\n```")[0].replace("⟦", ""))
    assert f"{missing // 1000:,}," in sheet.text.partition("**Not all of it fits here: ")[2]
    paper = whole(request)
    assert paper.name == "request-k3f9abcdef.txt"
    assert "\nargument 2 of 3:\n│ content\nvalue:\n│ line 0\n│ line 1\n" in paper.text
    assert "│ line 1999\nargument 3 of 3:\n" in paper.text


@pytest.mark.parametrize(
    "args",
    [
        {"content": "x" * 20_000},
        {"content": "`" * 10_000, "more": "```\n" * 5_000},
        {f"argument_{number}": number for number in range(400)},
        {"漢" * 500: "👨" * 5000},
        {"content": ["deep"] * 1000},
    ],
    ids=["large", "fences", "many", "wide", "list"],
)
def test_whatever_does_not_fit_is_cut_and_locked(args: dict[str, object]) -> None:
    request = asked(args=args)
    sheet = drawn(request)
    assert not shows_whole(request)
    assert labels(sheet)[0][0] == "Approve: open it first"
    assert "characters are left out" in sheet.text
    for state in (State.DENIED, State.SUCCEEDED):
        drawn(settled(request, state, edited_args={"x": args}, note="n" * 9000, preview="p" * 9000, error="e" * 9000))
    assert whole(request).text.count("argument ") >= len(args)


def test_a_huge_argument_is_drawn_and_given_whole() -> None:
    request = asked(args={"content": "x" * 300_000 + "\nrm -rf /"})
    assert drawn(request).text.count("rm -rf /") == 1, "the end is shown"
    assert f"│ {'x' * 300_000}\n│ rm -rf /\n" in whole(request).text


def test_whether_it_is_whole_does_not_depend_on_who_answered_so_far() -> None:
    """Otherwise a click could approve what was never shown whole."""
    strict = Requirement(quorum=9)
    votes = tuple(
        Vote(by=Actor(name=f"{number}-" * 60), at=AT, decision=ApprovalDecision(approved=True), args_digest="0" * 64)
        for number in range(8)
    )
    for length in range(2700, 3200, 40):
        request = asked(args={"content": "x" * length}, requirement=strict)
        busy = request.changed_to(votes=votes, deadline=LATER, assigned="a" * 500, problem="p" * 5000)
        assert shows_whole(request) == shows_whole(busy)
        for one in (request, busy):
            assert (labels(drawn(one))[0][0] == "Approve") == shows_whole(one)
            assert ("x" * length in drawn(one).text) == shows_whole(one)


def test_what_is_too_large_for_a_file_is_not_for_discord(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signoff.channels.discord.request_file.LARGEST", 20_000)
    for content in ("x" * 20_000, "漢" * 7_000):
        with pytest.raises(WrongUse, match="too large for Discord"):
            whole(asked(args={"content": content}))
        huge = show_sheet(asked(args={"content": content}))
        assert huge.paper is None and huge.text.endswith("It is also too large for a file.")


def test_a_call_that_cannot_be_shown_can_only_be_denied() -> None:
    deep: object = "end"
    for _ in range(200):
        deep = [deep]
    request = asked(args={"deep": deep})
    sheet = drawn(request)
    assert "**This call cannot be shown, so it cannot be approved here.**" in sheet.text
    assert labels(sheet)[0] == ["Deny", "Deny with reason…"]
    assert not shows_whole(request)
    unreadable = drawn(asked(unreadable=("file: an open file",)))
    assert labels(unreadable) == [["Deny", "Deny with reason…"]]
    assert "file: an open file cannot be shown" in unreadable.text


def test_who_must_agree_and_who_has() -> None:
    request = asked(requirement=Requirement(role="cfo", quorum=2, message="Check the **invoice**."))
    cfo = frozenset({"cfo"})
    yes = ApprovalDecision(approved=True)
    votes = (
        Vote(by=Actor(name="ana", roles=cfo), at=AT, decision=yes, args_digest=request.args_digest),
        Vote(by=BEN, at=AT, decision=yes, args_digest=digest({"amount": 1}), stands_for=Actor(name="carl", roles=cfo)),
    )
    sheet = drawn(request.changed_to(votes=votes, assigned="dora"))
    assert "**Needs** `2 people with the role cfo; 1 of 2 (ana)`" in sheet.text
    assert "**Message** `Check the **invoice**.`" in sheet.text
    assert "**Approved** by `ana`, <t:1767268800:R>" in sheet.text
    assert (
        f"**Approved** other arguments (sha256 {digest({'amount': 1})[:12]}) by `ben` in the place of `carl`"
        in sheet.text
    )
    assert "**Taken** by `dora`" in sheet.text
    assert labels(sheet) == [["Approve", "Deny", "Deny with reason…", "Edit…"]], "strict answers are not remembered"


def test_why_it_is_asked_again_and_what_to_look_at_twice() -> None:
    request = asked(
        args={"to": "AСME"},
        changed=("request q1 was approved by ana, but the policy changed since it was asked",),
        problem="amount: too much",
        errors=("rule 3 failed",),
    )
    sheet = drawn(request)
    assert "**Asked again:** `request q1 was approved by ana, but the policy changed since it was asked`" in sheet.text
    assert "**Not accepted before:** `amount: too much`" in sheet.text
    assert "**Not evaluated:** `rule 3 failed`" in sheet.text
    assert "**Look twice:** `“to” holds look-alike letters from different scripts: “AСME”`" in sheet.text


APPROVED = "**Approved** by `ana` via `discord` at <t:1767268860>."


@pytest.mark.parametrize(
    ("state", "fields", "title", "told"),
    [
        (State.APPROVED, {}, "`pay_invoice` was approved", APPROVED),
        (State.APPROVED, {"note": "ok"}, "`pay_invoice` was approved", f"{APPROVED}\n**Comment** `ok`"),
        (
            State.APPROVED,
            {"remember": Remember.SESSION},
            "`pay_invoice` was approved",
            f"{APPROVED}\n**Remembered** for later calls, too.",
        ),
        (
            State.APPROVED,
            {"by": SILENCE, "note": "the rule allows it when nobody answers"},
            "`pay_invoice` was approved",
            "**Approved** at <t:1767268860> by the rule: nobody answered in time.",
        ),
        (
            State.DENIED,
            {"note": "not on a Friday"},
            "`pay_invoice` was denied",
            "**Denied** by `ana` via `discord` at <t:1767268860>.\n**Reason** `not on a Friday`",
        ),
        (
            State.EXPIRED,
            {},
            "`pay_invoice`: nobody answered",
            "**Timed out** at <t:1767268860>: nobody answered in time.",
        ),
        (
            State.CANCELLED,
            {"note": "the run ended"},
            "`pay_invoice` was withdrawn",
            "**Withdrawn** at <t:1767268860>.\n**Reason** `the run ended`",
        ),
        (
            State.CLAIMED,
            {},
            "`pay_invoice` was started",
            f"{APPROVED}\n**Started** at <t:1767268860>, without an outcome yet.",
        ),
        (
            State.SUCCEEDED,
            {"preview": "paid: 77"},
            "`pay_invoice` ran",
            f"{APPROVED}\n**It ran**, and ended at <t:1767268920>.\n**Result** `paid: 77`",
        ),
        (
            State.SUCCEEDED,
            {"told_by": "ben", "preview": "saw it"},
            "`pay_invoice` ran",
            f"{APPROVED}\n**It happened**, says `ben` at <t:1767268920>.\n**Comment** `saw it`",
        ),
        (
            State.FAILED,
            {"error": "BankError: no"},
            "`pay_invoice` failed",
            f"{APPROVED}\n**It failed** at <t:1767268920>.\n**Error** `BankError: no`",
        ),
    ],
)
def test_a_settled_call_says_who_when_and_what(state: State, fields: dict[str, object], title: str, told: str) -> None:
    sheet = drawn(settled(asked(), state, **fields))
    assert sheet.title == title
    assert sheet.text.startswith(f"{told}\n**By** `triage")
    assert sheet.text.endswith("**2 arguments**\n`to` = `ACME`\n`amount` = `250`"), "the arguments stay"
    assert not sheet.rows


def test_an_outcome_nobody_knows() -> None:
    sheet = drawn(settled(asked(), State.UNKNOWN))
    assert sheet.title == "Did `pay_invoice` happen?"
    assert sheet.text.startswith("**It is unknown whether it ran.** It was started at <t:1767268860>")
    assert labels(sheet) == [["It happened", "It did not happen"]]
    long = drawn(settled(asked(args={"content": "x" * 9000}), State.UNKNOWN))
    assert labels(long)[1] == ["Show whole"]


def test_an_edited_call_shows_what_changed_and_what_runs() -> None:
    edited = {"to": "ACME", "amount": 20}
    sheet = drawn(settled(asked(), State.APPROVED, edited_args=edited))
    assert "**Edited:** +1 -1\n```diff\n" in sheet.text
    assert '-  "amount": 250\n+  "amount": 20\n' in sheet.text
    assert "`amount` = `20`" in sheet.text
    assert sheet.footer.endswith(digest(edited)[:12])


def test_a_persons_name_is_shown_as_they_are_known() -> None:
    deputy = Vote(by=BEN, at=AT, decision=ApprovalDecision(approved=True), args_digest="", stands_for=ANA)
    sheet = drawn(settled(asked(votes=(deputy,)), State.APPROVED, by=BEN))
    assert sheet.text.startswith("**Approved** by `ben` in the place of `ana` via `terminal` at <t:1767268860>.")
