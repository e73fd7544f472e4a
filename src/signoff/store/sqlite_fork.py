"""Close all SQLite connections of this process before it forks.

SQLite does not survive a fork with an open file. The forked process inherits what SQLite remembers of its parent's
locks, but not the locks. It then writes without a lock, and what it wrote is lost when the parent closes the file; or
it waits for ever for a lock that nobody holds. Without an open file there is nothing to remember.

A fork waits until no other thread uses a connection, and threads that begin to use one wait until it is over. Whoever
waits for another process to release a lock lets the fork go first. Where the fork cannot wait, the forked process may
not use SQLite at all.
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
"""Seconds a fork waits for others."""
PAUSE = 0.001
"""Seconds between two looks."""


class _Forks(threading.local):
    """The forks that this thread is in the middle of: more than one, if a signal handler forks while its thread does.

    Each says whether it holds the lock.
    """

    def __init__(self) -> None:
        self.hold: list[bool] = []


_open: set[OpenConnections] = set()
_orphans: list[OpenConnections] = []
"""The connections of stores that were dropped."""
_left_behind: list[object] = []
"""The connections of the parent in a forked process, which must neither use nor close them."""
_uses: dict[int, int] = {}
"""How many calls of each thread are inside SQLite. Only the thread itself changes its number."""
_forks = _Forks()
_forking = threading.RLock()
_forker: int | None = None
"""The thread that is about to fork."""
_is_closed = False
"""Whether a fork may happen now: nothing is open, and nobody opens anything."""
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
            return function(*args, **kwargs)
        finally:
            _uses[me] = calls  # no call, so that no signal handler can come in between

    return guarded


def is_fork_waiting() -> bool:
    """Whether another thread wants to fork, and waits until this one does not use SQLite."""
    return _forker not in (None, threading.get_ident())


def refuse_after_unsafe_fork() -> None:
    """Raise if this process was forked while its parent used SQLite."""
    if _is_unusable:
        raise StoreUnavailable(
            "this process was forked while its parent used SQLite, and must not use it; start processes with "
            "`spawn`, or fork before the store is used"
        )


def _let_it_fork(me: int) -> None:
    while is_fork_waiting():
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
        """Close them for good, once nobody can open others or give one back."""
        self.drop()
        _open.discard(self)

    def forget(self) -> None:
        """In a forked process: leave those of the parent alone."""
        _left_behind.append((self.writing, self.readers, self.watching))
        self.writing, self.readers, self.watching = None, [], set()


def _before() -> None:
    global _forker, _is_closed
    me = threading.get_ident()
    hold = _forks.hold
    is_outer = not any(hold)
    hold.append(False)
    if _uses.get(me):  # in the middle of a use, which others may wait for
        return
    hold[-1] = _forking.acquire(timeout=LONGEST)
    if not hold[-1] or not is_outer:
        return
    _forker = me
    until = time.monotonic() + LONGEST
    while any(calls for thread, calls in list(_uses.items()) if thread != me):
        if time.monotonic() > until:
            return
        time.sleep(PAUSE)
    for one in list(_open):
        try:
            one.drop()
        except Exception as error:  # the others must still be closed
            warn(f"a connection was not closed before a fork: {error!r}")
    _is_closed = True


def _after_in_parent() -> None:
    global _forker, _is_closed
    if not _forks.hold.pop():
        return
    if not any(_forks.hold):
        _forker, _is_closed = None, False
    _forking.release()


def _after_in_child() -> None:
    global _forking, _forks, _forker, _is_closed, _is_unusable
    _is_unusable = _is_unusable or not _is_closed or any(_open)
    for one in _open:
        one.forget()
    _uses.clear()
    _forking, _forks, _forker, _is_closed = threading.RLock(), _Forks(), None, False


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
