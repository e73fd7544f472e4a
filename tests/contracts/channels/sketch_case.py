"""The other side of the sketches, over local sockets, and ana before it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from aiohttp import ClientSession, web
from tests.contracts.channels.sketches import (
    NotificationChannel,
    SlackLikeChannel,
    WebhookChannel,
    _Sketch,
    signature,
)
from tests.contracts.channels.ui_case import raw_characters

from signoff.core.notice import Asked, Notice
from signoff.ports import Channel
from signoff.testing import ChannelCase, Skill
from signoff.testing.office import ANA

SECRET = b"a secret that both sides know"


class OtherSide:
    """A web server that takes what is signed, and keeps it."""

    def __init__(self) -> None:
        self.taken: dict[str, dict[str, Any]] = {}
        """What stands there, by subject."""
        self.lines: list[dict[str, Any]] = []
        """Notifications."""
        self.views: dict[str, dict[str, Any]] = {}
        self.private: list[str] = []
        self._app = web.Application()
        for path in ("hook", "notify", "chat.postMessage", "chat.update", "conversations.history", "views.open"):
            self._app.router.add_post(f"/{path}", self._take)
        self._app.router.add_post("/respond", self._take)
        self._runner = web.AppRunner(self._app, access_log=None)
        self.port = 0

    async def start(self) -> None:
        await self._runner.setup()
        await self.open()

    async def open(self) -> None:
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await self._site.start()
        self.port = self._runner.addresses[0][1]

    async def shut(self) -> None:
        await self._site.stop()
        for connection in list(self._runner.server.connections):  # type: ignore[union-attr]
            connection.force_close()
            if connection.transport is not None:
                connection.transport.abort()

    async def close(self) -> None:
        await self._runner.cleanup()

    async def _take(self, request: web.Request) -> web.Response:
        raw = await request.read()
        if request.headers.get("X-Signature") != signature(SECRET, raw):
            return web.json_response({}, status=401)
        return web.json_response(getattr(self, f"_{request.path[1:].replace('.', '_')}")(json.loads(raw)))

    def _hook(self, body: Any) -> Any:
        known = self.taken.get(body["subject"])
        if known is None or body["version"] >= known["version"]:
            self.taken[body["subject"]] = body
        return {}

    def _notify(self, body: Any) -> Any:
        if body["key"] not in [line["key"] for line in self.lines]:
            self.lines.append(body)
        return {}

    def _chat_postMessage(self, body: Any) -> Any:
        assert body["subject"] not in self.taken, "it stands there twice"
        thread = body["thread"] or f"t{len(self.taken)}"
        self.taken[body["subject"]] = {**body, "ts": str(len(self.taken)), "thread": thread}
        return self.taken[body["subject"]]

    def _chat_update(self, body: Any) -> Any:
        [message] = [one for one in self.taken.values() if one["ts"] == body["ts"]]
        message["blocks"] = body["blocks"]
        return message

    def _conversations_history(self, body: Any) -> Any:
        return self.taken.get(body["subject"]) or {"ts": "", "thread": ""}

    def _views_open(self, body: Any) -> Any:
        self.views[body["trigger"]] = body
        return {}

    def _respond(self, body: Any) -> Any:
        self.private.append(body["text"])
        return {}


class _SketchCase(ChannelCase):
    sketch: ClassVar[type[_Sketch]]

    def __init__(self, other: OtherSide, session: ClientSession, port: int) -> None:
        self.other = other
        self.session = session
        self.port = port

    def make(self) -> Channel:
        url = f"http://127.0.0.1:{self.other.port}"
        return self.sketch(url, SECRET, {"U1": ANA}, self.port, name=self.sketch.__name__)  # type: ignore[return-value]

    async def dangers(self, notice: Notice) -> Sequence[str]:
        return raw_characters(await self.seen(notice))

    async def break_connection(self) -> None:
        await self.other.shut()

    async def mend_connection(self) -> None:
        await self.other.open()

    async def posts(self, body: Mapping[str, Any], *, secret: bytes = SECRET) -> tuple[int, Any]:
        """As the other side posts to us."""
        raw = json.dumps(body).encode()
        headers = {"X-Signature": signature(secret, raw)}
        async with self.session.post(f"http://127.0.0.1:{self.port}/answers", data=raw, headers=headers) as reply:
            return reply.status, await reply.json()


class WebhookCase(_SketchCase):
    sketch = WebhookChannel
    lacks: ClassVar[Mapping[Skill, str]] = {Skill.LONG: "the body holds everything"}

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._problems: list[str] = []

    async def seen(self, notice: Notice) -> str:
        body = self.other.taken.get(notice.subject, {})
        return "\n".join([*body.get("card", ()), body.get("told", ""), *self._problems])

    async def standing(self, notice: Asked) -> int:
        return int(self.other.taken.get(notice.subject, {}).get("state") == "pending")

    async def approve(self, notice: Asked) -> None:
        await self._answers(notice, {"approved": True})

    async def deny(self, notice: Asked, note: str = "") -> None:
        await self._answers(notice, {"approved": False, "note": note})

    async def edit(self, notice: Asked, args: Mapping[str, Any]) -> None:
        await self._answers(notice, {"approved": True, "args": args})

    async def told(self) -> Sequence[str]:
        return self._problems

    async def _answers(self, notice: Asked, answer: Mapping[str, Any]) -> None:
        digest = self.other.taken[notice.subject]["digest"]
        body = {"request": notice.request.id, "digest": digest, "by": "U1", **answer}
        _, said = await self.posts(body)
        if "problem" in said:
            self._problems.append(said["problem"])


class NotificationCase(_SketchCase):
    sketch = NotificationChannel
    lacks: ClassVar[Mapping[Skill, str]] = {
        Skill.WHOLE: "a line and a link",
        Skill.ANSWER: "it is answered where the link leads",
    }

    public: ClassVar[bool] = True

    async def seen(self, notice: Notice) -> str:
        return "\n".join(line["text"] for line in self.other.lines)

    async def links(self, notice: Asked) -> Sequence[str]:
        return [line["link"] for line in self.other.lines if line["subject"] == notice.subject]


class SlackLikeCase(_SketchCase):
    sketch = SlackLikeChannel

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._errors: list[str] = []

    def _blocks(self, notice: Notice) -> list[dict[str, Any]]:
        return self.other.taken.get(notice.subject, {}).get("blocks", [])

    async def seen(self, notice: Notice) -> str:
        texts = [block["text"]["text"] for block in self._blocks(notice) if "text" in block]
        return "\n".join([*texts, *self._errors, *self.other.private])

    async def dangers(self, notice: Notice) -> Sequence[str]:
        kinds = {block["text"]["type"] for block in self._blocks(notice) if "text" in block}
        return [*await super().dangers(notice), *(f"read as {kind}" for kind in kinds - {"plain_text"})]

    def _buttons(self, notice: Notice) -> list[str]:
        rows = [block["elements"] for block in self._blocks(notice) if block["type"] == "actions"]
        return [button["action_id"] for row in rows for button in row]

    async def standing(self, notice: Asked) -> int:
        return sum(button.startswith("approve:") for button in self._buttons(notice))

    async def _presses(self, notice: Asked, verb: str, value: str | None = None) -> None:
        button = f"{verb}:{notice.request.id}:{notice.request.args_digest[:12]}"
        pressed = {"user": "U1", "action_id": button, "trigger": f"trigger {verb}"}
        await self.posts(pressed)
        if value is not None:
            assert self.other.views[pressed["trigger"]]["id"] == button
            _, reply = await self.posts({**pressed, "value": value})
            self._errors += reply.get("errors", {}).values()

    async def approve(self, notice: Asked) -> None:
        await self._presses(notice, "approve")

    async def deny(self, notice: Asked, note: str = "") -> None:
        await self._presses(notice, "deny_note" if note else "deny", note or None)

    async def edit(self, notice: Asked, args: Mapping[str, Any]) -> None:
        await self._presses(notice, "edit", json.dumps(args))

    async def open_whole(self, notice: Asked) -> str:
        await self._presses(notice, "whole")
        return self.other.private[-1]

    async def told(self) -> Sequence[str]:
        return self.other.private


@asynccontextmanager
async def sketch_case(case: type[_SketchCase]) -> AsyncIterator[_SketchCase]:
    other = OtherSide()
    await other.start()
    session = ClientSession()
    free = OtherSide()
    await free.start()  # a port that nobody else has
    port = free.port
    await free.close()
    try:
        yield case(other, session, port)
    finally:
        await session.close()
        await other.close()
