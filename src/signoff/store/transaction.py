"""A transaction of a store: one part for each noun. SQLite, PostgreSQL and the store in memory share it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from signoff.store.tables import Sql

if TYPE_CHECKING:
    from signoff.store.aap import AapInstances, AapRequests
    from signoff.store.conversations import Conversations
    from signoff.store.deliveries import Deliveries, Leases
    from signoff.store.grants import Grants
    from signoff.store.people import AccessKeys, Delegations
    from signoff.store.record import Chain, Checkpoints, Record
    from signoff.store.requests import Comments, Listings, Past, Queue, Readers, Requests, Results
    from signoff.store.runs import Processes, Runs, Segments
    from signoff.store.texts import Policies, Replies, Settings

T = TypeVar("T")


class _Part(Generic[T]):
    """A part of a transaction, which is imported and made on first use: most need two or three of them."""

    def __init__(self, kind: str, *needs: str) -> None:
        """`kind` is the name of the class, with its module. It is given the SQL, and what else it `needs` of all."""
        self._place = kind
        self._needs = needs
        self._kind: Callable[..., T] | None = None

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    def __get__(self, tx: Transaction, owner: type[Any]) -> T:
        if self._kind is None:
            module, _, name = self._place.rpartition(".")
            self._kind = cast("Callable[..., T]", getattr(import_module(f"signoff.store.{module}"), name))
        needs = (getattr(tx, name) for name in self._needs)
        part = tx.__dict__[self._name] = self._kind(tx.sql, *needs)
        return part


class Transaction:
    """What can be read and changed atomically. Writing transactions run one after the other.

    A transaction makes no decisions. Only the broker calls the methods that change something.
    """

    def __init__(self, sql: Sql, chain: Chain) -> None:
        self.sql = sql
        self.chain = chain

    requests: _Part[Requests] = _Part("requests.Requests")
    past: _Part[Past] = _Part("requests.Past", "requests")
    queue: _Part[Queue] = _Part("requests.Queue", "requests")
    listings: _Part[Listings] = _Part("requests.Listings")
    results: _Part[Results] = _Part("requests.Results")
    comments: _Part[Comments] = _Part("requests.Comments")
    readers: _Part[Readers] = _Part("requests.Readers")
    grants: _Part[Grants] = _Part("grants.Grants")
    runs: _Part[Runs] = _Part("runs.Runs")
    segments: _Part[Segments] = _Part("runs.Segments")
    processes: _Part[Processes] = _Part("runs.Processes")
    conversations: _Part[Conversations] = _Part("conversations.Conversations")
    deliveries: _Part[Deliveries] = _Part("deliveries.Deliveries")
    leases: _Part[Leases] = _Part("deliveries.Leases")
    record: _Part[Record] = _Part("record.Record", "chain")
    checkpoints: _Part[Checkpoints] = _Part("record.Checkpoints")
    access_keys: _Part[AccessKeys] = _Part("people.AccessKeys")
    delegations: _Part[Delegations] = _Part("people.Delegations")
    aap_requests: _Part[AapRequests] = _Part("aap.AapRequests")
    aap_instances: _Part[AapInstances] = _Part("aap.AapInstances")
    policies: _Part[Policies] = _Part("texts.Policies")
    settings: _Part[Settings] = _Part("texts.Settings")
    replies: _Part[Replies] = _Part("texts.Replies")
