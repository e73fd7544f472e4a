"""Renew objects in a forked process, before anything else runs there.

A fork copies all objects but only the thread that forked. What an object says of this process, of its threads, or of
its connections is then wrong. In the new process there is one thread, so nothing needs a lock.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Renewable(Protocol):
    def renew(self) -> None:
        """Forget what only the parent has: its identity, threads, locks and connections."""


_objects: WeakSet[Renewable] = WeakSet()


def renew_after_fork(one: Renewable) -> None:
    """Have the object renewed in every process that is forked from this one. It is held weakly."""
    _objects.add(one)


def _renew_all() -> None:
    for one in list(_objects):
        one.renew()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_renew_all)
