"""What the last texts of a store say is known; what stands in the store is not."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.core.codec import DECISION, load_votes
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.people import Actor, ActorKind
from signoff.core.record import EventDraft
from signoff.core.run import RunSetup, SavedRun
from signoff.core.vote import Vote
from signoff.store import request_table, run_table, tables
from signoff.store.memory_store import EventCount

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RUN = SavedRun(id="run1", prompt="go", started_at=NOON)


@pytest.fixture(autouse=True)
def fresh() -> None:
    tables.forget()


def test_a_run_that_was_written_is_read_as_it_was_written() -> None:
    assert run_table.run_of(run_table.run_text(RUN)) is RUN
    tables.forget()
    assert run_table.run_of(run_table.run_text(RUN)) == RUN


def test_another_text_says_something_else() -> None:
    text = run_table.run_text(RUN)
    assert run_table.run_of(text.replace("go", "stop")).prompt == "stop"
    assert run_table.run_of(text).prompt == "go"


def test_what_json_may_change_is_read_back() -> None:
    odd = RUN.changed(setup=RunSetup(input={"when": NOON}))
    assert run_table.run_of(run_table.run_text(odd)).setup.input == {"when": str(NOON)}


PEOPLE = st.builds(
    Actor,
    name=st.text(min_size=1),
    kind=st.sampled_from(ActorKind),
    roles=st.frozensets(st.text()),
    via=st.text(),
)
DECISIONS = st.builds(
    ApprovalDecision,
    approved=st.booleans(),
    note=st.text(),
    remember=st.sampled_from(Remember),
    by=st.none() | PEOPLE,
    at=st.none() | st.datetimes(timezones=st.just(UTC)),
)


@examples(1_000, daily=30)
@given(decision=DECISIONS, by=PEOPLE)
def test_answers_that_are_known_are_those_that_would_be_read(decision: ApprovalDecision, by: Actor) -> None:
    """Or whoever wrote them would see another answer than everybody else."""
    assert DECISION.from_text(request_table.decision_text(decision)) == decision
    vote = Vote(by=by, at=NOON, decision=decision, args_digest="0" * 64)
    assert load_votes(f"[{request_table.vote_text(vote)}]") == (vote,)


def test_an_edit_is_read_back() -> None:
    edited = ApprovalDecision(approved=True, edited_args={"when": NOON})
    text = request_table.decision_text(edited)
    assert json.loads(text)["edited_args"] == {"when": str(NOON)}
    assert DECISION.from_text(text).edited_args == {"when": str(NOON)}


def test_only_so_many_and_so_much_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_REMEMBERED", 3)
    texts = [run_table.run_text(RUN.changed(prompt=str(number))) for number in range(10)]
    assert [run_table.run_of(text).prompt for text in texts] == [str(number) for number in range(10)]
    long = RUN.changed(prompt="x" * tables.LARGEST_REMEMBERED)
    assert run_table.run_of(run_table.run_text(long)) is not long


@examples(1_000, daily=40)
@given(steps=st.lists(st.sampled_from(["", "a", "b", "c"]), max_size=30), after=st.integers(0, 31))
def test_steps_after_one_are_those_that_came_after_it(steps: list[str], after: int) -> None:
    record = EventCount(list)
    record.append([EventDraft(kind="asked", at=NOON, request=request) for request in steps])
    assert record.touched(after) == list(dict.fromkeys(request for request in steps[after:] if request))
