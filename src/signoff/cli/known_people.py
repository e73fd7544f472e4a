"""Look up people as the project file spells them."""

from __future__ import annotations

from signoff.config import Settings
from signoff.core.people import person_key
from signoff.core.visible_text import visible
from signoff.errors import WrongUse
from signoff.policy.phrases import did_you_mean


def named(name: str, settings: Settings) -> str:
    """The person as the policy file spells the name. Raises `WrongUse` if the file lists people but not this one."""
    if not name.strip():
        raise WrongUse("a person needs a name")
    if not settings.people:
        return name.strip()
    for one in settings.people:
        if person_key(one) == person_key(name):
            return one
    raise WrongUse(f"{settings.file} lists no person called {visible(name)}\n  {did_you_mean(name, settings.people)}")
