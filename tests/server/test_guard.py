"""What stands before everything: the names that the server answers to, proxies, and headers."""

from __future__ import annotations

import asyncio
import re
import socket
from ipaddress import ip_network
from typing import Any

import httpx
import pytest
import uvicorn
from tests.server.doors import HERE, LOCAL_HOST, PUBLIC, Doors, cookies_of, fields_of, press, problem_of

from signoff.config import ServerEntry
from signoff.server.key_identity import KeyIdentity
from signoff.server.listen_address import UVICORN
from signoff.server.security_headers import POLICY

PROXY = "10.0.0.2"
BEHIND = ServerEntry(url=PUBLIC, trusted_proxy=(ip_network("10.0.0.0/24"),))


@pytest.fixture
def doors() -> Doors:
    return Doors()


def test_the_policy_lets_nothing_in_that_is_not_ours() -> None:
    assert "unsafe" not in POLICY and "http" not in POLICY and "*" not in POLICY
    assert POLICY == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )


@pytest.mark.parametrize(
    "path", ["/sign-in", "/sign-in/style.css", "/api/v1/me", "/api/v1/requests", "/nothing", "/sign-out"]
)
@pytest.mark.parametrize("host", [None, "evil.example"])
async def test_headers_of_everything(doors: Doors, path: str, host: str | None) -> None:
    for url in (HERE, PUBLIC):
        async with doors.browser(url) as browser:
            answer = await browser.get(path, headers={"Host": host} if host else {})
        found = answer.headers
        assert found["content-security-policy"] == POLICY
        assert found["x-content-type-options"] == "nosniff"
        assert found["referrer-policy"] == "no-referrer"
        assert found["x-frame-options"] == "DENY"
        for name, value in (("opener", "same-origin"), ("resource", "same-origin"), ("embedder", "require-corp")):
            assert found[f"cross-origin-{name}-policy"] == value
        assert found["cache-control"] == ("max-age=3600" if path.endswith(".css") and not host else "no-store")
        assert ("strict-transport-security" in found) is (url == PUBLIC)
        assert "access-control-allow-origin" not in found


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8420", "127.0.0.1.evil.example:8420", "localhost.evil.example:8420"),
        *(
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.1:8421",
            "localhost:9",
            "0.0.0.0:8420",
            "[::]:8420",
            "192.168.0.7:8420",
        ),
        *("", ":8420", "localhost:8420.", "localhost.:8420", "127.0.0.1:8420@evil.example", "127.0.0.1:8420:8420"),
        *("signoff.example.com", "signoff.example.com:8420", "2130706433:8420", "127.0.0.1:8420/"),
    ],
)
async def test_another_name_is_not_answered(doors: Doors, host: str) -> None:
    """DNS rebinding: the page of another site, whose name leads to this machine since a moment ago."""
    _, header = await doors.token()
    async with doors.browser() as browser:
        answer = await browser.get("/api/v1/me", headers={**header, "Host": host})
        assert (answer.status_code, problem_of(answer)) == (421, "wrong-host")
        assert "ana" not in answer.text
        page = await browser.get("/sign-in", params={"link": await doors.link()}, headers={"Host": host})
        assert page.status_code == 421 and not cookies_of(page)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8420", "localhost:8420", "LOCALHOST:8420", "[::1]:8420", "127.0.0.1:08420"]
)
async def test_names_of_this_machine(doors: Doors, host: str) -> None:
    _, header = await doors.token()
    async with doors.browser() as browser:
        answer = await browser.get("/api/v1/me", headers={**header, "Host": host})
    assert answer.status_code == (421 if ":0" in host else 200)


SHARED = ("127.0.0.1", "localhost", "[::1]", "127.0.0.5")
"""Whatever a browser holds for these is sent to every port of the machine."""


