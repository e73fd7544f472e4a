"""The whole API against its own description, on a store full of hostile strings: no 5xx, nothing undocumented."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.profiles import NIGHTLY
from tests.server.api_desk import ApiDesk
from tests.server.hostile_store import HOSTILE, fill

from signoff.core.visible_text import is_clean
from signoff.server.app import ENDPOINTS
from signoff.server.openapi import document

OPERATIONS = sorted(f"{one.method} {one.path}" for one in ENDPOINTS)


class Hostile:
    """A server on such a store."""

    def __init__(self, directory: Path) -> None:
        import requests
        import schemathesis  # here, and not in every test worker: it takes half a second

        self.ids = asyncio.run(fill(directory))
        self.desk = ApiDesk(directory)
        self.desk.state.live.close("nothing is streamed here")  # or else each stream would be waited for
        self.digests: dict[str, str] = {}
        asyncio.run(self._look())
        self.server = uvicorn.Server(uvicorn.Config(self.desk.app, port=0, log_level="critical", lifespan="off"))
        self._thread = threading.Thread(target=self.server.run)
        self._thread.start()
        while not self.server.started:
            self._thread.join(0.01)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/api/v1"
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.headers["x-who"] = "ben"
        self.schema = schemathesis.openapi.from_dict(document(ENDPOINTS))

    async def _look(self) -> None:
        self.ids["run_id"] = [one.run.id for one in await self.desk.broker.runs.list()]
        self.ids["grant_id"] = [one.id for one in await self.desk.broker.grants.list()]
        self.ids["token_id"] = ["nothing"]
        for one in self.ids["request_id"]:
            self.digests[one] = (await self.desk.broker.get(one)).args_digest

    def close(self) -> None:
        self.session.close()
        self.server.should_exit = True
        self._thread.join()
        self.desk.broker.watch.close()
        self.desk.store.close()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    made = Hostile(tmp_path_factory.mktemp("hostile"))
    yield made
    made.close()


def go_through(hostile: Hostile, operation: str, examples: int) -> None:
    """Send what the description allows, and what it does not, to one endpoint: also about what is there."""
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    conforms = [checks.status_code_conformance, checks.content_type_conformance, checks.response_schema_conformance]
    method, _, path = operation.partition(" ")
    found = hostile.schema[path][method]
    fitting = found.as_strategy(generation_mode=GenerationMode.POSITIVE)
    either = st.one_of(fitting, found.as_strategy(generation_mode=GenerationMode.NEGATIVE))

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=not NIGHTLY,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=either if found.path.count("{") or method == "POST" else fitting, at=st.integers(0, 10**6))
    def send(case: Any, at: int) -> None:
        names = dict(case.path_parameters or {})
        for name, known in hostile.ids.items():
            if name in names and at % 4:
                case.path_parameters[name] = known[at % len(known)]
        request = (case.path_parameters or {}).get("request_id", "")
        if isinstance(case.body, dict) and "args_digest" in case.body and at % 3 and request in hostile.digests:
            case.body["args_digest"] = hostile.digests[request]
        response = case.call(base_url=hostile.url, session=hostile.session, timeout=120)
        case.validate_response(response, checks=[not_a_server_error, *conforms])

    send()


@pytest.mark.parametrize("operation", OPERATIONS[::4])
def test_whatever_is_sent_is_answered_as_described(hostile: Hostile, operation: str) -> None:
    go_through(hostile, operation, examples=3)


@pytest.mark.nightly
@pytest.mark.parametrize("operation", OPERATIONS)
def test_much_is_answered_as_described(hostile: Hostile, operation: str) -> None:
    go_through(hostile, operation, examples=400)


def test_every_request_of_the_store_is_shown_and_nothing_on_its_card_hides(hostile: Hostile) -> None:
    def get(path: str) -> Any:
        reply = hostile.session.get(f"{hostile.url}{path}", timeout=120)
        assert reply.status_code == 200, reply.text[:500]
        return reply.json()

    def texts(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            for name, inner in value.items():
                yield name
                yield from texts(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from texts(inner)

    assert len(hostile.ids["request_id"]) == 3 * len(HOSTILE) + 1
    for one in hostile.ids["request_id"]:
        shown = get(f"/requests/{one}")
        said = {name: value for name, value in shown.items() if name not in ("args", "args_schema")}
        beside = [get(f"/requests/{one}/{part}") for part in ("comments", "offers")]
        for text in texts([said, *beside]):
            # Brackets of markers are ours: a text's own are spelled out.
            odd = [char for char in set(text) - set("⟦⟧ \n\t") if not is_clean(f"a{char}")]
            assert not odd, (one, odd, text[:200])
    listed = get("/requests?state=all&limit=200")["requests"]
    assert {one["id"] for one in listed} >= set(hostile.ids["request_id"])
    for text in texts([listed, get("/runs?state=all"), get("/grants"), get("/audit?limit=1000"), get("/people")]):
        assert not [char for char in set(text) - set("⟦⟧ \n\t") if not is_clean(f"a{char}")], text[:200]
