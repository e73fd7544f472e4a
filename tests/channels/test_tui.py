"""What a person at the full screen sees and does, key by key."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.channels.person import request
from tests.channels.test_looks import PAYLOADS
from tests.channels.tui import ANA, PATIENCE, START, cut, outcome, reading
from tests.matches import ANY, below, match
from tests.profiles import NIGHTLY

from signoff.channels.rule_drafts import RuleDraft, RuleDrafts
from signoff.channels.tui_board import GRACE
from signoff.channels.tui_driver import TerminalGone
from signoff.channels.tui_lines import Paper
from signoff.core.card import card_for, remember_text
from signoff.core.decision import ApprovalDecision, Ending, Remember
from signoff.core.request import ApprovalRequest
from signoff.core.request_context import RequestContext
from signoff.core.verdict import OnTimeout, Requirement
from signoff.errors import WrongUse

APPROVED = ApprovalDecision(approved=True, by=ANA)
LONG = "".join(f"line {number}\n" for number in range(60)) + "rm -rf everything"
NOT_YET = "Not everything has been on the screen yet"


def denied(note: str = "") -> ApprovalDecision:
    return ApprovalDecision(approved=False, note=note, by=ANA)


@pytest.mark.parametrize(
    ("key", "decision"),
    [
        pytest.param("a", APPROVED, marks=pytest.mark.nightly),  # it is pressed below, as is d
        ("A", APPROVED),
        pytest.param("d", denied(), marks=pytest.mark.nightly),
        ("n", denied()),
    ],
)
async def test_a_letter_decides_and_the_screen_closes(key: str, decision: ApprovalDecision) -> None:
    async with reading(request()) as (ana, [entry]):
        await ana.presses(key)
        assert outcome(entry) == decision
        assert not ana.is_open


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The screen looks at the clock all the time, not once a second."""
    monkeypatch.setattr("signoff.channels.tui_board.TICK", 0.01)


@pytest.mark.usefixtures("quick")
async def test_the_screen() -> None:
    metadata = {"summary": "Greet", "before": "hi\n", "after": "hello\n", "path": "notes.txt", "note": "in a sandbox"}
    args = {"path": "notes.txt", "content": "hello\n", "api_key": "k-123"}
    first = request(
        args=args,
        metadata=metadata,
        deadline=START + timedelta(minutes=4),
        changed=("the policy changed since it was asked",),
    )
    second = request("shell", {"command": "ls"}, opened_at=START - timedelta(hours=3, minutes=5))
    async with reading(first, second, size=(100, 26)) as (ana, _):
        ana.clock.move(15)
        await ana.sees("3 min left")
        assert ana.lines == [
            " signoff · 2 calls wait for an answer · you are ana",
            "Greet                   │ ╭─ may write_file run? " + "─" * 50,
            "triage                  │ │ Greet",
            "3 min left · 15 s old   │ │ triage > write_file  (from files)",
            'shell(command="ls")     │ │ again  the policy changed since it was asked',
            "triage                  │ │ why    writing needs a yes (rule files:2)",
            "3 h 5 min old           │ │ note   in a sandbox",
            "                        │ │ until  2031-05-24 12:04:00 UTC, then it is denied",
            "                        │ ├─ 3 arguments " + "─" * 58,
            "                        │ │ path     notes.txt",
            "                        │ │ content  hello⟦LF⟧",
            "                        │ │ api_key  ⟦masked 1: API key⟧",
            "                        │ ├─ what would change in notes.txt: +1 -1 " + "─" * 32,
            "                        │ │ @@ -1 +1 @@",
            "                        │ │ -hi",
            "                        │ │ +hello",
            "                        │ ├─ masked " + "─" * 63,
            "                        │ │ 1  api_key: named like a secret (API key), 5 characters",
            f"                        │ ╰─ request r-write_file · sha256 {first.args_digest[:12]} " + "─" * 27,
            *["                        │"] * 3,
            "",
            "",
            " a approve once · d deny · r deny with a reason · e edit · l approve and remember · Tab next",
            " Space scroll · ? help · q leave",
        ]


