"""What a broker may do, on a few pages and without its code: from the laws, for tests to hold the broker against.

Every step either happens, and says which events the record gets for it, or is refused with `No`. A step that is refused
changes nothing. There is no database, no table of states and no hash here; only who may decide what, and what follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from signoff.core.terms import Terms
from signoff.core.verdict import OnTimeout, Requirement

FILE = {
    "ana": {"ops", "dev"},
    "ben": {"dev"},
    "cleo": {"ops"},
    "dan": set[str](),
    "eve": {"boss"},
    "otto": {"ops", "boss"},
    "rita": {"ops"},
    "sam": {"security"},
}
"""The people on file, with their roles."""
SILENT_FOR = timedelta(seconds=40)
"""After that, a process on another machine that says nothing counts as gone."""

Happened = tuple[str, str]
"""An event: its kind, and the request or run it is about."""


class No(Exception):
    """Refused. `kinds` are the errors that say so; where several reasons hold, any of them does."""

    def __init__(self, *kinds: str) -> None:
        super().__init__(*kinds)
        self.kinds = kinds


@dataclass(frozen=True)
class Ballot:
    """One person's vote: in whose place, and for which arguments."""

    voter: str
    principal: str
    args: Mapping[str, Any]


@dataclass
class Question:
    """A request, as the laws see it."""

    id: str
    key: str
    rule: Requirement
    tool: str
    args: Mapping[str, Any]
    schema: str
    opened: datetime
    requester: str = ""
    owner: str = ""
    run: str = ""
    session: str = ""
    worker: str = ""
    state: str = "pending"
    deadline: datetime | None = None
    remind: datetime | None = None
    escalated: bool = False
    assigned: str = ""
    votes: tuple[Ballot, ...] = ()
    runs_with: Mapping[str, Any] | None = None
    """The arguments that were approved."""
    holder: str = ""
    claims: int = 0
    inside: bool = False
    """Whether all its call does is to wait for a run inside it."""

    @property
    def role(self) -> str | None:
        return self.rule.escalate_to if self.escalated else self.rule.role

    @property
    def quorum(self) -> int:
        return self.rule.escalate_quorum if self.escalated else self.rule.quorum

    @property
    def wants_somebody(self) -> bool:
        """Whether particular people are asked, so that nothing but a person will do."""
        return bool(self.role or self.quorum > 1 or self.rule.not_by or self.rule.veto)

    @property
    def may_stand_in(self) -> bool:
        """Whether an earlier answer may stand in: anyone may give it, or one person with the role asked first."""
        by_role = not (self.quorum > 1 or self.rule.not_by or self.rule.veto or self.escalated)
        return not self.wants_somebody or by_role


@dataclass
class Kept:
    """A run."""

    id: str
    state: str = "going"
    epoch: int = 1
    holder: str = ""


@dataclass
class Life:
    """A process."""

    far: bool
    dead: bool = False
    seen: datetime | None = None
    """When it last said that it lives; None: it never had to."""


@dataclass
class Remembered:
    """A grant."""

    yes: bool
    tool: str
    schema: str
    args: Mapping[str, Any] | None
    """Exactly these; None where the pattern says which."""
    terms: Terms
    where: str
    agent: str = ""
    """Whose tool it was: of no toolset is any here."""
    used: int = 0
    spent: dict[str, Fraction] = field(default_factory=dict[str, Fraction])
    """By day."""
    revoked: bool = False

    @property
    def counted(self) -> bool:
        return self.yes and (self.terms.max_uses is not None or self.terms.budget is not None)


@dataclass(frozen=True)
class Made:
    """A call that somebody is about to make."""

    tool: str
    args: Mapping[str, Any]
    schema: str
    run: str = ""
    session: str = ""
    worker: str = ""
    leads: Mapping[str, str] = field(default_factory=dict[str, str])


