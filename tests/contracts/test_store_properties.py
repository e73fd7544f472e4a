"""Whatever is done to them, in whatever order: a file, a server and the store in memory end up with the same."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contracts import samples
from tests.contracts.samples import at, chained
from tests.matches import ANY, match
from tests.postgres import Reused
from tests.profiles import examples
from tests.ready import ready

from signoff.core.decision import ApprovalDecision
from signoff.core.lifecycle import (
    Assigned,
    Cancelled,
    Claimed,
    Event,
    Expired,
    Failed,
    Lost,
    OutcomeReported,
    Reminded,
    Succeeded,
    Voted,
    advance,
)
from signoff.core.run import RunState
from signoff.core.subject import Subject, SubjectKind
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.errors import RequestError, WrongUse
from signoff.ports import Store, Transaction
from signoff.store import record_table
from signoff.store.memory_store import MemoryStore
from signoff.store.postgres import PostgresStore
from signoff.store.sqlite import SqliteStore

Change: TypeAlias = Callable[[Transaction], object]

NUMBERS = st.integers(1, 5)
MOMENTS = st.sampled_from([None, at(5), at(50), at(50.000_001), at(1_000)])
TEXTS = st.sampled_from(["", "x", "Zürich", samples.TEXT, samples.HALF])
REQUIREMENTS = st.sampled_from(
    [
        Requirement(),
        Requirement(quorum=2),
        Requirement(role="ops", on_timeout=OnTimeout.ESCALATE, escalate_to="boss", remind=timedelta(seconds=9)),
    ]
)
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.sampled_from([Expired(), Reminded(), Lost(), Assigned("ana"), Assigned(""), Claimed("p1"), Claimed("p2")]),
    st.builds(Cancelled, TEXTS),
    st.builds(Failed, TEXTS),
    st.builds(Succeeded, TEXTS, TEXTS),
    st.builds(OutcomeReported, st.just(samples.ANA), st.booleans(), TEXTS),
    st.builds(Voted, st.sampled_from([samples.ANA, samples.BEN, samples.EVE]), st.just(samples.YES)),
    st.builds(Voted, st.just(samples.EVE), st.builds(ApprovalDecision, approved=st.just(False), note=TEXTS)),
)


@st.composite
def added(draw: st.DrawFn) -> Change:
    requirement = draw(REQUIREMENTS)
    one = samples.request(
        draw(NUMBERS),
        name=f"r{draw(NUMBERS)}",
        deadline=draw(MOMENTS),
        remind_at=draw(MOMENTS),
        run=draw(st.sampled_from(["", "run0001"])),
        title=draw(TEXTS),
        verdict=Verdict(effect=Effect.ASK, requirement=requirement),
    )
    return lambda tx: tx.requests.add(one)


@st.composite
def advanced(draw: st.DrawFn) -> Change:
    name, event, moment = f"r{draw(NUMBERS)}", draw(EVENTS), draw(st.sampled_from([at(1), at(100), at(2_000)]))
    hurry = draw(st.sampled_from([0, 0, 0, 0, 1, -1]))

    def work(tx: Transaction) -> None:
        one = tx.requests.get(name)
        if one is not None:
            try:
                moved = advance(one, event, moment)
            except RequestError:
                return
            tx.requests.put(moved.changed_to(version=moved.version + hurry))

    return work


@st.composite
def remembered(draw: st.DrawFn) -> Change:
    covered = draw(st.sampled_from([None, match(), match(n=ANY)]))
    one = samples.grant(
        draw(NUMBERS),
        tool=draw(st.sampled_from(["deploy", "other"])),
        memory_key="" if covered is not None else draw(st.sampled_from(["key1", "key2"])),
        match=covered,
        revoked_at=draw(st.sampled_from([None, None, at(1)])),
        note=draw(TEXTS),
    )
    return lambda tx: tx.grants.put(one) if tx.grants.get(one.id) else tx.grants.add(one)


@st.composite
def ran(draw: st.DrawFn) -> Change:
    one = samples.run(
        draw(NUMBERS), state=draw(st.sampled_from(RunState)), epoch=draw(NUMBERS), tip=draw(TEXTS), rest=draw(TEXTS)
    )
    return lambda tx: tx.runs.put(one) if tx.runs.get(one.id) else tx.runs.add(one)


@st.composite
def delivered(draw: st.DrawFn) -> Change:
    one = samples.delivery(
        draw(NUMBERS),
        channel=draw(st.sampled_from(["discord", "night", samples.HALF])),
        trail=draw(st.sampled_from(["run0001", "run0002", samples.TEXT])),
        subject=Subject(draw(st.sampled_from(SubjectKind)), draw(st.sampled_from(["r1", "r2", samples.HALF]))),
        live=draw(st.booleans()),
        shown=draw(NUMBERS),
        due=draw(MOMENTS),
        may_stand=draw(st.booleans()),
        hopeless=draw(st.booleans()),
        problem=draw(TEXTS),
    )
    return lambda tx: tx.deliveries.put(one)


@st.composite
def noted(draw: st.DrawFn) -> Change:
    drafts = [
        samples.draft(number, request=draw(st.sampled_from(["", "r1", "r2"])), body={"text": draw(TEXTS)})
        for number in range(draw(st.integers(0, 3)))
    ]
    return lambda tx: tx.record.append(drafts)


@st.composite
def others(draw: st.DrawFn) -> Change:
    number, text = draw(NUMBERS), draw(TEXTS)
    choices: list[Change] = [
        lambda tx: tx.results.put(f"r{number}", text.encode("utf-8", "replace")),
        lambda tx: tx.segments.add(samples.SEGMENTS[number - 1]),
        lambda tx: tx.processes.put(replace(samples.PROCESS, id=f"process-{number}", born=text)),
        lambda tx: tx.delegations.add(samples.delegation(text, "b", number, number + 5)),
        lambda tx: tx.checkpoints.add(samples.CHECKPOINT._replace(seq=number)),
        lambda tx: tx.settings.put("name", text if number > 1 else None),
        lambda tx: tx.requests.add(samples.rich_request(f"r{number}")),
    ]
    return draw(st.sampled_from(choices))


CHANGES = st.one_of(
    added(), added(), advanced(), advanced(), advanced(), remembered(), ran(), delivered(), noted(), others()
)


@st.composite
def works(draw: st.DrawFn) -> tuple[bool, Change]:
    """One transaction: whether anybody waits for it, and what it does, to its end or until it fails."""
    changes = draw(st.lists(CHANGES, min_size=1, max_size=4))
    waits, fails = draw(st.booleans()), draw(st.sampled_from([False, False, False, True]))

    def work(tx: Transaction) -> None:
        for change in changes:
            change(tx)
        if fails:
            raise WrongUse("enough")

    return waits, work


async def outcomes(store: Store, groups: Sequence[Sequence[tuple[bool, Change]]]) -> list[object]:
    """What became of each piece of work, and all that can be read, after each group that came at once."""
    told: list[object] = []
    for group in groups:
        for waits, work in group:
            if not waits:
                store.later("work", work)
        waiting = [store.write("work", work) for waits, work in group if waits]
        told += [type(outcome) for outcome in await asyncio.gather(*waiting, return_exceptions=True)]
        told.append(await store.read(samples.everything))
    return told


def agree(store: Store, groups: Sequence[Sequence[tuple[bool, Change]]]) -> None:
    """A store gives the same answers as the one in memory, which does one piece of work at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_table, "urandom", bytes)  # salts that are alike, so that whole chains can be compared
        try:
            kept = asyncio.run(outcomes(store, groups))
        finally:
            store.close()
        expected = asyncio.run(outcomes(MemoryStore(record=True), groups))
    assert kept == expected
    for seen in kept:
        if isinstance(seen, dict):
            chained(seen["entries"])


GROUPS = st.lists(st.lists(works(), min_size=1, max_size=3), max_size=8)
expected_warnings = pytest.mark.filterwarnings("ignore:signoff store. 'work' was not written:RuntimeWarning")


@examples(600, daily=12)
@given(groups=GROUPS)
@expected_warnings
def test_memory_and_sqlite_agree(groups: list[list[tuple[bool, Change]]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        agree(SqliteStore(ready(Path(directory) / "signoff.db")), groups)


@examples(200, daily=6)
@given(groups=GROUPS)
@expected_warnings
def test_memory_and_postgres_agree(postgres_tables: Reused, groups: list[list[tuple[bool, Change]]]) -> None:
    agree(PostgresStore(postgres_tables.fresh()), groups)
