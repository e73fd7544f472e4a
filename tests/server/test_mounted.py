"""An inbox inside somebody's application: its login, its pages around ours, and no keys of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.routing import Mount
from starlette.testclient import TestClient

from signoff import ApprovalDecision, Signoff
from signoff.core.people import Actor
from signoff.errors import NotEntitled
from signoff.server import inbox_app
from signoff.server.security_headers import SECURITY
from signoff.store.memory_store import MemoryStore


def user(connection: HTTPConnection) -> str | None:
    return connection.headers.get("x-user")


def client(**options: Any) -> TestClient:
    gate = Signoff([{"ask": "*"}], store=MemoryStore())
    inbox = inbox_app(gate, user=user, permissions=["read", "answer", "admin"], **options)
    app = Starlette(routes=[Mount("/approvals", inbox)])
    return TestClient(app, base_url="https://shop.test", follow_redirects=False)


@pytest.fixture
def mounted() -> Iterator[TestClient]:
    with client() as made:
        yield made


ANA = {"x-user": "ana"}
HALT = "/approvals/api/v1/halt"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://shop.test"}, 403),
        ({"Origin": "https://evil.test"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://shop.test"}, 200),
        ({"Origin": "https://shop.test", "Host": "shop.test:443"}, 200),
        ({"Origin": "https://shop.test", "Host": "SHOP.test"}, 200),
        ({"Origin": "https://shop.test:8443", "Host": "Shop.test:8443"}, 200),
        ({"Origin": "https://shop.test", "Host": "shop.test:80"}, 403),
        ({"Origin": "https://shop.test", "Host": "shop.test:8443"}, 403),
        ({"Origin": "http://shop.test", "Host": "shop.test:443"}, 403),
        ({}, 200),
    ],
)
def test_only_pages_of_the_application_change_something(
    mounted: TestClient, headers: dict[str, str], status: int
) -> None:
    answer = mounted.post(HALT, json={}, headers={**ANA, **headers})
    assert answer.status_code == status
    if status == 403 and "Sec-Fetch-Site" not in headers:
        assert f"is at {headers['Origin']}, and this server at https://shop.test" in answer.json()["detail"]
    read = mounted.get("/approvals/api/v1/requests", headers={**ANA, **headers})
    assert read.status_code == 200, "what only reads is no harm: other sites cannot see the answer"


def test_there_are_no_keys_of_ours(mounted: TestClient) -> None:
    for method, path in (("GET", "/tokens"), ("POST", "/tokens"), ("DELETE", "/tokens/x")):
        assert mounted.request(method, f"/approvals/api/v1{path}", json={}, headers=ANA).status_code == 404
    page = mounted.get("/approvals/settings", headers=ANA)
    assert page.status_code == 200 and "sign-out" not in page.text, "the application signs people out"


def test_every_answer_has_the_headers_of_our_own_server(mounted: TestClient) -> None:
    for path in ("/", "/favicon.svg?n=1", "/static/inbox.js", "/static/none.js", "/api/v1/requests", "/api/v1/none"):
        found = mounted.get(f"/approvals{path}", headers=ANA).headers
        assert "cache-control" in found, path
        assert {name: found.get(name) for name in SECURITY} == dict(SECURITY), path


def test_who_is_not_logged_in_is_told_so_in_words(mounted: TestClient) -> None:
    for path in ("/approvals/", "/approvals/runs", "/approvals/fragments/list"):
        page = mounted.get(path)
        assert (page.status_code, "Sign in to the application" in page.text) == (401, True)


def test_or_is_sent_to_where_the_application_signs_people_in() -> None:
    with client(sign_in_url="/login") as made:
        page = made.get("/approvals/runs")
        assert (page.status_code, page.headers["location"]) == (303, "/login")
        assert made.get("/approvals/fragments/list").status_code == 401


@pytest.mark.parametrize(
    ("name", "status"),
    [("ben", 200), ("Ben", 200), ("eve", 200), ("\uff42en", 403), ("\U0001d41ben", 403), (" ben ", 403)],
)
async def test_another_account_with_a_name_like_that_of_a_listed_person_is_not_that_person(
    name: str, status: int
) -> None:
    gate = Signoff([{"ask": "*", "by": "finance"}], store=MemoryStore(), people={"ben": ["finance"]})
    inbox = inbox_app(gate, user=lambda connection: name, permissions=["read", "answer"])
    with TestClient(Starlette(routes=[Mount("/approvals", inbox)]), base_url="https://shop.test") as made:
        read = made.get("/approvals/api/v1/requests")
    assert read.status_code == status
    if status == 403:
        assert "ben, who is listed" in read.json()["detail"]
        with pytest.raises(NotEntitled, match="ben, who is listed"):
            await gate.answer("any", ApprovalDecision(approved=True), by=Actor(name=name, via="api"))
