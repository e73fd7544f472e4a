"""The kill switch (halt): while it is on, nothing new runs, and pending requests stay pending."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from signoff.broker.ledger import Ledger
from signoff.broker.watch import Watch
from signoff.core.codec import StoredShape
from signoff.core.halt import HALTED, halt_in
from signoff.core.moment import Zone, in_utc, moment_text
from signoff.core.visible_text import quoted
from signoff.errors import Halted, SchemaError, StoreDamaged
from signoff.ports import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class _Halt:
    """Who halted everything, why and when, as it is stored."""

    by: str
    why: str
    at: datetime


_HALT = StoredShape(_Halt, "settings")


class Switch:
    """The part of the broker for halting everything."""

    def __init__(self, ledger: Ledger, watch: Watch) -> None:
        self._ledger = ledger
        self._watch = watch

    async def halt(self, *, by: str, why: str = "", zone: Zone = in_utc) -> str:
        """Halt everything; return the text for people. If it is halted already, that stays as it is."""
        ledger = self._ledger

        def work(tx: Transaction, now: datetime) -> str:
            if not (said := halt_in(tx.settings.get)):
                said = _HALT.to_text(_Halt(by=by, why=ledger.journal.text(why), at=now))
                tx.settings.put(HALTED, said)
                tx.record.append([ledger.journal.switched("halted", now, by=by, why=why)])
            return said

        said = await ledger.write("halt", work)
        self._watch.halted = said
        return said_by(said, zone)

    async def unhalt(self, *, by: str, why: str = "") -> bool:
        """Lift the halt; return whether there was one."""
        ledger = self._ledger

        def work(tx: Transaction, now: datetime) -> bool:
            was = bool(halt_in(tx.settings.get))
            if was:
                tx.settings.put(HALTED, None)
                tx.record.append([ledger.journal.switched("unhalted", now, by=by, why=why)])
            return was

        was = await ledger.write("unhalt", work)
        self._watch.halted = ""
        return was

    async def state(self, zone: Zone = in_utc) -> str:
        """Return who halted, when and why, as text; empty if not halted."""
        said = await self._ledger.store.read(lambda tx: halt_in(tx.settings.get))
        return said_by(said, zone) if said else ""

    def check_now(self) -> None:
        """Raise `Halted` while halted, by the last known state, without reading the store."""
        if said := self._watch.halted:
            raise _halted(said)


def check_not_halted(tx: Transaction) -> None:
    """Raise `Halted` while halted."""
    if said := halt_in(tx.settings.get):
        raise _halted(said)


def _halted(said: str) -> Halted:
    halt = _read(said)
    return Halted(said_by(said)).with_moment(halt.at if halt is not None else None)


def said_by(said: str, zone: Zone = in_utc) -> str:
    """What the switch says, for people. A halt that cannot be read stays one, until a person lifts it."""
    halt = _read(said)
    if halt is None:
        return (
            f"halted, but who did it, when and why cannot be read: the store is damaged (table settings, row {HALTED!r}"
            "); `signoff unhalt` lifts the halt"
        )
    why = f": {quoted(halt.why)}" if halt.why else ""
    return f"halted by {halt.by} at {moment_text(halt.at, zone)}{why}; `signoff unhalt` lifts the halt"


def _read(said: str) -> _Halt | None:
    try:
        return _HALT.from_text(said)
    except (StoreDamaged, SchemaError):
        return None
