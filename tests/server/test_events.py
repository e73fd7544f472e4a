"""What happens, told live: in order, once, across connections and servers; and to nobody who may not hear it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.contracts.samples import at, request
from tests.server.api_desk import ApiDesk, no
from tests.server.doors import Doors
from tests.server.live_server import reading, serving, until

from signoff.core.record import EventDraft
from signoff.ports import Store
from signoff.server import api_events, live_events
from signoff.server.api_events import StreamTimes
from signoff.server.live_events import LONGEST_QUEUE, EventListener, LiveEvent, LiveEvents
from signoff.store.memory_store import MemoryStore


async def test_events_arrive_as_they_happen_with_their_number_and_nothing_secret(api_desk: ApiDesk) -> None:
    async with serving(api_desk.app) as url, reading(url) as reader:
        assert reader.response.headers["content-type"].startswith("text/event-stream")
        assert reader.response.headers["cache-control"] == "no-store"
        first = await reader.next()
        assert first is not None and (first.event, first.data) == ("begin", {"seq": 0})
        asked = await api_desk.ask("mail", {"to": "ana", "body": "hunter2-hunter2"}, secrets=("hunter2-hunter2",))
        await api_desk.post(f"/requests/{asked.id}/votes", no(asked, note="hunter2-hunter2"))
        frames = await reader.some(3)
        assert [(one.id, one.data["seq"], one.data["kind"]) for one in frames] == [
            ("1", 1, "asked"),
            ("2", 2, "voted"),
            ("3", 3, "settled"),
        ]
        assert {one.data["request"] for one in frames} == {asked.id}
        assert frames[0].data["title"].startswith("mail(") and "hunter2" not in str(frames)


async def test_whoever_comes_back_gets_exactly_what_they_missed(api_desk: ApiDesk) -> None:
    async with serving(api_desk.app) as url:
        async with reading(url) as reader:
            await api_desk.ask()
            await reader.some(1)
        for _ in range(3):
            await api_desk.ask()
        async with reading(url, last=reader.last) as reader:
            frames = await reader.some(3)
            await api_desk.ask()
            frames += await reader.some(1)
        assert [one.id for one in frames] == ["2", "3", "4", "5"]
        async with reading(url, after=4) as reader:
            assert [one.id for one in await reader.some(1)] == ["5"]


async def test_a_server_that_starts_anew_goes_on_where_the_last_one_was(tmp_path: Path) -> None:
    before = ApiDesk(tmp_path)
    async with serving(before.app) as url, reading(url) as reader:
        await before.ask()
        await before.ask()
        assert [one.id for one in await reader.some(2)] == ["1", "2"]
    await before.ask()
    await before.close()
    after = ApiDesk(tmp_path)
    async with serving(after.app) as url, reading(url, last=reader.last) as reader:
        await after.ask()
        assert [one.id for one in await reader.some(2)] == ["3", "4"]
    await after.close()


async def test_a_number_that_the_record_does_not_have_begins_anew(api_desk: ApiDesk) -> None:
    await api_desk.ask()
    async with serving(api_desk.app) as url:
        async with reading(url, last="99") as reader:
            first = await reader.next()
            assert first is not None and (first.event, first.id, first.data) == ("reset", "1", {"seq": 1})
    for bad in ("-1", "x", "1.5", "9" * 30, "²"):
        headers = {"last-event-id": bad.encode("utf-8")}
        reply = await api_desk.client.get("/events", headers={"x-who": b"ben", **headers})  # type: ignore[arg-type]
        assert reply.status_code == 422, bad


async def test_who_may_no_longer_listen_is_sent_away(api_desk: ApiDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_events, "TIMES", StreamTimes(heartbeat=0.02, allowed=0.02))
    signed_in = True
    identify = api_desk.state.identify

    async def while_signed_in(connection: object) -> object:
        return await identify(connection) if signed_in else None  # type: ignore[arg-type]

    object.__setattr__(api_desk.state, "identify", while_signed_in)
    async with serving(api_desk.app) as url, reading(url) as reader:
        await reader.next()
        signed_in = False
        last = await reader.next()
        assert last is not None and (last.event, last.data) == (
            "closed",
            {"reason": "you are no longer signed in"},
        )
        assert await reader.next() is None
        assert reader.comments >= 0


async def test_a_quiet_connection_is_kept_alive(api_desk: ApiDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_events, "TIMES", StreamTimes(heartbeat=0.02, allowed=60))
    async with serving(api_desk.app) as url, reading(url) as reader:
        await reader.next()
        waiting = asyncio.create_task(reader.next())
        await until(lambda: reader.comments >= 3)
        await api_desk.ask()
        frame = await waiting
        assert frame is not None and frame.id == "1"


async def test_who_looks_is_told_without_a_number(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    async with serving(api_desk.app) as url, reading(url) as reader:
        begin = await reader.next()
        await until(lambda: len(api_desk.state.live._joined) == 1)
        await api_desk.post(f"/requests/{asked.id}/presence", {}, who="ana")
        told = await reader.next()
        assert told is not None and begin is not None
        assert (told.event, told.id, told.data) == ("presence", "", {"request": asked.id, "people": ["ana"]})
        assert reader.last == begin.id


async def test_a_server_that_stops_says_so(api_desk: ApiDesk) -> None:
    async with serving(api_desk.app) as url, reading(url) as reader:
        await reader.next()
        api_desk.state.live.close()
        last = await reader.next()
        assert last is not None and (last.event, last.data) == ("closed", {"reason": "the server stops"})
        assert await reader.next() is None


async def test_a_poll_answers_as_soon_as_something_happened(api_desk: ApiDesk) -> None:
    now = await api_desk.get("/events/poll")
    assert now == {"events": [], "next": 0, "reset": False}
    waiting = asyncio.create_task(api_desk.get("/events/poll", after=0, wait=60))
    await until(lambda: bool(api_desk.state.live._joined))
    asked = await api_desk.ask()
    found = await waiting
    assert [(one["seq"], one["kind"], one["request"]) for one in found["events"]] == [(1, "asked", asked.id)]
    assert found["next"] == 1
    assert (await api_desk.get("/events/poll", after=0, wait=0))["next"] == 1, "what was missed comes at once"
    assert await api_desk.get("/events/poll", after=1, wait=0) == {"events": [], "next": 1, "reset": False}
    assert await api_desk.get("/events/poll", after=7, wait=60) == {"events": [], "next": 1, "reset": True}


async def test_a_poll_tells_nothing_to_whoever_may_no_longer_listen() -> None:
    doors = Doors()
    key, header = await doors.token("ben")
    async with doors.browser() as client:
        poll = client.get("/api/v1/events/poll", params={"after": 1, "wait": 60}, headers=header, timeout=90)
        waiting = asyncio.create_task(poll)
        await until(lambda: bool(doors.state.live._joined))
        await doors.broker.access.revoke(key.id, by="ana")
        assert (await waiting).status_code == 401


async def test_one_holder_does_not_take_the_place_of_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signoff.server.live_events.MOST_EACH", 3)
    doors = Doors()
    headers = {name: (await doors.token(name))[1] for name in ("ana", "ben")}
    live = doors.state.live

    async def listens(name: str) -> httpx.Response:
        async with doors.browser() as client:
            query = {"after": 2, "wait": 60}
            return await client.get("/api/v1/events/poll", params=query, headers=headers[name], timeout=90)

    many = [asyncio.create_task(listens("ana")) for _ in range(6)]
    await until(lambda: len(live._joined) == 3 and sum(one.done() for one in many) == 3)
    refused = await listens("ana")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
    other = asyncio.create_task(listens("ben"))
    await until(lambda: len(live._joined) == 4)
    live.close("the end")
    assert (await other).status_code == 200
    await asyncio.gather(*many)
    assert not live._held


# --- the watcher itself ---


async def happen(store: Store, number: int) -> None:
    """So many events, each on its own."""
    for _ in range(number):
        await store.write("happen", lambda tx: tx.record.append([EventDraft("asked", at(1), request="r")]))


async def numbers(listener: EventListener, number: int) -> list[int]:
    """So many numbers of events."""
    found: list[int] = []
    async with asyncio.timeout(120):
        while len(found) < number:
            found += [one.seq for one in await listener.read(60) if isinstance(one, LiveEvent)]
    return found


async def test_nothing_is_lost_or_told_twice_whenever_somebody_begins_to_listen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_events, "PAGE", 7)  # so that pages end everywhere
    store = MemoryStore(record=True)
    live, total = LiveEvents(store), 200

    async def listen(after: int) -> None:
        await until(lambda: heads[-1] >= after)
        async with live.listening(after) as listener:
            assert await numbers(listener, total - after) == list(range(after + 1, total + 1))

    heads = [0]

    async def write() -> None:
        for _ in range(total):
            await happen(store, 1)
            heads.append(heads[-1] + 1)
            await asyncio.sleep(0)

    await asyncio.gather(write(), *(listen(after) for after in range(0, total, 9)))
    assert not live._listeners and live._watching is None


async def test_one_watcher_reads_each_event_once_for_all() -> None:
    store = MemoryStore(record=True)
    reads = 0
    read = store.read

    async def counted(work, *, own: bool = True):  # type: ignore[no-untyped-def]
        nonlocal reads
        reads += 1
        return await read(work, own=own)

    store.read = counted  # type: ignore[method-assign]
    live = LiveEvents(store)

    async def listen() -> None:
        async with live.listening() as listener:
            assert await numbers(listener, 1) == [1]

    listening = [asyncio.create_task(listen()) for _ in range(30)]
    await until(lambda: len(live._joined) == 30)
    before = reads
    await happen(store, 1)
    await asyncio.gather(*listening)
    assert reads - before <= 3


async def test_who_reads_too_slowly_is_sent_away_and_comes_back_for_the_rest() -> None:
    store = MemoryStore(record=True)
    live = LiveEvents(store)
    async with live.listening(0) as listener:
        waiting = asyncio.create_task(listener.read(60))
        await until(lambda: bool(live._joined))
        await happen(store, 1)
        assert [one.seq for one in await waiting if isinstance(one, LiveEvent)] == [1]
        await happen(store, LONGEST_QUEUE + 5)
        await until(lambda: bool(listener.ended))
        assert "too slow" in listener.ended and list(await listener.read(60)) == []
        assert listener.after == 1
    async with live.listening(listener.after) as again:
        assert await numbers(again, LONGEST_QUEUE + 5) == list(range(2, LONGEST_QUEUE + 7))


async def test_a_store_without_a_record_says_which_request_changed() -> None:
    store = MemoryStore()
    live = LiveEvents(store)
    async with live.listening() as listener:
        waiting = asyncio.create_task(listener.read(60))
        await until(lambda: bool(live._joined))

        def ask(tx) -> None:  # type: ignore[no-untyped-def]
            tx.requests.add(request(1))
            tx.record.append([EventDraft("asked", at(1), request="r0001")])

        await store.write("ask", ask)
        [told] = await waiting
        assert isinstance(told, LiveEvent) and (told.kind, told.request) == ("changed", "r0001")


async def test_a_poll_of_a_store_without_a_record_misses_nothing_that_happened_in_between() -> None:
    store = MemoryStore()
    live = LiveEvents(store)

    def ask(number: int) -> Any:
        def work(tx: Any) -> None:
            tx.requests.add(request(number))
            tx.record.append([EventDraft("asked", at(number), request=f"r{number:04}")])

        return work

    async with live.listening() as listener:
        after = listener.after
    await store.write("ask", ask(1))
    await store.write("ask", ask(2))
    async with live.listening(after) as listener:
        told = await listener.read(0)
        assert [one.request for one in told] == ["r0001", "r0002"]
        assert list(await listener.read(0)) == [], "once"
