"""What is put into columns comes back as it was."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.core.delivery import Delivery, DeliveryState
from signoff.core.lease import Lease, Outage
from signoff.core.notice import RunResult
from signoff.core.run import RunState
from signoff.core.subject import Occasion, Subject, SubjectKind
from signoff.store.delivery_table import delivery_columns, delivery_of, lease_columns, lease_of
from signoff.store.tables import column

TEXT = st.text(st.characters(), max_size=20)
IDS = TEXT.filter(lambda text: "/" not in text)
FIRST, LAST = (datetime(year, 1, 2, tzinfo=UTC).replace(tzinfo=None) for year in (1970, 2200))
TIMES = st.datetimes(FIRST, LAST, timezones=st.just(UTC))
MANY = st.integers(0, 2**40)


@st.composite
def deliveries(draw: st.DrawFn) -> Delivery:
    kind = draw(st.sampled_from(SubjectKind))
    occasion = draw(st.sampled_from(Occasion)) if kind is SubjectKind.REMINDER else None
    run, line = draw(IDS), draw(TEXT) if kind is SubjectKind.MESSAGE else ""
    subject = Subject(kind, f"{run}/{line}" if kind is SubjectKind.MESSAGE else run, occasion)
    result = None
    if kind in (SubjectKind.RESULT, SubjectKind.MESSAGE):
        state = draw(st.sampled_from(RunState))
        result = RunResult(run=run, state=state, worker=draw(TEXT), text=draw(TEXT), line=line)
    return Delivery(
        channel=draw(TEXT),
        subject=subject,
        trail=draw(TEXT),
        state=draw(st.sampled_from(DeliveryState)),
        place=draw(TEXT),
        shown=draw(st.integers(-1, 2**40)),
        live=draw(st.booleans()),
        may_stand=draw(st.booleans()),
        hopeless=draw(st.booleans()),
        attempts=draw(MANY),
        since=draw(st.none() | TIMES),
        due=draw(st.none() | TIMES),
        problem=draw(TEXT),
        result=result,
    )


DOWNS = st.builds(Outage, since=TIMES, problem=TEXT, attempts=MANY, due=st.none() | TIMES, hopeless=st.booleans())


@examples(1_000, daily=30)
@given(deliveries())
def test_a_delivery(delivery: Delivery) -> None:
    columns = [column(one) for one in delivery_columns(delivery)]
    assert delivery_of(columns) == delivery
    for one in columns:
        assert not isinstance(one, str) or "\0" not in one.encode().decode()


@examples(1_000, daily=30)
@given(st.builds(Lease, channel=TEXT, process=TEXT, down=st.none() | DOWNS))
def test_a_lease(lease: Lease) -> None:
    assert lease_of([column(one) for one in lease_columns(lease)]) == lease
