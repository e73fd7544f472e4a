"""Whether a package manager, a build tool or the like uses the network (egress), whatever else it does."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from signoff.policy.table_files import table_text

_ALL = frozenset({"*"})
_ELSEWHERE = re.compile(r"(?:-[^=]*=)?(?:(?!file:)[A-Za-z][A-Za-z0-9+.-]*://|[^/=:]+:(?!//))", re.IGNORECASE)
"""A URL, or a path on another machine: `https://…`, `host:path`."""

_ADDRESS = re.compile(r"(?<![\w+.-])(?!file:)[A-Za-z][\w+.-]*://", re.IGNORECASE)
_NOT = frozenset({"false", "0", "no", "off", "null"})
"""Values that may follow an option and cancel it: `--offline false`."""


class Contact(Enum):
    """How a command uses the network."""

    NONE = "none that is known"
    MAY = "where something is missing"
    SENDS = "always"


class _Client(NamedTuple):
    sends: frozenset[str]
    may: frozenset[str]
    alone: Contact
    offline: frozenset[str]
    options: frozenset[str]
    addresses: bool


@lru_cache(maxsize=1)
def _clients() -> Mapping[str, _Client]:
    text = table_text("shell/network.toml")
    alone = {"": Contact.NONE, "may": Contact.MAY, "sends": Contact.SENDS}
    return {
        name: _Client(
            frozenset(entry.get("sends", "").split()),
            frozenset(entry.get("may", "").split()),
            alone[entry.get("alone", "")],
            frozenset(entry.get("offline", "").split()),
            frozenset(entry.get("options", "").split()),
            bool(entry.get("addresses")),
        )
        for name, entry in tomllib.loads(text).items()
    }


def contact(argv: Sequence[str | None]) -> Contact:
    """Return the network use of a command, from its words; None stands for a word that is only known at run time."""
    name = (argv[0] or "").rpartition("/")[2] if argv else ""
    client = _clients().get(name)
    if client is None and name.rstrip("0123456789.") == "pip":
        client = _clients()["pip"]
    if client is None:
        return Contact.NONE
    told = argv[1 : argv.index("--")] if "--" in argv else argv[1:]
    options = {(word or "").partition("=")[0] for word in told}
    if options & client.options or (client.addresses and any(_ELSEWHERE.match(word or "") for word in argv[1:])):
        return Contact.SENDS
    if _is_offline(client.offline, told):
        return Contact.NONE
    commands = _commands(argv[1:])
    if not commands:
        return client.alone
    if client.sends == _ALL or not client.sends.isdisjoint(commands):
        return Contact.SENDS
    if client.may == _ALL or not client.may.isdisjoint(commands) or None in commands:
        return Contact.MAY
    return Contact.NONE


def _is_offline(names: frozenset[str], words: Sequence[str | None]) -> bool:
    """Whether an option certainly keeps it offline: given, not cancelled, and without any URL."""
    known = [word for word in words if word is not None]
    said = {word.removesuffix("=true") for word in known}
    if len(known) < len(words) or names.isdisjoint(said):
        return False
    back = {f"--no-{name.removeprefix('--')}" for name in names}
    unsaid = any(word.partition("=")[0] in names for word in said - names) or not _NOT.isdisjoint(said)
    return not unsaid and back.isdisjoint(said) and not any(map(_ADDRESS.search, known))


def _commands(words: Sequence[str | None]) -> set[str | None]:
    """Return the words that may be the sub-command: the first non-option, and words before it that may be values."""
    found: set[str | None] = set()
    behind_option = False
    for word in words:
        if word is not None and word.startswith(("-", "+")):  # `cargo +nightly install`
            behind_option = "=" not in word and word[0] == "-"
            continue
        found.add(word)
        if not behind_option and word is not None:
            break
        behind_option = False
    return found
