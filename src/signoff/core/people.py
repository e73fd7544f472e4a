"""Who answered. An answer carries a name and how it was given; only a person counts as a person."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache

from signoff.errors import WrongUse
from signoff.lazy_names import lazy_names


@lru_cache(maxsize=1024)
def person_key(name: str) -> str:
    """The same for every spelling of a name: `Ana`, `ana ` and another Unicode form are one person."""
    return unicodedata.normalize("NFKC", name).strip().casefold()


class ActorKind(StrEnum):
    """What kind of actor gave a vote."""

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
        """Identifies the actor, however the name is spelled."""
        return person_key(self.name)

    def __post_init__(self) -> None:
        """Raises `WrongUse` for a kind that there is not, and for roles that are no set of names."""
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

    def __str__(self) -> str:
        return self.name if self.kind is ActorKind.PERSON else f"{self.name} ({self.kind})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """Whom a rule may keep from answering: who a call is for, and who the agents that make it belong to."""

    requester: str = ""
    owners: tuple[str, ...] = ()


NOBODY = Parties()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """Somebody stands in for somebody else, for a while. The record names both."""

    absent: str
    deputy: str
    until: datetime
    since: datetime
    by: str = ""
    """Who arranged it."""

    def holds(self, now: datetime) -> bool:
        return self.since <= now < self.until

    def is_between(self, absent: str, deputy: str) -> bool:
        """Whether these two are meant, whatever the spelling."""
        return person_key(self.absent) == person_key(absent) and person_key(self.deputy) == person_key(deputy)


_find = lazy_names(__name__, {}, {"Answerer": ("core.people:Actor", "signoff.Actor")})


def __getattr__(name: str) -> object:
    return _find(name)
