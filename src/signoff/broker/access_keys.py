"""Access keys of people and programs: issue, find, redeem and revoke.

A secret is returned once, when the key is made. The store keeps only its digest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from signoff.broker.ids import new_id
from signoff.broker.ledger import Ledger
from signoff.core.access import EVERYTHING, AccessKey, AccessKind, Permission, digest_of
from signoff.core.record import EventDraft
from signoff.errors import WrongUse
from signoff.ports import Transaction

KEPT = timedelta(days=30)
"""How long a key is listed after it expired."""
_USED = timedelta(minutes=1)
"""Precision of a key's last use: a use is written at most this often."""
INSTANCE_MARK = "soi_"
_MARKS = {
    AccessKind.LINK: "sol_",
    AccessKind.SESSION: "sos_",
    AccessKind.TOKEN: "sot_",
    AccessKind.INSTANCE: INSTANCE_MARK,
}
"""Prefixes of secrets, so that secret scanners find one that was published by mistake."""


class BrokerAccess:
    """The part of the broker for access keys."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def issue(
        self,
        kind: AccessKind,
        holder: str,
        *,
        by: str,
        lasts: timedelta | None,
        label: str = "",
        is_program: bool = False,
        permissions: frozenset[Permission] = EVERYTHING,
    ) -> tuple[AccessKey, str]:
        """Make a key.

        Returns it with its secret, which cannot be looked up again. Raises `WrongUse` without permissions.
        """
        if not permissions:
            raise WrongUse("a token needs at least one permission")
        secret = f"{_MARKS[kind]}{_random()}"

        def work(tx: Transaction, now: datetime) -> AccessKey:
            key = AccessKey(
                id=new_id(),
                kind=kind,
                digest=digest_of(secret),
                holder=holder,
                is_program=is_program,
                label=label,
                permissions=permissions,
                created_at=now,
                created_by=by,
                expires_at=now + lasts if lasts is not None else None,
            )
            tx.access_keys.forget(now - KEPT)
            tx.access_keys.put(key)
            tx.record.append([EventDraft(kind="access given", at=now, body=self._body(key, by))])
            return key

        return await self._ledger.write("give access", work), secret

    async def find(self, kind: AccessKind, secret: str) -> AccessKey | None:
        """Return the valid key of this secret, or None. Records from time to time that the key was used."""
        digest = digest_of(secret)
        key, now = await self._ledger.read(lambda tx, now: (tx.access_keys.by_digest(digest), now))
        if key is None or key.kind is not kind or key.refusal(now):
            return None
        if kind is not AccessKind.LINK and (key.used_at is None or now - key.used_at >= _USED):
            self._ledger.later("use access", lambda tx, now: _use(tx, key.id, now))
        return key

    async def redeem(self, secret: str, *, lasts: timedelta, label: str = "") -> tuple[AccessKey, str]:
        """Sign in with a link, once. Returns the session and its secret. Raises `WrongUse` if the link is not valid."""
        session_secret = f"{_MARKS[AccessKind.SESSION]}{_random()}"

        def work(tx: Transaction, now: datetime) -> AccessKey:
            link = tx.access_keys.by_digest(digest_of(secret))
            if link is None or link.kind is not AccessKind.LINK:
                raise WrongUse("there is no such link")
            if refusal := link.refusal(now):
                raise WrongUse(refusal)
            tx.access_keys.put(replace(link, used_at=now))
            session = AccessKey(
                id=new_id(),
                kind=AccessKind.SESSION,
                digest=digest_of(session_secret),
                holder=link.holder,
                label=label,
                permissions=link.permissions,
                created_at=now,
                created_by=link.holder,
                expires_at=now + lasts,
            )
            tx.access_keys.put(session)
            tx.record.append([EventDraft(kind="access given", at=now, body=self._body(session, link.holder))])
            return session

        return await self._ledger.write("sign in", work), session_secret

    async def revoke(self, key_id: str, *, by: str) -> AccessKey:
        """Revoke a key. Raises `WrongUse` if there is none of that id."""

        def work(tx: Transaction, now: datetime) -> AccessKey:
            key = tx.access_keys.get(key_id)
            if key is None:
                raise WrongUse(f"there is no key {key_id!r}")
            if key.revoked_at is None:
                key = replace(key, revoked_at=now)
                tx.access_keys.put(key)
                tx.record.append([EventDraft(kind="access revoked", at=now, body=self._body(key, by))])
            return key

        return await self._ledger.write("revoke access", work)

    async def get(self, key_id: str) -> AccessKey | None:
        """Return the key of this id, also if it expired or was revoked."""
        return await self._ledger.store.read(lambda tx: tx.access_keys.get(key_id))

    async def list(self, *, kind: AccessKind | None = None, holder: str = "") -> Sequence[AccessKey]:
        """List keys in the order they were made."""
        return await self._ledger.store.read(lambda tx: tx.access_keys.all(kind=kind, holder=holder))

    def _body(self, key: AccessKey, by: str) -> dict[str, Any]:
        """The body of an audit event about a key."""
        label, permissions = self._ledger.journal.text(key.label), sorted(key.permissions)
        told = {"key": key.id, "kind": str(key.kind), "holder": key.holder, "label": label, "by": by}
        return {**told, "permissions": permissions}


def _use(tx: Transaction, key_id: str, now: datetime) -> None:
    key = tx.access_keys.get(key_id)
    if key is not None and key.revoked_at is None:
        tx.access_keys.put(replace(key, used_at=now))


def _random() -> str:
    from secrets import token_urlsafe

    return token_urlsafe(32)
