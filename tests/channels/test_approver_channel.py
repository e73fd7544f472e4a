"""An approver as a channel answers for nobody: what no person said is not passed on, and stays open for others.

That it keeps the contract of all channels is in tests/contracts.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests import start
from tests.contracts.channels.ui_case import Booth, TerminalCase, terminal_case

from signoff.channels import headless_approver, scripted_approver, terminal_approver
from signoff.channels.approver import ApproverChannel
from signoff.channels.terminal import TerminalApprover
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.mode import ApprovalMode
from signoff.core.notice import Asked, RunResult, Together
from signoff.core.people import ActorKind
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import RunState
from signoff.errors import ChannelFailed, NobodyHere, WrongUse
from signoff.ports import Approver, Channel
from signoff.testing import Office
from signoff.testing.office import ANA, WatchedInbox, soon


@pytest.fixture
def office() -> Office:
    return Office()


async def started(office: Office, ui: Any, **options: Any) -> tuple[ApproverChannel, WatchedInbox]:
    channel = ApproverChannel(ui, **options)
    inbox = office.inbox(channel.name)
    await channel.start(inbox)
    return channel, inbox


async def asked(office: Office, channel: Channel, **about: Any) -> Asked:
    [notice] = await office.ask(**about)
    await office.deliver(channel, notice)
    return notice


async def open_again(office: Office, channel: Channel, notice: Asked) -> None:
    """Wait until the channel has said that the question is no longer there; nothing was decided."""

    async def due() -> bool:
        return await office.is_due(channel.name, notice)

    await soon(due, "it is never given back")
    assert (await office.now(notice)).request.state is State.PENDING


# --- answering for nobody ---


@pytest.mark.parametrize("otherwise", ["deny", "park"])
async def test_a_place_without_people_denies_nothing(office: Office, otherwise: Any) -> None:
    channel, inbox = await started(office, headless_approver(otherwise))
    [notice] = await office.ask()
    with pytest.raises(ChannelFailed, match="no terminal to ask at") as failed:
        await channel.show(notice)
    assert not failed.value.again and failed.value.whole
    assert inbox.taken == inbox.refused == []


@pytest.mark.parametrize("headless", ["deny", "park"])
async def test_without_a_terminal_nothing_is_denied(office: Office, headless: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("signoff.channels.terminal.terminal_console", lambda: None)
    channel, inbox = await started(office, terminal_approver(headless=headless, actor=ANA), by=ANA)
    [notice] = await office.ask()
    with pytest.raises(ChannelFailed, match="no terminal") as failed:
        await channel.show(notice)
    assert not failed.value.again
    assert inbox.taken == []
    await channel.stop()


@pytest.fixture
async def terminal(tmp_path: Path) -> AsyncIterator[TerminalCase]:
    async with terminal_case(tmp_path) as case:
        yield case


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "end of input"])
async def test_who_leaves_the_terminal_has_denied_nothing(office: Office, terminal: TerminalCase, key: str) -> None:
    channel = terminal.make()
    inbox = office.inbox(channel.name)
    await channel.start(inbox)
    notices = await office.ask(count=3)
    for notice in notices:
        await office.deliver(channel, notice)
    await terminal.pty.sees("your answer > ")
    terminal.pty.types(key)
    for notice in notices:
        await open_again(office, channel, notice)
    assert inbox.taken == inbox.refused == []
    await terminal.pty.sees("left undecided at the terminal")
    with pytest.raises(ChannelFailed, match="has left") as failed:
        await office.deliver(channel, notices[0])
    assert not failed.value.again and failed.value.whole
    await channel.stop()
    await channel.start(inbox)
    await office.deliver(channel, notices[0])
    await terminal.approve(notices[0])
    await soon(lambda: len(inbox.taken) == 1, "whoever comes back can answer")
    await channel.stop()


async def test_the_approver_itself_still_denies_when_it_is_left(terminal: TerminalCase) -> None:
    """Without other channels there is nobody to leave it to."""
    approver = terminal.make()._approver  # type: ignore[attr-defined]
    assert isinstance(approver, TerminalApprover)
    call = Call(tool="pay", args={})
    request = ApprovalRequest(id="r1", tool_call_id="c1", tool_name="pay", call=call)
    answered = asyncio.ensure_future(asyncio.to_thread(approver.choose, request))
    await terminal.pty.sees("your answer > ")
    terminal.pty.types("\x03")
    assert (await answered).ending is Ending.DENIED


async def test_an_answer_without_a_name_does_not_count(office: Office) -> None:
    channel, inbox = await started(office, Plain(ApprovalDecision(approved=True)))
    notice = await asked(office, channel)
    await open_again(office, channel, notice)
    assert inbox.taken == inbox.refused == []
    with pytest.raises(ChannelFailed, match="without a name"):
        await channel.show(notice)


async def test_a_script_answers_as_a_script(office: Office) -> None:
    channel, inbox = await started(office, scripted_approver(["deny"]), by=ANA)
    notice = await asked(office, channel)
    await soon(lambda: len(inbox.taken) == 1, "no answer")
    by = inbox.taken[0][1].by
    assert by is not None and by.kind is ActorKind.SCRIPT
    more = await asked(office, channel)
    await open_again(office, channel, more)
    with pytest.raises(ChannelFailed, match="the script has 1 answers"):
        await channel.show(more)
    assert (await office.now(notice)).request.state is State.DENIED


# --- approvers of all kinds ---


class Plain:
    """Somebody's own approver: a plain method that gives what it was made with, or raises it."""

    def __init__(self, *answers: ApprovalDecision | Exception) -> None:
        self.answers = list(answers)
        self.threads: list[threading.Thread] = []
        self.asked: list[ApprovalRequest] = []

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        self.threads.append(threading.current_thread())
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_a_plain_approver_is_asked_in_a_thread_in_order(office: Office) -> None:
    ui = Plain(*[ApprovalDecision(approved=approved) for approved in (True, False, True)])
    assert isinstance(ui, Approver)
    channel, inbox = await started(office, ui, by=ANA)
    notices = await office.ask(count=3)
    for notice in notices:
        await office.deliver(channel, notice)
    await office.deliver(channel, Together(requests=tuple(notice.request for notice in notices)))
    await soon(lambda: len(inbox.taken) == 3, "not all answered")
    assert [one for one, _ in inbox.taken] == [notice.request.id for notice in notices]
    assert [decision.approved for _, decision in inbox.taken] == [True, False, True]
    assert threading.main_thread() not in ui.threads
    await channel.stop()


