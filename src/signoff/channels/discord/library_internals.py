"""What we use of discord.py that it does not document, all of it here; `docs/internals/discord-py.md` has the reasons.

`tests/discord/test_library_internals.py` fails where another module of this package does the same, and where a release
of discord.py no longer has one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, cast

import discord
from discord import app_commands


class SessionLimit(NamedTuple):
    """How many sessions Discord still takes from a bot today."""

    remaining: int
    total: int
    reset_after: float
    """Seconds."""


async def session_limit(client: discord.Client) -> SessionLimit:
    """Asked for before a session is begun; discord.py itself asks for it only where it runs several shards."""
    _, _, limit = await client.http.get_bot_gateway()
    return SessionLimit(limit["remaining"], limit["total"], limit["reset_after"] / 1000)


def has_lost_session(client: discord.Client) -> bool:
    """Whether the connection that ended cannot be resumed: discord.py tells of both with the same event."""
    return getattr(client.ws, "session_id", "") is None


def silence_voice() -> None:
    """A bot without a voice is not warned that it lacks the libraries for one."""
    discord.VoiceClient.warn_nacl = discord.VoiceClient.warn_dave = False


def forget_checks(client: discord.Client, checks: Collection[Callable[..., bool]]) -> None:
    """Have a client forget checks of `wait_for` now: by itself it does so with the next event of each kind."""
    kept: dict[str, list[tuple[Any, Any]]] = getattr(client, "_listeners", {})
    for event, asked in list(kept.items()):
        asked[:] = [one for one in asked if one[1] not in checks]
        if not asked:
            del kept[event]


def attached_tree(client: discord.Client) -> app_commands.CommandTree[Any] | None:
    """The command tree of a client, wherever its owner keeps it: in most bots it is no attribute of the client."""
    tree: Any = getattr(getattr(client, "_connection", None), "_command_tree", None)
    return cast("app_commands.CommandTree[Any]", tree) if isinstance(tree, app_commands.CommandTree) else None


def detach_tree(tree: app_commands.CommandTree[Any]) -> None:
    """Give a client's one place for a tree back to its owner."""
    if attached_tree(tree.client) is tree:
        connection: Any = getattr(tree.client, "_connection", None)
        connection._command_tree = None


def payload_of(group: app_commands.Group, tree: app_commands.CommandTree[Any]) -> Mapping[str, Any]:
    """A command as Discord wants it, without what only commands outside of a server have."""
    made = group.to_dict(tree)
    return {name: made[name] for name in ("name", "description", "type", "options")}


async def add_to_server(client: discord.Client, guild_id: int, payload: Mapping[str, Any]) -> None:
    """Add one command, or bring it up to date. `CommandTree.sync` would remove all that are not in the tree."""
    assert client.application_id is not None, "it is logged in"
    await client.http.upsert_guild_command(client.application_id, guild_id, dict(payload))
