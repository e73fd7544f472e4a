"""`/signoff pending`, `show`, `history`, `test`: what waits and what was decided, told privately, and a self-test.

The command is one of the server that our channel belongs to. It is added beside whatever commands the bot has, and
nothing that is there is replaced: a bot with a `/signoff` of its own keeps that, and has none of ours. A bot with a
command tree has ours there too, so that the tree knows it; any other bot is served by its custom of telling us about
all interactions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

import discord
from discord import app_commands

from signoff.channels.discord.drawings import DrawingCache
from signoff.channels.discord.lists import history_sheet, pending_sheet, show_sheet
from signoff.channels.discord.press_result import shown
from signoff.channels.discord.problems import OUTSIDE, failed, place_of
from signoff.channels.discord.replies import Reply
from signoff.channels.discord.sheet import MessageSheet
from signoff.channels.discord.threads import link_to, place, read_place
from signoff.channels.discord.users import Users
from signoff.core.people import Actor
from signoff.core.visible import visible
from signoff.errors import ChannelFailed, SignoffError
from signoff.ports import Inbox

_log = logging.getLogger("signoff.discord")

NAME = "signoff"
HISTORY = 10
MOST = 25
FOREIGN = f"the bot has another command /{NAME} in this server, which is left alone"
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 600.0
"""Seconds between tries to add the command."""
_GOODBYE = 5.0
"""Seconds that a try gets to come to an end."""
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
        {
            "type": _SUB_COMMAND,
            "name": "test",
            "description": "Ask a question about nothing, to see that it works",
            "options": [],
        },
    ],
}


async def add_command(client: discord.Client, guild_id: int) -> bool:
    """Have our command in a server, unless it is there already. False where there is another one of its name.

    Raises `ChannelFailed`.
    """
    application = client.application_id
    if application is None:
        raise ChannelFailed("the bot does not know which application it belongs to", again=False)
    try:
        there = await client.http.get_guild_commands(application, guild_id)
        same = [cast("Mapping[str, Any]", one) for one in there if one["name"] == NAME and one.get("type", 1) == 1]
        if not all(map(_is_ours, same)):
            return False
        if not any(_holds(one, PAYLOAD) for one in same):
            await client.http.upsert_guild_command(application, guild_id, dict(PAYLOAD))
    except discord.Forbidden as error:
        problem = f"{failed(error, 'add the command')}; invite it with the scope applications.commands"
        raise ChannelFailed(problem, again=False) from error
    except OUTSIDE as error:
        raise failed(error, "add the command") from error
    return True


_NAMES = frozenset(one["name"] for one in PAYLOAD["options"])


class Commands:
    """Our command in one server."""

    def __init__(
        self, client: discord.Client, inbox: Inbox, users: Users, channel: discord.TextChannel, drawing: DrawingCache
    ) -> None:
        self._client = client
        self._inbox = inbox
        self._users = users
        self._channel = channel
        self._guild = channel.guild
        self._drawing = drawing
        self._is_foreign = False
        """Whether `/signoff` is somebody else's."""
        self._registering: asyncio.Task[None] | None = None
        self._is_over = asyncio.Event()

    def begin(self) -> None:
        """Have the command, now or as soon as that can be. Without it everything else still works."""
        if self._join_tree():
            self._registering = asyncio.get_running_loop().create_task(self._register())
        else:
            self._leave_alone()

    async def end(self) -> None:
        """Serve nobody any longer. Discord keeps the command: the next start needs it."""
        self._is_over.set()
        if self._registering is not None:
            await asyncio.wait((self._registering,), timeout=_GOODBYE)
            self._registering.cancel()
            await asyncio.wait((self._registering,))
        self._leave_tree()

    async def _register(self) -> None:
        pause = _FIRST_PAUSE
        while not self._is_over.is_set():
            try:
                if not await add_command(self._client, self._guild.id):
                    self._leave_alone()
                return
            except ChannelFailed as problem:
                _log.warning("there is no /%s: %s", NAME, problem)
                if not problem.again:
                    return
                pause = max(pause, problem.after or 0.0)
            except Exception as error:
                _log.error("there is no /%s: %s", NAME, place_of(error))
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_over.wait(), pause)
            pause = min(_LONGEST_PAUSE, pause * 2)

    def _leave_alone(self) -> None:
        _log.warning("there is no /%s of ours: %s", NAME, FOREIGN)
        self._is_foreign = True
        self._leave_tree()

    async def heard(self, interaction: discord.Interaction) -> None:
        """See to our command, if the client has no tree that does."""
        data = cast("Mapping[str, Any]", interaction.data or {})
        if self._is_foreign or interaction.type is not discord.InteractionType.application_command:
            return
        # Without a server it is a command that the bot has everywhere, and so none of ours.
        ours = data.get("name") == NAME and str(data.get("guild_id")) == str(self._guild.id)
        if ours and interaction.command is None:
            called: Mapping[str, Any] = next(iter(data.get("options", ())), _NOTHING)
            given = {one["name"]: one["value"] for one in called.get("options", ()) if "value" in one}
            await self._see_to(interaction, called.get("name", ""), given)

    async def _see_to(self, interaction: discord.Interaction, called: str, given: Mapping[str, Any]) -> None:
        reply = Reply(interaction)
        by = self._users.known(interaction.user)
        if by is None:
            await reply.tell(self._users.stranger(interaction.user, "you cannot see what is asked and decided"))
            return
        reply.hold()
        await reply.done()
        if reply.is_taken:
            return
        try:
            told = await self._tried(interaction, by) if called == "test" else await self._told(called, given)
            await reply.tell(told)
        except SignoffError as error:
            await reply.tell(f"{shown(error)}.")
        except Exception as error:
            _log.error("a command could not be handled: %s", place_of(error))
            await reply.tell("Something is wrong with signoff itself; its log says more.")

    async def _tried(self, interaction: discord.Interaction, by: Actor) -> str:
        """Ask about nothing, in the thread that the command was typed in, or else in one of its own."""
        where = interaction.channel
        at = place(where.id) if isinstance(where, discord.Thread) else ""
        request = await self._inbox.try_out(by, at)
        _log.info("request %s is a test, asked for by %s in %s", request.id, visible(by.name), at or "a new thread")
        there = "here" if at else "in a thread of its own"
        return f"A harmless question comes {there}: approve or deny it. Nothing runs, whatever is answered."

    async def _told(self, called: str, given: Mapping[str, Any]) -> MessageSheet | str:
        match called:
            case "pending":
                requests = await self._inbox.pending()
                links = {one.id: await self._link(one.id) for one in requests[:MOST]}
                return await self._drawing.other(requests, lambda: pending_sheet(requests, links))
            case "show":
                request = await self._inbox.request(str(given.get("id", "")).strip())
                return await self._drawing.other((request,), lambda: show_sheet(request))
            case "history":
                limit = given.get("n")
                recent = await self._inbox.recent(limit=limit if isinstance(limit, int) else HISTORY)
                return await self._drawing.other(recent, lambda: history_sheet(recent))
            case _:
                return "There are `/signoff pending`, `/signoff show`, `/signoff history` and `/signoff test`."

    async def _link(self, request_id: str) -> str:
        at = await self._inbox.where(request_id)
        return link_to(self._guild.id, at) if all(read_place(at)) else ""

    # --- clients with a tree of commands ---

    @property
    def _tree(self) -> app_commands.CommandTree[Any] | None:
        tree: Any = getattr(self._client, "tree", None)
        is_tree = isinstance(tree, app_commands.CommandTree)
        return cast("app_commands.CommandTree[Any]", tree) if is_tree else None

    def _join_tree(self) -> bool:
        """Put the command into the client's tree, if it has one; without it, the tree would log an error.

        False where the tree has another command of that name.
        """
        tree = self._tree
        if tree is None:
            return True
        there = tree.get_command(NAME, guild=self._guild) or tree.get_command(NAME)
        if there is None:
            there = _Shared()
            tree.add_command(there, guild=self._guild)
        if isinstance(there, _Shared):
            there.users.append(self)
        return isinstance(there, _Shared)

    def _leave_tree(self) -> None:
        tree = self._tree
        there = tree.get_command(NAME, guild=self._guild) if tree is not None else None
        if tree is None or not isinstance(there, _Shared):
            return
        there.users = [one for one in there.users if one is not self]
        if not there.users:
            tree.remove_command(NAME, guild=self._guild)

    def is_near(self, interaction: discord.Interaction) -> bool:
        """Whether it comes from our channel or a thread of it."""
        where = interaction.channel
        return where is not None and self._channel.id in (where.id, getattr(where, "parent_id", None))

    async def called(self, interaction: discord.Interaction, name: str, given: Mapping[str, Any]) -> None:
        """See to our command, as the tree read it."""
        await self._see_to(interaction, name, given)


