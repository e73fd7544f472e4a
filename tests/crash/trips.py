"""The trips that processes are killed on: what an agent does, who answers what, and in which process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.crash.faults import Log

from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Scope, Terms

WRITES_AND_TOOLS = r": (in the transaction|committed)$| (started|done)\b"
COMMITS_AND_TOOLS = r": committed$| (started|done)\b"
DECISIVE = r"^(ask|vote|claim|outcome)\b.*: committed$| done\b"
"""Where something is decided or done: all that is played every day of trips that only vary another one."""
USES = 1
"""How often the grant of a trip may be used."""


@dataclass(frozen=True, slots=True)
class Act:
    """What one process does of a trip."""

    name: str
    does: str
    """`run`, `answer` or `resume`."""
    person: str = "ana"
    tools: tuple[str, ...] = ()
    """What an answer is about."""


def calls(*made: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": args} for tool, args in made]}


SAYS: dict[str, Any] = {"say": "{{last}}"}
PAY = ("pay", {"amount": 5, "to": "shop"})
LOOK: tuple[str, dict[str, Any]] = ("look", {})
RULES: list[dict[str, Any]] = [{"allow": {"tool": "look"}}, {"deny": {"tool": "wipe"}, "reason": "never"}]
RUN, ANSWER, RESUME = Act("run", "run"), Act("answer", "answer", tools=("pay",)), Act("resume", "resume")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """Agents inside calls of other agents: what the innermost of them does is asked about."""

    levels: int = 2
    approved: bool = False
    """Whether people are asked about the calls around as well; otherwise the rules allow them."""
    goes_on: bool = False
    """Whether the tools do something after the run inside them; otherwise they say that they do not."""
    plain: bool = False
    """Whether the tools run agents as PydanticAI does it, and the gate is told that they do."""
    job: str = "pay the shop"
    """What the innermost is to do; where there are two jobs, it is run twice."""
    at_once: bool = False
    """Whether two jobs are done at the same time."""

    @property
    def jobs(self) -> list[str]:
        return self.job.split(" and ")

    @property
    def agents(self) -> tuple[str, ...]:
        """The names of the agents, the outermost first."""
        return ("lead", "clerk", "cashier") if self.levels == 3 else ("lead", "cashier")

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that run another agent, the outermost first."""
        return ("hand", "pass_on")[: self.levels - 1]

    def turns_of(self, agent: str) -> tuple[dict[str, Any], ...]:
        """What an agent does."""
        if agent != self.agents[-1]:
            return (calls((self.tools[self.agents.index(agent)], {"job": self.job})), SAYS)
        return (calls(LOOK), calls(PAY), SAYS) if self.levels == 2 else (calls(LOOK, PAY), SAYS)

    @property
    def rules(self) -> tuple[dict[str, Any], ...]:
        allowed = [{"allow": {"tool": tool}} for tool in self.tools if not self.approved]
        return (*RULES, *allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """One way from a call to its outcome, over the processes that take part."""

    name: str
    title: str
    acts: tuple[Act, ...]
    turns: tuple[dict[str, Any], ...] = (calls(LOOK), calls(PAY), SAYS)
    rules: tuple[dict[str, Any], ...] = tuple(RULES)
    waits: bool = False
    """Whether the run waits in place; otherwise it ends and is resumed."""
    at_terminal: bool = False
    """Whether it is answered in the process that asks."""
    begun: bool = False
    """Whether the run is kept from its beginning, as `signoff run` does it, or from its first question on."""
    at_most: float | None = None
    """How many seconds it waits in place before it suspends."""
    edited: dict[str, Any] | None = None
    grants: bool = False
    quorum: int = 1
    inside: Inside | None = None
    shown: str = WRITES_AND_TOOLS
    """Which of its points are in the table of docs/internals/fault-points.md; at night, every point is played."""
    every_day: str = COMMITS_AND_TOOLS
    """Which of those are played every day: between two writes a process leaves the same behind wherever it dies."""

    @property
    def paid(self) -> list[dict[str, Any]]:
        """The arguments of every `pay` that people agree to, as it runs."""
        if self.inside is not None:
            return [PAY[1] for _ in self.inside.jobs]
        calls = [call for turn in self.turns for call in turn.get("calls", ()) if call["tool"] == "pay"]
        return [self.edited or call["args"] for call in calls]

    @property
    def resumes_in_place(self) -> bool:
        """Whether a restart waits in place, and is answered where it asks."""
        return self.at_terminal or (self.inside is not None and self.waits)

    def answers_at_once(self, request: ApprovalRequest) -> bool:
        """Whether a question is answered where it is asked, although others are answered by another process."""
        return self.inside is not None and request.tool_name in self.inside.tools


TRIPS = {
    trip.name: trip
    for trip in (
        Trip(
            name="in place",
            title="the run waits where it is, and is answered by another process",
            acts=(RUN, ANSWER),
            waits=True,
            begun=True,
            shown="",
            every_day=DECISIVE,
        ),
        Trip(
            name="at the terminal",
            title="the run waits where it is, and is answered there, with changed arguments",
            acts=(RUN,),
            turns=(calls(PAY), SAYS),
            waits=True,
            at_terminal=True,
            edited={"amount": 3, "to": "shop"},
            every_day=r"^(vote|claim|outcome)\b.*: committed$",
        ),
        Trip(
            name="suspended",
            title="the run ends, is answered, and is resumed: three processes",
            acts=(RUN, ANSWER, RESUME),
            turns=(calls(PAY), SAYS),
            shown="",
            every_day=rf"^(take|claim|outcome): in the transaction$|{COMMITS_AND_TOOLS}",
        ),
        Trip(
            name="hybrid",
            title="the run waits for a moment, then it ends and is resumed",
            acts=(RUN, ANSWER, RESUME),
            turns=(calls(PAY), SAYS),
            waits=True,
            at_most=0.05,
            shown="^put down",
            every_day="^put down: committed",
        ),
        Trip(
            name="batch",
            title="five calls at once: two approved, others allowed, or denied by a person or by policy; resumed twice",
            acts=(
                RUN,
                ANSWER,
                RESUME,
                Act("second answer", "answer", tools=("drop",)),
                Act("second resume", "resume"),
            ),
            turns=(
                calls(LOOK, PAY, ("drop", {"what": "orders"}), ("wipe", {}), ("pay", {"amount": 7, "to": "bank"})),
                SAYS,
            ),
            every_day=r"^(vote|claim|outcome)\b.*: committed$",
        ),
        Trip(
            name="grant",
            title="an approval that also holds for the next call like it, once; the third is asked about again",
            acts=(RUN,),
            turns=(calls(PAY), calls(PAY), calls(PAY), SAYS),
            waits=True,
            at_terminal=True,
            begun=True,
            grants=True,
            shown=r"^(vote|use grant|record|ask \(2\)|save \(3\)): |^pay (started|done) \(2\)",
            every_day=r"^(vote|use grant|ask \(2\)): committed|^pay done \(2\)",
        ),
        Trip(
            name="quorum",
            title="two people have to agree",
            acts=(RUN, ANSWER, Act("second answer", "answer", person="ben", tools=("pay",)), RESUME),
            turns=(calls(PAY), SAYS),
            rules=(*RULES, {"ask": {"tool": "pay"}, "quorum": 2}),
            quorum=2,
            every_day=r"^(vote|claim)\b.*: committed$",
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A trip on which one process dies at one point, or none."""

    id: str
    trip: str
    url: str
    directory: str
    act: str = ""
    """Which process dies; empty: none does, and every point is noted."""
    point: str = ""
    again: str = ""
    """Where the restart dies as well; then there is another."""
    statement: int = 0
    """Die before this SQL statement instead."""
    sent: bool = False
    """Die when the commit of that number has reached the server instead, and nobody has heard of it."""
    reads: bool = False
    """Whether statements that change nothing count, too."""
    timing: bool = False
    """Whether what nobody waits for is written when it always is, and not as late as may be."""

    @property
    def does(self) -> Trip:
        from tests.crash.nested_trips import NESTED  # which are trips

        return TRIPS.get(self.trip) or NESTED[self.trip]

    @property
    def log(self) -> Log:
        return Log(Path(self.directory) / "log")

    @property
    def effects(self) -> Path:
        return Path(self.directory) / "effects"

    def decide(self, request: ApprovalRequest) -> ApprovalDecision:
        """What people say about a request, whoever asks and however often."""
        if request.tool_name == "drop":
            return ApprovalDecision(approved=False, note="not this one")
        first = request.call is not None and request.call.call_id == "call-1-1"
        if self.does.grants and first:
            terms = Terms(scope=Scope.RUN, max_uses=USES)
            return ApprovalDecision(approved=True, remember=Remember.ALWAYS, terms=terms)
        return ApprovalDecision(approved=True, edited_args=self.does.edited)


def effects_of(case: Case) -> list[dict[str, Any]]:
    """What the tools really did."""
    return [json.loads(line) for line in case.effects.read_text("utf-8").splitlines()] if case.effects.exists() else []


def key_of(request: ApprovalRequest) -> str:
    """The idempotency key of the call that a request is about."""
    assert request.call is not None
    return sha256(request.call.key.encode()).hexdigest()[:32]
