"""Whether a package manager, a builder or the like talks to other machines, whatever else it does."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

_ALL = frozenset({"*"})


class Contact(Enum):
    """How a command stands to the network."""

    NONE = "none that is known"
    MAY = "where something is missing"
    SENDS = "always"


class _Client(NamedTuple):
    sends: frozenset[str]
    may: frozenset[str]
    alone: Contact
    offline: frozenset[str]


@lru_cache(maxsize=1)
def _clients() -> Mapping[str, _Client]:
    text = files("signoff.policy.shell").joinpath("network.toml").read_text(encoding="utf-8")
    alone = {"": Contact.NONE, "may": Contact.MAY, "sends": Contact.SENDS}
    return {
        name: _Client(
            frozenset(entry.get("sends", "").split()),
            frozenset(entry.get("may", "").split()),
            alone[entry.get("alone", "")],
            frozenset(entry.get("offline", "").split()),
        )
        for name, entry in tomllib.loads(text).items()
    }


def contact(argv: Sequence[str | None]) -> Contact:
    """What is known about a command, given its words; None for a word that nobody knows beforehand."""
    name = (argv[0] or "").rpartition("/")[2] if argv else ""
    client = _clients().get(name)
    if client is None and name.rstrip("0123456789.") == "pip":
        client = _clients()["pip"]
    if client is None or client.offline & set(argv[1:]):
        return Contact.NONE
    commands = _commands(argv[1:])
    if not commands:
        return client.alone
    if client.sends == _ALL or not client.sends.isdisjoint(commands):
        return Contact.SENDS
    if client.may == _ALL or not client.may.isdisjoint(commands) or None in argv:
        return Contact.MAY
    return Contact.NONE


def _commands(words: Sequence[str | None]) -> set[str]:
    """The words that may be the sub-command: the first that is no option, and those before it that may be values."""
    found: set[str] = set()
    behind_option = False
    for word in words:
        if word is None or word.startswith("-"):
            behind_option = word is not None and "=" not in word
            continue
        found.add(word)
        if not behind_option:
            break
        behind_option = False
    return found
