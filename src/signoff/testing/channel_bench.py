"""Helpers for the checks of the channel contract: one channel, its broker, and waiting for what a person sees."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from signoff.core.notice import Asked, Notice
from signoff.core.request import ApprovalRequest, State
from signoff.errors import RequestError
from signoff.ports import Channel
from signoff.testing.case import ChannelCase, Skill
from signoff.testing.office import ANA, Office, WatchedInbox, soon


@dataclass
class Bench:
    """A case with its channel and the broker behind it."""

    case: ChannelCase
    office: Office
    channel: Channel = field(init=False)
    inbox: WatchedInbox = field(init=False)

    async def start(self) -> None:
        """Make and start a channel as a new process would."""
        self.channel = self.case.make()
        self.inbox = self.office.inbox(self.channel.name)
        await self.channel.start(self.inbox)

    async def ask(self, **about: Any) -> Asked:
        """Ask about a new call and show it."""
        [notice] = await self.office.ask(**about)
        await self.show(notice)
        return notice

    async def show(self, notice: Notice) -> str:
        return await self.office.deliver(self.channel, notice)

    async def up_to_date(self, notice: Asked) -> Asked:
        """Show the notice in its current state."""
        now = await self.office.now(notice)
        await self.show(now)
        return now

    async def sees(self, notice: Notice, *texts: str | Sequence[str]) -> None:
        """Wait until every text is shown; for a sequence of texts, any one of them."""
        read = ""

        async def all_there() -> bool:
            nonlocal read
            read = flat(await self.case.seen(notice))
            return all(any(flat(one) in read for one in wanted(text)) for text in texts)

        def missing() -> str:
            lost = [text for text in texts if not any(flat(one) in read for one in wanted(text))]
            return f"not shown: {lost}, but:\n{read}"

        await soon(all_there, missing)

    async def is_told(self, *texts: str, before: int = 0) -> None:
        """Wait until the person was told a message that contains these texts, after the first `before` messages."""
        told: Sequence[str] = ()

        async def said() -> bool:
            nonlocal told
            told = (await self.case.told())[before:]
            return any(all(flat(text) in flat(one) for text in texts) for one in told)

        await soon(said, lambda: f"the person was not told {texts}, only {list(told)}")

    async def stands(self, notice: Asked, times: int = 1) -> None:
        """Wait until the request can be answered in exactly this many places."""
        counted = -1

        async def so_many() -> bool:
            nonlocal counted
            counted = await self.case.standing(notice)
            return counted == times

        try:
            await soon(so_many, "")
        except AssertionError as failed:
            seen = await self.case.seen(notice)
            raise AssertionError(
                f"the request can be answered in {counted} places, not {times}. Seen:\n{seen}"
            ) from failed

    async def is_answered(self, *notices: Asked) -> list[ApprovalRequest]:
        """Wait until the inbox has accepted an answer to each notice, and to nothing else."""
        ids = [notice.request.id for notice in notices]
        await soon(
            lambda: len(self.inbox.taken) >= len(ids),
            lambda: f"the inbox accepted {len(self.inbox.taken)} of {len(ids)} answers; refused: {self.inbox.refused}",
        )
        hold([one for one, _ in self.inbox.taken] == ids, f"expected answers to {ids}, got {self.inbox.taken}")
        for _, decision in self.inbox.taken:
            by = decision.by
            hold(
                by is not None and by.key == ANA.key and by.kind == ANA.kind, f"ana answered, but the answer names {by}"
            )
        return [await self.office.broker.get(one) for one in ids]

    async def is_refused(self, notice: Asked, why: type[RequestError]) -> str:
        """Wait until the inbox has refused an answer; return the message."""
        await soon(lambda: bool(self.inbox.refused), "the inbox refused no answer")
        request_id, refusal = self.inbox.refused[-1]
        hold(request_id == notice.request.id and isinstance(refusal, why), f"refused with {refusal!r}, not {why}")
        return str(refusal)

    async def state(self, notice: Asked) -> State:
        return (await self.office.broker.get(notice.request.id)).state


@dataclass(frozen=True, slots=True)
class Check:
    """One check, and what a channel must be able to do for it."""

    run: Callable[[Bench], Awaitable[None]]
    needs: tuple[Skill, ...] = ()
    unless: Callable[[ChannelCase | type[ChannelCase]], str] = lambda case: ""
    """Says of a channel why the check is not for it, if that is no skill it lacks; empty if it is."""

    @property
    def name(self) -> str:
        return getattr(self.run, "__name__", "check")

    def __str__(self) -> str:
        return self.name

    def why_not(self, case: ChannelCase | type[ChannelCase]) -> str:
        """Why the check does not apply to this channel; empty if it does."""
        lacks = [f"{skill}: {case.lacks[skill]}" for skill in self.needs if skill in case.lacks]
        return "; ".join(lacks) or self.unless(case)


def hold(condition: bool, otherwise: str) -> None:
    """Like `assert`, but not removed by `python -O`."""
    if not condition:
        raise AssertionError(otherwise)


def flat(text: str) -> str:
    """Normalise whitespace and case: line breaks and capitals are up to the channel."""
    return " ".join(text.split()).casefold()


def wanted(text: str | Sequence[str]) -> Sequence[str]:
    return (text,) if isinstance(text, str) else text
