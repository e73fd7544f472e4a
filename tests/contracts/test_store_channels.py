"""What every store promises about what channels leave there: who runs them, who has read what, what was said."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta, timezone

import pytest
from tests.contracts import samples
from tests.contracts.samples import at

from signoff.core.conversation import ConversationLog
from signoff.core.lease import Lease, Outage
from signoff.ports import Store, Transaction

ODD = [samples.TEXT, samples.HALF, "\x00", "\x01json:", "\ud83e", "' or ''='"]
DOWN = Outage(since=at(0.000_001), problem=samples.HALF, attempts=7, due=at(61), hopeless=True)


async def put_leases(store: Store, *leases: Lease) -> None:
    for one in leases:
        await store.write("put", lambda tx, one=one: tx.leases.put(one))


async def put_logs(store: Store, *logs: ConversationLog) -> None:
    for one in logs:
        await store.write("put", lambda tx, one=one: tx.conversations.put(one))


async def log_of(store: Store, name: str) -> ConversationLog | None:
    return await store.read(lambda tx: tx.conversations.get(name))


@pytest.mark.parametrize("text", ODD)
async def test_a_lease_comes_back_as_it_was(store: Store, text: str) -> None:
    elsewhere = replace(DOWN, since=at(5).astimezone(timezone(timedelta(hours=9))), due=None, hopeless=False)
    for down in (DOWN, elsewhere, None):
        lease = Lease(channel=text, process=text, down=down)
        await put_leases(store, lease)
        assert await store.read(lambda tx: tx.leases.get(text)) == lease
    assert await store.read(lambda tx: tx.leases.get("nobody")) is None


async def test_leases_come_in_the_order_they_were_first_taken(store: Store) -> None:
    assert list(await store.read(lambda tx: tx.leases.all())) == []
    await put_leases(store, *(Lease(channel=name, process="p1") for name in ("night", "discord", "alpha")))
    await put_leases(store, Lease(channel="discord"), Lease(channel="night", process="p2", down=DOWN))
    leases = await store.read(lambda tx: tx.leases.all())
    assert [(one.channel, one.process) for one in leases] == [("night", "p2"), ("discord", ""), ("alpha", "p1")]
    assert leases[0].down == DOWN


@pytest.mark.parametrize("text", ODD)
async def test_who_read_what_is_known_with_its_arguments(store: Store, text: str) -> None:
    for _ in range(2):  # twice is as good as once
        await store.write("add", lambda tx: tx.readers.add(text, "digest", text))

    async def has(request: str, digest: str, person: str) -> bool:
        return await store.read(lambda tx: tx.readers.has(request, digest, person))

    assert await has(text, "digest", text)
    assert not await has(text, "other", text)
    assert not await has(text, "digest", "ana")
    assert not await has("r0001", "digest", text)


@pytest.mark.parametrize("text", ODD)
async def test_a_policy_is_kept_by_its_revision(store: Store, text: str) -> None:
    assert await store.read(lambda tx: tx.policies.get(text)) is None
    await store.write("put", lambda tx: tx.policies.put(text, text))
    await store.write("put", lambda tx: tx.policies.put("other", "- allow: *"))
    assert await store.read(lambda tx: tx.policies.get(text)) == text
    await store.write("put", lambda tx: tx.policies.put(text, "again"))
    assert await store.read(lambda tx: tx.policies.get(text)) == "again"
    assert await store.read(lambda tx: tx.policies.get("other")) == "- allow: *"


@pytest.mark.parametrize("text", ODD)
async def test_a_conversation_comes_back_as_it_was(store: Store, text: str) -> None:
    log = ConversationLog(name=text, run=text, heard="9", recent=("7", "9", "8"), turns={text: "run1", "b": text})
    other = ConversationLog(name="discord:1", heard="1", recent=("1",))
    await put_logs(store, log, other)
    assert await log_of(store, text) == log
    assert await log_of(store, "discord:1") == other
    assert await log_of(store, "discord:2") is None


async def test_a_conversation_holds_what_was_put_last(store: Store) -> None:
    logs = [
        ConversationLog(name="c", run="r1", heard="2", recent=("1", "2"), turns={"a": "r1"}),
        ConversationLog(name="c", run="r2", heard="3", recent=("1", "2", "3"), turns={"a": "r1", "b": "r2"}),
        ConversationLog(name="c", run="r2", heard="4", recent=("2", "3", "4"), turns={"a": "r1", "b": "r3"}),
        ConversationLog(name="c", run="r2", heard="4", recent=("4", "2", "3"), turns={"b": "r3"}),
        ConversationLog(name="c", run="r2", heard="5", recent=("3", "5"), turns={}),
        ConversationLog(name="c"),
    ]
    for log in logs:
        await put_logs(store, log)
        assert await log_of(store, "c") == log


async def test_two_changes_of_a_conversation_in_one_go(store: Store) -> None:
    first = ConversationLog(name="c", heard="1", recent=("1",))
    second = ConversationLog(name="c", run="r1", heard="2", recent=("1", "2"), turns={"a": "r1"})

    def work(tx: Transaction) -> None:
        tx.conversations.put(first)
        assert tx.conversations.get("c") == first
        tx.conversations.put(second)
        assert tx.conversations.get("c") == second

    await store.write("twice", work)
    assert await log_of(store, "c") == second
