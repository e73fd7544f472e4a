"""Sign the audit log: at the end of every run, and from time to time."""

from __future__ import annotations

import atexit
import threading
import warnings
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from signoff.broker.checkpoints import Signer, checkpoint_if_due, known_as, make_checkpoint, place_of, signed
from signoff.broker.ledger import Ledger
from signoff.core.record import Checkpoint
from signoff.errors import SignoffError
from signoff.ports import Store, Transaction

WITHIN = 1.0
"""Seconds until a signature in the store has its copy outside."""


class Signed(NamedTuple):
    """A signature made in a transaction."""

    names: tuple[str, ...]
    """The names under which its copies are kept."""
    checkpoint: Checkpoint


class Signing:
    """Signs the end of the audit log, if there is a signing key."""

    def __init__(self, ledger: Ledger, signer: Signer | None = None) -> None:
        self._ledger = ledger
        self._signer = signer
        self._copies = Copies(signer) if signer is not None else None
        self._is_ready = False

    async def sign_if_due(self) -> None:
        """Sign the end of the audit log, if the last signature is old enough."""
        await self._sign(checkpoint_if_due)

    async def sign_end(self) -> None:
        """Sign the audit log as it stands."""
        await self._sign(make_checkpoint)

    async def _sign(self, make: Callable[[Store, Signer, datetime], Awaitable[object]]) -> None:
        if self._signer is None:
            return
        try:
            await make(self._ledger.store, self._signer, self._ledger.now())
        except SignoffError as error:  # signing errors stop nothing; `audit verify` says what is wrong
            _warn(error)

    # --- together with the last write of a run ---

    async def get_ready(self) -> None:
        """Read the key in a thread, or make it. Files are written before the transaction takes the lock, not during it.

        Reading it imports the library for signatures, which takes longer than all the rest.
        """
        if self._signer is None or self._is_ready or not self._ledger.store.is_durable:
            return
        import asyncio

        with suppress(SignoffError):  # reported when it signs
            await asyncio.to_thread(self._signer.public_key, make=True)
            self._is_ready = True

    def sign_in(self, tx: Transaction, now: datetime) -> Signed | SignoffError | None:
        """Sign the audit log as it stands in this transaction; return the signature, an error, or None if not needed.

        An error here does not roll back the transaction: a run that ended has ended.
        """
        if self._signer is None:
            return None
        try:
            names = known_as(tx, place_of(self._ledger.store))
            made = signed(tx, names, self._signer, now)
        except SignoffError as error:
            return error
        return None if made is None else Signed(names, made)

    def keep(self, made: Signed | SignoffError | None) -> None:
        """Schedule copies of a signature after the commit; a newer signature before the write replaces it."""
        if isinstance(made, SignoffError):
            _warn(made)
        elif made is not None and self._copies is not None:
            self._copies.keep(made)


class Copies:
    """Writes copies of signatures in batches, and before the program exits."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._lock = threading.Lock()
        self._newest: dict[tuple[str, ...], Checkpoint] = {}
        self._timer: threading.Timer | None = None
        _all.add(self)

    def keep(self, made: Signed) -> None:
        with self._lock:
            self._newest[made.names] = made.checkpoint
            if self._timer is None:
                self._timer = threading.Timer(WITHIN, self.write)
                self._timer.name, self._timer.daemon = "signoff copies", True
                self._timer.start()

    def write(self) -> None:
        """Write the copies that are due."""
        with self._lock:
            newest, self._newest, self._timer = self._newest, {}, None
        for names, checkpoint in newest.items():
            try:
                for name in names:
                    self._signer.keep(name, checkpoint)
            except SignoffError as error:
                _warn(error)


_all: weakref.WeakSet[Copies] = weakref.WeakSet()


@atexit.register
def _write_all() -> None:
    for copies in list(_all):
        copies.write()


def _warn(error: SignoffError) -> None:
    warnings.warn(f"the record could not be signed: {error}", RuntimeWarning, stacklevel=2)
