"""All uses of undocumented parts of discord.py; `docs/internals/discord-py.md` has the reasons.

`tests/discord/test_library_internals.py` fails if another module of this package uses such parts, and if a release of
discord.py no longer has one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, cast

import discord
from discord import app_commands


class SessionLimit(NamedTuple):
    """How many more sessions Discord allows a bot today."""

    remaining: int
    total: int
    reset_after: float
    """Seconds."""


async def session_limit(client: discord.Client) -> SessionLimit:
    """Return the session limit. discord.py itself reads it only if it runs several shards."""
    _, _, limit = await client.http.get_bot_gateway()
    return SessionLimit(limit["remaining"], limit["total"], limit["reset_after"] / 1000)


def has_lost_session(client: discord.Client) -> bool:
    """Whether the session cannot be resumed. discord.py sends the same event in both cases."""
    return getattr(client.ws, "session_id", "") is None


def silence_voice() -> None:
    """Turn off discord.py's warning about missing voice libraries."""
    discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False


def forget_checks(client: discord.Client, checks: Collection[Callable[..., bool]]) -> None:
    """Remove checks of `wait_for` from a client now. Otherwise each goes only with the next event of its kind."""
    kept: dict[str, list[tuple[Any, Any]]] = getattr(client, "_listeners", {})
    for event, asked in list(kept.items()):
        asked[:] = [one for one in asked if one[1] not in checks]
        if not asked:
            del kept[event]


def attached_tree(client: discord.Client) -> app_commands.CommandTree[Any] | None:
    """Return the command tree of a client, wherever its owner keeps it: in most bots not as an attribute."""
    tree: Any = getattr(getattr(client, "_connection", None), "_command_tree", None)
    return cast("app_commands.CommandTree[Any]", tree) if isinstance(tree, app_commands.CommandTree) else None


def detach_tree(tree: app_commands.CommandTree[Any]) -> None:
    """Detach a tree, so that the client's owner can attach another."""
    if attached_tree(tree.client) is tree:
        connection: Any = getattr(tree.client, "_connection", None)
        connection._command_tree = None


def payload_of(group: app_commands.Group, tree: app_commands.CommandTree[Any]) -> Mapping[str, Any]:
    """Return a command in Discord's format, without fields that only global commands have."""
    made = group.to_dict(tree)
    return {name: made[name] for name in ("name", "description", "type", "options")}


async def add_to_server(client: discord.Client, guild_id: int, payload: Mapping[str, Any]) -> None:
    """Add or update one command in a server. `CommandTree.sync` would remove all that are not in the tree."""
    assert client.application_id is not None, "it is logged in"
    await client.http.upsert_guild_command(client.application_id, guild_id, dict(payload))
