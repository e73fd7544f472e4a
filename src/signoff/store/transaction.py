"""A transaction of a store: one part for each noun. SQLite, PostgreSQL and the store in memory share it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from signoff.store.tables import Sql

if TYPE_CHECKING:
    from signoff.store.aap_table import AapInstances, AapRequests
    from signoff.store.conversation_table import Conversations
    from signoff.store.delivery_table import Deliveries, Leases
    from signoff.store.grant_table import Grants
    from signoff.store.people_table import AccessKeys, Delegations
    from signoff.store.record_table import Chain, Checkpoints, Record
    from signoff.store.request_table import Comments, Listings, Past, Queue, Readers, Requests, Results
    from signoff.store.run_table import Processes, Runs, Segments
    from signoff.store.texts import Policies, Replies, StoredValues

T = TypeVar("T")


class _TablePart(Generic[T]):
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

    requests: _TablePart[Requests] = _TablePart("request_table.Requests")
    past: _TablePart[Past] = _TablePart("request_table.Past", "requests")
    queue: _TablePart[Queue] = _TablePart("request_table.Queue", "requests")
    listings: _TablePart[Listings] = _TablePart("request_table.Listings")
    results: _TablePart[Results] = _TablePart("request_table.Results")
    comments: _TablePart[Comments] = _TablePart("request_table.Comments")
    readers: _TablePart[Readers] = _TablePart("request_table.Readers")
    grants: _TablePart[Grants] = _TablePart("grant_table.Grants")
    runs: _TablePart[Runs] = _TablePart("run_table.Runs")
    segments: _TablePart[Segments] = _TablePart("run_table.Segments")
    processes: _TablePart[Processes] = _TablePart("run_table.Processes")
    conversations: _TablePart[Conversations] = _TablePart("conversation_table.Conversations")
    deliveries: _TablePart[Deliveries] = _TablePart("delivery_table.Deliveries")
    leases: _TablePart[Leases] = _TablePart("delivery_table.Leases")
    record: _TablePart[Record] = _TablePart("record_table.Record", "chain")
    checkpoints: _TablePart[Checkpoints] = _TablePart("record_table.Checkpoints")
    access_keys: _TablePart[AccessKeys] = _TablePart("people_table.AccessKeys")
    delegations: _TablePart[Delegations] = _TablePart("people_table.Delegations")
    aap_requests: _TablePart[AapRequests] = _TablePart("aap_table.AapRequests")
    aap_instances: _TablePart[AapInstances] = _TablePart("aap_table.AapInstances")
    policies: _TablePart[Policies] = _TablePart("texts.Policies")
    settings: _TablePart[StoredValues] = _TablePart("texts.StoredValues")
    replies: _TablePart[Replies] = _TablePart("texts.Replies")
