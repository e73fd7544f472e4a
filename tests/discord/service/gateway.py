"""The gateway, version 10: sessions, sequence numbers, resuming, intents, and events twice or out of order."""

from __future__ import annotations

import asyncio
import json
import secrets
import zlib
from collections.abc import Callable
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web
from tests.discord.service.state import State
from tests.discord.service.world import Json, Place

GUILDS, MEMBERS, PRESENCES, MESSAGES, TYPING, CONTENT = 1 << 0, 1 << 1, 1 << 8, 1 << 9, 1 << 11, 1 << 15
PRIVILEGED = MEMBERS | PRESENCES | CONTENT
KNOWN_INTENTS = (1 << 17) - 1 | 1 << 20 | 1 << 21 | 1 << 24 | 1 << 25
HEARTBEAT_MS = 41250

_INTENT_OF = {
    "GUILD_CREATE": GUILDS,
    "GUILD_ROLE_UPDATE": GUILDS,
    "CHANNEL_UPDATE": GUILDS,
    "CHANNEL_DELETE": GUILDS,
    "THREAD_CREATE": GUILDS,
    "THREAD_UPDATE": GUILDS,
    "THREAD_DELETE": GUILDS,
    "THREAD_MEMBERS_UPDATE": GUILDS,
    "MESSAGE_CREATE": MESSAGES,
    "MESSAGE_UPDATE": MESSAGES,
    "MESSAGE_DELETE": MESSAGES,
    "MESSAGE_DELETE_BULK": MESSAGES,
    "TYPING_START": TYPING,
    "INTERACTION_CREATE": 0,
}


class Session:
    """What one IDENTIFY began. It outlives its socket, so that it can be resumed."""

    def __init__(self, intents: int) -> None:
        self.id = secrets.token_hex(16)
        self.intents = intents
        self.sequence = 0
        self.log: list[Json] = []
        self.line: Line | None = None

    def send(self, event: str, data: Any) -> None:
        self.sequence += 1
        payload = {"op": 0, "t": event, "s": self.sequence, "d": data}
        self.log.append(payload)
        if self.line is not None:
            self.line.send(payload)


class Line:
    """One socket: a writer that keeps the order, and compresses as the client asked."""

    def __init__(self, socket: web.WebSocketResponse, squeeze: Callable[[bytes], bytes] | None) -> None:
        self.socket = socket
        self.session: Session | None = None
        self._squeeze = squeeze
        self._queue: asyncio.Queue[Json | int | None] = asyncio.Queue()
        self._writer = asyncio.get_running_loop().create_task(self._write())

    def send(self, payload: Json) -> None:
        self._queue.put_nowait(payload)

    def close(self, code: int) -> None:
        """Close the socket after what is already on its way."""
        if self.session is not None:
            self.session.line = None
        self._queue.put_nowait(code)

    async def _write(self) -> None:
        while (item := await self._queue.get()) is not None:
            try:
                if isinstance(item, int):
                    await self.socket.close(code=item)
                    return
                data = json.dumps(item, separators=(",", ":"))
                if self._squeeze is None:
                    await self.socket.send_str(data)
                else:
                    await self.socket.send_bytes(self._squeeze(data.encode()))
            except ConnectionError:
                return

    async def finish(self) -> None:
        self._queue.put_nowait(None)
        await self._writer


