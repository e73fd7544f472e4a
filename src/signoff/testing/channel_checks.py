"""The checks of the channel contract."""

from __future__ import annotations

import asyncio
import threading

from signoff.core.notice import RunResult, Together
from signoff.core.request import State
from signoff.core.run import RunState
from signoff.core.verdict import Requirement
from signoff.errors import ChannelFailed, EditRefused
from signoff.testing.case import Skill
from signoff.testing.channel_bench import Bench, Check, hold
from signoff.testing.office import ARGS, CHAIN, RULE, TOOL, WHY, soon

LONG = "\n".join(f"row {number:03} of the letter." for number in range(300)) + "\nand the very last word"
HOSTILE = {
    "reversed": "safe\u202etxt.exe",
    "unseen": "a\u200bb\u2060c\ufeffd",
    "screen": "one\x1b[2J\x1b]0;title\x07two\x9b31m",
    "mention": "@everyone @here <@1> <@&2> <#3> [here](https://example.com)",
    "fence": "```\n# heading\n**bold** ~~gone~~ ||hidden|| `code` ``two``\n```",
    "markup": "<script>alert(1)</script><b>&amp;</b> [red]rich[/red]",
    "\u202ename": "last",
}


async def a_call_is_shown_whole(bench: Bench) -> None:
    notice = await bench.ask()
    request = notice.request
    named = [part for name, value in ARGS.items() for part in (name, str(value))]
    await bench.sees(notice, TOOL, *CHAIN, WHY, RULE, *named, [request.id, request.args_digest[:12]])


async def secrets_stay_masked(bench: Bench) -> None:
    notice = await bench.ask(args={"api_key": "k-5ecret-99", **ARGS}, schema={"type": "object"})
    await bench.sees(notice, *(("api_key", "bo@example.com") if Skill.WHOLE not in bench.case.lacks else (TOOL,)))
    hold("5ecret" not in await bench.case.seen(notice), "a secret was shown")


async def what_anybody_reads_has_no_arguments(bench: Bench) -> None:
    notice = await bench.ask(args={"api_key": "k-5ecret-99", **ARGS}, schema={"type": "object"})
    await bench.sees(notice, TOOL)
    seen = await bench.case.seen(notice)
    shown = [part for part in ("5ecret", "api_key", *map(str, ARGS.values())) if len(part) > 1 and part in seen]
    hold(not shown, f"anybody can read arguments of the call there: {shown}")


async def what_only_links_leads_to_the_request(bench: Bench) -> None:
    first, second = await bench.office.ask(count=2)
    for notice in (first, second):
        await bench.show(notice)
    for notice in (first, second):
        links = list(await bench.case.links(notice))
        hold(
            bool(links) and set(links) == {bench.office.link(notice.request.id)},
            f"request {notice.request.id} stands there with the links {links}",
        )


async def hostile_text_is_inert(bench: Bench) -> None:
    notice = await bench.ask(args=HOSTILE, why="so @everyone\u202e knows **this**", schema={"type": "object"})
    if Skill.WHOLE not in bench.case.lacks:
        await bench.sees(notice, "U+202E", "U+200B", "ESC", "alert(1)", "everyone", "heading")
    hold(not (found := await bench.case.dangers(notice)), f"not inert: {found}")
    for raw in "\u202e\u200b\u2060\ufeff\x07\x9b":
        hold(raw not in await bench.case.seen(notice), f"U+{ord(raw):04X} was shown raw, not spelled out")


async def an_approval_reaches_the_inbox_once(bench: Bench) -> None:
    notice = await bench.ask()
    await bench.stands(notice)
    await bench.case.approve(notice)
    [request] = await bench.is_answered(notice)
    hold(request.state is State.APPROVED and request.effective_args == ARGS, f"the request is {request.state}")
    await bench.up_to_date(notice)
    await bench.stands(notice, 0)
    hold(len(bench.inbox.taken) == 1 and not bench.inbox.refused, "the request was answered more than once")


async def a_denial_reaches_the_inbox(bench: Bench) -> None:
    notice = await bench.ask()
    await bench.case.deny(notice)
    [request] = await bench.is_answered(notice)
    hold(request.state is State.DENIED, f"the request is {request.state}")


async def a_denial_has_its_reason(bench: Bench) -> None:
    notice = await bench.ask()
    await bench.case.deny(notice, "not before noon, please")
    [request] = await bench.is_answered(notice)
    decision = request.decision
    hold(decision is not None and decision.note == "not before noon, please", f"the reason is missing: {decision}")
    hold(request.state is State.DENIED, f"the request is {request.state}")


async def edited_arguments_are_what_counts(bench: Bench) -> None:
    notice = await bench.ask()
    await bench.case.edit(notice, {**ARGS, "copies": 5})
    [request] = await bench.is_answered(notice)
    hold(request.effective_args == {**ARGS, "copies": 5}, f"the call would run with {request.effective_args}")


