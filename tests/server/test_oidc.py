"""Signing in at an OpenID provider: a real one, on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from joserfc import jwk, jwt
from tests.server.doors import PUBLIC, Doors, cookies_of, press
from tests.server.openid import Claims, Provider, running

from signoff.broker.wall_clock import SystemClock
from signoff.config import Settings, load_settings
from signoff.core.access import AccessKind
from signoff.errors import MissingExtra, WrongFile
from signoff.server import oidc
from signoff.server.oidc import OidcProvider

pytestmark = [  # the provider uses what its library no longer likes
    pytest.mark.filterwarnings("ignore:get_jwt_config:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:authlib.jose module is deprecated:DeprecationWarning"),
]
REDIRECT = f"{PUBLIC}/sign-in/oidc/callback"
FILE = """\
people:
  ana: {{roles: [ops], email: Ana@example.com, admin: true}}
  ben: {{roles: [ops], email: ben@example.com}}
server:
  url: {public}
  oidc:
    issuer: {issuer}
    client_id: {client}
    client_secret: ${{OIDC_SECRET}}
    {more}
policy: [{{ask: "*"}}]
"""


class RunningClock(SystemClock):
    """The time of the provider, which goes on; it can be moved on besides."""

    ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead

    def advance(self, by: timedelta) -> None:
        self.ahead += by


@pytest.fixture(scope="module")
def running_provider() -> Iterator[Provider]:
    with running(REDIRECT) as provider:
        yield provider


@pytest.fixture
def provider(running_provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Provider:
    monkeypatch.setenv("OIDC_SECRET", running_provider.client_secret)
    monkeypatch.setenv("NO_PROXY", "localhost")
    running_provider.lies, running_provider.metadata, running_provider.odd = None, {}, None
    return running_provider


def settings(directory: Path, provider: Provider, more: str = "") -> Settings:
    file = directory / "signoff.yaml"
    file.write_text(FILE.format(public=PUBLIC, issuer=provider.issuer, client=provider.client_id, more=more))
    return load_settings(file)


@pytest.fixture
def made(tmp_path: Path, provider: Provider) -> Callable[..., Doors]:
    def make(more: str = "") -> Doors:
        read = settings(tmp_path, provider, more)
        assert read.server.oidc is not None
        return Doors(
            people=dict(read.people),
            entry=read.server,
            provider=OidcProvider(read.server.oidc, read.server.url),
            clock=RunningClock(),
        )

    return make


@pytest.fixture
def doors(made: Callable[..., Doors]) -> Doors:
    return made()


async def begun(browser: httpx.AsyncClient, **query: str) -> str:
    """Where the provider is, after the button was pressed."""
    answer = await browser.get("/sign-in/oidc", params=query)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def sign_in(
    doors: Doors, provider: Provider, subject: str, **query: str
) -> tuple[httpx.AsyncClient, httpx.Response]:
    """Go all the way; what comes of it."""
    browser = doors.browser(PUBLIC)
    back = await provider.allows(await begun(browser, **query), subject)
    return browser, await browser.get(back)


async def nobody_is_in(doors: Doors) -> bool:
    return not await doors.broker.access.list(kind=AccessKind.SESSION)


async def test_somebody_on_file_is_let_in(doors: Doors, provider: Provider) -> None:
    async with doors.browser(PUBLIC) as browser:
        page = await browser.get("/sign-in", params={"next": "/runs"})
        assert f"Sign in with {provider.issuer.removeprefix('http://')}" in page.text
        assert 'href="/sign-in/oidc?next=/runs"' in page.text
    before = len(provider.verified)
    browser, answer = await sign_in(doors, provider, "1", next="/runs")
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs")
    assert len(provider.verified) == before + 1, "the code came with its verifier"
    value, flags = cookies_of(answer)["__Host-signoff"]
    assert flags == {"httponly", "secure", "samesite=lax", "path=/", "max-age=43200"}
    told = (await browser.get("/api/v1/me")).json()
    assert (told["name"], told["roles"], "admin" in told["permissions"]) == ("ana", ["ops"], True)
    doors.take_off("ana")
    assert (await browser.get("/api/v1/me")).status_code == 401
    assert value.startswith("sos_")


async def test_what_is_sent_to_the_provider(doors: Doors, provider: Provider) -> None:
    async with doors.browser(PUBLIC) as browser:
        first, second = httpx.URL(await begun(browser)).params, httpx.URL(await begun(browser)).params
        answer = await browser.get("/sign-in/oidc")
    assert first["redirect_uri"] == REDIRECT and first["response_type"] == "code"
    assert "openid" in first["scope"].split() and first["code_challenge_method"] == "S256"
    for name in ("state", "nonce", "code_challenge"):
        assert len(first[name]) >= 43
        assert first[name] != second[name]
    assert provider.client_secret not in str(first)
    value, flags = cookies_of(answer)["__Host-signoff-oidc"]
    assert flags == {"httponly", "secure", "samesite=lax", "path=/", "max-age=600"}
    for name in ("state", "nonce"):
        assert first[name] not in value


@pytest.mark.parametrize(("subject", "why"), [("2", "not verified"), ("3", "nobody here"), ("4", "nobody here")])
async def test_others_are_not(doors: Doors, provider: Provider, subject: str, why: str) -> None:
    _, answer = await sign_in(doors, provider, subject)
    assert answer.status_code == 403
    assert why in answer.text
    assert "__Host-signoff" not in cookies_of(answer)
    assert await nobody_is_in(doors)


async def test_another_claim_is_somebodys_name(made: Callable[..., Doors], provider: Provider) -> None:
    doors = made("claim: preferred_username")
    browser, answer = await sign_in(doors, provider, "2")
    assert answer.status_code == 303
    assert (await browser.get("/api/v1/me")).json()["name"] == "ben"
    assert (await sign_in(doors, provider, "3"))[1].status_code == 403
    assert (await sign_in(doors, provider, "4"))[1].status_code == 403
    provider.lies = lambda claims: provider.signed({**claims, "preferred_username": "BEN "})
    assert (await sign_in(doors, provider, "2"))[1].status_code == 303
    for other in ("\uff42en", "be\u207f"):  # letters that fold into those of the name, in other people's accounts
        provider.lies = lambda claims, other=other: provider.signed({**claims, "preferred_username": other})
        assert (await sign_in(doors, provider, "2"))[1].status_code == 403


async def test_a_provider_that_signs_with_nothing_that_is_taken(doors: Doors, provider: Provider) -> None:
    provider.metadata = {"id_token_signing_alg_values_supported": ["HS256", "none"]}
    _, answer = await sign_in(doors, provider, "1")
    assert answer.status_code == 502
    assert await nobody_is_in(doors)


async def test_an_answer_is_for_the_browser_that_asked(doors: Doors, provider: Provider) -> None:
    async with doors.browser(PUBLIC) as attacker, doors.browser(PUBLIC) as victim:
        back = await provider.allows(await begun(attacker), "1")
        refused = await victim.get(back)
        assert refused.status_code == 403 and "another browser" in refused.text
        own = httpx.URL(await begun(victim)).params["state"]
        assert (await victim.get(back)).status_code == 403, "another state"
        code = httpx.URL(back).params["code"]
        stolen = await victim.get(REDIRECT, params={"code": code, "state": own})
        assert stolen.status_code == 502, "the state is theirs, but the verifier is not that of the code"
        for state in ("", "x", own[:-1]):
            assert (await victim.get(REDIRECT, params={"code": code, "state": state})).status_code == 403
    assert await nobody_is_in(doors)


async def test_an_answer_counts_once_and_not_for_long(doors: Doors, provider: Provider) -> None:
    browser = doors.browser(PUBLIC)
    back = await provider.allows(await begun(browser), "1")
    assert (await browser.get(back)).status_code == 303
    assert (await browser.get(back)).status_code == 403, "again"
    late = await provider.allows(await begun(browser), "1")
    doors.clock.advance(timedelta(minutes=10))
    assert (await browser.get(late)).status_code == 403
    assert len(await doors.broker.access.list(kind=AccessKind.SESSION)) == 1


async def test_a_session_that_was_planted_before_is_not_used(doors: Doors, provider: Provider) -> None:
    attacker = await doors.signed_in("ben", PUBLIC)
    browser = doors.browser(PUBLIC)
    browser.cookies.set("__Host-signoff", attacker.cookies["__Host-signoff"], domain="signoff.example.com")
    answer = await browser.get(await provider.allows(await begun(browser), "1"))
    assert cookies_of(answer)["__Host-signoff"][0] != attacker.cookies["__Host-signoff"]
    assert (await browser.get("/api/v1/me")).json()["name"] == "ana"
    assert (await attacker.get("/api/v1/me")).status_code == 401


async def test_who_says_no_there_is_not_let_in(doors: Doors, provider: Provider) -> None:
    async with doors.browser(PUBLIC) as browser:
        address = await begun(browser)
        back = await provider.allows(address, "1", action="deny")
        state = httpx.URL(address).params["state"]
        answer = await browser.get(back, params={"state": state, "error": "access_denied<script>"})
    assert answer.status_code == 403
    assert "access_denied&lt;script&gt;" in answer.text
    assert await nobody_is_in(doors)


def unsigned(provider: Provider, claims: Claims) -> str:
    header = jwt.encode({"alg": "HS256"}, claims, jwk.OctKey.import_key("x" * 32)).split(".")
    return f"eyJhbGciOiJub25lIn0.{header[1]}."


def by_secret(provider: Provider, claims: Claims) -> str:
    return jwt.encode({"alg": "HS256", "kid": "own"}, claims, jwk.OctKey.import_key(provider.client_secret))


def by_public_key(provider: Provider, claims: Claims) -> str:
    pem = provider.own_key.as_pem(private=False)
    return jwt.encode({"alg": "HS256", "kid": "own"}, claims, jwk.OctKey.import_key(pem.hex()))


def by_another(provider: Provider, claims: Claims) -> str:
    return jwt.encode({"alg": "RS256", "kid": "own"}, claims, jwk.RSAKey.generate_key(2048))


def saying(**changed: Any) -> Callable[[Provider, Claims], str]:
    def made(provider: Provider, claims: Claims) -> str:
        told = {name: value for name, value in {**claims, **changed}.items() if value is not None}
        return provider.signed(told)

    return made


LIES: dict[str, Callable[[Provider, Claims], str]] = {
    "no signature": unsigned,
    "signed with the client's secret": by_secret,
    "signed with the public key": by_public_key,
    "signed by another": by_another,
    "another nonce": saying(nonce="x"),
    "no nonce": saying(nonce=None),
    "for another client": saying(aud="other"),
    "for another client, by way of this one": saying(aud=["other"], azp="CLIENT"),
    "for nobody": saying(aud=None),
    "by another provider": saying(iss="https://evil.example"),
    "over": saying(exp=1_000_000_000),
    "without an end": saying(exp=None),
    "not yet": saying(iat=4_000_000_000, nbf=4_000_000_000),
    "nobody": saying(sub=None),
    "no token": lambda provider, claims: "x.y.z",
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_token_that_is_wrong_lets_nobody_in(doors: Doors, provider: Provider, lie: str) -> None:
    def lies(claims: Claims) -> str:
        token = LIES[lie](provider, {**claims, "client": provider.client_id})
        return saying(aud=["other"], azp=provider.client_id)(provider, claims) if "by way" in lie else token

    provider.lies = lies
    if "secret" in lie or "public key" in lie or "no signature" in lie:
        provider.metadata = {"id_token_signing_alg_values_supported": ["none", "HS256", "RS256"]}
    _, answer = await sign_in(doors, provider, "1")
    assert answer.status_code == 502
    assert "the server&#39;s log says why" in answer.text
    assert await nobody_is_in(doors)


async def test_the_same_made_over_without_a_lie_lets_somebody_in(doors: Doors, provider: Provider) -> None:
    provider.lies = lambda claims: provider.signed(claims)
    assert (await sign_in(doors, provider, "1"))[1].status_code == 303


@pytest.mark.parametrize(
    "verified", [1, 1.0, "1", "True", "yes", [True], {"true": True}, False, 0, "false", ""], ids=repr
)
async def test_an_address_counts_only_where_the_provider_says_true(
    doors: Doors, provider: Provider, verified: object
) -> None:
    provider.lies = lambda claims: saying(email="ana@example.com", email_verified=verified)(provider, claims)
    _, answer = await sign_in(doors, provider, "1")
    assert answer.status_code == 403
    assert await nobody_is_in(doors)


async def test_what_is_not_in_the_token_is_asked_for(doors: Doors, provider: Provider) -> None:
    provider.lies = lambda claims: saying(email=None, email_verified=None)(provider, claims)
    assert (await sign_in(doors, provider, "1"))[1].status_code == 303
    provider.lies = lambda claims: saying(email=None, email_verified=None, sub="2")(provider, claims)
    assert (await sign_in(doors, provider, "1"))[1].status_code == 502, "it spoke of two people"


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "ftp://evil.example"},
        {"jwks_uri": None},
        {"token_endpoint": 5},
    ],
)
async def test_a_provider_that_is_another_one(doors: Doors, provider: Provider, metadata: Claims) -> None:
    provider.metadata = metadata
    async with doors.browser(PUBLIC) as browser:
        answer = await browser.get("/sign-in/oidc")
    assert answer.status_code == 502
    assert not cookies_of(answer)


@pytest.mark.parametrize("door", ["openid-configuration", "/oauth2/token", "/jwks"])
@pytest.mark.parametrize(
    ("odd", "why"), [("endless", "more than 1,048,576 bytes"), ("packed", "packed"), ("slow", "no whole answer within")]
)
async def test_an_answer_without_an_end_is_given_up(
    doors: Doors,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    door: str,
    odd: str,
    why: str,
) -> None:
    if odd == "slow":
        monkeypatch.setattr(oidc, "TIMEOUT", 0.5)
    provider.over.clear()
    provider.odd = (door, odd)
    try:
        async with doors.browser(PUBLIC) as browser:
            answer = await browser.get("/sign-in/oidc")
            if door != "openid-configuration":
                assert answer.status_code == 303
                answer = await browser.get(await provider.allows(answer.headers["location"], "1"))
    finally:
        provider.over.set()
    assert answer.status_code == 502
    assert why in caplog.text
    assert await nobody_is_in(doors)


@pytest.mark.parametrize("ways", [5, "client_secret_basic", {}, None, []])
async def test_ways_to_sign_in_that_are_no_list_are_none(doors: Doors, provider: Provider, ways: object) -> None:
    provider.metadata = {"token_endpoint_auth_methods_supported": ways}
    _, answer = await sign_in(doors, provider, "1")
    assert answer.status_code == 303


async def test_an_answer_of_another_provider(doors: Doors, provider: Provider) -> None:
    async with doors.browser(PUBLIC) as browser:
        back = httpx.URL(await provider.allows(await begun(browser), "1"))
        answer = await browser.get(back.copy_merge_params({"iss": "https://evil.example"}))
        assert answer.status_code == 403
        assert (await browser.get(back.copy_merge_params({"iss": provider.issuer}))).status_code == 303


async def test_a_provider_that_is_away(doors: Doors, provider: Provider, tmp_path: Path) -> None:
    away = Provider("http://localhost:9", client_id="x")
    read = settings(tmp_path, away)
    assert read.server.oidc is not None
    doors = Doors(entry=read.server, provider=OidcProvider(read.server.oidc, read.server.url))
    async with doors.browser(PUBLIC) as browser:
        answer = await browser.get("/sign-in/oidc")
        assert (answer.status_code, "Traceback" in answer.text) == (502, False)
        assert (await browser.get("/sign-in")).status_code == 200, "links still work"


async def test_tries_are_counted_here_too(doors: Doors) -> None:
    async with doors.browser(PUBLIC) as browser:
        for _ in range(25):  # as any page can have a browser do
            assert (await browser.get("/sign-in/oidc/callback")).status_code == 403
            started = await browser.get("/sign-in/oidc", headers={"Sec-Fetch-Site": "cross-site"})
            assert started.status_code == 303
        state = httpx.URL(await begun(browser)).params["state"]
        back = {"state": state, "error": "access_denied"}
        codes = [(await browser.get("/sign-in/oidc/callback", params=back)).status_code for _ in range(30)]
        assert codes[:20] == [403] * 20 and 429 in codes  # time goes on meanwhile: one more in three seconds
        codes = [(await browser.get("/sign-in/oidc")).status_code for _ in range(30)]
        assert codes[:19] == [303] * 19 and 429 in codes
        while (refused := await browser.get("/sign-in/oidc")).status_code != 429:
            assert refused.status_code == 303
        assert int(refused.headers["retry-after"]) > 0
        assert (await press(browser, await doors.link("ben"))).status_code == 303, "links work all the same"


async def test_without_a_provider_there_is_no_such_page() -> None:
    doors = Doors()
    async with doors.browser() as browser:
        assert (await browser.get("/sign-in/oidc")).status_code == 404
        assert "signoff people link" in (await browser.get("/sign-in")).text


def test_the_secret_comes_from_the_environment(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = settings(tmp_path, provider).server
    assert read.oidc is not None
    monkeypatch.delenv("OIDC_SECRET")
    with pytest.raises(WrongFile, match="the environment has no OIDC_SECRET"):
        OidcProvider(read.oidc, read.url)


def test_without_the_extra_it_says_which_one(
    tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = settings(tmp_path, provider).server
    assert read.oidc is not None
    monkeypatch.setitem(sys.modules, "authlib.integrations.httpx_client", None)
    with pytest.raises(MissingExtra, match="oidc"):
        OidcProvider(read.oidc, read.url)
