"""Deprecated: the channel code of 0.1 is in `signoff.delivery` now. To be removed with 0.3."""

from __future__ import annotations

import warnings
from functools import partial
from importlib import import_module
from typing import Any

_NOW = {"Post": "Reconciler", "Route": "Route"}


def __getattr__(name: str) -> Any:
    if name not in _NOW:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    told = f"signoff.broker.post.{name} is signoff.delivery.{_NOW[name]} now"
    warnings.warn(told, DeprecationWarning, stacklevel=2)
    # No `import` statement: delivery is a layer above the broker.
    now: Any = getattr(import_module("signoff.delivery"), _NOW[name])
    return partial(_made, now) if name == "Post" else now


def _made(now: Any, broker: Any, routes: Any, *, desk: Any) -> Any:
    return now(broker, routes, inbox=desk)