async def test_the_list_tells_sessions_of_coding_agents_apart() -> None:
    sessions = [
        RequestContext(
            prompt="Tidy up", session=f"8bba97ae-5c36-4623-9314-43927264080{n}", directory=f"/home/ana/{where}"
        )
        for n, where in enumerate(("shop", "till"))
    ]
    calls = [request("Bash", {"command": f"curl {n}"}, id=f"r{n}", context=one) for n, one in enumerate(sessions)]
    async with reading(*calls, size=(100, 26)) as (ana, _):
        assert [line[:24] for line in ana.lines[1:7]] == [
            'Bash(command="curl 0")  ',
            "…72640800 in /home/ana… ",
            "0 s old                 ",
            'Bash(command="curl 1")  ',
            "…72640801 in /home/ana… ",
            "0 s old                 ",
        ]


@pytest.mark.usefixtures("quick")
async def test_time_runs_out_on_the_screen() -> None:
    async with reading(request(deadline=START + timedelta(seconds=30))) as (ana, _):
        await ana.sees("30 s left")
        ana.clock.move(31)
        await ana.sees("time is up")


async def test_enter_never_decides() -> None:
    async with reading(request(), request("other")) as (ana, entries):
        await ana.presses("enter", "enter", "enter")
        await ana.sees("Enter is not an answer. Nothing is decided.")
        assert all(entry.is_open for entry in entries)


async def test_enter_never_approves_on_a_sheet_either() -> None:
    async with reading(request()) as (ana, [entry]):
        for key in ("l", "question_mark", "r"):
            await ana.presses(key, "enter", "escape")
            assert entry.is_open
        await ana.presses("e", "enter", "ctrl+s", "enter")
        assert entry.is_open


async def test_any_other_key_decides_nothing() -> None:
    async with reading(request()) as (ana, [entry]):
        for key in ("y", "x", "space", "1", "l", "s", "w", "r", "escape", "ctrl+a", "ctrl+d", "m"):
            await ana.presses(key)
            assert entry.is_open and ana.is_open, key
            while len(ana.pilot.app.screen_stack) > 1:  # it opened a sheet
                await ana.presses("escape")


# --- law 7: what is not shown cannot be approved ---


async def test_what_is_longer_than_the_screen_must_be_seen_to_its_end() -> None:
    async with reading(request(args={"path": "x", "content": LONG})) as (ana, [entry]):
        assert "rm -rf everything" not in ana.screen
        await ana.presses("a", "l")
        await ana.sees(NOT_YET)
        assert entry.is_open
        seen = ana.screen
        while "rm -rf everything" not in ana.screen:
            await ana.presses("a", "space")
            seen += ana.screen
            assert entry.is_open
        assert all(f"line {number} " in seen.replace("\n", " ") for number in range(60))
        await ana.presses("space")
        assert NOT_YET not in ana.screen
        await ana.presses("a")
        assert outcome(entry) == APPROVED


async def test_who_jumps_to_the_end_has_not_seen_the_middle() -> None:
    async with reading(request(args={"content": LONG})) as (ana, [entry]):
        await ana.presses("end")
        await ana.sees("rm -rf everything")
        await ana.presses("a")
        await ana.sees("and more above were skipped")
        assert entry.is_open
        await ana.presses("pageup", "pageup", "pageup", "a")
        assert outcome(entry) == APPROVED


@pytest.mark.nightly
async def test_what_was_seen_stays_seen_and_another_width_starts_anew() -> None:
    async with reading(request(args={"content": LONG}), request("other")) as (ana, [long, other]):
        await ana.presses("space", "tab", "shift+tab")
        await ana.presses("space", "space", "space", "a")
        assert not long.is_open
        assert other.is_open
    async with reading(request(args={"content": LONG})) as (ana, [long]):
        await ana.presses("space", "space")
        await ana.pilot.resize_terminal(120, 24)
        await ana.presses("space", "a")
        await ana.sees(NOT_YET)
        assert long.is_open
        await ana.presses("home", "space", "space", "space", "a")
        assert not long.is_open


async def test_what_a_sheet_covers_is_not_seen() -> None:
    """A card that is drawn below the help has to be seen without it."""
    async with reading(request(args={"content": LONG}), size=(80, 30)) as (ana, [entry]):
        await ana.presses("question_mark")
        await ana.pilot.resize_terminal(80, 90)  # the whole card would fit
        await ana.settles()
        assert not entry.was_shown_whole
        await ana.presses("escape")
        await ana.until(lambda: entry.was_shown_whole)
        await ana.presses("a")
        assert outcome(entry) == APPROVED


