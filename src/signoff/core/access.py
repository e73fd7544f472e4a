"""What lets somebody in: links to sign in with, sessions, and tokens of programs. A store holds digests, no secrets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256

from signoff.core.people import Actor, ActorKind


class AccessKind(StrEnum):
    """What kind of key it is."""

    LINK = "link"
    """Signs somebody in, once."""
    SESSION = "session"
    """A browser that is signed in."""
    TOKEN = "token"
    """For programs, and commands with `--server`."""
    INSTANCE = "instance"
    """For an agent elsewhere, to have its calls judged by the Agent Approval Protocol, and for nothing else."""


class Permission(StrEnum):
    """What a key lets its holder do. Whose word counts for a request is the matter of its rule, not of these."""

    READ = "read"
    ANSWER = "answer"
    """Vote, comment, take and hand over requests, say what became of calls, revoke what one may have remembered."""
    RUN = "run"
    """Start, resume and cancel runs."""
    ADMIN = "admin"
    """Halt, and look after the keys of others."""
    PROVISION = "provision"
    """Make, rename and revoke instances of the Agent Approval Protocol. Only keys of programs have it."""
    REQUEST = "request"
    """Have calls judged by the Agent Approval Protocol. Only keys of instances have it."""


EVERYTHING = frozenset({Permission.READ, Permission.ANSWER, Permission.RUN, Permission.ADMIN})
"""What people may do, at most."""
WORKING = EVERYTHING - {Permission.ADMIN}
"""What people may do who are no admins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessKey:
    """A key, without its secret."""

    id: str
    kind: AccessKind
    digest: str
    """Of the secret: `digest_of`."""
    holder: str
    """Whose it is: the name of a person, or of a program."""
    is_program: bool = False
    """A program's word never counts as a person's."""
    label: str = ""
    """What it is for, in its owner's words; for a session, the browser."""
    permissions: frozenset[Permission] = EVERYTHING
    created_at: datetime
    created_by: str = ""
    expires_at: datetime | None = None
    used_at: datetime | None = None
    """When it was last used; a link that was used is spent."""
    revoked_at: datetime | None = None

    def refusal(self, now: datetime) -> str:
        """Why it lets nobody in any longer; empty where it does."""
        if self.revoked_at is not None:
            return f"this {self.kind} was revoked"
        if self.expires_at is not None and self.expires_at <= now:
            return f"this {self.kind} has expired"
        if self.kind is AccessKind.LINK and self.used_at is not None:
            return "this link was used before"
        return ""

    def actor(self, via: str) -> Actor:
        """Who acts with it."""
        kind = ActorKind.SCRIPT if self.is_program else ActorKind.PERSON
        return Actor(name=self.holder, kind=kind, via=via)


def digest_of(secret: str) -> str:
    """What is kept of a secret. It has 256 bits of chance in it, so nothing slower is needed."""
    return sha256(secret.encode()).hexdigest()


def link_url(server: str, secret: str) -> str:
    """Where somebody goes to sign in with a link, on a server at this address."""
    return f"{server.rstrip('/')}/sign-in?link={secret}"
