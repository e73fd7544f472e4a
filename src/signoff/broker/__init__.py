"""The only writer of requests and decisions."""

from signoff.broker.broker import Broker
from signoff.broker.ids import new_id
from signoff.broker.wall_clock import SystemClock

__all__ = ["Broker", "SystemClock", "new_id"]
