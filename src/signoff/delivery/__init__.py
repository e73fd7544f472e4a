"""Delivery of notices to channels: one outbox, and a loop that reconciles it with what each channel shows."""

from signoff.delivery.reconcile import Reconciler
from signoff.delivery.routes import Route

__all__ = ["Reconciler", "Route"]
