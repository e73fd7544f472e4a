"""The API's description is true: every endpoint is in it, and the committed file is the one that is served."""

from __future__ import annotations

import json
from pathlib import Path

from tests.docs.generated import openapi_text
from tests.server.api_desk import ApiDesk

from signoff.core.access import Permission
from signoff.server.app import ENDPOINTS

COMMITTED = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"


async def test_everybody_may_read_it_and_it_describes_every_endpoint(api_desk: ApiDesk) -> None:
    reply = await api_desk.client.get("/openapi.json")
    described = reply.json()
    assert reply.status_code == 200 and described["openapi"] == "3.1.0"
    assert described["servers"] == [{"url": "/api/v1"}]
    rows = {(method.upper(), path) for path, methods in described["paths"].items() for method in methods}
    assert rows == {(one.method, one.path) for one in ENDPOINTS}
    for endpoint in ENDPOINTS:
        operation = described["paths"][endpoint.path][endpoint.method.lower()]
        assert operation.get("x-permission") == (endpoint.permission and str(Permission(endpoint.permission)))
        names = [one.get("$ref", "").rpartition("/")[2] for one in operation["parameters"]]
        assert ("IdempotencyKey" in names) is endpoint.writes
        assert bool(operation["security"]) is (endpoint.permission is not None)


async def test_every_reference_leads_somewhere(api_desk: ApiDesk) -> None:
    described = (await api_desk.client.get("/openapi.json")).json()

    def references(value: object) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [one for inner in value.values() for one in references(inner)]
        return [one for inner in value for one in references(inner)] if isinstance(value, list) else []

    found = set(references(described))
    assert len(found) > 30
    for one in found:
        place: object = described
        for step in one.removeprefix("#/").split("/"):
            assert isinstance(place, dict) and step in place, one
            place = place[step]


def test_the_committed_file_is_current() -> None:
    assert COMMITTED.read_text("utf-8") == openapi_text(), "./dev docs --write makes it anew"
    assert json.loads(openapi_text())["info"]["title"] == "signoff"
