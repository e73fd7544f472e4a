"""LangChain, measured in a process of its own, which may run on another Python. Where it is missing, notes say so."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.player import Player

PROGRAM = Path(__file__).with_name("langchain_peer.py")


class LangChain(Player):
    """Plays the script in LangChain."""

    def __init__(self, python: str = sys.executable) -> None:
        super().__init__(PROGRAM, python)

    @property
    def notes(self) -> tuple[str, ...]:
        return () if self.there else ("LangChain is left out: it is not installed (requirements/bench.txt has it)",)

    def sample(self, variant: str, calls: int) -> float:
        """Seconds for one run or cycle with that many calls."""
        return self.ask(variant=variant, calls=calls)["seconds"]
