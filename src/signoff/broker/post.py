"""Where 0.1 had what runs channels: it is in `signoff.delivery` now. To be removed with 0.3."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

_NOW = {"Post": "Reconciler", "Route": "Route"}


def __getattr__(name: str) -> Any:
    if name not in _NOW:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    told = f"signoff.broker.post.{name} is signoff.delivery.{_NOW[name]} now"
    warnings.warn(told, DeprecationWarning, stacklevel=2)
    return getattr(import_module("signoff.delivery"), _NOW[name])  # not by `import`: delivery is above the broker
