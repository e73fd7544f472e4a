"""Brokers on one store, as the tests of the broker have them."""

from tests.broker.conftest import another, broker, clock, ram

__all__ = ["another", "broker", "clock", "ram"]
