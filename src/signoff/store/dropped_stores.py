"""Close the stores that a program opened by their address and dropped."""

from __future__ import annotations

import os
import threading
import weakref
from queue import SimpleQueue
from typing import Protocol

from signoff.store.writer import warn


class _Closes(Protocol):
    def close(self) -> None: ...


_dropped: SimpleQueue[_Closes] = SimpleQueue()
_closer_of = 0
"""The process whose thread closes dropped stores. A forked process does not have the thread of its parent."""


def close_with(owner: object, store: _Closes) -> None:
    """Close the store soon after `owner` is gone. Everybody who uses the store must hold the owner.

    The threads of a store keep it alive, so without this it would stay open until the process ends.
    """
    global _closer_of
    if _closer_of != os.getpid():  # no lock, which a fork might copy: two threads that do the same do no harm
        threading.Thread(target=_close_dropped, name="signoff dropped stores", daemon=True).start()
        _closer_of = os.getpid()
    # The garbage collector may call this while any lock is held. A simple queue is made for that; closing is not.
    weakref.finalize(owner, _dropped.put, store).atexit = False  # at exit all stores are closed anyway


def _close_dropped() -> None:
    while True:
        store = _dropped.get()
        try:
            store.close()
        except Exception as error:  # the next one must still be closed
            warn(f"a store that nobody uses any longer was not closed: {error!r}")
        del store
