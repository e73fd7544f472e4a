"""The work every framework is given: one turn that calls a tool many times, then an end. Standard library only."""

from __future__ import annotations

from random import Random
from typing import Any

PROMPT = "Please write the files."
DONE = "done"
TOOL = "write_file"
DIRECTORY = "notes"

_BODY = "x" * 64
_LETTERS = "etaoinshrdlucmfwypvbgk"
_WORDS = ["".join(Random(number).choices(_LETTERS, k=2 + number % 8)) for number in range(2_000)]


def arguments(number: int) -> dict[str, Any]:
    """The arguments of one call, about 100 bytes of JSON, different for each."""
    return {"path": f"{DIRECTORY}/file_{number}.txt", "body": _BODY}


def said(number: int) -> str:
    """What was said earlier: 200 characters, different for each number, of words that come again as words do."""
    return " ".join(Random(number).choices(_WORDS, k=60))[:200]


class Tally:
    """Counts what the tool did, so that no variant is fast because it did less."""

    def __init__(self) -> None:
        self.ran = 0

    def expect(self, calls: int) -> None:
        """Check the calls since the last look, and start anew."""
        ran, self.ran = self.ran, 0
        assert ran == calls, f"the tool ran {ran} times, not {calls}"
