"""What a person at the terminal sees and does, key by key."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from tests.channels.person import COLOUR, PAGE, PROMPT, request, sitting_at
from tests.matches import ANY, below, match
from tests.pairwise import cases

from signoff.channels.render import TerminalLook, draw_card
from signoff.core.card import card_for
from signoff.core.decision import ApprovalDecision, Ending, Remember
from signoff.core.people import Actor, ActorKind
from signoff.core.verdict import Effect, Requirement, Verdict

ANA = Actor(name="ana", kind=ActorKind.PERSON, via="terminal")


def denied(note: str = "") -> ApprovalDecision:
    return ApprovalDecision(approved=False, note=note, by=ANA)


APPROVED = ApprovalDecision(approved=True, by=ANA)


def test_approve_once(tmp_path: Path) -> None:
    keys = ("a", "A", "y", "yes", "approve", "  a  ")
    with sitting_at(tmp_path, *([request(id=f"r{number}")] for number, _ in enumerate(keys))) as ana:
        for key in keys:  # the questions come one after the other
            ana.answers(key)
            ana.sees("you approve it once: write_file")
        assert ana.decides_all() == [[APPROVED]] * len(keys)


def test_deny(tmp_path: Path) -> None:
    keys = ("d", "n", "no", "DENY")
    with sitting_at(tmp_path, *([request(id=f"r{number}")] for number, _ in enumerate(keys))) as ana:
        for key in keys:
            ana.answers(key)
            ana.sees("you deny it: write_file")
        assert ana.decides_all() == [[denied()]] * len(keys)


def test_the_card(tmp_path: Path) -> None:
    metadata = {"summary": "Greet", "before": "hi\n", "after": "hello\n", "path": "notes.txt"}
    asked = request(args={"path": "notes.txt", "content": "hello\n", "api_key": "k-123"}, metadata=metadata)
    with sitting_at(tmp_path, [asked]) as ana:
        card = COLOUR.sub(b"", ana.sees(PROMPT).encode()).decode()
        ana.types("d")
        ana.decides()
    assert card.replace("\r", "").split("\n") == [
        "╭─ may write_file run? " + "─" * 57,
        "│ Greet",
        "│ triage > write_file  (from files)",
        "│ why  writing needs a yes (rule files:2)",
        "├─ 3 arguments " + "─" * 65,
        "│ path     notes.txt",
        "│ content  hello⟦LF⟧",
        "│ api_key  ⟦masked 1: API key⟧",
        "├─ what would change in notes.txt: +1 -1 " + "─" * 39,
        "│ @@ -1 +1 @@",
        "│ -hi",
        "│ +hello",
        "├─ masked " + "─" * 70,
        "│ 1  api_key: named like a secret (API key), 5 characters",
        f"╰─ request r-write_file · sha256 {asked.binding.args_digest[:12]} " + "─" * 34,
        "a approve once · d deny · r deny with a reason · e edit",
        "s approve for this session · w approve always · l approve calls like it · ? why",
        "Ctrl-C deny",
        "",
    ]


def test_a_reason_that_names_its_rule_is_not_followed_by_it() -> None:
    doubt = "`amount` is a text; rule “own” could not be checked"
    for rules, reason, shown in (
        (("own",), doubt, doubt),
        (("own", "other"), doubt, doubt),
        (("own",), "why", "why (rule own)"),
        (("own", "other"), "why", "why (rules own, other)"),
        (("rule-2",), "why", "why (rule-2)"),
    ):
        asked = request().changed_to(verdict=Verdict(effect=Effect.ASK, rules=rules, reason=reason))
        lines = draw_card(card_for(asked), TerminalLook()).lines
        assert next(line.plain for line in lines if "why" in line.plain).split("why", 1)[1].strip() == shown


def test_enter_never_decides(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request()]) as ana:
        for _ in range(3):
            ana.answers("")
            ana.sees("Enter alone is not an answer. Nothing is decided.")
        ana.answers("   ")
        ana.sees("Enter alone is not an answer.")
        ana.answers("d")
        assert ana.decides() == [denied()]


def test_anything_else_never_decides(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request()]) as ana:
        for typed in ("x", "approve all", "ok", "1", "aa", "all"):
            ana.answers(typed)
            ana.sees("is not one of the answers. Nothing is decided.")
        ana.answers("d")
        assert ana.decides() == [denied()]


@pytest.mark.parametrize(
    ("in_main_thread", "typed_before"),
    [
        (True, "a"),
        (False, ""),
        pytest.param(True, "", marks=pytest.mark.nightly),
        pytest.param(False, "a", marks=pytest.mark.nightly),
    ],
)
def test_ctrl_c_denies_and_the_program_goes_on(tmp_path: Path, in_main_thread: bool, typed_before: str) -> None:
    with sitting_at(tmp_path, [request()], in_main_thread=in_main_thread) as ana:
        ana.sees(PROMPT)
        ana.presses(f"{typed_before}\x03")
        ana.sees("you deny it (interrupted at the terminal)")
        assert ana.decides() == [denied("interrupted at the terminal")]


def test_the_end_of_input_denies(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request()]) as ana:
        ana.sees(PROMPT)
        ana.presses("\x04")
        ana.sees("you deny it (the terminal was closed)")
        assert ana.decides() == [denied("the terminal was closed")]


ENDS = {"Ctrl-C": "\x03", "end of input": "\x04"}
PLACES = {"": "", "r": "the audit log > ", "s": "Enter no > ", "?": PROMPT}
"""What is typed, and what is asked then."""
BY_DAY = {("Ctrl-C", ""), ("end of input", "r"), ("Ctrl-C", "s"), ("end of input", "?")}
"""Each end and each place once: what a key does is the same wherever a line is read."""


@pytest.mark.parametrize(("end", "letter"), cases(product(ENDS, PLACES), BY_DAY))
def test_where_the_run_can_be_stopped_leaving_stops_it_and_denies_nothing(
    tmp_path: Path, end: str, letter: str
) -> None:
    with sitting_at(tmp_path, [request()], options={"can_stop": True}) as ana:
        shown = ana.sees(PROMPT)
        assert "q stop the run (also Ctrl-C)" in shown and "Ctrl-C deny" not in shown
        if letter:
            ana.types(letter)
            ana.sees(PLACES[letter])
        ana.presses(ENDS[end])
        ana.sees("left undecided at the terminal: write_file")
        assert ana.leaves() == "left undecided at the terminal"
        assert "deny it" not in ana.screen


def test_ctrl_d_after_a_letter_is_no_answer_yet(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request()]) as ana:
        ana.sees(PROMPT)
        ana.presses("a\x04")
        ana.presses("\x04")
        assert ana.decides() == [denied("the terminal was closed")]


@pytest.mark.parametrize(("end", "letter"), cases(product(ENDS, "rs"), {("Ctrl-C", "r"), ("end of input", "s")}))
def test_stopping_in_the_middle_denies(tmp_path: Path, end: str, letter: str) -> None:
    with sitting_at(tmp_path, [request()]) as ana:
        ana.answers(letter)
        ana.sees(PLACES[letter])
        ana.presses(ENDS[end])
        (decision,) = ana.decides()
        assert not decision.approved


def test_deny_with_a_reason(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request()]) as ana:
        ana.answers("r")
        ana.answers("", prompt="reason, for the model and the audit log > ")
        ana.sees("No reason, so nothing is decided.")
        ana.answers("r")
        ana.answers("use the ünused file", prompt="reason, for the model and the audit log > ")
        ana.sees("you deny it (use the ünused file)")
        assert ana.decides() == [denied("use the ünused file")]


@pytest.mark.parametrize(
    ("key", "remember", "said"),
    [("s", Remember.SESSION, "again in this session for write_file"), ("w", Remember.ALWAYS, "or any later one")],
)
def test_remember(tmp_path: Path, key: str, remember: Remember, said: str) -> None:
    with sitting_at(tmp_path, [request()]) as ana:
        for refusal in ("", "n", "a"):
            ana.answers(key)
            ana.sees("exactly")
            ana.answers(refusal, prompt="approve and remember this? y yes, Enter no > ")
            ana.sees("Nothing is decided.")
        ana.answers(key)
        ana.answers("y", prompt="Enter no > ")
        assert said in " ".join(ana.screen.split())
        assert ana.decides() == [ApprovalDecision(approved=True, by=ANA, remember=remember)]


WIDE = {"path": "docs/a.md", "content": "hello"}
CALM = "(no files known to hold secrets or settings, or to be run by tools)"
LIKE = "approve and remember which? 1-2, or Enter for none > "


def test_calls_like_it(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request(args=WIDE)]) as ana:
        for number in ("", "0", "3", "x", "1 2", "²"):
            ana.answers("l")
            ana.answers(number, prompt=LIKE)
            ana.sees("Nothing is decided.")
        ana.answers("l")
        ana.answers("2", prompt=LIKE)
        ana.answers("", prompt="approve and remember this? y yes, Enter no > ")
        ana.sees("Nothing is decided.")
        ana.answers("l")
        ana.answers("2", prompt=LIKE)
        ana.answers("y", prompt="approve and remember this? y yes, Enter no > ")
        shown = " ".join(ana.screen.replace("│", " ").replace("↳", " ").split())
        assert '1 for good always write_file, with path "docs/a.md", any content; anywhere in this project;' in shown
        assert f'From then on: always write_file, with path any path inside "docs" {CALM}, any content;' in shown
        ana.sees("you approve it, and calls like it")
        [decision] = ana.decides()
        assert decision.terms is not None and decision.terms.match == match(path=below("docs"), content=ANY)


def test_calls_like_it_are_not_offered_where_nothing_can_be_said_of_them(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request(args={"path": "/etc/passwd"})]) as ana:
        assert "calls like it" not in ana.sees(PROMPT)
        ana.types("l")
        ana.sees("is not one of the answers")
        ana.answers("d")
        assert ana.decides() == [denied()]


def test_what_cannot_be_remembered_is_not_offered(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request(requirement=Requirement(quorum=2))]) as ana:
        shown = ana.sees(PROMPT)
        assert "session" not in shown
        assert "always" not in shown
        ana.types("s")
        ana.sees("is not one of the answers")
        ana.answers("d")
        assert ana.decides() == [denied()]


def test_always_needs_a_memory_that_keeps_it(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request()], options={"keeps_always": False}) as ana:
        assert "always" not in ana.sees(PROMPT)
        ana.types("w")
        ana.answers("d")
        assert ana.decides() == [denied()]


def test_why(tmp_path: Path) -> None:
    asked = request(requirement=Requirement(role="ops"), errors=("rule 3 has no root",), policy_revision="rev-9")
    with sitting_at(tmp_path, [asked]) as ana:
        ana.answers("?")
        shown = ana.sees(PROMPT)
        for text in ("writing needs a yes", "files:2", "rule 3 has no root", "somebody with the role ops", "rev-9"):
            assert text in shown
        assert "fs.write" in shown
        ana.types("d")
        ana.decides()


# --- what is shown is what runs ---

LONG = "".join(f"line {number}\n" for number in range(60)) + "rm -rf everything"


def test_what_is_left_out_must_be_seen_before_it_can_be_approved(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request(args={"path": "x", "content": LONG})]) as ana:
        shown = ana.sees(PROMPT)
        assert "line 0" in shown
        assert "rm -rf everything" in shown
        assert "line 30" not in shown
        assert re.search(r"… \d\d more lines \(.* (bytes|kB)\): press m to see everything", shown)
        assert "a approve" not in shown and "s approve" not in shown, "only what can be chosen now is offered"
        for key in ("a", "s", "w"):
            ana.types(key)
            ana.sees("Not everything has been on the screen yet: press m")
            ana.sees(PROMPT)
        ana.types("m")
        ana.answers("q", prompt=f"{PAGE} > ")
        ana.sees("“q” is not a key here.")
        ana.answers("b", prompt=f"{PAGE} > ")
        ana.sees("You have not seen all of it")
        ana.answers("a")
        ana.sees("Not everything has been on the screen yet")
        ana.answers("m")
        whole = ana.pages()
        assert all(f"line {number}\n" in whole for number in range(60)) and "rm -rf everything" in whole
        assert "a approve once" in whole
        ana.types("a")
        assert ana.decides() == [APPROVED]


def test_what_was_jumped_over_was_not_seen(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request(args={"path": "x", "content": LONG})]) as ana:
        ana.answers("m")
        ana.answers("g", prompt=f"{PAGE} > ")
        shown = ana.sees(PROMPT)
        assert "line 59" in shown and "line 30\r" not in ana.screen
        assert "You have not seen all of it" in shown
        ana.types("a")
        ana.sees("Not everything has been on the screen yet")
        ana.answers("m")
        ana.answers("", prompt=f"{PAGE} > ")
        ana.answers("", prompt=f"{PAGE} > ")
        ana.answers("g", prompt=f"{PAGE} > ")  # nothing is left that it could jump over
        ana.answers("a")
        assert ana.decides() == [APPROVED]


MANY = {f"a{number}": "one\ntwo\nthree\nfour" for number in range(8)}


@pytest.mark.parametrize("height", [12, 24, 40])
def test_a_card_taller_than_the_screen_is_a_page_and_says_so(tmp_path: Path, height: int) -> None:
    asked = request("many", MANY, requirement=Requirement(message="Look at each"))
    with sitting_at(tmp_path, [asked], height=height) as ana:
        shown = COLOUR.sub(b"", ana.sees(PROMPT).encode()).decode().replace("\r", "")
        assert shown.startswith("╭─ may many run?") and "Look at each" in shown
        assert len(shown.split("\n")) <= height, "nothing has gone past the top of the screen"
        assert "press m to see everything" in shown and "╰─ request r-many" in shown
        ana.types("a")
        ana.sees("Not everything has been on the screen yet")
        ana.answers("m")
        pages = ana.pages()
        assert all(f"a{number}  one" in pages for number in range(8))
        ana.types("c")
        again = ana.sees(PROMPT)
        assert "may many run?" in again and "Not everything is shown" not in again, "it was seen before"
        ana.types("a")
        assert ana.decides() == [APPROVED]


def test_no_page_is_pushed_off_the_screen_by_what_comes_after_it(tmp_path: Path) -> None:
    """Whatever fills the screen waits for Enter before the keys are printed below it."""
    for lines in range(18, 30):
        content = "\n".join(map(str, range(lines)))
        with sitting_at(tmp_path / str(lines), [request(args={"content": content})]) as ana:
            if "press m" in ana.sees(PROMPT):
                ana.types("m")
                ana.pages()
            rows = COLOUR.sub(b"", ana.raw).decode().replace("\r", "").split("\n")
            stops = [index for index, row in enumerate(rows) if " > " in row and ("your answer" in row or PAGE in row)]
            starts = [0, *(index + 1 for index in stops)]
            assert max(stop - start + 1 for start, stop in zip(starts, stops, strict=False)) <= 24
            ana.types("d")
            ana.decides()


def test_the_card_can_be_drawn_again(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request()]) as ana:
        assert "show the card again" not in ana.sees(PROMPT), "it stands right above"
        ana.types("?")
        assert "c show the card again" in ana.sees(PROMPT)
        ana.types("c")
        assert "may write_file run?" in ana.sees(PROMPT)
        ana.types("d")
        assert ana.decides() == [denied()]


def test_what_else_is_shown_is_a_page_at_a_time(tmp_path: Path) -> None:
    asked = request(errors=tuple(f"rule {number} has no root" for number in range(40)))
    with sitting_at(tmp_path, [asked]) as ana:
        ana.answers("?")
        pages = ana.pages()
        assert all(f"rule {number} has no root" in pages for number in range(40))
        ana.types("d")
        ana.decides()


def test_everything_at_once(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request(args={f"a{number}": number for number in range(100)})]) as ana:
        shown = ana.sees(PROMPT)
        assert "100 arguments" in shown
        assert "more arguments: press m" in shown
        ana.types("m")
        assert "a99" in ana.pages()
        ana.types("a")
        assert ana.decides() == [APPROVED]


def test_one_very_long_line_shows_both_ends(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request("shell", {"command": f"echo {'a' * 9000}; rm -rf x"})]) as ana:
        shown = ana.sees(PROMPT)
        assert "; rm -rf x" in shown
        assert "echo" in shown
        assert "press m" in shown
        ana.types("d")
        ana.decides()


def test_a_card_that_cannot_be_made_is_denied(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request(args={"a": float("nan")})]) as ana:
        ana.sees("could not be shown")
        (decision,) = ana.decides()
        assert not decision.approved
        assert "could not be shown" in decision.note


# --- one at a time ---


def test_what_was_typed_before_the_question_does_not_answer_it(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request()], waits=True) as ana:
        ana.sees("not asking yet")
        ana.types("a")
        ana.sees("a\r\n")
        tmp_path.joinpath("go").write_text("now")
        ana.answers("d")
        assert ana.decides() == [denied()]


def test_questions_from_several_threads_come_one_at_a_time(tmp_path: Path) -> None:
    batches = [[request(f"tool_{number}", {"n": number})] for number in range(4)]
    with sitting_at(tmp_path, *batches) as ana:
        for _ in range(4):
            card = ana.sees(PROMPT)
            assert card.count("run?") == 1
            number = card.split("may tool_")[1][0]
            ana.types("a" if number in "02" else "d")
        decisions = ana.decides_all()
        assert [decision.approved for (decision,) in decisions] == [True, False, True, False]


def test_a_question_can_be_withdrawn(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request()], withdraws=["r-write_file"]) as ana:
        ana.sees(PROMPT)
        tmp_path.joinpath("withdraw").write_text("bob approved it")
        ana.sees("withdrawn, bob approved it")
        (decision,) = ana.decides()
        assert (decision.approved, decision.ending, decision.note) == (False, Ending.CANCELLED, "bob approved it")


def test_a_question_that_waits_its_turn_can_be_withdrawn(tmp_path: Path) -> None:
    batches = [[request(f"tool_{number}")] for number in range(2)]
    with sitting_at(tmp_path, *batches, withdraws=["r-tool_0", "r-tool_1"]) as ana:
        ana.sees(PROMPT)
        tmp_path.joinpath("withdraw").write_text("the run ended")
        decisions = ana.decides_all()
        assert [decision.ending for (decision,) in decisions] == [Ending.CANCELLED] * 2
        assert ana.screen.count("may tool_") == 1
        assert ana.screen.count("withdrawn, the run ended") == 2


def test_withdrawing_something_else_changes_nothing(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request()], withdraws=["another"]) as ana:
        ana.sees(PROMPT)
        tmp_path.joinpath("withdraw").write_text("bob approved it")
        ana.types("a")
        assert ana.decides() == [APPROVED]


# --- answering again ---


def test_why_an_answer_was_not_accepted(tmp_path: Path) -> None:
    asked = request(problem="content: at most 3 characters", changed=("the arguments changed since it was asked",))
    with sitting_at(tmp_path, [asked]) as ana:
        shown = ana.sees(PROMPT)
        assert "may write_file run? (answer not accepted)" in shown
        assert "content: at most 3 characters" in shown
        assert "the arguments changed since" in shown
        ana.types("d")
        ana.decides()


def test_who_answers(tmp_path: Path) -> None:
    bob = Actor(name="bob", roles=frozenset({"ops"}), via="here")
    with sitting_at(tmp_path, [request()], options={"actor": bob}) as person:
        person.answers("a")
        assert person.decides()[0].by == bob


def test_the_terminal_is_left_as_it_was(tmp_path: Path) -> None:
    """With an interpreter of its own, from its first line; the programs of the other tests are forked."""
    with sitting_at(tmp_path, [request()], waits=True, is_real=True) as ana:
        ana.sees("not asking yet")
        before = ana.settings()
        tmp_path.joinpath("go").write_text("now")
        ana.sees(PROMPT)
        assert ana.settings() != before
        ana.types("d")
        ana.sees("the program goes on")
        assert ana.settings() == before
