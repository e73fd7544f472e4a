"""Turns that are begun in a channel: asked, answered, gone on with, told; one at a time, over restarts and kills."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest
from tests.wiring.town import PATIENCE, PROJECT, TIMEOUT, TURNS, Town, several, working

from signoff.broker import Broker
from signoff.broker.run_status import RunStatus
from signoff.core.event import CallEvent, CallStep
from signoff.core.run import RunState, SavedRun
from signoff.engine.care import SERVED, Executor, RunCare
from signoff.engine.resumable_runs import ResumableRuns
from signoff.engine.run_text import answer_text, failure_text
from signoff.engine.segment_end import SegmentEnd
from signoff.wiring import job_builds
from signoff.wiring.job import Job, RunOptions, Task, job_for, job_of

ASKS = TURNS.partition("\n")[2]
"""The same without the greeting: it asks at once."""


async def test_a_mention_is_answered_and_the_next_goes_on_with_the_conversation(town: Town) -> None:
    async with working(town):
        assert await town.says("hi") == ""
        first = await town.told()
        assert (first.worker, first.state, first.text) == ("talker", RunState.DONE, "Hello. What shall I note?")
        assert await town.says("note the eggs") == ""
        await town.answer()
        assert (await town.told()).text == "You said: wrote 4 bytes to a.txt"
        assert town.note() == "eggs"
        one, two = await town.runs()
    assert two.setup.after == one.id
    assert two.conversation_id == one.conversation_id
    assert (one.requester, dict(one.places)) == ("ana", {"discord": "77/"})
    assert not town.post.in_hand


async def test_after_a_rejection_the_agent_explains(town: Town) -> None:
    town.write(talker=ASKS)
    async with working(town):
        await town.says("note the eggs")
        await town.answer(approved=False, note="no eggs here")
        told = await town.told()
    assert told.state is RunState.DONE
    assert "no eggs here" in told.text
    assert town.note() == ""


async def test_a_timeout_is_told_too(town: Town) -> None:
    town.write(talker=ASKS)
    async with working(town):
        await town.says("note the eggs")
        await town.asked()
        town.clock.advance(TIMEOUT)
        told = await town.told()
    assert "nobody answered" in told.text
    assert town.note() == ""


async def test_two_calls_are_decided_differently(town: Town) -> None:
    town.write(
        talker="""\
        - calls:
          - {tool: write_file, args: {path: a.txt, content: eggs}}
          - {tool: write_file, args: {path: b.txt, content: milk}}
        - say: "{{last}}"
        """
    )
    async with working(town):
        await town.says("note both")
        eggs, milk = sorted([await town.asked(), await town.asked()], key=lambda one: one.args["path"])
        await town.answer(milk, approved=False, note="not the milk")
        await town.until(lambda: acted(town, milk.run))
        await town.answer(eggs)
        told = await town.told()
        assert (await town.runs())[0].epoch == 4, "taken up once for the beginning and once for each answer"
    assert (town.note("a.txt"), town.note("b.txt")) == ("eggs", "")
    assert told.state is RunState.DONE
    assert "not the milk" in told.text


async def acted(town: Town, run: str) -> bool | None:
    """Whether a run went on with what was answered, and was put down again."""
    status = await town.broker.runs.status(run)
    return True if status.run.epoch == 3 and not status.run.holder else None


@pytest.mark.nightly  # by day the next test has a conversation go on after a restart
async def test_a_restart_keeps_the_conversation(town: Town) -> None:
    async with working(town):
        await town.says("hi")
        await town.told()
        await town.says("note the eggs")
        await town.answer()
        await town.told()
    async with working(town):
        await town.says("and now?")
        assert (await town.told()).text == "That was the third."


async def test_a_turn_that_was_only_written_down_begins_after_the_one_before(town: Town) -> None:
    async with working(town):
        await town.says("hi")
        await town.told()
    with town.at_work():  # nothing goes on here: it is as if the process died at once
        assert await town.says("note the eggs") == ""
    async with working(town):
        await town.answer()
        assert (await town.told()).text == "You said: wrote 4 bytes to a.txt"


async def test_of_two_mentions_at_once_one_runs(town: Town) -> None:
    with town.at_work():
        replies = await asyncio.gather(town.says("hi"), town.says("hi"))
        assert sorted(map(bool, replies)) == [False, True]
        [run] = await town.runs()
        assert f"run {run.id} is still running" in "".join(replies)


async def test_one_that_waits_is_not_talked_over_and_the_message_is_not_begun_later(town: Town) -> None:
    async with working(town):
        await town.says("hi")
        await town.told()
        await town.says("note the eggs")
        asked = await town.asked()
        assert "waits for an answer" in await town.says("and now?", number=5_000)
        await town.answer(asked)
        await town.told()
        assert await town.says("and now?", number=5_000) == "", "the same message, told twice by the gateway"
        assert len(await town.runs()) == 2
        assert await town.says("and now?", at="78/", number=5_000) == "", "another thread is another talk"
        assert (await town.told()).text == "Hello. What shall I note?"


async def test_the_same_message_heard_twice_begins_once(town: Town) -> None:
    async with working(town):
        assert await town.says("hi", number=7) == ""
        await town.told()
        assert await town.says("hi", number=7) == ""
        assert len(await town.runs()) == 1
        late = "Please send that again: a newer message arrived first."
        assert await town.says("hi", number=6) == late, "said before, heard after"
        assert await town.says("hi", number=6) == ""
        assert len(await town.runs()) == 1
        assert await town.says("more", number=10) == ""
        assert len(await town.runs()) == 2


async def test_several_workers_are_told_apart(town: Town) -> None:
    town.write(**several("triage", "talker"))
    async with working(town):
        assert await town.says("what is up") == (
            "Name a worker, as in `triage: what to do`. There are: triage, talker."
        )
        assert await town.says("Triage: look") == ""
        assert (await town.told()).text == "triage one"
        assert await town.says("go on") == ""
        assert (await town.told()).text == "triage two"
        assert await town.says("talker look") == ""
        assert (await town.told()).text == "talker one"
        assert await town.says("triage:") == "Say what triage should do."
        assert await town.says("triage, and you?") == ""
        assert (await town.told()).text == "triage three", "each has a conversation of its own"
    assert [run.prompt for run in await reopened(town)] == ["look", "go on", "look", "and you?"]


async def reopened(town: Town) -> list[SavedRun]:
    with town.at_work():
        return list(await town.runs())


async def test_nobody_is_started_where_nobody_is_listed(town: Town) -> None:
    town.write(PROJECT.replace(", workers: [talker]", ""))
    with town.at_work():
        assert "No worker can be started from here" in await town.says("hi")
        assert await town.runs() == []


async def test_a_worker_that_is_gone_is_said_at_once(town: Town) -> None:
    (town.directory / "workers" / "talker.yaml").unlink()
    with town.at_work():
        assert "there is no worker `talker`" in await town.says("hi")
        assert await town.runs() == []


async def test_a_turn_that_cannot_begin_is_over_and_says_why(town: Town) -> None:
    async with working(town):
        (town.directory / "workers" / "talker.turns").unlink()
        await town.says("hi")
        told = await town.told()
        assert told.state is RunState.FAILED
        assert "talker.turns" in told.text
        town.write()
        assert await town.says("hi") == "", "the talk goes on"
        assert (await town.told()).text == "Hello. What shall I note?"


async def test_a_turn_that_fails_is_told_and_the_next_follows_the_one_before_it(town: Town) -> None:
    town.write(talker="- say: Hello.\n- calls: [{tool: nothing_like_it}]\n- say: Well.\n- say: Again.\n")
    async with working(town):
        await town.says("hi")
        await town.told()
        (town.directory / "workers" / "talker.turns").write_text("- say: Hello.\n")
        await town.says("more")
        told = await town.told()
        assert told.state is RunState.FAILED
        assert "the agent asks for turn 2" in told.text
        (town.directory / "workers" / "talker.turns").write_text("- say: Hello.\n- say: Second.\n")
        await town.says("more")
        assert (await town.told()).text == "Second."
        runs = await town.runs()
    assert runs[2].setup.after == runs[0].id


async def test_while_halted_nothing_begins_or_goes_on(town: Town) -> None:
    town.write(talker=ASKS)
    async with working(town):
        await town.says("note the eggs")
        asked = await town.asked()
        await town.broker.switch.halt(by="ana", why="lunch")
        assert "halted by ana" in await town.says("x", at="99/")
        await town.answer(asked)
        await town.running.resumer.look()
        await town.running.idle()
        assert town.note() == ""
        await town.broker.switch.unhalt(by="ana")
        assert (await town.told()).text == "You said: wrote 4 bytes to a.txt"


async def test_a_run_of_another_directory_is_left_to_others_and_that_is_said_once(town: Town) -> None:
    town.write(talker=ASKS)
    async with working(town):
        await town.says("note the eggs")
        asked = await town.asked()
    elsewhere = town.directory / "elsewhere"
    elsewhere.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(elsewhere)
        async with working(town):
            await town.answer(asked)
            told = await town.told()
            run = (await town.runs())[-1]
            assert (told.state, told.text) == (RunState.GOING, f"Answered. To resume: signoff resume {run.id}")
            town.clock.advance(60)
        async with working(town):
            await asyncio.wait_for(town.running.resumer.look(), PATIENCE)
            assert town.thread.told.empty(), "said once"
    async with working(town):
        assert (await town.told()).text == "You said: wrote 4 bytes to a.txt"


async def suspended(town: Town) -> str:
    """A run that was begun at a terminal, and suspended at its first question."""
    store = f"sqlite:{town.directory / 'signoff.db'}"
    job = job_for("talker", RunOptions(store=store, unattended="park", wait=timedelta(0)))
    try:
        return (await job.run(Task(text="note the eggs"))).run
    finally:
        job.close()


async def test_a_run_that_was_begun_at_a_terminal_goes_on_where_it_is_answered(town: Town) -> None:
    town.write(talker=ASKS)
    async with working(town):
        run = await suspended(town)
        asked = await town.asked()
        assert asked.run == run
        await town.answer(asked)
        told = await town.told()
        assert (told.run, told.text) == (run, "You said: wrote 4 bytes to a.txt")
        assert (await town.runs())[0].places == {"discord": "1/1"}, "a process that dies leaves it to the next"


async def test_a_run_that_somebody_stopped_at_a_terminal_is_left_to_them(town: Town) -> None:
    town.write(talker=ASKS)
    async with working(town):
        run = await suspended(town)
        asked = await town.asked()
        await town.broker.cancel(asked.id, "stopped")
        assert (await town.broker.runs.status(run)).word == "ready"
        await town.running.resumer.look()
        await town.running.idle()
        assert (await town.broker.runs.status(run)).run.epoch == 1


async def test_a_run_that_cannot_go_on_is_tried_again_later_and_said_once(town: Town) -> None:
    town.write(talker=ASKS)
    async with working(town):
        await town.says("note the eggs")
        asked = await town.asked()
        worker = town.directory / "workers" / "talker.yaml"
        text = worker.read_text()
        worker.write_text("instructions: [wrong\n")
        await town.answer(asked)
        told = await town.told()
        assert told.state is RunState.GOING
        assert "talker.yaml" in told.text
        await town.line("failed")
        await town.running.resumer.look()
        await town.running.idle()
        assert town.lines.empty(), "not again at once"
        town.clock.advance(5)
        assert "talker.yaml" in await town.line("failed")
        assert town.thread.told.empty(), "said once"
        worker.write_text(text)
        town.clock.advance(60)
        assert (await town.told()).text == "You said: wrote 4 bytes to a.txt"


async def test_ctrl_c_puts_down_what_is_in_hand_and_the_next_process_goes_on_with_it(town: Town) -> None:
    town.write(talker="- calls: [{tool: list_files}]\n- say: Looked.\n")

    def stop(event: CallEvent) -> None:
        if event.what is CallStep.ALLOWED:
            town.task.cancel()

    async with working(town, observe=stop):
        await town.says("look")
        with pytest.raises(asyncio.CancelledError):
            await town.task
        [status] = await town.broker.runs.list()
        assert (status.word, status.run.holder) == ("ready", "")
        assert not town.post.in_hand
    async with working(town):
        assert (await town.told()).text == "Looked."


async def test_more_runs_than_go_on_at_once_all_come_to_an_end(town: Town) -> None:
    town.at_once = 2
    places = [f"{number}/" for number in range(1, 6)]
    with town.at_work():
        assert [await town.says("hi", at=at) for at in places] == [
            *["", ""],
            *(f"{count} runs are ahead of yours; it starts when one of them ends." for count in (2, 3, 4)),
        ]
    async with working(town):
        told = [await town.told() for _ in places]
    assert {one.text for one in told} == {"Hello. What shall I note?"}
    assert len({one.run for one in told}) == len(places)


async def test_another_process_that_is_faster_is_left_alone(town: Town) -> None:
    with town.at_work():
        await town.says("hi")
        [run] = await town.runs()
        other = Broker(town.store, town.clock)
        await other.runs.take(run.id)
        await town.running.resumer.look()
        await town.running.idle()
        assert town.thread.told.empty()
        assert (await town.broker.runs.status(run.id)).word == "running"


async def test_a_run_that_was_read_before_another_process_took_it_goes_on_from_where_it_is_now(town: Town) -> None:
    town.write(talker=ASKS)
    with town.at_work():
        await town.says("note the eggs")
        [read] = await town.runs()
        options = RunOptions(store=f"sqlite:{town.directory / 'signoff.db'}", unattended="park", wait=timedelta(0))
        faster, slower = job_of(read, options), job_of(read, options)
        asked = (await faster.resume(read)).waiting[0]
        await town.answer(asked)
        assert (await slower.resume(read)).output == "You said: wrote 4 bytes to a.txt"
        faster.close()
        slower.close()


async def test_secrets_are_masked_in_what_is_told(town: Town) -> None:
    town.write(talker="- say: The token is ghp_0123456789abcdefABCDEF0123456789abcd.\n")
    async with working(town):
        await town.says("hi")
        told = await town.told()
    assert "ghp_0123456789" not in told.text
    assert "GitHub token" in told.text


def test_an_answer_that_is_no_text_is_told_as_json() -> None:
    assert answer_text({"labels": ["bug"], "n": 1}) == '{\n  "labels": [\n    "bug"\n  ],\n  "n": 1\n}'
    assert answer_text(None) == "null"
    assert answer_text("as it is") == "as it is"
    assert failure_text(RuntimeError("password=hunter2hunter2")).startswith("RuntimeError: password=⟦masked")


BOTH = """\
- calls:
  - {tool: write_file, args: {path: a.txt, content: eggs}}
  - {tool: write_file, args: {path: b.txt, content: milk}}