async def test_a_screen_too_small_for_the_card_approves_nothing() -> None:
    async with reading(request(), size=(16, 24)) as (ana, [entry]):
        await ana.presses("space", "space", "a")
        assert entry.is_open
        await ana.pilot.resize_terminal(80, 24)
        await ana.presses("a")
        assert outcome(entry) == APPROVED


async def test_what_cannot_be_shown_cannot_be_approved() -> None:
    asked = request()
    assert asked.call is not None
    unreadable = asked.changed_to(call=replace(asked.call, unreadable=("body",)))
    async with reading(unreadable) as (ana, [entry]):
        assert "approve once" not in ana.screen
        await ana.presses("a", "e", "l")
        await ana.sees("cannot be")
        assert entry.is_open
        await ana.presses("d")
        assert outcome(entry) == denied()


async def test_hostile_texts_stay_texts() -> None:
    args = {f"a{number}": payload for number, payload in enumerate(PAYLOADS)}
    asked = request("tool\x1b[2J", args, metadata={"summary": PAYLOADS[0]}, problem=PAYLOADS[3])
    async with reading(asked, size=(120, 60)) as (ana, _):
        await ana.presses("question_mark", "escape", "r", "escape", "e")
        assert "\x1b" not in ana.screen and "\u202e" not in ana.screen
        await ana.presses("escape")
        assert "⟦ESC⟧]0;approved⟦BEL⟧" in ana.screen
        assert "[bold green]approved[/] [link=https://evil]x[/link] :warning:" in ana.flat
        ana.waiting.withdraw(asked.id, "\x1b[2Jby [red]bob[/]")
        assert "⟦ESC⟧" in ana.waiting.told[0][0]


# --- keys that come too early ---


async def test_a_key_meant_for_the_card_before_does_not_decide_about_the_next() -> None:
    async with reading(request(), request("other"), request("third")) as (ana, [first, other, third]):
        await ana.presses("a")
        assert outcome(first) == APPROVED
        for key in "aadda":
            ana.clock.move(GRACE.total_seconds() / 2)  # held down: every one of them starts the wait anew
            await ana.presses(key, looks=False)
        await ana.sees("This card has only just appeared.")
        assert other.is_open and third.is_open
        await ana.presses("d")
        assert outcome(other) == denied()
        assert third.is_open


async def test_a_request_settled_elsewhere_keeps_its_place_so_that_no_key_hits_the_next() -> None:
    async with reading(request(), request("other")) as (ana, [first, other]):
        ana.waiting.withdraw("r-write_file", "request r-write_file was approved by bob at 2031-05-24 12:00:09: fine")
        await ana.sees("request r-write_file was approved by bob at 2031-05-24 12:00:09: fine")
        assert "no longer open" in ana.screen
        await ana.presses("a", "d", "n", "e", "r", "l", "enter")
        assert other.is_open
        decision = outcome(first)
        assert decision is not None and decision.ending is Ending.CANCELLED
        await ana.presses("tab")
        await ana.sees("may other run?")
        assert "no longer open" not in ana.screen
        await ana.presses("a")
        assert outcome(other) == APPROVED


async def test_who_types_a_reason_while_it_is_settled_elsewhere_is_told() -> None:
    async with reading(request(), request("other")) as (ana, [first, other]):
        await ana.presses("r")
        await ana.types("not a g")
        ana.waiting.withdraw("r-write_file", "request r-write_file was denied by bob")
        await ana.sees("request r-write_file was denied by bob")
        await ana.types("ood idea q")
        assert other.is_open and ana.is_open
        await ana.presses("escape", "tab", "d")
        assert outcome(other) == denied()
        assert outcome(first) != denied("not a good idea q")


async def test_the_last_one_settled_elsewhere_closes_the_screen_with_who_and_when() -> None:
    async with reading(request()) as (ana, [entry]):
        await ana.presses("e")
        ana.waiting.withdraw("r-write_file", "request r-write_file was approved by bob at 12:00")
        await ana.until(lambda: not ana.is_open)
        assert not entry.is_open
        [(text, _)] = ana.waiting.told
        assert text.startswith("withdrawn, request r-write_file was approved by bob at 12:00: write_file")


