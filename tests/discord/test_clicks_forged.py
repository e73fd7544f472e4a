"""Custom ids that somebody made up: whatever they say, whoever sends one is told and nothing is decided."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.discord.house import House, told
from tests.discord.service import Message, Service
from tests.discord.service.pointed import point_at
from tests.profiles import examples

from signoff.channels.discord import presses
from signoff.channels.discord.custom_id import LONGEST, Press, Verb
from signoff.core.request import ApprovalRequest, State

T = TypeVar("T")


class Town:
    """A house that runs in a thread of its own, with one request that waits; for tests that are no coroutines."""

    request: ApprovalRequest
    message: Message

    def __init__(self, service: Service, directory: Path) -> None:
        self.service = service
        self.house = House(service, directory)
        self._loop = asyncio.new_event_loop()
        self._open, self._over = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._live()))

    def start(self) -> None:
        self._thread.start()
        assert self._open.wait(20)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(20)
        self._loop.close()
        self.house.close()

    async def _live(self) -> None:
        async with self.house.running():
            self.request, self.message = await self.house.shown()
            self._open.set()
            await self._over.wait()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def forged(self, custom_id: str) -> str:
        return await told(await self.house.ana.forge(self.message.place, custom_id, self.message))

    async def forged_form(self, custom_id: str, values: dict[str, str]) -> str:
        return await told(await self.house.ana.forge_modal(self.message.place, custom_id, values, self.message))


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    service = Service().start()
    back = point_at(service.url)
    made = Town(service, tmp_path_factory.mktemp("forged"))
    made.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(presses, "_SOMEBODY_ELSE", 0.0)  # nobody else is there
            yield made
    finally:
        made.stop()
        back()
        service.stop()
    assert service.errors == []


ids = st.text("23456789abcdefghjkmnpqrstuvwxyz", min_size=10, max_size=10)
digests = st.text("0123456789abcdef", min_size=12, max_size=12)
verbs = st.sampled_from([*Verb, "approve ", "APPROVE", "run", ""])
rests = st.sampled_from(["", ":again", ":0-run", ":9-run", ":0-project-99999999999", ":", ":a:b", ":\u202e"])
shaped = st.builds(lambda verb, one, two, rest: f"signoff:1:{verb}:{one}:{two}{rest}", verbs, ids, digests, rests)
anything = st.text(max_size=LONGEST - 8).map(lambda text: f"signoff:{text}")


@given(custom_id=st.text(max_size=LONGEST) | anything | shaped)
def test_a_custom_id_says_one_thing_or_nothing(custom_id: str) -> None:
    found = Press.of(custom_id)
    assert found is None or found.id == custom_id


@given(custom_id=(anything | shaped).filter(lambda text: len(text) <= LONGEST))
@examples(200, 30)
def test_whatever_is_made_up_is_told_to_be(town: Town, custom_id: str) -> None:
    text = town.do(town.forged(custom_id))
    assert "does nothing" in text
    assert town.do(town.house.state(town.request)) is State.PENDING


@pytest.mark.parametrize("verb", list(Verb))
def test_a_request_cannot_be_named_by_its_beginning(town: Town, verb: Verb) -> None:
    made = Press(verb=verb, request=town.request.id[:4], digest=town.request.args_digest)
    assert "does nothing" in town.do(town.forged(made.id))
    assert "does nothing" in town.do(town.forged_form(made.id, {"reason": "no", "args": "{}"}))
    assert town.do(town.house.state(town.request)) is State.PENDING


@given(verb=st.sampled_from(Verb), digest=digests, rest=st.sampled_from(["", "again", "0-run", "0-session"]))
@examples(200, 25)
def test_other_arguments_than_those_shown_are_never_approved(town: Town, verb: Verb, digest: str, rest: str) -> None:
    made = Press(verb=verb, request=town.request.id, digest=digest, rest=rest)
    text = town.do(town.forged(made.id))
    assert "has changed" in text or "not been answered yet" in text
    assert town.do(town.house.state(town.request)) is State.PENDING


@pytest.mark.parametrize("rest", ["", "9-run", "0-nowhere", "0-project-1", "0-run-99999999999"])
def test_nothing_is_remembered_that_was_not_offered(town: Town, rest: str) -> None:
    made = Press(verb=Verb.REMEMBER_YES, request=town.request.id, digest=town.request.args_digest, rest=rest)
    assert "no longer offered" in town.do(town.forged(made.id))
    assert town.do(town.house.state(town.request)) is State.PENDING


def test_what_is_not_ours_is_left_to_whoever_made_it(town: Town) -> None:
    async def work() -> None:
        theirs = await town.house.ana.forge(town.message.place, "other:approve", town.message)
        ours = await town.house.ana.forge(town.message.place, "signoff:1:approve", town.message)
        await told(ours)  # events are handled in the order they come
        assert theirs.replies == []

    town.do(work())


@pytest.mark.parametrize("kind", [2, 4, 99])
def test_what_is_no_press_is_none_whatever_custom_id_it_has(town: Town, kind: int) -> None:
    made = Press(verb=Verb.APPROVE, request=town.request.id, digest=town.request.args_digest[:12])

    async def forged() -> None:
        await town.house.ana.forge(town.message.place, made.id, town.message, kind=kind)
        await told(await town.house.ana.forge(town.message.place, "signoff:1:none", town.message))  # heard after it

    town.do(forged())
    assert town.do(town.house.state(town.request)) is State.PENDING
