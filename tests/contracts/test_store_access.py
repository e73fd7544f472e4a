"""Every store, about keys, comments and replies: what was put is found, by each that it is looked for by."""

from __future__ import annotations

from tests.contracts import samples
from tests.contracts.samples import access_key, at, comment

from signoff.core.access import AccessKind
from signoff.ports import Store
from signoff.store.texts import KeptReply


async def test_a_key_comes_back_as_it_was_by_its_id_and_its_digest(store: Store) -> None:
    await store.write("put", lambda tx: tx.access_keys.put(samples.RICH_KEY))
    assert await store.read(lambda tx: tx.access_keys.get("key-9")) == samples.RICH_KEY
    assert await store.read(lambda tx: tx.access_keys.by_digest("digest-9")) == samples.RICH_KEY
    assert await store.read(lambda tx: tx.access_keys.get("digest-9")) is None
    assert await store.read(lambda tx: tx.access_keys.by_digest("key-9")) is None


async def test_keys_are_listed_by_kind_and_holder_in_the_order_they_were_made(store: Store) -> None:
    keys = [access_key(1), access_key(2, holder="ben"), access_key(3, kind=AccessKind.LINK), access_key(4)]
    for key in keys:
        await store.write("put", lambda tx, key=key: tx.access_keys.put(key))
    await store.write("put", lambda tx: tx.access_keys.put(access_key(1, used_at=at(5))))
    keys[0] = access_key(1, used_at=at(5))
    assert list(await store.read(lambda tx: tx.access_keys.all())) == keys
    assert list(await store.read(lambda tx: tx.access_keys.all(holder="ben"))) == [keys[1]]
    assert list(await store.read(lambda tx: tx.access_keys.all(kind=AccessKind.LINK))) == [keys[2]]
    assert list(await store.read(lambda tx: tx.access_keys.all(kind=AccessKind.TOKEN, holder="ana"))) == [
        keys[0],
        keys[3],
    ]


async def test_keys_that_expired_long_ago_are_dropped(store: Store) -> None:
    lasting = [access_key(2, expires_at=at(10)), access_key(3, expires_at=None)]
    for key in (access_key(1, expires_at=at(9)), *lasting):
        await store.write("put", lambda tx, key=key: tx.access_keys.put(key))
    await store.write("forget", lambda tx: tx.access_keys.forget(at(10)))
    assert list(await store.read(lambda tx: tx.access_keys.all())) == lasting
    assert await store.read(lambda tx: tx.access_keys.by_digest("digest-1")) is None


async def test_comments_come_in_the_order_they_were_said(store: Store) -> None:
    said = [comment("r1", text, id=text) for text in ("why?", "because", "well")]
    for one in (said[0], comment("r2", "elsewhere"), said[1], samples.RICH_COMMENT, said[2]):
        await store.write("add", lambda tx, one=one: tx.comments.add(one))
    assert list(await store.read(lambda tx: tx.comments.of("r1"))) == said
    assert list(await store.read(lambda tx: tx.comments.of(samples.HALF))) == [samples.RICH_COMMENT]
    assert list(await store.read(lambda tx: tx.comments.of("r3"))) == []


async def test_replies_are_found_by_who_asked_and_the_name_they_gave(store: Store) -> None:
    reply = KeptReply("digest", 201, samples.HALF)
    await store.write("put", lambda tx: tx.replies.put("ana", "one", reply, at(1)))
    await store.write("put", lambda tx: tx.replies.put(samples.HALF, "two", reply, at(5)))
    assert await store.read(lambda tx: tx.replies.get("ana", "one")) == reply
    assert await store.read(lambda tx: tx.replies.get("ben", "one")) is None
    assert await store.read(lambda tx: tx.replies.get("ana", "two")) is None
    await store.write("forget", lambda tx: tx.replies.forget(at(5)))
    assert await store.read(lambda tx: tx.replies.get("ana", "one")) is None
    assert await store.read(lambda tx: tx.replies.get(samples.HALF, "two")) == reply
