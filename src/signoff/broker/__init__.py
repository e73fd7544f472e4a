"""The only writer of requests and decisions."""

from signoff.broker.broker import Broker, new_id
from signoff.broker.clock import SystemClock

__all__ = ["Broker", "SystemClock", "new_id"]
