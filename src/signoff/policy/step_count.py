"""One budget for all that judging one call takes of the disk, and for comparing patterns with names.

It counts work and never looks at a clock, so that a verdict does not depend on how busy the machine is. Who begins to
judge a call makes one and passes it to whatever lists directories, follows links, reads files of the project or expands
patterns. When it ends, the answer is doubt: people are asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn

MOST_STEPS = 300_000
"""The most steps for one call. One takes about a microsecond, whatever it counts."""
COSTS: Mapping[str, int] = MappingProxyType(
    {
        "directory": 10,
        "name": 1,
        "entry": 3,
        "component": 5,
        "status": 4,
        "expression": 60,
    }
)
"""What it takes to open a directory; for each name that it lists, or entry of which the kind is looked at; for each
component of a path that is followed; to look whether a file is there or a link; to compile an expression."""


class Unclear(Exception):
    """A pattern, or what it matches, with which nothing is run without approval; the message says why."""


class StepCount:
    """Counts the steps of judging one call. What begins to judge makes it, and passes it on."""

    __slots__ = ("left", "why")

    def __init__(self, most: int | None = None) -> None:
        self.left = MOST_STEPS if most is None else most
        self.why = ""
        """Why the call was not looked at completely; "" as long as it was."""

    def take(self, number: int = 1) -> None:
        """Count steps. Raises `Unclear` if there are too many."""
        self.left -= number
        if self.left < 0:
            self.give_up("it would take too many steps to see which files it is about")

    def give_up(self, why: str) -> NoReturn:
        """Take no more. Raises `Unclear`."""
        self.left, self.why = -1, why
        raise Unclear("would take too many steps to look at")
