"""The tables of the Agent Approval Protocol: requests of agents elsewhere, and the instances that sent them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from signoff.core.aap import AapInstance, AapRequest
from signoff.core.codec import AAP_INSTANCE, AAP_REQUEST
from signoff.store.tables import Documents, told


class AapRequests(Documents[AapRequest]):
    """Calls that agents elsewhere ask about with the Agent Approval Protocol."""

    table, shape = "aap_requests", AAP_REQUEST
    columns = ("id", "instance", "key", "stage", "deadline", "touched_at")
    fixed = ("instance", "key", "deadline")

    def by_key(self, instance: str, key: str) -> AapRequest | None:
        """Look up a request by the key that the instance gave it."""
        return self._first("instance = ? and key = ?", instance, key)

    def going(self, instance: str) -> Sequence[AapRequest]:
        """Requests of an instance that still lack a decision, a use or an outcome, oldest first."""
        return self._where("instance = ? and stage <> 'over' order by nr", instance)

    def waiting(self, instance: str) -> int:
        """How many requests of an instance wait for a decision."""
        return self._value("select count(*) from {s}aap_requests where instance = ? and stage = 'open'", instance)

    def due(self, now: datetime) -> Sequence[str]:
        """Ids of undecided requests whose deadline has passed."""
        sql = "select id from {s}aap_requests where stage = 'open' and deadline <= ? order by deadline, nr"
        return [told(found) for (found,) in self._rows(sql, now)]

    def forget(self, before: datetime) -> None:
        """Delete decided requests that have not changed since this moment."""
        self._run("delete from {s}aap_requests where stage <> 'open' and touched_at < ?", before)


class AapInstances(Documents[AapInstance]):
    """Agents elsewhere that use the Agent Approval Protocol."""

    table, shape = "aap_instances", AAP_INSTANCE
    columns = ("id", "provisioner", "key", "revoked_at")
    fixed = ("provisioner", "key")

    def by_key(self, provisioner: str, key: str) -> AapInstance | None:
        """Look up an instance by the key that its provisioner gave it."""
        return self._first("provisioner = ? and key = ?", provisioner, key) if key else None

    def all(self, *, revoked: bool = True) -> Sequence[AapInstance]:
        """Instances in the order they were made."""
        return self._where("1 = 1 order by nr" if revoked else "revoked_at is null order by nr")

    def forget(self, before: datetime) -> None:
        """Delete instances that were revoked before this moment."""
        self._run("delete from {s}aap_instances where revoked_at is not null and revoked_at < ?", before)
