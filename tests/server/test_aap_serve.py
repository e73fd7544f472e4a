"""The real `signoff serve` and an agent elsewhere: killed between consume and outcome, nothing is spent twice."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.server.serving import Served, Shop

from signoff.broker import Broker
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.store.store_factory import open_store

T = TypeVar("T")

PROJECT = "policy: [{ask: pay}]\n"
ID, SECRET = "6c1f0a50-1a52-4a26-9f0b-6f2f0d0c7c11", "soi_for-tests"
CALL = {"tool": "pay", "arguments": {"to": "ben"}, "timeout": "1h"}


async def at(shop: Shop, work: Callable[[Broker], Awaitable[T]]) -> T:
    """Do something at the store, beside the server."""
    broker = Broker(open_store(shop.store))
    try:
        return await work(broker)
    finally:
        broker.watch.close()
        broker.store.close()


def call(served: Served, method: str, path: str, secret: str, body: object = None, key: str = "one") -> tuple[int, Any]:
    """Status and data of a request by the protocol."""
    headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json", "Idempotency-Key": key}
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(f"{served.url}/aap/v1{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


async def approve_all(broker: Broker) -> None:
    for one in await broker.pending():
        await broker.answer(one.id, ApprovalDecision(approved=True), by=Actor(name="ana"))


STEPS = ("asked", "voted", "consumed", "told")


@pytest.mark.nightly
@pytest.mark.timeout(240)
@pytest.mark.parametrize("last", STEPS)
@pytest.mark.parametrize("waits", [False, True], ids=["answered", "in flight"])
def test_a_server_that_is_killed_after_any_step_goes_on_where_it_was(tmp_path: Path, last: str, waits: bool) -> None:
    """Each step is sent again after the kill. What was answered is answered so again; what was not is done once."""
    shop = Shop(tmp_path).write(PROJECT)
    asyncio.run(at(shop, lambda broker: broker.aap.provision(ID, "payer", SECRET, owner="ana", by="ana", lasts=None)))
    told: dict[str, tuple[int, Any]] = {}

    def step(served: Served, name: str) -> tuple[int, Any]:
        if name == "asked":
            return call(served, "POST", "/requests", SECRET, CALL)
        path = f"/requests/{told['asked'][1]['id']}"
        if name == "voted":
            asyncio.run(at(shop, approve_all))
            return call(served, "GET", f"{path}?wait=30s", SECRET)
        if name == "consumed":
            return call(served, "POST", f"{path}/consume", SECRET, key="run-1")
        return call(served, "POST", f"{path}/outcome", SECRET, {"status": "succeeded"})

    with shop.serving() as served:
        for name in STEPS[: STEPS.index(last) + 1]:
            if waits and name == last:
                kill_while(served, lambda name=name: step(served, name))
            else:
                told[name] = step(served, name)
        if served.process.poll() is None:
            served.process.kill()
            served.process.wait()
    with shop.serving() as served:
        for name in STEPS:
            before = told.get(name)
            status, data = step(served, name)
            assert status in (200, 201), data
            assert before is None or data["id"] == before[1]["id"]
            told[name] = status, data
        assert call(served, "POST", f"/requests/{told['asked'][1]['id']}/consume", SECRET, key="run-2")[0] == 409
    record = asyncio.run(at(shop, lambda broker: broker.store.read(lambda tx: tx.record.entries())))
    kinds = [one.kind for one in record]
    assert [kinds.count(one) for one in ("asked", "settled", "claimed", "ran")] == [1, 1, 1, 1], kinds


def kill_while(served: Served, send: Callable[[], object]) -> None:
    """Kill the server while a request is on its way: nobody knows whether it was carried out."""

    def sends() -> None:
        with suppress(OSError, http.client.HTTPException, ValueError):
            send()

    assert served.url, "it listens by then"
    sender = threading.Thread(target=sends)
    sender.start()
    served.process.kill()
    served.process.wait()
    sender.join(30)


@pytest.mark.timeout(240)
def test_a_server_that_is_killed_between_consume_and_outcome_spends_nothing_twice(tmp_path: Path) -> None:
    shop = Shop(tmp_path).write(PROJECT)
    asyncio.run(at(shop, lambda broker: broker.aap.provision(ID, "payer", SECRET, owner="ana", by="ana", lasts=None)))
    secret = SECRET
    with shop.serving() as served:
        status, asked = call(served, "POST", "/requests", secret, CALL)
        assert (status, asked["status"]) == (201, "pending")
        [request] = asyncio.run(at(shop, lambda broker: broker.pending()))
        yes = ApprovalDecision(approved=True)
        asyncio.run(at(shop, lambda broker: broker.answer(request.id, yes, by=Actor(name="ana"))))
        path = f"/requests/{asked['id']}"
        assert call(served, "GET", f"{path}?wait=30s", secret)[1]["status"] == "approved"
        status, consumed = call(served, "POST", f"{path}/consume", secret, key="run-1")
        assert status == 200
        served.process.kill()
        served.process.wait()
    with shop.serving() as served:
        assert call(served, "POST", "/requests", secret, CALL) == (200, consumed)
        assert call(served, "POST", f"{path}/consume", secret, key="run-2")[0] == 409
        assert call(served, "POST", f"{path}/consume", secret, key="run-1") == (200, consumed)
        status, _ = call(served, "POST", f"{path}/outcome", secret, {"status": "succeeded", "note": "paid"})
        assert status == 200
        ended = asyncio.run(at(shop, lambda broker: broker.get(request.id)))
        assert ended.state is State.SUCCEEDED
