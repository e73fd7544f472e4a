"""Sketches of channels that come later, to see that the port holds them as it is: test code, not shipped.

A signed webhook, a notification with a link, and one that works as Slack's interactive messages do. They talk over real
sockets to a stand-in (`sketch_case.py`) that knows just as much of the other side as is used here. None of them is
fit for use: no limits on sizes, no replay window on signatures, no rate limits.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import ClientError, ClientSession, web

from signoff.channels.outcome import outcome_text, result_text
from signoff.core.card import APPROVING, Card, card_for
from signoff.core.decision import ApprovalDecision
from signoff.core.notice import Asked, Notice, RunResult, Together
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.errors import AlreadySettled, ChannelFailed, EditRefused, NotEntitled, RequestError
from signoff.ports import Inbox
from signoff.testing import Office

LONGEST = 400
"""Characters of a value that the Slack-like one shows at once; Slack itself takes some thousand."""


def signature(secret: bytes, body: bytes) -> str:
    return hmac.new(secret, body, hashlib.sha256).hexdigest()


def lines_of(card: Card) -> list[str]:
    """All of a card, line by line."""
    lines = [
        card.title,
        f"{card.chain} (from {card.toolset})",
        f"why: {card.why} (rule {card.rule})",
        *(f"{one.name}: {one.text}" for one in card.args),
        *card.masked,
        *card.warnings,
        *(text for text in (card.needs, card.until, card.problem) if text),
        f"request {card.request_id} · sha256 {card.digest}",
    ]
    return lines + ([card.preview.text] if card.preview else [])


class _Sketch:
    """Over HTTP: posts there, and listens for what is posted back."""

    def __init__(self, url: str, secret: bytes, people: Mapping[str, Actor], port: int, *, name: str) -> None:
        self.name = name
        self.url = url
        self.secret = secret
        self.people = people
        self.port = port

    async def start(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self.session = ClientSession()
        app = web.Application()
        app.router.add_post("/answers", self._heard)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def stop(self) -> None:
        await self._runner.cleanup()
        await self.session.close()

    async def post(self, path: str, body: Mapping[str, Any], at: str = "") -> Any:
        """What came back; raises `ChannelFailed` as a channel has to."""
        raw = json.dumps(body).encode()
        try:
            async with self.session.post(
                self.url + path, data=raw, headers={"X-Signature": signature(self.secret, raw)}
            ) as reply:
                if reply.status == 429:
                    raise ChannelFailed("too many requests", after=float(reply.headers["Retry-After"]), whole=True)
                if reply.status >= 400:
                    raise ChannelFailed(f"{path}: {reply.status}", again=reply.status >= 500, at=at)
                return await reply.json()
        except (ClientError, OSError) as error:
            raise ChannelFailed(f"{self.name} cannot be reached: {type(error).__name__}", whole=True) from error

    async def _heard(self, request: web.Request) -> web.Response:
        raw = await request.read()
        if not hmac.compare_digest(request.headers.get("X-Signature", ""), signature(self.secret, raw)):
            return web.json_response({"problem": "not signed by whom we know"}, status=401)
        return await self.heard(json.loads(raw))

    async def heard(self, body: Any) -> web.Response:
        raise NotImplementedError


class WebhookChannel(_Sketch):
    """Tells a program of somebody's own about every change, signed; answers come back the same way."""

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        body: dict[str, Any] = {"subject": notice.subject, "version": notice.version, "trail": notice.trail}
        if isinstance(notice, Asked):
            request = notice.request
            body |= {"state": request.state, "number": notice.number, "of": notice.of, "told": outcome_text(request)}
            body |= {"card": lines_of(card_for(request)), "digest": request.args_digest}
        elif isinstance(notice, RunResult):
            body |= {"state": notice.state, "told": result_text(notice)}
        else:
            body |= {"members": [one.id for one in notice.requests]}
        await self.post("/hook", body)
        return notice.subject  # whoever receives it keeps one of each

    async def heard(self, body: Any) -> web.Response:
        by = self.people.get(body["by"])
        if by is None:
            return web.json_response({"problem": f"{body['by']} is nobody we know"}, status=403)
        try:
            request = await self.inbox.request(body["request"])
            if request.args_digest != body["digest"]:
                raise AlreadySettled("what was shown is not what would run now")
            decision = ApprovalDecision(
                approved=body["approved"], note=body.get("note", ""), edited_args=body.get("args"), by=by
            )
            await self.inbox.answer(request.id, decision)
        except RequestError as refusal:
            status = {AlreadySettled: 409, NotEntitled: 403, EditRefused: 422}.get(type(refusal), 400)
            return web.json_response({"problem": str(refusal)}, status=status)
        return web.json_response({})


