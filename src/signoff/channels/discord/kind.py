"""Discord as a kind of channel: its keys in the project file, and how people are known there.

Importing it does not import discord.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from signoff.channel_kinds import ChannelAccount, ChannelKind, CheckStep, KindKeys, secret_variable
from signoff.policy.format import choice, matching
from signoff.policy.phrases import did_you_mean, shown
from signoff.policy.placed_value import ConfigValue

if TYPE_CHECKING:
    from signoff.channels.channel_context import ChannelContext
    from signoff.ports import Channel

NOTIFIED = ("approvers", "nobody")
"""Who may be notified of a call: the people who may answer it, or nobody."""
ACCOUNT = ChannelAccount(
    key="discord",
    what="Discord account",
    pattern="[1-9][0-9]{14,19}",
    wrong="{} is not a Discord ID: an ID has 15 to 20 digits",
    hint="turn on Developer Mode in Discord (Settings, Advanced), then right-click and Copy ID",
    example="102938475610293847",
)


def _read_notify(spot: ConfigValue) -> str:
    found = spot.text(f"who is notified: {' or '.join(NOTIFIED)}")
    if found not in NOTIFIED:
        raise spot.wrong(f"notify cannot be {shown(found)}", did_you_mean(found, NOTIFIED))
    return found


def _channel(config: Mapping[str, Any], context: ChannelContext) -> Channel:
    from signoff.channels.discord.bot import discord_channel

    return discord_channel(
        config["token"],
        secret=context.variables["token"],
        name=context.name,
        channel=config["channel"],
        people=context.people,
        begin=context.begin,
        workers=context.workers,
        listens=context.listens,
        notifies=config.get("notify") != "nobody",
    )


async def _check(config: Mapping[str, Any], context: ChannelContext) -> AsyncIterator[CheckStep]:
    from signoff.channels.discord.bot import COMMANDS, check

    async for step, problem in check(config["token"], channel=config["channel"], secret=context.variables["token"]):
        yield CheckStep(step, problem, is_needed=step != COMMANDS)  # everything else works without the commands


DISCORD = ChannelKind(
    title="Discord",
    build=_channel,
    config=KindKeys(
        {
            "token": secret_variable('"${DISCORD_TOKEN}"', "token").about(
                "The environment variable that holds the bot's token. Default: ${DISCORD_TOKEN}"
            ),
            "channel": matching(
                ACCOUNT.pattern, "the id of a Discord channel", ACCOUNT.wrong, ACCOUNT.hint, name="discordId"
            ).about("The id of the text channel in which threads are created, in quotes."),
            "notify": choice(NOTIFIED)
            .by(_read_notify)
            .about("Who is mentioned in a request. Default: approvers, the people who may answer it."),
        },
        required={
            "channel": (
                "`channel` is missing",
                'write the id of a text channel: channel: "112233445566778899"',
            )
        },
        defaults={"token": "${DISCORD_TOKEN}"},
    ),
    account=ACCOUNT,
    starts=True,
    timeout=timedelta(minutes=5),
    place=("channel", "token"),
    secrets={"token": "the bot's token"},
    modules=("discord",),
    extra="signoff[discord]",
    check=_check,
    loggers=("discord",),
)
