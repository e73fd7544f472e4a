"""Check presses of buttons: who pressed, where, and whether what they saw is what would run.

A custom id is only a claim. The facts are looked up: the person by their account, the request and its thread by id.
No state is kept, so it makes no difference whether the bot was restarted since.

Several programs may share a bot, and each receives every press. Only the one that asked handles it; the others wait,
and reply only if nobody else did.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping

import discord

from signoff.channels.discord.custom_id import Press, Verb, is_ours
from signoff.channels.discord.interaction_data import InteractionData
from signoff.channels.discord.message_text import span
from signoff.channels.discord.notice_message import digest_of, digest_of_all
from signoff.channels.discord.press_actions import PressActions
from signoff.channels.discord.press_result import Pressed, in_words, what_happened
from signoff.channels.discord.problems import place_of
from signoff.channels.discord.replies import Reply
from signoff.channels.discord.threads import link_to, read_place, together
from signoff.channels.discord.users import Users
from signoff.core.lifecycle import OPEN
from signoff.core.notice import trail_of
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.visible_text import visible
from signoff.errors import SignoffError, StoreError, UnknownRequest
from signoff.ports import Inbox

_log = logging.getLogger("signoff.discord")

TOGETHER = frozenset({Verb.ALL_APPROVE, Verb.ALL_DENY})
TELLING = frozenset({Verb.HAPPENED, Verb.NOT_HAPPENED})
FORMS = frozenset({Verb.DENY_NOTE, Verb.EDIT})
_SEEN = 2000
_FORM_WITHIN = 2.0
"""Seconds: a form must be the first reply, and Discord waits for three."""
_SOMEBODY_ELSE = 2.6
"""Seconds to wait for another program or channel that shares the bot to handle its own press, even with a form.