class Gateway:
    """Accepts sockets and delivers what happens to the sessions that asked for it."""

    def __init__(self, state: State, complain: Callable[[str], None]) -> None:
        self._state = state
        self._complain = complain
        self.sessions: dict[str, Session] = {}
        self.lines: list[Line] = []
        self.privileged = 0
        """The privileged intents that are switched on for this bot in the developer portal."""
        self.twice: list[str] = []
        self.shuffle: list[tuple[str, Json, Place | None]] | None = None
        self._shuffled_of = 0
        self.after_ready: tuple[str, Json] | None = None
        """An event that follows whenever a session begins, be it one that nobody can read."""
        self.identified = 0
        self.resumed = 0
        state.dispatch = self.dispatch

    # Delivering

    def reorder(self, events: int) -> None:
        self.shuffle, self._shuffled_of = [], events

    def dispatch(self, event: str, data: Json, place: Place | None) -> None:
        if self.shuffle is not None:
            self.shuffle.append((event, data, place))
            if len(self.shuffle) < self._shuffled_of:
                return
            held, self.shuffle = self.shuffle, None
            for late in reversed(held):
                self._deliver(*late)
            return
        self._deliver(event, data, place)

    def _deliver(self, event: str, data: Json, place: Place | None) -> None:
        times = 1
        for wanted in self.twice:
            if wanted in ("*", event):
                self.twice.remove(wanted)
                times = 2
                break
        for session in list(self.sessions.values()):
            needs = _INTENT_OF[event]
            if needs and not session.intents & needs:
                continue
            if place is not None and event != "INTERACTION_CREATE" and not self._state.may(place, "view_channel"):
                continue
            for _ in range(times):
                session.send(event, self._readable(session, event, data))

    def _readable(self, session: Session, event: str, data: Json) -> Json:
        """Without the intent for it, what is in a message is blank, unless the bot wrote it or is mentioned."""
        if event not in ("MESSAGE_CREATE", "MESSAGE_UPDATE") or session.intents & CONTENT:
            return data
        me = str(self._state.bot.id)
        if data["author"]["id"] == me or any(user["id"] == me for user in data["mentions"]):
            return data
        return data | {"content": "", "embeds": [], "attachments": [], "components": []}

    # Sockets

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=4096, autoping=True)
        await socket.prepare(request)
        line = Line(socket, self._squeezer(request.query.get("compress")))
        self.lines.append(line)
        try:
            if request.query.get("v") != "10" or request.query.get("encoding") != "json":
                self._complain(f"gateway opened with {dict(request.query)}")
                line.close(4012)
            else:
                line.send({"op": 10, "d": {"heartbeat_interval": HEARTBEAT_MS, "_trace": ["stand-in"]}})
            await self._read(line)
        finally:
            self.lines.remove(line)
            await line.finish()
            session = line.session
            if session is not None:
                if session.line is line:
                    session.line = None
                if socket.close_code in (WSCloseCode.OK, WSCloseCode.GOING_AWAY):
                    self.sessions.pop(session.id, None)
            self._state.touch()
        return socket

    def _squeezer(self, asked: str | None) -> Callable[[bytes], bytes] | None:
        match asked:
            case None:
                return None
            case "zlib-stream":
                pressed = zlib.compressobj()
                return lambda data: pressed.compress(data) + pressed.flush(zlib.Z_SYNC_FLUSH)
            case "zstd-stream":
                return _zstd()
            case _:
                self._complain(f"gateway asked for compress={asked}")
                return None

    async def _read(self, line: Line) -> None:
        async for frame in line.socket:
            if frame.type is not WSMsgType.TEXT:
                line.close(4002)
                continue
            try:
                payload = json.loads(frame.data)
                op, data = payload["op"], payload.get("d")
            except (ValueError, KeyError, TypeError):
                self._complain(f"gateway cannot read {frame.data[:200]!r}")
                line.close(4002)
                continue
            self._take(line, op, data)

    def _take(self, line: Line, op: int, data: Any) -> None:
        match op:
            case 1:
                line.send({"op": 11})
            case 2:
                self._identify(line, data)
            case 6:
                self._resume(line, data)
            case 3 | 4 | 8 if line.session is None:
                line.close(4003)
            case 3 | 4:
                pass
            case 8:
                self._members(line.session, data)
            case _:
                self._complain(f"gateway does not know opcode {op}")
                line.close(4001)

    def _identify(self, line: Line, data: Json) -> None:
        if line.session is not None:
            return line.close(4005)
        if data.get("token") != self._state.token:
            return line.close(4004)
        intents = data.get("intents")
        if not isinstance(intents, int) or intents & ~KNOWN_INTENTS:
            return line.close(4013)
        if intents & PRIVILEGED & ~self.privileged:
            return line.close(4014)
        if not isinstance(data.get("properties"), dict):
            self._complain("gateway: IDENTIFY without properties")
            return line.close(4002)
        session = Session(intents)
        self.sessions[session.id] = session
        line.session, session.line = session, line
        self.identified += 1
        self._state.sessions += 1
        if self._state.sessions > self._state.session_limit:
            self._complain("gateway: more sessions than Discord takes in a day")
        session.send("READY", self._ready(session))
        if intents & GUILDS:
            session.send("GUILD_CREATE", self.guild_json())
        if self.after_ready is not None:
            session.send(*self.after_ready)
        self._state.touch()
        return None

    def _resume(self, line: Line, data: Json) -> None:
        if data.get("token") != self._state.token:
            return line.close(4004)
        session = self.sessions.get(str(data.get("session_id")))
        if session is None:
            line.send({"op": 9, "d": False})
            return None
        since = data.get("seq")
        if not isinstance(since, int) or since > session.sequence:
            return line.close(4007)
        if session.line is not None:
            session.line.close(4000)
        line.session, session.line = session, line
        for payload in session.log:
            if payload["s"] > since:
                line.send(payload)
        session.send("RESUMED", {"_trace": ["stand-in"]})
        self.resumed += 1
        self._state.touch()
        return None

    def _members(self, session: Session | None, data: Json) -> None:
        if session is None:
            return
        wanted = data.get("user_ids")
        ids = {int(one) for one in (wanted if isinstance(wanted, list) else [wanted] if wanted else [])}
        query = data.get("query") or ""
        found = [
            self._state.member_json(user)
            for user in self._state.users.values()
            if (user.id in ids if ids else user.name.startswith(query))
        ]
        chunk = {
            "guild_id": str(data["guild_id"]),
            "members": found,
            "chunk_index": 0,
            "chunk_count": 1,
            "not_found": [],
            "nonce": data.get("nonce"),
        }
        session.send("GUILD_MEMBERS_CHUNK", chunk)

    def _ready(self, session: Session) -> Json:
        state = self._state
        return {
            "v": 10,
            "user": state.bot.json() | {"verified": True, "mfa_enabled": False, "email": None},
            "user_settings": {},
            "relationships": [],
            "private_channels": [],
            "presences": [],
            "guilds": [{"id": str(state.guild_id), "unavailable": True}],
            "session_id": session.id,
            "session_type": "normal",
            "resume_gateway_url": state.base.replace("http", "ws") + "/gateway/resume/",
            "application": {"id": str(state.bot.id), "flags": 0},
        }

    def guild_json(self) -> Json:
        state = self._state
        places = list(state.places.values())
        seen = [place for place in places if state.may(place, "view_channel")]
        return guild_base(state) | {
            "joined_at": "2026-01-01T00:00:00.000000+00:00",
            "large": False,
            "unavailable": False,
            "member_count": len(state.users),
            "voice_states": [],
            "members": [state.member_json(state.bot)],
            "channels": [place.json(state.bot) for place in places if not place.is_thread],
            "threads": [place.json(state.bot) for place in seen if place.is_thread and not place.archived],
            "presences": [],
            "stage_instances": [],
            "guild_scheduled_events": [],
            "soundboard_sounds": [],
        }


