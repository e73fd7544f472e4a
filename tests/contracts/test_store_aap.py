"""Every store, about the Agent Approval Protocol: what was put is found, by each that it is looked for by."""

from __future__ import annotations

from tests.contracts import samples
from tests.contracts.samples import aap_instance, aap_request, at

from signoff.core.aap import AapDecision, AapOutcome, AapStatus
from signoff.ports import Store

DENIED = AapDecision(status=AapStatus.DENIED, at=at(1))
APPROVED = samples.AAP_APPROVED
DONE = AapOutcome(succeeded=True, at=at(3))


async def test_a_request_comes_back_as_it_was_by_its_id_and_its_key(store: Store) -> None:
    await store.write("put", lambda tx: tx.aap_requests.put(samples.RICH_AAP_REQUEST))
    assert await store.read(lambda tx: tx.aap_requests.get("aap-9")) == samples.RICH_AAP_REQUEST
    assert await store.read(lambda tx: tx.aap_requests.by_key("instance-1", samples.HALF)) == samples.RICH_AAP_REQUEST
    assert await store.read(lambda tx: tx.aap_requests.by_key("instance-2", samples.HALF)) is None
    assert await store.read(lambda tx: tx.aap_requests.get(samples.HALF)) is None


async def test_requests_are_found_by_what_is_still_to_come(store: Store) -> None:
    rows = [
        aap_request(1),
        aap_request(2, decision=DENIED),
        aap_request(3, decision=APPROVED),
        aap_request(4, decision=APPROVED, consumed_at=at(2)),
        aap_request(5, decision=APPROVED, consumed_at=at(2), outcome=DONE),
        aap_request(6, instance="instance-2"),
        aap_request(7, deadline=at(10)),
    ]
    for row in rows:
        await store.write("put", lambda tx, row=row: tx.aap_requests.put(row))
    going = await store.read(lambda tx: tx.aap_requests.going("instance-1"))
    assert [one.id for one in going] == ["aap-1", "aap-3", "aap-4", "aap-7"]
    assert await store.read(lambda tx: tx.aap_requests.waiting("instance-1")) == 2
    assert await store.read(lambda tx: tx.aap_requests.waiting("instance-3")) == 0
    assert list(await store.read(lambda tx: tx.aap_requests.due(at(9)))) == []
    assert list(await store.read(lambda tx: tx.aap_requests.due(at(101)))) == ["aap-7", "aap-1"]
    await store.write("put", lambda tx: tx.aap_requests.put(rows[0].changed(decision=DENIED)))
    assert list(await store.read(lambda tx: tx.aap_requests.due(at(101)))) == ["aap-7"]


async def test_requests_are_forgotten_by_what_last_happened_and_never_while_they_wait(store: Store) -> None:
    rows = [
        aap_request(1),
        aap_request(2, decision=DENIED),
        aap_request(3, decision=APPROVED, consumed_at=at(2)),
        aap_request(4, decision=APPROVED, consumed_at=at(2), outcome=DONE),
    ]
    for row in rows:
        await store.write("put", lambda tx, row=row: tx.aap_requests.put(row))
    await store.write("forget", lambda tx: tx.aap_requests.forget(at(3)))
    found = await store.read(lambda tx: [tx.aap_requests.get(f"aap-{n}") for n in range(1, 5)])
    assert found == [rows[0], None, None, rows[3]]
    assert await store.read(lambda tx: tx.aap_requests.by_key("instance-1", "attempt-2")) is None


async def test_instances_come_back_as_they_were_in_the_order_they_were_made(store: Store) -> None:
    rows = [aap_instance(1), samples.RICH_AAP_INSTANCE, aap_instance(2, provisioner="cron", key="made-once")]
    for row in rows:
        await store.write("put", lambda tx, row=row: tx.aap_instances.put(row))
    await store.write("put", lambda tx: tx.aap_instances.put(rows[0].changed(name="other")))
    rows[0] = rows[0].changed(name="other")
    assert list(await store.read(lambda tx: tx.aap_instances.all())) == rows
    assert await store.read(lambda tx: tx.aap_instances.get("instance-9")) == rows[1]
    assert await store.read(lambda tx: tx.aap_instances.by_key(samples.HALF, "made-once")) == rows[1]
    assert await store.read(lambda tx: tx.aap_instances.by_key("cron", "made-once")) == rows[2]
    assert await store.read(lambda tx: tx.aap_instances.by_key("", "")) is None
    assert await store.read(lambda tx: tx.aap_instances.get("nobody")) is None
    assert list(await store.read(lambda tx: tx.aap_instances.all(revoked=False))) == [rows[0], rows[2]]
    await store.write("forget", lambda tx: tx.aap_instances.forget(at(5)))
    assert list(await store.read(lambda tx: tx.aap_instances.all())) == rows
    await store.write("forget", lambda tx: tx.aap_instances.forget(at(6)))
    assert list(await store.read(lambda tx: tx.aap_instances.all())) == [rows[0], rows[2]]
