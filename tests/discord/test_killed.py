"""The bot is killed (kill -9) with many things in hand, and started again: nothing is lost, nothing is done twice (H8).

One process is killed while each story is at another moment; the next one takes all of them up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest
from tests.discord.flow import Flow, hanging, id_of, on_record, project, told
from tests.discord.scripts import calls, rings, says, writes
from tests.discord.service import Answered, Message, Place

WORKERS = {
    "pending": [rings("pending"), says("pending: {{last}}")],
    "pair": [calls(("ring", {"name": "pair1"}), ("ring", {"name": "pair2"})), says("pair: {{last}}")],
    "late": [rings("late"), says("late: {{last}}")],
    "talker": [says("What shall I note?"), writes("talker.txt", "milk"), says("First and second: {{last}}")],
    "unposted": [rings("unposted"), says("unposted: {{last}}")],
    "unrecorded": [rings("unrecorded"), says("unrecorded: {{last}}")],
    "unedited": [rings("unedited"), says("unedited: {{last}}")],
    "unsaid": [says("This is said once.")],
    "happened": [calls(("hang", {"name": "happened", "early": True})), says("I was told: {{last}}")],
    "nothing": [calls(("hang", {"name": "nothing", "early": False})), says("I was told: {{last}}")],
    "chief": [calls(("worker_call", {"worker": "helper", "prompt": "Ring it."})), says("The helper said: {{last}}")],
    "helper": [rings("inside"), says("it is done")],
    "unsent": [rings("unsent"), says("unsent: {{last}}")],
    "unheard": [rings("unheard"), says("unheard: {{last}}")],
}
AWHILE = 3600
"""Seconds that Discord was without us: it remembers no nonce that long."""
UNKNOWN = ["It happened", "It did not happen"]


@dataclass
class Stories:
    """How far each story was when the bot was killed."""

    flow: Flow
    messages: dict[str, Message] = field(default_factory=dict[str, Message])
    threads: dict[str, Place] = field(default_factory=dict[str, Place])
    pressed_in_vain: list[Answered] = field(default_factory=list[Answered])
    stood: dict[str, int] = field(default_factory=dict[str, int])
    """How many messages stood in a thread when it was killed."""

    async def thread(self, name: str) -> Place:
        """A thread whose address is known before anything happens in it."""
        made = await self.flow.ana.start_thread(self.flow.service.channel, name)
        self.threads[name] = made
        return made

    async def tell(self) -> None:
        """Bring each story to its moment."""
        flow, service = self.flow, self.flow.service
        for name in ("pending", "pair", "late", "chief"):
            self.messages[name] = await flow.asks(name)
        self.messages["both"] = await flow.sees(self.messages["pair"].place, "2 calls wait for an answer")
        await flow.ben.press(self.messages["late"], "Deny")
        await flow.sees(self.messages["late"].place, "late:")
        await flow.until(self.messages["late"], "was denied")
        self.threads["talker"] = await flow.mention("talker: hello")
        await flow.sees(self.threads["talker"], "What shall I note?")
        for name, after in (("unposted", False), ("unrecorded", True), ("unsaid", True)):
            thread = await self.thread(name)
            held = service.hold(f"POST /channels/{thread.id}/messages", after=after)
            await flow.mention(f"{name}: go on", place=thread)
            await held.reached()
        self.messages["unedited"] = question = await flow.asks("unedited", place=await self.thread("unedited"))
        held = service.hold(f"PATCH /channels/{question.place.id}/messages/*")
        await flow.ana.press(question, "Approve")
        await held.reached()
        await flow.recorded(id_of(question), "run ended")

    async def die(self) -> None:
        """Two tools run, and never come back."""
        async with AsyncExitStack() as stack:
            for name in ("happened", "nothing"):
                began = await stack.enter_async_context(hanging(self.flow.directory / f"{name}.began"))
                self.messages[name] = await self.flow.asks(name)
                await self.flow.ana.press(self.messages[name], "Approve")
                await began()
            self.flow.kill()
        self.stood = {name: len(self.flow.by_bot(thread)) for name, thread in self.threads.items()}


async def told_and_killed(flow: Flow) -> Stories:
    stories = Stories(flow)
    await flow.start()
    await stories.tell()
    await stories.die()
    stories.pressed_in_vain.append(await flow.ana.press(stories.messages["pending"], "Approve"))
    flow.service.faults.clear()
    flow.service.clock.advance(AWHILE)
    await flow.start()
    return stories


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stories]:
    with project(tmp_path_factory.mktemp("killed")) as flow:
        flow.write(WORKERS, [{"allow": {"tool": "worker_call"}}], chief={"delegates": ["helper"]})
        yield asyncio.run(told_and_killed(flow))
        flow.stop()


@pytest.fixture
def stories(killed: Stories) -> Iterator[Stories]:
    with on_record(killed.flow):
        yield killed


@pytest.fixture
def flow(stories: Stories) -> Flow:
    return stories.flow


@pytest.mark.mission("H8")
async def test_h8_a_press_after_the_restart_works_and_once(stories: Stories, flow: Flow) -> None:
    question = stories.messages["pending"]
    assert flow.by_bot(question.place) == [question] and "Approve" in question.buttons
    assert [one.replies for one in stories.pressed_in_vain] == [[]], "nobody was there to hear it"
    approve = question.child("Approve")
    assert approve is not None
    await flow.ana.press(question, "Approve")
    said = await flow.sees(question.place, "pending: pending was rung")
    await flow.until(question, "`ring` ran", "**Approved** by `ana`")
    assert (await told(await flow.ben.forge(question.place, approve["custom_id"], question))).startswith("Too late:")
    assert flow.by_bot(question.place) == [question, said] and flow.rung("pending") == 1


@pytest.mark.mission("H8")
@pytest.mark.mission("H5")
async def test_h8_h5_buttons_for_all_work_after_the_restart(stories: Stories, flow: Flow) -> None:
    both = stories.messages["both"]
    assert "approved" in await told(await flow.ana.press(both, "Approve all"))
    await flow.sees(both.place, "pair:", "pair1 was rung", "pair2 was rung")
    await flow.until(both, "All 2 calls are answered")
    assert (flow.rung("pair1"), flow.rung("pair2")) == (1, 1) and len(flow.by_bot(both.place)) == 4


@pytest.mark.mission("H8")
async def test_h8_what_an_agent_inside_another_asked_goes_on_in_both(stories: Stories, flow: Flow) -> None:
    question = stories.messages["chief"]
    assert "**By** `chief > helper > ring`" in question.text
    await flow.ben.press(question, "Approve")
    said = await flow.sees(question.place, "**chief** answered:", "The helper said: it is done")
    await flow.until(question, "`ring` ran")
    assert flow.by_bot(question.place) == [question, said] and flow.rung("inside") == 1


@pytest.mark.mission("H6")
@pytest.mark.mission("H8")
async def test_h6_h8_a_late_press_after_the_restart_is_told_what_happened(stories: Stories, flow: Flow) -> None:
    question = stories.messages["late"]
    custom_id = f"signoff:1:approve:{id_of(question)}:{question.text.rpartition('sha256 ')[2]}"
    late = await told(await flow.ana.forge(question.place, custom_id, question))
    assert late.startswith("Too late:") and "denied by ben" in late and flow.rung("late") == 0


@pytest.mark.mission("H3")
@pytest.mark.mission("H8")
async def test_h3_h8_the_talk_goes_on_after_the_restart(stories: Stories, flow: Flow) -> None:
    thread = stories.threads["talker"]
    await flow.mention("the milk", place=thread)
    question = await flow.asked(thread, "talker.txt")
    await flow.ana.press(question, "Approve")
    await flow.sees(thread, "First and second: wrote 4 bytes")
    assert flow.file("talker.txt") == "milk"


@pytest.mark.mission("H8")
@pytest.mark.parametrize(("moment", "stood"), [("unposted", 0), ("unrecorded", 1)])
async def test_h8_killed_around_posting_the_message_stands_there_once_and_works(
    stories: Stories, flow: Flow, moment: str, stood: int
) -> None:
    thread = stories.threads[moment]
    assert stories.stood[moment] == stood
    question = await flow.asked(thread, f"`{moment}`")
    await flow.ana.press(question, "Approve")
    said = await flow.sees(thread, f"{moment}: {moment} was rung")
    await flow.until(question, "`ring` ran")
    assert flow.by_bot(thread) == [question, said] and flow.rung(moment) == 1


@pytest.mark.mission("H8")
@pytest.mark.mission("H2")
async def test_h8_h2_killed_before_it_could_say_what_became_of_a_call_it_says_so_afterwards(
    stories: Stories, flow: Flow
) -> None:
    question = stories.messages["unedited"]
    await flow.until(question, "`ring` ran", "**Approved** by `ana`")
    said = await flow.sees(question.place, "unedited: unedited was rung")
    assert flow.by_bot(question.place) == [question, said] and flow.rung("unedited") == 1


@pytest.mark.mission("H8")
@pytest.mark.mission("H3")
async def test_h8_h3_an_answer_that_was_posted_and_not_recorded_is_not_posted_again(
    stories: Stories, flow: Flow
) -> None:
    thread = stories.threads["unsaid"]
    assert stories.stood["unsaid"] == 1
    first = await flow.sees(thread, "This is said once.")
    other = await flow.mention("talker: are you there?")
    await flow.sees(other, "What shall I note?")  # whatever was due before has been shown by now
    assert flow.by_bot(thread) == [first]


@pytest.mark.mission("H8")
async def test_h8_where_nobody_knows_people_are_asked_and_what_happened_is_not_done_again(
    stories: Stories, flow: Flow
) -> None:
    question = stories.messages["happened"]
    text = await flow.until(question, "Did `hang` happen?", buttons=UNKNOWN)
    assert "It is unknown whether it ran" in text and flow.rung("happened") == 1
    told = await flow.sees(question.place, "**It is unknown whether `hang` ran.**", f"/{question.id})")
    assert [user.name for user in told.notified] == ["ana", "ben", "dan"]
    await flow.ana.press(question, "It happened")
    await flow.until(question, "**It happened**, says `ana`")
    said = await flow.sees(question.place, "I was told:")
    assert "confirmed that this call happened" in said.text
    assert flow.rung("happened") == 1 and flow.by_bot(question.place) == [question, told, said]


@pytest.mark.mission("H8")
async def test_h8_what_did_not_happen_is_asked_again_and_then_done_once(stories: Stories, flow: Flow) -> None:
    question = stories.messages["nothing"]
    await flow.until(question, "Did `hang` happen?", buttons=UNKNOWN)
    assert flow.rung("nothing") == 0
    await flow.ana.press(question, "It did not happen")
    again = await flow.asked(question.place, "`nothing`")
    assert again is not question and not question.buttons
    await flow.ana.press(again, "Approve")
    await flow.sees(question.place, "I was told: nothing was rung")
    assert flow.rung("nothing") == 1


@pytest.mark.nightly
@pytest.mark.mission("H8")
async def test_h8_what_an_outage_kept_from_being_asked_is_asked_afterwards_once(stories: Stories, flow: Flow) -> None:
    service = flow.service
    for name, after in (("unsent", False), ("unheard", True)):
        thread = await stories.thread(name)
        held = service.hold(f"POST /channels/{thread.id}/messages", after=after)
        await flow.mention(f"{name}: go on", place=thread)
        await held.reached()
    await service.down()
    service.faults.clear()
    service.clock.advance(AWHILE)
    await service.up()
    for name in ("unsent", "unheard"):
        thread = stories.threads[name]
        question = await flow.asked(thread, f"`{name}`")
        await flow.ana.press(question, "Approve")
        said = await flow.sees(thread, f"{name}: {name} was rung")
        assert flow.by_bot(thread) == [question, said] and flow.rung(name) == 1
