"""Close all SQLite connections of this process before it forks.

SQLite does not survive a fork with an open file. The forked process inherits what SQLite remembers of its parent's
locks, but not the locks. It then writes without a lock, and what it wrote is lost when the parent closes the file; or
it waits for ever for a lock that nobody holds. Without an open file there is nothing to remember.

A fork waits until no other thread uses a connection, and threads that begin to use one wait until it is over. A writer
that waits for another process lets the fork go first. Where nobody closed what was open (a fork in the middle of a
transaction, or by a program that does not tell Python of it) the forked process may not use SQLite at all.
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
from signoff.processes import notice_fork, renew_after_fork
from signoff.store.writer import warn

P = ParamSpec("P")
T = TypeVar("T")

LONGEST = 40.0
"""Seconds a fork waits for others."""
PAUSE = 0.001
"""Seconds between two looks."""

_open: set[OpenConnections] = set()
_orphans: list[OpenConnections] = []
"""The connections of stores that were dropped."""
_left_behind: list[object] = []
"""The connections of the parent in a forked process, which must neither use nor close them."""
_uses: dict[int, int] = {}
"""How many calls of each thread are inside SQLite. Only the thread itself changes its number."""
_forkers: dict[int, bool] = {}
"""The threads that are about to fork, and whether each may: nothing is open, and nobody opens anything."""
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
            if _forkers and not calls:
                _let_it_fork(me)
            return function(*args, **kwargs)
        finally:
            _uses[me] = calls  # no call, so that no signal handler can come in between

    return guarded


def is_fork_waiting() -> bool:
    """Whether another thread wants to fork, and waits until this one does not use SQLite."""
    return bool(_forkers.keys() - {threading.get_ident()})


def refuse_after_unsafe_fork() -> None:
    """Raise if this process was forked while its parent used SQLite."""
    if _is_unusable:
        raise StoreUnavailable(
            "this process was forked while SQLite was in use in its parent, so it would lose what it writes; start "
            "processes with `spawn`, or open the store after the fork (uWSGI: `lazy-apps = true`)"
        )


def _let_it_fork(me: int) -> None:
    _forkers.pop(me, None)  # a fork that was interrupted, or a signal handler in the middle of one
    until = time.monotonic() + 2 * LONGEST
    while is_fork_waiting():
        if time.monotonic() > until:  # it was interrupted
            _forkers.clear()
        _uses[me] = 0
        time.sleep(PAUSE)
        _uses[me] = 1


def leave_behind(connection: object) -> None:
    """In a forked process: neither use nor close a connection of the parent, which the child found in its hands."""
    _left_behind.append(connection)


class OpenConnections:
    """The open connections of one store. They are closed before a fork, and opened again when they are needed.

    If the store is dropped without being closed, they are closed when the next one is opened: not by the garbage
    collector, which works in the middle of anything.
    """

    def __init__(self, owner: object) -> None:
        notice_fork()  # before anything is open here that it would take for its parent's
        with suppress(IndexError):  # another thread may do the same
            while True:
                _orphans.pop().close()
        self.writing: sqlite3.Connection | None = None
        """The one of the writer thread, which closes it."""
        self.readers: list[sqlite3.Connection] = []
        """Those that nobody uses at the moment: whoever takes one out has it alone."""
        self.watching: set[sqlite3.Connection] = set()
        """Those of the threads that look for changes. Each closes its own."""
        _open.add(self)
        weakref.finalize(owner, _orphans.append, self).atexit = False

    def __bool__(self) -> bool:
        return bool(self.writing or self.readers or self.watching)

    @uses_sqlite
    def close_idle(self) -> None:
        """Close those that nobody uses. The others are left to their threads: closed under its user, one crashes it."""
        with suppress(IndexError):  # another thread may do the same
            while True:
                self.readers.pop().close()

    def close_unused(self) -> None:
        """Close them all, where nobody uses any: before a fork that waited for that, or once their store is gone."""
        connection, self.writing = self.writing, None
        if connection is not None:
            connection.close()
        for idle in (self.readers, self.watching):
            while idle:
                idle.pop().close()

    @uses_sqlite
    def close(self) -> None:
        """Close them for good, once nobody can open others or give one back."""
        self.close_unused()
        _open.discard(self)

    def forget(self) -> None:
        """In a forked process: leave those of the parent alone."""
        _left_behind.append((self.writing, self.readers, self.watching))
        self.writing, self.readers, self.watching = None, [], set()


def _before() -> None:
    me = threading.get_ident()
    is_nested = me in _forkers  # in a signal handler, while its thread waits to fork
    _forkers[me] = False
    if is_nested or _uses.get(me):  # in the middle of a use, others may wait for this thread
        return
    until = time.monotonic() + LONGEST
    while any(calls for thread, calls in _uses.copy().items() if thread != me):
        if time.monotonic() > until:
            return
        time.sleep(PAUSE)
        _forkers[me] = False  # again: a signal handler of this thread may have forked meanwhile
    for one in list(_open):
        if me not in _forkers:
            return
        try:
            one.close_unused()
        except Exception as error:  # the others must still be closed
            warn(f"a connection was not closed before a fork: {error!r}")
    if me in _forkers:
        _forkers[me] = True


def _after_in_parent() -> None:
    _forkers.pop(threading.get_ident(), None)


class _Child:
    """What a forked process knows of SQLite."""

    def renew(self) -> None:
        global _is_unusable
        may = _forkers.get(threading.get_ident(), False)
        _is_unusable = _is_unusable or any(_open) or (not may and any(_uses.values()))
        for one in _open:
            one.forget()
        _uses.clear()
        _forkers.clear()


_child = _Child()
renew_after_fork(_child)
if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent)
    os.register_at_fork(after_in_parent=_after_in_parent)  # where Ctrl-C came at the beginning of the first
