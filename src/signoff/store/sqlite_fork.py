"""Close all SQLite connections of this process before it forks.

SQLite does not survive a fork with an open file. The forked process inherits what SQLite remembers of its parent's
locks, but not the locks. It then writes without a lock, and what it wrote is lost when the parent closes the file; or
it waits for ever for a lock that nobody holds. Without an open file there is nothing to remember.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from typing import Protocol
from weakref import WeakSet

from signoff.store.writer import warn

LONGEST = 30.0
"""Seconds a fork waits for threads that use SQLite, which may wait for the lock of another process."""


class ForkedStore(Protocol):
    """A store whose connections are closed before a fork. It opens new ones when it needs them."""

    def drop_connections(self) -> None: ...


class ForkGuard:
    """A context manager for each use of a connection, by any thread of the process: a fork waits until it is over."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._users = Counter[int]()
        self._stores = WeakSet[ForkedStore]()

    def register(self, store: ForkedStore) -> None:
        self._stores.add(store)

    def __enter__(self) -> None:
        with self._change:
            self._users[threading.get_ident()] += 1

    def __exit__(self, *_: object) -> None:
        thread = threading.get_ident()
        with self._change:
            self._users[thread] -= 1
            if self._users[thread] <= 0:
                del self._users[thread]
                self._change.notify_all()

    def before(self) -> None:
        """Wait until no other thread uses a connection, and close all of them."""
        self._change.acquire()
        mine = threading.get_ident()
        if not self._change.wait_for(lambda: self._users.keys() <= {mine}, LONGEST) or self._users:
            warn("this process forks in the middle of a use of its SQLite store; the new process must not use it")
            return
        for store in list(self._stores):
            store.drop_connections()

    def after_in_parent(self) -> None:
        self._change.release()

    def after_in_child(self) -> None:
        self._users.clear()
        self._change.release()


no_fork = ForkGuard()

if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=no_fork.before, after_in_parent=no_fork.after_in_parent, after_in_child=no_fork.after_in_child
    )
