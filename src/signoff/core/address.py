"""Find out which worker a person's message is for, and what it should do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_FIRST = re.compile(r"([^\s:,]+)\s*[:,]?\s*(.*)", re.DOTALL)


class Addressed(NamedTuple):
    """A worker, and what it should do."""

    worker: str
    text: str


def spoken_name(agent: str) -> str:
    """The name that people use for an agent: a worker's name, or the last part of `package.module:agent`."""
    return agent.rpartition(":")[2]


def addressed(text: str, workers: Sequence[str], talking_to: str = "") -> Addressed | str:
    """Find the worker: the only one, the one named first, or `talking_to`. If there is none, return a message."""
    text = text.strip()
    if not workers:
        return "No worker can be started from here. List workers under `workers:` of this channel in signoff.yaml."
    found = Addressed(workers[0], text) if len(workers) == 1 else _named(text, workers)
    if found is None and talking_to in workers:
        found = Addressed(talking_to, text)
    if found is None:
        names = [spoken_name(one) for one in workers]
        return f"Name a worker, as in `{names[0]}: what to do`. There are: {', '.join(names)}."
    return found if found.text else f"Say what {spoken_name(found.worker)} should do."


def _named(text: str, workers: Sequence[str]) -> Addressed | None:
    first = _FIRST.fullmatch(text)
    if first is None:
        return None
    known = {spoken_name(name).casefold(): name for name in workers}
    name = known.get(first[1].casefold())
    return Addressed(name, first[2].strip()) if name is not None else None
