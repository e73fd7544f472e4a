"""Who stands behind a Discord account. Whoever is not on file may do nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import discord

from signoff.core.people import Actor

VIA = "discord"


class Users:
    """The people on file, by the ids of their accounts."""

    def __init__(self, people: Mapping[str, Actor]) -> None:
        self._people = people

    def accounts(self) -> Mapping[str, Actor]:
        """Everybody on file, by account."""
        return dict(self._people)

    def known(self, user: discord.abc.User) -> Actor | None:
        """The person with this account."""
        found = self._people.get(str(user.id))
        return None if found is None or user.bot else replace(found, via=found.via or VIA)

    def stranger(self, user: discord.abc.User, so: str) -> str:
        """What somebody is told who is not on file. `so`: what comes of it."""
        return (
            f"You are not listed here, so {so}. A maintainer of signoff.yaml can add you under `people`, "
            f'with your Discord ID: `discord: "{user.id}"`'
        )
