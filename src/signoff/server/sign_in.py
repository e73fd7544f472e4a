"""Sign in and out: by a link that works once, or with an OpenID provider.

Opening a link changes nothing, because chats and mail programs open it for a preview. The button on its page uses it
up.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from importlib.resources import files
from typing import Any, TypeAlias
from urllib.parse import parse_qs, quote

from jinja2 import Environment, StrictUndefined, Template
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from signoff.config.server_entry import SESSION
from signoff.core.access import AccessKey, AccessKind
from signoff.core.safe_text import safe_text
from signoff.core.visible_text import visible
from signoff.errors import WrongUse
from signoff.server.endpoint import CSRF_HEADER
from signoff.server.guard import IS_SECRET, PAGES
from signoff.server.key_identity import COOKIE, KeyIdentity, cookie_name, set_cookie
from signoff.server.oidc import Flow, OidcProvider, SignInRefused
from signoff.server.rate_limit import RateLimit
from signoff.server.seal import Seal, is_same

LONGEST_FORM = 8 * 1024
"""Bytes."""
LONGEST_PATH = 2_000
LONGEST_BROWSER = 120
_MOST_READ = 500
ELSEWHERE = (
    "The pages have their own address on this machine, http://signoff-….localhost, so that no other program gets their "
    "cookies. If you are signed in already, open them there: from your bookmarks or the history of your browser. A "
    "sign-in link leads there, too."
)
SPENT = "This link was already used, has expired or was revoked. Ask for a new one."
FORM_COOKIE = "signoff-form"
FLOW_COOKIE = "signoff-oidc"
_FORM_LASTS = timedelta(hours=1)
_FLOW_LASTS = timedelta(minutes=10)
_GONE = timedelta(0)
_FORM, _FIELD, _FLOW = "form", "form field", "oidc"

Fields: TypeAlias = "list[tuple[str, str]]"


@dataclass(frozen=True, slots=True)
class _ButtonForm:
    action: str
    button: str
    fields: Fields


class SignIn:
    """The pages for signing in and out."""

    def __init__(
        self,
        keys: KeyIdentity,
        *,
        title: str = "signoff",
        lasts: timedelta = SESSION,
        limit: RateLimit | None = None,
        provider: OidcProvider | None = None,
    ) -> None:
        """`lasts`: how long a browser stays signed in. `provider`: where people can sign in besides links."""
        self._keys = keys
        self._access = keys.broker.access
        self._clock = keys.broker.clock
        self._title = title
        self._lasts = lasts
        self._limit = limit or RateLimit()
        self._starts, self._answers = RateLimit(), RateLimit()
        """Rate limits of sign-ins at the provider, started and returned. Links work independently of these."""
        self._provider = provider

    @property
    def routes(self) -> list[BaseRoute]:
        pages = [
            Route("/sign-in", self._told(self.look), methods=["GET"]),
            Route("/sign-in", self._told(self.sign_in), methods=["POST"]),
            Route("/sign-in/style.css", self.style, methods=["GET"]),
            Route("/sign-out", self._told(self.ask_out), methods=["GET"]),
            Route("/sign-out", self._told(self.sign_out), methods=["POST"]),
        ]
        if self._provider is not None:
            pages.append(Route("/sign-in/oidc", self._told(self.go_to_provider), methods=["GET"]))
            pages.append(Route("/sign-in/oidc/callback", self._told(self.come_back), methods=["GET"]))
        return [*pages]

    def _told(self, handle: Any) -> Any:
        """Wrap a handler, so that a `SignInRefused` becomes a page."""

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except SignInRefused as refused:
                response = self._show(request, "Not signed in", status=refused.status, problem=str(refused))
                if refused.wait:
                    response.headers["Retry-After"] = str(refused.wait)
                return response

        return answer

    # --- by a link ---

    async def look(self, request: Request) -> Response:
        """The page of a link; without a link, the ways to sign in. Changes nothing."""
        goal = local_path(request.query_params.get("next", ""))
        secret = request.query_params.get("link", "")
        if not secret and not request.scope.get(IS_SECRET, True):  # perhaps signed in there
            return RedirectResponse(f"{request.scope[PAGES]}{_base(request)}{goal or '/'}", status_code=303)
        if not secret:
            return self._show(request, "Sign in", lines=self._ways(request), goal=goal)
        link = await self._access.find(AccessKind.LINK, secret)
        person = self._keys.person(link.holder) if link is not None else None
        if person is None:
            return self._show(request, "Sign in", status=403, problem=SPENT, goal=goal)
        if pages := request.scope.get(PAGES):  # who has the link may know the address of the pages
            return RedirectResponse(f"{pages}{_base(request)}/sign-in?{request.url.query}", status_code=303)
        seal = await self._keys.seal()
        held = seal.open(_FORM, request.cookies.get(cookie_name(request, FORM_COOKIE), ""))
        mark = held or secrets.token_urlsafe(16)
        fields = [("link", secret), ("next", goal), ("token", seal.mark(_FIELD, mark))]
        form = _ButtonForm("/sign-in", f"Sign in as {visible(person.name)}", fields)
        response = self._show(request, "Sign in", lines=("The link works once.",), form=form, goal=goal)
        set_cookie(response, request, FORM_COOKIE, seal.close(_FORM, mark), _FORM_LASTS)
        return response

    def _ways(self, request: Request) -> Sequence[str]:
        """How to sign in without a link."""
        if self._provider is not None:
            return ()
        way = (
            "Ask an admin for a personal link: signoff people link NAME."
            if self._keys.people()
            else "The server prints a link when it starts. For a new one: signoff people link NAME."
        )
        return (ELSEWHERE, way) if PAGES in request.scope else (way,)

    async def sign_in(self, request: Request) -> Response:
        """Use up a link for a new session."""
        self._refuse_foreign(request)  # first, so that requests forged by other sites do not count as attempts
        with self._counted(request, self._limit):
            return await self._signed_in(request)

    async def _signed_in(self, request: Request) -> Response:
        fields = await _form(request)
        seal = await self._keys.seal()
        mark = seal.open(_FORM, request.cookies.get(cookie_name(request, FORM_COOKIE), ""))
        if mark is None or not is_same(fields.get("token", ""), seal.mark(_FIELD, mark)):
            raise SignInRefused("This page is out of date, or your browser blocks cookies. Open the link again.", 403)
        secret = fields.get("link", "")
        link = await self._access.find(AccessKind.LINK, secret)
        if link is None or self._keys.person(link.holder) is None:
            raise SignInRefused(SPENT, 403)
        try:
            _, made = await self._access.redeem(secret, lasts=self._lasts, label=_browser(request))
        except WrongUse as error:  # somebody else used it first
            raise SignInRefused(SPENT, 403) from error
        response = await self._let_in(request, made, fields.get("next", ""))
        set_cookie(response, request, FORM_COOKIE, "", _GONE)
        return response

    async def _let_in(self, request: Request, secret: str, goal: str) -> Response:
        """Set the cookie of the new session, and revoke the session that the browser had before."""
        before = await self._session(request)
        if before is not None:
            await self._access.revoke(before.id, by=before.holder)
        response = RedirectResponse(_base(request) + (local_path(goal) or "/"), status_code=303)
        await self._keys.remember(response, request, secret, self._lasts)
        return response

    # --- at a provider ---

    async def go_to_provider(self, request: Request) -> Response:
        """Redirect the browser to the provider, with a state that binds the response to this browser."""
        provider = self._provider
        assert provider is not None, "there is no such route without one"
        if PAGES in request.scope:  # the provider redirects back to the address of the pages
            return RedirectResponse(f"{provider.home}/sign-in/oidc?{request.url.query}", status_code=303)
        is_ours = request.headers.get("sec-fetch-site", "none") in ("same-origin", "none")
        with self._counted(request, self._starts) if is_ours else nullcontext():
            return await self._sent_to(provider, request)

    async def _sent_to(self, provider: OidcProvider, request: Request) -> Response:
        seal, now = await self._keys.seal(), self._clock.now()
        flow = Flow.begin(seal, now + _FLOW_LASTS, local_path(request.query_params.get("next", "")))
        response = RedirectResponse(await provider.address(flow, now), status_code=303)
        set_cookie(response, request, FLOW_COOKIE, seal.close(_FLOW, flow.text), _FLOW_LASTS)
        return response

    async def come_back(self, request: Request) -> Response:
        """Handle the provider's response, and sign in the person that it names."""
        provider = self._provider
        assert provider is not None, "there is no such route without one"
        # First, so that only flows of this browser count as attempts.
        flow = self._flow(await self._keys.seal(), request)
        with self._counted(request, self._answers):
            return await self._answered(provider, flow, request)

    async def _answered(self, provider: OidcProvider, flow: Flow, request: Request) -> Response:
        claims = await provider.claims(flow, request.query_params, self._clock.now())
        person = provider.person(claims, self._keys.people())
        if person is None or self._keys.person(person.name) is None:
            raise SignInRefused("You are signed in there, but nobody here has that address or name.", 403)
        _, made = await self._access.issue(
            AccessKind.SESSION, person.name, by=person.name, lasts=self._lasts, label=_browser(request)
        )
        response = await self._let_in(request, made, flow.goal)
        set_cookie(response, request, FLOW_COOKIE, "", _GONE)
        return response

    def _flow(self, seal: Seal, request: Request) -> Flow:
        held = seal.open(_FLOW, request.cookies.get(cookie_name(request, FLOW_COOKIE), ""))
        flow = Flow.read(seal, held) if held is not None else None
        if flow is None or flow.until <= self._clock.now():
            raise SignInRefused("This took too long, or was started in another browser. Sign in again.", 403)
        if not is_same(request.query_params.get("state", ""), flow.state):
            raise SignInRefused("This response belongs to another sign-in. Sign in again.", 403)
        return flow

    # --- out ---

    async def ask_out(self, request: Request) -> Response:
        identity = await self._keys(request)
        if identity is None or not identity.csrf:
            return RedirectResponse(f"{_base(request)}/sign-in", status_code=303)
        form = _ButtonForm("/sign-out", "Sign out", [("csrf", identity.csrf)])
        lines = (f"You are {visible(identity.actor.name)}.",)
        return self._show(request, "Sign out", lines=lines, form=form)

    async def sign_out(self, request: Request) -> Response:
        """End the session of the browser."""
        fields = await _form(request)
        identity = await self._keys(request)
        if identity is not None and identity.key is not None and identity.csrf:
            self._refuse_foreign(request)
            sent = request.headers.get(CSRF_HEADER) or fields.get("csrf", "")
            if not is_same(sent, identity.csrf):
                raise SignInRefused("This page is out of date: load it again.", 403)
            await self._access.revoke(identity.key.id, by=identity.actor.name)
        response = RedirectResponse(f"{_base(request)}/sign-in", status_code=303)
        set_cookie(response, request, COOKIE, "", _GONE)
        return response

    # --- shared ---

    async def style(self, request: Request) -> Response:
        return Response(_file("style.css"), media_type="text/css", headers={"Cache-Control": "max-age=3600"})

    async def _session(self, request: Request) -> AccessKey | None:
        identity = await self._keys(request)
        is_session = identity is not None and identity.key is not None and identity.key.kind is AccessKind.SESSION
        return identity.key if identity is not None and is_session else None

    @contextmanager
    def _counted(self, request: Request, limit: RateLimit) -> Generator[None]:
        """Count an attempt within the block; raises `SignInRefused` (429) over the rate limit."""
        if wait := limit.wait(request.client.host if request.client is not None else ""):
            raise SignInRefused(f"Too many attempts. Wait {wait} seconds.", 429, wait=wait)
        try:
            yield
        except SignInRefused:
            limit.failed()
            raise

    def _refuse_foreign(self, request: Request) -> None:
        """Raise if a page of another site sent the form.

        Some browsers send no origin or `null`; then the token decides.
        """
        own = f"{request.url.scheme}://{request.headers.get('host', '')}"
        is_foreign = request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        if is_foreign or request.headers.get("origin", "null") not in ("null", own):
            raise SignInRefused("This request comes from another site.", 403)

    def _show(
        self,
        request: Request,
        heading: str,
        *,
        status: int = 200,
        problem: str = "",
        lines: Sequence[str] = (),
        form: _ButtonForm | None = None,
        goal: str = "",
    ) -> HTMLResponse:
        provider = None
        if self._provider is not None and (form is None or form.action == "/sign-in"):
            href = "/sign-in/oidc" + (f"?next={quote(goal)}" if goal else "")
            provider = {"href": href, "text": f"Sign in with {visible(self._provider.name)}"}
        text = _page().render(
            base=_base(request),
            title=visible(self._title),
            heading=heading,
            problem=safe_text(problem),
            lines=lines,
            form=form,
            provider=provider,
        )
        return HTMLResponse(text, status)