class NotificationChannel(_Sketch):
    """One way, to where anybody reads: what waits, with a link to where it is answered, and that it is settled."""

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        key = f"{notice.subject}@{notice.version}"
        text = self._line(notice)
        if key != at and text:
            asked = isinstance(notice, Asked) and notice.request.state is State.PENDING
            link = {"link": Office.link(notice.request.id)} if asked else {}  # type: ignore[union-attr]
            await self.post("/notify", {"key": key, "text": text, "subject": notice.subject, **link})
        return key

    def _line(self, notice: Notice) -> str:
        if isinstance(notice, RunResult):
            return result_text(notice)
        if isinstance(notice, Together):
            return ""
        if notice.request.state is not State.PENDING:
            return outcome_text(notice.request)
        return f"{card_for(notice.request).chain} waits for an answer"

    async def heard(self, body: Any) -> web.Response:
        return web.json_response({"problem": "nobody answers here"}, status=404)


class SlackLikeChannel(_Sketch):
    """A message of blocks, brought up to date in place; buttons, forms and private replies as Slack has them."""

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        message = {"subject": notice.subject, "thread": beside.partition("/")[0] or None, "blocks": blocks(notice)}
        if not at:  # it may stand there though nobody heard: messages carry our id as metadata
            found = await self.post("/conversations.history", {"subject": notice.subject})
            at = found["ts"] and f"{found['thread']}/{found['ts']}"
        if at:
            await self.post("/chat.update", {**message, "ts": at.partition("/")[2]}, at=at)
            return at
        made = await self.post("/chat.postMessage", message)
        return f"{made['thread']}/{made['ts']}"

    async def heard(self, body: Any) -> web.Response:
        by = self.people.get(body["user"])
        if by is None:
            return await self._tell(body, f"{body['user']} is nobody we know")
        verb, request_id, digest = body["action_id"].split(":")
        try:
            request = await self.inbox.request(request_id)
            if request.args_digest[:12] != digest:
                raise AlreadySettled("what was shown is not what would run now")
            return await self._press(verb, request, by, body)
        except EditRefused as refusal:
            return web.json_response({"response_action": "errors", "errors": {"value": str(refusal)}})
        except RequestError as refusal:
            return await self._tell(body, str(refusal))

    async def _press(self, verb: str, request: ApprovalRequest, by: Actor, body: Any) -> web.Response:
        value = body.get("value")
        if verb in ("deny_note", "edit") and value is None:
            start = json.dumps(dict(request.args)) if verb == "edit" else ""
            await self.post("/views.open", {"trigger": body["trigger"], "id": body["action_id"], "value": start})
        elif verb == "whole":
            await self._tell(body, "\n".join(lines_of(card_for(request))))
            await self.inbox.opened(request.id, by)
        elif verb == "approve" and is_long(request) and not await self.inbox.has_opened(request.id, by):
            await self._tell(body, "Open all of it first.")
        else:
            edited = read_args(value) if verb == "edit" else None
            note = value or "" if verb == "deny_note" else ""
            decision = ApprovalDecision(approved=verb in ("approve", "edit"), note=note, edited_args=edited, by=by)
            await self.inbox.answer(request.id, decision)
        return web.json_response({})

    async def _tell(self, body: Any, text: str) -> web.Response:
        await self.post("/respond", {"user": body["user"], "text": text})
        return web.json_response({})


def read_args(text: str) -> dict[str, Any]:
    try:
        return json.loads(text)
    except ValueError as error:
        raise EditRefused((f"this is not JSON: {error}",)) from error


def is_long(request: ApprovalRequest) -> bool:
    return any(len(one.text) > LONGEST for one in card_for(request).args)


def blocks(notice: Notice) -> list[dict[str, Any]]:
    """Plain text only: nothing in it is read as markup or a mention."""
    if isinstance(notice, RunResult):
        return plain([result_text(notice)])
    if isinstance(notice, Together):
        return plain([f"{len(notice.requests)} calls were asked at once"])
    request = notice.request
    card = card_for(request)
    shown = plain([line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in lines_of(card)])
    if request.state is not State.PENDING:
        return [*shown, *plain([outcome_text(request) or str(request.state)])]
    approving = ["approve", "edit"] if APPROVING & {*card.choices} else []
    verbs = [*approving, "deny", "deny_note", "whole"]
    ids = [f"{verb}:{request.id}:{request.args_digest[:12]}" for verb in verbs]
    return [*shown, {"type": "actions", "elements": [{"type": "button", "action_id": one} for one in ids]}]


def plain(lines: Sequence[str]) -> list[dict[str, Any]]:
    return [{"type": "section", "text": {"type": "plain_text", "emoji": False, "text": line}} for line in lines]
