"""The contract for channels can fail: a channel that breaks one promise is found by the check of that name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from tests.contracts.channels.sketch_case import NotificationCase, SlackLikeCase, WebhookCase, sketch_case
from tests.contracts.channels.sketches import NotificationChannel, SlackLikeChannel, WebhookChannel

from signoff.core.card import card_for
from signoff.core.decision import ApprovalDecision
from signoff.core.notice import Asked, Notice
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.errors import ChannelFailed, RequestError
from signoff.ports import Inbox
from signoff.testing import ChannelCase, ChannelContract, office
from signoff.testing.channel_bench import Check


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What never comes need not be waited for as long as what may be slow."""
    monkeypatch.setattr(office, "PATIENCE", 1.0)


class Deaf:
    """A inbox that something comes between."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inbox, name)


class Twice(Deaf):
    async def answer(self, request_id: str, decision: ApprovalDecision) -> ApprovalRequest:
        await self._inbox.answer(request_id, decision)
        return await self._inbox.answer(request_id, decision)


class Somebody(Deaf):
    async def answer(self, request_id: str, decision: ApprovalDecision) -> ApprovalRequest:
        return await self._inbox.answer(request_id, replace(decision, by=Actor(name="somebody")))


class Wordless(Deaf):
    async def answer(self, request_id: str, decision: ApprovalDecision) -> ApprovalRequest:
        return await self._inbox.answer(request_id, replace(decision, note=""))


class Unedited(Deaf):
    async def answer(self, request_id: str, decision: ApprovalDecision) -> ApprovalRequest:
        return await self._inbox.answer(request_id, replace(decision, edited_args=None))


class Silent(Deaf):
    """Nobody hears why an answer was not taken."""

    async def answer(self, request_id: str, decision: ApprovalDecision) -> ApprovalRequest | None:
        try:
            return await self._inbox.answer(request_id, decision)
        except RequestError:
            return None


class Careless(Deaf):
    """Takes everything for read."""

    async def has_opened(self, request_id: str, by: Actor) -> bool:
        await self._inbox.opened(request_id, by)
        return True


class Between(SlackLikeChannel):
    """With another inbox than it was handed."""

    through: ClassVar[type[Deaf]]

    async def start(self, inbox: Inbox) -> None:
        await super().start(self.through(inbox))  # type: ignore[arg-type]


class Stale(SlackLikeChannel):
    """Never brings anything up to date."""

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        return at or await super().show(notice, at, beside)


class Forgetful(SlackLikeChannel):
    """Does not look whether it stands there already."""

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        if at:
            return await super().show(notice, at, beside)
        message = {"subject": f"{notice.subject} anew", "thread": None, "blocks": []}
        await self.post("/chat.postMessage", message)
        return await super().show(notice, at, beside)


class Raw(WebhookChannel):
    """Sends what the model wrote."""

    async def post(self, path: str, body: Mapping[str, Any], at: str = "") -> Any:
        card = [*body.get("card", ()), "as it came: \u202e \u200b k-5ecret-99"]
        return await super().post(path, {**body, "card": card}, at)


class Brief(WebhookChannel):
    """Leaves some of it out."""

    async def post(self, path: str, body: Mapping[str, Any], at: str = "") -> Any:
        return await super().post(path, {**body, "card": body.get("card", ())[:3]}, at)


class Brittle(WebhookChannel):
    """Raises what the library raises."""

    async def post(self, path: str, body: Mapping[str, Any], at: str = "") -> Any:
        try:
            return await super().post(path, body, at)
        except ChannelFailed as failed:
            raise OSError("connection refused") from failed


class Bluffing(WebhookChannel):
    """Says nothing when nothing went through."""

    async def post(self, path: str, body: Mapping[str, Any], at: str = "") -> Any:
        try:
            return await super().post(path, body, at)
        except ChannelFailed:
            return {}


class Haunting(WebhookChannel):
    """Leaves something running."""

    async def stop(self) -> None:
        self.ghost = asyncio.ensure_future(asyncio.Event().wait())
        await super().stop()


class Hanging(NotificationChannel):
    """Knows an approval only before its call runs."""

    def _line(self, notice: Notice) -> str:
        is_running = isinstance(notice, Asked) and notice.request.state is State.CLAIMED
        return "" if is_running else super()._line(notice)


class Lost(NotificationChannel):
    """Leads everybody to the same place."""

    async def post(self, path: str, body: Mapping[str, Any], at: str = "") -> Any:
        return await super().post(path, {**body, "link": "https://signoff.example/requests"}, at)


class Chatty(NotificationChannel):
    """Tells anybody the title of a card."""

    def _line(self, notice: Notice) -> str:
        return card_for(notice.request).title if isinstance(notice, Asked) else ""


class Loud(NotificationChannel):
    """Tells what the model wrote."""

    def _line(self, notice: Notice) -> str:
        return f"{notice.request.tool_name} {notice.request.args}" if isinstance(notice, Asked) else ""


def between(inbox: type[Deaf]) -> type[Between]:
    return type(f"Between{inbox.__name__}", (Between,), {"through": inbox})


BROKEN = [
    (between(Twice), "an_approval_reaches_the_inbox_once"),
    (between(Somebody), "an_approval_reaches_the_inbox_once"),
    (between(Somebody), "a_denial_reaches_the_inbox"),
    (between(Wordless), "a_denial_has_its_reason"),
    (between(Unedited), "edited_arguments_are_what_counts"),
    (between(Unedited), "a_refused_edit_can_be_repeated"),
    (between(Silent), "a_late_answer_is_told_and_does_nothing"),
    (between(Silent), "an_answer_of_the_wrong_person_is_told"),
    (between(Careless), "what_is_not_seen_whole_cannot_be_approved"),
    (Stale, "what_was_settled_elsewhere_is_shown"),
    (Stale, "the_outcome_is_shown"),
    (Forgetful, "an_outage_is_told_and_leaves_nothing_double"),
    (Forgetful, "what_was_shown_though_nobody_heard_is_found_again"),
    (Raw, "hostile_text_is_inert"),
    (Raw, "secrets_stay_masked"),
    (Brief, "a_call_is_shown_whole"),
    (Brittle, "an_outage_is_told_and_leaves_nothing_double"),
    (Bluffing, "an_outage_is_told_and_leaves_nothing_double"),
    (Hanging, "an_approval_that_is_used_at_once_closes_the_question"),
    (Lost, "what_only_links_leads_to_the_request"),
    (Chatty, "what_anybody_reads_has_no_arguments"),
    (Loud, "secrets_stay_masked"),
    (Haunting, "stopping_leaves_nothing_running"),
]


@pytest.mark.parametrize(("channel", "name"), BROKEN, ids=lambda one: getattr(one, "__name__", str(one)))
async def test_a_broken_promise_is_found(channel: type[Any], name: str) -> None:
    cases = {WebhookChannel: WebhookCase, NotificationChannel: NotificationCase, SlackLikeChannel: SlackLikeCase}
    [base] = [case for sketch, case in cases.items() if issubclass(channel, sketch)]

    class Case(base):  # type: ignore[misc, valid-type]
        sketch = channel

        if base is SlackLikeCase:

            async def standing(self, notice: Asked) -> int:
                anew = self.other.taken.get(f"{notice.subject} anew")
                return await super().standing(notice) + (anew is not None)

    @asynccontextmanager
    async def opened() -> AsyncIterator[ChannelCase]:
        async with sketch_case(Case) as case:
            yield case

    [check] = [one for one in ChannelContract.checks if one.name == name]
    with pytest.raises((AssertionError, OSError, RequestError)):
        await ChannelContract(opened).run(check)
    if hasattr(channel, "stop") and channel is Haunting:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:  # type: ignore[arg-type]
            task.cancel()


def test_every_check_says_whether_it_is_for_a_channel() -> None:
    checks: list[Check] = list(ChannelContract.checks)
    assert len({one.name for one in checks}) == len(checks)
    assert {one.name for one in checks if one.why_not(WebhookCase)} == {
        "what_is_not_seen_whole_cannot_be_approved",
        "what_anybody_reads_has_no_arguments",
        "what_only_links_leads_to_the_request",
    }
    assert {one.name for one in checks} - {"stopping_leaves_nothing_running"} >= {name for _, name in BROKEN[:-1]}
