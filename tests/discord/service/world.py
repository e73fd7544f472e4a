"""What the service knows: one guild, its channels and threads, people, messages. As Discord writes them in JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

EPOCH_MS = 1420070400000

PERMISSIONS = {
    "administrator": 1 << 3,
    "manage_channels": 1 << 4,
    "view_channel": 1 << 10,
    "send_messages": 1 << 11,
    "manage_messages": 1 << 13,
    "embed_links": 1 << 14,
    "attach_files": 1 << 15,
    "read_message_history": 1 << 16,
    "mention_everyone": 1 << 17,
    "use_application_commands": 1 << 31,
    "manage_threads": 1 << 34,
    "create_public_threads": 1 << 35,
    "create_private_threads": 1 << 36,
    "send_messages_in_threads": 1 << 38,
}
NEEDED = (
    "view_channel",
    "send_messages",
    "send_messages_in_threads",
    "create_public_threads",
    "embed_links",
    "attach_files",
    "read_message_history",
)
TEXT, NEWS_THREAD, PUBLIC_THREAD, PRIVATE_THREAD = 0, 10, 11, 12

Json = dict[str, Any]


def bits(*names: str) -> int:
    """Permissions by name, as one number."""
    total = 0
    for name in names:
        total |= PERMISSIONS[name]
    return total


class Snowflakes:
    """Ids as Discord makes them: the moment in the upper bits, growing."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._last = 0

    def take(self) -> int:
        made = (int(self._now().timestamp() * 1000) - EPOCH_MS) << 22
        self._last = max(made, self._last + 1)
        return self._last


@dataclass
class User:
    id: int
    name: str
    bot: bool = False

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"

    def json(self) -> Json:
        return {
            "id": str(self.id),
            "username": self.name,
            "discriminator": "0",
            "global_name": None if self.bot else self.name.title(),
            "avatar": None,
            "bot": self.bot,
            "system": False,
            "public_flags": 0,
            "flags": 0,
            "banner": None,
            "accent_color": None,
            "avatar_decoration_data": None,
            "primary_guild": None,
        }


@dataclass
class Attachment:
    id: int
    filename: str
    data: bytes
    url: str
    description: str | None = None

    @property
    def text(self) -> str:
        return self.data.decode()

    def json(self) -> Json:
        made: Json = {
            "id": str(self.id),
            "filename": self.filename,
            "size": len(self.data),
            "url": self.url,
            "proxy_url": self.url,
            "content_type": "application/octet-stream",
        }
        if self.description is not None:
            made["description"] = self.description
        return made


@dataclass
class Place:
    """A text channel, or a thread in one."""

    id: int
    guild_id: int
    name: str
    kind: int = TEXT
    parent: Place | None = None
    owner: User | None = None
    denied: int = 0
    """What the bot may not do here (a permission overwrite); a thread takes its parent's."""
    archived: bool = False
    locked: bool = False
    archive_after: int = 1440
    """Minutes without activity until it is archived."""
    made_at: str = ""
    archived_at: str = ""
    """When it was archived or opened last."""
    active_at: datetime | None = None
    """When something was said in it, or it was opened."""
    members: dict[int, str] = field(default_factory=dict[int, str])
    messages: dict[int, Message] = field(default_factory=dict[int, "Message"])
    sent: int = 0

    @property
    def is_thread(self) -> bool:
        return self.parent is not None

    @property
    def mention(self) -> str:
        return f"<#{self.id}>"

    def json(self, bot: User) -> Json:
        last = max(self.messages, default=None)
        made: Json = {
            "id": str(self.id),
            "guild_id": str(self.guild_id),
            "type": self.kind,
            "name": self.name,
            "last_message_id": str(last) if last else None,
            "rate_limit_per_user": 0,
            "flags": 0,
        }
        if self.parent is None:
            overwrites = [{"id": str(bot.id), "type": 1, "allow": "0", "deny": str(self.denied)}]
            return made | {
                "position": 0,
                "nsfw": False,
                "topic": None,
                "parent_id": None,
                "permission_overwrites": overwrites if self.denied else [],
            }
        made |= {
            "parent_id": str(self.parent.id),
            "owner_id": str(self.owner.id) if self.owner else "0",
            "member_count": len(self.members),
            "message_count": len(self.messages),
            "total_message_sent": self.sent,
            "thread_metadata": {
                "archived": self.archived,
                "auto_archive_duration": self.archive_after,
                "archive_timestamp": self.archived_at or self.made_at,
                "create_timestamp": self.made_at,
                "locked": self.locked,
            },
        }
        if bot.id in self.members:
            made["member"] = self.member_json(bot.id)
        return made

    def member_json(self, user_id: int) -> Json:
        return {"id": str(self.id), "user_id": str(user_id), "join_timestamp": self.members[user_id], "flags": 1}


