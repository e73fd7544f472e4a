"""The HTML pages of the web inbox, rendered on the server. Changes go through the API, sent by the pages' script."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from signoff.core.access import Permission
from signoff.core.card import names_rule
from signoff.core.moment import moment_text, span
from signoff.core.request_filter import RequestFilter
from signoff.core.safe_text import safe_text
from signoff.core.visible_text import visible
from signoff.errors import SignoffError, UnknownRequest
from signoff.server import page_words
from signoff.server.api_access import own_keys
from signoff.server.api_runs import MOST_LOOKED_AT
from signoff.server.card_page import CardPage, card_page
from signoff.server.charts import badge, days_chart, rate_bar
from signoff.server.endpoint import Dispatch
from signoff.server.identity import Identity
from signoff.server.insights import READING_STARTS, WORDS_A_MINUTE, insights, reading_time, seconds_of
from signoff.server.look_back import PAGE, history_page, past_requests, run_page
from signoff.server.problem import ProblemRaised, problem_of
from signoff.server.state import ServerState
from signoff.server.text_marks import marked
from signoff.server.waiting_list import MOST_COUNTED, inbox_filter, waiting_list, waiting_rows
from signoff.views.inbox_view import InboxFilter
from signoff.views.run_view import ALL, RUN_STATES, RunFilter, run_list

HERE = Path(__file__).parent
STATIC = HERE / "static"
TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
THEME_COOKIE = "signoff_theme"
THEMES = ("system", "light", "dark")
DAYS = (7, 30, 90)
MOST_SELECTED = 50
MOST_ROWS = 100
"""Maximum rows that are rendered again at once."""
LONGEST_SEARCH = 200
BY_APPLICATION = (
    "You are not signed in. Sign in to the application that this inbox is part of, then load this page again."
)
KEYS_COOKIE = "signoff_keys"
PARTS = frozenset({"list.html", "card.html", "selection.html"})
"""Templates of parts of a page."""
HEADERS = {"vary": "cookie"}

Draw: TypeAlias = Callable[["Viewer"], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Somebody who looks at a page."""

    state: ServerState
    request: Request
    identity: Identity

    @property
    def base(self) -> str:
        """The path of the pages: empty, or where an application mounted them."""
        return root_path(self.request)

    async def page(self, template: str, **values: Any) -> Response:
        """Render a page, or a part of one, in a thread, because a large one would block the event loop."""
        common = self._common()
        if template not in PARTS:
            common |= await self._waiting()
        text = await asyncio.to_thread(lambda: _templates().get_template(template).render(**common, **values))
        return Response(text, headers=HEADERS, media_type="text/html")

    async def _waiting(self) -> dict[str, Any]:
        """The number of waiting requests, for the title and the icon of a whole page."""
        count = await self.state.broker.store.read(lambda tx: tx.listings.waiting(most=MOST_COUNTED + 1))
        shown = min(count, MOST_COUNTED)
        return {"waiting": shown, "waiting_text": f"{shown}+" if count > shown else str(shown)}

    @property
    def words(self) -> str:
        """What is searched for."""
        return self.request.query_params.get("q", "")[:LONGEST_SEARCH].strip()

    @property
    def mine(self) -> bool:
        """Whether the list has only the requests that its reader may answer."""
        return self.request.query_params.get("mine") == "1"

    def listed(self, after: str = "") -> InboxFilter:
        """Which part of the waiting requests the page lists."""
        chosen = RequestFilter(text=self.words)
        return inbox_filter(self.state, self.identity.actor, mine=self.mine, chosen=chosen, after=after)

    def list_query(self, **more: str) -> str:
        """The query of the list as it is filtered now; empty if it is not."""
        return _query({"mine": "1" if self.mine else "", "q": self.words, **more})

    async def head(self) -> int:
        """The number of the last audit event.

        What is read afterwards includes it, and the page listens from there on.
        """
        return (await self.state.broker.store.read(lambda tx: tx.record.head()))[0]

    async def halted(self) -> str:
        """Return who halted, when and why, safe to show; empty if not halted."""
        return safe_text(await self.state.broker.switch.state())

    def _common(self) -> dict[str, Any]:
        theme = self.request.cookies.get(THEME_COOKIE, "")
        now = self.state.broker.clock.now()

        def when(moment: datetime) -> str:
            return moment_text(moment)

        def aged(moment: datetime) -> str:
            return span(abs((now - moment).total_seconds()))

        return {
            "base": self.base,
            "title_of_all": visible(self.state.title),
            "me": visible(self.identity.actor.name),
            "csrf": self.identity.csrf,
            "may_answer": Permission.ANSWER in self.identity.permissions,
            "may_admin": Permission.ADMIN in self.identity.permissions,
            "may_run": Permission.RUN in self.identity.permissions,
            "theme": theme if theme in THEMES else "system",
            "themes": THEMES,
            "asset": _asset,
            "now": now,
            "when": when,
            "aged": aged,
            "span": span,
            "iso": _iso,
            "list_query": self.list_query,
            "shortcuts": self.request.cookies.get(KEYS_COOKIE) != "off",
            "path": self.request.url.path.removeprefix(self.base),
        }


