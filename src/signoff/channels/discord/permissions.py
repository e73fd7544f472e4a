"""The Discord permissions that the bot needs in its channel, and what for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import discord

from signoff.errors import WrongUse

CREATE_THREADS = "create_public_threads"
NEEDED: Mapping[str, tuple[str, str]] = {
    "view_channel": ("View Channels", "to see the channel and its threads"),
    "send_messages": ("Send Messages", "to reply to people who start something in the channel"),
    CREATE_THREADS: ("Create Public Threads", "to give every run a thread"),
    "send_messages_in_threads": ("Send Messages in Threads", "to ask there"),
    "embed_links": ("Embed Links", "to show what a call would do: without it Discord drops the embed"),
    "attach_files": ("Attach Files", "to attach what is too long for a message"),
    "read_message_history": ("Read Message History", "to find its own messages again after a restart"),
}
"""By discord.py's name: Discord's own name, and the reason."""


def missing(channel: discord.TextChannel) -> Iterator[str]:
    """Yield each permission that the bot lacks there, with the reason it is needed."""
    has = channel.permissions_for(channel.guild.me)
    for name, (title, why) in NEEDED.items():
        if not getattr(has, name):
            yield f"{title}, {why}"


def check_permissions(channel: discord.TextChannel) -> None:
    """Raise `WrongUse` with all missing permissions, if there are any."""
    if lacking := list(missing(channel)):
        lines = "".join(f"\n  {one}" for one in lacking)
        raise WrongUse(f"the bot lacks permissions in the Discord channel {channel.id}:{lines}")


async def text_channel(client: discord.Client, channel: str) -> discord.TextChannel:
    """Return the text channel with this id. Raises `WrongUse` if the bot sees none."""
    if not channel.isdecimal():
        raise WrongUse(
            f"{channel!r} is not the ID of a Discord channel\n"
            "  It is a number: right-click the channel and choose Copy Channel ID"
        )
    try:
        found = client.get_channel(int(channel)) or await client.fetch_channel(int(channel))
    except (discord.NotFound, discord.Forbidden, discord.InvalidData):
        raise WrongUse(
            f"the bot does not see a Discord channel {channel}: invite it to the server, and let it view the channel"
        ) from None
    if not isinstance(found, discord.TextChannel) or found.is_news():
        raise WrongUse(f"the Discord channel {channel} is not a text channel that allows threads")
    return found
