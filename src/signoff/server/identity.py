"""Who is at the other end of a request to the server, and what they may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from starlette.requests import HTTPConnection

from signoff.core.access import AccessKey, AccessKind, Permission
from signoff.core.people import Actor, ActorKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Somebody who is signed in, or a program with a token."""

    actor: Actor
    permissions: frozenset[Permission]
    key: AccessKey | None = None
    """What they came in with; None where an application around ours says who it is."""
    csrf: str = ""
    """What pages of this session send back with every change; empty where the browser sends nothing by itself."""

    @property
    def is_session(self) -> bool:
        """Whether a browser sends the key by itself, with requests that other sites make too."""
        return self.key is None or self.key.kind is AccessKind.SESSION

    @property
    def is_admin(self) -> bool:
        """Whether they are a person who may look after what is others'. A program is none, whatever its key may do."""
        return self.actor.kind is ActorKind.PERSON and Permission.ADMIN in self.permissions

    @property
    def holder(self) -> str:
        """For whom replies are kept. A program is never taken for a person of the same name."""
        return self.actor.key if self.actor.kind is ActorKind.PERSON else f"{self.actor.kind}:{self.actor.key}"


Identify: TypeAlias = Callable[[HTTPConnection], Awaitable[Identity | None]]
"""Says who is at the other end; None for nobody that is known."""


async def is_still_admitted(
    identify: Identify, connection: HTTPConnection, identity: Identity, permission: Permission
) -> bool:
    """Whether whoever opened a stream may go on listening: asked before each thing that is told there.

    Their key may be revoked or expired meanwhile, and they may be taken off the file, or have lost a permission.
    """
    now = await identify(connection)
    return now is not None and now.holder == identity.holder and permission in now.permissions
