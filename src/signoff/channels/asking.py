"""Deprecated names from 0.1. They moved to `signoff.channels.approver`; this module goes with 0.3."""

from __future__ import annotations

from signoff.lazy_names import lazy_names

_MOVED = {
    "UIChannel": ("channels.approver:ApproverChannel", "signoff.channels.approver.ApproverChannel"),
    "outcome_text": ("channels.outcome", "signoff.channels.outcome_text"),
    "said_text": ("channels.outcome:result_text", "signoff.channels.result_text"),
}
_find = lazy_names(__name__, {}, _MOVED)


def __getattr__(name: str) -> object:
    return _find(name)