class _Shared(app_commands.Group):
    """Our command in a tree, for all channels that a bot has in a server."""

    def __init__(self) -> None:
        super().__init__(name=NAME, description=PAYLOAD["description"])
        self.users: list[Commands] = []

    async def _pass_on(self, interaction: discord.Interaction, name: str, given: Mapping[str, Any]) -> None:
        users = sorted(self.users, key=lambda one: not one.is_near(interaction))
        if users:
            await users[0].called(interaction, name, given)

    @app_commands.command(name="pending", description="What waits for an answer")
    async def pending(self, interaction: discord.Interaction) -> None:
        await self._pass_on(interaction, "pending", {})

    @app_commands.command(name="show", description="One request, as it stands")
    @app_commands.describe(id="The id, or how it begins")
    async def show(self, interaction: discord.Interaction, id: str) -> None:
        await self._pass_on(interaction, "show", {"id": id})

    @app_commands.command(name="history", description="What was decided last")
    @app_commands.describe(n="How many")
    async def history(self, interaction: discord.Interaction, n: app_commands.Range[int, 1, MOST] = HISTORY) -> None:
        await self._pass_on(interaction, "history", {"n": n})

    @app_commands.command(name="test", description="Ask a question about nothing, to see that it works")
    async def test(self, interaction: discord.Interaction) -> None:
        await self._pass_on(interaction, "test", {})


def _is_ours(there: Mapping[str, Any]) -> bool:
    """Whether a command that Discord has is this one, be it as another version made it."""
    names = {one.get("name") for one in there.get("options") or ()}
    return bool(names) and names <= _NAMES


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
