"""A kit for tests and demos: a model that follows a script, an approver that answers from a list, a clock you turn.

And the contract that every channel keeps, for people who write their own: `ChannelContract`.

Importing it does not import PydanticAI; `ScriptedModel` does, when it is first used.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING

from signoff.channels import scripted_approver
from signoff.channels.scripted import ScriptedUI, decision_from

if TYPE_CHECKING:
    from signoff.testing.case import ChannelCase as ChannelCase
    from signoff.testing.case import Skill as Skill
    from signoff.testing.channels import ChannelContract as ChannelContract
    from signoff.testing.office import Office as Office
    from signoff.workers.script import ScriptedModel as ScriptedModel

__all__ = [
    "ChannelCase",
    "ChannelContract",
    "FakeClock",
    "Office",
    "ScriptedModel",
    "ScriptedUI",
    "Skill",
    "decision_from",
    "scripted_approver",
]

_LATER = {
    "ChannelCase": "signoff.testing.case",
    "ChannelContract": "signoff.testing.channels",
    "Office": "signoff.testing.office",
    "ScriptedModel": "signoff.workers.script",
    "Skill": "signoff.testing.case",
}


def __getattr__(name: str) -> object:
    if (module := _LATER.get(name)) is not None:
        return getattr(import_module(module), name)
    raise AttributeError(f"module 'signoff.testing' has no attribute {name!r}")


class FakeClock:
    """Time that moves when you say so."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)) -> None:
        self._now = start
        self._sleepers: list[tuple[datetime, asyncio.Event]] = []

    def now(self) -> datetime:
        return self._now

    async def sleep_until(self, moment: datetime) -> None:
        if moment > self._now:
            woken = asyncio.Event()
            self._sleepers.append((moment, woken))
            await woken.wait()

    def advance(self, by: timedelta | float) -> None:
        """Move time on and wake whoever slept until then."""
        self._now += by if isinstance(by, timedelta) else timedelta(seconds=by)
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= self._now]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > self._now]
        for _, woken in due:
            woken.set()