def numbered(components: list[Json]) -> list[Json]:
    """Components with the ids that Discord gives to those that have none: 1 and on, in the order they are read."""
    count = 0

    def one(component: Json) -> Json:
        nonlocal count
        count += 1
        made = {"id": count, **component}
        if "components" in component:
            made["components"] = [one(child) for child in component["components"]]
        return made

    return [one(component) for component in components]


@dataclass
class Message:
    """A message as it stands now: the service changes it in place."""

    id: int
    place: Place
    author: User
    content: str
    at: str
    embeds: list[Json] = field(default_factory=list[Json])
    components: list[Json] = field(default_factory=list[Json])
    attachments: list[Attachment] = field(default_factory=list[Attachment])
    flags: int = 0
    kind: int = 0
    edited_at: str | None = None
    nonce: str | int | None = None
    reference: Json | None = None
    thread: Place | None = None
    seen_by: int | None = None
    """The one person who sees it (an ephemeral message); None: everybody."""
    interaction: Json | None = None
    is_deleted: bool = False
    edits: int = 0
    mentions: list[User] = field(default_factory=list[User])
    notified: list[User] = field(default_factory=list[User])
    """Who was notified by name when it was sent. An edit notifies nobody, whatever it says."""
    roles: list[int] = field(default_factory=list[int])
    """Those that are mentioned."""
    everyone: bool = False

    @property
    def text(self) -> str:
        """Everything a person reads on it: content, then the embeds' texts, then what the components say."""
        lines = [self.content]
        if not self.flags & 4:
            for embed in self.embeds:
                lines += [(embed.get("author") or {}).get("name"), embed.get("title"), embed.get("description")]
                for one in embed.get("fields") or []:
                    lines += [one["name"], one["value"]]
                lines.append((embed.get("footer") or {}).get("text"))
        lines += [child.get("label") or child.get("placeholder") for child in self.children()]
        return "\n".join(line for line in lines if line)

    @property
    def buttons(self) -> list[str]:
        """The labels of the buttons that can be pressed."""
        return [child.get("label", "") for child in self.children() if child["type"] == 2 and not child.get("disabled")]

    def children(self) -> Iterator[Json]:
        for row in self.components:
            yield from row["components"]

    def child(self, label_or_id: str) -> Json | None:
        """The button or menu with this custom id, label or placeholder."""
        for name in ("custom_id", "label", "placeholder"):
            for child in self.children():
                if child.get(name) == label_or_id:
                    return child
        return None

    def json(self, bot: User) -> Json:
        made: Json = {
            "id": str(self.id),
            "channel_id": str(self.place.id),
            "author": self.author.json(),
            "content": self.content,
            "timestamp": self.at,
            "edited_timestamp": self.edited_at,
            "tts": False,
            "mention_everyone": self.everyone,
            "mentions": [user.json() for user in self.mentions],
            "mention_roles": [str(role) for role in self.roles],
            "attachments": [attachment.json() for attachment in self.attachments],
            "embeds": [] if self.flags & 4 else self.embeds,
            "components": numbered(self.components),
            "pinned": False,
            "type": self.kind,
            "flags": self.flags,
        }
        if self.nonce is not None:
            made["nonce"] = self.nonce
        if self.reference is not None:
            ids = {key: str(value) for key, value in self.reference.items() if key.endswith("_id")}
            made["message_reference"] = {"type": 0, **ids}
        if self.thread is not None:
            made["thread"] = self.thread.json(bot)
        if self.interaction is not None:
            made["interaction_metadata"] = self.interaction
        if self.author.bot:
            made["application_id"] = str(self.author.id)
        return made
