"""Every store, about lists of requests and runs: the same filters, the same order, page by page."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.contracts import samples
from tests.contracts.samples import approved, request

from signoff.core.call import Call
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_filter import ListPlace, ListState, RequestFilter
from signoff.core.run import RunState, SavedRun
from signoff.ports import Store

WAITING, SETTLED, ALL = ListState.WAITING, ListState.SETTLED, ListState.ALL


def of(number: int, tool: str, worker: tuple[str, ...] = (), **fields: object) -> ApprovalRequest:
    """A request of a tool and a chain of workers."""
    call = Call(tool=tool, args={"n": number}, call_id=f"c{number}", worker=worker)
    return request(number, tool_name=tool, call=call, title=f"{tool} no. {number}", **fields)


async def fill(store: Store, requests: Sequence[ApprovalRequest], settled: Sequence[int] = ()) -> None:
    for one in requests:
        await store.write("add", lambda tx, one=one: tx.requests.add(one))
    for at in settled:
        over = requests[at].changed_to(state=State.EXPIRED, version=1)
        await store.write("put", lambda tx, over=over: tx.requests.put(over))


async def listed(store: Store, limit: int = 50, **chosen: object) -> list[str]:
    """The ids of everything that is chosen, read page by page."""
    found: list[str] = []
    after: ListPlace | None = None
    while True:
        page = await store.read(
            lambda tx, after=after: tx.listings.page(RequestFilter(**chosen), limit=limit, after=after)  # type: ignore[arg-type]
        )
        found += [one.id for one in page]
        if len(page) < limit:
            return found
        after = ListPlace(page[-1].opened_at, page[-1].id)


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
async def test_pages_hold_everything_once_in_order(store: Store, limit: int) -> None:
    moments = [5, 3, 3, 9, 1, 7]
    requests = [request(number, opened_at=samples.at(moment)) for number, moment in enumerate(moments)]
    await fill(store, requests, settled=[1, 3])
    assert await listed(store, limit) == ["r0004", "r0002", "r0000", "r0005"], "the oldest first"
    assert await listed(store, limit, state=SETTLED) == ["r0003", "r0001"], "the last first"
    assert await listed(store, limit, state=ALL) == [f"r{number:04}" for number in reversed(range(6))]
    assert await store.read(lambda tx: (tx.listings.waiting(most=10), tx.listings.waiting(most=3))) == (4, 3)
    assert dict(await store.read(lambda tx: tx.listings.counts())) == {"pending": 4}


async def test_what_was_settled_meanwhile_ends_no_list(store: Store) -> None:
    requests = [request(number) for number in range(6)]
    await fill(store, requests)
    first = await store.read(lambda tx: tx.listings.page(RequestFilter(), limit=2))
    await store.write("put", lambda tx: tx.requests.put(approved(requests[1])))
    after = ListPlace(first[-1].opened_at, first[-1].id)
    rest = await store.read(lambda tx: tx.listings.page(RequestFilter(), limit=9, after=after))
    assert [one.id for one in rest] == ["r0002", "r0003", "r0004", "r0005"]
    gone = ListPlace(samples.at(3), "nobody")
    rest = await store.read(lambda tx: tx.listings.page(RequestFilter(), limit=9, after=gone))
    assert [one.id for one in rest] == ["r0003", "r0004", "r0005"], "a place that is known no longer"
    rest = await store.read(lambda tx: tx.listings.page(RequestFilter(state=ALL), limit=2, after=gone))
    assert [one.id for one in rest] == ["r0005", "r0004"]


@pytest.mark.parametrize("state", ListState)
async def test_every_filter_that_is_given_has_to_fit(store: Store, state: ListState) -> None:
    requests = [
        of(1, "refund", ("triage", "desk"), run="one", assigned="ana"),
        of(2, "refund", ("triage",), run="two"),
        of(3, "mail", ("desk",), run="one", assigned="ben"),
        of(4, samples.HALF, (samples.HALF, "desk"), run=samples.HALF, assigned=samples.HALF),
        of(5, "REFUND_ALL", run="one"),
    ]
    await fill(store, requests, settled=range(5) if state is SETTLED else ())

    async def found(**chosen: object) -> set[int]:
        return {int(one[1:]) for one in await listed(store, 2, state=state, **chosen)}

    assert await found() == {1, 2, 3, 4, 5}
    assert await found(tool="refund") == {1, 2}
    assert await found(tool=samples.HALF) == {4}
    assert await found(run="one") == {1, 3, 5}
    assert await found(run=samples.HALF) == {4}
    assert await found(assigned="ana") == {1}
    assert await found(assigned=samples.HALF) == {4}
    assert await found(assigned="") == {2, 5}
    assert await found(worker="desk") == {1, 3}, "one of a chain"
    assert await found(worker="triage > desk") == {1}
    assert await found(worker="tri") == set()
    assert await found(text="refund") == {1, 2, 5}
    assert await found(text="REFUND NO.") == {1, 2}
    assert await found(text="100%_\\") == set()
    assert await found(text="\0") == set()
    assert await found(tool="refund", run="one") == {1}
    assert await found(tool="refund", run="one", assigned="ben") == set()


async def test_letters_beyond_ascii_are_looked_for_as_they_are(store: Store) -> None:
    await fill(store, [request(1, title="Über 100%"), request(2, title="über_100")])
    assert await listed(store, text="ÜBER") == ["r0001"]
    assert await listed(store, text="über") == ["r0002"]
    assert await listed(store, text="R 100%") == ["r0001"]


async def test_runs_are_listed_before_one_of_them(store: Store) -> None:
    runs = [SavedRun(id=f"run{number}", state=RunState.DONE if number % 2 else RunState.GOING) for number in range(6)]
    for run in (*runs, SavedRun(id="inner", parent="run0")):
        await store.write("add", lambda tx, run=run: tx.runs.add(run))

    async def before(run: str, **how: bool) -> list[str]:
        return [one.id for one in await store.read(lambda tx: tx.runs.all(before=run, limit=2, **how))]

    assert await before("") == ["run5", "run4"]
    assert await before("run4") == ["run3", "run2"]
    assert await before("run4", going=True) == ["run2", "run0"]
    assert await before("run0") == []
    assert await before("nobody") == ["run5", "run4"]
