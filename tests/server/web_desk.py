"""A web inbox over a store in memory, and somebody who is signed in to it: for tests of pages as text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any, TypeVar

from starlette.requests import HTTPConnection
from starlette.testclient import TestClient

from signoff.config.settings import Person, Settings
from signoff.core.access import EVERYTHING, Permission
from signoff.core.people import Actor
from signoff.policy.engine import Policy
from signoff.server.app import application
from signoff.server.identity import Identity
from signoff.server.state import RunControl, ServerState
from signoff.testing import ANA, Office
from signoff.wiring.program_inbox import project_inbox

T = TypeVar("T")

VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())


@dataclass
class Element:
    """A start tag with what is around it."""

    tag: str
    attributes: dict[str, str]
    parents: tuple[Element, ...] = ()


class Page(HTMLParser):
    """A page as a browser reads it: its elements, and its texts with the elements they are in."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = text
        self.elements: list[Element] = []
        self.texts: list[tuple[str, tuple[Element, ...]]] = []
        self._open: list[Element] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, tuple(self._open))
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append((data, tuple(self._open)))

    @property
    def words(self) -> str:
        """All that is read on it, in one line."""
        return " ".join(" ".join(text for text, _ in self.texts).split())

    def all(self, tag: str = "", **attributes: str) -> list[Element]:
        """Elements by tag and attributes; `_` stands for `-`."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [
            one
            for one in self.elements
            if (not tag or one.tag == tag) and all(one.attributes.get(name) == value for name, value in wanted.items())
        ]

    def has(self, name: str) -> bool:
        """Whether any element has this attribute."""
        return any(name in one.attributes for one in self.elements)


@dataclass
class WebDesk:
    """The application, and a client of it."""

    office: Office = field(default_factory=Office)
    actor: Actor | None = ANA
    permissions: frozenset[Permission] = EVERYTHING
    title: str = "shop"
    runs: RunControl | None = None
    people: Mapping[str, Person] = field(default_factory=lambda: {"ana": Person(name="ana"), "ben": Person(name="ben")})

    def __post_init__(self) -> None:
        async def identify(connection: HTTPConnection) -> Identity | None:
            return Identity(actor=self.actor, permissions=self.permissions) if self.actor is not None else None

        broker = self.office.broker
        settings = Settings(policy=Policy(rules=()), people=self.people)
        self.state = ServerState(
            broker=broker,
            inbox=project_inbox(broker, settings, "web"),
            identify=identify,
            people=lambda: self.people,
            title=self.title,
            runs=self.runs,
        )
        self.client = TestClient(application(self.state), base_url="http://127.0.0.1", follow_redirects=False)

    def do(self, work: Awaitable[T]) -> T:
        """Do something at the office."""

        async def done() -> T:
            return await work

        return asyncio.run(done())

    def get(self, path: str, **headers: str) -> Page:
        """A page that is there."""
        answer = self.client.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        return Page(answer.text)

    def ask(self, **how: Any) -> str:
        """Ask about a call; the id of the request."""
        return self.do(self.office.ask(**how))[0].request.id
