"""The only writer of requests and decisions."""

from signoff.broker.broker import Broker
from signoff.broker.clock import SystemClock
from signoff.broker.ids import new_id

__all__ = ["Broker", "SystemClock", "new_id"]