def sign_in_path(connection: HTTPConnection) -> str:
    """Where to redirect a browser that is not signed in, so that it returns to the same page."""
    query = f"?{connection.url.query}" if connection.url.query else ""
    base = _base(connection)
    path = connection.url.path.removeprefix(base)
    return f"{base}/sign-in?next={quote(path + query, safe='/')}"


def local_path(path: str) -> str:
    """Return the path if it stays on this site, else an empty text: no open redirect.

    Browsers treat `//host`, `/\\host` and `/<tab>/host` alike.
    """
    is_plain = path.isascii() and path.isprintable() and not any(char in path for char in " \\")
    is_here = path.startswith("/") and not path.startswith("//") and len(path) <= LONGEST_PATH
    return path if is_plain and is_here else ""


def _base(connection: HTTPConnection) -> str:
    """Where the application is mounted."""
    return str(connection.scope.get("root_path", "")).rstrip("/")


def _browser(request: Request) -> str:
    return browser_name(visible(request.headers.get("user-agent", "")[:_MOST_READ]))[:LONGEST_BROWSER]


_PROGRAMS = ("Edg", "EdgA", "EdgiOS", "OPR", "Firefox", "FxiOS", "CriOS", "Chrome", "HeadlessChrome", "Version")
"""What browsers call themselves, in the order that tells them apart: most call themselves several names."""
_NAMES = {
    **dict.fromkeys(("Edg", "EdgA", "EdgiOS"), "Edge"),
    **dict.fromkeys(("CriOS", "HeadlessChrome"), "Chrome"),
    "OPR": "Opera",
    "FxiOS": "Firefox",
    "Version": "Safari",
}
_SYSTEMS = {
    **{name: name for name in ("iPhone", "iPad", "Android", "Windows")},
    "CrOS": "ChromeOS",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}


