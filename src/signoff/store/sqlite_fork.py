"""What a forked process may do with SQLite: nothing, if its parent had a connection open.

SQLite does not survive a fork with an open file. The forked process inherits what SQLite remembers of its parent's
locks, but not the locks: what it writes would be lost, or overwrite what its parent writes, and to close a connection
is to write, too. So what it inherited stays open, and unused, until the process ends, and it opens no others.
"""

from __future__ import annotations

import os
import sqlite3
from typing import Any
from weakref import WeakSet

from signoff.errors import StoreUnavailable
from signoff.store.durable_store import IN_FORK

_open: WeakSet[Connection] = WeakSet()
_pid = os.getpid()
_inherits = False
"""Whether a connection was open in this process's parent when it was forked."""


class Connection(sqlite3.Connection):
    """A connection that a forked process neither uses nor closes."""

    def __init__(self, *args: Any, **options: Any) -> None:
        refuse_in_fork()
        _open.add(self)  # first: another thread may fork while it opens
        super().__init__(*args, **options)

    def close(self) -> None:
        if not inherits():
            super().close()
            _open.discard(self)


def refuse_in_fork() -> None:
    """Raise if this process was forked while its parent had a connection open."""
    if inherits():
        raise StoreUnavailable(IN_FORK)


def inherits() -> bool:
    """Whether this process was forked while its parent had a connection open."""
    if _pid != os.getpid():  # by a program that does not tell Python of it, as uWSGI does
        keep_open()
    return _inherits


def keep_open() -> None:
    """In a forked process: keep the connections of its parent open, even when Python ends and drops all objects."""
    global _pid, _inherits
    _pid = os.getpid()
    if connections := list(_open):
        import ctypes

        _inherits = True
        for connection in connections:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=keep_open)