async def inbox(viewer: Viewer) -> Response:
    """The list, and the card of one request: the named one, or the first."""
    state = viewer.state
    head = await viewer.head()
    named = str(viewer.request.path_params.get("request_id", ""))
    listed = await waiting_list(state.broker, viewer.listed(viewer.request.query_params.get("after", "")))
    card: CardPage | None = None
    if named:
        card = await card_page(state, viewer.identity, named)
    elif rows := listed.page.requests:
        card = await card_page(state, viewer.identity, rows[0].id)
    return await viewer.page(
        "inbox.html",
        listed=listed,
        card=card,
        named=bool(named),
        mine=viewer.mine,
        words=viewer.words,
        halted=await viewer.halted(),
        head=head,
        workers=sorted(visible(one) for one in state.runs.workers()) if state.runs is not None else [],
    )


async def list_part(viewer: Viewer) -> Response:
    """The list alone, or the part of it after a request."""
    listed = await waiting_list(viewer.state.broker, viewer.listed(viewer.request.query_params.get("after", "")))
    return await viewer.page("list.html", listed=listed, selected="", workers=[], halted=await viewer.halted())


async def rows_part(viewer: Viewer) -> Response:
    """The rows of those of some requests that still wait, to render again after a change."""
    ids = list(dict.fromkeys(viewer.request.query_params.getlist("id")))[:MOST_ROWS]
    listed = await waiting_rows(viewer.state.broker, ids, viewer.listed())
    return await viewer.page("list.html", listed=listed, selected="", workers=[], halted=await viewer.halted())


async def card_part(viewer: Viewer) -> Response:
    """One card alone."""
    card = await card_page(viewer.state, viewer.identity, viewer.request.path_params["request_id"])
    return await viewer.page("card.html", card=card)


async def selection(viewer: Viewer) -> Response:
    """Several cards, to be read before they are answered together."""
    ids = list(dict.fromkeys(viewer.request.query_params.getlist("id")))
    cards: list[CardPage] = []
    for one in ids[:MOST_SELECTED]:
        with suppress(UnknownRequest):  # the others can still be answered
            cards.append(await card_page(viewer.state, viewer.identity, one))
    return await viewer.page("selection.html", cards=cards, selected=len(ids), most=MOST_SELECTED)


async def runs(viewer: Viewer) -> Response:
    query = viewer.request.query_params
    state, agent = query.get("state", ""), query.get("agent", "")[:LONGEST_SEARCH].strip()
    state = state if state in RUN_STATES else ALL
    wanted = RunFilter(
        limit=PAGE, state=state, agent=agent, text=viewer.words, before=query.get("before", ""), looks=MOST_LOOKED_AT
    )
    found = await run_list(viewer.state.broker, wanted)
    chosen = {"state": state if state != ALL else "", "agent": agent, "q": viewer.words}
    return await viewer.page(
        "runs.html",
        rows=found.runs,
        states=RUN_STATES,
        state=state,
        agent=agent,
        words=viewer.words,
        is_filtered=any(chosen.values()),
        older=_query({**chosen, "before": found.next}) if found.next else "",
        agents=sorted({one.name for one in found.runs if one.name}),
    )


async def run(viewer: Viewer) -> Response:
    head = await viewer.head()
    found = await run_page(viewer.state.broker, viewer.request.path_params["run_id"])
    return await viewer.page("run.html", run=found, can_resume=viewer.state.runs is not None, head=head)


async def history(viewer: Viewer) -> Response:
    query = viewer.request.query_params
    words, after = viewer.words, query.get("after", "")
    found = await history_page(viewer.state.broker, words, after)
    return await viewer.page("history.html", found=found, words=words, size=PAGE)


async def insights_page(viewer: Viewer) -> Response:
    wanted = viewer.request.query_params.get("days", "")
    days = int(wanted) if wanted.isdecimal() and int(wanted) in DAYS else DAYS[1]
    broker = viewer.state.broker
    requests = await past_requests(broker)
    found = await asyncio.to_thread(insights, requests, now=broker.clock.now(), days=days)
    chart = days_chart(
        found.days,
        title="Requests and decisions over time",
        about=f"{found.asked} asked, {found.decided} decided",
    )
    fast = [
        (one.id, safe_text(one.tool_name), seconds_of(one), reading_time(one).total_seconds(), visible(str(by)))
        for one in found.too_fast
        if one.decision is not None and (by := one.decision.by) is not None
    ]
    return await viewer.page(
        "insights.html",
        found=found,
        days=days,
        all_days=DAYS,
        chart=chart,
        rate_bar=rate_bar,
        fast=fast,
        visible=visible,
        looked_at=len(requests),
        reading=(int(READING_STARTS.total_seconds()), WORDS_A_MINUTE),
    )


async def settings(viewer: Viewer) -> Response:
    return await viewer.page(
        "settings.html",
        halted=await viewer.halted(),
        may_sign_out=not viewer.state.is_mounted,
        access=[] if viewer.state.is_mounted else await own_keys(viewer.state, viewer.identity),
        own_key=viewer.identity.key.id if viewer.identity.key is not None else "",
    )


