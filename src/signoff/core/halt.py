"""The setting that says that everything is halted."""

from __future__ import annotations

from collections.abc import Callable

from signoff.errors import StoreDamaged

HALTED = "halted"
"""Name of the setting that says who halted everything, when and why."""
UNREADABLE = "?"


def halt_in(setting: Callable[[str], str | None]) -> str:
    """Return what the switch says, as it is stored; empty if nobody halted. What cannot be read is a halt, too.

    `setting` returns the value of a setting.
    """
    try:
        said = setting(HALTED)
    except StoreDamaged:
        return UNREADABLE
    return said or (UNREADABLE if said is not None else "")