def guild_base(state: State) -> Json:
    """The guild as `GET /guilds/{id}` has it too."""
    everyone = {"name": "@everyone", "id": str(state.guild_id), "permissions": "0", "position": 0, "managed": False}
    mine = {
        "name": state.bot.name,
        "id": str(state.role_id),
        "permissions": str(state.role),
        "position": 1,
        "managed": True,
        "tags": {"bot_id": str(state.bot.id)},
    }
    look = {"color": 0, "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None}}
    look |= {"hoist": False, "mentionable": False, "icon": None, "unicode_emoji": None, "flags": 0}
    return {
        "id": str(state.guild_id),
        "name": "The guild",
        "icon": None,
        "splash": None,
        "discovery_splash": None,
        "owner_id": str(state.owner.id),
        "afk_channel_id": None,
        "afk_timeout": 300,
        "verification_level": 0,
        "default_message_notifications": 0,
        "explicit_content_filter": 0,
        "roles": [everyone | look, mine | look],
        "emojis": [],
        "stickers": [],
        "features": [],
        "mfa_level": 0,
        "application_id": None,
        "system_channel_id": None,
        "system_channel_flags": 0,
        "rules_channel_id": None,
        "public_updates_channel_id": None,
        "safety_alerts_channel_id": None,
        "vanity_url_code": None,
        "description": None,
        "banner": None,
        "premium_tier": 0,
        "preferred_locale": "en-US",
        "nsfw_level": 0,
        "premium_progress_bar_enabled": False,
    }


def _zstd() -> Callable[[bytes], bytes]:
    """As discord.py asks for it where it finds zstd: in Python 3.14, or with the `zstandard` package."""
    try:
        from compression import zstd  # type: ignore[import-not-found]
    except ImportError:
        import zstandard  # type: ignore[import-not-found]

        whole = zstandard.ZstdCompressor().compressobj()
        return lambda data: whole.compress(data) + whole.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    pressed = zstd.ZstdCompressor()
    return lambda data: pressed.compress(data, mode=pressed.FLUSH_BLOCK)
