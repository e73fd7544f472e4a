"""Signing in by a link, and out: what a browser is given, and what nobody can do with it."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta

import httpx
import pytest
from tests.server.doors import HERE, LOCAL_HOST, PUBLIC, Doors, cookies_of, fields_of, press

from signoff.core.access import AccessKind
from signoff.server.rate_limit import RateLimit
from signoff.server.sign_in import browser_name, local_path, sign_in_path
from signoff.testing import FakeClock

CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.fixture
def doors() -> Doors:
    return Doors()


async def sessions(doors: Doors) -> list[str]:
    """Who is signed in."""
    keys = await doors.broker.access.list(kind=AccessKind.SESSION)
    return [one.holder for one in keys if not one.refusal(doors.clock.now())]


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (f"{CHROME} Chrome/140.0.0.0 Safari/537.36", "Chrome 140 on Linux"),
        (f"{CHROME} HeadlessChrome/156.0.0.0 Safari/537.36", "Chrome 156 on Linux"),
        (
            f"{CHROME} Chrome/140.0.0.0 Safari/537.36 Edg/140.0.1.2".replace("X11; Linux x86_64", "Windows NT 10.0"),
            "Edge 140 on Windows",
        ),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox 140 on Linux"),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
            "Version/18.0 Mobile/15E148 Safari/604.1",
            "Safari 18 on iPhone",
        ),
        ("curl/8.1", "curl/8.1"),
        ("Version/3 of a program on Linux", "Version/3 of a program on Linux"),
        ("", ""),
    ],
)
def test_browsers_are_called_what_people_call_them(agent: str, name: str) -> None:
    assert browser_name(agent) == name


async def test_a_link_that_is_only_looked_at_does_nothing(doors: Doors) -> None:
    secret = await doors.link()
    async with doors.browser() as preview:
        for method in ("GET", "HEAD", "GET"):
            page = await preview.request(method, "/sign-in", params={"link": secret})
            assert page.status_code == 200
            assert not {"signoff", "__Host-signoff"} & cookies_of(page).keys()
    assert await sessions(doors) == []
    async with doors.browser() as person:
        answer = await press(person, secret)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert (await person.get("/api/v1/me")).json()["name"] == "ana"


async def test_the_page_says_who_signs_in_and_has_nothing_inline(doors: Doors) -> None:
    async with doors.browser() as browser:
        page = await browser.get("/sign-in", params={"link": await doors.link("ben"), "next": '/"><script>x</script>'})
        assert "Sign in as ben" in page.text
        assert not re.search(r"<script|<style|style=|\son\w+=", page.text)
        [style] = re.findall(r'<link rel="stylesheet" href="([^"]+)">', page.text)
        assert (await browser.get(style)).headers["content-type"].startswith("text/css")


@pytest.mark.parametrize(
    ("url", "name", "flags"),
    [
        (HERE, "signoff", {"httponly", "samesite=lax", "path=/", "max-age=43200"}),
        (PUBLIC, "__Host-signoff", {"httponly", "samesite=lax", "path=/", "max-age=43200", "secure"}),
    ],
)
async def test_the_flags_of_the_cookies(doors: Doors, url: str, name: str, flags: set[str]) -> None:
    async with doors.browser(url) as browser:
        page = await browser.get("/sign-in", params={"link": await doors.link()})
        [(form, (_, form_flags))] = cookies_of(page).items()
        assert form == f"{name}-form"
        assert form_flags - {"max-age=3600"} == flags - {"max-age=43200"}
        answer = await browser.post("/sign-in", data=fields_of(page.text))
        found = cookies_of(answer)
        assert found[name][1] == flags
        assert found[f"{name}-form"][0] in ("", '""'), "it is not needed any longer"
        secret = found[name][0]
    assert secret.startswith("sos_") and "." in secret


async def test_a_link_works_once(doors: Doors) -> None:
    secret = await doors.link()
    async with doors.browser() as first, doors.browser() as second:
        page = await second.get("/sign-in", params={"link": secret})
        assert (await press(first, secret)).status_code == 303
        late = await second.post("/sign-in", data=fields_of(page.text))
        assert late.status_code == 403
        assert "already used" in late.text
        assert "signoff" not in cookies_of(late)
        assert (await second.get("/sign-in", params={"link": secret})).status_code == 403
    assert await sessions(doors) == ["ana"]


async def test_of_many_who_press_at_once_one_is_let_in(doors: Doors) -> None:
    secret = await doors.link()
    browsers = [doors.browser() for _ in range(8)]
    answers = await asyncio.gather(*(press(one, secret) for one in browsers))
    assert sorted(one.status_code for one in answers) == [303, *[403] * 7]
    assert await sessions(doors) == ["ana"]
    for one in browsers:
        await one.aclose()


async def test_links_that_let_nobody_in(doors: Doors) -> None:
    expired, revoked, left = await doors.link(), await doors.link(), await doors.link("ben")
    keys = await doors.broker.access.list(kind=AccessKind.LINK)
    await doors.broker.access.revoke(keys[1].id, by="ana")
    doors.take_off("ben")
    async with doors.browser() as browser:
        good = fields_of((await browser.get("/sign-in", params={"link": expired})).text)
        for secret in (revoked, left, "sol_made-up", keys[0].id):
            assert (await browser.get("/sign-in", params={"link": secret})).status_code == 403
            assert (await browser.post("/sign-in", data={**good, "link": secret})).status_code == 403
        doors.clock.advance(timedelta(hours=25))
        assert (await browser.post("/sign-in", data=good)).status_code == 403
        assert (await browser.get("/sign-in", params={"link": expired})).status_code == 403
    assert await sessions(doors) == []


async def test_a_session_is_no_link_and_a_token_none_either(doors: Doors) -> None:
    signed_in = await doors.signed_in()
    session = signed_in.cookies["signoff"].partition(".")[0]
    _, header = await doors.token()
    async with doors.browser() as browser:
        good = fields_of((await browser.get("/sign-in", params={"link": await doors.link()})).text)
        for secret in (session, header["Authorization"].removeprefix("Bearer ")):
            assert (await browser.post("/sign-in", data={**good, "link": secret})).status_code == 403


async def test_a_session_that_somebody_planted_is_not_the_one_that_is_used(doors: Doors) -> None:
    attacker = await doors.signed_in("ben")
    planted = attacker.cookies["signoff"]
    async with doors.browser() as victim:
        victim.cookies.set("signoff", planted, domain=LOCAL_HOST)
        answer = await press(victim, await doors.link("ana"))
        made = cookies_of(answer)["signoff"][0]
        assert made != planted
        assert (await victim.get("/api/v1/me")).json()["name"] == "ana"
    assert (await attacker.get("/api/v1/me")).status_code == 401, "what the browser held before has ended"
    assert await sessions(doors) == ["ana"]


async def test_each_sign_in_is_a_session_of_its_own(doors: Doors) -> None:
    first = await doors.signed_in()
    before = first.cookies["signoff"]
    second = await doors.signed_in()
    assert before != second.cookies["signoff"]
    again = await press(first, await doors.link())
    assert cookies_of(again)["signoff"][0] not in (before, second.cookies["signoff"])
    async with doors.browser() as thief:
        thief.cookies.set("signoff", before, domain=LOCAL_HOST)
        assert (await thief.get("/api/v1/me")).status_code == 401
    assert (await second.get("/api/v1/me")).status_code == 200, "that one is another browser"


async def test_no_other_site_signs_a_browser_in(doors: Doors) -> None:
    """As whom somebody is signed in decides whose name is under their answers."""
    secret = await doors.link("ben")
    async with doors.browser() as attacker, doors.browser() as victim:
        form = fields_of((await attacker.get("/sign-in", params={"link": secret})).text)
        assert (await victim.post("/sign-in", data=form)).status_code == 403, "it never saw the page"
        own = fields_of((await victim.get("/sign-in", params={"link": secret})).text)
        assert (await victim.post("/sign-in", data=form)).status_code == 403, "the page was another's"
        assert (await victim.post("/sign-in", data={**own, "token": ""})).status_code == 403
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": "http://127.0.0.1:3000"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ):
            refused = await victim.post("/sign-in", data=own, headers=headers)
            assert refused.status_code == 403, headers
            assert "signoff" not in cookies_of(refused)
        # Browsers say `null` here, because no page of ours says where it stands.
        for headers in ({"Origin": "null", "Sec-Fetch-Site": "same-origin"},):
            assert (await victim.post("/sign-in", data=own, headers=headers)).status_code == 303


AWAY = [
    *("https://evil.example", "//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example"),
    *("/\t/evil.example", "/\n/evil.example", "\t//evil.example", "javascript:alert(1)", "evil.example", ""),
    *("/ok\r\nSet-Cookie: signoff=x", "/%0d\n", "/é", "/" + "a" * 3000, " /x", "http:/evil.example"),
]


@pytest.mark.parametrize("goal", AWAY)
async def test_nobody_is_sent_away(doors: Doors, goal: str) -> None:
    assert local_path(goal) == ""
    async with doors.browser() as browser:
        answer = await press(browser, await doors.link(), goal)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        answer = await press(browser, await doors.link(), next=goal)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert len(answer.headers.get_list("set-cookie")) == 2


async def test_whoever_is_not_signed_in_comes_back_to_where_they_were(doors: Doors) -> None:
    from starlette.requests import Request

    scope = {"type": "http", "path": "/requests/abc", "query_string": b"tab=diff&x=%2F", "headers": [], "root_path": ""}
    path = sign_in_path(Request({**scope, "server": ("127.0.0.1", 8420), "scheme": "http", "method": "GET"}))
    goal = httpx.URL(path).params["next"]
    assert goal == "/requests/abc?tab=diff&x=%2F"
    async with doors.browser() as browser:
        assert (await press(browser, await doors.link(), goal)).headers["location"] == goal


async def test_signing_out_ends_the_session_everywhere(doors: Doors) -> None:
    browser = await doors.signed_in()
    held = browser.cookies["signoff"]
    page = await browser.get("/sign-out")
    assert "You are ana." in page.text
    assert await sessions(doors) == ["ana"], "looking ends nothing"
    del browser.headers["x-signoff-csrf"]
    assert (await browser.post("/sign-out", data={"csrf": "wrong"})).status_code == 403
    assert (await browser.post("/sign-out")).status_code == 403
    foreign = await browser.post("/sign-out", data=fields_of(page.text), headers={"Origin": "https://evil.example"})
    assert foreign.status_code == 403
    assert await sessions(doors) == ["ana"]
    out = await browser.post("/sign-out", data=fields_of(page.text))
    assert (out.status_code, out.headers["location"]) == (303, "/sign-in")
    assert await sessions(doors) == []
    async with doors.browser() as thief:
        thief.cookies.set("signoff", held, domain=LOCAL_HOST)
        assert (await thief.get("/api/v1/me")).status_code == 401


async def test_forms_that_are_none(doors: Doors) -> None:
    async with doors.browser() as browser:
        long = await browser.post("/sign-in", data={"link": "x" * 10_000})
        assert long.status_code == 413
        kind = {"content-type": "application/x-www-form-urlencoded"}
        for content in (b"%%%", b"\xff\xfe", b"&".join(b"a%d=1" % number for number in range(50))):
            assert (await browser.post("/sign-in", content=content, headers=kind)).status_code in (400, 403)
        assert (await browser.post("/sign-in", json={"link": await doors.link()})).status_code == 403


async def test_tries_are_counted_for_each_address() -> None:
    clock = FakeClock()
    doors = Doors(limit=RateLimit(seconds=lambda: clock.now().timestamp()))
    async with doors.browser() as busy, doors.browser(PUBLIC, "203.0.113.9") as other:
        codes = [(await busy.post("/sign-in", data={"link": "sol_guess"})).status_code for _ in range(21)]
        assert codes == [*[403] * 20, 429]
        refused = await busy.post("/sign-in", data={"link": "sol_guess"})
        wait = int(refused.headers["retry-after"])
        assert 1 <= wait <= 60
        assert f"Wait {wait} seconds" in refused.text
        assert (await press(other, await doors.link())).status_code == 303, "somebody else"
        assert (await press(busy, secret := await doors.link())).status_code == 429
        clock.advance(wait)
        assert (await press(busy, secret)).status_code == 303


async def test_a_clock_that_is_set_back_keeps_nobody_out(doors: Doors) -> None:
    async with doors.browser() as browser:
        assert (await press(browser, await doors.link())).status_code == 303
        doors.clock.advance(-3600)
        assert (await press(browser, await doors.link())).status_code == 303


async def test_what_a_page_of_another_site_sends_is_nobodys_try(doors: Doors) -> None:
    async with doors.browser() as browser:
        for _ in range(25):
            sent = await browser.post("/sign-in", data={}, headers={"Sec-Fetch-Site": "cross-site"})
            assert sent.status_code == 403
        assert (await press(browser, await doors.link())).status_code == 303


def test_failures_of_all_hold_up_who_tried_before_and_nobody_else() -> None:
    clock = FakeClock()
    limit = RateLimit(seconds=lambda: clock.now().timestamp(), each=20, together=10, addresses=50)
    assert not any(limit.wait(f"203.0.113.{number}") for number in range(120)), "who is let in holds up nobody"
    assert limit.wait("192.0.2.9") == 0
    for number in range(120):
        assert limit.wait(f"198.51.100.{number}") == 0
        limit.failed()
    assert limit.wait("198.51.100.119") > 0
    assert limit.wait("192.0.2.1") == 0, "for the first time"
    assert len(limit._full) <= 51
    clock.advance(3600)
    assert limit.wait("198.51.100.119") == 0


def test_one_network_of_ipv6_is_one_address() -> None:
    limit = RateLimit(seconds=lambda: 1.0, each=2)
    assert [limit.wait(f"2001:db8::{number}") for number in range(3)] == [0, 0, 30]
    assert limit.wait("2001:db8:0:1::1") == 0
    assert [limit.wait(one) for one in ("::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1")] == [0, 0, 30]
