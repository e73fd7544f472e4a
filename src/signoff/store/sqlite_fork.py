"""Close all SQLite connections of this process before it forks.

SQLite does not survive a fork with an open file. The forked process inherits what SQLite remembers of its parent's
locks, but not the locks. It then writes without a lock, and what it wrote is lost when the parent closes the file; or
it waits for ever for a lock that nobody holds. Without an open file there is nothing to remember.

A fork waits until no other thread uses a connection, and threads that begin to use one wait until it is over. If it
cannot wait that long, the forked process may not use SQLite at all.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import ParamSpec, TypeVar

from signoff.errors import StoreUnavailable
from signoff.store.writer import warn

P = ParamSpec("P")
T = TypeVar("T")

LONGEST = 40.0
"""Seconds a fork and a use of SQLite wait for each other: longer than a writer waits for another process."""
PAUSE = 0.001
"""Seconds between two looks."""

_open: set[OpenConnections] = set()
_orphans: list[OpenConnections] = []
"""The connections of stores that were dropped."""
_left_behind: list[object] = []
"""The connections of the parent in a forked process, which must neither use nor close them."""
_uses: dict[int, int] = {}
"""How many calls of each thread are inside SQLite. Only the thread itself changes its number."""
_forking = threading.Lock()
_forker: int | None = None
"""The thread that is about to fork."""
_is_unusable = False
"""Whether this process was forked while SQLite was in use."""


def uses_sqlite(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that uses a connection: the process does not fork while it runs."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        me = threading.get_ident()
        calls = _uses.get(me, 0)
        try:
            _uses[me] = calls + 1  # first this, then a look for a fork: it does the same the other way round
            if _forker is not None and not calls:
                _let_it_fork(me)
            if _is_unusable:
                raise StoreUnavailable(
                    "this process was forked while its parent used SQLite, and must not use it; start processes with "
                    "`spawn`, or fork before the store is used"
                )
            return function(*args, **kwargs)
        finally:
            _uses[me] = calls  # no call, so that no signal handler can come in between

    return guarded


def _let_it_fork(me: int) -> None:
    until = time.monotonic() + LONGEST
    while _forker not in (None, me) and time.monotonic() < until:
        _uses[me] = 0
        time.sleep(PAUSE)
        _uses[me] = 1


class OpenConnections:
    """The open connections of one store. They are closed before a fork, and opened again when they are needed.

    If the store is dropped without being closed, they are closed when the next one is opened: not by the garbage
    collector, which works in the middle of anything.
    """

    def __init__(self, owner: object) -> None:
        with suppress(IndexError):  # another thread may do the same
            while True:
                _orphans.pop().close()
        self.writing: sqlite3.Connection | None = None
        self.readers: list[sqlite3.Connection] = []
        """Those that nobody uses at the moment."""
        self.watching: set[sqlite3.Connection] = set()
        _open.add(self)
        weakref.finalize(owner, _orphans.append, self).atexit = False

    def __bool__(self) -> bool:
        return bool(self.writing or self.readers or self.watching)

    @uses_sqlite
    def drop(self) -> None:
        """Close them. Others may be opened later."""
        connection, self.writing = self.writing, None
        if connection is not None:
            connection.close()
        for idle in (self.readers, self.watching):
            while idle:
                idle.pop().close()

    @uses_sqlite
    def close(self) -> None:
        """Close them for good."""
        self.drop()
        _open.discard(self)


def _before() -> None:
    global _forker
    _forking.acquire(timeout=LONGEST)
    me = _forker = threading.get_ident()
    until = time.monotonic() + LONGEST
    while _others_use_it(me) and time.monotonic() < until:
        time.sleep(PAUSE)
    if _others_use_it(me) or _uses.get(me):
        return
    for one in list(_open):
        try:
            one.drop()
        except Exception as error:  # the others must still be closed
            warn(f"a connection was not closed before a fork: {error!r}")


def _others_use_it(me: int) -> bool:
    return any(calls for thread, calls in list(_uses.items()) if thread != me)


def _after_in_parent() -> None:
    global _forker
    _forker = None
    if _forking.locked():
        _forking.release()


def _after_in_child() -> None:
    global _forking, _forker, _is_unusable
    if any(_open) or any(_uses.values()):
        _is_unusable = True
    _left_behind.append(list(_open))
    _open.clear()
    _orphans.clear()
    _uses.clear()
    _forking, _forker = threading.Lock(), None


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
