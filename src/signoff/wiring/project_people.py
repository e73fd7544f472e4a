"""The people of a project, read from its file again whenever it changes: a person removed from it loses access at once.

The file is checked on each action, and read again if it changed. While it is invalid, accounts are still recognised by
the last valid version, so that people are told what is wrong; but no answers are accepted.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping

from signoff.channel_kinds import ChannelKind
from signoff.config import Person, Settings, load_people
from signoff.config.files import from_here
from signoff.core.people import Actor
from signoff.errors import NotEntitled, Place, SignoffError, WrongFile
from signoff.file_stamp import Followed, file_stamp


class OnFile:
    """The people of a project, always as its file has them now."""

    def __init__(self, settings: Settings) -> None:
        self._people: Mapping[str, Person] = settings.people
        self._file = os.path.abspath(settings.file) if settings.file else ""
        self._wrong = False
        self._followed = Followed(lambda: file_stamp(self._file or None), self._read)
        self._followed.now()  # it may have changed since the settings were read

    def people(self) -> Mapping[str, Person]:
        """Return the people of the last valid version of the file. Each invalid version is warned about once."""
        return self._followed.now()

    async def look(self) -> None:
        """Read the file in a thread if it has changed, so that those who ask next find it read."""
        await self._followed.soon()

    def roles(self) -> Mapping[str, frozenset[str]]:
        """Return roles by name. Raises `NotEntitled` while the file is invalid: its people are not known then."""
        people = self.people()
        if self._wrong:
            raise NotEntitled("no answers are accepted while the file that lists people has an error")
        return {name: person.roles for name, person in people.items()}

    def _read(self) -> Mapping[str, Person]:
        try:
            if self._file:
                people = load_people(from_here(self._file))
                if people is None and self._people:  # as while an editor writes it, and not because nobody is listed
                    raise WrongFile("this file is empty", place=Place(self._file))
                self._people, self._wrong = people or {}, False
        except (SignoffError, OSError) as error:
            self._wrong = True
            # For the maintainer of the file; people in a channel need not read what is in it.
            told = f"no answers are accepted until this is fixed: {error}"
            warnings.warn(told, RuntimeWarning, stacklevel=3)
        return self._people


class Accounts(Mapping[str, Actor]):
    """Maps the accounts of a kind of channel to people, as the file has them now."""

    def __init__(self, on_file: OnFile, kind: ChannelKind, via: str) -> None:
        self._on_file = on_file
        self._kind = kind
        self._via = via

    def __getitem__(self, account: str) -> Actor:
        return self._now()[account]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def _now(self) -> dict[str, Actor]:
        return actors_in(self._on_file.people(), self._kind, self._via)


def actors_in(people: Mapping[str, Person], kind: ChannelKind, via: str) -> dict[str, Actor]:
    """Return who could answer in a kind of channel: by account, or by name if it has no accounts."""
    return {
        account: Actor(name=person.name, roles=person.roles, via=via)
        for name, person in people.items()
        if (account := person.accounts.get(kind.account.key, "") if kind.account is not None else name)
    }
