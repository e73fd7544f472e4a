"""A server as people meet it: its doors, over a real broker, with a file of people that can be changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from html import unescape
from typing import Any

import httpx
from starlette.applications import Starlette
from tests.matches import varying

from signoff.broker import Broker
from signoff.config import Person, ServerEntry, no_settings
from signoff.core.access import EVERYTHING, AccessKey, AccessKind, Permission
from signoff.core.call import Call
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.ports import Store
from signoff.server.app import application
from signoff.server.endpoint import CSRF_HEADER
from signoff.server.guard import Guard
from signoff.server.key_identity import KeyIdentity
from signoff.server.oidc import OidcProvider
from signoff.server.rate_limit import RateLimit
from signoff.server.sign_in import SignIn
from signoff.server.state import RunControl, ServerState
from signoff.store.memory_store import MemoryStore
from signoff.testing import FakeClock
from signoff.wiring.program_inbox import project_inbox

LOCAL_HOST = "signoff-chance.localhost"
HERE = f"http://{LOCAL_HOST}:8420"
PUBLIC = "https://signoff.example.com"
ANA = Person(name="ana", roles=frozenset({"ops"}), accounts={"email": "ana@example.com"}, admin=True)
BEN = Person(name="ben", roles=frozenset({"ops"}), accounts={"email": "Ben@Example.com"})


@dataclass
class Doors:
    """A server. `people` is the file; change it, and it is another one."""

    people: dict[str, Person] = field(default_factory=lambda: {"ana": ANA, "ben": BEN})
    clock: Any = field(default_factory=FakeClock)
    store: Store = field(default_factory=lambda: MemoryStore(record=True))
    entry: ServerEntry = field(default_factory=lambda: ServerEntry(url=PUBLIC))
    provider: OidcProvider | None = None
    limit: RateLimit | None = None
    local: str = "otto"
    runs: Callable[[Broker], RunControl] | None = None

    def __post_init__(self) -> None:
        self.broker = Broker(self.store, self.clock)
        self.broker.people.follow(lambda: {name: person.roles for name, person in self.people.items()})
        self.keys = KeyIdentity(self.broker, lambda: self.people, local=self.local)
        self.state = state = ServerState(
            broker=self.broker,
            inbox=project_inbox(self.broker, no_settings(), "web"),
            identify=self.keys,
            people=lambda: self.people,
            runs=self.runs(self.broker) if self.runs is not None else None,
        )
        sign_in = SignIn(self.keys, lasts=self.entry.session, limit=self.limit, provider=self.provider)
        self.app: Starlette = application(state, sign_in)
        self.guarded = Guard(
            self.app, url=self.entry.url, local_host=LOCAL_HOST, trusted_proxy=self.entry.trusted_proxy
        )

    def take_off(self, name: str) -> None:
        del self.people[name]

    def change(self, name: str, **fields: Any) -> None:
        self.people[name] = replace(self.people[name], **fields)

    def browser(self, url: str = HERE, address: str = "127.0.0.1") -> httpx.AsyncClient:
        """Somebody's browser, or program: it keeps cookies, and follows nothing by itself."""
        transport = httpx.ASGITransport(self.guarded, client=(address, 50_000))
        if url.startswith("https:"):
            transport = httpx.ASGITransport(_Tls(self.guarded), client=(address, 50_000))
        return httpx.AsyncClient(transport=transport, base_url=url)

    async def link(self, name: str = "ana", **options: Any) -> str:
        """The secret of a link."""
        _, secret = await self.broker.access.issue(AccessKind.LINK, name, by="admin", lasts=_hours(24), **options)
        return secret

    async def token(
        self, name: str = "ana", permissions: frozenset[Permission] = EVERYTHING, **options: Any
    ) -> tuple[AccessKey, dict[str, str]]:
        """A token, and the header that it is sent in."""
        key, secret = await self.broker.access.issue(
            AccessKind.TOKEN, name, by="admin", lasts=_hours(24), permissions=permissions, **options
        )
        return key, {"Authorization": f"Bearer {secret}"}

    async def signed_in(self, name: str = "ana", url: str = HERE, address: str = "127.0.0.1") -> httpx.AsyncClient:
        """A browser that went through the whole of it, and sends what pages send with every change."""
        browser = self.browser(url, address)
        answer = await press(browser, await self.link(name))
        assert answer.status_code == 303, answer.text
        me = await browser.get("/api/v1/me")
        assert me.status_code == 200, me.text
        browser.headers[CSRF_HEADER] = me.json()["csrf"]
        return browser

    async def ask(self, *, need: Requirement | None = None, **fields: Any) -> ApprovalRequest:
        """A question that waits."""
        self._asked = getattr(self, "_asked", 0) + 1
        args = {"to": "bob", "amount": 5}
        call = Call(tool="pay", args=args, call_id=f"c{self._asked}", run_id="run")
        verdict = Verdict(effect=Effect.ASK, requirement=need or Requirement())
        request = ApprovalRequest(
            tool_call_id=call.call_id,
            tool_name="pay",
            args=args,
            call=call,
            may_vary=varying(call),
            verdict=verdict,
            **fields,
        )
        [opened] = await self.broker.open([request])
        return opened


class _Tls:
    """The connection is safe, as far as the application is told."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._app({**scope, "scheme": "https"}, receive, send)


async def press(browser: httpx.AsyncClient, secret: str, goal: str = "", **changed: str) -> httpx.Response:
    """Open a link and press the button on its page, with some fields changed."""
    page = await browser.get("/sign-in", params={"link": secret, **({"next": goal} if goal else {})})
    fields = {**fields_of(page.text), **changed}
    return await browser.post("/sign-in", data=fields)


def fields_of(page: str) -> dict[str, str]:
    """The hidden fields of a page's form."""
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page)
    return {name: unescape(value) for name, value in found}


def cookies_of(answer: httpx.Response) -> dict[str, tuple[str, frozenset[str]]]:
    """The cookies that an answer sets: each value, and its flags in small letters."""
    found: dict[str, tuple[str, frozenset[str]]] = {}
    for line in answer.headers.get_list("set-cookie"):
        first, *flags = [part.strip() for part in line.split(";")]
        name, _, value = first.partition("=")
        found[name] = (value, frozenset(flag.lower() for flag in flags))
    return found


def problem_of(answer: httpx.Response) -> str:
    """The word of a problem."""
    body: Mapping[str, Any] = answer.json()
    return str(body["type"]).removeprefix("urn:signoff:")


def _hours(number: int) -> Any:
    from datetime import timedelta

    return timedelta(hours=number)
