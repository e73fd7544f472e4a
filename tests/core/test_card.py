"""A card is whole, safe to print, and says who, why and what."""

from __future__ import annotations

import dataclasses
import json
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.matches import varying
from tests.profiles import examples
from tests.tables import table

from signoff.core.call import Call
from signoff.core.card import Card, CardArg, Choice, card_for, has_long_card, remember_text, safe_summary
from signoff.core.decision import ApprovalDecision, Keeps, Remember
from signoff.core.loosening import Loosened
from signoff.core.people import Actor
from signoff.core.preview import Preview
from signoff.core.request import ApprovalRequest
from signoff.core.request_context import MOST_ANSWERS, EarlierAnswers, RequestContext, Tally
from signoff.core.summary import summary_of
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.core.vote import Vote
from signoff.errors import CannotCanonicalise

NOON = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)


def request(args: dict[str, Any] | None = None, **fields: Any) -> ApprovalRequest:
    args = args if args is not None else {"path": "notes.txt", "content": "hello"}
    requirement = fields.pop("requirement", Requirement())
    verdict = Verdict(effect=Effect.ASK, rules=("files:2",), reason="writing needs a yes", requirement=requirement)
    unreadable = fields.pop("unreadable", ())
    tool = fields.pop("tool", "write_file")
    call = Call(tool=tool, args=args, worker=("triage", "analyzer"), toolset="files", unreadable=unreadable)
    known = {"tool_call_id": "c1", "id": "r1", "tool_name": tool, "args": args, "call": call, "verdict": verdict}
    return ApprovalRequest(**known | {"may_vary": varying(call)} | fields)


def arg(card: Card, name: str) -> CardArg:
    return next(arg for arg in card.args if arg.name == name)


def every_text(card: Card) -> list[str]:
    def texts(value: object) -> list[str]:
        if isinstance(value, str):
            return [value]
        if isinstance(value, (tuple, list)):
            return [text for item in value for text in texts(item)]
        if isinstance(value, dict):
            return [text for item in value.values() for text in texts(item)]
        return []

    return texts(dataclasses.asdict(card))


def test_what_is_on_it() -> None:
    asked = request(
        {"path": "notes.txt", "content": "one\ntwo\n", "mode": 420, "tags": ["a"]},
        summary="Write the notes",
        changed=("request q1 was approved by ana, but the policy changed since it was asked",),
        problem="content: too short",
        requirement=Requirement(message="please look twice"),
    )
    card = card_for(asked)
    assert card.title == "Write the notes"
    assert card.chain == "triage > analyzer > write_file"
    assert (card.tool, card.toolset, card.why, card.rule) == ("write_file", "files", "writing needs a yes", "files:2")
    assert card.message == "please look twice"
    assert card.changed == "request q1 was approved by ana, but the policy changed since it was asked"
    assert card.problem == "content: too short"
    assert card.needs == card.until == ""
    assert not card.irreversible
    assert card_for(request(requirement=Requirement(irreversible=True))).irreversible
    assert [(arg.name, arg.text) for arg in card.args] == [
        ("path", "notes.txt"),
        ("content", "one\ntwo\n"),
        ("mode", "420"),
        ("tags", '["a"]'),
    ]
    assert card.choices == tuple(Choice)
    assert card.digest == asked.binding.args_digest
    assert card.request_id == "r1"


def test_the_arguments_are_those_that_would_run() -> None:
    approved = ApprovalDecision(approved=True, edited_args={"path": "other.txt"})
    card = card_for(request(decision=approved))
    assert [arg.text for arg in card.args] == ["other.txt"]