PAGES: tuple[tuple[str, str, Draw], ...] = (
    ("/", "inbox", inbox),
    ("/requests/{request_id}", "request_page", inbox),
    ("/fragments/list", "list_part", list_part),
    ("/fragments/rows", "rows_part", rows_part),
    ("/fragments/requests/{request_id}", "card_part", card_part),
    ("/fragments/selection", "selection", selection),
    ("/runs", "runs_page", runs),
    ("/runs/{run_id}", "run_page", run),
    ("/history", "history", history),
    ("/insights", "insights", insights_page),
    ("/settings", "settings", settings),
)
"""Every page: its path, its name, and the function that renders it. All of them need the permission to read."""


def page_routes(dispatch: Dispatch) -> list[BaseRoute]:
    """Return the routes of the pages and of their static files."""

    def route(path: str, name: str, draw: Draw) -> Route:
        async def answer(request: Request) -> Response:
            return await _answered(dispatch, draw, request)

        return Route(path, answer, methods=["GET"], name=name)

    return [
        *(route(*one) for one in PAGES),
        Route("/favicon.svg", _favicon, name="favicon"),
        Route("/static/{name}", _static, name="static"),
    ]


def no_such_page(request: Request) -> Response:
    """Answer a path that does not exist."""
    return _problem_page(root_path(request), ProblemRaised(404, "not-found", "There is no such page."))


def root_path(request: Request) -> str:
    """The path of the pages: empty, or where an application mounted them."""
    return str(request.scope.get("root_path", "")).rstrip("/")


async def _answered(dispatch: Dispatch, draw: Draw, request: Request) -> Response:
    base = root_path(request)
    path = request.url.path.removeprefix(base)
    try:
        identity = await dispatch.admitted(request, Permission.READ, writes=False)
    except ProblemRaised as problem:
        if problem.status == 401 and dispatch.state.is_mounted:
            if dispatch.state.sign_in_url and not path.startswith("/fragments/"):
                return RedirectResponse(dispatch.state.sign_in_url, 303, headers=HEADERS)
            problem = ProblemRaised(401, problem.word, BY_APPLICATION)
        elif problem.status == 401 and not path.startswith("/fragments/"):
            here = path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"{base}/sign-in?next={quote(here, safe='/')}", 303, headers=HEADERS)
        return _problem_page(base, problem)
    viewer = Viewer(state=dispatch.state, request=request, identity=identity)
    try:
        return await draw(viewer)
    except SignoffError as error:
        return _problem_page(base, problem_of(error))


def _query(values: Mapping[str, str]) -> str:
    """Return a query with those values that are given; empty if none is."""
    given = {name: value for name, value in values.items() if value}
    return f"?{urlencode(given)}" if given else ""


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


def _problem_page(base: str, problem: ProblemRaised) -> Response:
    text = _templates().get_template("problem.html").render(base=base, problem=problem, asset=_asset)
    return Response(text, problem.status, headers={**problem.headers, **HEADERS}, media_type="text/html")


async def _favicon(request: Request) -> Response:
    wanted = request.query_params.get("n", "")
    count = int(wanted) if wanted.isdecimal() and len(wanted) < 7 else 0
    headers = {"cache-control": "max-age=86400"}
    return Response(badge(count), headers=headers, media_type="image/svg+xml")


async def _static(request: Request) -> Response:
    found = _files().get(request.path_params["name"])
    if found is None:
        return Response("there is no such file", 404, media_type="text/plain")
    body, kind, mark = found
    fresh = request.query_params.get("v") == mark
    caching = "max-age=31536000, immutable" if fresh else "no-cache"
    headers = {"cache-control": caching, "etag": f'"{mark}"'}
    if request.headers.get("if-none-match") == f'"{mark}"':
        return Response(status_code=304, headers=headers)
    return Response(body, headers={**headers, "content-type": kind})


@lru_cache(maxsize=1)
def _files() -> Mapping[str, tuple[bytes, str, str]]:
    """Static files by name; only these can be requested, so there is no path traversal."""
    found = {file.name: (file.read_bytes(), TYPES[file.suffix]) for file in STATIC.iterdir() if file.suffix in TYPES}
    return {name: (body, kind, sha256(body).hexdigest()[:16]) for name, (body, kind) in found.items()}


def _asset(name: str) -> str:
    """The path of a file, with a hash of its content for caching."""
    return f"/static/{name}?v={_files()[name][2]}"


@lru_cache(maxsize=1)
def _templates() -> Environment:
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        lstrip_blocks=True,  # the line break after a tag stays: neighbours on a line must not touch
    )
    words: dict[str, Any] = {name: value for name, value in vars(page_words).items() if name.isupper()}
    functions = (
        *(page_words.times, page_words.outcome_word, page_words.outcome_sentence, page_words.decided_by),
        *(marked, names_rule),
    )
    words.update({one.__name__: one for one in functions})
    found.globals.update(words)
    return found
