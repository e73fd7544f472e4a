"""A Discord bot of our own: logs in with a token and stays connected while the channel is used."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress

import discord

from signoff.channels.discord.backoff import Pacing, Timing
from signoff.channels.discord.channel import DiscordChannel
from signoff.channels.discord.library_internals import has_lost_session, session_limit, silence_voice
from signoff.channels.discord.payloads import SILENT
from signoff.channels.discord.permissions import NEEDED, missing, text_channel
from signoff.channels.discord.problems import OUTSIDE, failed, place_of, refused_token
from signoff.channels.discord.slash_commands import FOREIGN, NAME, OwnTree, add_command
from signoff.core.notice import Notice, Reminder
from signoff.core.people import Actor
from signoff.errors import ChannelFailed, SignoffError, WrongUse
from signoff.ports import Begin, Channel, Inbox

_log = logging.getLogger("signoff.discord")

_WITHIN = 25.0
"""Timeout in seconds to log in, and again to connect."""
_RESERVE = 20
"""Sessions of Discord's daily limit that are kept for starting the bot by hand."""
_SLOWEST = 30.0
"""Maximum seconds that discord.py itself waits for a rate limit."""
COMMANDS = f"commands: /{NAME} is there"
_BAD_TOKEN = 4004
"""The gateway's close code for a bad token."""


class Client(discord.Client):
    """A client for servers and their messages, without privileged intents and with almost no cache."""

    def __init__(self) -> None:
        silence_voice()
        super().__init__(
            intents=discord.Intents(guilds=True, guild_messages=True),
            allowed_mentions=SILENT,
            max_messages=None,
            member_cache_flags=discord.MemberCacheFlags.none(),
            max_ratelimit_timeout=_SLOWEST,
        )
        self.tree = OwnTree(self)
        self.has_identified = False
        """Whether Discord counts this as a session."""
        self.session_over = asyncio.Event()
        """Set when Discord ended the session. On its own, discord.py would start a new one every five seconds."""

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        self.has_identified = True
        await super().before_identify_hook(shard_id, initial=initial)

    async def on_disconnect(self) -> None:
        if has_lost_session(self):
            self.session_over.set()


def discord_channel(
    token: str,
    *,
    channel: str,
    people: Mapping[str, Actor],
    name: str = "discord",
    begin: Begin | None = None,
    workers: Sequence[str] = (),
    secret: str = "",
    listens: bool = True,
    notifies: bool = True,
    timing: Timing | None = None,
) -> Channel:
    """Return a channel with its own bot. `secret` is the name of the variable that the token comes from.

    `listens=False`: it only shows, beside another program with the same token that handles presses. `notifies=False`:
    nobody is mentioned. `timing`: clock and sleep for the backoff between connections.
    """
    pacing = Pacing(timing or Timing())
    return _OwnBot(token, secret, channel, people, name, begin, workers, listens, notifies, pacing)