async def a_refused_edit_can_be_repeated(bench: Bench) -> None:
    notice = await bench.ask()
    await bench.case.edit(notice, {**ARGS, "copies": "many"})
    await bench.is_refused(notice, EditRefused)
    await bench.sees(notice, "copies: should be of type integer")
    hold(await bench.state(notice) is State.PENDING, "a refused edit settled the request")
    await bench.case.edit(notice, {**ARGS, "copies": 7})
    [request] = await bench.is_answered(notice)
    hold(request.effective_args["copies"] == 7, f"the call would run with {request.effective_args}")


async def what_was_settled_elsewhere_is_shown(bench: Bench) -> None:
    notice = await bench.ask()
    can_stand = Skill.ANSWER not in bench.case.lacks
    if can_stand:
        await bench.stands(notice)
    settled = await bench.office.settle_elsewhere(notice, approved=False, note="ask me tomorrow")
    await bench.show(settled)
    if can_stand:
        await bench.stands(notice, 0)
    when = bench.case.moments(bench.office.clock.now())
    await bench.sees(settled, "ben", "denied", "ask me tomorrow", when)


async def an_approval_that_is_used_at_once_closes_the_question(bench: Bench) -> None:
    """A call may start between two looks at the store. Nobody then sees it approved and not run yet."""
    notice = await bench.ask()
    can_stand = Skill.ANSWER not in bench.case.lacks
    if can_stand:
        await bench.stands(notice)
    await bench.office.settle_elsewhere(notice, approved=True)
    running = await bench.office.claim(notice)
    await bench.show(running)
    if can_stand:
        await bench.stands(notice, 0)
    await bench.sees(running, "ben", "approved")


async def a_late_answer_is_told_and_does_nothing(bench: Bench) -> None:
    notice = await bench.ask()
    await bench.stands(notice)
    await bench.office.settle_elsewhere(notice, approved=False)
    before = len(await bench.case.told())
    await bench.case.approve(notice)
    await bench.is_told("ben", before=before)
    hold(not bench.inbox.taken and await bench.state(notice) is State.DENIED, "the late answer counted")


async def an_answer_of_the_wrong_person_is_told(bench: Bench) -> None:
    notice = await bench.ask(need=Requirement(role="boss"))
    await bench.case.approve(notice)
    # Either after the answer or before: a channel need not offer an answer that cannot count.
    await bench.sees(notice, "does not have the role boss")
    hold(await bench.state(notice) is State.PENDING, "somebody who may not answer settled the request")
    settled = await bench.office.settle_elsewhere(notice, approved=True)
    await bench.show(settled)
    await bench.stands(notice, 0)


async def showing_it_again_changes_nothing(bench: Bench) -> None:
    notice = await bench.ask()
    await bench.sees(notice, TOOL)
    if Skill.ANSWER not in bench.case.lacks:
        await bench.stands(notice)
    before = await bench.case.seen(notice)
    for _ in range(2):
        await bench.show(notice)
    hold(await bench.case.seen(notice) == before, "showing it again changed what is shown")
    if Skill.ANSWER in bench.case.lacks:
        return
    await bench.stands(notice)
    await bench.case.approve(notice)
    await bench.is_answered(notice)


async def what_was_shown_though_nobody_heard_is_found_again(bench: Bench) -> None:
    """A notice that was shown before the process was killed, so that this was not recorded, is found again."""
    [notice] = await bench.office.ask()
    await bench.channel.show(notice)
    await bench.stands(notice)
    await bench.channel.stop()
    await bench.start()
    await bench.show(notice)
    await bench.stands(notice)
    await bench.case.approve(notice)
    await bench.is_answered(notice)
    await bench.up_to_date(notice)
    await bench.stands(notice, 0)


async def the_outcome_is_shown(bench: Bench) -> None:
    good, bad = await bench.office.ask(count=2)
    for notice in (good, bad):
        await bench.show(notice)
        settled = await bench.office.settle_elsewhere(notice, approved=True)
        await bench.show(settled)
    await bench.show(await bench.office.run(good, preview="sent to one person"))
    await bench.show(await bench.office.run(bad, error="MailError: no such street"))
    await bench.sees(await bench.office.now(good), "sent to one person")
    await bench.sees(await bench.office.now(bad), "no such street")


async def several_are_decided_differently(bench: Bench) -> None:
    notices = await bench.office.ask(count=3)
    for notice in notices:
        await bench.show(notice)
    await bench.show(Together(requests=tuple(notice.request for notice in notices)))
    first, second, third = notices
    await bench.case.approve(first)
    await bench.is_answered(first)
    await bench.case.deny(second)
    await bench.is_answered(first, second)
    await bench.case.approve(third)
    answered = await bench.is_answered(first, second, third)
    states = [request.state for request in answered]
    hold(states == [State.APPROVED, State.DENIED, State.APPROVED], f"the requests are {states}")