@pytest.mark.parametrize("name", SHARED)
async def test_no_cookie_counts_under_a_name_that_other_programs_share(doors: Doors, name: str) -> None:
    """Neither is one given: whoever listens at another port would be sent it, and could approve with it."""
    signed_in = await doors.signed_in()
    cookie = signed_in.cookies["signoff"]
    async with doors.browser(f"http://{name}:8420") as browser:
        held = {"Cookie": f"signoff={cookie}"}
        assert (await browser.get("/api/v1/me", headers=held)).status_code == 401
        page = await browser.get("/", headers=held)
        assert page.headers["location"].startswith("/sign-in?next=")
        told = await browser.get(page.headers["location"])
        assert "If you are signed in already, open them there" in told.text and LOCAL_HOST not in told.text, (
            "it is told to nobody"
        )
        link = await doors.link()
        opened = await browser.get("/sign-in", params={"link": link, "next": "/runs"})
        assert (opened.status_code, cookies_of(opened)) == (303, {})
        assert opened.headers["location"] == f"{HERE}/sign-in?link={link}&next=%2Fruns"
        assert (await browser.get("/sign-in", params={"link": "sol_made-up"})).status_code == 403
        assert (await browser.post("/sign-in", data={"link": link})).status_code == 403
        _, header = await doors.token()
        assert (await browser.get("/api/v1/me", headers=header)).json()["name"] == "ana", "programs go by tokens"
    assert (await press(doors.browser(), link)).status_code == 303, "it was not spent"


@pytest.mark.parametrize("name", ["signoff.localhost", "x.signoff-chance.localhost", "evil.localhost", ".localhost"])
async def test_another_name_below_localhost_is_not_answered(doors: Doors, name: str) -> None:
    async with doors.browser() as browser:
        assert (await browser.get("/sign-in", headers={"Host": f"{name}:8420"})).status_code == 421


async def test_a_plain_address_that_the_file_states_is_taken_at_its_word() -> None:
    doors = Doors(entry=ServerEntry(url="http://localhost:8420"))
    async with doors.browser("http://localhost:8420") as browser:
        assert (await press(browser, await doors.link())).status_code == 303
        assert (await browser.get("/api/v1/me")).status_code == 200
    link = await doors.link()
    async with doors.browser("http://127.0.0.1:8420") as other:  # where nobody is signed in
        page = await other.get("/runs?state=done")
        told = await other.get(page.headers["location"])
        assert told.headers["location"] == "http://localhost:8420/runs?state=done"
        opened = await other.get("/sign-in", params={"link": link})
        assert opened.headers["location"] == f"http://localhost:8420/sign-in?link={link}"


async def test_the_name_for_pages_is_the_same_for_a_store_and_no_other(doors: Doors) -> None:
    name = await doors.keys.local_host()
    assert re.fullmatch(r"signoff-[0-9a-f]{16}\.localhost", name)
    assert await KeyIdentity(doors.broker, dict).local_host() == name
    assert await Doors().keys.local_host() != name


async def test_a_name_of_this_machine_is_for_this_machine(doors: Doors) -> None:
    async with doors.browser(address="192.0.2.7") as elsewhere:
        assert (await elsewhere.get("/sign-in")).status_code == 421
    async with doors.browser(PUBLIC, address="192.0.2.7") as elsewhere:
        assert (await elsewhere.get("/sign-in")).status_code == 200


async def test_two_names_are_none(doors: Doors) -> None:
    async with doors.browser() as browser:
        request = browser.build_request("GET", "/sign-in")
        request.headers = httpx.Headers([("host", "127.0.0.1:8420"), ("host", "evil.example")])
        assert (await browser.send(request)).status_code == 421


async def test_the_public_name_is_answered_over_tls_only(doors: Doors) -> None:
    async with doors.browser("http://signoff.example.com") as plain:
        answer = await plain.get("/sign-in")
        assert answer.status_code == 421
        assert "X-Forwarded-Proto" in answer.json()["detail"], "it says what to do"


async def test_probes_are_answered_under_any_name(doors: Doors) -> None:
    async with doors.browser() as browser:
        answer = await browser.get("/healthz", headers={"Host": "10.1.2.3:8420"})
        assert answer.status_code != 421


