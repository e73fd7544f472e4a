"""Map Discord accounts to people. Accounts that are not listed may do nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import discord

from signoff.core.people import Actor

VIA = "discord"


class Users:
    """The listed people, by Discord account id."""

    def __init__(self, people: Mapping[str, Actor]) -> None:
        self._people = people

    def accounts(self) -> Mapping[str, Actor]:
        """Return everybody who is listed, by account id."""
        return dict(self._people)

    def known(self, user: discord.abc.User) -> Actor | None:
        """Return the person with this account; None if they are not listed or a bot."""
        found = self._people.get(str(user.id))
        return None if found is None or user.bot else replace(found, via=found.via or VIA)

    def stranger(self, user: discord.abc.User, so: str) -> str:
        """Return what to tell somebody who is not listed. `so` says the consequence."""
        return (
            f"You are not listed here, so {so}. A maintainer of signoff.yaml can add you under `people`, "
            f'with your Discord ID: `discord: "{user.id}"`'
        )
