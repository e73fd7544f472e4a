"""Ways to ask people for approval: at the terminal, on the full screen, in Discord or in your own program.

Ready-made approvers: `terminal_approver`, `tui_approver` (full screen), `headless_approver` (nobody is asked) and
`scripted_approver`. `DiscordApprovals` asks in Discord. A program that answers requests itself uses `open_inbox`; an
application behind AG-UI uses `take_interrupts`, one behind Vercel AI `take_approvals`. To write a channel: implement
`Channel`, show each `Notice` (`Asked`, `RunResult`), answer through the `Inbox`, and run it with a `Reconciler` that
has a `Route` for each channel, or make it a `ChannelKind` that `signoff.yaml` can name. Names are imported lazily.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff.lazy_names import lazy_names

if TYPE_CHECKING:  # some live in layers above this package; they are exported here because users look here
    from signoff.channel_kinds import ChannelAccount as ChannelAccount
    from signoff.channel_kinds import ChannelKind as ChannelKind
    from signoff.channel_kinds import CheckStep as CheckStep
    from signoff.channels.approvers import headless_approver as headless_approver
    from signoff.channels.approvers import scripted_approver as scripted_approver
    from signoff.channels.approvers import terminal_approver as terminal_approver
    from signoff.channels.approvers import tui_approver as tui_approver
    from signoff.channels.channel_context import ChannelContext as ChannelContext
    from signoff.channels.discord.own_bot import DiscordApprovals as DiscordApprovals
    from signoff.channels.outcome import outcome_text as outcome_text
    from signoff.channels.outcome import result_text as result_text
    from signoff.core.card import card_for as card_for
    from signoff.core.notice import Asked as Asked
    from signoff.core.notice import Notice as Notice
    from signoff.core.notice import RunResult as RunResult
    from signoff.core.visible_text import is_clean as is_clean
    from signoff.delivery import Reconciler as Reconciler
    from signoff.delivery import Route as Route
    from signoff.gate.client_votes import take_approvals as take_approvals
    from signoff.gate.client_votes import take_interrupts as take_interrupts
    from signoff.ports import Channel as Channel
    from signoff.ports import Inbox as Inbox
    from signoff.side_thread import in_side_thread as in_side_thread
    from signoff.wiring.program_inbox import open_inbox as open_inbox

_HOMES = {
    "Asked": "core.notice",
    "Channel": "ports",
    "ChannelAccount": "channel_kinds",
    "ChannelContext": "channels.channel_context",
    "ChannelKind": "channel_kinds",
    "CheckStep": "channel_kinds",
    "DiscordApprovals": "channels.discord.own_bot",
    "Inbox": "ports",
    "Notice": "core.notice",
    "Reconciler": "delivery",
    "Route": "delivery",
    "RunResult": "core.notice",
    "card_for": "core.card",
    "headless_approver": "channels.approvers",
    "in_side_thread": "side_thread",
    "is_clean": "core.visible_text",
    "open_inbox": "wiring.program_inbox",
    "outcome_text": "channels.outcome",
    "result_text": "channels.outcome",
    "scripted_approver": "channels.approvers",
    "take_approvals": "gate.client_votes",
    "take_interrupts": "gate.client_votes",
    "terminal_approver": "channels.approvers",
    "tui_approver": "channels.approvers",
}

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

_find = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> object:
    return _find(name)


def __dir__() -> list[str]:
    return __all__
