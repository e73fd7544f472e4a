"""Where 0.1 had approvers as channels: they are in `signoff.channels.approver` now. To be removed with 0.3."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

_NOW = {
    "UIChannel": ("approver", "ApproverChannel"),
    "outcome_text": ("outcome", "outcome_text"),
    "said_text": ("outcome", "result_text"),
}


def __getattr__(name: str) -> Any:
    if name not in _NOW:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, now = _NOW[name]
    warnings.warn(
        f"signoff.channels.asking.{name} is signoff.channels.{module}.{now} now", DeprecationWarning, stacklevel=2
    )
    return getattr(import_module(f"signoff.channels.{module}"), now)
