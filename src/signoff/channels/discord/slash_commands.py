"""The slash commands `/signoff pending`, `show`, `history` and `test`; replies are private.

The command belongs to the server of our channel. It is added beside the bot's other commands and replaces none: a bot
with its own `/signoff` keeps that, and ours is not added. It is a group in the client's command tree; a client without
a tree gets one of ours while we listen.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, cast

import discord
from discord import app_commands

from signoff.channels.discord.drawings import DrawingCache
from signoff.channels.discord.library_internals import add_to_server, attached_tree, detach_tree, payload_of
from signoff.channels.discord.lists import history_sheet, pending_sheet, show_sheet
from signoff.channels.discord.press_result import shown
from signoff.channels.discord.problems import OUTSIDE, failed, place_of
from signoff.channels.discord.replies import Reply
from signoff.channels.discord.sheet import MessageSheet
from signoff.channels.discord.threads import link_to, place, read_place
from signoff.channels.discord.users import Users
from signoff.core.people import Actor
from signoff.core.visible_text import visible
from signoff.errors import ChannelFailed, SignoffError
from signoff.ports import Inbox

_log = logging.getLogger("signoff.discord")

NAME = "signoff"
HISTORY = 10
MOST = 25
FOREIGN = f"the bot already has another command /{NAME} in this server; signoff does not replace it"
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 600.0
"""Seconds between attempts to add the command."""
_GOODBYE = 5.0
"""Timeout in seconds for an attempt in progress when the channel stops."""
_STARTING = 2.5
"""Seconds that a command waits for a channel that is starting: Discord waits for three."""
_NOTHING: Mapping[str, Any] = {}


class OwnTree(app_commands.CommandTree[Any]):
    """The command tree for a client whose owner has none. It leaves unknown commands to other programs."""

    def __init__(self, client: discord.Client) -> None:
        super().__init__(client)
        self.has_started = asyncio.Event()
        """Set once our command is in the tree: people may use it while we start."""
        self.users: set[Commands] = set()

    async def interaction_check(self, interaction: discord.Interaction, /) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.has_started.wait(), _STARTING)
        return True

    async def on_error(self, interaction: discord.Interaction, error: app_commands.AppCommandError, /) -> None:
        if not isinstance(error, app_commands.CommandNotFound):
            await super().on_error(interaction, error)
        elif error.parents[:1] == [NAME]:  # a subcommand of another version
            names = [f"`/{NAME} {one.name}`" for one in SlashCommand().commands]
            await Reply(interaction).tell(f"There are {', '.join(names[:-1])} and {names[-1]}.")


Answer = Callable[["Commands", Actor], Awaitable[MessageSheet | str]]


class SlashCommand(app_commands.Group):
    """Our command group in a tree, for all channels that a bot has in a server."""

    def __init__(self) -> None:
        super().__init__(name=NAME, description="What waits for an answer, and what was decided")
        self.users: list[Commands] = []

    def _see_to(self, interaction: discord.Interaction, answer: Answer) -> None:
        """Pass it to the channel where it was typed, otherwise to any."""
        users = sorted(self.users, key=lambda one: not one.is_near(interaction))
        if users:
            users[0].begin_answer(interaction, answer)

    @app_commands.command(name="pending", description="What waits for an answer")
    async def pending(self, interaction: discord.Interaction) -> None:
        self._see_to(interaction, lambda one, _: one.pending())

    @app_commands.command(name="show", description="One request in its current state")
    @app_commands.describe(id="The ID, or a prefix of it")
    async def show(self, interaction: discord.Interaction, id: str) -> None:
        self._see_to(interaction, lambda one, _: one.show(id))

    @app_commands.command(name="history", description="What was decided last")
    @app_commands.describe(n="How many")
    async def history(self, interaction: discord.Interaction, n: app_commands.Range[int, 1, MOST] = HISTORY) -> None:
        self._see_to(interaction, lambda one, _: one.history(n))

    @app_commands.command(name="test", description="Ask a harmless test question")
    async def test(self, interaction: discord.Interaction) -> None:
        self._see_to(interaction, lambda one, by: one.test(interaction, by))


async def add_command(client: discord.Client, guild_id: int) -> bool:
    """Add our command to a server, unless it is there. Returns False if another command has its name.

    Raises `ChannelFailed`.
    """
    tree = attached_tree(client)
    if tree is None or client.application_id is None:
        raise ChannelFailed("the bot does not know its application", again=False)
    wanted = payload_of(SlashCommand(), tree)
    try:
        there = [one for one in await tree.fetch_commands(guild=discord.Object(guild_id)) if one.name == NAME]
        same = [cast("Mapping[str, Any]", one.to_dict()) for one in there if one.type is _SLASH]
        if not all(_is_ours(one, wanted) for one in same):
            return False
        if not any(_holds(one, wanted) for one in same):
            await add_to_server(client, guild_id, wanted)
    except discord.Forbidden as error:
        problem = f"{failed(error, 'add the command')}; invite the bot with the scope applications.commands"
        raise ChannelFailed(problem, again=False) from error
    except OUTSIDE as error:
        raise failed(error, "add the command") from error
    return True


_SLASH = discord.AppCommandType.chat_input


class Commands:
    """Our command in one server, for one channel."""

    def __init__(
        self,
        client: discord.Client,
        inbox: Inbox,
        users: Users,
        channel: discord.TextChannel,
        drawing: DrawingCache,
        work: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._client = client
        self._inbox = inbox
        self._users = users
        self._channel = channel
        self._guild = channel.guild
        self._drawing = drawing
        self._work = work
        """Starts a background task that is finished before the channel stops."""
        self._registering: asyncio.Task[None] | None = None
        self._is_over = asyncio.Event()

    def begin(self) -> None:
        """Register the command, retrying if necessary. Everything else works without it."""
        if self._join_tree():
            self._registering = asyncio.get_running_loop().create_task(self._register())
        else:
            self._leave_alone()

    async def end(self) -> None:
        """Stop serving. Discord keeps the command, since the next start needs it."""
        self._is_over.set()
        if self._registering is not None:
            await asyncio.wait((self._registering,), timeout=_GOODBYE)
            self._registering.cancel()
            await asyncio.wait((self._registering,))

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
        _log.warning(FOREIGN)
        self.leave_tree()

    # --- replies ---

    def is_near(self, interaction: discord.Interaction) -> bool:
        """Whether it comes from our channel or a thread of it."""
        where = interaction.channel
        return where is not None and self._channel.id in (where.id, getattr(where, "parent_id", None))

    def begin_answer(self, interaction: discord.Interaction, answer: Answer) -> None:
        """Reply to a command in the background."""
        self._work(self._answered(interaction, answer))

    async def _answered(self, interaction: discord.Interaction, answer: Answer) -> None:
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
            await reply.tell(await answer(self, by))
        except SignoffError as error:
            await reply.tell(f"{shown(error)}.")
        except Exception as error:
            _log.error("a command could not be handled: %s", place_of(error))
            await reply.tell("signoff has an internal error; see its log.")

    async def pending(self) -> MessageSheet:
        requests = await self._inbox.pending()
        links = {one.id: await self._link(one.id) for one in requests[:MOST]}
        return await self._drawing.other(requests, lambda: pending_sheet(requests, links))

    async def show(self, request_id: str) -> MessageSheet:
        request = await self._inbox.request(request_id.strip())
        return await self._drawing.other((request,), lambda: show_sheet(request))

    async def history(self, limit: int) -> MessageSheet:
        recent = await self._inbox.recent(limit=limit)
        return await self._drawing.other(recent, lambda: history_sheet(recent))

    async def test(self, interaction: discord.Interaction, by: Actor) -> str:
        """Ask a test question, in the thread where the command was typed or in a new one."""
        where = interaction.channel
        at = place(where.id) if isinstance(where, discord.Thread) else ""
        request = await self._inbox.try_out(by, at)
        _log.info("request %s is a test, asked for by %s in %s", request.id, visible(by.name), at or "a new thread")
        there = "here" if at else "in a thread of its own"
        return f"A harmless question comes {there}: approve or deny it. Nothing runs, whatever you answer."

    async def _link(self, request_id: str) -> str:
        at = await self._inbox.where(request_id)
        return link_to(self._guild.id, at) if all(read_place(at)) else ""

    # --- the command tree ---

    def _join_tree(self) -> bool:
        """Add the command to the client's tree. Returns False if the tree has another command of its name."""
        tree = attached_tree(self._client) or OwnTree(self._client)
        there = tree.get_command(NAME, guild=self._guild) or tree.get_command(NAME)
        if there is None:
            there = SlashCommand()
            tree.add_command(there, guild=self._guild)
        if isinstance(there, SlashCommand):
            there.users.append(self)
        if isinstance(tree, OwnTree):
            tree.users.add(self)
            tree.has_started.set()
        return isinstance(there, SlashCommand)

    def leave_tree(self) -> None:
        """Remove this channel from the tree."""
        tree = attached_tree(self._client)
        there = tree.get_command(NAME, guild=self._guild) if tree is not None else None
        if tree is None or not isinstance(there, SlashCommand):
            return
        there.users = [one for one in there.users if one is not self]
        if not there.users:
            tree.remove_command(NAME, guild=self._guild)
        if isinstance(tree, OwnTree):
            tree.users.discard(self)
            if not tree.users:
                detach_tree(tree)


def _is_ours(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a registered command is ours, maybe from another version."""
    names = {one.get("name") for one in there.get("options") or ()}
    return bool(names) and names <= {one["name"] for one in wanted["options"]}


def _holds(there: object, wanted: object) -> bool:
    """Whether the registered command has everything we want. Discord adds fields and omits empty ones."""
    if isinstance(wanted, Mapping):
        known = cast("Mapping[str, Any]", there) if isinstance(there, Mapping) else _NOTHING
        return all(_holds(known.get(name), value) for name, value in cast("Mapping[str, Any]", wanted).items())
    if isinstance(wanted, list):
        have = cast("list[Any]", there) if isinstance(there, list) else []
        items = cast("list[Any]", wanted)
        return len(have) == len(items) and all(map(_holds, have, items))
    return there == wanted or (not there and not wanted)