# --- what changes while it is on the screen ---


ESCALATES = Requirement(role="ops", timeout=timedelta(minutes=1), on_timeout=OnTimeout.ESCALATE, escalate_to="lead")


async def test_a_question_that_has_changed_is_drawn_again_and_has_to_be_looked_at_again() -> None:
    asked = request(requirement=ESCALATES, deadline=START + timedelta(minutes=1))
    async with reading(asked, request("other")) as (ana, [entry, other]):
        assert "the role ops" in ana.flat
        await ana.presses("tab")
        ana.waiting.redraw(asked.changed_to(escalated=True, deadline=None, version=1), card_for)
        await ana.sees("may other run?")
        await ana.presses("tab")
        await ana.sees("somebody with the role lead; escalated, as nobody answered in time")
        ana.waiting.redraw(asked.changed_to(escalated=True, deadline=None, version=2, assigned="bo"), card_for)
        await ana.settles()
        assert "has changed" not in ana.flat, "nothing that is drawn has"
        ana.waiting.redraw(asked.changed_to(version=3), card_for)
        await ana.sees("This question has changed: review it again. Nothing is decided.")
        assert "the role ops" in ana.flat
        await ana.presses("a", looks=False)
        assert entry.is_open and other.is_open
        await ana.presses("a")
        assert outcome(entry) == APPROVED


async def test_what_changed_below_a_sheet_has_to_be_looked_at_before_it_is_approved() -> None:
    asked = request(requirement=Requirement(), deadline=START + timedelta(minutes=1))
    async with reading(asked) as (ana, [entry]):
        await ana.presses("l")
        ana.waiting.redraw(asked.changed_to(deadline=START + timedelta(hours=1), version=1), card_for)
        await ana.presses("s")
        await ana.sees("The question has changed: review it again.")
        assert entry.is_open
        await ana.presses("l", "s")
        assert outcome(entry) == ApprovalDecision(approved=True, by=ANA, remember=Remember.SESSION)


NOT_A_LEAD = "ana does not have the role 'lead'"


async def test_a_refused_answer_comes_back_to_the_front_and_says_what_is_wrong() -> None:
    async with reading(request("first"), request("second"), request("third")) as (ana, [first, second, third]):
        await ana.presses("a")
        assert outcome(first) == APPROVED
        await ana.sees("may second run?")
        [again] = ana.asks(request("first", problem=NOT_A_LEAD))
        await ana.sees(f"Your answer to first (request r-first) was not accepted: {NOT_A_LEAD}")
        await ana.sees(f"problem {NOT_A_LEAD}")
        listed = [line.partition("│")[0].partition("(")[0].strip() for line in ana.lines]
        assert [one for one in listed if one in ("first", "second", "third")] == ["first", "second", "third"]
        await ana.presses("d", looks=False)
        assert again.is_open and second.is_open, "it has only just appeared"
        await ana.presses("d")
        assert outcome(again) == denied()
        await ana.sees("may second run?")
        assert second.is_open and third.is_open


async def test_a_refused_answer_waits_for_whoever_is_busy_with_another_card() -> None:
    async with reading(request("first"), request("second"), request("third")) as (ana, [_, second, third]):
        await ana.presses("a", "r")
        await ana.types("not n")
        [again] = ana.asks(request("first", problem=NOT_A_LEAD))
        await ana.settles()
        await ana.types("ow")
        await ana.presses("enter")
        assert outcome(second) == denied("not now")
        await ana.sees(f"problem {NOT_A_LEAD}")
        assert again.is_open and third.is_open


async def test_what_is_told_is_on_the_screen_at_once() -> None:
    async with reading(request()) as (ana, _):
        assert ana.waiting.tell("1 of 2 have agreed so far; it is still pending: pay")
        await ana.sees("1 of 2 have agreed so far; it is still pending: pay")


# --- several ---


async def test_the_list_says_what_each_run_is_for() -> None:
    milk, eggs = (request(tool, context=RequestContext(prompt=f"Note the {tool}")) for tool in ("milk", "eggs"))
    async with reading(milk, eggs) as (ana, _):
        listed = [line.partition("│")[0].strip() for line in ana.lines]
        assert "Note the milk" in listed and "Note the eggs" in listed


