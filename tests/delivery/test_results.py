"""What a run came to is told where something of it was shown, or where it began; once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from unittest.mock import patch

import pytest
from tests.broker.conftest import Opens, kill
from tests.delivery.posting import ANA, NO, YES, Board, ask_all, post_for, row, rows

from signoff.broker import Broker
from signoff.core.delivery import Delivery, DeliveryState
from signoff.core.run import RunState, SavedRun
from signoff.core.subject import Subject
from signoff.delivery.delivery_status import show_again, tell_result
from signoff.delivery.results import LONGEST, FinishedRuns
from signoff.errors import ChannelFailed
from signoff.ports import Transaction
from signoff.testing import FakeClock

MINUTE = timedelta(minutes=1)


async def begun(broker: Broker, run_id: str = "r1", **places: str) -> SavedRun:
    return await broker.runs.begin(SavedRun(id=run_id, agent="worker:triage", places=places))


async def test_the_answer_is_told_after_all_questions_and_beside_them(broker: Broker) -> None:
    board, other = Board(), Board("other")
    other.fails = lambda notice: ChannelFailed("away")
    post = post_for(broker, board, other)
    run = await begun(broker)
    [request] = await ask_all(broker, "a")
    await post.round()
    await broker.answer(request, YES, by=ANA)
    post.in_hand.add(run.id)
    await broker.runs.end(run.id, run.epoch, RunState.DONE, "beginning")
    await post.round()
    assert board.order("r1") == [request], "whoever finishes it will say more"
    assert await post.say(run.id, "triage", RunState.DONE, "all is well") == ["board"]
    post.in_hand.discard(run.id)
    await post.round()
    said = board.said("r1")
    assert (said.text, said.worker, said.state) == ("all is well", "triage", RunState.DONE)
    assert board.order("r1") == [request, "said:r1"]
    assert board.tries[-1][2] == board.places[request], "beside the question"
    assert "said:r1" not in other.places, "nothing of the run stands there"
    tries = len(board.tries)
    await post.say(run.id, "triage", RunState.DONE, "all is well")
    await post.round()
    assert len(board.tries) == tries


async def test_it_is_told_where_the_run_began_though_nothing_was_asked(broker: Broker) -> None:
    board, other = Board(), Board("other")
    post = post_for(broker, board, other)
    run = await begun(broker, board="thread/", nowhere="x")
    assert await post.say(run.id, "triage", RunState.DONE, "hello") == ["board", "nowhere"]
    await post.round()
    assert [(notice.subject, at, beside) for notice, at, beside in board.tries] == [("said:r1", "", "thread/")]
    assert not other.tries


async def test_questions_come_where_the_run_began(broker: Broker) -> None:
    board = Board()
    await begun(broker, board="thread/")
    await ask_all(broker, "a")
    await post_for(broker, board).round()
    assert board.tries[0][2] == "thread/"


async def test_secrets_are_masked_in_what_is_said_and_long_texts_are_kept(another: Opens) -> None:
    broker, board = another(masked=("hunter2hunter2",)), Board()
    post = post_for(broker, board)
    run = await begun(broker, board="x")
    text = "hunter2hunter2 and 0therSecret99\n" + "é" * 20_000
    await post.say(run.id, "triage", RunState.DONE, text, secrets=("0therSecret99",))
    await post.round()
    told = board.said("r1").text
    assert "hunter2" not in told and "0therSecret99" not in told
    assert told.endswith("é" * 20_000) and "\n" in told


async def test_a_secret_at_the_end_of_what_is_kept_of_a_long_text_is_masked(another: Opens) -> None:
    broker, board = another(), Board()
    post = post_for(broker, board)
    run = await begun(broker, board="x")
    secret = "correct horse battery staple"
    await post.say(run.id, "triage", RunState.DONE, "é" * (LONGEST - 10) + f" {secret} it was", secrets=(secret,))
    await post.round()
    told = board.said("r1").text
    assert "corr" not in told and told.endswith("é … (100,026 characters)")


@pytest.mark.parametrize("ends", [RunState.DONE, RunState.FAILED, RunState.CANCELLED])
async def test_a_run_that_ended_elsewhere_is_told_of_with_how_it_ended(another: Opens, ends: RunState) -> None:
    here, there, board = another(), another(), Board()
    post = post_for(here, board)
    run = await begun(there)
    [request] = await ask_all(there, "a")
    await post.round()
    if ends is RunState.CANCELLED:
        await there.runs.cancel(run.id, by="ana")
    else:
        await there.runs.end(run.id, run.epoch, ends, "how it ended")
    await post.round()
    said = board.said("r1")
    assert (said.state, said.worker) == (ends, "triage")
    assert "how it ended" in said.text or "ana cancelled the run" in said.text
    assert board.order("r1") == [request, "said:r1"]
    tries = len(board.tries)
    await post.round()
    assert len(board.tries) == tries


async def test_a_run_that_began_here_and_ended_while_nobody_ran_the_channel(another: Opens) -> None:
    one, two, board = another(), another(), Board()
    post = post_for(one, board)
    await post.round()
    began = await begun(one, board="x")
    shown = await begun(one, "r2")
    await begun(one, "r3")
    [request] = await ask_all(one, "a", run="r2")
    await post.round()
    await one.answer(request, NO, by=ANA)
    await post.round()
    assert not (await row(one, "board", request)).live
    await kill(one)
    for run in (began, shown):
        await two.runs.end(run.id, run.epoch, RunState.DONE, "bye")
    await post_for(two, board).round()
    assert board.said("r1").text == board.said("r2").text == "bye"
    assert "said:r3" not in board.places


async def test_the_end_of_a_run_that_nobody_here_heard_of_is_not_told(broker: Broker) -> None:
    board = Board()
    run = await begun(broker)
    post = post_for(broker, board)
    await post.round()
    await broker.runs.end(run.id, run.epoch, RunState.DONE, "bye")
    await post.round()
    assert not board.tries and not await rows(broker)


async def test_what_is_said_of_a_run_that_goes_on_makes_room_for_what_it_comes_to(broker: Broker) -> None:
    board = Board()
    post = post_for(broker, board)
    run = await begun(broker, board="x")
    await post.say(run.id, "triage", RunState.GOING, "resume it with `signoff resume r1`")
    await post.round()
    await post.say(run.id, "triage", RunState.DONE, "done")
    await post.round()
    assert board.said("r1").text == "done"
    assert [at for _, at, _ in board.tries] == ["", "board/1"]


async def test_what_nobody_can_say_is_left(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    post = post_for(broker, board)
    for number in range(2):
        await begun(broker, f"r{number}", board="x")
        await post.say(f"r{number}", "triage", RunState.DONE, "done")
    board.fails = lambda notice: ChannelFailed("no", again=notice.trail == "r0")
    await post.round()
    for number in range(2):
        waits = await row(broker, "board", f"said:r{number}")
        assert (waits.state, waits.live) == (DeliveryState.DUE, True)
    clock.advance(86_400)
    with pytest.warns(RuntimeWarning) as told:
        await post.round()
    assert sorted(str(one.message) for one in told) == [
        f"channel 'board' could not show the result of run r{number}; giving up after a day: no" for number in range(2)
    ]
    for number in range(2):
        left = await row(broker, "board", f"said:r{number}")
        assert (left.state, left.live) == (DeliveryState.FAILED, False)


async def test_the_end_is_told_though_it_was_said_before_that_it_goes_on(another: Opens, clock: FakeClock) -> None:
    one, board = another(), Board()
    post = post_for(one, board)
    runs = [await begun(one, run_id, board="thread/") for run_id in ("r1", "r2")]
    for run in runs:
        await post.say(run.id, "triage", RunState.GOING, "whoever began it goes on with it")
    await post.round()
    await one.runs.end("r1", runs[0].epoch, RunState.DONE, "42")
    clock.advance(MINUTE)
    await post.round()
    assert (board.said("r1").text, board.said("r2").state) == ("42", RunState.GOING)
    await post.stop()
    await one.runs.end("r2", runs[1].epoch, RunState.FAILED, "no luck")
    await post_for(another(), board).round()
    assert (board.said("r2").text, board.said("r2").state) == ("no luck", RunState.FAILED)


async def test_what_was_told_is_kept_though_the_message_is_gone(broker: Broker) -> None:
    board = Board()
    post = post_for(broker, board)
    run = await begun(broker, board="thread/")
    await broker.runs.end(run.id, run.epoch, RunState.DONE, "hello")
    await post.round()
    told = (await row(broker, "board", "said:r1")).result
    await show_again(broker.ledger, "board", Subject.parse("said:r1"))
    await post.round()
    assert (await row(broker, "board", "said:r1")).result == told is not None


async def test_runs_of_the_past_are_not_read_again(another: Opens) -> None:
    """However many were told: whoever starts reads those that go on, and those of which it was not told."""
    one, board = another(), Board()
    post = post_for(one, board)
    for number in range(5):
        run = await begun(one, f"r{number}", board="thread/")
        await one.runs.end(run.id, run.epoch, RunState.DONE, f"came to {number}")
    await begun(one, "elsewhere", other="thread/")
    await begun(one, "goes on", board="thread/")
    await post.round()
    await post.stop()
    late = await begun(one, "late", board="thread/")
    await one.runs.end(late.id, late.epoch, RunState.DONE, "late")
    endings = FinishedRuns(("board", "night"))
    read: list[str] = []

    def look(tx: Transaction) -> Sequence[str]:
        run = tx.runs.get

        def noted(run_id: str) -> SavedRun | None:
            read.append(run_id)
            return run(run_id)

        with patch.object(tx.runs, "get", noted):
            return endings.look(tx)

    assert list(await one.store.read(look)) == ["late"]
    assert read == ["late"]


async def test_what_is_shown_before_the_first_look_is_watched(broker: Broker) -> None:
    run, endings = await begun(broker), FinishedRuns(("board",))
    endings.watch(run.id)
    await broker.store.read(endings.look)
    [request] = await ask_all(broker, "a")
    shown = Delivery(channel="board", subject=Subject.parse(request), trail=run.id, shown=0, state=DeliveryState.SHOWN)
    await broker.store.write("shown", lambda tx: tx.deliveries.put(shown))
    await broker.runs.end(run.id, run.epoch, RunState.DONE, "hello")
    assert list(await broker.store.read(endings.look)) == [run.id]


async def test_what_another_process_has_told_is_told_at_once(another: Opens) -> None:
    one, two, board = another(), another(), Board()
    post = post_for(one, board)
    run = await begun(one)
    await ask_all(one, "a", run=run.id)
    await post.round()
    assert list(await tell_result(two.ledger, run.id, "triage", RunState.GOING, "nobody can go on")) == ["board"]
    await post.round()  # no time has passed
    assert (board.said(run.id).text, board.said(run.id).state) == ("nobody can go on", RunState.GOING)
