"""Access keys for a server: sign-in links, sessions, and tokens of programs. A store holds digests, no secrets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256

from signoff.core.people import Actor, ActorKind


class AccessKind(StrEnum):
    """The kind of an access key."""

    LINK = "link"
    """A sign-in link. It works once."""
    SESSION = "session"
    """A browser that is signed in."""
    TOKEN = "token"
    """For programs, and commands with `--server`."""
    INSTANCE = "instance"
    """For a remote agent, to have its calls judged by the Agent Approval Protocol, and for nothing else."""


class Permission(StrEnum):
    """What a key permits. The rule that asks decides who may answer a request, not the permissions."""

    READ = "read"
    ANSWER = "answer"
    """Vote, comment, take and hand over requests, report outcomes of calls, revoke grants (denials as entitled)."""
    RUN = "run"
    """Start, resume and cancel runs."""
    ADMIN = "admin"
    """Halt, and manage the keys of others."""
    PROVISION = "provision"
    """Create, rename and revoke instances of the Agent Approval Protocol. Only keys of programs have it."""
    REQUEST = "request"
    """Have calls judged by the Agent Approval Protocol. Only keys of instances have it."""


EVERYTHING = frozenset({Permission.READ, Permission.ANSWER, Permission.RUN, Permission.ADMIN})
"""The most that people may do."""
WORKING = EVERYTHING - {Permission.ADMIN}
"""What people may do who are not admins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    """An access key (link, session or token), without its secret."""

    id: str
    kind: AccessKind
    digest: str
    """Digest of the secret, by `digest_of`."""
    holder: str
    """The name of the person or program that it belongs to."""
    is_program: bool = False
    """An answer of a program never counts as a person's."""
    label: str = ""
    """What it is for, in its owner's words; for a session, the browser."""
    permissions: frozenset[Permission] = EVERYTHING
    created_at: datetime
    created_by: str = ""
    expires_at: datetime | None = None
    used_at: datetime | None = None
    """When it was last used. A link that was used no longer works."""
    revoked_at: datetime | None = None

    def refusal(self, now: datetime) -> str:
        """Why it is no longer valid (revoked, expired, used); empty if it is valid."""
        if self.revoked_at is not None:
            return f"this {self.kind} was revoked"
        if self.expires_at is not None and self.expires_at <= now:
            return f"this {self.kind} has expired"
        if self.kind is AccessKind.LINK and self.used_at is not None:
            return "this link was used before"
        return ""

    def actor(self, via: str) -> Actor:
        """The actor that acts with this key."""
        kind = ActorKind.SCRIPT if self.is_program else ActorKind.PERSON
        return Actor(name=self.holder, kind=kind, via=via)


def digest_of(secret: str) -> str:
    """Hash a secret for the store. It has 256 random bits, so a slow password hash is not needed."""
    return sha256(secret.encode()).hexdigest()


def link_url(server: str, secret: str) -> str:
    """The URL to sign in with a link, on a server at this address."""
    return f"{server.rstrip('/')}/sign-in?link={secret}"