async def test_requests_come_while_others_are_read() -> None:
    async with reading(request()) as (ana, [first]):
        [other] = ana.asks(request("other"))
        await ana.sees("2 calls wait for an answer")
        await ana.sees("may write_file run?")
        await ana.presses("tab")
        await ana.sees("may other run?")
        await ana.presses("a")
        assert outcome(other) == APPROVED
        assert first.is_open
        await ana.sees("may write_file run?")
        await ana.presses("d")
        assert outcome(first) == denied()


async def test_a_click_opens_a_request() -> None:
    async with reading(request(), request("other"), request("third")) as (ana, _):
        await ana.pilot.click("#list", offset=(3, 7))
        await ana.sees("may third run?")


async def test_many_requests_scroll() -> None:
    async with reading(*(request(f"tool_{number}", {"n": number}) for number in range(40))) as (ana, entries):
        await ana.presses("shift+tab")
        await ana.sees("may tool_39 run?")
        assert ana.lines[-5].startswith(("0 s", "1 s", "2 s", "3 s")) or "tool_39" in ana.screen
        await ana.presses("a")
        assert outcome(entries[39]) == APPROVED


@pytest.mark.parametrize("key", ["q", pytest.param("Q", marks=pytest.mark.nightly), "ctrl+q", "ctrl+c"])
async def test_leaving_decides_nothing(key: str) -> None:
    async with reading(request(), request("other")) as (ana, [first, other]):
        await ana.presses("a", key)
        assert outcome(first) == APPROVED
        assert outcome(other) is None
        assert not ana.is_open
        assert ana.waiting.told[-1][0].startswith("left undecided at the terminal: other")


async def test_a_terminal_that_is_gone_decides_nothing() -> None:
    async with reading(request()) as (ana, [entry]):
        ana.pilot.app.post_message(TerminalGone())
        await ana.until(lambda: not ana.is_open)
        assert outcome(entry) is None


async def test_who_leaves_many_is_told_how_many() -> None:
    async with reading(*(request(f"tool_{number}") for number in range(16))) as (ana, entries):
        await ana.presses("q")
        assert [outcome(entry) for entry in entries] == [None] * 16
        assert [text for text, _ in ana.waiting.told] == ["left undecided at the terminal: 16 calls"]


# --- however small the screen ---


RULES = RuleDrafts(file="signoff.yaml", drafts=(RuleDraft(text="it runs", diff=("@@ -1 +1 @@",), write=lambda: None),))
FEET = [
    (
        [],
        [
            "a approve once",
            "d deny",
            "r deny with a reason",
            "e edit",
            "u allow calls like it by a rule",
            "l approve and remember",
            "Tab next",
            "Space scroll",
            "? help",
            "q leave",
        ],
    ),
    (["l"], ["s approve for this session", "w approve always", "1-2 approve calls like it", "Escape back"]),
    (["r"], ["Enter deny with this reason", "Escape back, nothing is decided"]),
    (["e"], ["Ctrl-S look at the changes", "Escape back"]),
    (["question_mark"], ["Escape back"]),
    (["u", "rules for"], ["1 look at the change", "Escape back"]),
    (["1"], ["y write this", "Escape back"]),
]
"""What is pressed and seen, one after the other, and what stands at the foot then."""


@pytest.mark.nightly
@pytest.mark.parametrize("width", [80, pytest.param(60, marks=pytest.mark.nightly), 40])
async def test_no_key_is_cut_or_parted_from_its_words(width: int) -> None:
    asked = request(args={"path": "docs/a.md", "content": "hello"})
    async with reading(asked, draft_rules=lambda _: RULES, size=(width, 24)) as (ana, _):
        app = ana.pilot.app
        for keys, feet in FEET:
            if keys != ["1"]:  # it is pressed on the sheet before it
                while len(app.screen_stack) > 1:
                    await ana.presses("escape")
            for key in keys:
                await (ana.sees(key) if " " in key else ana.presses(key))
            columns = (app.screen.query("#box") or app.screen.query("#keys")).first().region.column_span
            rows = [[piece.strip(" │") for piece in cut(line, *columns).split(" · ")] for line in ana.lines]
            assert [one for one in feet if not any(one in row for row in rows)] == [], keys


