"""Reply to interactions: privately, in time, and without losing an answer if a reply fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import discord

from signoff.channels.discord.payloads import modal, to_edit, to_send
from signoff.channels.discord.problems import (
    ALREADY_ACKNOWLEDGED,
    OUTSIDE,
    TOKEN_EXPIRED,
    UNKNOWN_INTERACTION,
    code_of,
    failed,
)
from signoff.channels.discord.sheet import CONTENT, Form, MessageSheet

_log = logging.getLogger("signoff.discord")

_IN_TIME = 3.0
"""Seconds in which Discord expects the first response."""


class Reply:
    """The replies to one interaction.

    Discord waits three seconds for the first response and accepts further replies for fifteen minutes. A reply that
    fails is logged and changes nothing about the decision.
    """

    def __init__(self, interaction: discord.Interaction) -> None:
        self.interaction = interaction
        self._held = False
        self._holding: asyncio.Task[bool] | None = None
        self._lost = False
        self.is_taken = False
        """Whether another program that shares the bot has handled it."""

    @property
    def is_held(self) -> bool:
        """Whether a first response was sent or begun."""
        return self._held

    @property
    def is_private(self) -> bool:
        """Whether it was pressed in a message that only this person sees (ephemeral)."""
        message = self.interaction.message
        return message is not None and message.flags.ephemeral

    def hold(self) -> None:
        """Defer the response, in the background: the answer itself does not wait for that."""
        command = self.interaction.type is discord.InteractionType.application_command
        response = self.interaction.response
        self._held = True
        self._holding = asyncio.create_task(self._try(response.defer(ephemeral=command, thinking=command), _IN_TIME))

    async def done(self) -> None:
        """Wait until the deferred response was sent."""
        if self._holding is not None:
            await self._holding

    async def tell(self, said: str | MessageSheet) -> bool:
        """Send a reply that only this person sees. Returns whether it arrived."""
        made = to_send(_sheet(said))
        if not self._held:
            self._held = True
            if await self._try(self.interaction.response.send_message(ephemeral=True, **made)):
                return True
            if self._lost or self.is_taken:  # the other program has replied too
                return False
            made = to_send(_sheet(said))
        await self.done()
        further: Any = self.interaction.followup  # its overloads confuse the type checker
        return await self._try(further.send(ephemeral=True, **made))

    async def tell_first(self, said: str) -> None:
        """Reply, unless another program has handled this interaction already."""
        self._held = True
        await self._try(self.interaction.response.send_message(ephemeral=True, **to_send(_sheet(said))))

    async def ask(self, form: Form) -> None:
        """Open a form. Only possible as the first response."""
        self._held = True
        await self._try(self.interaction.response.send_modal(modal(form)))

    async def replace(self, said: str | MessageSheet) -> None:
        """Replace the private message that was pressed; elsewhere the same as `tell`."""
        if not self.is_private:
            await self.tell(said)
            return
        if not self._held:
            self.hold()
        await self.done()
        await self._try(self.interaction.edit_original_response(**to_edit(_sheet(said))))

    async def _try(self, reply: Coroutine[Any, Any, Any], within: float | None = None) -> bool:
        if self._lost:
            reply.close()
            return False
        try:
            async with asyncio.timeout(within):
                await reply
        except OUTSIDE as error:
            code = code_of(error)
            self._lost = code in (UNKNOWN_INTERACTION, TOKEN_EXPIRED)
            self.is_taken = self.is_taken or code == ALREADY_ACKNOWLEDGED
            if code not in (UNKNOWN_INTERACTION, ALREADY_ACKNOWLEDGED):
                _log.warning("a reply could not be sent: %s", failed(error, "reply"))
            return False
        return True


def _sheet(said: str | MessageSheet) -> MessageSheet:
    if isinstance(said, MessageSheet):
        return said
    return MessageSheet(content=said if len(said) <= CONTENT else said[: CONTENT - 1] + "…")