@pytest.mark.parametrize("error", [NobodyHere("out for lunch"), ValueError("a fault \u202e in it")])
async def test_what_an_approver_raises_is_told_with_the_next_showing(office: Office, error: Exception) -> None:
    channel, inbox = await started(office, Plain(error), by=ANA)
    notice = await asked(office, channel)
    await open_again(office, channel, notice)
    with pytest.raises(ChannelFailed) as failed:
        await channel.show(notice)
    assert not failed.value.again and "\u202e" not in str(failed.value)
    assert inbox.taken == []


async def test_an_approver_that_takes_back_by_itself_is_not_asked_for_ever(office: Office) -> None:
    ui = Plain(ApprovalDecision(approved=False, ending=Ending.CANCELLED))
    channel, inbox = await started(office, ui, by=ANA)
    notice = await asked(office, channel)
    await open_again(office, channel, notice)
    with pytest.raises(ChannelFailed, match="has left"):
        await channel.show(notice)
    assert len(ui.asked) == 1 and inbox.taken == []


class Stuck:
    """A plain approver that cannot be told anything."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        self.asked.set()
        assert self.go.wait(30)
        return ApprovalDecision(approved=True)


async def test_stopping_does_not_wait_for_who_cannot_be_told(office: Office, monkeypatch: Any) -> None:
    monkeypatch.setattr("signoff.channels.approver._GRACE", 0.01)
    ui = Stuck()
    channel, inbox = await started(office, ui, by=ANA)
    notice = await asked(office, channel)
    await soon(ui.asked.is_set, "it is never asked")
    await channel.stop()
    ui.go.set()
    await soon(lambda: not _turning(), "its thread goes on for ever")
    assert inbox.taken == [] and (await office.now(notice)).request.state is State.PENDING


def _turning() -> Sequence[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "signoff-approver"]


async def test_a_late_answer_of_who_cannot_be_told_does_nothing(office: Office) -> None:
    ui = Stuck()
    channel, inbox = await started(office, ui, by=ANA)
    notice = await asked(office, channel)
    await soon(ui.asked.is_set, "it is never asked")
    settled = await office.settle_elsewhere(notice, approved=False)
    await office.deliver(channel, settled)
    ui.go.set()
    await soon(lambda: len(inbox.refused) == 1, "it never came")
    assert inbox.taken == [] and (await office.now(notice)).request.state is State.DENIED
    await channel.stop()


class Later:
    """An async approver that has no way to be told."""

    def __init__(self) -> None:
        self.waiting = 0

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            self.waiting -= 1


async def test_an_async_approver_that_cannot_be_told_is_cancelled(office: Office) -> None:
    ui = Later()
    channel, _ = await started(office, ui, by=ANA)
    first, second = await office.ask(count=2)
    for notice in (first, second):
        await office.deliver(channel, notice)
    await soon(lambda: ui.waiting == 1, "it is never asked")
    await office.deliver(channel, await office.settle_elsewhere(first, approved=True))
    await soon(lambda: ui.waiting == 1 and not channel._open.get(first.request.id), "the first is still asked")
    await channel.stop()
    await soon(lambda: ui.waiting == 0, "the second is still asked")


async def test_who_is_asked_sees_no_secret_in_the_note_of_who_answered_elsewhere(office: Office) -> None:
    class Told(Later):
        def __init__(self) -> None:
            super().__init__()
            self.told: list[str] = []

        def withdraw(self, request_id: str, why: str) -> None:
            self.told.append(why)

    ui = Told()
    channel, _ = await started(office, ui, by=ANA)
    notice = await asked(office, channel)
    note = "no, not with sk-live-1234567890abcdefghij"
    await office.deliver(channel, await office.settle_elsewhere(notice, approved=False, note=note))
    [told] = ui.told
    assert "denied by ben" in told and "masked" in told and "1234567890" not in told
    await channel.stop()


@pytest.mark.parametrize("approved", [True, False])
async def test_what_is_settled_elsewhere_takes_nothing_else_back(
    office: Office, terminal: TerminalCase, approved: bool
) -> None:
    channel = terminal.make()
    inbox = office.inbox(channel.name)
    await channel.start(inbox)
    first, second = await office.ask(count=2)
    for notice in (first, second):
        await office.deliver(channel, notice)
    await terminal.pty.sees("your answer > ")
    await office.deliver(channel, await office.settle_elsewhere(first, approved=approved))
    await terminal.approve(second)
    await soon(lambda: [one for one, _ in inbox.taken] == [second.request.id], "nobody is asked about the second")
    [third] = await office.ask()
    await office.deliver(channel, third)
    await terminal.approve(third)
    await channel.stop()


async def test_who_has_left_is_not_asked_what_waits_in_line(office: Office) -> None:
    ui = Plain(ApprovalDecision(approved=False, ending=Ending.CANCELLED))
    channel, inbox = await started(office, ui, by=ANA)
    notices = await office.ask(count=3)
    for notice in notices:
        await office.deliver(channel, notice)
    for notice in notices:
        await open_again(office, channel, notice)
    assert len(ui.asked) == 1 and inbox.taken == []
    await channel.stop()


async def test_a_coroutine_of_a_plain_approver_is_not_begun_for_what_is_settled(office: Office) -> None:
    begun: list[ApprovalRequest] = []

    class Both:
        def __init__(self) -> None:
            self.asked, self.go = threading.Event(), threading.Event()

        def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> Any:
            self.asked.set()
            assert self.go.wait(30)
            return self.decision(request)

        async def decision(self, request: ApprovalRequest) -> ApprovalDecision:
            begun.append(request)
            return ApprovalDecision(approved=True)

    ui = Both()
    channel, inbox = await started(office, ui, by=ANA)
    first, second = await office.ask(count=2)
    for notice in (first, second):
        await office.deliver(channel, notice)
    await soon(ui.asked.is_set, "it is never asked")
    await office.deliver(channel, await office.settle_elsewhere(first, approved=False))
    ui.go.set()
    await soon(lambda: len(inbox.taken) == 1, "the second is never asked")
    assert [request.id for request in begun] == [second.request.id]
    await channel.stop()


def test_a_channel_is_of_the_event_loop_that_starts_it() -> None:
    async def once() -> list[str]:
        office = Office()
        inbox = office.inbox(channel.name)
        await channel.start(inbox)
        notices = await office.ask(count=3)
        for notice in notices:
            await office.deliver(channel, notice)
        await soon(lambda: len(inbox.taken) == 3, "not all are asked")
        await channel.stop()
        return [one for one, _ in inbox.taken]

    channel = ApproverChannel(Plain(*[ApprovalDecision(approved=True)] * 6), by=ANA)
    assert len(asyncio.run(once())) == len(asyncio.run(once())) == 3


async def test_an_answer_that_is_on_its_way_is_waited_for(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signoff.channels.approver._GRACE", 0.0)
    answer, taking, goes_on = office.broker.answer, asyncio.Event(), asyncio.Event()

    async def slowly(*args: Any, **more: Any) -> ApprovalRequest:
        taking.set()
        await goes_on.wait()
        return await answer(*args, **more)

    monkeypatch.setattr(office.broker, "answer", slowly)
    channel, inbox = await started(office, Plain(ApprovalDecision(approved=True)), by=ANA)
    notice = await asked(office, channel)
    await asyncio.wait_for(taking.wait(), start.PATIENCE)
    stopping = asyncio.ensure_future(channel.stop())
    for _ in range(50):  # longer than it waits for anything else
        await asyncio.sleep(0)
    assert not stopping.done()
    goes_on.set()
    await asyncio.wait_for(stopping, start.PATIENCE)
    assert len(inbox.taken) == 1 and (await office.now(notice)).request.state is State.APPROVED


# --- what else a channel does ---


async def test_a_refused_answer_is_asked_again_with_the_problem_and_the_draft(office: Office) -> None:
    edited = {"to": "bo@example.com", "subject": "Lunch", "copies": "many"}
    ui = Plain(ApprovalDecision(approved=True, edited_args=edited), ApprovalDecision(approved=False))
    channel, inbox = await started(office, ui, by=ANA)
    await asked(office, channel)
    await soon(lambda: len(inbox.taken) == 1, "it is not asked again")
    first, second = ui.asked
    assert not first.problem and "copies" in second.problem
    assert second.metadata["draft"] == edited
    await channel.stop()


async def test_a_vote_that_needs_more_is_not_asked_about_again(office: Office) -> None:
    from signoff.core.verdict import Requirement

    ui = Plain(ApprovalDecision(approved=True))
    channel, inbox = await started(office, ui, by=ANA)
    notice = await asked(office, channel, need=Requirement(quorum=2))
    await soon(lambda: len(inbox.taken) == 1, "no vote")
    now = await office.now(notice)
    assert now.request.state is State.PENDING and now.version > notice.version
    await office.deliver(channel, now)
    assert len(ui.asked) == 1
    await office.settle_elsewhere(notice, approved=True)
    await channel.stop()


async def test_a_call_that_cannot_be_shown_is_left_to_others(office: Office) -> None:
    channel, inbox = await started(office, Plain(), by=ANA)
    [notice] = await office.ask()
    odd = notice.request.changed_to(args={"n": float("nan")})
    with pytest.raises(ChannelFailed, match="cannot be shown here") as failed:
        await channel.show(Asked(request=odd))
    assert not failed.value.again and not failed.value.whole and inbox.taken == []


async def test_what_stood_on_another_screen_is_shown_anew(office: Office) -> None:
    booth = Booth()
    channel, _ = await started(office, booth, by=ANA)
    notice = await asked(office, channel)
    del channel  # killed
    after, inbox = await started(office, Booth(), by=ANA)
    assert await office.is_due(after.name, notice)
    assert await inbox.where(notice.request.id) == ""
    await after.stop()


async def test_an_unknown_outcome_is_said_and_not_asked(office: Office) -> None:
    booth = Booth()
    channel, _ = await started(office, booth, by=ANA)
    notice = await asked(office, channel)
    settled = await office.settle_elsewhere(notice, approved=True)
    await office.deliver(channel, settled)
    await office.broker.claim(notice.request.id)
    await office.broker.lose(notice.request.id)
    await office.deliver(channel, await office.now(notice))
    assert "its outcome is unknown" in booth.said[-1]
    await soon(lambda: booth.now is None, "it is asked about")
    await channel.stop()


async def test_an_approver_that_cannot_say_anything_is_not_made_to(office: Office) -> None:
    channel, _ = await started(office, Plain(), by=ANA)
    said = RunResult(run="run", state=RunState.DONE, worker="triage", text="done")
    assert await channel.show(said) == channel.name
    await channel.stop()


async def test_it_is_started_once_and_shows_nothing_before(office: Office) -> None:
    channel = ApproverChannel(Plain(), by=ANA)
    assert isinstance(channel, Channel)
    [notice] = await office.ask()
    with pytest.raises(ChannelFailed, match="not running"):
        await channel.show(notice)
    await channel.start(office.inbox("terminal"))
    with pytest.raises(WrongUse, match="already"):
        await channel.start(office.inbox("terminal"))
    await channel.stop()
    await channel.start(office.inbox("terminal"))
    await channel.stop()


# --- an event loop that ends while somebody is about to be asked ---


class Late:
    """An approver that takes its time to say that it must be awaited."""

    def __init__(self) -> None:
        self.is_called = threading.Event()
        self.goes_on = threading.Event()
        self.thread: threading.Thread | None = None

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> Any:
        self.thread = threading.current_thread()
        self.is_called.set()
        assert self.goes_on.wait(start.PATIENCE)
        return self.decision()

    async def decision(self) -> ApprovalDecision:
        raise AssertionError("nobody is there to await it")

    def ends(self) -> None:
        """The thread that asks comes to its end, with nothing left that was never awaited."""
        assert self.thread is not None
        self.thread.join(start.PATIENCE)
        assert not self.thread.is_alive(), "it waits for a loop that has ended"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gc.collect()


async def put_to(ui: Late) -> None:
    office = Office()
    channel, _ = await started(office, ui, by=ANA)
    await asked(office, channel)
    assert await asyncio.to_thread(ui.is_called.wait, start.PATIENCE)


@pytest.mark.filterwarnings("error")
def test_a_question_for_a_loop_that_was_closed_is_taken_back() -> None:
    late = Late()
    asyncio.run(put_to(late))
    late.goes_on.set()
    late.ends()


@pytest.mark.filterwarnings("error")
def test_a_question_for_a_loop_that_stands_still_is_taken_back_when_it_is_closed() -> None:
    late, loop = Late(), asyncio.new_event_loop()
    loop.run_until_complete(put_to(late))
    late.goes_on.set()
    assert late.thread is not None
    late.thread.join(0.1)  # it has handed its question to a loop that takes no more turns, or is about to
    loop.close()
    late.ends()
