"""People as they are named in a command, held against those on file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from signoff.config import Settings


def named(name: str, settings: Settings) -> str:
    """The person as the policy file spells them. Where it names people, it has to be one of them."""
    from signoff.core.people import person_key
    from signoff.core.visible import visible
    from signoff.errors import WrongUse
    from signoff.policy.phrases import did_you_mean

    if not name.strip():
        raise WrongUse("a person needs a name")
    if not settings.people:
        return name.strip()
    for one in settings.people:
        if person_key(one) == person_key(name):
            return one
    raise WrongUse(f"{settings.file} knows nobody called {visible(name)}\n  {did_you_mean(name, settings.people)}")


def holder_named(name: str, settings: Settings) -> str:
    """The person a key is for, as the file spells them; where it names nobody, only whoever works here."""
    from signoff.core.people import person_key
    from signoff.core.visible import visible
    from signoff.errors import WrongUse
    from signoff.wiring import whoami

    if settings.people:
        return named(name, settings)
    here = whoami(None, settings, via="command").name
    if person_key(name) != person_key(here):
        where = settings.file or "a signoff.yaml"
        raise WrongUse(
            f"a server lets in only {visible(here)} as long as no people are on file\n"
            f"  Add {visible(name)} to `people` in {where}"
        )
    return here