- say: "{{last}}"
"""


async def test_one_of_two_answers_is_acted_upon_after_a_halt_in_the_same_instant(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = job_builds.job_of

    def halted(run: SavedRun, options: RunOptions) -> Job:
        if not town.note("b.txt") and run.epoch > 1:
            asyncio.run_coroutine_threadsafe(town.broker.switch.halt(by="ana", why="lunch"), loop).result()
        return real(run, options)

    town.write(talker=BOTH)
    loop = asyncio.get_running_loop()
    async with working(town):
        await town.says("note both")
        eggs, milk = sorted([await town.asked(), await town.asked()], key=lambda one: one.args["path"])
        monkeypatch.setattr(job_builds, "job_of", halted)
        await town.answer(milk)
        await town.until(lambda: is_halted(town))
        await town.running.idle()
        assert town.note("b.txt") == ""
        monkeypatch.setattr(job_builds, "job_of", real)
        await town.broker.switch.unhalt(by="ana")
        await town.until(lambda: has_note(town, "b.txt"))
        await town.answer(eggs)
        assert (await town.told()).state is RunState.DONE
    assert town.note("a.txt") == "eggs"


async def is_halted(town: Town) -> bool | None:
    return True if await town.broker.switch.state() else None


async def has_note(town: Town, name: str) -> bool | None:
    return True if town.note(name) else None


async def test_an_agent_that_is_not_made_in_time_stops_no_other_and_is_tried_again(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, over = job_builds.job_of, threading.Event()

    def hangs(run: SavedRun, options: RunOptions) -> Job:
        if run.agent == "worker:one":
            over.wait(PATIENCE)
        return real(run, options)

    written = several("one", "two")
    town.write(written["project"], **{name: written[name] for name in ("one", "two")})
    monkeypatch.setattr(job_builds, "job_of", hangs)
    monkeypatch.setattr(job_builds, "BUILDING", 0.1)
    async with working(town):
        await town.says("one: hi", at="1/")
        assert "could not be built" in await town.line("failed")
        first = await town.told()
        assert (first.state, "could not be built" in first.text) == (RunState.GOING, True)
        monkeypatch.setattr(job_builds, "BUILDING", PATIENCE)  # a tenth of a second may be short for one that is well
        await town.says("two: hi", at="2/")
        assert (await town.told()).text == "two one"
        over.set()
        assert (await town.told()).text == "one one"


class Lookout(RunCare):
    """Looks after every run that it can look at, and after those whose process died."""

    def looks_after(self, run: SavedRun) -> bool:
        if run.id == "odd":
            raise OSError("File name too long")
        return True

    def takes(self, status: RunStatus) -> bool:
        return status.died

    async def executor(self, run: SavedRun) -> Executor:
        raise AssertionError("it only looks")

    async def ended(self, run: SavedRun, end: SegmentEnd, *, again: bool) -> None: ...

    def trouble(self, error: Exception, run_id: str = "") -> None: ...


async def test_a_run_that_cannot_be_looked_at_stops_no_other(town: Town) -> None:
    with town.at_work():
        runs = [
            await town.broker.runs.begin(SavedRun(id=name, agent="worker:x", prompt="x"), put_down=True)
            for name in ("odd", "fine")
        ]
        looking = ResumableRuns(Lookout(town.broker, [SERVED]))
        town.store.later("hold", lambda tx: [tx.runs.put(one.changed(holder="gone")) for one in runs])
        assert [one.run.id for one in await looking.found(())] == ["fine"], "its process is gone, and nobody has to say"


async def test_a_clock_that_is_set_back_is_no_reason_to_wait(town: Town) -> None:
    with town.at_work():
        run = await town.broker.runs.begin(SavedRun(id="r", agent="worker:x", prompt="x"), put_down=True)
        town.store.later("hold", lambda tx: tx.runs.put(run.changed(holder="gone")))
        looking = ResumableRuns(Lookout(town.broker))
        looking.wait(run.id)
        assert await looking.found(()) == []
        town.clock.advance(-3600)
        assert [one.run.id for one in await looking.found(())] == ["r"]
