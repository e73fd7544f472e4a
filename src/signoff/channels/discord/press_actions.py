"""Carry out a valid press: an answer, a form, a file, or a private reply."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

import discord

from signoff.channels.discord.cards import Cards
from signoff.channels.discord.custom_id import Press, Verb
from signoff.channels.discord.drawings import DrawingCache
from signoff.channels.discord.forms import ARGS, REASON, deny_form, edit_form, read_edit
from signoff.channels.discord.message_text import short_span
from signoff.channels.discord.notice_message import digest_of
from signoff.channels.discord.press_result import Pressed, in_words, shown
from signoff.channels.discord.remember_menu import choices, confirm_sheet, decision_for, remember_sheet
from signoff.channels.discord.sheet import Button, Form, MessageSheet, Style
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.quorum import approvals
from signoff.core.request import ApprovalRequest, State
from signoff.core.safe_text import safe_text
from signoff.errors import EditRefused, NotRead, SignoffError
from signoff.ports import Inbox

AGAIN = "again"
"""The last part of the custom id of the button that reopens a refused edit."""
_DRAFTS = 200
_MOST_LINES = 20
_NAME = 60
_LONGEST = 1900
"""Maximum characters of the problems of an edit."""
_NOT_OFFERED = "This is no longer offered. Nothing was decided."


class PressActions:
    """Carries out presses at an inbox. Every press was checked before (`presses`)."""

    def __init__(
        self,
        inbox: Inbox,
        cards: Cards,
        drawing: DrawingCache,
        refresh: Callable[[ApprovalRequest, discord.Message | None], Awaitable[None]],
    ) -> None:
        self._inbox = inbox
        self._cards = cards
        self._drawing = drawing
        self.refresh = refresh
        """Updates the message about a request, unless it is up to date. Takes a message that was just read, or None."""
        self._drafts: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._hands: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def form(self, pressed: Pressed) -> Form | str | None:
        """Return the form that a button opens, or why there is none; None if the whole call must be opened first."""
        if pressed.press.verb is Verb.DENY_NOTE:
            return deny_form(pressed.request)
        if await self._is_locked(pressed.request, pressed.by):
            return None
        draft = self._drafts.get(_whose(pressed)) if pressed.press.rest == AGAIN else None
        return await self._drawing.other(pressed.requests, lambda: edit_form(pressed.request, draft))

    async def take(self, pressed: Pressed) -> None:
        """Carry out a press. Raises what the inbox raises."""
        match pressed.press.verb:
            case Verb.APPROVE:
                await self._approve(pressed, ApprovalDecision(approved=True, by=pressed.by))
            case Verb.DENY:
                await self._answer(pressed, ApprovalDecision(approved=False, by=pressed.by))
            case Verb.DENY_NOTE:
                note = pressed.data.fields.get(REASON, "").strip()
                await self._answer(pressed, ApprovalDecision(approved=False, note=note, by=pressed.by))
            case Verb.EDIT:
                await self._edit(pressed)
            case Verb.REMEMBER:
                await self._offer(pressed)
            case Verb.REMEMBER_YES:
                await self._remember(pressed)
            case Verb.WHOLE:
                await self.unlock(pressed)
            case Verb.ALL_APPROVE | Verb.ALL_DENY:
                await self._answer_all(pressed, approved=pressed.press.verb is Verb.ALL_APPROVE)
            case Verb.HAPPENED | Verb.NOT_HAPPENED:
                happened = pressed.press.verb is Verb.HAPPENED
                await self._inbox.tell(pressed.request.id, happened=happened, by=pressed.by)

    async def unlock(self, pressed: Pressed) -> None:
        """Send somebody the whole call as a file, which unlocks approving it here."""
        request, reply = pressed.request, pressed.reply
        paper = await self._drawing.whole(request)
        if len(paper.text.encode()) > reply.interaction.filesize_limit:
            await reply.tell(
                "This is too long for Discord, so it cannot be approved here. `signoff show` prints it in full."
            )
            return
        text = "The complete call. What was too long for the message is in the file: read it before you approve."
        rows = (_buttons(request),) if request.state is State.PENDING else ()
        async with self._hand(request, pressed.by):
            if await reply.tell(MessageSheet(content=text, rows=rows, paper=paper)):
                await self._inbox.opened(request.id, pressed.by)

    async def _is_locked(self, request: ApprovalRequest, by: Actor) -> bool:
        if await self._drawing.shows_whole(request):
            return False
        async with self._hand(request, by):
            return not await self._inbox.has_opened(request.id, by)

    async def _given(self, request: ApprovalRequest, decision: ApprovalDecision) -> ApprovalRequest:
        """Answer. Whoever presses where the message shows a long call whole was shown all of it."""
        try:
            return await self._inbox.answer(request.id, decision)
        except NotRead:
            if decision.by is None or not await self._drawing.shows_whole(request):
                raise
            await self._inbox.opened(request.id, decision.by)
            return await self._inbox.answer(request.id, decision)

    def _hand(self, request: ApprovalRequest, by: Actor) -> asyncio.Lock:
        """Held while a file is sent: the person may press before it is recorded that they have it."""
        return self._hands.setdefault((by.key, request.id), asyncio.Lock())

    async def _approve(self, pressed: Pressed, decision: ApprovalDecision) -> None:
        if await self._is_locked(pressed.request, pressed.by):
            await self.unlock(pressed)
        else:
            await self._answer(pressed, decision)

    async def _answer(self, pressed: Pressed, decision: ApprovalDecision) -> None:
        answered = await self._given(pressed.request, decision)
        self._drafts.pop(_whose(pressed), None)
        if answered.state is State.PENDING:
            await pressed.reply.replace(f"Your vote counts. {_missing(answered, pressed.by)}")
        elif pressed.reply.is_private:  # the message in the thread informs everybody; this one would be stale
            await pressed.reply.replace("Approved." if decision.approved else "Denied.")

    async def _edit(self, pressed: Pressed) -> None:
        if await self._is_locked(pressed.request, pressed.by):
            await self.unlock(pressed)
            return
        try:
            edited = read_edit(pressed.request, pressed.data.fields)
            decision = ApprovalDecision(approved=True, edited_args=edited, by=pressed.by)
            await self._answer(pressed, decision)
        except EditRefused as refused:
            self._keep(pressed, pressed.data.fields.get(ARGS, ""))
            row = (_button(pressed.request, Verb.EDIT, "Edit again", "primary", AGAIN),)
            text = f"Nothing was decided, because the arguments are not valid: {shown(refused)}"
            await pressed.reply.tell(MessageSheet(content=f"{text[:_LONGEST]}.", rows=(row,)))

    def _keep(self, pressed: Pressed, draft: str) -> None:
        self._drafts[_whose(pressed)] = draft
        while len(self._drafts) > _DRAFTS:
            self._drafts.popitem(last=False)

    async def _offer(self, pressed: Pressed) -> None:
        request = pressed.request
        now = pressed.reply.interaction.created_at
        picked = pressed.data.picked
        if picked is not None:
            decision = decision_for(request, picked, now)
            if decision is None:
                await pressed.reply.tell(_NOT_OFFERED)
                return
            text = await self._inbox.grant_text(request.id, decision)
            await pressed.reply.replace(confirm_sheet(request, picked, text))
            return
        offered = choices(request, now)
        texts = [(value, await self._inbox.grant_text(request.id, decision)) for value, decision in offered]
        await pressed.reply.tell(remember_sheet(request, texts))

    async def _remember(self, pressed: Pressed) -> None:
        offered = decision_for(pressed.request, pressed.press.rest, pressed.reply.interaction.created_at)
        if offered is None:
            await pressed.reply.tell(_NOT_OFFERED)
            return
        await self._approve(pressed, _by(offered, pressed.by))

    async def _answer_all(self, pressed: Pressed, *, approved: bool) -> None:
        requests, thread = pressed.requests, pressed.reply.interaction.channel_id or 0
        seen = await self._cards.shown_in(thread, requests) if approved else None
        told = [await self._one_of_all(request, pressed.by, approved, seen) for request in requests]
        if not all(self._cards.number(one.id) for one in requests):  # asked by another process
            await self._cards.shown_in(thread, requests)
        lines = [self._named(request) + text for request, text in zip(requests, told, strict=True)]
        if len(lines) > _MOST_LINES:
            lines[_MOST_LINES:] = [f"… and {len(lines) - _MOST_LINES} more, as their messages say"]
        await pressed.reply.tell("\n".join(lines))

    def _named(self, request: ApprovalRequest) -> str:
        """Return the call's number, as in the message about the batch, and its tool."""
        number = self._cards.number(request.id)
        return f"{f'**{number}** ' if number else ''}{short_span(safe_text(request.tool_name), _NAME)}: "

    async def _one_of_all(self, request: ApprovalRequest, by: Actor, approved: bool, seen: set[str] | None) -> str:
        if approved and seen is None:
            return "not approved. Discord does not say whether it is shown here; press again, or answer it there."
        if approved and seen is not None and request.id not in seen:
            await self._inbox.gone(request.id)
            return "not approved. It is not shown: somebody deleted or hid its message. Open it there first."
        if approved and await self._is_locked(request, by):
            return "not approved. It is too long for its message; open it there first."
        try:
            answered = await self._given(request, ApprovalDecision(approved=approved, by=by))
        except SignoffError as error:
            return in_words(error)
        if answered.state is State.PENDING:
            return f"your vote counts. {_missing(answered, by)}"
        return "approved." if approved else "denied."


def _by(decision: ApprovalDecision, by: Actor) -> ApprovalDecision:
    return ApprovalDecision(approved=True, remember=decision.remember, terms=decision.terms, by=by)


def _whose(pressed: Pressed) -> tuple[str, str]:
    return pressed.by.key, pressed.request.id


def _missing(request: ApprovalRequest, by: Actor) -> str:
    """Say how many more people must approve the same arguments."""
    mine = next(vote.args_digest for vote in reversed(request.votes) if vote.by.key == by.key)
    requirement = request.requirement
    agreed = approvals(requirement, request.votes, mine, request.parties)
    missing = max(1, requirement.quorum - len(agreed))
    return "1 more is needed." if missing == 1 else f"{missing} more are needed."


def _buttons(request: ApprovalRequest) -> tuple[Button, ...]:
    return (_button(request, Verb.APPROVE, "Approve", "success"), _button(request, Verb.DENY, "Deny", "danger"))


def _button(request: ApprovalRequest, verb: Verb, label: str, style: Style, rest: str = "") -> Button:
    made = Press(verb=verb, request=request.id, digest=digest_of(request), rest=rest)
    return Button(label=label, style=style, id=made.id)