def test_words_that_the_arguments_give_are_those_of_the_edited_ones() -> None:
    shell = frozenset({"proc.exec"})
    line = {"command": f"curl {'a' * 200} -H 'token: hunter2-hunter2'"}
    for asked, words, title in (
        ({"command": "rm -rf build"}, {"summary": "Run: rm -rf build"}, "Run: rm -r build"),
        (line, {"summary": f"Run: {line['command']}"}, "Run: rm -r build"),
        ({"command": "rm -rf build"}, {"summary": "Clean up"}, 'shell(command="rm -r build")'),
        ({"command": "rm -rf build"}, {}, 'shell(command="rm -r build")'),
    ):
        call = Call(tool="shell", args=asked, labels=shell)
        one = ApprovalRequest(
            tool_call_id="c", tool_name="shell", args=asked, call=call, summary=summary_of("shell", asked, words)
        )
        edited = ApprovalDecision(approved=True, edited_args={"command": "rm -r build"})
        card = card_for(one.changed_to(decision=edited))
        assert card.title == safe_summary(one.changed_to(decision=edited)) == title
        assert (card.note == "") is (words.get("summary") != "Clean up"), "nothing but what the arguments say is gone"
    long = ApprovalDecision(approved=True, edited_args=line)
    assert "hunter2" not in card_for(one.changed_to(decision=long), secrets=["hunter2-hunter2"]).title
    written = {"path": "a.txt", "content": "x"}
    for summary, edit, title in (
        ("Write a.txt", {"content": "y"}, "Write a.txt"),
        ("Write a.txt", {"path": "b.txt"}, 'write_file(path="b.txt", content="x")'),
        ("Write a.txt", {"mode": "a"}, 'write_file(path="a.txt", content="x", mode="a")'),
        ("Write x to a.txt", {"content": "y"}, 'write_file(path="a.txt", content="y")'),
    ):
        file = request(written, summary=summary, metadata={"summary": summary, "diff": "+x"})
        card = card_for(file.changed_to(decision=ApprovalDecision(approved=True, edited_args={**written, **edit})))
        assert (card.title, card.preview) == (title, None) and card.note, "the diff is left out"


@pytest.mark.parametrize(
    "said",
    [
        {"diff": "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"},
        {"before": "x\n", "after": "y\n", "path": "notes.txt"},
        {"preview": "writes 5 bytes"},
        {"summary": "Write notes.txt"},
        {"note": "as root"},
        {"reason": "the notes are old"},
    ],
    ids=lambda said: next(iter(said)),
)
def test_what_was_said_about_other_arguments_is_left_out_and_that_is_said(said: dict[str, Any]) -> None:
    approved = ApprovalDecision(approved=True, edited_args={"path": "other.txt"})
    asked = request(metadata=said)
    edited = card_for(asked.changed_to(decision=approved))
    assert edited.preview is None and edited.title == 'write_file(path="other.txt")'
    assert edited.note == "the arguments were edited; the tool's description of the original call is left out"
    assert card_for(asked.changed_to(decision=ApprovalDecision(approved=True))) == card_for(asked)
    plain = request(decision=approved, summary='write_file(path="notes.txt", content="hello")')
    assert card_for(plain).note == "", "nothing was said"