class Model:
    """Everything there is."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.questions: dict[str, Question] = {}
        self.runs: dict[str, Kept] = {}
        self.lives: dict[str, Life] = {}
        self.away: list[tuple[str, str, datetime, datetime]] = []
        """Who is absent, who stands in, from when, until when."""
        self.grants: list[Remembered] = []
        self.halted = False
        self.busy: set[tuple[str, str]] = set()
        """Processes that are busy with a run."""

    # --- people ---

    def excluded(self, question: Question, name: str) -> bool:
        parts = {"requester": question.requester, "owner": question.owner}
        return any(not parts[one] or parts[one] == name for one in question.rule.not_by)

    def may(self, question: Question, name: str, *, yes: bool) -> bool:
        """Whether a person's own word counts."""
        roles = FILE.get(name, set())
        if question.wants_somebody and name not in FILE:
            return False
        vetoes = not yes and question.rule.veto in roles
        return (not question.role or question.role in roles or vetoes) and not self.excluded(question, name)

    def counts_as(self, question: Question, name: str, kind: str, *, yes: bool) -> str:
        """Whose word it is; empty where it is nobody's."""
        if kind != "person":
            return name if kind == "script" and not question.wants_somebody else ""
        if self.may(question, name, yes=yes):
            return name
        if not self.excluded(question, name):
            for absent, deputy, since, until in self.away:
                if deputy == name and since <= self.now < until and self.may(question, absent, yes=yes):
                    return absent
        return ""

    def agreed(self, question: Question, args: Mapping[str, Any]) -> int:
        """How many different people want it to run with these arguments."""
        return len(
            {
                one.principal
                for one in question.votes
                if same(one.args, args)
                and self.may(question, one.principal, yes=True)
                and (one.voter == one.principal or not self.excluded(question, one.voter))
            }
        )

    def delegate(self, absent: str, deputy: str, since: datetime, until: datetime) -> list[Happened]:
        if absent not in FILE or deputy not in FILE or absent == deputy or until <= since:
            raise No("WrongUse")
        self.away.append((absent, deputy, since, until))
        return [("delegated", "")]

    # --- a question ---

    def ask(self, question: Question) -> list[Happened]:
        """It is added, unless there is one about the same call that was not withdrawn."""
        if question.run and self.runs[question.run].state != "going":
            raise No("RunOver")
        known = [one for one in self.questions.values() if one.key == question.key]
        if known and known[-1].state != "cancelled":
            return []
        rule = question.rule
        question.deadline = self.now + rule.timeout if rule.timeout else None
        question.remind = question.deadline - rule.remind if question.deadline and rule.remind else None
        self.questions[question.id] = question
        return [("asked", question.id)]

    def known(self, key: str) -> str:
        return [one.id for one in self.questions.values() if one.key == key][-1]

    def vote(
        self,
        question: Question,
        name: str,
        kind: str,
        *,
        yes: bool,
        args: Mapping[str, Any] | None = None,
        terms: Terms | None = None,
        spelled: bool = False,
    ) -> list[Happened]:
        """`terms`: how far the answer is to be remembered; `spelled`: whether that was said in so many words."""
        fed, events = self.after_time(question, reminds=False)
        wanted = args if args is not None else question.args
        if question.state == "pending" and isinstance(wanted.get("amount"), str):
            raise No("EditRefused")
        reasons = ["RequestError"] if terms and spelled and not self.may_remember(fed, terms, wanted, yes=yes) else []
        stands_in = bool(fed.role) and fed.role not in FILE.get(name, set())
        if terms and fed.may_stand_in and stands_in:
            reasons.append("RequestError")
        principal = self.counts_as(fed, name, kind, yes=yes)
        if fed.state != "pending":
            raise No("AlreadySettled")
        if not principal or (yes and fed.assigned and fed.assigned not in (name, principal)):
            reasons.append("NotEntitled")
        if reasons:
            raise No(*reasons)
        vote = Ballot(name, principal, wanted)
        fed.assigned = ""
        fed.votes = (*(one for one in fed.votes if one.voter != name), vote)
        events.append(("voted", fed.id))
        if not yes:
            fed.state = "denied"
        elif kind == "script" or self.agreed(fed, wanted) >= fed.quorum:
            fed.state, fed.runs_with = "approved", wanted
        if fed.state != "pending":
            events.append(("settled", fed.id))
            if terms and fed.may_stand_in:
                self.grants.append(self.remembered(fed, terms, wanted, yes=yes))
                events.append(("granted", ""))
        self.questions[question.id] = fed
        return events

    def after_time(self, question: Question, *, reminds: bool = True) -> tuple[Question, list[Happened]]:
        """The question as it stands now that so much time has passed; and what that changed, if anything."""
        fed, rule = copy(question), question.rule
        if fed.state != "pending":
            return fed, []
        if fed.deadline is not None and self.now >= fed.deadline:
            if rule.on_timeout is OnTimeout.PARK:
                fed.deadline = fed.remind = None
                return fed, [("parked", fed.id)]
            if rule.on_timeout is OnTimeout.ESCALATE and not fed.escalated:
                assert rule.timeout is not None
                fed.escalated, fed.assigned, fed.deadline = True, "", self.now + rule.timeout
                fed.remind = fed.deadline - rule.remind if rule.remind else None
                return fed, [("escalated", fed.id)]
            fed.state = "approved" if rule.on_timeout is OnTimeout.ALLOW else "expired"
            fed.runs_with = fed.args
            return fed, [("settled", fed.id)]
        if reminds and fed.remind is not None and self.now >= fed.remind:
            fed.remind = None
            return fed, [("reminded", fed.id)]
        return fed, []

    def assign(self, question: Question, to: str, by: str) -> list[Happened]:
        if question.state != "pending":
            raise No("AlreadySettled")
        if question.assigned != by and not self.counts_as(question, by, "person", yes=True):
            raise No("NotEntitled")
        question.assigned = to
        return [("assigned", question.id)]

    def withdraw(self, question: Question) -> list[Happened]:
        if question.state not in ("pending", "approved"):
            raise No("AlreadySettled")
        question.state = "cancelled"
        return [("settled", question.id)]

    def sweep(self, process: str, questions: Sequence[Question] | None = None) -> list[Happened]:
        events: list[Happened] = []
        for question in list(self.questions.values()) if questions is None else questions:
            if question.state == "claimed" and question.holder != process and not self.alive(question.holder):
                events += self.pause(question, question.holder) if question.inside else self.lose(question)
            else:
                self.questions[question.id], changed = self.after_time(question)
                events += changed
        return events

    # --- running ---

    def claim(self, question: Question, process: str, fence: tuple[str, int] | None = None) -> list[Happened]:
        reasons: list[str] = ["Halted"] if self.halted else []
        if fence is not None:
            put_down = ["RunTaken"] if self.runs[fence[0]].holder != process else []
            reasons += self.why_lost(*fence) or put_down
        if question.state in ("claimed", "succeeded", "failed", "unknown"):
            reasons.append("AlreadySpent")
        elif question.state == "pending":
            reasons.append("RequestError")
        elif question.state != "approved":
            reasons.append("AlreadySettled")
        if reasons:
            raise No(*reasons)
        question.state, question.holder, question.inside = "claimed", process, False
        question.claims += 1
        self.lives[process].seen = self.now
        return [("claimed", question.id)]

    def finish(self, question: Question, *, well: bool) -> list[Happened]:
        if question.state not in ("claimed", "unknown"):
            return [("late outcome", question.id)]
        question.state = "succeeded" if well else "failed"
        return [("ran" if well else "failed", question.id)]

    def lose(self, question: Question) -> list[Happened]:
        if question.state != "claimed":
            raise No("RequestError" if question.state == "pending" else "AlreadySettled")
        question.state = "unknown"
        return [("unknown", question.id)]

    def enter(self, question: Question, process: str) -> list[Happened]:
        """By whoever holds the claim; others have lost it."""
        if question.state != "claimed" or question.holder != process or question.inside:
            return []
        question.inside = True
        return [("entered", question.id)]

    def pause(self, question: Question, process: str) -> list[Happened]:
        if question.state != "claimed" or question.holder != process:
            return []
        entered = self.enter(question, process)
        question.state = "approved"
        return [*entered, ("paused", question.id)]

    def ask_again(self, question: Question) -> list[Happened]:
        if question.state != "claimed":
            raise No("RequestError" if question.state == "pending" else "AlreadySettled")
        question.state = "cancelled"
        return [("settled", question.id)]

    def give_back(self, question: Question, process: str) -> list[Happened]:
        if question.state != "claimed" or question.holder != process:
            return []
        question.state = "approved"
        return [("returned", question.id)]

    def tell(self, question: Question, name: str, kind: str, *, happened: bool) -> list[Happened]:
        if question.state != "unknown":
            raise No("RequestError" if question.state == "pending" else "AlreadySettled")
        if kind != "person" or not self.counts_as(question, name, kind, yes=True):
            raise No("NotEntitled")
        question.state = "succeeded" if happened else "cancelled"
        return [("told", question.id)]

    def alive(self, process: str) -> bool:
        life = self.lives[process]
        if life.far:
            return life.seen is not None and self.now - life.seen < SILENT_FOR
        return not life.dead

    # --- runs ---

    def begin(self, run: str, process: str) -> list[Happened]:
        if self.halted:
            raise No("Halted")
        self.runs[run] = Kept(run, holder=process)
        self.lives[process].seen = self.now
        return [("run started", run)]

    def why_lost(self, run: str, epoch: int) -> list[str]:
        kept = self.runs[run]
        if kept.state != "going":
            return ["RunOver"]
        return ["RunTaken"] if kept.epoch != epoch else []

    def take(self, run: str, process: str) -> list[Happened]:
        kept = self.runs[run]
        if kept.state != "going":
            raise No("RunOver")
        if kept.holder not in ("", process) and self.alive(kept.holder):
            raise No("RunTaken")
        kept.epoch, kept.holder = kept.epoch + 1, process
        self.lives[process].seen = self.now
        return [("run resumed", run)]

    def take_up(self, run: str, process: str) -> list[Happened]:
        """As `take`, and time is fed to what the run asked. Not while halted, nor twice by the same process."""
        if self.halted:
            raise No("Halted")
        if (process, run) in self.busy and self.runs[run].state == "going":
            raise No("RunTaken")
        events = self.take(run, process)
        self.busy.add((process, run))
        return events + self.sweep(process, [one for one in self.questions.values() if one.run == run])

    def put_down(self, run: str, epoch: int) -> list[Happened]:
        if why := self.why_lost(run, epoch):
            raise No(*why)
        self.runs[run].holder = ""
        return []

    def save(self, run: str, epoch: int, process: str, *, put_down: bool) -> list[Happened]:
        if why := self.why_lost(run, epoch):
            raise No(*why)
        self.runs[run].holder = "" if put_down else process
        return []

    def end(self, run: str, epoch: int, state: str) -> list[Happened]:
        if why := self.why_lost(run, epoch):
            raise No(*why)
        return self._close(run, state)

    def cancel_run(self, run: str) -> list[Happened]:
        if self.runs[run].state != "going":
            raise No("RunOver")
        return self._close(run, "cancelled")

    def _close(self, run: str, state: str) -> list[Happened]:
        kept = self.runs[run]
        kept.state, kept.holder = state, ""
        kept.epoch += state == "cancelled"
        moot = [one for one in self.questions.values() if one.run == run and one.state in ("pending", "approved")]
        return [event for one in moot for event in self.withdraw(one)] + [("run ended", run)]

    # --- the switch ---

    def halt(self) -> list[Happened]:
        was, self.halted = self.halted, True
        return [] if was else [("halted", "")]

    def unhalt(self) -> list[Happened]:
        was, self.halted = self.halted, False
        return [("unhalted", "")] if was else []

    # --- what is remembered ---

    def may_remember(self, question: Question, terms: Terms, args: Mapping[str, Any], *, yes: bool) -> bool:
        if not question.may_stand_in:
            return False
        opened = said(terms).items() if terms.match is not None else ()
        wide = [(arg, one) for arg, one in opened if isinstance(one, Mapping)]
        if terms.match is not None and not _is_narrow(question.tool, terms, args):
            return False
        if not {"run": question.run, "session": question.session, "worker": question.worker, "project": "here"}[
            terms.scope
        ]:
            return False
        if terms.match is not None and not same(args, question.args):
            return False  # edited: nobody has looked where the paths lead
        if not yes and (terms.max_uses is not None or terms.budget is not None):
            return False
        if not yes and any("<=" in one for _, one in wide):
            return False
        if terms.max_uses is not None and terms.max_uses < 1:
            return False
        budget = terms.budget
        if budget is not None and (
            number(args.get(budget.arg)) is None or not budget.limit.is_finite() or budget.limit <= 0
        ):
            return False
        money = [arg for arg, one in wide if "<=" in one]
        ends = terms.until is not None or terms.max_uses is not None or (budget is not None and budget.arg in money)
        return ends or not money or not yes

    def remembered(self, question: Question, terms: Terms, args: Mapping[str, Any], *, yes: bool) -> Remembered:
        where = {"run": question.run, "session": question.session, "worker": question.worker, "project": ""}
        return Remembered(
            yes=yes,
            tool=question.tool,
            schema=question.schema,
            args=args if terms.match is None else None,
            terms=terms,
            where=where[terms.scope],
            agent=question.worker.rpartition(" > ")[2] if yes else "",
        )

    def speaks(self, grant: Remembered, call: Made) -> bool:
        """Whether a grant has something to say about a call, now."""
        terms = grant.terms
        if grant.revoked or (grant.tool, grant.schema) != (call.tool, call.schema):
            return False
        if grant.agent and call.worker.rpartition(" > ")[2] != grant.agent:
            return False
        if terms.until is not None and self.now >= terms.until:
            return False
        if terms.scope != "project" and getattr(call, terms.scope) != grant.where:
            return False
        if terms.max_uses is not None and grant.used >= terms.max_uses:
            return False
        if terms.budget is not None:
            amount = number(call.args.get(terms.budget.arg))
            if amount is None or self.spent(grant) + amount > Fraction(terms.budget.limit):
                return False
        if grant.args is not None:
            return same(grant.args, call.args)
        return said(terms).keys() == call.args.keys() and all(
            fits(one, call.args[arg], call.leads, yes=grant.yes) for arg, one in said(terms).items()
        )

    def spent(self, grant: Remembered) -> Fraction:
        """What is used up of the budget that holds now."""
        assert grant.terms.budget is not None
        days = [str(self.now.date())] if grant.terms.budget.daily else list(grant.spent)
        return sum((grant.spent.get(day, Fraction(0)) for day in days), Fraction(0))

    def use(self, grant: Remembered, call: Made) -> list[Happened]:
        if not grant.counted:
            return []
        grant.used += 1
        if grant.terms.budget is not None:
            amount = number(call.args.get(grant.terms.budget.arg))
            assert amount is not None
            today = str(self.now.date())
            grant.spent[today] = grant.spent.get(today, Fraction(0)) + amount
        return [("grant used", "")]

    def revoke(self, grant: Remembered) -> list[Happened]:
        was, grant.revoked = grant.revoked, True
        return [] if was else [("revoked", "")]