class _OwnBot:
    """Connects a bot and shows notices through a `DiscordChannel`.

    discord.py resumes a broken connection itself. If that is not possible, this reconnects with growing pauses until a
    connection lasts, even if there is nothing to show, because people may press buttons.
    """

    def __init__(
        self,
        token: str,
        secret: str,
        channel: str,
        people: Mapping[str, Actor],
        name: str,
        begin: Begin | None,
        workers: Sequence[str],
        listens: bool,
        notifies: bool,
        pacing: Pacing,
    ) -> None:
        self._token = token
        self._notifies = notifies
        self._pacing = pacing
        self._listens = listens
        self._secret = secret
        self._channel = channel
        self._people = people
        self._name = name
        self._begin = begin
        self._workers = tuple(workers)
        self._connection: BotConnection | None = None
        self._inside: DiscordChannel | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._wrong: WrongUse | None = None
        self._had_session = False
        """Whether the last attempt got as far as a session."""

    @property
    def name(self) -> str:
        return self._name

    @property
    def told(self) -> str:
        """The bot's name and its channel, for people; empty while it is not connected."""
        client = self._connection.client if self._connection is not None else None
        where = client.get_channel(int(self._channel)) if client is not None else None
        if client is None or client.user is None or not isinstance(where, discord.TextChannel):
            return ""
        return f"{client.user}, asks in #{where.name}"

    async def start(self, inbox: Inbox) -> None:
        """Log in, connect and listen. Returns once notices can be shown."""
        await self.stop()
        try:
            connection = await self._open(inbox)
        except ChannelFailed as problem:
            problem.after = self._pause(problem)
            raise
        self._keeping = asyncio.create_task(self._keep(inbox, connection), name="signoff: Discord")

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        return await self._connected(at).show(notice, at, beside)

    async def remind(self, reminder: Reminder, card: str, at: str = "") -> str:
        return await self._connected(at).remind(reminder, card, at)

    def _connected(self, at: str) -> DiscordChannel:
        if self._wrong is not None:
            raise ChannelFailed(str(self._wrong), again=False, whole=True, at=at)
        if self._connection is None or self._inside is None or self._connection.is_over:
            raise ChannelFailed("not connected to Discord", whole=True, at=at)
        return self._inside

    async def stop(self) -> None:
        keeping, self._keeping = self._keeping, None
        if keeping is not None:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping
        self._wrong = None
        await self._close()

    async def _open(self, inbox: Inbox) -> BotConnection:
        connection = BotConnection(self._token, self._secret)
        inside = DiscordChannel(
            connection.client,
            channel=self._channel,
            people=self._people,
            name=self._name,
            begin=self._begin,
            workers=self._workers,
            listens=self._listens,
            notifies=self._notifies,
        )
        try:
            await connection.log_in()
            # Listen before connecting: people press buttons while the bot is away.
            starting = asyncio.create_task(inside.start(inbox))
            try:
                await connection.connect()
                await starting
            finally:
                starting.cancel()
                await asyncio.wait((starting,))
        except BaseException:
            self._had_session = connection.client.has_identified
            await inside.stop()
            await connection.close()
            raise
        self._connection, self._inside = connection, inside
        self._pacing.ready()
        return connection

    async def _close(self) -> None:
        inside, self._inside = self._inside, None
        connection, self._connection = self._connection, None
        if inside is not None:
            await inside.stop()
        if connection is not None:
            await connection.close()

    async def _keep(self, inbox: Inbox, connection: BotConnection | None) -> None:
        """Reconnect whenever the connection ends, without a limit: somebody may fix the cause."""
        while True:
            if connection is not None:
                await connection.over()
                self._had_session = True
                problem: Exception = connection.why()
                await self._close()
                connection = None
            else:
                try:
                    connection, self._wrong = await self._open(inbox), None
                    continue
                except Exception as error:
                    problem = error
                    self._wrong = error if isinstance(error, WrongUse) else None
            said = problem if isinstance(problem, SignoffError) else place_of(problem)
            pause = self._pause(problem)
            _log.warning("Discord connection lost: %s; reconnecting in %.0f seconds", said, pause)
            await self._pacing.timing.sleep(pause)

    def _pause(self, problem: Exception) -> float:
        asked = problem.after if isinstance(problem, ChannelFailed) else None
        return self._pacing.pause(was_session=self._had_session, asked=asked or 0.0)