def browser_name(agent: str) -> str:
    """Return a browser as people know it, `Firefox 140 on Linux`, or what it says of itself if that is not known."""
    found = (re.search(rf"\b{one}/(\d+)", agent) for one in _PROGRAMS)
    program = next(((one, match[1]) for one, match in zip(_PROGRAMS, found, strict=True) if match is not None), None)
    system = next((name for mark, name in _SYSTEMS.items() if mark in agent), "")
    if program is None or not system or (program[0] == "Version" and "Safari/" not in agent):
        return agent
    return f"{_NAMES.get(program[0], program[0])} {program[1]} on {system}"


@lru_cache(maxsize=1)
def _page() -> Template:
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True).from_string(_file("page.html"))


@lru_cache
def _file(name: str) -> str:
    return files("signoff.server").joinpath("sign_in_page", name).read_text("utf-8")


async def _form(request: Request) -> dict[str, str]:
    """Parse the fields of a form, the first value of each."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    size, parts = 0, list[bytes]()
    async for part in request.stream():
        size += len(part)
        if size > LONGEST_FORM:
            raise SignInRefused("That is too long.", 413)
        parts.append(part)
    if kind != "application/x-www-form-urlencoded":
        return {}
    try:
        found = parse_qs(b"".join(parts).decode("ascii"), strict_parsing=True, max_num_fields=20, errors="strict")
    except ValueError as error:
        raise SignInRefused("That is not a valid form.", 400) from error
    return {name: values[0] for name, values in found.items()}
