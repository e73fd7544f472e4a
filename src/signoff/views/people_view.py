"""People and delegations as people and programs see them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from signoff.config.settings import Person
from signoff.core.people import Delegation
from signoff.core.visible_text import visible
from signoff.views.json_form import View


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonView(View):
    """A configured person."""

    name: str
    roles: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationView(View):
    """A delegation: who is deputy for whom."""

    absent: str
    deputy: str
    until: datetime
    since: datetime
    by: str
    """Who created it."""

    @classmethod
    def of(cls, one: Delegation) -> DelegationView:
        """A delegation."""
        return cls(
            absent=visible(one.absent), deputy=visible(one.deputy), until=one.until, since=one.since, by=visible(one.by)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleView(View):
    """Who may answer. If no people are configured, everybody with access may."""

    people: tuple[PersonView, ...]
    delegations: tuple[DelegationView, ...]

    @classmethod
    def of(cls, people: Iterable[Person], delegations: Iterable[Delegation]) -> PeopleView:
        """The people of a project, and who stands in for whom."""
        return cls(
            people=tuple(
                PersonView(name=visible(one.name), roles=tuple(sorted(map(visible, one.roles)))) for one in people
            ),
            delegations=tuple(map(DelegationView.of, delegations)),
        )