class BotConnection:
    """A client of our own and the task that keeps it connected."""

    def __init__(self, token: str, secret: str = "") -> None:
        self._token = token
        self._secret = secret
        self.client = Client()
        self._task: asyncio.Task[None] | None = None

    async def log_in(self) -> None:
        """Log in. Raises `WrongUse` if Discord refuses the token."""
        try:
            async with asyncio.timeout(_WITHIN):
                await self.client.login(self._token)
        except discord.LoginFailure:
            raise refused_token(self._secret) from None
        except OUTSIDE as error:
            raise failed(error, "log in") from error

    async def connect(self) -> None:
        """Connect and return once the client is ready. Raises `ChannelFailed` if today's session limit is reached."""
        await self._check_limit()
        self._task = asyncio.create_task(self._one_session(), name="signoff: Discord")
        ready = asyncio.create_task(self.client.wait_until_ready())
        try:
            done, _ = await asyncio.wait((self._task, ready), timeout=_WITHIN, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._task in done:
            raise self.why()
        if not done:
            raise ChannelFailed("Discord did not accept the connection in time", whole=True)

    async def _check_limit(self) -> None:
        try:
            async with asyncio.timeout(_WITHIN):
                limit = await session_limit(self.client)
        except OUTSIDE as error:
            raise failed(error, "connect") from error
        if limit.remaining <= _RESERVE:
            raise ChannelFailed(
                f"the bot has connected so often that Discord allows {limit.remaining} of {limit.total} more today; "
                f"the limit resets in {limit.reset_after / 60:.0f} minutes",
                whole=True,
                after=limit.reset_after,
            )

    async def _one_session(self) -> None:
        """Stay connected, resuming as often as necessary, until the session ends."""
        connected = asyncio.create_task(self.client.connect())
        over = asyncio.create_task(self.client.session_over.wait())
        try:
            await asyncio.wait((connected, over), return_when=asyncio.FIRST_COMPLETED)
            ended_by_discord = not connected.done()
            if ended_by_discord:
                await self.client.close()  # cancelling is not enough in every Python: it may be about to connect
        finally:
            for task in (connected, over):
                task.cancel()
            await asyncio.wait((connected, over))
        problem = None if connected.cancelled() else connected.exception()
        # An exception that discord.py raises because it was closed while reconnecting is not why the session ended.
        if problem is not None and not ended_by_discord:
            raise problem
        raise ChannelFailed("Discord ended the session", whole=True)

    @property
    def is_over(self) -> bool:
        return self._task is None or self._task.done()

    async def over(self) -> None:
        """Return once discord.py has given up the connection."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    def why(self) -> SignoffError:
        """Return why the connection ended."""
        task = self._task
        error = None if task is None or task.cancelled() else task.exception()
        if isinstance(error, discord.ConnectionClosed) and error.code == _BAD_TOKEN:
            return refused_token(self._secret)
        if isinstance(error, (ChannelFailed, *OUTSIDE)):
            return failed(error, "stay connected")
        if error is not None and self.client.has_identified:
            return ChannelFailed(f"discord.py failed: {place_of(error)}", whole=True)
        # Also covers what discord.py raises when the very first attempt to connect fails.
        return ChannelFailed("Discord cannot be reached", whole=True)

    async def close(self) -> None:
        """Disconnect and clean up."""
        try:
            await self.client.close()
        except OUTSIDE as error:
            _log.warning("not disconnected cleanly: %s", failed(error, "disconnect"))
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
            if not self._task.cancelled():
                self._task.exception()  # reported already, where it was asked for


async def check(token: str, *, channel: str, secret: str = "") -> AsyncIterator[tuple[str, str]]:
    """Check step by step what a channel needs. Yields each step and its problem, which is empty if it passed.

    If only `COMMANDS` fails, everything else works.
    """
    connection = BotConnection(token, secret)
    try:
        steps = (("Discord accepts the token", connection.log_in), ("the bot can connect", connection.connect))
        for step, act in steps:
            try:
                await act()
            except SignoffError as error:
                yield step, str(error)
                return
            yield step, ""
        try:
            found = await text_channel(connection.client, channel)
        except (WrongUse, *OUTSIDE) as error:
            yield "the channel exists", str(error if isinstance(error, WrongUse) else failed(error, "look at it"))
            return
        yield f"the channel exists: #{found.name}", ""
        lacking = set(missing(found))
        for title, why in NEEDED.values():
            yield f"may {title}", f"missing, {why}" if f"{title}, {why}" in lacking else ""
        try:
            is_there = await add_command(connection.client, found.guild.id)
        except ChannelFailed as problem:
            yield COMMANDS, str(problem)
        else:
            yield COMMANDS, "" if is_there else FOREIGN
    finally:
        await connection.close()
