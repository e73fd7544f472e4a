"""What changes on the message while a call waits: how long it does, and who voted for what."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.discord.asking import AT, asked, check_sheet, settled

from signoff.channels.discord.lists import history_sheet, show_sheet
from signoff.channels.discord.notice_message import sheet_for, shows_whole
from signoff.channels.discord.request_file import whole
from signoff.channels.discord.sheet import MessageSheet
from signoff.core.call import Veiled
from signoff.core.canonical import digest
from signoff.core.comment import Comment, CommentKind
from signoff.core.decision import ApprovalDecision
from signoff.core.lifecycle import SILENCE
from signoff.core.notice import Asked, Together
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import OnTimeout, Requirement
from signoff.core.vote import Vote

LATER = AT + timedelta(minutes=5)
UNTIL = "**Until** <t:1767269100:T> (<t:1767269100:R>), then "


def drawn(request: ApprovalRequest) -> MessageSheet:
    sheet = sheet_for(Asked(request=request))
    check_sheet(sheet)
    return sheet


def labels(sheet: MessageSheet) -> list[str]:
    return [button.label for row in sheet.rows if isinstance(row, tuple) for button in row]


def vote(args: dict[str, Any], name: str = "ana", **fields: Any) -> Vote:
    """Somebody's vote for other arguments."""
    return Vote(
        by=Actor(name=name),
        at=AT,
        decision=ApprovalDecision(approved=True, edited_args=args),
        args_digest=digest(args),
        **fields,
    )


# --- how long ---


@pytest.mark.parametrize(
    ("requirement", "then"),
    [
        (Requirement(), "it is denied"),
        (Requirement(on_timeout=OnTimeout.ALLOW), "it runs"),
        (Requirement(on_timeout=OnTimeout.PARK), "it stays open"),
        (Requirement(on_timeout=OnTimeout.ESCALATE, escalate_to="bo`ss"), "the role `bo⟦backtick⟧ss` is asked"),
    ],
)
def test_the_deadline_is_told_once_with_what_comes_then(requirement: Requirement, then: str) -> None:
    text = drawn(asked(requirement=requirement, deadline=LATER)).text
    assert text.endswith(f"\n{UNTIL}{then}")
    assert "UTC" not in text and text.count("<t:") == 2
    again = drawn(asked(requirement=requirement, deadline=LATER, escalated=True)).text
    assert ("asked instead" in again) is False


@pytest.mark.parametrize("length", [10, *(pytest.param(one, marks=pytest.mark.nightly) for one in (25, 40)), 400])
@pytest.mark.parametrize("problem", ["", "the arguments do not fit " * 10, "x" * 9000])
def test_the_deadline_is_never_dropped(length: int, problem: str) -> None:
    """That it runs by itself in five minutes is what a person has to know first."""
    need = Requirement(role="r" * 10, quorum=9, on_timeout=OnTimeout.ALLOW)
    names = [f"{number}{'n' * length}" for number in range(8)]
    votes = tuple(vote({"to": name}, name, stands_for=Actor(name=f"{name}x")) for name in names)
    busy = asked(requirement=need, deadline=LATER, problem=problem, votes=votes, assigned="a" * length)
    for request in (busy, busy.changed_to(args={"content": "y" * 9000})):
        assert f"{UNTIL}it runs\n" in drawn(request).text


def test_what_a_rule_allowed_says_so() -> None:
    allowed = settled(asked(), State.APPROVED, by=SILENCE, note="the rule allows it when nobody answers")
    assert drawn(allowed).text.startswith(
        "**Approved** at <t:1767268860> by the rule: nobody answered in time.\n**By** "
    )
    assert "approved by the rule" in history_sheet([allowed]).text
    posing = settled(asked(), State.APPROVED, by=Actor(name=SILENCE.name))
    assert "**Approved** by `nobody in time` at" in drawn(posing).text, "a person who calls themselves so is a person"


# --- votes for other arguments ---


def test_a_vote_for_other_arguments_shows_what_they_are() -> None:
    other = {"to": "ACME", "amount": 20}
    request = asked(requirement=Requirement(quorum=2), votes=(vote(other), vote(other, "cleo")))
    text = drawn(request).text
    assert text.count(f"**Approved** other arguments (sha256 {digest(other)[:12]}) by ") == 2
    assert text.count(f"**Other arguments** (sha256 {digest(other)[:12]}): +1 -1\n```diff\n") == 1
    assert '\n-  "amount": 250\n+  "amount": 20\n' in text
    assert "ACME" not in text.partition("**Other arguments**")[2], "what stays the same stands above"
    assert shows_whole(request) and "Approve" in labels(drawn(request))
    assert "**Other arguments**" not in drawn(settled(request, State.APPROVED, edited_args=other)).text


