"""Who may do what: every row of the table against every set of permissions, and nothing beside the table."""

from __future__ import annotations

from itertools import combinations

from starlette.routing import Mount, Route
from tests.server.api_desk import ApiDesk

from signoff.core.access import EVERYTHING, Permission
from signoff.server.app import ENDPOINTS
from signoff.server.endpoint import Endpoint, Nothing

SETS = [frozenset(some) for size in range(5) for some in combinations(sorted(EVERYTHING), size)]
ALLOWED: dict[str, Permission | None] = {
    "GET /requests": Permission.READ,
    "GET /requests/{request_id}": Permission.READ,
    "POST /requests/{request_id}/claim": Permission.ANSWER,
    "POST /requests/{request_id}/release": Permission.ANSWER,
    "POST /requests/{request_id}/assign": Permission.ANSWER,
    "POST /requests/{request_id}/outcome": Permission.ANSWER,
    "POST /requests/{request_id}/read": Permission.ANSWER,
    "POST /requests/{request_id}/presence": Permission.READ,
    "POST /requests/{request_id}/votes": Permission.ANSWER,
    "POST /votes": Permission.ANSWER,
    "GET /requests/{request_id}/offers": Permission.READ,
    "POST /requests/{request_id}/edit-check": Permission.ANSWER,
    "GET /requests/{request_id}/comments": Permission.READ,
    "POST /requests/{request_id}/comments": Permission.ANSWER,
    "GET /requests/{request_id}/rule-drafts": Permission.READ,
    "POST /requests/{request_id}/rules": Permission.ADMIN,
    "GET /runs": Permission.READ,
    "POST /runs": Permission.RUN,
    "GET /runs/{run_id}": Permission.READ,
    "POST /runs/{run_id}/resume": Permission.RUN,
    "POST /runs/{run_id}/cancel": Permission.RUN,
    "GET /workers": Permission.READ,
    "GET /grants": Permission.READ,
    "POST /grants/{grant_id}/revoke": Permission.ANSWER,
    "GET /audit": Permission.READ,
    "GET /grants/{grant_id}": Permission.READ,
    "GET /audit/verify": Permission.READ,
    "GET /people": Permission.READ,
    "GET /delegations": Permission.READ,
    "POST /delegations": Permission.ANSWER,
    "DELETE /delegations/{absent}/{deputy}": Permission.ANSWER,
    "POST /policy/judge": Permission.READ,
    "POST /policy/explain": Permission.READ,
    "GET /halt": Permission.READ,
    "POST /halt": Permission.ADMIN,
    "DELETE /halt": Permission.ADMIN,
    "GET /events": Permission.READ,
    "GET /events/poll": Permission.READ,
    "GET /openapi.json": None,
}
"""Written down a second time: a permission that changes by mistake is found here. Keys have a test of their own."""


def row(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


def test_the_table_is_what_was_agreed() -> None:
    table = {row(one): one.permission for one in ENDPOINTS if not one.path.startswith(("/tokens", "/me"))}
    assert table == ALLOWED
    assert len({one.name for one in ENDPOINTS}) == len(ENDPOINTS)


def test_nothing_is_routed_that_is_not_in_the_table(api_desk: ApiDesk) -> None:
    [api] = [one for one in api_desk.app.routes if isinstance(one, Mount) and one.path == "/api/v1"]
    routed = {
        f"{method} {one.path}"
        for one in api.routes
        if isinstance(one, Route)
        for method in (one.methods or set()) - {"HEAD"}
    }
    assert routed == {row(one) for one in ENDPOINTS}
    assert all(isinstance(one, Route) for one in api.routes)


async def test_every_row_lets_in_whoever_has_its_permission_and_nobody_else(api_desk: ApiDesk) -> None:
    for endpoint in ENDPOINTS:
        if endpoint.name == "stream_events":
            continue  # it never ends: tested where a real server is
        path = endpoint.path.replace("{request_id}", "x").replace("{run_id}", "x").replace("{grant_id}", "x")
        path = path.replace("{token_id}", "x").replace("{key_id}", "x")
        body = {"nonsense": True} if endpoint.body is not Nothing else None  # so that nothing is done
        anybody = await api_desk.client.request(endpoint.method, path, json=body)
        assert (anybody.status_code == 401) is (endpoint.permission is not None), row(endpoint)
        for may in SETS:
            reply = await api_desk.call(endpoint.method, path, body, may=",".join(may))
            refused = reply.status_code == 403 and "this needs the permission" in reply.text
            assert refused is (endpoint.permission is not None and endpoint.permission not in may), (row(endpoint), may)


async def test_a_page_of_another_site_changes_nothing_with_somebodys_session(api_desk: ApiDesk) -> None:
    asked = await api_desk.ask()
    path = f"/requests/{asked.id}/claim"
    session = {"x-session": "secret"}
    await api_desk.refused(403, "no-csrf-token", "POST", path, headers=session)
    await api_desk.refused(403, "no-csrf-token", "POST", path, headers={**session, "x-signoff-csrf": "guessed"})
    good = {**session, "x-signoff-csrf": "secret"}
    await api_desk.refused(403, "foreign-origin", "POST", path, headers={**good, "origin": "https://evil.test"})
    await api_desk.refused(403, "foreign-origin", "POST", path, headers={**good, "origin": "null"})
    await api_desk.post(path, headers={**good, "origin": "http://inbox.test"})
    await api_desk.get("/requests", headers=session)
