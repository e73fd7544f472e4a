"""What commands about keys have in common: for whom they are, and who may make them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff.errors import WrongUse

if TYPE_CHECKING:
    from signoff.config import Settings
    from signoff.core.people import Actor

HERE = "http://127.0.0.1:8420"
"""Where a server is that nobody said anything about."""


def holder_named(name: str, settings: Settings) -> str:
    """The person a key is for, as the file spells them; where it names nobody, only whoever works here."""
    from signoff.cli.known_people import named
    from signoff.core.people import person_key
    from signoff.core.visible import visible
    from signoff.wiring import whoami

    if settings.people:
        return named(name, settings)
    here = whoami(None, settings, via="command").name
    if person_key(name) != person_key(here):
        where = settings.file or "a signoff.yaml"
        raise WrongUse(
            f"while no people are listed, a server admits only {visible(here)}\n"
            f"  Add {visible(name)} to `people` in {where}"
        )
    return here


def check_admin(by: Actor, settings: Settings, *, holder: str) -> None:
    """Raise `WrongUse` where somebody else than an admin acts for another, and the file names admins."""
    from signoff.core.people import person_key
    from signoff.core.visible import visible

    admins = [one.name for one in settings.people.values() if one.admin]
    if admins and person_key(holder) != by.key and by.key not in map(person_key, admins):
        told = ", ".join(map(visible, admins))
        raise WrongUse(
            f"{visible(by.name)} is not an admin, and {visible(holder)} is another person\n  Admins are: {told}"
        )


def server_address(url: str | None, settings: Settings) -> str:
    """Where the server is: as it was said, else as the file says, else on this machine."""
    from signoff.config.server_entry import origin_of
    from signoff.core.visible import visible

    if not url:
        return settings.server.url or HERE
    try:
        return origin_of(url)
    except ValueError as error:
        raise WrongUse(f"--url {visible(url)} is not a server address\n  {error}") from error