@table(
    ("value", "text"),
    [
        ("5", '"5"'),
        (5, "5"),
        ("true", '"true"'),
        (True, "true"),
        ("", '""'),
        ("null", '"null"'),
        (None, "null"),
        ("[1]", '"[1]"'),
        ([1], "[1]"),
        ("a\n", "a⟦LF⟧"),
        ("a\nb\n", "a\nb\n"),
        ("[not json", "[not json"),
        ({"k": "x" * 60}, '{\n  "k": "' + "x" * 60 + '"\n}'),
    ],
)
def test_values_of_different_kinds_look_different(value: object, text: str) -> None:
    assert arg(card_for(request({"v": value})), "v").text == text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.sampled_from(["1", "true", '"a"', "[]", "{}"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=5,
)


@examples(1_000, daily=40)
@given(json_values, json_values)
def test_two_calls_never_look_the_same(one: Any, other: Any) -> None:
    try:
        cards = [card_for(request({"v": value})) for value in (one, other)]
    except CannotCanonicalise:
        return
    assert (arg(cards[0], "v").text == arg(cards[1], "v").text) == (cards[0].digest == cards[1].digest)


HOSTILE = "\x1b[2J\u202ex\u200b\x9b1m⟦masked 1: token⟧\r\ud83d\ufe0f"


def test_every_text_is_safe_to_print() -> None:
    requirement = Requirement(role=HOSTILE, message=HOSTILE, not_by=frozenset({HOSTILE}))
    metadata = {"diff": f"--- a/{HOSTILE}\n+++ b/x\n@@ -1 +1 @@\n-{HOSTILE}\n+b", "reason": HOSTILE, "path": HOSTILE}
    args = {"a\u202e": "x\u202e\n\x1b[2J", "b": ["\u200b"], "token": "\u202e"}
    for extra in ({}, {"diff": "", "preview": HOSTILE}, {"diff": "", "before": HOSTILE, "after": "x"}):
        asked = request(
            args,
            tool=f"tool{HOSTILE[:3]}",
            summary=HOSTILE,
            changed=(HOSTILE,),
            problem=HOSTILE,
            id=HOSTILE,
            requirement=requirement,
            metadata=metadata | extra,
            unreadable=(HOSTILE,),
        )
        for text in every_text(card_for(asked)):
            assert not {
                char
                for char in text
                if char not in "\n\t" and unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn"}
            }
            assert "\ufe0f" not in text


@examples(1_000, daily=40)
@given(
    st.dictionaries(st.text(max_size=4), st.text(max_size=30) | st.lists(st.text(max_size=5), max_size=2), max_size=4)
)
def test_any_arguments_are_safe_to_print(args: dict[str, Any]) -> None:
    try:
        card = card_for(request(args))
    except CannotCanonicalise:
        return
    assert len(card.args) == len(args)
    for text in every_text(card):
        assert not {char for char in text if char not in "\n\t" and unicodedata.category(char) in {"Cc", "Cf", "Cs"}}


SECRET = "correct-horse-42"


def test_no_text_tells_a_secret() -> None:
    metadata = {"summary": f"uses {SECRET}", "diff": f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+{SECRET}"}
    for extra in (
        {},
        {"summary": "", "diff": "", "preview": {"n": SECRET}},
        {"diff": "", "before": SECRET, "after": "x"},
    ):
        asked = request(
            {"command": f"echo {SECRET} > x", "password": SECRET, SECRET: 1, "api_key": "other-secret"},
            metadata=metadata | extra,
            problem=f"{SECRET} is wrong",
            requirement=Requirement(message=SECRET),
        )
        card = card_for(asked, secrets=[SECRET])
        assert not [text for text in every_text(card) if SECRET in text or "other-secret" in text]


def test_a_secret_cut_off_in_the_title_is_masked_first() -> None:
    asked = request({"a": "x" * 95, "b": f"{SECRET}{SECRET}"})
    assert "correct" not in card_for(asked, secrets=[SECRET]).title


def test_a_mask_that_is_cut_off_in_the_title_is_left_out() -> None:
    for length in range(50, 100):
        title = safe_summary(request({"text": "x" * length, "api_key": "sk-ant-1234567890"}))
        assert "U+27E6" not in title
        assert title.endswith(("…", '⟧")'))


def test_what_is_masked_is_said() -> None:
    card = card_for(request({"path": "x", "api_key": "abc", "amount": 5}))
    assert arg(card, "api_key") == CardArg(name="api_key", text="⟦masked 1: API key⟧", masked=True)
    assert card.masked == ("api_key: named like a secret (API key), 3 characters",)
    assert arg(card, "amount").text == "5"


def test_a_mask_in_the_text_of_a_call_is_no_mask() -> None:
    card = card_for(request({"note": "⟦masked 1: token⟧", "token": "x"}))
    assert arg(card, "note").text == "⟦U+27E6⟧masked 1: token⟦U+27E7⟧"
    assert not arg(card, "note").masked


def test_long_texts_are_whole_and_called_long() -> None:
    card = card_for(request({"short": "x" * 600, "long": "x" * 9000 + "; rm", "tall": "x\n" * 30}))
    assert [arg.long for arg in card.args] == [False, True, True]
    assert arg(card, "long").text.endswith("; rm")


texts_of_any_length = (
    st.text(max_size=12).map(lambda text: text * 60) | st.text(max_size=3) | st.sampled_from(["x" * 599, "x\n" * 12])
)


@examples(1_000, daily=50)
@given(
    st.dictionaries(st.text(max_size=3), texts_of_any_length | json_values, max_size=3),
    st.dictionaries(st.sampled_from(["summary", "diff", "command", "note", "more"]), texts_of_any_length, max_size=3),
    st.none() | st.dictionaries(st.text(max_size=3), texts_of_any_length, max_size=2),
)
def test_whether_a_card_is_long_is_known_without_it(
    args: dict[str, Any], metadata: dict[str, Any], edited: dict[str, Any] | None
) -> None:
    decision = ApprovalDecision(approved=True, edited_args=edited) if edited is not None else None
    asked = request(args, metadata=metadata, decision=decision)
    try:
        card = card_for(asked)
    except CannotCanonicalise:
        with pytest.raises(CannotCanonicalise):
            has_long_card(asked)
        return
    assert has_long_card(asked) == card.is_long
    assert has_long_card(asked.changed_to(args={"a": "x" * 9000}, decision=None)), "nothing is kept from before"


def test_hidden_and_imitated_things_are_warned_about() -> None:
    card = card_for(
        request({"host": "p\u0430ypal.com", "command": "ls “a”", "note": "it’s fine"}, tool="re\u0430d_file")
    )
    assert [warning.split(" holds ")[0] for warning in card.warnings] == ["the tool's name", "“host”", "“command”"]


@pytest.mark.parametrize(
    ("requirement", "needs"),
    [
        (Requirement(), ""),
        (Requirement(role="ops"), "somebody with the role ops"),
        (Requirement(role="ops", quorum=2), "2 people with the role ops"),
        (Requirement(quorum=2, not_by=frozenset({"requester"})), "2 people, but not the requester"),
        (Requirement(not_by=frozenset({"owner", "requester"})), "a person, but not the owner or the requester"),
    ],
)
def test_who_must_agree(requirement: Requirement, needs: str) -> None:
    assert card_for(request(requirement=requirement)).needs == needs


def test_who_has_agreed() -> None:
    asked = request(requirement=Requirement(quorum=2))
    vote = Vote(
        by=Actor(name="ana"),
        at=NOON,
        decision=ApprovalDecision(approved=True),
        args_digest=asked.binding.args_digest,
    )
    assert card_for(dataclasses.replace(asked, votes=(vote,))).needs == "2 people; 1 of 2 (ana)"


def test_who_has_agreed_is_said_where_some_may_not_answer_and_told_to_whoever_did() -> None:
    needs = Requirement(role="ops", quorum=2, not_by=frozenset({"requester"}))
    asked = request(requirement=needs, requester="cleo")
    vote = Vote(
        by=Actor(name="Ana", roles=frozenset({"ops"})),
        at=NOON,
        decision=ApprovalDecision(approved=True),
        args_digest=asked.binding.args_digest,
    )
    voted = dataclasses.replace(asked, votes=(vote,))
    said = "2 people with the role ops, but not the requester; 1 of 2 (Ana)"
    assert card_for(voted).needs == card_for(voted, viewer="ben").needs == said
    assert card_for(voted, viewer="ana").needs == f"{said}; you have already approved it"
    other = dataclasses.replace(vote, args_digest="other")
    assert "of 2" not in card_for(dataclasses.replace(asked, votes=(other,)), viewer="ana").needs


@pytest.mark.parametrize(
    ("requirement", "needs"),
    [
        (Requirement(role="ops", veto="lead"), "somebody with the role ops; the role lead may deny, too"),
        (Requirement(role="ops", veto="ops"), "somebody with the role ops"),
        (Requirement(veto="lead"), "a person"),
        (Requirement(role="ops, or anyone"), "somebody with the role “ops, or anyone”"),
    ],
)
def test_who_may_deny_besides_is_said(requirement: Requirement, needs: str) -> None:
    assert card_for(request(requirement=requirement)).needs == needs


def test_of_what_hides_the_worst_is_named() -> None:
    text = "".join(map(chr, (0, 7, 1, 2, 3, 0x1B, 0x200B, 0x202E)))
    [warning] = card_for(request({"text": text})).warnings
    assert warning.startswith("“text” holds hidden characters: U+202E right-to-left override, U+001B ESC, U+200B")
    assert warning.endswith("and 5 more")


def test_a_title_spells_control_characters_as_the_arguments_are_spelled() -> None:
    card = card_for(request({"text": "a\x1b[2J\rb\\u001b\n\x01"}))
    assert "a⟦ESC⟧[2J⟦CR⟧b\\\\u001b" in card.title
    assert card.title.endswith('\\n⟦U+0001⟧")')
    assert "a⟦ESC⟧[2J⟦CR⟧b\\u001b" in card.args[0].text


@pytest.mark.parametrize(
    ("requirement", "then"),
    [
        (Requirement(), "it is denied"),
        (Requirement(on_timeout=OnTimeout.ALLOW), "it runs"),
        (Requirement(on_timeout=OnTimeout.PARK), "it stays open"),
        (Requirement(on_timeout=OnTimeout.ESCALATE, escalate_to="boss"), "the role boss is asked"),
    ],
)
def test_when_its_time_is_up_and_what_happens_then(requirement: Requirement, then: str) -> None:
    asked = request(requirement=requirement, deadline=NOON)
    assert card_for(asked).until == f"2030-01-01 12:00:00 UTC, then {then}"
    soon = card_for(asked, now=NOON - timedelta(minutes=15)).until
    assert soon == f"2030-01-01 12:00:00 UTC (in 15 min), then {then}"
    late, far = (card_for(asked, now=NOON + timedelta(days=days)).until for days in (1, -40))
    assert (late, far) == (f"2030-01-01 12:00:00 UTC (now), then {then}", f"2030-01-01 12:00:00 UTC, then {then}")


def test_remembering_is_offered_where_it_can_be_kept() -> None:
    everything = set(Choice)
    kept = {Choice.ALWAYS, Choice.SESSION, Choice.WIDER}
    wide = {"path": "docs/a.md"}
    assert set(card_for(request(wide)).choices) == everything
    assert set(card_for(request(wide), keeps_always=False).choices) == everything - {Choice.ALWAYS, Choice.WIDER}
    assert set(card_for(request({"n": 1})).choices) == everything - {Choice.WIDER}, "nothing wider can be said of it"
    assert set(card_for(request(wide, keeps=Keeps.EXACTLY)).choices) == everything - {Choice.WIDER}
    assert set(card_for(request(wide), remember=False).choices) == everything - kept
    strict = card_for(request(wide, requirement=Requirement(role="ops", quorum=2)))
    assert set(strict.choices) == everything - kept
    assert set(card_for(request(wide, requirement=Requirement(role="ops"))).choices) == everything, "by that role"
    unkept = card_for(request(wide, requirement=Requirement(role="ops"), keeps=Keeps.EXACTLY))
    assert set(unkept.choices) == everything - kept, "who has which role is not known there"


def test_what_cannot_be_shown_cannot_be_approved() -> None:
    card = card_for(request({"blob": "<Image>"}, unreadable=("blob: Image",)))
    assert set(card.choices) == {Choice.DENY, Choice.DENY_NOTE, Choice.EVERYTHING, Choice.WHY}
    assert card.warnings == ("blob: Image cannot be shown, so this call cannot be approved here",)
    with pytest.raises(CannotCanonicalise):
        card_for(request({"a": object()}))


def test_previews() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n-old \n+new"
    shown = diff.replace("old ", "old⟦space⟧")
    assert card_for(request(metadata={"diff": f"{diff}\n"})).preview == Preview(
        kind="diff", text=shown, added=1, removed=1
    )
    made = card_for(request(metadata={"before": "a\n", "after": "a\n\tb\n", "path": "x"})).preview
    assert made == Preview(kind="diff", text="--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n a\n+\tb", added=1)
    created = card_for(request(metadata={"before": None, "after": "a\n"})).preview
    assert created is not None
    assert created.added == 1
    assert card_for(request(metadata={"preview": "3 rows"})).preview == Preview(kind="text", text="3 rows")
    assert card_for(request(metadata={"preview": {"rows": 3}})).preview == Preview(kind="text", text='{"rows": 3}')
    assert card_for(request()).preview is None


def test_a_blank_line_of_a_diff_is_no_trailing_blank() -> None:
    preview = card_for(request(metadata={"before": "a\n\nb\n", "after": "a\n\nc\n"})).preview
    assert preview is not None
    assert "⟦" not in preview.text


def test_what_would_be_remembered_is_spelled_out() -> None:
    session, always = remember_text(request()), remember_text(request(), Remember.ALWAYS)
    assert "not be asked again in this session for write_file with exactly these arguments" in session
    assert "in this session or any later one, for write_file with exactly these arguments" in always
    for text in (session, always):
        assert "a rule that denies still denies" in text
    assert "\x1b" not in remember_text(request(tool="a\x1b"))


def test_a_request_of_the_deferred_api_has_a_card_too() -> None:
    card = card_for(
        ApprovalRequest(tool_call_id="c1", tool_name="pay", args={"amount": 5}, metadata={"reason": "over 3"})
    )
    assert (card.title, card.chain, card.why, card.request_id) == ("pay: over 3", "pay", "over 3", "c1")
    assert json.loads(arg(card, "amount").text) == 5


ONCE, THRICE, MIXED = Tally(approved=1), Tally(approved=3, denied=1), Tally(approved=7, denied=2)


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        (EarlierAnswers(), ""),
        (EarlierAnswers(call=ONCE, target=ONCE, tool=ONCE), "exactly this call: approved once"),
        (
            EarlierAnswers(call=THRICE, target=THRICE, tool=MIXED),
            "exactly this call: approved 3 times, denied once; write_file in all: approved 7 times, denied twice",
        ),
        (
            EarlierAnswers(call=ONCE, target=THRICE, tool=MIXED),
            "exactly this call: approved once; whatever the content: approved 3 times, denied once; "
            "write_file in all: approved 7 times, denied twice",
        ),
        (EarlierAnswers(target=THRICE, tool=THRICE), "whatever the content: approved 3 times, denied once"),
        (
            EarlierAnswers(tool=Tally(denied=MOST_ANSWERS)),
            "write_file in all: denied 100 or more times; never approved or denied with these arguments",
        ),
    ],
)
def test_how_people_answered_before_is_one_line(answers: EarlierAnswers, text: str) -> None:
    asked = request(context=RequestContext(answers=answers))
    assert card_for(asked).answers == text
    edited = asked.changed_to(decision=ApprovalDecision(approved=True, edited_args={"path": "x"}))
    assert "this call" not in card_for(edited).answers, "nobody counted what the other arguments had"


