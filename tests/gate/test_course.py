"""The course of a call: every combination of facts, held against what is written down here in another way.

By day it is every fifth of them: no fact has a number of values that five divides, so any few values come together.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random

from tests.profiles import NIGHTLY

from signoff.core.event import CallStep
from signoff.core.mode import ApprovalMode
from signoff.core.verdict import Effect, Wanted
from signoff.gate import course as the_course
from signoff.gate.course import (
    BELOW,
    CLOSINGS,
    COURSE,
    Ask,
    Because,
    CallFacts,
    Closing,
    Ended,
    Fit,
    Lookup,
    OnRecord,
    Pause,
    Recalled,
    Refusal,
    Refuse,
    Replay,
    Row,
    Run,
    SecondFacts,
    Step,
    Wait,
    asked,
    below,
    course,
)

BOOL = (False, True)
STRIDE = 1 if NIGHTLY else 5
step_for = course.__wrapped__  # every combination, and none of them remembered


@cache
def every_fact() -> Sequence[CallFacts]:
    """All of them, in no particular order: a difference is then found soon."""
    ways = (Effect, ApprovalMode, Wanted, BOOL, BOOL, BOOL, BOOL, OnRecord, Fit, (None, False, True), Recalled, BOOL)
    facts = [CallFacts(*values) for values in itertools.islice(itertools.product(*ways), 0, None, STRIDE)]
    Random(7).shuffle(facts)
    return facts


@cache
def every_step() -> Sequence[tuple[CallFacts, Step]]:
    return [(f, step_for(f)) for f in every_fact()]


@cache
def every_expected() -> Sequence[tuple[CallFacts, Step]]:
    return [(f, expected(f)) for f in every_fact()]


def every_second_fact() -> Iterator[SecondFacts]:
    return (SecondFacts(*facts) for facts in itertools.product(Effect, *[BOOL] * 8))


# --- the same, as a person would explain it ---


def expected(f: CallFacts) -> Step:
    if f.effect is Effect.DENY:
        return Refuse(Refusal.POLICY)
    if not f.has_json:
        return Refuse(Refusal.NO_JSON)
    if f.record is OnRecord.NOTHING:
        return Run(CallStep.ALLOWED) if f.effect is Effect.ALLOW else expected_without_answer(f)
    if f.record is OnRecord.APPROVED:
        if f.fit is Fit.CHANGED:
            return Ask(Because.CHANGED)
        if f.fit is Fit.OTHERS and f.effect is not Effect.ALLOW:  # nobody has to agree to what policy allows
            return Ask(Because.OTHERS)
        return Run(CallStep.APPROVED)
    steps: dict[OnRecord, Step] = {
        OnRecord.UNREAD: Lookup.RECORD,
        OnRecord.OPEN: Pause(),
        OnRecord.RESULT: Replay(),
        OnRecord.REFUSED: Refuse(Refusal.ANSWER),
        OnRecord.SPENT: Refuse(Refusal.SPENT),
        OnRecord.WITHDRAWN: Ask(Because.WITHDRAWN),
    }
    return steps[f.record]


def expected_without_answer(f: CallFacts) -> Step:
    if f.wanted is not Wanted.PEOPLE and not f.in_doubt:
        if (step := expected_of_memory(f)) is not None:
            return step
    if f.wanted is Wanted.ANYONE and not f.in_doubt:
        if f.mode is ApprovalMode.AUTO_APPROVE:
            return Run(CallStep.AUTO_APPROVED)
        if f.reviewed:
            return Run(CallStep.REVIEWED)
    if f.mode is ApprovalMode.AUTO_DENY:
        return Refuse(Refusal.MODE)
    return Ask(Because.CLAIMED if f.claimed and not f.resumed else Because.POLICY)


def expected_of_memory(f: CallFacts) -> Step | None:
    may_have_paused = f.claimed and f.mode is not ApprovalMode.AUTO_DENY
    if may_have_paused and f.entered is None:
        return Lookup.ENTRY
    paused = may_have_paused and f.entered is True
    if f.recalled is Recalled.UNREAD:
        return Lookup.NEVER if paused else Lookup.MEMORY
    if f.recalled is Recalled.NEVER:
        return Refuse(Refusal.NEVER)
    return Run(CallStep.REMEMBERED) if f.recalled is Recalled.ALWAYS or paused else None


def expected_below(f: SecondFacts) -> Step:
    if f.effect is not Effect.ASK:
        return Run(CallStep.ALLOWED) if f.effect is Effect.ALLOW else Refuse(Refusal.POLICY)
    if not f.approved:
        if f.answered and f.same_call and not f.particular and not f.in_doubt:
            return Run(CallStep.ALLOWED)
        return Ask(Because.LEADS_TO) if f.same_arguments else Refuse(Refusal.OTHER_ARGUMENTS)
    if not f.same_arguments:
        return Refuse(Refusal.OTHER_ARGUMENTS)
    if f.used:
        return Refuse(Refusal.SPENT)
    return Run(CallStep.APPROVED) if f.same_call and f.agreed else Refuse(Refusal.OTHER_CALL)


def test_every_combination_of_facts_leads_to_the_step_it_should() -> None:
    assert [f for f, step in every_step() if step != expected(f)] == []
    assert [f for f in every_second_fact() if below(f) != expected_below(f)] == []


# --- laws ---


def test_a_denial_beats_everything() -> None:
    assert {step for f, step in every_step() if f.effect is Effect.DENY} == {Refuse(Refusal.POLICY)}
    assert {below(f) for f in every_second_fact() if f.effect is Effect.DENY} == {Refuse(Refusal.POLICY)}


def test_nothing_runs_that_is_neither_allowed_nor_approved_and_unspent() -> None:
    for f, step in every_step():
        if not isinstance(step, Run):
            continue
        unanswered = f.effect is Effect.ASK and f.record is OnRecord.NOTHING and not f.in_doubt
        others = unanswered and f.wanted is Wanted.ANYONE
        memory = unanswered and f.wanted is not Wanted.PEOPLE
        grounds = {
            CallStep.ALLOWED: f.effect is Effect.ALLOW and f.record is OnRecord.NOTHING,
            CallStep.APPROVED: f.record is OnRecord.APPROVED and f.fit is not Fit.CHANGED,
            CallStep.REMEMBERED: memory and (f.recalled is Recalled.ALWAYS or f.entered is True),
            CallStep.AUTO_APPROVED: others and f.mode is ApprovalMode.AUTO_APPROVE,
            CallStep.REVIEWED: others and f.reviewed,
        }
        assert grounds[step.why], f


def test_what_pydantic_ai_says_lets_nothing_run() -> None:
    """`claimed` turns no step into one that runs, unless it is on record that the call was let through before."""
    for f, step in every_step():
        if f.claimed and f.entered is not True and isinstance(step, Run):
            assert step == step_for(f._replace(claimed=False)), f


def test_no_and_never_are_heard_in_every_mode() -> None:
    for f, step in every_step():
        asks_others = f.effect is Effect.ASK and f.record is OnRecord.NOTHING and f.recalled is Recalled.NEVER
        if f.record is OnRecord.REFUSED or asks_others:
            assert not isinstance(step, Run), f


def test_everything_is_looked_up_once_and_then_there_is_a_step() -> None:
    answers: dict[Lookup, list[dict[str, object]]] = {
        Lookup.RECORD: [{"record": one} for one in OnRecord if one is not OnRecord.UNREAD],
        Lookup.ENTRY: [{"entered": one} for one in BOOL],
        Lookup.NEVER: [{"recalled": one} for one in (Recalled.NOTHING, Recalled.NEVER)],
        Lookup.MEMORY: [{"recalled": one} for one in Recalled if one is not Recalled.UNREAD],
    }

    def walk(f: CallFacts, looked: tuple[Lookup, ...]) -> None:
        step = step_for(f)
        if isinstance(step, Lookup):
            assert step not in looked, f
            for answer in answers[step]:
                walk(f._replace(**answer), (*looked, step))

    for f in every_fact():
        if (f.record, f.entered, f.recalled) == (OnRecord.UNREAD, None, Recalled.UNREAD):
            walk(f, ())


def test_memory_is_asked_only_where_it_counts() -> None:
    """To ask it may use up an answer that holds for so many calls."""
    for f, step in every_step():
        if step in (Lookup.MEMORY, Lookup.NEVER, Lookup.ENTRY):
            assert f.effect is Effect.ASK and f.record is OnRecord.NOTHING and f.open_to_memory, f


def test_where_an_answer_is_waited_for() -> None:
    for again, suspends, by_tool in itertools.product(BOOL, BOOL, BOOL):
        here = again and not suspends and not by_tool
        assert asked(again=again, suspends=suspends, by_tool=by_tool) == (Wait() if here else Pause())


def test_every_way_to_end_is_written_down() -> None:
    assert CLOSINGS.keys() == set(Ended)
    assert {Ended.CUT_OFF} == {one for one, ending in CLOSINGS.items() if ending is Closing.LOSE}
    assert {Ended.RETURNED, Ended.HANDED_OUT} == {one for one in Ended if CLOSINGS[one] is Closing.SUCCEED}
    assert CLOSINGS[Ended.PAUSED] is Closing.RELEASE and CLOSINGS[Ended.ASKED] is Closing.ASK_AGAIN


# --- the net: a table with any one row changed is found out ---


def broken(table: Sequence[Row], number: int) -> Iterator[tuple[Row, ...]]:
    """The table without a row, with the row the other way round, and with another step in it."""
    fits, step = table[number]
    before, after = tuple(table[:number]), tuple(table[number + 1 :])
    if after:
        yield (*before, *after)
    yield (*before, (lambda f: not fits(f), step), *after)
    for other in (Run(CallStep.ALLOWED), Refuse(Refusal.MODE), Ask(Because.CLAIMED), Pause(), Lookup.MEMORY):
        if other != step:
            yield (*before, (fits, other), *after)


def first(table: Sequence[Row], facts: object) -> Step | None:
    return next((step for fits, step in table if fits(facts)), None)


def test_a_changed_row_of_the_course_is_found_out() -> None:
    for number in range(len(COURSE)):
        for table in broken(COURSE, number):
            assert any(first(table, f) != step for f, step in every_expected()), f"row {number}: {COURSE[number][1]}"


def test_a_changed_row_of_the_second_look_is_found_out() -> None:
    for number in range(len(BELOW)):
        for table in broken(BELOW, number):
            assert any(first(table, f) != expected_below(f) for f in every_second_fact()), f"row {number}"


def test_the_drawing_has_the_rows_of_the_table() -> None:
    """In the order of the table; what only has to be looked up is one line of it."""
    drawn = (the_course.__doc__ or "").split("```")[1].splitlines()[3:]
    steps = [line[89:].strip() for line in drawn if line[:8].strip() in ("", "deny", "ask", "allow") and line[89:]]
    words: dict[str, Step | None] = {"look it up": Lookup.RECORD, "pause": Pause(), "replay": Replay()}
    kinds = [type(words.get(one)).__name__ if one in words else one.split(",")[0].split()[0] for one in steps]
    named = {"Refuse": "refuse", "Run": "run", "Ask": "ask", "Lookup": "Lookup", "Pause": "Pause", "Replay": "Replay"}
    table = [named[type(step).__name__] for _, step in COURSE if not isinstance(step, Lookup) or step is Lookup.RECORD]
    assert ["run" if one == "claim" else one for one in kinds] == table


def test_the_page_about_a_call_shows_the_drawing() -> None:
    page = (Path(__file__).parents[2] / "docs" / "internals" / "a-call.md").read_text("utf-8")
    shown = page.partition("<!-- course -->")[2].partition("<!-- /course -->")[0]
    assert shown.split("```")[1] == (the_course.__doc__ or "").split("```")[1]