Discord still accepts our reply after that.
"""
_MOST_LATE = 1.0
"""Maximum seconds between a press and its event: if it seems to be more, a clock is wrong."""
_COMPONENT = discord.InteractionType.component
_PRESSES = (_COMPONENT, discord.InteractionType.modal_submit)
"""Nothing else has a custom id."""
_NOT_IN_TIME = "signoff could not look this up in time. Press again, please."


class _Refusal(Exception):
    """The press is refused; the person is told why."""

    def __init__(self, why: str, *, for_log: str = "", stale: ApprovalRequest | None = None) -> None:
        self.stale = stale
        """A request whose message is out of date and gets updated."""
        self.for_log = for_log or ("it was settled before" if stale is not None else "it has to be pressed again")
        """The reason without any content of the call."""
        super().__init__(why)


class _NotOurs(Exception):
    """We did not ask this here. A program that shares the bot may have, so the text speaks for us alone."""


class Presses:
    """Handles interactions with our buttons and forms, for one channel."""

    def __init__(
        self,
        inbox: Inbox,
        users: Users,
        answers: PressActions,
        channel: discord.TextChannel,
        places: Mapping[str, str],
    ) -> None:
        self._inbox = inbox
        self._places = places
        """Places of requests that were just shown, which the inbox may not know yet."""
        self._users = users
        self._answers = answers
        self._channel = channel
        self._seen: OrderedDict[int, None] = OrderedDict()

    async def heard(self, interaction: discord.Interaction) -> None:
        """Handle one interaction, if it is with something of ours."""
        custom_id = InteractionData.of(interaction).custom_id
        if interaction.type not in _PRESSES or not is_ours(custom_id) or self._again(interaction.id):
            return
        reply, press = Reply(interaction), Press.of(custom_id)
        try:
            await self._see_to(reply, press)
        except _Refusal as told:
            _log_press(interaction, press, f"not accepted: {told.for_log}")
            await reply.tell(str(told))
            if told.stale is not None:
                await self._answers.refresh(told.stale, interaction.message)
        except SignoffError as error:
            _log_press(interaction, press, f"not accepted: {type(error).__name__}")
            await reply.tell(in_words(error))
        except Exception as error:
            _log_press(interaction, press, "not accepted: internal error")
            _log.error("a press could not be handled: %s", place_of(error))
            await reply.tell("signoff has an internal error; see its log. The message shows the current state.")
        finally:
            await reply.done()

    def _again(self, interaction: int) -> bool:
        """Whether it was received before: the gateway may deliver an interaction twice."""
        if interaction in self._seen:
            return True
        self._seen[interaction] = None
        while len(self._seen) > _SEEN:
            self._seen.popitem(last=False)
        return False

    async def _see_to(self, reply: Reply, press: Press | None) -> None:
        interaction = reply.interaction
        since = asyncio.get_running_loop().time() - _late(interaction)
        opens_form = press is not None and press.verb in FORMS and interaction.type is _COMPONENT
        looking = asyncio.create_task(self._asked_here(interaction, press))
        try:
            await asyncio.wait((looking,), timeout=_FORM_WITHIN)
            if not looking.done():
                if opens_form:
                    raise _Refusal(_NOT_IN_TIME)
                reply.hold()
            request = await looking
        except (_NotOurs, StoreError) as error:
            why = in_words(error) if isinstance(error, StoreError) else str(error)
            await self._leave_it(reply, why, since + _SOMEBODY_ELSE)
            return
        finally:
            looking.cancel()
        assert press is not None, "it has been looked up"
        by = self._users.known(interaction.user)
        if by is None:
            raise _Refusal(self._users.stranger(interaction.user, "you cannot answer this"), for_log="not listed")
        if opens_form:
            await self._form(reply, press, by, request, since + _FORM_WITHIN)
            return
        if not reply.is_held:
            reply.hold()
        await self._answers.take(await self._looked_into(reply, press, by, request))
        _log_press(interaction, press, f"handled, for {visible(by.name)}")

    async def _leave_it(self, reply: Reply, why: str, until: float) -> None:
        """Reply that we do nothing about a press, unless another program that shares the bot handles it."""
        if reply.is_held:
            await reply.done()
            if not reply.is_taken:
                await reply.tell(why)
            return
        await asyncio.sleep(until - asyncio.get_running_loop().time())
        await reply.tell_first(why)

    async def _form(self, reply: Reply, press: Press, by: Actor, request: ApprovalRequest, until: float) -> None:
        try:
            async with asyncio.timeout_at(until):
                pressed = await self._looked_into(reply, press, by, request)
                form = await self._answers.form(pressed)
        except TimeoutError:
            raise _Refusal(_NOT_IN_TIME) from None
        if form is None:
            await self._answers.unlock(pressed)
        elif isinstance(form, str):
            await reply.tell(form)
        else:
            await reply.ask(form)

    async def _asked_here(self, interaction: discord.Interaction, press: Press | None) -> ApprovalRequest:
        """Return the request that a press is about. Raises `_NotOurs` unless we asked about it in this thread."""
        if press is None:
            raise _NotOurs("This button is from another signoff or another version. It does nothing.")
        try:
            request = await self._inbox.request(press.request)
        except UnknownRequest:
            request = None
        if request is None or request.id != press.request:
            raise _NotOurs(f"This signoff has no request {span(press.request)}. The button does nothing.")
        at = await self._inbox.where(request.id, planned=True) or self._places.get(request.id, "")
        thread, _ = read_place(at)
        if not thread:
            raise _NotOurs("This can be answered only where it was asked, which is not here.")
        if thread != interaction.channel_id:
            link = link_to(self._channel.guild.id, at)
            raise _NotOurs(f"This can be answered only where it was asked: {link}")
        return request

    async def _looked_into(self, reply: Reply, press: Press, by: Actor, request: ApprovalRequest) -> Pressed:
        """Return the press with its requests. Raises whatever keeps it from being an answer."""
        requests = (request,)
        if press.verb in TOGETHER:
            requests = await self._open_beside(request)
            same = digest_of_all(requests).startswith(press.digest)
        else:
            await self._check_state(press, request)
            same = digest_of(request).startswith(press.digest)
        if not same:
            await self._inbox.gone(_subject(press))
            raise _Refusal("This has changed since the message was written. Please review it again.")
        await self._check_shown(reply, press)
        return Pressed(reply=reply, press=press, by=by, requests=requests)

    async def _check_state(self, press: Press, request: ApprovalRequest) -> None:
        wanted = {State.UNKNOWN} if press.verb in TELLING else OPEN if press.verb is Verb.WHOLE else {State.PENDING}
        if request.state not in wanted:
            if request.state is State.PENDING:
                raise _Refusal("This call has not been answered yet, so there is no outcome to report.")
            raise _Refusal(f"Too late: {what_happened(request)}.", stale=request)

    async def _check_shown(self, reply: Reply, press: Press) -> None:
        """Refuse a press if somebody hid the embed, and with it what would be approved."""
        message = reply.interaction.message
        if message is None or reply.is_private:
            return
        if message.flags.suppress_embeds or not message.embeds:
            await self._inbox.gone(_subject(press))
            raise _Refusal(
                "Somebody has hidden the content of this message. It will come back in a moment: read it first."
            )

    async def _open_beside(self, first: ApprovalRequest) -> tuple[ApprovalRequest, ...]:
        """Return the requests of the same batch that are still pending."""
        waiting = [
            one
            for one in await self._inbox.pending()
            if trail_of(one) == trail_of(first) and one.opened_at == first.opened_at
        ]
        if not waiting:
            raise _Refusal("Too late: all of them have been answered already.")
        return tuple(waiting)


def _log_press(interaction: discord.Interaction, press: Press | None, what: str) -> None:
    """Log a press and whether it was handled, for the operator."""
    if press is not None:
        who, where = interaction.user.id, interaction.channel_id
        about = f"{press.verb} on request {press.request}"
        _log.info("pressed: %s, by Discord user %s in thread %s; %s", about, who, where, what)


def _late(interaction: discord.Interaction) -> float:
    """Return the seconds since the press."""
    passed = (discord.utils.utcnow() - interaction.created_at).total_seconds()
    return min(max(passed, 0.0), _MOST_LATE)


def _subject(press: Press) -> str:
    """Return the subject of the message that was pressed."""
    return together(press.request) if press.verb in TOGETHER else press.request
