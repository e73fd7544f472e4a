"""What has to hold after every crash, once everything was driven to its end."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from tests.crash.stage import kept_run_of
from tests.crash.trips import USES, Case, effects_of, key_of

from signoff.broker import Broker
from signoff.core.grant import Grant
from signoff.core.record import START, Entry, is_link
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import RunState, SavedRun
from signoff.ports import Transaction

ENDED = re.compile(
    r"asked (voted )*("
    r"settled |"  # denied
    r"settled (claimed returned )*claimed ran |"
    r"settled (claimed returned )*claimed unknown told )"
)
"""What the record says of a request that is over, in this order."""
AROUND = r"asked voted settled claimed "
PUT_DOWN = r"(entered paused claimed )*"
ENDED_AROUND = {
    # It promised to do nothing but wait: unknown only if it died before a run inside it was kept, or taken up again.
    "promised": re.compile(f"{AROUND}{PUT_DOWN}((entered )?ran |unknown told )"),
    # It promised nothing, and put itself down where everything was suspended: wherever it died, it is unknown.
    "suspended": re.compile(f"{AROUND}{PUT_DOWN}(ran |unknown told )"),
    # It promised nothing, and waited in place: it is never put down.
    "in place": re.compile(f"{AROUND}(ran |unknown told )"),
}
"""As `ENDED`, for a call that runs other agents, by what its tool said of itself and where it waits."""


async def problems_of(case: Case, broker: Broker, output: Any) -> list[str]:
    """Everything that is wrong; nothing, where all is well."""
    run = await kept_run_of(case, broker)
    if run is None:
        return ["the run is lost"]

    def look(tx: Transaction) -> tuple[Sequence[ApprovalRequest], Sequence[Entry], tuple[int, str], Sequence[Grant]]:
        return (
            tx.requests.of(run=run.id),
            tx.record.entries(),
            tx.record.head(),
            [one for one in tx.grants.all() if one.where == run.id],
        )

    requests, entries, head, grants = await broker.store.read(look)
    return [
        *_about_the_run(case, run, entries, output),
        *broken_promises(case, run, requests),
        *_about_requests(case, requests, entries),
        *_about_effects(case, requests, grants),
        *about_the_record(entries, head),
    ]


def _about_the_run(case: Case, run: SavedRun, entries: Sequence[Entry], output: Any) -> Iterator[str]:
    if run.state is not RunState.DONE or run.holder:
        yield f"the run is {run.state}: {run.detail}, in the hands of {run.holder!r}"
    kinds = [entry.kind for entry in entries if entry.run == run.id and entry.kind.startswith("run ")]
    if kinds.count("run started") != 1 or kinds.count("run ended") != 1 or kinds[-1] != "run ended":
        yield f"the record tells another story of the run: {kinds}"
    outputs = [fact["output"] for fact in case.log.facts() if "output" in fact and "Deferred" not in fact["output"]]
    said = str(output) if output is not None else outputs[-1] if outputs else ""
    words = ["pay done|confirmed that this call happened"] if said else []  # else it died after its end was recorded
    words += ["not this one", "never", "look done"] if said and case.trip == "batch" else []
    words += ["A person changed the arguments"] if said and case.does.edited else []
    for word in words:
        if not re.search(word, said):
            yield f"the model was not told {word!r}: {said}"


_APPROVED = (State.APPROVED, State.CLAIMED, State.UNKNOWN, State.SUCCEEDED, State.FAILED, State.CANCELLED)
_CAN_BECOME = {
    "denied": (State.DENIED,),
    "approved": _APPROVED,
    "claimed": _APPROVED[1:],
    "succeeded": (State.SUCCEEDED,),
}


def broken_promises(case: Case, run: SavedRun | None, requests: Sequence[ApprovalRequest]) -> list[str]:
    """Whatever any process was told to be done is done, whoever died after that; or what is not."""
    there = {request.id: request for request in requests}
    runs = {request.run for request in requests}
    problems: list[str] = []
    for fact in case.log.facts():
        if fact.get("promised") == "end" and (run is None or run.state is RunState.GOING):
            problems.append("the run had ended, and goes on")
        for promised in fact.get("requests", ()):
            request = there.get(promised["id"])
            if request is None:
                if fact["promised"] == "ask" or promised["run"] in runs:  # others' are swept up on the way
                    problems.append(f"request {promised['id']} is lost after {fact['promised']}")
                continue
            votes = [[vote.by.name, vote.decision.approved, vote.args_digest] for vote in request.votes]
            if any(vote not in votes for vote in promised["votes"]):
                problems.append(f"a vote on {request.tool_name} is lost: {promised['votes']}, not {votes}")
            put_down = promised["state"] == "claimed" and request.state is State.APPROVED
            if put_down and _around(case, request) and _kind_of(case) != "in place":
                continue  # it waits for a run inside it, to be claimed again with that
            if request.state not in _CAN_BECOME.get(promised["state"], (request.state,)):
                problems.append(f"{request.tool_name} was {promised['state']} and is {request.state}")
    return problems


def _around(case: Case, request: ApprovalRequest) -> bool:
    """Whether a request is about a call that runs another agent."""
    return case.does.inside is not None and request.tool_name in case.does.inside.tools


def _kind_of(case: Case) -> str:
    """Which of `ENDED_AROUND` holds for the calls around others."""
    assert case.does.inside is not None, "only on nested trips are there calls around others"
    if not case.does.inside.goes_on:
        return "promised"
    return "in place" if case.does.waits else "suspended"


def _about_a_call_around(case: Case, request: ApprovalRequest, entries: Sequence[Entry], story: str) -> Iterator[str]:
    """Where its process died it is unknown, unless its tool had promised to do nothing but wait."""
    kind = _kind_of(case)
    if not ENDED_AROUND[kind].fullmatch(story):
        yield f"the record of {request.tool_name} ({request.state}, {kind}) is: {story}"
    if kind == "promised" and story.endswith("unknown told ") and _was_inside(case, request):
        yield f"{request.tool_name} is unknown, although all it did was to wait for a run inside it"
    entered, paused = ([one.seq for one in entries if one.kind == step] for step in ("entered", "paused"))
    if kind == "suspended" and paused != [seq + 1 for seq in entered]:  # its own, in one go, or somebody's who swept
        yield f"{request.tool_name} promised nothing, and was not put down by itself: {entered}, {paused}"


def _was_inside(case: Case, request: ApprovalRequest) -> bool:
    """Whether anything was written after the call was claimed last: with that goes that it waits for what is inside."""
    writes = [fact for fact in case.log.facts() if "killed" in fact or fact.get("promised") in ("ask", "claim")]
    claims = [
        number
        for number, fact in enumerate(writes)
        if any(one["id"] == request.id and one["state"] == "claimed" for one in fact.get("requests", ()))
    ]
    return bool(claims) and "killed" not in writes[claims[-1] + 1]


def _about_requests(case: Case, requests: Sequence[ApprovalRequest], entries: Sequence[Entry]) -> Iterator[str]:
    by_call: dict[str, list[ApprovalRequest]] = defaultdict(list)
    for request in requests:
        by_call[key_of(request)].append(request)
        mine = [entry for entry in entries if entry.request == request.id]
        story = "".join(f"{entry.kind} " for entry in mine)
        if _around(case, request):
            yield from _about_a_call_around(case, request, mine, story)
        elif not ENDED.fullmatch(story):
            yield f"the record of {request.tool_name} ({request.state}) is: {story}"
        if len(request.votes) != case.does.quorum and request.state is not State.DENIED:
            yield f"{request.tool_name} went through with {len(request.votes)} votes"
        if request.tool_name == "drop" and request.state is not State.DENIED:
            yield f"drop was denied and is {request.state}"
    for same in by_call.values():
        *earlier, last = same
        if last.state not in (State.SUCCEEDED, State.DENIED):
            yield f"{last.tool_name} is still {last.state}"
        for request in earlier:
            told = request.decision.note if request.decision is not None else ""
            if request.state is not State.CANCELLED or "did not happen" not in told:
                yield f"{request.tool_name} was asked about again, although it was {request.state}: {told}"


def _about_effects(case: Case, requests: Sequence[ApprovalRequest], grants: Sequence[Grant]) -> Iterator[str]:
    lines = effects_of(case)
    for line in lines:
        if line["tool"] in ("drop", "wipe"):
            yield f"{line['tool']} ran, which nobody approved"
    paid = [line for line in lines if line["tool"] == "pay"]
    if any(line["args"] not in case.does.paid for line in paid):
        yield f"paid with other arguments than were approved: {paid}"
    on_approval = [line for line in paid if not case.timing and line["on"] == "claimed"]
    on_grant = [line for line in paid if not case.timing and line["on"] != "claimed"]
    if len({line["key"] for line in on_approval}) != len(on_approval):
        yield f"an approved call ran twice: {on_approval}"
    used = sum(grant.used for grant in grants)
    if len(on_grant) > used or used > len(grants) * USES:
        yield f"{len(on_grant)} calls ran on grants, which were used {used} times; approved before: {on_approval}"
    wanted = sorted(json.dumps(args) for args in case.does.paid)
    if not case.does.grants and sorted(json.dumps(line["args"]) for line in paid) != wanted:
        yield f"what was paid is {paid}"
    happened = {line["key"] for line in paid}
    if len(happened) < len(wanted):
        yield f"{len(wanted)} calls of pay were made, and {len(happened)} of them ran"
    yield from _about_calls_around(case, requests, lines)
    for request in requests:
        if request.state is State.SUCCEEDED and not _around(case, request) and key_of(request) not in happened:
            yield f"{request.tool_name} is said to have run, and did not"


def _about_calls_around(
    case: Case, requests: Sequence[ApprovalRequest], lines: Sequence[dict[str, Any]]
) -> Iterator[str]:
    """What the tools did after the runs inside them: once on an approval, and never before those were over."""
    inside = case.does.inside
    if inside is None:
        return
    asked = {request.tool_name for request in requests}
    for tool in inside.tools:
        mine = [line for line in lines if line["tool"] == tool]
        if inside.approved != (tool in asked):
            yield f"{tool} was {'not ' if inside.approved else ''}asked about"
        if inside.approved and len(mine) != inside.goes_on:
            yield f"{tool} did what it does after the run inside it {len(mine)} times"
        if inside.goes_on and not mine:
            yield f"{tool} did not do what it does after the run inside it"
        if inside.approved and not case.timing and any(line["on"] != "claimed" for line in mine):
            yield f"{tool} ran on {mine}"
        if mine and sum(line["tool"] == "pay" for line in lines[: lines.index(mine[0])]) < len(inside.jobs):
            yield f"{tool} went on before the run inside it was over"


def about_the_record(entries: Sequence[Entry], head: tuple[int, str]) -> Iterator[str]:
    """The chain, link by link, from the first event to the last."""
    last = (0, START)
    for entry in entries:
        if (entry.seq, entry.prev) != (last[0] + 1, last[1]) or not is_link(entry):
            yield f"the record breaks at event {entry.seq}"
        json.loads(entry.body)
        last = (entry.seq, entry.hash)
    if last != head:
        yield f"the record ends with {last}, and the store says {head}"
