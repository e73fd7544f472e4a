"""What is shown where: every question, in order, brought up to date until nothing more can become of it."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest
from tests.broker.conftest import Opens, kill, kinds
from tests.delivery.posting import ANA, NO, YES, Board, ask_all, post_for, row, rows

from signoff.broker import Broker
from signoff.core.comment import CommentKind
from signoff.core.delivery import NEVER, DeliveryState
from signoff.core.notice import Asked, Notice
from signoff.core.request import State
from signoff.core.subject import Subject
from signoff.core.verdict import OnTimeout, Requirement
from signoff.delivery import Reconciler, Route
from signoff.delivery.delivery_status import place_of, show_again
from signoff.errors import ChannelFailed, WrongUse
from signoff.testing import FakeClock

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


async def test_a_question_is_shown_once_and_updated_to_what_became_of_it(broker: Broker) -> None:
    board = Board()
    post = post_for(broker, board)
    [request] = await ask_all(broker, "c1")
    await post.round()
    await post.round()
    assert board.shown == [(request, 0)], "nothing changed, so nothing is shown"
    assert board.call(request).state is State.PENDING
    await broker.answer(request, YES, by=ANA)
    await post.round()
    assert board.call(request).state is State.APPROVED
    await broker.claim(request)
    broker.finish(request, preview="done")
    await post.round()
    assert board.call(request).state is State.SUCCEEDED
    assert len(board.messages) == 1
    done = await row(broker, "board", request)
    assert (done.state, done.live, done.place) == (DeliveryState.SHOWN, False, "board/1")


async def test_every_channel_shows_it_and_all_hear_of_an_answer(broker: Broker) -> None:
    boards = [Board("one"), Board("two"), Board("three")]
    post = post_for(broker, *boards)
    [request] = await ask_all(broker, "c1")
    await post.round()
    await broker.answer(request, NO, by=ANA)
    await post.round()
    for board in boards:
        assert board.shown == [(request, 0), (request, 1)]
        decision = board.call(request).decision
        assert decision is not None and decision.by == ANA


async def test_a_channel_is_handed_its_own_inbox(broker: Broker) -> None:
    one, two = Board("one"), Board("two")
    await post_for(broker, one, two).round()
    assert (one.inbox, two.inbox) == ("one", "two")


async def test_what_is_settled_before_it_is_shown_is_not_shown(broker: Broker) -> None:
    board = Board()
    post = post_for(broker, board)
    denied, approved, cancelled = await ask_all(broker, "c1", "c2", "c3")
    await broker.answer(denied, NO, by=ANA)
    await broker.answer(approved, YES, by=ANA)
    await broker.cancel(cancelled, "moot")
    await post.round()
    assert board.tries == []
    await broker.claim(approved)
    await broker.lose(approved)
    await post.round()
    assert board.call(approved).state is State.UNKNOWN, "now somebody has to say something"
    assert set(board.places) == {approved}


async def test_what_failed_and_is_settled_meanwhile_is_not_shown_any_more(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    board.fails = lambda notice: ChannelFailed("away")
    post = post_for(broker, board)
    [request] = await ask_all(broker, "c1")
    await post.round()
    await broker.answer(request, NO, by=ANA)
    board.fails = lambda notice: None
    clock.advance(MINUTE)
    await post.round()
    assert len(board.tries) == 1
    assert not (await row(broker, "board", request)).live


async def test_time_is_fed_and_what_it_does_is_shown(broker: Broker, clock: FakeClock) -> None:
    need = Requirement(
        role="ops", timeout=MINUTE, remind=20 * SECOND, on_timeout=OnTimeout.ESCALATE, escalate_to="boss"
    )
    board = Board()
    post = post_for(broker, board)
    [request] = await ask_all(broker, "c1", need=need)
    [parked] = await ask_all(broker, "c2", run="r2", need=Requirement(timeout=MINUTE, on_timeout=OnTimeout.PARK))
    await post.round()
    clock.advance(40 * SECOND)
    await post.round()
    assert board.call(request).remind_at is None, "reminded"
    clock.advance(20 * SECOND)
    await post.round()
    assert board.call(request).escalated
    assert board.call(parked).deadline is None
    clock.advance(MINUTE)
    await post.round()
    assert board.call(request).state is State.EXPIRED
    assert board.call(parked).state is State.PENDING


# --- several at once, and their order ---


async def test_those_asked_at_once_are_numbered_and_also_shown_together(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    post = post_for(broker, board)
    ids = await ask_all(broker, "a", "b", "c")
    clock.advance(SECOND)
    [later] = await ask_all(broker, "d")
    await post.round()
    assert board.order("r1") == [*ids, f"all:{ids[0]}", later]
    numbers = [(one.number, one.of) for each in (*ids, later) if isinstance(one := board.standing(each), Asked)]
    assert numbers == [(1, 3), (2, 3), (3, 3), (1, 1)]
    assert [one.id for one in board.together(ids[0]).requests] == ids


async def test_numbers_stay_when_one_of_them_is_over_and_the_process_is_another(another: Opens) -> None:
    one, two, board = another(), another(), Board()
    ids = await ask_all(one, "a", "b", "c")
    await one.answer(ids[0], NO, by=ANA)
    post = post_for(one, board)
    await post.round()
    await post.stop()
    await one.answer(ids[1], NO, by=ANA)
    await post_for(two, board).round()
    assert ids[0] not in board.places
    second, third = board.standing(ids[1]), board.standing(ids[2])
    assert isinstance(second, Asked) and (second.number, second.of, second.request.state) == (2, 3, State.DENIED)
    assert isinstance(third, Asked) and (third.number, third.of) == (3, 3)
    assert [one.state for one in board.together(ids[0]).requests] == [State.DENIED, State.DENIED, State.PENDING]


async def test_together_is_updated_until_none_of_them_waits(broker: Broker) -> None:
    board = Board()
    post = post_for(broker, board)
    one, two = await ask_all(broker, "a", "b")
    await post.round()
    await broker.answer(one, YES, by=ANA)
    await post.round()
    assert [each.state for each in board.together(one).requests] == [State.APPROVED, State.PENDING]
    await broker.answer(two, NO, by=ANA)
    await post.round()
    assert not board.together(one).is_live
    shown = len(board.shown)
    await broker.claim(one)
    await post.round()
    assert [subject for subject, _ in board.shown[shown:]] == [one], "what they came to is told one by one"


async def test_together_is_not_shown_once_none_of_them_waits(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    board.fails = lambda notice: ChannelFailed("not now") if notice.subject.startswith("all:") else None
    post = post_for(broker, board)
    one, two = await ask_all(broker, "a", "b")
    await post.round()
    assert set(board.places) == {one, two}
    await broker.answer(one, YES, by=ANA)
    await broker.answer(two, YES, by=ANA)
    board.fails = lambda notice: None
    clock.advance(MINUTE)
    await post.round()
    assert set(board.places) == {one, two}
    assert not (await row(broker, "board", f"all:{one}")).live


async def test_together_is_not_shown_where_one_of_them_could_not_be(broker: Broker) -> None:
    board = Board()
    one, two = await ask_all(broker, "a", "b")
    board.fails = lambda notice: ChannelFailed("too long", again=False) if notice.subject == one else None
    await post_for(broker, board).round()
    assert set(board.places) == {two}


async def test_a_conversation_is_a_trail_where_there_is_no_run_and_a_call_alone_is_one(broker: Broker) -> None:
    board = Board()
    talk = await ask_all(broker, "a", "b", run="", talk="t1")
    alone = await ask_all(broker, "c", "d", run="")
    await post_for(broker, board).round()
    assert board.order("t1") == [*talk, f"all:{talk[0]}"]
    assert [board.order(one) for one in alone] == [[one] for one in alone]


async def test_the_next_is_shown_beside_the_last_of_its_trail(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    post = post_for(broker, board)
    [one] = await ask_all(broker, "a", run="r1")
    [other] = await ask_all(broker, "b", run="r2")
    await post.round()
    clock.advance(SECOND)
    [two] = await ask_all(broker, "c", run="r1")
    await post.round()
    beside = {notice.subject: where for notice, _, where in board.tries}
    assert beside == {one: "", other: "", two: board.places[one]}


async def test_trails_go_side_by_side_and_only_some_of_them(broker: Broker) -> None:
    board = Board()
    for number in range(30):
        await ask_all(broker, f"c{number}", run=f"r{number}")
    await post_for(broker, board).round()
    assert len(board.messages) == 30
    assert 1 < board.most <= 8


# --- a deadline from the channel ---


async def test_a_channel_that_waits_only_so_long_dates_what_it_shows(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    post = post_for(broker, Route(board, timeout=5 * MINUTE))
    [request] = await ask_all(broker, "c1", need=Requirement(remind=MINUTE))
    clock.advance(MINUTE)
    await post.round()
    deadline = clock.now() + 5 * MINUTE
    stored = await broker.get(request)
    assert (stored.deadline, stored.remind_at, stored.version) == (deadline, deadline - MINUTE, 1)
    assert board.shown == [(request, 1)], "it was shown with the deadline, and once"
    assert board.call(request) == stored
    assert await kinds(broker, request=request) == ["asked", "dated"]
    entries = await broker.store.read(lambda tx: tx.record.entries(request=request))
    assert json.loads(entries[-1].body) == {"deadline": deadline.isoformat(), "channel": "board"}
    clock.advance(5 * MINUTE)
    await post.round()
    assert board.call(request).state is State.EXPIRED


async def test_a_rule_that_says_how_long_is_not_overruled(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    post = post_for(broker, Route(board, timeout=5 * MINUTE))
    [request] = await ask_all(broker, "c1", need=Requirement(timeout=60 * MINUTE))
    [parks] = await ask_all(broker, "c2", run="r2", need=Requirement(timeout=MINUTE, on_timeout=OnTimeout.PARK))
    clock.advance(MINUTE)
    await post.round()
    assert board.call(request).deadline == clock.now() + 59 * MINUTE
    assert board.call(parks).deadline is None, "parked for good"
    assert "dated" not in await kinds(broker)


async def test_time_begins_when_it_is_shown_not_while_nobody_could_see_it(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    board.fails = lambda notice: ChannelFailed("away")
    post = post_for(broker, Route(board, timeout=5 * MINUTE))
    [request] = await ask_all(broker, "c1")
    await post.round()
    clock.advance(60 * MINUTE)
    await post.round()
    assert (await broker.get(request)).deadline is None
    board.fails = lambda notice: None
    clock.advance(60 * MINUTE)
    await post.round()
    assert (await broker.get(request)).deadline == clock.now() + 5 * MINUTE


async def test_the_first_channel_that_shows_it_dates_it_for_all(broker: Broker, clock: FakeClock) -> None:
    slow, quick = Board("slow"), Board("quick")
    slow.fails = lambda notice: ChannelFailed("away")
    post = post_for(broker, Route(slow, timeout=MINUTE), Route(quick, timeout=5 * MINUTE))
    [request] = await ask_all(broker, "c1")
    await post.round()
    deadline = clock.now() + 5 * MINUTE
    slow.fails = lambda notice: None
    clock.advance(MINUTE)
    await post.round()
    assert (await broker.get(request)).deadline == deadline == slow.call(request).deadline
    assert (await kinds(broker)).count("dated") == 1
    assert quick.shown == [(request, 1)]


async def test_two_that_show_it_at_once_date_it_once_and_agree(broker: Broker) -> None:
    one, two = Board("one"), Board("two")
    post = post_for(broker, Route(one, timeout=MINUTE), Route(two, timeout=5 * MINUTE))
    [request] = await ask_all(broker, "c1")
    await post.round()
    stored = await broker.get(request)
    assert one.call(request).deadline == two.call(request).deadline == stored.deadline is not None
    assert (await kinds(broker)).count("dated") == 1


async def test_what_changes_while_it_is_being_shown_is_shown_again(broker: Broker, clock: FakeClock) -> None:
    class Quick(Board):
        """Somebody answers before the channel has even said where it stands."""

        async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
            assert isinstance(notice, Asked)
            place = await super().show(notice, at, beside)
            if notice.request.state is State.PENDING:
                await broker.answer(notice.request.id, NO, by=ANA)
            return place

    board = Quick()
    [request] = await ask_all(broker, "c1")
    await post_for(broker, Route(board, timeout=MINUTE)).round()
    assert board.call(request).state is State.DENIED
    assert "dated" not in await kinds(broker)
    assert len(board.messages) == 1


async def test_a_vote_while_it_is_being_shown_and_dated_is_shown_too(broker: Broker) -> None:
    class Quick(Board):
        async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
            if not at:
                await broker.answer(notice.subject, YES, by=ANA)
            return await super().show(notice, at, beside)

    board = Quick()
    [request] = await ask_all(broker, "c1", need=Requirement(quorum=2))
    await post_for(broker, Route(board, timeout=MINUTE)).round()
    stored = await broker.get(request)
    assert stored.state is State.PENDING and stored.deadline is not None
    assert board.call(request) == stored and len(stored.votes) == 1


async def test_what_is_taken_away_while_it_is_brought_up_to_date_is_shown_anew(broker: Broker) -> None:
    class Taken(Board):
        async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
            place = await super().show(notice, at, beside)
            if at == "board/1":
                await show_again(broker.ledger, "board", Subject.parse(notice.subject))
                del self.messages[self.places.pop(notice.subject)]
            return place

    board = Taken()
    post = post_for(broker, board)
    [request] = await ask_all(broker, "c1", need=Requirement(quorum=2))
    await post.round()
    await broker.answer(request, YES, by=ANA)
    board.tries.clear()
    await post.round()
    assert len(board.tries) > 1, "it was not taken for shown"


# --- death, and what stands there all the same ---


async def test_what_was_shown_and_not_written_down_is_shown_again_where_it_stands(
    another: Opens, clock: FakeClock
) -> None:
    one, two, board = another(), another(), Board()
    [request] = await ask_all(one, "c1")
    await _dies_while_showing(one, board)
    await post_for(two, board).round()
    assert len(board.messages) == 1
    assert [at for _, at, _ in board.tries] == ["", ""], "nobody knew where it stood but the channel"
    assert (await row(two, "board", request)).place == "board/1"


async def test_what_was_shown_and_not_written_down_is_closed_though_it_waits_no_longer(another: Opens) -> None:
    one, two, board = another(), another(), Board()
    [request] = await ask_all(one, "c1")
    await _dies_while_showing(one, board)
    await two.answer(request, NO, by=ANA)
    await post_for(two, board).round()
    assert board.call(request).state is State.DENIED
    assert len(board.messages) == 1


async def _dies_while_showing(broker: Broker, board: Board) -> None:
    board.answers = False
    dying = asyncio.ensure_future(post_for(broker, board).run())
    await board.hung.wait()
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)
    assert dying.cancelled()
    board.answers = True


async def test_what_changed_while_nobody_ran_the_channel_is_shown_by_the_next(another: Opens) -> None:
    one, two, board = another(), another(), Board()
    ids = await ask_all(one, "a", "b", "c")
    await post_for(one, board).round()
    await kill(one)
    await two.answer(ids[1], NO, by=ANA)
    await two.cancel(ids[2], "moot")
    await post_for(two, board).round()
    assert [board.call(each).state for each in ids] == [State.PENDING, State.DENIED, State.CANCELLED]
    assert len(board.messages) == 4
    assert board.first.total() == 4


async def test_gone_is_shown_anew_while_it_waits_and_not_after(broker: Broker) -> None:
    board = Board()
    post = post_for(broker, board)
    waits, over = await ask_all(broker, "a", "b")
    await post.round()
    await broker.answer(over, NO, by=ANA)
    for each in (waits, over):
        await show_again(broker.ledger, "board", Subject.parse(each))
        del board.messages[board.places.pop(each)]
    assert (await row(broker, "board", waits)).place == "board/1", "the channel may need part of it"
    assert await place_of(broker.ledger, "board", Subject.parse(waits)) == ""
    await post.round()
    assert waits in board.places and over not in board.places
    assert await place_of(broker.ledger, "board", Subject.parse(waits)) == board.places[waits]
    assert (await row(broker, "board", over)).shown == NEVER
    await show_again(broker.ledger, "board", Subject.parse("nothing of the kind"))
    await show_again(broker.ledger, "elsewhere", Subject.parse(waits))
    await post.round()
    assert len(await rows(broker)) == 3


# --- wrong use ---


@pytest.mark.parametrize(
    ("routes", "why"),
    [
        ([], "no channel"),
        ([Route(Board("one")), Route(Board("one"))], "two channels are called 'one'"),
    ],
)
async def test_routes_that_do_not_fit_together_are_refused(broker: Broker, routes: list[Route], why: str) -> None:
    with pytest.raises(WrongUse, match=why):
        Reconciler(broker, routes, inbox=lambda name: None)  # type: ignore[arg-type, return-value]


async def test_what_is_said_about_a_request_is_shown_wherever_it_stands(broker: Broker) -> None:
    boards = [Board("one"), Board("two")]
    post = post_for(broker, *boards)
    [request] = await ask_all(broker, "c1")
    await post.round()
    asked = await broker.comments.add(request, "Which invoice?", by=ANA, kind=CommentKind.QUESTION)
    await post.round()
    await post.round()
    for board in boards:
        assert board.shown == [(request, 0), (request, 1)], "once, and not again without need"
        assert board.call(request).comments == (asked,)
    answer = await broker.comments.add(request, "4711", by=ANA, kind=CommentKind.ANSWER, answers=asked.id)
    await post.round()
    assert boards[0].call(request).comments == (asked, answer)
