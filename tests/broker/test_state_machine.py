"""Broker and store against a simple model: whatever people, processes and time do, in any order.

The model is `tests.broker.model`, written from the laws. After every step the store has to hold what the model says and
the record has to have exactly the events that the step is worth; at the end, the record alone is held against the laws.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from tests.broker.model import FILE, Happened, Life, Made, Model, No, Question, number, same

from signoff.broker import Broker
from signoff.broker.runs import Progress
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.grant import Grant
from signoff.core.people import Answerer, AnswererKind, Delegation, person_key
from signoff.core.record import START, Entry
from signoff.core.request import ApprovalRequest
from signoff.core.run import KeptRun, RunState
from signoff.core.terms import Budget, Condition, Fits, Scope, Terms
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.errors import SignoffError
from signoff.ports import Store, Transaction
from signoff.store.memory import MemoryStore
from signoff.testing import FakeClock

T = TypeVar("T")

NOBODYS_PID = 2**30
"""Of a process that does not exist: no system has numbers that large."""
RAM = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Where files that only a test looks at cost no disk."""
MINUTE = timedelta(minutes=1)

names = st.sampled_from([*FILE, "zoe"])
spellings = st.sampled_from([str, str.upper, "  {} ".format])
kinds = st.sampled_from(["person"] * 6 + ["script", "model"])
which = st.integers(0, 40)
spans = st.sampled_from([1, 9, 20, 39, 41, 60, 3_600, 86_400]).map(lambda seconds: timedelta(seconds=seconds))
requirements = st.one_of(
    st.just(Requirement()),
    st.builds(
        Requirement,
        role=st.sampled_from([None, "ops"]),
        quorum=st.sampled_from([1, 1, 2, 3]),
        not_by=st.sets(st.sampled_from(["requester", "owner"])).map(frozenset),
        veto=st.sampled_from([None, None, "security"]),
    ),
    st.builds(
        Requirement,
        role=st.sampled_from([None, "ops"]),
        quorum=st.sampled_from([1, 2]),
        timeout=st.just(MINUTE),
        on_timeout=st.sampled_from([OnTimeout.DENY, OnTimeout.PARK, OnTimeout.ALLOW]),
        remind=st.sampled_from([None, MINUTE / 3]),
    ),
    st.builds(
        Requirement,
        role=st.sampled_from([None, "ops"]),
        quorum=st.sampled_from([1, 2]),
        timeout=st.just(MINUTE),
        on_timeout=st.just(OnTimeout.ESCALATE),
        escalate_to=st.just("boss"),
        veto=st.sampled_from([None, "security"]),
        remind=st.sampled_from([None, MINUTE / 3]),
    ),
)
calls: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    st.tuples(
        st.just("pay"),
        st.builds(
            lambda to, amount: {"to": to, "amount": amount},
            st.sampled_from(["bob", "bob", "eve"]),
            st.sampled_from([1, 5, 5, 2.5, 40]),
        ),
    ),
    st.tuples(
        st.just("write"),
        st.builds(
            lambda path, content: {"path": path, "content": content},
            st.sampled_from(["docs/a.md", "docs/b.md", "docs/x/y.md", "src/a.py", "docs/../src/a.py"]),
            st.sampled_from(["x", "y"]),
        ),
    ),
    st.tuples(st.just("run"), st.builds(lambda line: {"command": line}, st.sampled_from(["ls", "bin/ls a/b"]))),
)
odd_amounts = st.sampled_from([-1, -0.0, True, "5", 10**400, 1e300, float("nan"), None])
places = st.fixed_dictionaries(
    {"session": st.sampled_from(["s1", "s1", "s2"]), "worker": st.sampled_from([(), ("triage",), ("triage", "helper")])}
)
schemas = st.sampled_from(["v1", "v1", "v2"])
forms = st.sampled_from(["exact", "exact", "wide", "wide", "everything"])
budgets = st.sampled_from(
    [
        None,
        Budget(arg="amount", limit=Decimal(10)),
        Budget(arg="amount", limit=Decimal("7.5"), daily=True),
        Budget(arg="to", limit=Decimal(10)),
        Budget(arg="amount", limit=Decimal("NaN")),
        Budget(arg="amount", limit=Decimal("Infinity")),
        Budget(arg="amount", limit=Decimal(-1)),
    ]
)
limits = st.fixed_dictionaries(
    {
        "scope": st.sampled_from(list(Scope)),
        "until": st.sampled_from([None, None, timedelta(seconds=30), timedelta(days=1)]),
        "max_uses": st.sampled_from([None, None, 1, 2, 0]),
        "budget": budgets,
    }
)
remembering = st.one_of(
    st.none(), st.none(), st.sampled_from(list(Remember)), st.tuples(forms, limits), st.tuples(forms, limits)
)


