"""Where 0.1 had approvers as channels: they are in `signoff.channels.approver` now. To be removed with 0.3."""

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
