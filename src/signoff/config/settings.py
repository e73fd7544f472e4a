"""Reads `signoff.yaml`: the policy, the people who answer, the store, and the default model."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from signoff.errors import Place, WrongFile
from signoff.policy.composer import LARGEST_TEXT, read_document
from signoff.policy.engine import Policy
from signoff.policy.lint import Problem
from signoff.policy.parse import policy_in, read_policy
from signoff.policy.spot import Spot
from signoff.policy.wording import did_you_mean, shown

_KEYS = ("policy", "people", "model", "store")
_PLANNED = ("toolsets", "plugins", "channels")
_PERSON_KEYS = ("roles", "discord", "slack", "email")


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody who may answer, and where they are reached."""

    name: str
    roles: frozenset[str] = frozenset()
    discord: str = ""
    slack: str = ""
    email: str = ""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a `signoff.yaml` says."""

    policy: Policy
    people: Mapping[str, Person]
    model: str | None = None
    """The default model for workers."""
    store: str | None = None
    """Where requests, answers and runs are kept: `sqlite:FILE`, or `postgresql://…`."""
    file: str = ""

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is allowed to stand but probably not meant, in the policy and about who can answer."""
        return (*self.policy.warnings, *self._unanswerable())

    def _unanswerable(self) -> Iterator[Problem]:
        if not self.people:
            return
        roles = {role for person in self.people.values() for role in person.roles}
        for rule in self.policy.rules:
            needed = rule.requirement
            for role in filter(None, (needed.role, needed.escalate_to, needed.veto)):
                if role not in roles:
                    what = f"{rule.id} needs the role {shown(role)}, which nobody in `people` has"
                    yield Problem(what, rule.place, rule.id, did_you_mean(role, roles))
            able = sum(needed.role is None or needed.role in person.roles for person in self.people.values())
            if 0 < able < needed.quorum:
                what = f"{rule.id} needs {needed.quorum} people, and `people` has {able} who may answer"
                yield Problem(what, rule.place, rule.id)


def load_policy(path: str | os.PathLike[str], *, root: str | os.PathLike[str] | None = None) -> Policy:
    """The policy in a `signoff.yaml`. Relative paths in it start from `root`: the file's own folder, if not given."""
    return load_settings(path, root=root).policy


def load_settings(path: str | os.PathLike[str], *, root: str | os.PathLike[str] | None = None) -> Settings:
    """Everything in a `signoff.yaml`. Raises `WrongFile`, with the place, for whatever is not right in it."""
    file = os.fspath(path)
    top = Spot.top(read_document(_text(file), file=file))
    entries = top.entries(what="a mapping with `policy`") if top.value is not None else {}
    for key, spot in entries.items():
        if key in _PLANNED:
            raise spot.wrong_key(f"this version does not read {shown(key)} yet", "remove it for now")
        if key not in _KEYS:
            raise spot.wrong_key(f"unknown key {shown(key)}", did_you_mean(key, _KEYS))
    # The real path, because links in arguments are followed too: both have to lead to the same place.
    start = Path(root) if root is not None else Path(file).parent
    return Settings(
        policy=read_policy(policy_in(top, entries), root=Path(os.path.realpath(start)).as_posix()),
        people=dict(_people(entries["people"])) if "people" in entries else {},
        model=entries["model"].text("the name of a model") if "model" in entries else None,
        store=_store(entries["store"]) if "store" in entries else None,
        file=file,
    )


def _text(file: str) -> str:
    try:
        with open(file, "rb") as stream:
            content = stream.read(4 * LARGEST_TEXT + 1)
    except FileNotFoundError as error:
        raise WrongFile(f"there is no file {file}", fix="`signoff init` writes a first one") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WrongFile(f"{file} cannot be read: {reason}") from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise WrongFile("this is not UTF-8 text", place=Place(file, line), fix="save the file as UTF-8") from error


def _store(spot: Spot) -> str:
    """A store's address, with `${NAME}` filled in from the environment."""
    return _VARIABLE.sub(lambda found: _variable(spot, found[1]), spot.text("a store such as sqlite:FILE"))


def _variable(spot: Spot, name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise spot.wrong(f"the environment has no {name}", "set it, or write the address here")
    return value


_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def _people(spot: Spot) -> Iterator[tuple[str, Person]]:
    for name, entry in spot.entries(what="a mapping of names to what is known about them").items():
        if not name.strip():
            raise entry.wrong_key("a person needs a name")
        known = entry.entries(_PERSON_KEYS, what="a mapping such as {roles: [ops]}")
        roles = known["roles"].one_or_more("a list of roles") if "roles" in known else ()
        yield (
            name,
            Person(
                name=name,
                roles=frozenset(role.text("a role") for role in roles),
                discord=_id(known, "discord"),
                slack=_id(known, "slack"),
                email=_id(known, "email"),
            ),
        )


def _id(entries: Mapping[str, Spot], key: str) -> str:
    return entries[key].text(f"a {key} id" if key != "email" else "an address") if key in entries else ""
