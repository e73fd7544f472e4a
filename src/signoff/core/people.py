"""Actors, people and deputies: who answers a request. Only a person counts as a person."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase

from signoff.core.normal_form import normal_form
from signoff.errors import WrongUse


@lru_cache(maxsize=1024)
def person_key(name: str) -> str:
    """A key that is the same for every spelling of a name: `Ana`, `ana ` and another Unicode form are one person."""
    return normal_form("NFKC", name).strip().casefold()


def account_key(name: str) -> str:
    """A key that is the same for the spellings of a name or address that every login takes for one account.

    Lowercases ASCII letters only. `person_key` joins more, so that nobody votes twice; nobody gets rights by it.
    """
    return name.translate(_LOWER)


_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


class ActorKind(StrEnum):
    """The kind of an actor."""

    PERSON = "person"
    SCRIPT = "script"
    MODEL = "model"
    MODE = "mode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who answers a request: a person, a script, a policy or a deadline."""

    name: str
    kind: ActorKind = ActorKind.PERSON
    roles: frozenset[str] = frozenset()
    via: str = ""
    """The channel the answer came through: `terminal`, `web`, `api` …"""

    @property
    def key(self) -> str:
        """The key of the actor, the same for every spelling of the name."""
        return person_key(self.name)

    def __post_init__(self) -> None:
        """Raises `WrongUse` for an unknown kind, and for roles that are not a set of names."""
        if not isinstance(self.kind, ActorKind):  # pyright: ignore[reportUnnecessaryIsInstance]
            kinds = ", ".join(repr(str(one)) for one in ActorKind)
            if self.kind not in list(ActorKind):
                raise WrongUse(f"Actor(kind={self.kind!r}): it must be one of {kinds}")
            object.__setattr__(self, "kind", ActorKind(self.kind))
        roles: object = self.roles
        if isinstance(roles, str):
            raise WrongUse(f"Actor(roles={roles!r}): it must be a set of names, as in {{{roles!r}}}")
        if type(roles) is not frozenset:
            object.__setattr__(self, "roles", frozenset(self.roles))

    @property
    def is_unnamed(self) -> bool:
        """Whether it stands for an approver that named nobody: perhaps a person, perhaps a program."""
        return (self.name, self.kind) == (UNNAMED.name, UNNAMED.kind)

    @property
    def known_as(self) -> str:
        """The name of a person or of an unnamed approver; of anything else, its kind."""
        return self.name if self.kind is ActorKind.PERSON or self.is_unnamed else str(self.kind)

    def __str__(self) -> str:
        return self.name if self.known_as == self.name else f"{self.name} ({self.kind})"


UNNAMED = Actor(name="approver", kind=ActorKind.SCRIPT)
"""The actor of an answer whose approver names nobody. It never counts as a particular person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """The people that a rule may exclude: the requester of a call, and the owners of the agents that make it."""

    requester: str = ""
    owners: tuple[str, ...] = ()


NOBODY = Parties()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """A deputy answers for an absent person until some time. The audit log names both."""

    absent: str
    deputy: str
    until: datetime
    since: datetime
    by: str = ""
    """Who arranged it."""

    def holds(self, now: datetime) -> bool:
        return self.since <= now < self.until

    def is_between(self, absent: str, deputy: str) -> bool:
        """Whether it is between these two people, however their names are spelled."""
        return person_key(self.absent) == person_key(absent) and person_key(self.deputy) == person_key(deputy)