def test_what_was_loosened_is_safe_to_print() -> None:
    loosened = Loosened(auto_approve=True, policies=("loose\x1b[2J.yaml",))
    card = card_for(request(context=RequestContext(loosened=loosened)))
    assert card.loosened == (
        "calls that anybody may approve run without a question (--mode auto_approve)",
        "another policy than the project's: loose⟦ESC⟧[2J.yaml (--policy)",
    )
    assert card_for(request()).loosened == ()


def test_what_the_reason_says_is_not_said_again_as_an_error() -> None:
    doubt, other = "network: `mypy` is not known to only read", "limit: `amount` is a text"
    verdict = Verdict(
        effect=Effect.ASK,
        reason="`mypy` is not known to only read; rule “network” may be about it",
        errors=(doubt, other),
    )
    request = ApprovalRequest(tool_call_id="c", tool_name="shell", args={}, verdict=verdict)
    assert card_for(request).errors == (other,)


def test_several_rules_in_doubt_for_one_cause_say_it_once() -> None:
    cause = "`python` runs code of another language"
    errors = (f"norm: {cause}", "the argument x cannot be read", f"shell/rule-2: {cause}")
    verdict = Verdict(effect=Effect.ASK, reason="a push is seen by others", errors=errors)
    request = ApprovalRequest(tool_call_id="c", tool_name="shell", args={}, verdict=verdict)
    assert card_for(request).errors == (f"norm, shell/rule-2: {cause}", "the argument x cannot be read")
