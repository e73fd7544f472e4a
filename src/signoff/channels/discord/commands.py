"""`/signoff pending`, `/signoff show`, `/signoff history`: what waits and what was decided, told privately.

The command is one of the server that our channel belongs to. It is added beside whatever commands the bot has, and
nothing that is there is replaced. A bot with a command tree has it there too, so that the tree knows it; any other
bot is served by its custom of telling us about all interactions.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, cast

import discord
from discord import app_commands

from signoff.channels.discord.lists import history_sheet, pending_sheet, show_sheet
from signoff.channels.discord.pressed import shown
from signoff.channels.discord.problems import OUTSIDE, failed, place_of
from signoff.channels.discord.replies import Reply
from signoff.channels.discord.sheet import Sheet
from signoff.channels.discord.threads import read_place
from signoff.channels.discord.users import Users
from signoff.errors import SignoffError
from signoff.ports import Desk

_log = logging.getLogger("signoff.discord")

NAME = "signoff"
HISTORY = 10
MOST = 25
_NOTHING: Mapping[str, Any] = {}
_SUB_COMMAND, _STRING, _INTEGER = 1, 3, 4

PAYLOAD: Mapping[str, Any] = {
    "name": NAME,
    "description": "What waits for an answer, and what was decided",
    "type": 1,
    "options": [
        {"type": _SUB_COMMAND, "name": "pending", "description": "What waits for an answer", "options": []},
        {
            "type": _SUB_COMMAND,
            "name": "show",
            "description": "One request, as it stands",
            "options": [
                {"type": _STRING, "name": "id", "description": "The id, or how it begins", "required": True},
            ],
        },
        {
            "type": _SUB_COMMAND,
            "name": "history",
            "description": "What was decided last",
            "options": [
                {
                    "type": _INTEGER,
                    "name": "n",
                    "description": "How many",
                    "required": False,
                    "min_value": 1,
                    "max_value": MOST,
                },
            ],
        },
    ],
}


class Commands:
    """Our command in one server."""

    def __init__(self, client: discord.Client, desk: Desk, users: Users, channel: discord.TextChannel) -> None:
        self._client = client
        self._desk = desk
        self._users = users
        self._guild = channel.guild
        self._group: app_commands.Group | None = None

    async def register(self) -> None:
        """Have the command in our server, unless it is there already. Without it everything else still works."""
        application = self._client.application_id
        if application is None:
            return
        try:
            there = await self._client.http.get_guild_commands(application, self._guild.id)
            same = [one for one in there if one["name"] == NAME and one.get("type", 1) == 1]
            if not any(_holds(cast("Mapping[str, Any]", one), PAYLOAD) for one in same):
                await self._client.http.upsert_guild_command(application, self._guild.id, dict(PAYLOAD))
        except OUTSIDE as error:
            _log.warning("there is no /%s: %s", NAME, failed(error, "add the command"))

    def leave_tree(self) -> None:
        """Take the command out of the client's tree. Discord keeps it: the next start needs it."""
        tree = self._tree
        if tree is not None and self._group is not None:
            tree.remove_command(NAME, guild=self._guild)
        self._group = None

    async def heard(self, interaction: discord.Interaction) -> None:
        """See to our command, if the client has no tree that does."""
        data = cast("Mapping[str, Any]", interaction.data or {})
        ours = interaction.type is discord.InteractionType.application_command and data.get("name") == NAME
        if ours and interaction.guild_id == self._guild.id and interaction.command is None:
            called: Mapping[str, Any] = next(iter(data.get("options", ())), _NOTHING)
            given = {one["name"]: one["value"] for one in called.get("options", ()) if "value" in one}
            await self._see_to(interaction, called.get("name", ""), given)

    async def _see_to(self, interaction: discord.Interaction, called: str, given: Mapping[str, Any]) -> None:
        reply = Reply(interaction)
        if self._users.known(interaction.user) is None:
            await reply.tell(self._users.stranger(interaction.user))
            return
        reply.hold()
        await reply.done()
        if reply.is_taken:
            return
        try:
            await reply.tell(await self._told(called, given))
        except SignoffError as error:
            await reply.tell(f"{shown(error)}.")
        except Exception as error:
            _log.error("a command could not be handled: %s", place_of(error))
            await reply.tell("Something is wrong with signoff itself; its log says more.")

    async def _told(self, called: str, given: Mapping[str, Any]) -> Sheet | str:
        match called:
            case "pending":
                requests = await self._desk.pending()
                return pending_sheet(requests, {one.id: await self._link(one.id) for one in requests[:MOST]})
            case "show":
                return show_sheet(await self._desk.request(str(given.get("id", "")).strip()))
            case "history":
                limit = given.get("n")
                return history_sheet(await self._desk.recent(limit=limit if isinstance(limit, int) else HISTORY))
            case _:
                return "There are `/signoff pending`, `/signoff show` and `/signoff history`."

    async def _link(self, request_id: str) -> str:
        thread, message = read_place(await self._desk.where(request_id))
        return f"https://discord.com/channels/{self._guild.id}/{thread}/{message}" if thread and message else ""

    # --- clients with a tree of commands ---

    @property
    def _tree(self) -> app_commands.CommandTree[Any] | None:
        tree: Any = getattr(self._client, "tree", None)
        is_tree = isinstance(tree, app_commands.CommandTree)
        return cast("app_commands.CommandTree[Any]", tree) if is_tree else None

    def join_tree(self) -> None:
        """Put the command into the client's tree, if it has one; without it, the tree would log an error."""
        tree = self._tree
        if tree is None or tree.get_command(NAME, guild=self._guild) is not None:
            return
        group = app_commands.Group(name=NAME, description=PAYLOAD["description"])

        @group.command(name="pending", description="What waits for an answer")
        async def pending(interaction: discord.Interaction) -> None:  # pyright: ignore[reportUnusedFunction]
            await self._see_to(interaction, "pending", {})

        @group.command(name="show", description="One request, as it stands")
        @app_commands.describe(id="The id, or how it begins")
        async def show(interaction: discord.Interaction, id: str) -> None:  # pyright: ignore[reportUnusedFunction]
            await self._see_to(interaction, "show", {"id": id})

        @group.command(name="history", description="What was decided last")
        @app_commands.describe(n="How many")
        async def history(  # pyright: ignore[reportUnusedFunction]
            interaction: discord.Interaction, n: app_commands.Range[int, 1, MOST] = HISTORY
        ) -> None:
            await self._see_to(interaction, "history", {"n": n})

        tree.add_command(group, guild=self._guild)
        self._group = group


def _holds(there: object, wanted: object) -> bool:
    """Whether what Discord has says all that we want. It adds fields of its own, and leaves empty ones out."""
    if isinstance(wanted, Mapping):
        known = cast("Mapping[str, Any]", there) if isinstance(there, Mapping) else _NOTHING
        return all(_holds(known.get(name), value) for name, value in cast("Mapping[str, Any]", wanted).items())
    if isinstance(wanted, list):
        have = cast("list[Any]", there) if isinstance(there, list) else []
        items = cast("list[Any]", wanted)
        return len(have) == len(items) and all(map(_holds, have, items))
    return there == wanted or (not there and not wanted)
