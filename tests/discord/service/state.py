"""The state of the service and everything that changes it: whoever changes something here also tells the gateway.

All of it happens in the service's own thread and loop; nothing here locks.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

from tests.discord.service.limits import is_empty_embed, trimmed_embed
from tests.discord.service.refusal import (
    Refusal,
    empty_message,
    missing_access,
    missing_permissions,
    unknown_channel,
    unknown_message,
)
from tests.discord.service.world import (
    NEEDED,
    PERMISSIONS,
    PUBLIC_THREAD,
    Attachment,
    Json,
    Message,
    Place,
    Snowflakes,
    User,
    bits,
)

T = TypeVar("T")
File = tuple[str, bytes]

NONCE_KEPT = timedelta(minutes=3)
"""Discord says "the past few minutes" and no more; this is our number for it."""


class Clock(Protocol):
    def now(self) -> datetime: ...


class StillClock:
    """Time stands still unless a test moves it: a slow machine must not make an interaction too old to answer."""

    def __init__(self) -> None:
        self._now = datetime.now(UTC)
        self._ahead = timedelta()

    def now(self) -> datetime:
        return self._now

    def wall(self) -> datetime:
        """The moment that ids tell, as clients compare it with a clock of their own."""
        return datetime.now(UTC) + self._ahead

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._ahead += timedelta(seconds=seconds)


class State:
    """One guild with one bot in it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.ids = Snowflakes(lambda: getattr(self.clock, "wall", self.clock.now)())
        self.token = "bot-token-of-the-stand-in"
        self.guild_id = self.ids.take()
        self.role_id = self.ids.take()
        self.bot = User(self.ids.take(), "signoff", bot=True)
        self.owner = User(self.ids.take(), "owner")
        self.role = bits(*NEEDED)
        self.users: dict[int, User] = {user.id: user for user in (self.bot, self.owner)}
        self.places: dict[int, Place] = {}
        self.private: dict[int, Message] = {}
        self.commands: dict[int | None, list[Json]] = {}
        self.base = ""
        self.session_limit = 1000
        """Sessions that may be begun in a day."""
        self.sessions = 0
        self.dispatch: Callable[[str, Json, Place | None], None] = lambda *_: None
        self._waiters: list[asyncio.Future[None]] = []
        self._nonces: dict[str, tuple[datetime, Message]] = {}

    # Watching

    def touch(self) -> None:
        """Something changed: whoever waits looks again."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def until(self, look: Callable[[], T | None], timeout: float, what: Callable[[], str]) -> T:
        """The first result of `look` that is not None, looked for after every change."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        while (found := look()) is None:
            waiter = loop.create_future()
            self._waiters.append(waiter)
            try:
                await asyncio.wait_for(waiter, end - loop.time())
            except TimeoutError:
                raise AssertionError(what()) from None
        return found

    def now(self) -> str:
        return self.clock.now().isoformat(timespec="microseconds")

    # Looking up

    def place(self, place_id: int | str, *needs: str) -> Place:
        """The channel or thread, if the bot can see it and may do all this there."""
        found = self.places.get(int(place_id))
        if found is None:
            raise unknown_channel()
        allowed = self.allowed(found)
        if not allowed & PERMISSIONS["view_channel"]:
            raise missing_access()
        if any(not allowed & PERMISSIONS[need] for need in needs):
            raise missing_permissions()
        return found

    def allowed(self, place: Place) -> int:
        """What the bot may do there, as Discord computes it: the roles, less the channel's overwrite."""
        if self.role & PERMISSIONS["administrator"]:
            return bits(*PERMISSIONS)
        return self.role & ~(place.parent or place).denied

    def may(self, place: Place, permission: str) -> bool:
        return bool(self.allowed(place) & PERMISSIONS[permission])

    def message(self, place: Place, message_id: int | str) -> Message:
        found = place.messages.get(int(message_id))
        if found is None:
            raise unknown_message()
        return found

    def all_messages(self) -> Iterator[Message]:
        for place in list(self.places.values()):
            yield from list(place.messages.values())

    def member_json(self, user: User) -> Json:
        return {
            "user": user.json(),
            "nick": None,
            "avatar": None,
            "banner": None,
            "roles": [str(self.role_id)] if user is self.bot else [],
            "joined_at": "2026-01-01T00:00:00.000000+00:00",
            "premium_since": None,
            "deaf": False,
            "mute": False,
            "flags": 0,
            "pending": False,
            "communication_disabled_until": None,
        }

    # Messages

    def kept_nonce(self, nonce: str | int | None) -> Message | None:
        """The message that the bot made with this nonce a little while ago, wherever; it may be deleted by now."""
        known = self._nonces.get(str(nonce))
        if known is None or self.clock.now() - known[0] > NONCE_KEPT:
            return None
        return known[1]

    def post(
        self,
        place: Place,
        author: User,
        body: Mapping[str, Any],
        files: Sequence[File] = (),
        *,
        kind: int = 0,
        seen_by: int | None = None,
        interaction: Json | None = None,
        flags: int = 0,
    ) -> Message:
        message = Message(
            self.ids.take(),
            place,
            author,
            (body.get("content") or "").strip(),
            self.now(),
            embeds=[trimmed_embed(embed) for embed in body.get("embeds") or () if not is_empty_embed(embed)],
            components=list(body.get("components") or ()),
            flags=(body.get("flags") or 0) | flags,
            kind=kind,
            nonce=body.get("nonce"),
            reference=body.get("message_reference"),
            seen_by=seen_by,
            interaction=interaction,
        )
        message.attachments = self.attached(message, body, files)
        if kind == 0 and not flags and is_empty(message):
            raise empty_message()
        self._read_mentions(message, body.get("allowed_mentions"))
        message.notified = list(message.mentions)
        if seen_by is not None:
            self.private[message.id] = message
            self.touch()
            return message
        place.messages[message.id] = message
        place.sent += 1
        place.active_at = self.clock.now()
        if message.nonce is not None and author is self.bot:
            self._nonces[str(message.nonce)] = (self.clock.now(), message)
        self._join(place, author)
        for user in message.notified:  # whoever is mentioned in a thread becomes a member of it
            self._join(place, user)
        self.tell_message("MESSAGE_CREATE", message)
        return message

    def attached(self, message: Message, body: Mapping[str, Any], files: Sequence[File]) -> list[Attachment]:
        """Files that came along become attachments; those that the body still names stay."""
        named = {str(one.get("id")): one for one in body.get("attachments") or ()}
        kept = message.attachments
        if body.get("attachments") is not None:
            kept = [old for old in kept if str(old.id) in named]
        made = list(kept)
        for index, (filename, data) in enumerate(files):
            attachment_id = self.ids.take()
            url = f"{self.base}/attachments/{message.place.id}/{attachment_id}/{filename}"
            told = named.get(str(index), {})
            made.append(Attachment(attachment_id, filename, data, url, told.get("description")))
        return made

    def change(self, message: Message, body: Mapping[str, Any], files: Sequence[File] = ()) -> None:
        """Edits a message: what the body does not name stays as it is."""
        before = (message.content, message.embeds, message.components, message.attachments)
        if "content" in body:
            message.content = (body["content"] or "").strip()
        if "embeds" in body:
            message.embeds = [trimmed_embed(embed) for embed in body["embeds"] or () if not is_empty_embed(embed)]
        if "components" in body:
            message.components = list(body["components"] or ())
        if "attachments" in body or files:
            message.attachments = self.attached(message, body, files)
        if is_empty(message):
            message.content, message.embeds, message.components, message.attachments = before
            raise empty_message()
        if body.get("flags") is not None:
            message.flags = message.flags & ~4 | body["flags"] & 4
        message.edited_at = self.now()
        message.edits += 1
        if "content" in body:
            self._read_mentions(message, body.get("allowed_mentions"))
        self.tell_message("MESSAGE_UPDATE", message)

    def tell_message(self, event: str, message: Message) -> None:
        """Tell the gateway. Messages that one person sees are not on it."""
        if message.seen_by is None:
            data = message.json(self.bot) | {"guild_id": str(self.guild_id)}
            if event == "MESSAGE_CREATE" or message.author is not self.bot:
                data["member"] = {k: v for k, v in self.member_json(message.author).items() if k != "user"}
            self.dispatch(event, data, message.place)
        self.touch()

    def delete(self, *messages: Message) -> None:
        for message in messages:
            message.is_deleted = True
            message.place.messages.pop(message.id, None)
            self.private.pop(message.id, None)
        shared = [message for message in messages if message.seen_by is None]
        if shared:
            where = {"channel_id": str(shared[0].place.id), "guild_id": str(self.guild_id)}
            if len(shared) == 1:
                self.dispatch("MESSAGE_DELETE", {"id": str(shared[0].id), **where}, shared[0].place)
            else:
                ids = [str(message.id) for message in shared]
                self.dispatch("MESSAGE_DELETE_BULK", {"ids": ids, **where}, shared[0].place)
        self.touch()

    def _read_mentions(self, message: Message, allowed: Mapping[str, Any] | None) -> None:
        """Who is pinged: what the text names, as far as `allowed_mentions` lets it."""
        parse = ("users", "roles", "everyone") if allowed is None else allowed.get("parse") or ()
        named = [int(found) for found in re.findall(r"<@!?(\d+)>", message.content)]
        explicit = {int(user) for user in (allowed or {}).get("users") or ()}
        message.mentions = [
            self.users[user]
            for user in dict.fromkeys(named)
            if user in self.users and ("users" in parse or user in explicit)
        ]
        roles = {int(found) for found in re.findall(r"<@&(\d+)>", message.content)}
        message.roles = [role for role in roles if role == self.role_id and "roles" in parse]
        says = re.search(r"@(everyone|here)\b", message.content) is not None
        may = not message.author.bot or self.may(message.place, "mention_everyone")
        message.everyone = says and "everyone" in parse and may

    # Threads

    def add_thread(
        self, parent: Place, owner: User, name: str, *, source: Message | None = None, **options: Any
    ) -> Place:
        thread = Place(
            source.id if source else self.ids.take(),
            self.guild_id,
            name,
            kind=options.get("type") or PUBLIC_THREAD,
            parent=parent,
            owner=owner,
            archive_after=options.get("auto_archive_duration") or 1440,
            made_at=self.now(),
            active_at=self.clock.now(),
        )
        thread.members[owner.id] = self.now()
        self.places[thread.id] = thread
        self.dispatch("THREAD_CREATE", thread.json(self.bot) | {"newly_created": True}, thread)
        if source is not None:
            source.thread = thread
            source.flags |= 1 << 5
            self.tell_message("MESSAGE_UPDATE", source)
        elif thread.kind == PUBLIC_THREAD:
            reference = {"guild_id": str(self.guild_id), "channel_id": str(thread.id)}
            self.post(parent, owner, {"content": name, "message_reference": reference}, kind=18)
        self.touch()
        return thread

    def archive_quiet(self) -> None:
        """Archive the threads in which nothing happened for as long as they stay open."""
        for place in list(self.places.values()):
            if place.is_thread and not place.archived and place.active_at is not None:
                if self.clock.now() - place.active_at >= timedelta(minutes=place.archive_after):
                    self.change_place(place, archived=True)

    def change_place(self, place: Place, **changes: Any) -> None:
        if changes.get("archived", place.archived) != place.archived:
            place.archived_at, place.active_at = self.now(), self.clock.now()
        for name, value in changes.items():
            setattr(place, name, value)
        self.dispatch("THREAD_UPDATE" if place.is_thread else "CHANNEL_UPDATE", place.json(self.bot), place)
        self.touch()

    def remove_place(self, place: Place) -> None:
        for thread in [one for one in self.places.values() if one.parent is place]:
            self.remove_place(thread)
        del self.places[place.id]
        for message in place.messages.values():
            message.is_deleted = True
        if place.is_thread:
            short = {key: place.json(self.bot)[key] for key in ("id", "guild_id", "parent_id", "type")}
            self.dispatch("THREAD_DELETE", short, place)
        else:
            self.dispatch("CHANNEL_DELETE", place.json(self.bot), place)
        self.touch()

    def open_for(self, place: Place, author: User, *, may_manage: bool) -> None:
        """Refuses to write into a locked thread; an archived one opens by being written into."""
        if place.locked and not may_manage:
            raise (
                Refusal(400, 50083, "Thread is archived")
                if place.archived
                else Refusal(403, 160005, "Thread is locked")
            )
        if place.archived:
            self.change_place(place, archived=False)

    def _join(self, place: Place, user: User) -> None:
        if place.is_thread and user.id not in place.members:
            self.add_member(place, user)

    def add_member(self, thread: Place, user: User) -> None:
        if user.id in thread.members:
            return
        thread.members[user.id] = self.now()
        member = thread.member_json(user.id) | {"member": self.member_json(user), "presence": None}
        update = {
            "id": str(thread.id),
            "guild_id": str(self.guild_id),
            "member_count": len(thread.members),
            "added_members": [member],
            "removed_member_ids": [],
        }
        self.dispatch("THREAD_MEMBERS_UPDATE", update, thread)
        self.touch()


def is_empty(message: Message) -> bool:
    return not (message.content or message.embeds or message.attachments or message.components)