async def what_is_not_seen_whole_cannot_be_approved(bench: Bench) -> None:
    notice = await bench.ask(args={**ARGS, "subject": LONG})
    await bench.stands(notice)
    await bench.case.approve(notice)
    shown = await bench.case.open_whole(notice)
    hold(
        not bench.inbox.taken and await bench.state(notice) is State.PENDING,
        "the call was approved before all of it was shown",
    )
    for line in LONG.split("\n"):
        hold(line in shown, f"the full text lacks {line!r}")
    await bench.case.approve(notice)
    await bench.is_answered(notice)


async def an_outage_is_told_and_leaves_nothing_double(bench: Bench) -> None:
    [notice] = await bench.office.ask()
    await bench.case.break_connection()
    try:
        await bench.show(notice)
    except ChannelFailed as failed:
        hold(bool(str(failed)), "ChannelFailed has no message")
    else:
        raise AssertionError("the connection was down, but show() did not raise ChannelFailed")
    await bench.case.mend_connection()
    await bench.show(notice)
    await bench.sees(notice, TOOL)
    if Skill.ANSWER not in bench.case.lacks:
        await bench.stands(notice)
        await bench.case.approve(notice)
        await bench.is_answered(notice)


async def what_a_run_came_to_is_said(bench: Bench) -> None:
    notice = await bench.ask()
    await bench.show(await bench.office.settle_elsewhere(notice, approved=False))
    said = RunResult(
        run=notice.trail, state=RunState.DONE, worker="triage", text="All is \u202esorted.\nNothing is left."
    )
    await bench.show(said)
    await bench.sees(said, "triage", "sorted.", "Nothing is left.")
    hold("\u202e" not in await bench.case.seen(said), "U+202E in the text of a run was shown raw, not spelled out")


async def stopping_leaves_nothing_running(bench: Bench) -> None:
    """After `stop` no task or thread is left, and a new channel continues: what waits can be answered, once."""
    notices = [await bench.ask()]
    await bench.channel.stop()
    tasks, threads = asyncio.all_tasks(), set(threading.enumerate())  # including those of the store
    await bench.start()
    notices.append(await bench.ask())
    await bench.channel.stop()
    await soon(lambda: asyncio.all_tasks() <= tasks, lambda: f"still running: {asyncio.all_tasks() - tasks}")
    await soon(lambda: not _ours(threads), lambda: f"threads still running: {_ours(threads)}")
    await bench.start()
    if Skill.ANSWER in bench.case.lacks:
        return
    for notice in notices:
        if await bench.office.is_due(bench.channel.name, notice):
            await bench.show(notice)
    for number, notice in enumerate(notices, 1):
        await bench.stands(notice)
        await bench.case.approve(notice)
        await bench.is_answered(*notices[:number])
        await bench.up_to_date(notice)


def _ours(before: set[threading.Thread]) -> list[threading.Thread]:
    """Threads started since then, except the event loop's own pool, which it keeps."""
    return [one for one in threading.enumerate() if one not in before and not one.name.startswith("asyncio_")]


_ANSWER, _UPDATE = Skill.ANSWER, Skill.UPDATE

CHECKS = (
    Check(a_call_is_shown_whole, (Skill.WHOLE,)),
    Check(secrets_stay_masked),
    Check(what_anybody_reads_has_no_arguments, unless=lambda case: "" if case.public else "not everybody can read it"),
    Check(
        what_only_links_leads_to_the_request,
        unless=lambda case: "" if Skill.ANSWER in case.lacks else "people answer there",
    ),
    Check(hostile_text_is_inert),
    Check(an_approval_reaches_the_inbox_once, (_ANSWER,)),
    Check(a_denial_reaches_the_inbox, (_ANSWER,)),
    Check(a_denial_has_its_reason, (_ANSWER, Skill.NOTE)),
    Check(edited_arguments_are_what_counts, (_ANSWER, Skill.EDIT)),
    Check(a_refused_edit_can_be_repeated, (_ANSWER, Skill.EDIT, Skill.TELL)),
    Check(what_was_settled_elsewhere_is_shown, (_UPDATE,)),
    Check(an_approval_that_is_used_at_once_closes_the_question, (_UPDATE,)),
    Check(a_late_answer_is_told_and_does_nothing, (_ANSWER, Skill.TELL)),
    Check(an_answer_of_the_wrong_person_is_told, (_ANSWER, Skill.TELL)),
    Check(showing_it_again_changes_nothing),
    Check(what_was_shown_though_nobody_heard_is_found_again, (_ANSWER,)),
    Check(the_outcome_is_shown, (_UPDATE, Skill.OUTCOME)),
    Check(several_are_decided_differently, (_ANSWER,)),
    Check(what_is_not_seen_whole_cannot_be_approved, (_ANSWER, Skill.LONG)),
    Check(an_outage_is_told_and_leaves_nothing_double, (Skill.OUTAGE,)),
    Check(what_a_run_came_to_is_said, (Skill.SAID,)),
    Check(stopping_leaves_nothing_running),
)
