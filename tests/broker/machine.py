"""A machine that drives brokers over a store, and the model beside them: whatever happens, in any order.

The model is `tests.broker.model`, written from the laws. After every step the store has to hold what the model says and
the record has to have exactly the events that the step is worth; at the end, the record alone is held against the laws.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)
from tests.broker.conftest import RAM
from tests.broker.model import FILE, Happened, Life, Made, Model, No, Question, Remembered, same
from tests.matches import ANY, below, facts_of, match, up_to, varying
from tests.ready import ready

from signoff.broker import Broker
from signoff.broker.requests import enter
from signoff.broker.runs import RunProgress
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.grant import Grant
from signoff.core.people import Actor, ActorKind, Delegation
from signoff.core.record import START, Entry
from signoff.core.request import ApprovalRequest
from signoff.core.run import RunState, SavedRun
from signoff.core.terms import Budget, Scope, Terms
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.errors import SignoffError
from signoff.ports import Store, Transaction
from signoff.store.memory_store import MemoryStore
from signoff.testing import FakeClock

T = TypeVar("T")

NOBODYS_PID = 2**30
"""Of a process that does not exist: no system has numbers that large."""
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Choice(Generic[T]):
    """Something to choose: by Hypothesis, which makes it smaller when it fails, or by a die, which is much faster."""

    strategy: st.SearchStrategy[T]
    rolled: Callable[[Random], T]


def among(options: Sequence[T]) -> Choice[T]:
    strategy = st.sampled_from(options)

    @st.composite
    def one_of_many(draw: st.DrawFn) -> T:  # which Hypothesis prints in a word
        return draw(strategy)

    return Choice(one_of_many(), lambda die: die.choice(options))


def several(choice: Choice[T], at_least: int, at_most: int) -> Choice[list[T]]:
    return Choice(
        st.lists(choice.strategy, min_size=at_least, max_size=at_most),
        lambda die: [choice.rolled(die) for _ in range(die.randint(at_least, at_most))],
    )


def made(make: Callable[..., T], *parts: Choice[Any]) -> Choice[T]:
    @st.composite
    def one_made(draw: st.DrawFn) -> T:
        return make(*(draw(part.strategy) for part in parts))

    return Choice(one_made(), lambda die: make(*(part.rolled(die) for part in parts)))


STEPS: dict[str, Mapping[str, Choice[Any]]] = {}
"""What may happen, and what is to be chosen for it."""
F = TypeVar("F", bound=Callable[..., None])


def step(**choices: Choice[Any]) -> Callable[[F], F]:
    """A rule of the machine."""

    def decorate(method: F) -> F:
        STEPS[method.__name__] = choices
        return rule(**{name: choice.strategy for name, choice in choices.items()})(method)

    return decorate


names = among([*FILE, "zoe"])
which = Choice(st.integers(0, 40), lambda die: die.randrange(41))
perhaps = Choice(st.none() | which.strategy, lambda die: die.choice([None, die.randrange(41)]))
either = among([False, True])
SPANS = [timedelta(seconds=seconds) for seconds in (1, 9, 20, 20, 39, 41, 60, 60, 3_600, 86_400)]
spans = among(SPANS)
# Most of what follows is chosen from lists that are made once: each draw costs time, and so does making it smaller.
REQUIREMENTS = [
    *[Requirement()] * 10,
    *[
        Requirement(role=role, quorum=quorum, not_by=frozenset(not_by.split()), veto=veto)
        for role in (None, "ops")
        for quorum in (1, 2, 3)
        for not_by in ("", "requester", "requester owner")
        for veto in (None, "security")
    ],
    *[
        Requirement(role=role, quorum=quorum, timeout=MINUTE, on_timeout=on_timeout, remind=remind)
        for role in (None, "ops")
        for quorum in (1, 2)
        for on_timeout in (OnTimeout.DENY, OnTimeout.PARK, OnTimeout.ALLOW)
        for remind in (None, MINUTE / 3)
    ],
    *[
        Requirement(
            role=role,
            quorum=quorum,
            timeout=MINUTE,
            on_timeout=OnTimeout.ESCALATE,
            escalate_to="boss",
            escalate_quorum=more,
            veto=veto,
            remind=remind,
        )
        for role in (None, "ops")
        for quorum, more in ((1, 1), (2, 1), (2, 2))
        for veto in (None, "security")
        for remind in (None, MINUTE / 3)
    ],
]
CALLS: list[tuple[str, dict[str, Any]]] = [
    *[("pay", {"to": to, "amount": amount}) for amount in (1, 5, 2.5, 40) for to in ("bob", "bob", "eve")],
    *[
        ("write", {"path": path, "content": content})
        for path in ("docs/a.md", "docs/b.md", "docs/x/y.md", "src/a.py", "docs/../src/a.py")
        for content in ("x", "y")
    ],
    *[("run", {"command": line}) for line in ("ls", "bin/ls a/b")],
]


SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "amount": {"type": "number", "minimum": 0}},
    "additionalProperties": True,
}


@dataclass(frozen=True)
class Asked:
    """What is to be asked about."""

    key: int
    need: Requirement
    call: tuple[str, dict[str, Any]]
    schema: str
    session: str
    worker: tuple[str, ...]
    requester: str
    owner: str
    run: int | None

    def question(self, name: str, now: datetime, run: str) -> Question:
        tool, args = self.call
        return Question(
            id=name,
            key=f"run:c{self.key}",
            rule=self.need,
            tool=tool,
            args=args,
            schema=self.schema,
            opened=now,
            requester=self.requester.strip().lower(),
            owner=self.owner,
            run=run,
            session=self.session,
            worker=" > ".join(self.worker),
        )

    def request(self, name: str, run: str) -> ApprovalRequest:
        tool, args = self.call
        call = Call(
            tool=tool,
            args=args,
            schema_hash=self.schema,
            call_id=f"c{self.key}",
            run_id="run",
            conversation_id=self.session,
            worker=self.worker,
        )
        return ApprovalRequest(
            id=name,
            tool_call_id=call.call_id,
            tool_name=tool,
            args=args,
            call=call,
            may_vary=varying(call),
            verdict=Verdict(effect=Effect.ASK, requirement=self.need),
            schema=SCHEMA,
            requester=self.requester,
            owners=(self.owner,) if self.owner else (),
            run=run,
        )


WHENCE = [
    {"schema": schema, "session": session, "worker": worker, "requester": requester, "owner": owner}
    for requester, owner in (("", ""), ("rita", "otto"), (" Rita", "otto"), ("ana", "otto"))
    for schema, session, worker in (
        ("v1", "s1", ("triage",)),
        ("v1", "s1", ()),
        ("v1", "s2", ("triage", "helper")),
        ("v2", "s1", ("triage",)),
    )
]
questions = made(
    lambda key, need, call, run, whence: Asked(key=key, need=need, call=call, run=run, **whence),
    Choice(st.integers(1, 12), lambda die: die.randint(1, 12)),
    among(REQUIREMENTS),
    among(CALLS),
    among([None, None, 0, 0, 1]),
    among(WHENCE),
)


@dataclass(frozen=True)
class Answer:
    """What somebody says. They claim every role there is; only what is on file counts."""

    name: str
    kind: str
    yes: bool
    edit: float | str | None
    spelled: str

    @property
    def by(self) -> Actor:
        name = {"lower": self.name, "upper": self.name.upper(), "wide": f"  {self.name} "}[self.spelled]
        return Actor(name=name, kind=ActorKind(self.kind), roles=frozenset({"ops", "boss", "security"}))


HOW = [
    (kind, yes, edit, spelled)
    for kind in ("person", "person", "person", "person", "person", "person", "script", "model")
    for yes in (True, True, True, False)
    for edit in (None, None, None, None, 4, 4.0, 3, "much")
    for spelled in ("lower", "upper", "wide")
]
answers = made(lambda name, how: Answer(name, *how), names, among(HOW))

Limits = Mapping[str, Any]
Wish = tuple[str, Limits] | Remember
"""How far an answer is to be remembered: in what form and within which limits, or only `session` or `always`."""
BUDGETS = [
    Budget(arg="amount", limit=Decimal(10)),
    Budget(arg="amount", limit=Decimal("7.5"), daily=True),
]
NO_BUDGETS = [
    Budget(arg="to", limit=Decimal(10)),
    Budget(arg="amount", limit=Decimal("NaN")),
    Budget(arg="amount", limit=Decimal("Infinity"), daily=True),
    Budget(arg="amount", limit=Decimal(-1)),
]
LIMITS: list[Limits] = [
    {"scope": scope, "until": until, "max_uses": uses, "budget": budget}
    for scope in (*Scope, Scope.PROJECT, Scope.PROJECT)
    for until in (None, None, timedelta(seconds=30), timedelta(days=1))
    for uses, budget in (
        *((uses, budget) for uses in (None, 3) for budget in (None, None, *BUDGETS, *BUDGETS)),
        *((None, budget) for budget in NO_BUDGETS),
        (1, None),
        (2, None),
        (0, None),
    )
]
WISHES: list[Wish] = [(form, limits) for form in ("exact", "wide", "wide", "wide", "everything") for limits in LIMITS]
wishes = among(WISHES)
NO_WISH: list[Wish | None] = [None, None, None, None, *Remember]
remembering = among([*NO_WISH * (len(WISHES) // len(NO_WISH)), *WISHES])


def terms_of(wish: tuple[str, Limits], tool: str, args: Mapping[str, Any], now: datetime) -> Terms:
    """What a person might pick: exactly this, the one thing that may be widened, or (which they may not) everything."""
    form, limit = wish
    until = now + limit["until"] if limit["until"] else None
    wide = {
        "amount": up_to(args.get("amount")),
        "path": below(str(args.get("path")).rpartition("/")[0]),
        "content": ANY,
        "command": below("bin"),
    }
    matches = {
        "exact": None,
        "wide": match(**{name: wide.get(name, args[name]) for name in args}),
        "everything": match(**dict.fromkeys(args, ANY)),
    }
    return Terms(**{**limit, "until": until, "match": matches[form]})


@dataclass(frozen=True)
class Change:
    """In what a call differs from one that is remembered."""

    args: bool
    amount: object
    schema: bool
    place: bool
    led_astray: bool

    def made(self, grant: Remembered, asked: Asked) -> Made:
        usual = {"pay": {"to": "bob", "amount": 2.5}, "write": {"path": "docs/a.md", "content": "z"}}
        tool, args = asked.call if self.args else (grant.tool, grant.args or usual[grant.tool])
        if tool == "pay" and self.amount is not None:
            args = {**args, "amount": self.amount}
        leads = {str(args["path"]): "/etc/passwd"} if self.led_astray and "path" in args else {}
        schema = asked.schema if self.schema else grant.schema
        place = {"session": asked.session, "worker": " > ".join(asked.worker)}
        if not self.place and grant.terms.scope is not Scope.PROJECT:
            place[grant.terms.scope] = grant.where
        return Made(tool=tool, args=args, schema=schema, leads=leads, **place)


CHANGES = [
    *[Change(False, amount, False, False, False) for amount in (None, None, None, 0, 1, 1, 4, 5, 6)],
    *[Change(False, odd, False, False, False) for odd in (-1, -0.0, True, "5", 10**400, 1e300, float("nan"))],
    Change(False, None, True, False, False),
    Change(False, None, False, True, False),
    Change(True, None, False, False, False),
    Change(True, None, False, False, True),
    Change(False, None, False, False, True),
]
changes = among(CHANGES)


RUNS = ["begin", "take", "take", "take up", "all take", "put down", "put down", "end", "cancel"]


def pick(choices: Sequence[T], number_: int) -> T:
    """Mostly one of the newest."""
    return choices[-1 - number_ % len(choices)]


async def together(works: Iterable[Awaitable[object]]) -> Sequence[object]:
    """Everything at once."""
    return await asyncio.gather(*works, return_exceptions=True)


class AnyOrder(RuleBasedStateMachine):
    """Three processes on one store, one of them on another machine.

    Of three that do something at once any may win, so which rules can be chosen must not depend on what happened.
    """

    def __init__(self, open_store: Callable[[], Store], close: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock()
        self.model = Model(self.clock.now())
        self.open_store, self.close_all = open_store, close
        self.brokers = [self.start(far=False), self.start(far=False), self.start(far=True)]
        self.tickets: list[tuple[Broker, str, int]] = []
        """Runs that somebody had in hand once, each with the epoch they had it at."""
        self.running: list[tuple[Broker, str]] = []
        """Calls that somebody runs, or ran."""
        self.record: list[Entry] = []
        self.asked = 1

    def start(self, *, far: bool) -> Broker:
        broker = Broker(self.open_store(), self.clock, people={name: frozenset(FILE[name]) for name in FILE})
        broker.remembers = True
        if far:
            broker.ledger._process = replace(broker.process, host="another machine")
        self.model.lives[broker.process.id] = Life(far=far)
        broker.store.remind(3_600, lambda: None)  # only what happens here says that a process lives
        return broker

    def teardown(self) -> None:
        try:
            check_laws(self.record)
        finally:
            for broker in self.brokers:
                broker.store.close()
            self.loop.close()
            self.close_all()

    # --- one step of both ---

    def do(self, work: Awaitable[T]) -> T:
        return self.loop.run_until_complete(_awaited(work))

    def broker(self, number_: int) -> Broker:
        return self.brokers[number_ % len(self.brokers)]

    def ticket_of(self, broker: Broker, number_: int | None) -> tuple[str, int] | None:
        """A run that this process has in hand, or had."""
        own = [(run, epoch) for owner, run, epoch in self.tickets if owner is broker]
        return pick(own, number_) if own and number_ is not None else None

    def some(self, state: str = "") -> list[Question]:
        """The questions, or those in a state."""
        return [one for one in self.model.questions.values() if not state or one.state == state]

    def question(self, number_: int) -> Question:
        return pick(self.some(), number_)

    def agree(self, broker: Broker, step: Callable[[], list[Happened]], work: Callable[[], Awaitable[T]]) -> T | None:
        """Have both do it, or both refuse it. Returns what the broker returned."""
        result = None
        try:
            expected = step()
        except No as no:
            expected = []
            self.refused(work, no.kinds)
        else:
            result = self.do(work())
        self.beat(broker)
        self.expect(expected)
        return result

    def refused(self, work: Callable[[], Awaitable[object]], kinds: Sequence[str]) -> None:
        with pytest.raises(SignoffError) as error:
            self.do(work())
        assert type(error.value).__name__ in kinds, f"{error.value!r}, and not {kinds}"

    def beat(self, broker: Broker) -> None:
        life = self.model.lives[broker.process.id]
        if life.far and life.seen is not None:
            broker.ledger.beat()
            self.do(broker.store.flush())
            life.seen = self.model.now

    def expect(self, expected: Sequence[Happened]) -> None:
        """The record has these events more, in any order, and no others."""
        entries = self.do(self.brokers[0].store.read(lambda tx: tx.record.entries(after=len(self.record))))
        assert sorted((one.kind, one.request or one.run) for one in entries) == sorted(expected)
        for entry in entries:
            before = self.record[-1] if self.record else None
            assert entry.seq == len(self.record) + 1
            assert entry.prev == (before.hash if before else START)
            assert entry.hash == linked(entry)
            self.record.append(entry)

    # --- asking ---

    @initialize(asked=several(questions, 2, 4).strategy)
    def at_first(self, asked: list[Asked]) -> None:
        self.begin(self.brokers[0])
        for number_, one in enumerate(asked):
            self.ask(number_, one, ticket=None, put_down=False)

    @step(n=which, asked=questions, ticket=perhaps, put_down=either)
    def ask(self, n: int, asked: Asked, ticket: int | None, put_down: bool) -> None:
        """Ask about a call, perhaps one that was asked about before; perhaps saving a run with it."""
        broker = self.broker(n)
        held = self.ticket_of(broker, ticket)
        runs = list(self.model.runs)
        run = held[0] if held else runs[-1 - asked.run % len(runs)] if asked.run is not None else ""
        question = asked.question(f"r{self.asked}", self.model.now, run)
        self.asked += 1
        progress = [RunProgress(run=SavedRun(id=held[0], epoch=held[1]), put_down=put_down)] if held else []

        def step() -> list[Happened]:
            if held:
                self.model.save(*held, broker.process.id, put_down=put_down)
            return self.model.ask(question)

        opened = self.agree(broker, step, lambda: broker.open([asked.request(question.id, run)], progress))
        assert opened is None or opened[0].id == self.model.known(question.key)

    # --- answering ---

    @step(n=which, q=which, answer=answers, remember=remembering)
    def anybody_answers(self, n: int, q: int, answer: Answer, remember: Wish | None) -> None:
        self.answer(self.broker(n), self.question(q), answer, remember)

    @step(n=which, q=which, answer=answers, more=several(which, 0, 3), asked=questions)
    def the_right_people_answer(self, n: int, q: int, answer: Answer, more: list[int], asked: Asked) -> None:
        """One after the other, as far as there are such people: without them, little would ever be approved."""
        question = self.one_that_waits(q, asked)
        for number_ in (n, *more):
            question, _ = self.model.after_time(self.model.questions[question.id])
            able = [one for one in FILE if self.model.counts_as(question, one, "person", yes=answer.yes)]
            fresh = [one for one in able if one not in [vote.voter for vote in question.votes]] or able
            if not fresh or question.state != "pending":
                return
            one = replace(answer, name=pick(fresh, number_), kind="person")
            self.answer(self.broker(number_), self.model.questions[question.id], one, None)

    @step(n=which, q=which, deputy=names, span=spans, answer=answers, deputy_first=either, asked=questions)
    def somebody_and_their_deputy_answer(
        self, n: int, q: int, deputy: str, span: timedelta, answer: Answer, deputy_first: bool, asked: Asked
    ) -> None:
        """Some delegations begin only later."""
        broker, question = self.broker(n), self.one_that_waits(q, asked, role=True)
        able = [one for one in FILE if self.model.may(question, one, yes=answer.yes)]
        if able:
            absent = pick(able, n + q)
            since = self.model.now + timedelta(seconds=30 if (n + q) % 5 == 4 else 0)
            self.delegate(broker, absent, deputy, since, span)
            for name in (deputy, absent) if deputy_first else (absent, deputy):
                vote = replace(answer, name=name, kind="person")
                self.answer(broker, self.model.questions[question.id], vote, None)

    def one_that_waits(self, q: int, asked: Asked, *, role: bool = False) -> Question:
        """Somebody has to be asked before anybody can answer."""
        if not self.some("pending"):
            self.ask(q, replace(asked, key=100 + self.asked, run=None), ticket=None, put_down=False)
        pending = self.some("pending")
        return pick([one for one in pending if one.role or not role] or pending, q)

    @step(n=which, asked=questions, answer=answers, wish=wishes)
    def somebody_remembers(self, n: int, asked: Asked, answer: Answer, wish: Wish) -> None:
        """A call that anyone may answer is asked about, and the answer kept."""
        self.ask(n, replace(asked, need=Requirement(), key=100 + self.asked), ticket=None, put_down=False)
        self.answer(self.broker(n), self.question(0), replace(answer, kind="person"), wish)

    def answer(self, broker: Broker, question: Question, answer: Answer, remember: Wish | None) -> None:
        edited = None
        if answer.yes and answer.edit is not None and question.tool == "pay":
            edited = {**question.args, "amount": answer.edit}
        said, terms, spelled = Remember.NONE, None, isinstance(remember, tuple)
        if isinstance(remember, tuple):
            terms = terms_of(remember, question.tool, edited or question.args, self.model.now)
        elif remember is not None and remember is not Remember.NONE:
            said, terms = remember, Terms(scope=Scope.SESSION if remember is Remember.SESSION else Scope.PROJECT)
        decision = ApprovalDecision(
            approved=answer.yes, edited_args=edited, remember=said, terms=terms if spelled else None
        )
        self.agree(
            broker,
            lambda: self.model.vote(
                question, answer.name, answer.kind, yes=answer.yes, args=edited, terms=terms, spelled=spelled
            ),
            lambda: broker.answer(question.id, decision, by=answer.by),
        )

    def delegate(self, broker: Broker, absent: str, deputy: str, since: datetime, span: timedelta) -> None:
        away = Delegation(absent=absent, deputy=deputy.title(), since=since, until=since + span, by="eve")
        self.agree(
            broker,
            lambda: self.model.delegate(absent, deputy, since, since + span),
            lambda: broker.people.delegate(away),
        )

    @step(
        n=which,
        q=which,
        does=among(["assign", "free", "delegate", "delegate", "cancel", "halt", "unhalt", "unhalt"]),
        names=several(names, 2, 2),
        starts=among([0, 0, 30]),
        span=among([*SPANS, timedelta(0)]),
    )
    def somebody_arranges_things(
        self, n: int, q: int, does: str, names: list[str], starts: int, span: timedelta
    ) -> None:
        broker, question, (one, other) = self.broker(n), self.question(q), names
        if does == "delegate":
            self.delegate(broker, one, other, self.model.now + timedelta(seconds=starts), span)
        elif does == "cancel":
            self.agree(broker, lambda: self.model.withdraw(question), lambda: broker.cancel(question.id, "moot"))
        elif does == "halt":
            self.agree(broker, self.model.halt, lambda: broker.switch.halt(by="ana", why="fire"))
        elif does == "unhalt":
            self.agree(broker, self.model.unhalt, lambda: broker.switch.unhalt(by="ana"))
        else:
            to, by = one if does == "assign" else "", Actor(name=other)
            self.agree(
                broker, lambda: self.model.assign(question, to, other), lambda: broker.assign(question.id, to, by=by)
            )

    # --- time ---

    @step(span=spans, n=which, sweeps=among(["nobody", "one", "all"]))
    def time_passes(self, span: timedelta, n: int, sweeps: str) -> None:
        self.clock.advance(span)
        self.model.now = self.clock.now()
        if sweeps == "one":
            broker = self.broker(n)
            self.agree(broker, lambda: self.model.sweep(broker.process.id), broker.sweep)
        elif sweeps == "all":
            self.do(together(broker.sweep() for broker in self.brokers))
            self.expect([event for broker in self.brokers for event in self.model.sweep(broker.process.id)])

    # --- running ---

    @step(n=which, q=which, ticket=perhaps)
    def claim(self, n: int, q: int, ticket: int | None) -> None:
        """Mostly what is approved, if anything is."""
        question = self.question(q) if q % 4 == 3 else pick(self.some("approved") or self.some(), q)
        broker = self.broker(n)
        fence = self.ticket_of(broker, ticket)
        run, epoch = fence or ("", 0)
        claimed = self.agree(
            broker,
            lambda: self.model.claim(question, broker.process.id, fence),
            lambda: broker.claim(question.id, run=run, epoch=epoch, token=broker.process.id),
        )
        if claimed is not None:
            assert question.runs_with is not None
            assert same(claimed.effective_args, question.runs_with), "what was approved is what runs"
            self.running.append((broker, question.id))

    @step(q=which, asked=questions)
    def all_claim_at_once(self, q: int, asked: Asked) -> None:
        if not self.some("approved"):
            self.ask(q, replace(asked, key=100 + self.asked, need=Requirement(), run=None), ticket=None, put_down=False)
            self.answer(self.broker(q), self.question(0), Answer("ana", "person", True, None, "lower"), None)
        question = pick(self.some("approved"), q)
        results = self.do(together(broker.claim(question.id, token=broker.process.id) for broker in self.brokers))
        won = [broker for broker, got in zip(self.brokers, results, strict=True) if not isinstance(got, Exception)]
        lost = {type(got).__name__ for got in results if isinstance(got, Exception)}
        if self.model.halted:
            assert not won and lost == {"Halted"}
            return
        assert len(won) == 1 and lost == {"AlreadySpent"}
        self.expect(self.model.claim(question, won[0].process.id))
        self.beat(won[0])
        self.running.append((won[0], question.id))

    @step(r=which, how=among(["entered", "entered", "paused"]))
    def a_call_waits_for_a_run_inside_it(self, r: int, how: str) -> None:
        if not self.running:
            return
        broker, request_id = pick(self.running, r)
        question, now = self.model.questions[request_id], self.model.now
        process = broker.process.id

        async def pause() -> None:
            broker.release(request_id, process)
            await broker.store.flush()

        if how == "entered":
            journal = broker.ledger.journal
            entering = broker.store.write("enter", lambda tx: enter(tx, journal, request_id, process, now))
            self.agree(broker, lambda: self.model.enter(question, process), lambda: entering)
        else:
            self.agree(broker, lambda: self.model.pause(question, process), pause)

    @step(r=which, how=among(["well", "well", "badly", "lost", "asked again", "given back"]))
    def a_call_ends(self, r: int, how: str) -> None:
        """Its process tells how, perhaps long after everybody had given it up."""
        if not self.running:
            return
        broker, request_id = pick(self.running, r)
        question = self.model.questions[request_id]

        async def tell() -> None:
            if how == "given back":
                broker.give_back(request_id, broker.process.id)
            else:
                broker.finish(request_id, error=None if how == "well" else "boom")
            await broker.store.flush()

        if how == "lost":
            self.agree(broker, lambda: self.model.lose(question), lambda: broker.lose(request_id))
        elif how == "asked again":
            self.agree(broker, lambda: self.model.ask_again(question), lambda: broker.ask_again(request_id))
        elif how == "given back":
            self.agree(broker, lambda: self.model.give_back(question, broker.process.id), tell)
        else:
            self.agree(broker, lambda: self.model.finish(question, well=how == "well"), tell)

    @step(n=which, q=which, answer=answers)
    def tell(self, n: int, q: int, answer: Answer) -> None:
        """Somebody says what became of a call: mostly of one whose process is gone."""
        broker = self.broker(n)
        question = pick(self.some("unknown") or [one for one in self.some() if one.claims] or self.some(), q)
        self.agree(
            broker,
            lambda: self.model.tell(question, answer.name, answer.kind, happened=answer.yes),
            lambda: broker.tell(question.id, happened=answer.yes, by=answer.by),
        )

    @step(n=which)
    def die(self, n: int) -> None:
        """A process is killed, and another one started in its place. Far away, nobody hears of it."""
        index = n % len(self.brokers)
        dead = self.brokers[index]
        life = self.model.lives[dead.process.id]

        def gone(tx: Transaction) -> None:
            if (row := tx.processes.get(dead.process.id)) is not None:
                tx.processes.put(replace(row, pid=NOBODYS_PID))

        if not life.far:
            life.dead = True
            self.do(dead.store.write("die", gone))
        if dead.store is not self.brokers[index - 1].store:
            dead.store.close()
        self.running = [one for one in self.running if one[0] is not dead]
        self.tickets = [one for one in self.tickets if one[0] is not dead]
        self.brokers[index] = self.start(far=life.far)

    # --- runs ---

    @step(n=which, r=which, does=among(RUNS))
    def something_about_a_run(self, n: int, r: int, does: str) -> None:
        broker, run = self.broker(n), pick(list(self.model.runs), r)
        if does == "begin":
            self.begin(broker)
        elif does == "take":
            self.take(broker, run)
        elif does == "take up":
            self.take_up(broker, run)
        elif does == "all take":
            self.all_take_at_once(run)
        elif does == "cancel":
            self.agree(broker, lambda: self.model.cancel_run(run), lambda: broker.runs.cancel(run, by="ana"))
        elif self.tickets:
            self.let_go(*pick(self.tickets, r), "" if does == "put down" else ("done", "failed", "cancelled")[n % 3])

    def begin(self, broker: Broker) -> None:
        run = f"run{len(self.model.runs) + 1}"
        begun = self.agree(
            broker, lambda: self.model.begin(run, broker.process.id), lambda: broker.runs.begin(SavedRun(id=run))
        )
        if begun is not None:
            self.tickets.append((broker, run, begun.epoch))

    def take(self, broker: Broker, run: str) -> None:
        taken = self.agree(broker, lambda: self.model.take(run, broker.process.id), lambda: broker.runs.take(run))
        if taken is not None:
            self.tickets.append((broker, run, taken.epoch))

    def take_up(self, broker: Broker, run: str) -> None:
        taken = self.agree(broker, lambda: self.model.take_up(run, broker.process.id), lambda: broker.runs.take_up(run))
        if taken is not None:
            kept, requests = taken
            self.tickets.append((broker, run, kept.epoch))
            assert [one.id for one in requests] == [one.id for one in self.some() if one.run == run]

    def all_take_at_once(self, run: str) -> None:
        results = self.do(together(broker.runs.take(run) for broker in self.brokers))
        won = [(one, got) for one, got in zip(self.brokers, results, strict=True) if isinstance(got, SavedRun)]
        assert len(won) <= 1, "one wins"
        expected: list[Happened] = []
        for broker in sorted(self.brokers, key=lambda one: one not in [winner for winner, _ in won]):
            try:
                expected += self.model.take(run, broker.process.id)
                self.tickets += [(broker, run, got.epoch) for winner, got in won if winner is broker]
            except No:
                assert broker not in [winner for winner, _ in won]
        self.expect(expected)
        for broker, _ in won:
            self.beat(broker)

    def let_go(self, broker: Broker, run: str, epoch: int, ending: str) -> None:
        """Put a run down or end it, perhaps after somebody else took it up."""
        if ending:
            state = RunState(ending)
            self.agree(broker, lambda: self.model.end(run, epoch, ending), lambda: broker.runs.end(run, epoch, state))
        else:
            self.agree(broker, lambda: self.model.put_down(run, epoch), lambda: broker.runs.put_down(run, epoch))
        broker.runs.let_go(run)
        self.model.busy.discard((broker.process.id, run))

    # --- what is remembered ---

    @step(n=which, g=which, asked=questions, changes=several(changes, 1, 5), forget=which)
    def calls_are_made(self, n: int, g: int, asked: Asked, changes: list[Change], forget: int) -> None:
        """Calls much like one that is remembered, perhaps several at once in all processes; then it is forgotten."""
        if not self.model.grants:
            return
        for number_, change in enumerate(changes):
            self.call(change.made(pick(self.model.grants, g), asked), n + number_, 4 if (n + number_) % 3 == 1 else 1)
        if forget % 6 == 5:
            self.revoke(self.broker(n), g % len(self.model.grants))

    def call(self, made: Made, n: int, times: int) -> None:
        chain = tuple(made.worker.split(" > ")) if made.worker else ()
        call = Call(tool=made.tool, args=made.args, worker=chain, schema_hash=made.schema, resolved=made.leads)
        where = {Scope.RUN: made.run, Scope.SESSION: made.session, Scope.WORKER: made.worker}
        found = self.do(together(self.broker(n + i).grants.recall(facts_of(call), where) for i in range(times)))
        ids = [one.id for one in self.do(self.brokers[0].grants.list(revoked=True))]
        events: list[Happened] = []
        for grant in found:
            assert grant is None or isinstance(grant, Grant), grant
            if grant is None:
                continue
            speaking = [one for one in self.model.grants if self.model.speaks(one, made)]
            said = self.model.grants[ids.index(grant.id)]
            assert any(one is said for one in speaking), "it has nothing to say about this call, here and now"
            assert not said.yes or all(one.yes for one in speaking), "a no before a yes"
            assert not said.counted or all(one.counted for one in speaking), "no use is used up without need"
            events += self.model.use(said, made)
        if None in found:
            assert not [one for one in self.model.grants if self.model.speaks(one, made)], "somebody had said so"
        self.expect(events)

    def revoke(self, broker: Broker, index: int) -> None:
        grants = self.do(broker.grants.list(revoked=True))
        self.agree(
            broker,
            lambda: self.model.revoke(self.model.grants[index]),
            lambda: broker.grants.revoke(grants[index].id, by="ana"),
        )

    # --- what has to hold ---

    @invariant()
    def the_store_holds_what_the_model_says(self) -> None:
        model = self.model

        def look(tx: Transaction) -> tuple[Any, ...]:
            requests = [tx.requests.get(one) for one in model.questions]
            runs = [tx.runs.get(one) for one in model.runs]
            return (
                requests,
                runs,
                tx.queue.page(limit=1_000),
                tx.queue.open(),
                tx.grants.all(revoked=True),
                tx.record.head(),
            )

        broker = self.brokers[len(self.record) % len(self.brokers)]
        requests, runs, inbox, pending, grants, head = self.do(broker.store.read(look))
        assert [_of(one) for one in requests] == [_said(one) for one in model.questions.values()]
        assert [(one.state, one.epoch, one.holder) for one in runs] == [
            (one.state, one.epoch, one.holder) for one in model.runs.values()
        ]
        waiting = [one for one in model.questions.values() if one.state in ("pending", "unknown")]
        assert [
            (one.id, one.state, one.role, one.quorum, one.votes, one.assigned, one.deadline, one.escalated, one.run)
            for one in inbox
        ] == [
            (
                one.id,
                one.state,
                one.role or "",
                one.quorum,
                len(one.votes),
                one.assigned,
                one.deadline,
                one.escalated,
                one.run,
            )
            for one in waiting
        ]
        assert [one.id for one in pending] == [one.id for one in waiting if one.state == "pending"]
        assert head == ((self.record[-1].seq, self.record[-1].hash) if self.record else (0, START))
        self.grants_are_kept_within_their_limits(grants)

    def grants_are_kept_within_their_limits(self, grants: Sequence[Grant]) -> None:
        assert len(grants) == len(self.model.grants)
        for grant, said in zip(grants, self.model.grants, strict=True):
            assert (grant.approved, grant.used, grant.revoked_at is not None) == (said.yes, said.used, said.revoked)
            assert grant.max_uses is None or grant.used <= grant.max_uses
            if grant.budget is not None:
                assert Fraction(grant.spent_by(self.model.now)) == self.model.spent(said)
                assert grant.spent <= grant.budget.limit


def _of(one: ApprovalRequest) -> tuple[Any, ...]:
    """A stored request, as far as the model has something to say about it."""
    return (
        one.id,
        str(one.state),
        one.assigned,
        one.deadline,
        one.remind_at,
        one.escalated,
        [(vote.by.key, vote.principal.key) for vote in one.votes],
        one.claim.holder if one.claim else "",
    )


def _said(one: Question) -> tuple[Any, ...]:
    votes = [(vote.voter, vote.principal) for vote in one.votes]
    return (one.id, one.state, one.assigned, one.deadline, one.remind, one.escalated, votes, one.holder)


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def linked(entry: Entry) -> str:
    """The hash an event has to have, from what the record's format says."""
    head = {name: getattr(entry, name) for name in ("at", "kind", "prev", "request", "run", "seq")}
    text = json.dumps(head, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(f"{text}\n{entry.digests}".encode()).hexdigest()


def check_laws(record: Sequence[Entry]) -> None:
    """From the record alone: what ran had been approved, by enough people, once; a no stayed a no."""
    halted = False
    stories: dict[str, Story] = {}
    for entry in record:
        if entry.kind in ("halted", "unhalted"):
            halted = entry.kind == "halted"
        elif entry.request:
            assert entry.kind != "claimed" or not halted, "nothing new runs"
            stories.setdefault(entry.request, Story()).goes_on(entry.kind, json.loads(entry.body))


@dataclass
class Story:
    """One request, as the record tells it."""

    needs: int = 0
    state: str = ""
    votes: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """By voter: in whose place, and for which arguments."""
    claims: int = 0

    def goes_on(self, kind: str, body: Mapping[str, Any]) -> None:
        over = ("denied", "expired", "cancelled", "ran", "failed", "told")
        assert self.state not in over or kind == "late outcome", f"it was {self.state}, and then {kind}"
        if kind in ("asked", "escalated"):
            many = re.match(r"(\d+) people", body["needs"])
            self.needs = int(many[1]) if many else 1
        elif kind == "voted":
            voter = body["by"].strip().lower()
            self.votes.pop(voter, None)
            self.votes[voter] = (body.get("stands_for", voter).strip().lower(), body["args_digest"])
            assert body["kind"] != "model", "a model is no person"
            assert body["kind"] == "person" or self.needs == 1
        elif kind == "claimed":
            self.claims += 1
            assert self.state == "approved", f"it was {self.state or 'asked'} when it ran"
            assert self.claims == 1, "an approval is spent once"
        elif kind in ("paused", "returned"):
            self.claims -= 1
            self.state = "approved"
        if kind == "settled":
            self.state = body["state"]
            if self.state == "approved" and body["by"] != "nobody in time":
                wanted = list(self.votes.values())[-1][1]
                agreed = {person for person, args in self.votes.values() if args == wanted}
                assert len(agreed) >= self.needs, "not enough people"
        elif kind in ("claimed", "unknown", "ran", "failed", "told"):
            self.state = kind


def in_memory() -> AnyOrder:
    store = MemoryStore(record=True)
    return AnyOrder(lambda: store)


def in_a_file() -> AnyOrder:
    from signoff.store.sqlite import SqliteStore

    directory = TemporaryDirectory(dir=RAM)
    return AnyOrder(lambda: SqliteStore(ready(Path(directory.name) / "signoff.db")), directory.cleanup)


MACHINES = {"memory": in_memory, "sqlite": in_a_file}
