"""Interactions: what a person did, the token to answer it with, and what the person got to see."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.discord.service.refusal import Refusal, unknown_interaction
from tests.discord.service.state import State
from tests.discord.service.world import PERMISSIONS, Json, Message, Place, User, bits

COMMAND, COMPONENT, SUBMIT = 2, 3, 5
FIRST_ANSWER = timedelta(seconds=3)
TOKEN_LIVES = timedelta(minutes=15)
FILE_LIMIT = 10 * 1024 * 1024


@dataclass
class Reply:
    """One thing a person was answered with."""

    kind: str
    """"message" (a new one), "update" (of the message that was pressed), "deferred", "deferred update" or "modal"."""
    message: Message | None = None
    modal: Json | None = None

    @property
    def is_private(self) -> bool:
        return self.message is not None and self.message.seen_by is not None

    @property
    def text(self) -> str:
        """What the person reads: of a message, all of it; of a modal, its title."""
        if self.modal is not None:
            return self.modal["title"]
        return self.message.text if self.message else ""

    @property
    def is_visible(self) -> bool:
        return not self.kind.startswith("deferred")


@dataclass
class Interaction:
    """What was done, and the answers so far."""

    id: int
    kind: int
    user: User
    place: Place
    at: datetime
    data: Json
    message: Message | None = None
    """The message whose button or menu it was."""
    token: str = field(default_factory=lambda: "aW50ZXJhY3Rpb246" + secrets.token_urlsafe(48))
    answered: bool = False
    original: Message | None = None
    is_loading: bool = False
    """The bot said "thinking…" and the answer itself is still to come."""
    replies: list[Reply] = field(default_factory=list[Reply])


class Interactions:
    """All interactions there were, by id and by token."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.by_id: dict[int, Interaction] = {}
        self.by_token: dict[str, Interaction] = {}

    def begin(
        self, kind: int, user: User, place: Place, data: Json, message: Message | None = None, *, late: float = 0.0
    ) -> Interaction:
        """Keep it and tell the bot; `late`: so many seconds after it was done."""
        state = self._state
        number = state.ids.take() - (int(late * 1000) << 22)
        made = Interaction(number, kind, user, place, state.clock.now(), data, message)
        self.by_id[made.id] = made
        self.by_token[made.token] = made
        state.dispatch("INTERACTION_CREATE", self._json(made), place)
        state.touch()
        return made

    def first(self, interaction_id: str, token: str) -> Interaction:
        """The interaction that may be answered for the first time now."""
        found = self.by_id.get(int(interaction_id))
        if found is None or found.token != token:
            raise unknown_interaction()
        if found.answered:
            raise Refusal(400, 40060, "Interaction has already been acknowledged.")
        if self._state.clock.now() - found.at > FIRST_ANSWER:
            raise unknown_interaction()
        return found

    def later(self, token: str) -> Interaction:
        """The interaction that this token may still be used for, within a quarter of an hour."""
        found = self.by_token.get(token)
        if found is None:
            raise Refusal(401, 50027, "Invalid Webhook Token")
        if self._state.clock.now() - found.at > TOKEN_LIVES:
            raise Refusal(401, 50027, "Invalid Webhook Token")
        if not found.answered:
            raise Refusal(404, 10015, "Unknown Webhook")
        return found

    def reply(self, interaction: Interaction, reply: Reply) -> None:
        interaction.replies.append(reply)
        self._state.touch()

    def metadata(self, interaction: Interaction) -> Json:
        made: Json = {
            "id": str(interaction.id),
            "type": interaction.kind,
            "user": interaction.user.json(),
            "authorizing_integration_owners": {"0": str(self._state.guild_id)},
        }
        if interaction.kind == COMPONENT and interaction.message is not None:
            made["interacted_message_id"] = str(interaction.message.id)
        if interaction.kind == SUBMIT:
            before: Json = {"id": str(interaction.id), "user": interaction.user.json(), "type": COMMAND}
            before["authorizing_integration_owners"] = {"0": str(self._state.guild_id)}
            made["triggering_interaction_metadata"] = before
        return made

    def _json(self, interaction: Interaction) -> Json:
        state, place = self._state, interaction.place
        rights = bits(*PERMISSIONS) & ~bits("administrator")
        made: dict[str, Any] = {
            "id": str(interaction.id),
            "application_id": str(state.bot.id),
            "type": interaction.kind,
            "data": interaction.data,
            "guild_id": str(state.guild_id),
            "guild": {"id": str(state.guild_id), "locale": "en-US", "features": []},
            "channel_id": str(place.id),
            "channel": place.json(state.bot) | {"permissions": str(rights)},
            "member": state.member_json(interaction.user) | {"permissions": str(rights)},
            "token": interaction.token,
            "version": 1,
            "app_permissions": str(state.allowed(place) | bits("embed_links", "attach_files")),
            "locale": "en-US",
            "guild_locale": "en-US",
            "entitlements": [],
            "entitlement_sku_ids": [],
            "authorizing_integration_owners": {"0": str(state.guild_id)},
            "context": 0,
            "attachment_size_limit": FILE_LIMIT,
        }
        if interaction.message is not None:
            made["message"] = interaction.message.json(state.bot)
        return made