async def test_what_is_on_a_sheet_can_be_read_to_its_end() -> None:
    asked = request(args={"path": "docs/a.md", "content": "hello"})
    async with reading(asked, size=(60, 16)) as (ana, _):
        await ana.presses("space")
        for key in ("l", "question_mark"):
            await ana.presses(key)
            paper = ana.pilot.app.screen.query_one(Paper)
            assert not paper.seen_whole
            for _ in range(10):
                if not paper.seen_whole:
                    await ana.presses("space")
            assert paper.seen_whole
            assert "Escape back" in ana.flat
            await ana.presses("escape")


async def test_the_head_always_says_who_you_are() -> None:
    heads = {
        80: "signoff · 2 calls wait for an answer · you are ana",
        50: "2 calls wait · you are ana",
        24: "2 calls wait · ana",
        12: "ana · 2",
    }
    async with reading(request(), request("other"), size=(80, 10)) as (ana, _):
        for width, head in heads.items():
            await ana.pilot.resize_terminal(width, 10)
            await ana.settles()
            assert ana.lines[0].strip() == head


async def test_every_line_of_a_diff_is_there() -> None:
    before = "".join(f"old {number}\n" if number % 3 else f"same {number}\n" for number in range(40))
    after = before.replace("old", "new")
    asked = request(metadata={"before": before, "after": after, "path": "notes.txt"})
    async with reading(asked) as (ana, [entry]):
        seen = ana.screen
        while not entry.was_shown_whole:
            await ana.presses("space")
            seen += ana.screen
        changed = [number for number in range(40) if number % 3]
        meant = {f"-old {number}" for number in changed} | {f"+new {number}" for number in changed}
        assert meant == set(re.findall(r"│ │ ([-+]\w+ \d+)", seen))


# --- the sheets ---


async def test_deny_with_a_reason() -> None:
    async with reading(request()) as (ana, [entry]):
        await ana.presses("r", "enter")
        await ana.sees("No reason, so nothing is decided.")
        await ana.types("use the ünused file, aqd")
        assert entry.is_open
        await ana.presses("enter")
        assert outcome(entry) == denied("use the ünused file, aqd")


async def test_remember_spells_out_what_would_be_remembered() -> None:
    asked = request()
    async with reading(asked) as (ana, [entry]):
        await ana.presses("l")
        assert remember_text(asked, Remember.SESSION) in ana.flat
        assert remember_text(asked, Remember.ALWAYS) in ana.flat
        await ana.presses("a", "y", "d", "enter", "escape")
        await ana.sees("Nothing is decided.")
        assert entry.is_open
        await ana.presses("l", "s")
        assert outcome(entry) == ApprovalDecision(approved=True, by=ANA, remember=Remember.SESSION)


async def test_calls_like_it_each_under_a_number() -> None:
    asked = request(args={"path": "docs/a.md", "content": "hello"})
    async with reading(asked, size=(100, 40)) as (ana, [entry]):
        await ana.presses("l")
        await ana.sees("1-2 approve calls like it")
        calm = "(no files known to hold secrets or settings, or to be run by tools)"
        assert f'with path any path inside "docs" {calm}, any content' in ana.flat
        await ana.presses("3")
        await ana.sees("That is not offered for this call.")
        await ana.presses("2")
        decision = outcome(entry)
        assert decision is not None and decision.approved and decision.by == ANA and decision.terms is not None
        assert decision.terms.match == match(path=below("docs"), content=ANY)


DIFF = ("--- signoff.yaml (now)", "+++ signoff.yaml (then)", "@@ -1 +1,2 @@", " policy:", "+  - {allow: write_file}")


@pytest.mark.nightly
async def test_a_rule_is_written_after_a_look_at_the_change() -> None:
    written: list[str] = []

    def refuse() -> None:
        raise WrongUse("signoff.yaml changed meanwhile")

    def drafts(_: ApprovalRequest) -> RuleDrafts:
        first = RuleDraft(text="write_file runs unasked", diff=DIFF, write=lambda: written.append("first"))
        second = RuleDraft(text="the same, wider", diff=DIFF, warnings=("it is broad",), write=refuse)
        return RuleDrafts(file="signoff.yaml", drafts=(first, second), refused=("not this one",))

    async with reading(request(), draft_rules=drafts, size=(80, 28)) as (ana, [entry]):
        await ana.sees("u allow calls like it by a rule")
        await ana.presses("u")
        await ana.sees("rules for signoff.yaml")
        await ana.presses("3")
        await ana.sees("There is no such rule.")
        assert "not this one" in ana.flat
        await ana.presses("1", "a", "enter", "escape", "escape")
        await ana.sees("Nothing was written.")
        assert not written
        await ana.presses("u")
        await ana.sees("rules for signoff.yaml")
        await ana.presses("2")
        await ana.sees("warning: it is broad")
        await ana.presses("y")
        await ana.sees("Nothing was written: signoff.yaml changed meanwhile")
        await ana.presses("u")
        await ana.sees("rules for signoff.yaml")
        await ana.presses("1")
        await ana.sees("{allow: write_file}")
        await ana.presses("y")
        await ana.sees("This call still waits for your answer.")
        assert written == ["first"] and entry.is_open, "the call itself is not decided by that"


