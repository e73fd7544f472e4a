"""The authenticated caller of an HTTP request, and their permissions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from starlette.requests import HTTPConnection

from signoff.core.access import AccessKey, AccessKind, Permission
from signoff.core.people import Actor, ActorKind
from signoff.desk.operations import Acting


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A person who is signed in, or a program with a token."""

    actor: Actor
    permissions: frozenset[Permission]
    key: AccessKey | None = None
    """The access key they used; None if a mounting application authenticates them."""
    csrf: str = ""
    """The CSRF token that pages of this session send with every change; empty if the browser sends no credentials by
    itself."""

    @property
    def is_session(self) -> bool:
        """Whether a browser sends the credentials by itself, also with requests that other sites trigger (CSRF)."""
        return self.key is None or self.key.kind is AccessKind.SESSION

    @property
    def is_admin(self) -> bool:
        """Whether they are a person with the permission `admin`.

        A program is never an admin, whatever its key permits.
        """
        return self.actor.kind is ActorKind.PERSON and Permission.ADMIN in self.permissions

    @property
    def acting(self) -> Acting:
        """Who does something, as operations take it."""
        return Acting(self.actor, self.is_admin)

    @property
    def holder(self) -> str:
        """Whose idempotency keys and listeners these are.

        A program is never confused with a person of the same name.
        """
        return self.actor.key if self.actor.kind is ActorKind.PERSON else f"{self.actor.kind}:{self.actor.key}"


Identify: TypeAlias = Callable[[HTTPConnection], Awaitable[Identity | None]]
"""Authenticates a connection; None if the caller is not known."""


async def is_still_admitted(
    identify: Identify, connection: HTTPConnection, identity: Identity, permission: Permission
) -> bool:
    """Whether the client of an open stream still has access; checked again and again while it is open.

    Meanwhile its key may be revoked or expire, and the person may be removed from the list or lose a permission.
    """
    now = await identify(connection)
    return now is not None and now.holder == identity.holder and permission in now.permissions
