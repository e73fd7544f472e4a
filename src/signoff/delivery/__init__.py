"""Shows in channels what there is to show: one outbox, and one loop that compares it with what stands there."""

from signoff.delivery.reconcile import Reconciler
from signoff.delivery.routes import Route

__all__ = ["Reconciler", "Route"]