@pytest.mark.parametrize("why", [pytest.param("none", marks=pytest.mark.nightly), "error"])
async def test_where_no_rule_can_be_made_it_says_why(why: str) -> None:
    def drafts(_: ApprovalRequest) -> RuleDrafts:
        if why == "error":
            raise WrongUse("the policy of this project is locked")
        return RuleDrafts(file="signoff.yaml", refused=("the policy of this project is locked",))

    async with reading(request(), draft_rules=drafts) as (ana, [entry]):
        await ana.presses("u")
        await ana.sees(
            "No rule can be made from write_file (request r-write_file). the policy of this project is locked"
        )
        await ana.presses("escape")
        assert entry.is_open and "Looking for rules" not in ana.flat


async def test_where_no_rules_are_made_none_is_offered() -> None:
    async with reading(request()) as (ana, [entry]):
        assert "by a rule" not in ana.screen
        await ana.presses("u")
        assert entry.is_open and "signoff.yaml" not in ana.flat


async def test_while_rules_are_looked_for_nobody_gets_to_another_card() -> None:
    found = threading.Event()

    def drafts(_: ApprovalRequest) -> RuleDrafts:
        assert found.wait(PATIENCE)
        return RuleDrafts(file="signoff.yaml", refused=("it is a secret",))

    async with reading(request(), request("other"), draft_rules=drafts) as (ana, entries):
        await ana.presses("u")
        await ana.sees("Looking for rules that could be made from write_file …")
        await ana.presses("tab", "a")
        found.set()
        await ana.sees("No rule can be made from write_file (request r-write_file). it is a secret")
        await ana.presses("escape")
        await ana.sees("may write_file run?")
        assert "Looking for rules" not in ana.flat
        assert all(entry.is_open for entry in entries)


async def test_the_letters_of_the_terminal_open_what_can_be_remembered() -> None:
    async with reading(request()) as (ana, [entry]):
        for key in "sSwWlL" if NIGHTLY else "sWL":
            assert "approve, and remember this" not in ana.flat
            await ana.presses(key)
            await ana.sees("approve, and remember this")
            assert entry.is_open
            if key != "L":
                await ana.presses("escape")
        await ana.presses("w")
        assert outcome(entry) == ApprovalDecision(approved=True, by=ANA, remember=Remember.ALWAYS)


@pytest.mark.nightly
async def test_what_cannot_be_remembered_is_not_offered() -> None:
    async with reading(request(requirement=Requirement(quorum=2))) as (ana, [entry]):
        assert "remember" not in ana.screen
        await ana.presses("l", "s")
        await ana.sees("cannot be remembered here")
        assert entry.is_open
    async with reading(request(), keeps_always=False) as (ana, [entry]):
        await ana.presses("l")
        assert "always" not in ana.screen
        await ana.presses("w")
        await ana.sees("That is not offered for this call.")
        assert entry.is_open


async def test_help_says_keys_and_why() -> None:
    asked = request(requirement=Requirement(role="ops"), errors=("rule 3 has no root",), policy_revision="rev-9")
    async with reading(asked, size=(100, 40)) as (ana, [entry]):
        await ana.presses("question_mark")
        for text in ("writing needs a yes", "files:2", "rule 3 has no root", "somebody with the role ops", "rev-9"):
            assert text in ana.flat
        assert "Enter nothing, ever" in ana.flat
        await ana.presses("a", "d", "q")
        assert entry.is_open and ana.is_open
        await ana.sees("may write_file run?")
