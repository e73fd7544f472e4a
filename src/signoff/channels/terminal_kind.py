"""The kind of channel that asks at the terminal of the program that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff.channel_kinds import ChannelKind, KindKeys

if TYPE_CHECKING:
    from signoff.channels.channel_context import ChannelContext
    from signoff.ports import Channel


def _channel(context: ChannelContext) -> Channel:
    from signoff.channels.approver import ApproverChannel
    from signoff.channels.approvers import terminal_approver

    approver = terminal_approver(actor=context.here, headless="park")
    return ApproverChannel(approver, name=context.name, by=context.here)


TERMINAL = ChannelKind(build=_channel, config=KindKeys({}), at_terminal=True)
