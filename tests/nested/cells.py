"""The matrix of nested approvals: every cell is a test, and a place in the table of docs/guides/nested.md."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from tests.pairwise import pairwise

LEVELS = (2, 3, 4)
WAYS = ("inline", "suspended", "restart", "other_process")
ANSWERS = ("approve", "edit", "deny", "timeout", "part")
STORES = ("sqlite", "postgres")
AGENTS = ("triage", "analyst", "clerk", "cashier")
MATRIX = tuple(product(LEVELS, WAYS, ANSWERS, STORES))
DAILY = frozenset(pairwise(LEVELS, WAYS, ANSWERS, STORES))
"""The cells that are played every day; at night, all of them are."""


def stays_as_it_is(levels: int, way: str, answer: str) -> bool:
    """Whether a cell is played with tools that stay as they are, too."""
    return levels == 3 or way in ("inline", "suspended")


UNCHANGED = tuple(cell for cell in product(LEVELS, WAYS, ANSWERS) if stays_as_it_is(*cell))
UNCHANGED_DAILY = (
    (2, "inline", "approve"),
    (3, "restart", "deny"),
    (3, "other_process", "part"),
    (4, "suspended", "edit"),
    (4, "inline", "timeout"),
)
"""Every choice once; how they go together is played every day with `call_agent`."""

NOTE = "not before the audit, says Ana"
DONE = "I did what I could."
"""What the innermost agent answers: nothing of what people said is in it."""


def name_of(levels: int, way: str, answer: str, store: str) -> str:
    """The id of a cell's test."""
    return f"{levels}-levels-{way}-{answer}-{store}"


@dataclass(frozen=True)
class Cell:
    """One cell, and where it is played. It travels to other processes as JSON."""

    levels: int
    way: str
    answer: str
    url: str
    directory: str
    unchanged: bool = False
    """Whether tools run the next agent with `agent.run`, and the gates say `nested=True`."""

    @property
    def agents(self) -> tuple[str, ...]:
        return AGENTS[: self.levels]

    @property
    def chain(self) -> str:
        return " > ".join((*self.agents, "pay"))

    @property
    def amounts(self) -> tuple[int, ...]:
        """What the innermost agent wants to pay, one call each."""
        return (1, 2) if self.answer == "part" else (1,)

    @property
    def paid(self) -> list[int]:
        """What is to be paid in the end."""
        return {"approve": [1], "edit": [7], "deny": [], "timeout": [], "part": [1, 2]}[self.answer]

    @cached_property
    def effects(self) -> Log:
        """What tools did."""
        return Log(f"{self.directory}/effects")

    @cached_property
    def told(self) -> Log:
        """What tools' results the models saw."""
        return Log(f"{self.directory}/told")

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Log:
    """Lines of JSON that any process may add to, and that are there whoever dies."""

    file: str

    def add(self, **line: Any) -> None:
        handle = os.open(self.file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.write(handle, f"{json.dumps(line)}\n".encode())
        os.close(handle)

    def lines(self, **wanted: Any) -> list[dict[str, Any]]:
        """Those in which these fields have these values."""
        file = Path(self.file)
        lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
        return [line for line in lines if all(line[name] == value for name, value in wanted.items())]