def same(one: object, other: object) -> bool:
    """Whether two values are the same JSON: 1 is 1.0, and neither is true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return set(one) == set(other) and all(same(one[name], other[name]) for name in one)
    return one == other


def number(value: object) -> Fraction | None:
    """What can be spent."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not isfinite(value):
        return None
    return Fraction(Decimal(str(value))) if value >= 0 else None


def said(terms: Terms) -> Mapping[str, Any]:
    """What is remembered of each argument."""
    assert terms.match is not None
    return {arg: one for arg, one in terms.match["args"].items() if arg != "*"}


def fits(condition: object, value: object, leads: Mapping[str, str], *, yes: bool = True) -> bool:
    match condition:
        case {"exists": True}:
            return True
        case {"<=": most}:
            amount, limit = number(value), number(most)
            return amount is not None and limit is not None and amount <= limit
        case {"below": str() as directory} if not yes:
            ways = (_walked(value), leads.get(value, "")) if isinstance(value, str) else ()
            return any(way == directory or way.startswith(f"{directory}/") for way in ways)
        case {"below": str() as directory}:
            return isinstance(value, str) and _stays_in(value, directory) and leads.get(value, value) == value
        case _:
            return same(condition, value)


def _walked(path: str) -> str:
    """Where a path goes, step by step, whatever it is written like."""
    way: list[str] = []
    for step in path.replace("\\", "/").split("/"):
        plain = "".join(one for one in step if one.isprintable()).strip()
        if plain == ".." and way and way[-1] != "..":
            way.pop()
        elif plain not in ("", "."):
            way.append(plain)
    return ("/" if path.startswith("/") else "") + "/".join(way)


def _stays_in(path: str, directory: str) -> bool:
    steps, above = path.split("/"), directory.split("/")
    rest = steps[len(above) :]
    odd = any(one.strip() in ("", ".", "..") for one in rest) or "\\" in path or not path.isprintable()
    return steps[: len(above)] == above and bool(rest) and not odd


def _is_narrow(tool: str, terms: Terms, args: Mapping[str, Any]) -> bool:
    """Whether a match opens no more than one thing: the directory of a path, or the room below an amount."""
    by_arg = said(terms)
    if tool not in ("pay", "write") or list(by_arg) != list(args):
        return False
    others = [arg for arg in by_arg if arg not in ("path", "content", "amount")]
    if not all(same(by_arg[arg], args[arg]) for arg in others):
        return False
    if tool == "pay":
        limit = number(args["amount"])
        amount = by_arg["amount"]
        return isinstance(amount, Mapping) and limit is not None and number(amount.get("<=")) == limit > 0
    path = by_arg["path"]
    directory = str(args["path"]).rpartition("/")[0]
    plain = all(one not in ("", ".", "..") for one in directory.split("/"))
    return (
        isinstance(path, Mapping) and path.get("below") == directory and plain and by_arg["content"] == {"exists": True}
    )