def test_python_takes_some_different_values_for_the_same() -> None:
    request = asked(args={"force": 1, "to": "ACME"}, votes=(vote({"force": True, "to": "ACME"}),))
    assert '-  "force": 1\n+  "force": true\n' in drawn(request).text


def test_other_arguments_that_do_not_fit_lock_the_approval_and_are_in_the_file() -> None:
    other = {"to": "ACME", "amount": "\n".join(f"line {number}" for number in range(2000))}
    request = asked(requirement=Requirement(quorum=2), votes=(vote(other),))
    sheet = drawn(request)
    assert not shows_whole(request)
    assert labels(sheet)[0] == "Approve: open it first" and "Show whole" in labels(sheet)
    assert "characters are left out" in sheet.text
    assert f"edited arguments that somebody approved (sha256 {digest(other)[:12]})" in whole(request).text
    assert "line 1999" in whole(request).text
    both = sheet_for(Together(requests=(request, asked(id="another"))))
    assert labels(both)[0] == "Approve all: open 1 first"


def test_secrets_in_other_arguments_are_masked() -> None:
    secret = "hunter2-hunter2"
    request = asked(args={"password": "old-old-old-old", "to": "A"}, secrets=(secret,))
    request = request.changed_to(votes=(vote({"password": secret, "to": "A"}), vote({"password": "x", "to": secret})))
    for text in (drawn(request).text, whole(request).text, repr(show_sheet(request))):
        assert secret not in text and "old-old" not in text
    same = request.changed_to(votes=(vote({"password": "new-new-new-new", "to": "A"}),))
    assert "): only what is masked differs" in drawn(same).text
    assert "│ only what is masked differs" in whole(same).text


def test_a_test_says_to_the_end_that_nothing_runs() -> None:
    """As `signoff channels test` asks: nothing about it may read as if something ran."""
    said = "this is a test: nothing runs, whatever you answer"
    trial = asked("signoff_test", {}, summary=said, schema=None)
    for state in (State.PENDING, State.APPROVED, State.DENIED, State.CANCELLED, State.EXPIRED):
        sheet = drawn(settled(trial, state))
        assert f"`{said}`" in sheet.text
        assert "may run" not in sheet.title


# --- what is offered, and where the whole is ---


def test_editing_is_offered_where_it_could_be_checked() -> None:
    assert "Edit…" in labels(drawn(asked()))
    assert "Edit…" not in labels(drawn(asked(schema=None)))
    assert "Edit…" not in labels(drawn(asked(args={"to": Veiled("0" * 64)})))


def test_a_long_call_says_where_all_of_it_is() -> None:
    request = asked(args={"content": "x" * 9000})
    for state in (State.APPROVED, State.DENIED, State.EXPIRED, State.SUCCEEDED):
        told = drawn(settled(request, state)).text
        assert told.endswith(" characters are left out.** `/signoff show k3f9abcdef` has everything.")
    assert drawn(settled(request, State.UNKNOWN)).text.endswith(" *Show whole* has everything.")


# --- what is said ---


def comment(text: str, kind: CommentKind = CommentKind.NOTE, *, by: str = "ana", **fields: Any) -> Comment:
    return Comment(id=text, request="r", by=Actor(name=by), at=AT, text=text, kind=kind, **fields)


def test_what_was_said_stands_on_the_message_and_in_the_file() -> None:
    question = comment("Which invoice?", CommentKind.QUESTION)
    request = asked().changed_to(comments=(question,), secrets=("s3cr3t-17",))
    assert "**Said** (not answered yet)" in drawn(request).text
    assert "ana asks back: Which invoice?" in drawn(request).text
    answer = comment("4711, s3cr3t-17", CommentKind.ANSWER, by="ben", answers=question.id)
    request = request.changed_to(comments=(question, answer))
    assert "not answered yet" not in drawn(request).text
    for text in (drawn(request).text, whole(request).text):
        assert "ben answers: 4711, ⟦masked 1: declared secret⟧" in text
        assert "s3cr3t-17" not in text


def test_however_much_is_said_whether_all_of_a_call_is_shown_stays_the_same() -> None:
    request = asked()
    said = request.changed_to(comments=tuple(comment(f"{number} {'x' * 3_000}") for number in range(50)))
    assert shows_whole(said) == shows_whole(request)
    assert labels(drawn(said)) == labels(drawn(request))
    assert "42 comments before" in drawn(said).text
