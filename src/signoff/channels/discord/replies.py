"""Replying to whoever pressed something: privately, in time, and without losing their answer when a reply is lost."""

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
"""Seconds in which Discord wants to hear from us at first."""


class Reply:
    """What one interaction is answered with.

    Discord waits three seconds for the first sign of life and takes further replies for fifteen minutes. A reply that
    cannot be given is logged and changes nothing about what was decided.
    """

    def __init__(self, interaction: discord.Interaction) -> None:
        self.interaction = interaction
        self._held = False
        self._holding: asyncio.Task[bool] | None = None
        self._lost = False
        self.is_taken = False
        """Whether somebody else has seen to it: another program that shares our bot."""

    @property
    def is_held(self) -> bool:
        """Whether Discord was told anything yet."""
        return self._held

    @property
    def is_private(self) -> bool:
        """Whether it was pressed in a message that only this person sees."""
        message = self.interaction.message
        return message is not None and message.flags.ephemeral

    def hold(self) -> None:
        """Tell Discord that we are at it, while we are: what somebody answered does not wait for that."""
        command = self.interaction.type is discord.InteractionType.application_command
        response = self.interaction.response
        self._held = True
        self._holding = asyncio.create_task(self._try(response.defer(ephemeral=command, thinking=command), _IN_TIME))

    async def done(self) -> None:
        """Return once nothing is on its way any longer."""
        if self._holding is not None:
            await self._holding

    async def tell(self, said: str | MessageSheet) -> bool:
        """Say something that only this person sees. Whether it got there."""
        made = to_send(_sheet(said))
        if not self._held:
            self._held = True
            if await self._try(self.interaction.response.send_message(ephemeral=True, **made)):
                return True
            if self._lost or self.is_taken:  # whoever has seen to it has said something too
                return False
            made = to_send(_sheet(said))
        await self.done()
        further: Any = self.interaction.followup  # its overloads are too much for the type checker
        return await self._try(further.send(ephemeral=True, **made))

    async def tell_first(self, said: str) -> None:
        """Say something, unless somebody else has seen to this interaction already."""
        self._held = True
        await self._try(self.interaction.response.send_message(ephemeral=True, **to_send(_sheet(said))))

    async def ask(self, form: Form) -> None:
        """Open a form. Only possible as the first reply."""
        self._held = True
        await self._try(self.interaction.response.send_modal(modal(form)))

    async def replace(self, said: str | MessageSheet) -> None:
        """Put something in the place of the private message it was pressed in; elsewhere the same as `tell`."""
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