def pattern_of(form: str, tool: str, args: Mapping[str, Any]) -> tuple[Condition, ...] | None:
    """What a person might pick: exactly this, the one thing that may be widened, or (which they may not) everything."""
    if form == "exact":
        return None
    if form == "everything":
        return tuple(Condition(arg=name, fits=Fits.ANY) for name in args)
    wide = {
        "amount": Condition(arg="amount", fits=Fits.AT_MOST, value=args.get("amount")),
        "path": Condition(arg="path", fits=Fits.UNDER, value=str(args.get("path")).rpartition("/")[0]),
        "content": Condition(arg="content", fits=Fits.ANY),
        "command": Condition(arg="command", fits=Fits.UNDER, value="bin"),
    }
    return tuple(wide.get(name, Condition(arg=name, fits=Fits.IS, value=value)) for name, value in args.items())


class AnyOrder(RuleBasedStateMachine):
    """Three processes on one store, one of them on another machine."""

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

    def start(self, *, far: bool) -> Broker:
        broker = Broker(self.open_store(), self.clock, people={name: frozenset(FILE[name]) for name in FILE})
        broker.remembers = True
        if far:
            broker.process = replace(broker.process, host="another machine")
        self.model.lives[broker.process.id] = Life(far=far)
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
        return own[-1 - number_ % len(own)] if own and number_ is not None else None

    def question(self, number_: int) -> Question:
        """Mostly one of the newest."""
        return list(self.model.questions.values())[-1 - number_ % len(self.model.questions)]

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
            broker.beat()
            self.do(broker.store.flush())
            life.seen = self.model.now

    def expect(self, expected: Sequence[Happened]) -> None:
        """The record has these events more, in any order, and no others."""
        entries = self.do(self.brokers[0].store.read(lambda tx: tx.entries(after=len(self.record))))
        assert sorted((one.kind, one.request or one.run) for one in entries) == sorted(expected)
        for entry in entries:
            before = self.record[-1] if self.record else None
            assert entry.seq == len(self.record) + 1
            assert entry.prev == (before.hash if before else START)
            assert entry.hash == linked(entry)
            self.record.append(entry)

    # --- asking ---

    @rule(
        n=which,
        key=st.integers(1, 6),
        need=requirements,
        call=calls,
        schema=schemas,
        place=places,
        who=st.sampled_from([("", ""), ("rita", "otto"), ("ana", ""), ("Rita ", "otto")]),
        run=st.none() | which,
        ticket=st.none() | which,
        put_down=st.booleans(),
    )
    def ask(
        self,
        n: int,
        key: int,
        need: Requirement,
        call: tuple[str, dict[str, Any]],
        schema: str,
        place: Mapping[str, Any],
        who: tuple[str, str],
        run: int | None,
        ticket: int | None,
        put_down: bool,
    ) -> None:
        """Ask about a call, perhaps one that was asked about before; perhaps saving a run with it."""
        broker = self.broker(n)
        held = self.ticket_of(broker, ticket)
        going = list(self.model.runs)
        run_id = held[0] if held else going[-1 - run % len(going)] if run is not None and going else ""
        tool, args = call
        asked = Question(
            id=f"r{len(self.model.questions) + 1}",
            key=f"run:c{key}",
            rule=need,
            tool=tool,
            args=args,
            schema=schema,
            opened=self.model.now,
            requester=person_key(who[0]),
            owner=who[1],
            run=run_id,
            session=place["session"],
            worker=" > ".join(place["worker"]),
        )
        made = Call(
            tool=tool,
            args=args,
            schema_hash=schema,
            call_id=f"c{key}",
            run_id="run",
            conversation_id=place["session"],
            worker=place["worker"],
        )
        request = ApprovalRequest(
            id=asked.id,
            tool_call_id=made.call_id,
            tool_name=tool,
            args=args,
            call=made,
            verdict=Verdict(effect=Effect.ASK, requirement=need),
            requester=who[0],
            owner=who[1],
            run=run_id,
        )
        progress = Progress(run=KeptRun(id=held[0], epoch=held[1]), put_down=put_down) if held else None

        def step() -> list[Happened]:
            saved = self.model.save(*held, broker.process.id, put_down=put_down) if held else []
            return saved + self.model.ask([asked])

        opened = self.agree(broker, step, lambda: broker.open([request], progress))
        assert opened is None or opened[0].id == self.model.known(asked.key)

    # --- answering ---

    @precondition(lambda self: self.model.questions)
    @rule(
        n=which,
        q=which,
        name=names,
        spelled=spellings,
        kind=kinds,
        yes=st.sampled_from([True, True, False]),
        edit=st.sampled_from([None, None, None, 4, 4.0, 3]),
        remember=remembering,
    )
    def answer(
        self,
        n: int,
        q: int,
        name: str,
        spelled: Callable[[str], str],
        kind: str,
        yes: bool,
        edit: float | None,
        remember: Remember | tuple[str, Mapping[str, Any]] | None,
    ) -> None:
        broker, question = self.broker(n), self.question(q)
        edited = {**question.args, "amount": edit} if yes and edit is not None and question.tool == "pay" else None
        wanted = edited or question.args
        terms, said, spelled_out = None, Remember.NONE, False
        if isinstance(remember, Remember):
            said = remember
            scope = {Remember.SESSION: Scope.SESSION, Remember.ALWAYS: Scope.PROJECT}.get(remember)
            terms = Terms(scope=scope) if scope else None
        elif remember is not None:
            form, limit = remember
            until = self.model.now + limit["until"] if limit["until"] else None
            pattern = pattern_of(form, question.tool, wanted)
            terms, spelled_out = Terms(**{**limit, "until": until, "pattern": pattern}), True
        decision = ApprovalDecision(
            approved=yes, edited_args=edited, remember=said, terms=terms if spelled_out else None
        )
        by = Answerer(name=spelled(name), kind=AnswererKind(kind), roles=frozenset({"ops", "boss", "security"}))
        self.agree(
            broker,
            lambda: self.model.vote(question, name, kind, yes=yes, args=edited, terms=terms, spelled=spelled_out),
            lambda: broker.answer(question.id, decision, by=by),
        )

    @precondition(lambda self: self.model.questions)
    @rule(n=which, q=which, to=st.sampled_from(["", "ana", "ben", "dan"]))
    def assign(self, n: int, q: int, to: str) -> None:
        broker, question = self.broker(n), self.question(q)
        self.agree(
            broker,
            lambda: self.model.assign(question, to),
            lambda: broker.assign(question.id, to, by=Answerer(name="ana")),
        )

    @rule(n=which, absent=names, deputy=names, starts=st.sampled_from([0, 0, 30]), span=spans | st.just(timedelta(0)))
    def delegate(self, n: int, absent: str, deputy: str, starts: int, span: timedelta) -> None:
        broker, since = self.broker(n), self.model.now + timedelta(seconds=starts)
        self.agree(
            broker,
            lambda: self.model.delegate(absent, deputy, since, since + span),
            lambda: broker.delegate(
                Delegation(absent=absent, deputy=deputy.title(), since=since, until=since + span, by="eve")
            ),
        )

    @precondition(lambda self: self.model.questions)
    @rule(n=which, q=which)
    def cancel(self, n: int, q: int) -> None:
        broker, question = self.broker(n), self.question(q)
        self.agree(broker, lambda: self.model.withdraw(question), lambda: broker.cancel(question.id, "moot"))

    # --- time ---

    @rule(span=spans)
    def time_passes(self, span: timedelta) -> None:
        self.clock.advance(span)
        self.model.now = self.clock.now()

    @rule(n=which)
    def sweep(self, n: int) -> None:
        broker = self.broker(n)
        self.agree(broker, lambda: self.model.sweep(broker.process.id), broker.sweep)

    @rule()
    def all_sweep_at_once(self) -> None:
        async def together() -> None:
            await asyncio.gather(*(broker.sweep() for broker in self.brokers))

        self.do(together())
        self.expect([event for broker in self.brokers for event in self.model.sweep(broker.process.id)])

    # --- running ---

    @precondition(lambda self: self.model.questions)
    @rule(n=which, q=which, ticket=st.none() | which)
    def claim(self, n: int, q: int, ticket: int | None) -> None:
        broker, question = self.broker(n), self.question(q)
        fence = self.ticket_of(broker, ticket)
        run, epoch = fence or ("", 0)
        claimed = self.agree(
            broker,
            lambda: self.model.claim(question, broker.process.id, fence),
            lambda: broker.claim(question.id, run=run, epoch=epoch),
        )
        if claimed is not None:
            assert question.runs_with is not None
            assert same(claimed.effective_args, question.runs_with), "what was approved is what runs"
            self.running.append((broker, question.id))

    @precondition(lambda self: any(one.state == "approved" for one in self.model.questions.values()))
    @rule(q=which)
    def all_claim_at_once(self, q: int) -> None:
        approved = [one for one in self.model.questions.values() if one.state == "approved"]
        question = approved[q % len(approved)]

        async def together() -> Sequence[object]:
            claims = (broker.claim(question.id) for broker in self.brokers)
            return await asyncio.gather(*claims, return_exceptions=True)

        results = self.do(together())
        won = [
            broker for broker, result in zip(self.brokers, results, strict=True) if not isinstance(result, Exception)
        ]
        lost = {type(result).__name__ for result in results if isinstance(result, Exception)}
        if self.model.halted:
            assert not won and lost == {"Halted"}
            return
        assert len(won) == 1 and lost == {"AlreadySpent"}
        self.expect(self.model.claim(question, won[0].process.id))
        self.beat(won[0])
        self.running.append((won[0], question.id))

    @precondition(lambda self: self.running)
    @rule(r=which, well=st.booleans())
    def finish(self, r: int, well: bool) -> None:
        """Tell how a call ended, perhaps long after everybody had given it up."""
        broker, request_id = self.running[-1 - r % len(self.running)]
        question = self.model.questions[request_id]

        async def finish() -> None:
            broker.finish(request_id, error=None if well else "boom")
            await broker.store.flush()

        self.agree(broker, lambda: self.model.finish(question, well=well), finish)

    @precondition(lambda self: self.model.questions)
    @rule(n=which, q=which, again=st.booleans())
    def lose_or_ask_again(self, n: int, q: int, again: bool) -> None:
        broker, question = self.broker(n), self.question(q)
        if again:
            self.agree(broker, lambda: self.model.ask_again(question), lambda: broker.ask_again(question.id))
        else:
            self.agree(broker, lambda: self.model.lose(question), lambda: broker.lose(question.id))

    @precondition(lambda self: any(one.claims for one in self.model.questions.values()))
    @rule(n=which, q=which, name=names, kind=kinds, happened=st.booleans())
    def tell(self, n: int, q: int, name: str, kind: str, happened: bool) -> None:
        broker = self.broker(n)
        claimed = [one for one in self.model.questions.values() if one.claims]
        question = claimed[-1 - q % len(claimed)]
        by = Answerer(name=name, kind=AnswererKind(kind), roles=frozenset({"ops", "boss"}))
        self.agree(
            broker,
            lambda: self.model.tell(question, name, kind, happened=happened),
            lambda: broker.tell(question.id, happened=happened, by=by),
        )

    @rule(n=which)
    def die(self, n: int) -> None:
        """A process is killed, and another one started in its place. Far away, nobody hears of it."""
        index = n % len(self.brokers)
        dead = self.brokers[index]
        life = self.model.lives[dead.process.id]

        def gone(tx: Transaction) -> None:
            if (row := tx.process(dead.process.id)) is not None:
                tx.put_process(replace(row, pid=NOBODYS_PID))

        if not life.far:
            life.dead = True
            self.do(dead.store.write("die", gone))
        if dead.store is not self.brokers[index - 1].store:
            dead.store.close()
        self.running = [one for one in self.running if one[0] is not dead]
        self.tickets = [one for one in self.tickets if one[0] is not dead]
        self.brokers[index] = self.start(far=life.far)

    # --- runs ---

    @rule(n=which)
    def begin(self, n: int) -> None:
        broker, run = self.broker(n), f"run{len(self.model.runs) + 1}"
        self.agree(
            broker,
            lambda: self.model.begin(run, broker.process.id),
            lambda: broker.runs.begin(KeptRun(id=run)),
        )
        self.tickets.append((broker, run, 1))

    @precondition(lambda self: self.model.runs)
    @rule(n=which, r=which)
    def take(self, n: int, r: int) -> None:
        broker, run = self.broker(n), list(self.model.runs)[-1 - r % len(self.model.runs)]
        taken = self.agree(broker, lambda: self.model.take(run, broker.process.id), lambda: broker.runs.take(run))
        if taken is not None:
            self.tickets.append((broker, run, taken.epoch))

    @precondition(lambda self: self.model.runs)
    @rule(r=which)
    def all_take_at_once(self, r: int) -> None:
        run = list(self.model.runs)[-1 - r % len(self.model.runs)]
        kept = self.model.runs[run]

        async def together() -> Sequence[object]:
            return await asyncio.gather(*(broker.runs.take(run) for broker in self.brokers), return_exceptions=True)

        results = self.do(together())
        won = [(one, got) for one, got in zip(self.brokers, results, strict=True) if isinstance(got, KeptRun)]
        lost = {type(result).__name__ for result in results if isinstance(result, Exception)}
        if kept.state != "going":
            assert not won and lost == {"RunOver"}
        elif any(kept.holder == broker.process.id for broker in self.brokers) and self.model.alive(kept.holder):
            assert [one.process.id for one, _ in won] == [kept.holder], "only who has it in hand"
        # Who has it by then and lost it to nobody's silence may take it from the one that was silent; nobody else may.
        for broker, got in sorted(won, key=lambda one: one[1].epoch):
            self.expect(self.model.take(run, broker.process.id))
            self.beat(broker)
            self.tickets.append((broker, run, got.epoch))

    @precondition(lambda self: self.tickets)
    @rule(t=which, how=st.sampled_from(["put down", "put down", "done", "failed", "cancelled"]))
    def let_go(self, t: int, how: str) -> None:
        """Put a run down or end it, perhaps after somebody else took it up."""
        broker, run, epoch = self.tickets[-1 - t % len(self.tickets)]
        if how == "put down":
            self.agree(broker, lambda: self.model.put_down(run, epoch), lambda: broker.runs.put_down(run, epoch))
        else:
            self.agree(
                broker,
                lambda: self.model.end(run, epoch, how),
                lambda: broker.runs.end(run, epoch, RunState(how)),
            )

    @precondition(lambda self: self.model.runs)
    @rule(n=which, r=which)
    def cancel_run(self, n: int, r: int) -> None:
        broker, run = self.broker(n), list(self.model.runs)[-1 - r % len(self.model.runs)]
        self.agree(broker, lambda: self.model.cancel_run(run), lambda: broker.runs.cancel(run, by="ana"))

    # --- the switch ---

    @rule(n=which, pull=st.booleans())
    def switch(self, n: int, pull: bool) -> None:
        broker = self.broker(n)
        if pull:
            self.agree(broker, self.model.halt, lambda: broker.switch.halt(by="ana", why="fire"))
        else:
            self.agree(broker, self.model.unhalt, lambda: broker.switch.unhalt(by="ana"))

    # --- what is remembered ---

    @rule(
        n=which,
        like=st.none() | which,
        call=calls,
        amount=st.none() | odd_amounts | st.sampled_from([0, 1, 4, 5, 6]),
        schema=schemas,
        place=places,
        run=st.none() | which,
        led_astray=st.booleans(),
        times=st.sampled_from([1, 1, 4]),
    )
    def recall(
        self,
        n: int,
        like: int | None,
        call: tuple[str, dict[str, Any]],
        amount: object,
        schema: str,
        place: Mapping[str, Any],
        run: int | None,
        led_astray: bool,
        times: int,
    ) -> None:
        """Make a call, or several at once in all processes: what is remembered for it speaks, and is counted."""
        tool, args = call
        if like is not None and self.model.grants:
            tool, args = self._like(like, args)
        if amount is not None and tool == "pay":
            args = {**args, "amount": amount}
        runs = list(self.model.runs)
        run_id = runs[-1 - run % len(runs)] if run is not None and runs else ""
        leads = {args["path"]: "/etc/passwd"} if led_astray and "path" in args else {}
        worker = " > ".join(place["worker"])
        made = Made(tool, args, schema, run=run_id, session=place["session"], worker=worker, leads=leads)
        real = Call(tool=tool, args=args, schema_hash=schema, resolved=leads)
        where = {Scope.RUN: run_id, Scope.SESSION: place["session"], Scope.WORKER: worker}

        async def together() -> Sequence[Grant | None]:
            return await asyncio.gather(*(self.broker(n + i).grants.recall(real, where) for i in range(times)))

        self._hold_against(made, self.do(together()))

    def _like(self, number_: int, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """A call much like one that is remembered."""
        grant = self.model.grants[-1 - number_ % len(self.model.grants)]
        if grant.args is not None:
            return grant.tool, dict(grant.args)
        return (grant.tool, args) if grant.tool == ("pay" if "amount" in args else "write") else ("pay", args)

    def _hold_against(self, made: Made, found: Sequence[Grant | None]) -> None:
        ids = [one.id for one in self.do(self.brokers[0].grants.list(revoked=True))]
        events: list[Happened] = []
        for grant in found:
            speaking = [one for one in self.model.grants if self.model.speaks(one, made)]
            if grant is None:
                continue
            said = self.model.grants[ids.index(grant.id)]
            assert said in speaking, "it has nothing to say about this call, here and now"
            assert not said.yes or all(one.yes for one in speaking), "a no before a yes"
            assert not said.counted or all(one.counted for one in speaking), "no use is used up without need"
            events += self.model.use(said, made)
        if None in found:
            assert not [one for one in self.model.grants if self.model.speaks(one, made)], "somebody had said so"
        self.expect(events)

    @precondition(lambda self: self.model.grants)
    @rule(n=which, g=which)
    def revoke(self, n: int, g: int) -> None:
        broker, index = self.broker(n), g % len(self.model.grants)
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
            requests = [tx.request(one) for one in model.questions]
            runs = [tx.run(one) for one in model.runs]
            return requests, runs, tx.inbox(limit=1_000), tx.open_requests(), tx.grants(revoked=True), tx.head()

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
                one.rule.quorum,
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
    return sha256(f"{text}\n{entry.body}".encode()).hexdigest()


def check_laws(record: Sequence[Entry]) -> None:
    """From the record alone: what ran had been approved, by enough people, once; a no stayed a no."""
    halted = False
    state: dict[str, str] = {}
    claims: dict[str, int] = {}
    for entry in record:
        body, request = json.loads(entry.body), entry.request
        if entry.kind in ("halted", "unhalted"):
            halted = entry.kind == "halted"
        if not request:
            continue
        before = state.get(request, "")
        assert before not in ("denied", "expired", "cancelled", "ran", "failed", "told") or (
            entry.kind == "late outcome"
        ), f"{request} was {before}, and then {entry.kind}"
        if entry.kind == "claimed":
            claims[request] = claims.get(request, 0) + 1
            assert before == "approved", f"{request} was {before or 'asked'} when it ran"
            assert claims[request] == 1, "an approval is spent once"
            assert not halted, "nothing new runs"
        if entry.kind == "settled":
            state[request] = body["state"]
        elif entry.kind in ("claimed", "unknown", "ran", "failed", "told"):
            state[request] = entry.kind


def in_memory() -> AnyOrder:
    store = MemoryStore(record=True)
    return AnyOrder(lambda: store)


def in_a_file() -> AnyOrder:
    from signoff.store.sqlite import SqliteStore

    folder = TemporaryDirectory(dir=RAM)
    return AnyOrder(lambda: SqliteStore(os.path.join(folder.name, "signoff.db")), folder.cleanup)


MACHINES = {"memory": in_memory, "sqlite": in_a_file}
USUAL = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@pytest.mark.parametrize(("store", "examples"), [("memory", 60), ("sqlite", 30)])
def test_whatever_happens_in_whatever_order_the_laws_hold(store: str, examples: int) -> None:
    run_state_machine_as_test(MACHINES[store], settings=settings(USUAL, max_examples=examples, stateful_step_count=40))


@pytest.mark.nightly
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_whatever_happens_all_night(store: str) -> None:
    run_state_machine_as_test(MACHINES[store], settings=settings(USUAL, max_examples=4_000, stateful_step_count=80))


def test_the_model_knows_one_amount_from_another() -> None:
    assert number(0.1) == Fraction(1, 10) and number(True) is None and number(-1) is None and number("5") is None
    assert same({"a": 1}, {"a": 1.0}) and not same({"a": 1}, {"a": True})