SAID = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "signoff.example.com", "X-Forwarded-For": "203.0.113.9"}


async def test_a_proxy_that_is_named_is_believed() -> None:
    doors = Doors(entry=BEHIND)
    async with doors.browser("http://10.0.0.1:8420", address=PROXY) as browser:
        page = await browser.get("/sign-in", params={"link": await doors.link()}, headers=SAID)
        assert page.status_code == 200
        assert "__Host-signoff-form" in cookies_of(page)
        assert "strict-transport-security" in page.headers
        host = {"Host": "signoff.example.com", "X-Forwarded-Proto": "https"}
        assert (await browser.get("/sign-in", headers=host)).status_code == 200


async def test_nobody_else_is(doors: Doors) -> None:
    """Neither about the name, nor about the scheme, nor about who it is."""
    for app, address in ((doors, "127.0.0.1"), (doors, PROXY), (Doors(entry=BEHIND), "10.0.1.2")):
        async with app.browser("http://10.0.0.1:8420", address=address) as browser:
            assert (await browser.get("/sign-in", headers=SAID)).status_code == 421
    async with doors.browser() as browser:
        page = await browser.get("/sign-in", params={"link": await doors.link()}, headers=SAID)
        assert page.status_code == 200 and "signoff-form" in cookies_of(page), "it came over HTTP, whatever it says"
        codes = [
            (await browser.post("/sign-in", headers={"X-Forwarded-For": f"203.0.113.{number}"})).status_code
            for number in range(21)
        ]
        assert codes[-1] == 429, "one address, however many it names"


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("1.1.1.1, 203.0.113.9", "203.0.113.9"),
        ("1.1.1.1, 203.0.113.9, 10.0.0.7", "203.0.113.9"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("1.1.1.1, made-up", PROXY),
        ("", PROXY),
    ],
)
async def test_whom_tries_are_counted_for_behind_a_proxy(said: str, counted: str) -> None:
    """What a client wrote itself stands first; what the proxies saw stands last."""
    seen: list[str] = []

    class Noting:
        def wait(self, address: str) -> int:
            seen.append(address)
            return 1

        def failed(self) -> None:
            """Nothing."""

    doors = Doors(entry=BEHIND, limit=Noting())  # type: ignore[arg-type]
    async with doors.browser("http://10.0.0.1:8420", address=PROXY) as browser:
        headers = {**SAID, "X-Forwarded-For": said} if said else {k: v for k, v in SAID.items() if "For" not in k[-3:]}
        assert (await browser.post("/sign-in", headers=headers)).status_code == 429
    assert seen == [counted]


async def test_over_a_real_socket(doors: Doors) -> None:
    """As `signoff serve` runs it: no proxy is believed by uvicorn, which would believe this machine."""
    config = uvicorn.Config(doors.guarded, log_level="critical", lifespan="off", **UVICORN)
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))  # who comes before it is up waits in line
    port = listening.getsockname()[1]
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as browser:
            browser.headers["Host"] = f"{LOCAL_HOST}:{port}"
            page = await browser.get("/sign-in", params={"link": await doors.link()}, headers=SAID)
            assert page.status_code == 200
            assert "server" not in page.headers
            answer = await browser.post("/sign-in", data=fields_of(page.text))
            assert answer.status_code == 303 and "secure" not in str(cookies_of(answer)["signoff"])
            assert (await browser.get("/api/v1/me")).json()["name"] == "ana"
            assert (await browser.get("/api/v1/me", headers={"Host": f"evil.example:{port}"})).status_code == 421
        raw = await _raw(port, b"GET /sign-in HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nHost: evil.example\r\n\r\n" % port)
        assert re.match(rb"HTTP/1.1 4\d\d", raw)
        raw = await _raw(port, b"GET /sign-in HTTP/1.0\r\n\r\n")
        assert raw.startswith(b"HTTP/1.1 421")
    finally:
        server.should_exit = True
        await task


async def _raw(port: int, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    async with asyncio.timeout(10):
        found: Any = await reader.read(4096)
    writer.close()
    return found
