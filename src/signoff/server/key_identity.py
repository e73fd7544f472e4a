"""Authenticate callers by access keys in the store: the token of a program, or the session cookie of a browser.

The key and the list of people are checked with every request: a key that was revoked or expired, and a person who was
removed from the list, have no access from then on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from hashlib import sha256

from starlette.requests import HTTPConnection
from starlette.responses import Response

from signoff.broker import Broker
from signoff.broker.secret_key import COOKIES, secret_key
from signoff.config import Person
from signoff.core.access import EVERYTHING, WORKING, AccessKey, AccessKind, Permission
from signoff.core.people import Actor, person_key
from signoff.server.identity import Identity
from signoff.server.seal import Seal

COOKIE = "signoff"
"""The session cookie on plain HTTP, only for this machine, under its own host name."""
_HOST = "__Host-"
"""Cookie name prefix: browsers accept it over HTTPS only, for this host and no other."""
_SESSION, _CSRF, _LOCAL_HOST = "session", "csrf", "local host"


class KeyIdentity:
    """An `Identify` based on the broker's access keys."""

    def __init__(
        self,
        broker: Broker,
        people: Callable[[], Mapping[str, Person]],
        *,
        local: str = "",
        look: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`people`: who is listed now. `local`: the user of this machine, the only person if nobody is listed.

        `look` reads again, without blocking, the files that list them; it is awaited before each request.
        """
        self._look = look
        self.broker = broker
        self._people = people
        self._local = local
        self._is_closed = bool(people())
        """Whether only listed people have access, even if nobody is listed any longer."""
        self._seal: Seal | None = None

    async def __call__(self, connection: HTTPConnection) -> Identity | None:
        """Authenticate a connection.

        A token takes precedence over a cookie; with a wrong token the cookie is not used.
        """
        if self._look is not None:
            await self._look()
        scheme, _, sent = connection.headers.get("authorization", "").strip().partition(" ")
        if scheme.lower() == "bearer":
            return await self._of_token(sent.strip())
        value = connection.cookies.get(cookie_name(connection))
        return await self._of_cookie(value) if value else None

    async def _of_token(self, secret: str) -> Identity | None:
        key = await self.broker.access.find(AccessKind.TOKEN, secret) if secret.startswith("sot_") else None
        return self._identity(key, "api") if key is not None else None

    async def _of_cookie(self, value: str) -> Identity | None:
        seal = await self.seal()
        secret = seal.open(_SESSION, value)
        key = await self.broker.access.find(AccessKind.SESSION, secret) if secret is not None else None
        return self._identity(key, "web", seal.mark(_CSRF, secret)) if key is not None and secret is not None else None

    def _identity(self, key: AccessKey, via: str, csrf: str = "") -> Identity | None:
        if key.is_program:
            return Identity(actor=key.actor(via), permissions=key.permissions, key=key, csrf=csrf)
        person = self.person(key.holder)
        if person is None:
            return None
        actor = Actor(name=person.name, roles=person.roles, via=via)
        return Identity(actor=actor, permissions=key.permissions & permissions_of(person), key=key, csrf=csrf)

    def person(self, name: str) -> Person | None:
        """Return the person if they have access: listed, or the local user if nobody was ever listed."""
        people = self.people()
        if self._is_closed:
            return next((one for one in people.values() if person_key(one.name) == person_key(name)), None)
        is_local = bool(self._local) and person_key(name) == person_key(self._local)
        return Person(name=self._local, admin=True) if is_local else None

    def people(self) -> Mapping[str, Person]:
        """Return who is listed now."""
        people = self._people()
        self._is_closed = self._is_closed or bool(people)
        return people

    async def seal(self) -> Seal:
        """Return what signs cookies; the same for every process on the store."""
        if self._seal is None:
            self._seal = Seal(await secret_key(self.broker.store, COOKIES))
        return self._seal

    async def local_host(self) -> str:
        """The host name of this machine under which browsers hold cookies over plain HTTP.

        It must not be guessable: a page could send a browser to this name on another port.
        """
        mark = (await self.seal()).mark(_LOCAL_HOST, "")
        return f"signoff-{sha256(mark.encode()).hexdigest()[:16]}.localhost"

    async def remember(self, response: Response, connection: HTTPConnection, secret: str, lasts: timedelta) -> None:
        """Set the session cookie."""
        set_cookie(response, connection, COOKIE, (await self.seal()).close(_SESSION, secret), lasts)


def permissions_of(person: Person) -> frozenset[Permission]:
    """Return the permissions of a person."""
    return EVERYTHING if person.admin else WORKING


def cookie_name(connection: HTTPConnection, name: str = COOKIE) -> str:
    """Return the name of a cookie for this connection."""
    return f"{_HOST}{name}" if is_secure(connection) else name


def is_secure(connection: HTTPConnection) -> bool:
    """Whether the connection uses HTTPS."""
    return connection.url.scheme in ("https", "wss")


def set_cookie(response: Response, connection: HTTPConnection, name: str, value: str, lasts: timedelta) -> None:
    """Set a cookie that scripts cannot read. An empty value deletes it.

    SameSite is lax, not strict, so that a link to a request in a chat or a mail opens signed in. No such link changes
    anything.
    """
    response.set_cookie(
        cookie_name(connection, name),
        value,
        max_age=int(lasts.total_seconds()) if value else 0,
        path="/",
        secure=is_secure(connection),
        httponly=True,
        samesite="lax",
    )
