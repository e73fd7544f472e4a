"""Runs that outlive their process: asked here, answered anywhere, gone on with elsewhere, each call once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.run import AgentRunResult
from tests.gate.agents import Till, agent_with, calls, pays, returns
from tests.ready import ready

from signoff import ApprovalDecision, Signoff
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.core.run import RunState
from signoff.core.terms import Budget, Scope, Terms
from signoff.errors import EditRefused, Halted, RunOver, RunTaken
from signoff.gate import run_saver
from signoff.gate.gated_calls import idempotency_key
from signoff.gate.resume import resume_run
from signoff.policy.offer import offers
from signoff.store.sqlite import SqliteStore
from signoff.testing import ScriptedApprover, ScriptedModel

YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False, note="not today")
ANA = Actor(name="ana")
RULES: list[dict[str, Any]] = [{"allow": "look"}, {"ask": "pay"}]


@pytest.fixture
def till() -> Till:
    return Till()


@pytest.fixture
def process(tmp_path: Path) -> Callable[..., Signoff]:
    """A gate as another process would make it, over the same file."""

    def start(*, dies: bool = False, **options: Any) -> Signoff:
        given = {"wait": "suspend", "store": SqliteStore(ready(tmp_path / "signoff.db")), **options}
        signoff = Signoff(given.pop("policy", RULES), **given)
        if dies:  # whoever looks for it finds nobody
            signoff.broker.ledger._process = replace(signoff.broker.process, born="long ago")
        return signoff

    return start


Process = Callable[..., Signoff]


async def asked(signoff: Signoff, turns: list[dict[str, Any]], till: Till, **options: Any) -> str:
    """Run until it waits; the id of the run."""
    result = await agent_with(signoff, turns, till, suspends=True, **options).run("go")
    assert isinstance(result.output, DeferredToolRequests)
    return (await signoff.pending())[0].run


async def resumed(signoff: Signoff, turns: list[dict[str, Any]], till: Till, run: str) -> AgentRunResult[Any]:
    return await resume_run(agent_with(signoff, turns, till, suspends=True), run)


async def test_asked_here_answered_there_gone_on_with_elsewhere(process: Process, till: Till) -> None:
    run = await asked(process(), pays(5), till)
    there = process()
    [request] = await there.pending()
    await there.answer(request.id, YES, by="ana")
    assert (await there.broker.runs.status(run)).word == "ready"
    elsewhere = process()
    result = await resumed(elsewhere, pays(5), till, run[:4])
    assert till.paid == [(5, "shop")]
    assert result.output == "paid 5 to shop"
    with pytest.raises(RunOver, match="done"):
        await resumed(process(), pays(5), till, run)
    kept = await there.broker.get(request.id)
    assert kept.state is State.SUCCEEDED
    assert kept.claim is not None and kept.claim.preview == "paid 5 to shop" and kept.claim.digest
    kinds = [one.kind for one in await there.broker.store.read(lambda tx: tx.record.entries())]
    assert kinds == ["run started", "asked", "voted", "settled", "run resumed", "claimed", "ran", "run ended"]


async def test_a_yes_to_edited_arguments_that_are_asked_about_again_counts(process: Process, till: Till) -> None:
    run = await asked(process(), pays(5), till)
    edited = ApprovalDecision(approved=True, edited_args={"amount": 7, "to": "shop"})
    for changed, answer in (([], edited), ([{"deny": "drop"}], YES), ([{"deny": "other"}], YES)):
        there = process(policy=[*RULES, *changed])
        if changed:
            await resumed(there, pays(5), till, run)
        [request] = await there.pending()
        assert request.args == {"amount": 7 if changed else 5, "to": "shop"}
        await there.answer(request.id, answer, by="ana")
    result = await resumed(there, pays(5), till, run)
    assert till.paid == [(7, "shop")] and "A person changed the arguments" in str(result.output)


async def test_later_questions_name_what_ran_not_what_the_model_asked_for(process: Process, till: Till) -> None:
    turns = [calls(("pay", {"amount": amount})) for amount in (5, 6, 8)] + [{"say": "{{last}}"}]
    run = await asked(process(), turns, till)
    for edited, before in ((71, []), (72, [71]), (None, [71, 72])):
        there = process()  # nothing of the calls before is left in its memory
        [request] = await there.pending()
        assert [one.summary for one in request.context.recent] == [f'pay(amount={one}, to="shop")' for one in before]
        args = {"amount": edited, "to": "shop"} if edited else None
        await there.answer(request.id, ApprovalDecision(approved=True, edited_args=args), by="ana")
        await resumed(there, turns, till, run)
    assert till.paid == [(71, "shop"), (72, "shop"), (8, "shop")]
    titles = [item.title for item in await there.broker.store.read(lambda tx: tx.past.recent(limit=5))]
    assert titles == ['pay(amount=8, to="shop")', 'pay(amount=72, to="shop")', 'pay(amount=71, to="shop")']

    here = process(wait="inline", approver=ScriptedApprover(['edit:{"amount": 73, "to": "shop"}', "approve"]))
    await agent_with(here, turns[1:], till).run("go")
    newest = (await here.broker.store.read(lambda tx: tx.past.recent(limit=1)))[0]
    assert [one.summary for one in newest.context.recent] == ['pay(amount=73, to="shop")']


async def test_a_question_names_what_the_same_answer_of_the_model_did_before_it(process: Process, till: Till) -> None:
    turns = [calls(("look", {})), calls(("look", {}), ("pay", {"amount": 9}), ("pay", {"amount": 5})), {"say": "done"}]
    gate = process(policy=[{"allow": "look"}, {"deny": {"tool": "pay", "amount": 9}}])
    await asked(gate, turns, till)
    [request] = await gate.pending()
    before = [(one.summary, one.outcome) for one in request.context.recent]
    assert before[0] == ("look()", "success"), "of the answer before"
    assert sorted(before[1:]) == [("look()", "success"), ('pay(amount=9, to="shop")', "denied")]


async def test_what_ran_in_the_same_step_is_not_repeated(process: Process, till: Till) -> None:
    looked: list[int] = []
    turns = [calls(("look", {}), ("pay", {"amount": 5}), ("pay", {"amount": 6})), {"say": "{{last}}"}]

    def look() -> int:
        looked.append(1)
        return 100

    till.look = look  # type: ignore[method-assign]
    run = await asked(process(), turns, till)
    signoff = process()
    first, second = await signoff.pending()
    await signoff.answer(first.id, YES, by="ana")
    still = await resumed(signoff, turns, till, run)
    assert isinstance(still.output, DeferredToolRequests), "the decided part ran, the rest is open"
    assert till.paid == [(5, "shop")]
    await process().answer(second.id, NO, by="ben")
    result = await resumed(process(), turns, till, run)
    assert till.paid == [(5, "shop")]
    assert looked == [1]
    assert [outcome for outcome, _ in returns(result.all_messages())] == ["success", "success", "denied"]


async def test_a_result_that_did_not_reach_the_history_is_told_not_repeated(process: Process, till: Till) -> None:
    run = await asked(process(), pays(5), till)
    await process().answer((await process().pending())[0].id, YES, by="ana")
    dies = process(dies=True)
    agent = agent_with(dies, pays(5), till, suspends=True)

    async def killed(*_: Any, **__: Any) -> None:
        raise ConnectionError("killed")

    dies.broker.runs.end = killed  # type: ignore[method-assign]
    dies.broker.runs.save_later = lambda _, **__: None  # type: ignore[method-assign]
    with pytest.raises(ConnectionError, match="killed"):
        await resume_run(agent, run)
    await dies.broker.store.flush()
    assert till.paid == [(5, "shop")]
    result = await resumed(process(), pays(5), till, run)
    assert result.output == "paid 5 to shop"
    assert till.paid == [(5, "shop")]


@pytest.mark.parametrize("happened", [True, False])
async def test_an_unknown_outcome_waits_for_a_persons_word(process: Process, till: Till, happened: bool) -> None:
    run = await asked(process(), pays(5), till)
    dies = process(dies=True)
    [request] = await dies.pending()
    await dies.answer(request.id, YES, by="ana")
    await dies.broker.runs.take(run)
    await dies.broker.claim(request.id)
    signoff = process()
    waiting = await resumed(signoff, pays(5), till, run)
    assert isinstance(waiting.output, DeferredToolRequests)
    assert (await signoff.broker.get(request.id)).state is State.UNKNOWN
    [item] = await signoff.broker.inbox()
    assert (item.id, item.state) == (request.id, State.UNKNOWN)
    await signoff.broker.tell(request.id, happened=happened, by=ANA, note="it is on the statement")
    result = await resumed(process(), pays(5), till, run)
    assert till.paid == []
    if happened:
        assert "ana confirmed" in result.output
        return
    assert isinstance(result.output, DeferredToolRequests), "a fresh approval is needed"
    [again] = await signoff.pending()
    assert again.id != request.id
    await signoff.answer(again.id, YES, by="ana")
    assert (await resumed(process(), pays(5), till, run)).output == "paid 5 to shop"
    assert till.paid == [(5, "shop")]


async def test_an_edit_made_elsewhere_is_checked_against_the_schema_and_the_policy(
    process: Process, till: Till
) -> None:
    rules = [*RULES[:1], {"deny": {"tool": "pay", "args": {"amount": {">": 100}}}}, {"ask": "pay"}]
    run = await asked(process(policy=rules), pays(5), till)
    there = process(policy=rules)
    [request] = await there.pending()
    for args, problem in (
        ({"amount": "many"}, "amount"),
        ({"amount": 5, "for": "x"}, "for"),
        ({}, "amount"),
        ({"amount": 101}, "policy denies"),
    ):
        with pytest.raises(EditRefused, match=problem):
            await there.answer(request.id, ApprovalDecision(approved=True, edited_args=args), by="ana")
    await there.answer(request.id, ApprovalDecision(approved=True, edited_args={"amount": 4, "to": "ben"}), by="ana")
    result = await resumed(process(policy=rules), pays(5), till, run)
    assert till.paid == [(4, "ben")]
    assert "A person changed the arguments" in result.output


async def test_nobody_takes_a_run_that_is_in_hand_and_a_stale_hand_claims_nothing(process: Process, till: Till) -> None:
    run = await asked(process(), pays(5), till)
    first, second = process(), process()
    [request] = await first.pending()
    await first.answer(request.id, YES, by="ana")
    taken = await first.broker.runs.take(run)
    with pytest.raises(RunTaken, match="process"):
        await second.broker.runs.take(run)
    await first.broker.runs.put_down(run, taken.epoch)
    await second.broker.runs.take(run)
    with pytest.raises(RunTaken, match="taken over by another"):
        await first.broker.claim(request.id, run=run, epoch=taken.epoch)


async def test_a_run_cancelled_from_outside_is_over(process: Process, till: Till) -> None:
    run = await asked(process(), pays(5), till)
    signoff = process()
    [request] = await signoff.pending()
    await signoff.answer(request.id, YES, by="ana")
    await signoff.broker.runs.cancel(run, by="ben", reason="wrong shop")
    assert (await signoff.broker.get(request.id)).state is State.CANCELLED
    with pytest.raises(RunOver, match="wrong shop"):
        await resumed(process(), pays(5), till, run)
    assert till.paid == []


async def test_while_halted_nothing_new_runs_and_everything_can_go_on_later(process: Process, till: Till) -> None:
    run = await asked(process(), pays(5), till)
    signoff = process()
    [request] = await signoff.pending()
    await signoff.answer(request.id, YES, by="ana")
    await signoff.broker.switch.halt(by="ben", why="something is odd")
    with pytest.raises(Halted, match=r"halted by ben .*: “something is odd”"):
        await resumed(process(), pays(5), till, run)
    with pytest.raises(Halted):
        await agent_with(process(), [calls(("look", {})), {"say": "x"}], till, suspends=True).run("go")
    assert till.paid == []
    assert (await signoff.broker.get(request.id)).state is State.APPROVED
    await signoff.broker.switch.unhalt(by="ben")
    assert (await resumed(process(), pays(5), till, run)).output == "paid 5 to shop"


async def test_a_run_that_fails_withdraws_its_questions(process: Process, till: Till) -> None:
    class Broken:
        def choose(self, request: Any, *, mode: Any) -> ApprovalDecision:
            raise RuntimeError("no screen")

    signoff = process(wait="inline", approver=Broken())
    with pytest.raises(RuntimeError, match="no screen"):
        await agent_with(signoff, pays(5), till).run("go")
    [status] = await signoff.broker.runs.list()
    assert status.run.state is RunState.FAILED
    assert "no screen" in status.run.detail
    assert await signoff.broker.inbox() == []


async def test_a_run_that_waits_in_place_is_kept_from_the_moment_it_asks(process: Process, till: Till) -> None:
    """Whatever the process does next, a second one can find the run and its question."""
    found: list[str] = []

    class Looks:
        async def choose(self, request: Any, *, mode: Any) -> ApprovalDecision:
            other = process()
            [status] = await other.broker.runs.list(going=True)
            found.append(status.word)
            assert status.run.tip and status.run.rest
            await other.answer(request.id, YES, by="ben")
            return ApprovalDecision(approved=False)  # too late

    signoff = process(wait="inline", approver=Looks())
    result = await agent_with(signoff, pays(5), till).run("go")
    assert found == ["waiting"]
    assert result.output == "paid 5 to shop"


async def test_the_key_of_a_call_is_the_same_when_it_is_made_again(process: Process) -> None:
    keys: list[str] = []

    def pay(amount: int) -> str:
        keys.append(idempotency_key())
        return "paid"

    def agent(signoff: Signoff) -> Agent[Any, Any]:
        return Agent(
            ScriptedModel(pays(5, 6)), output_type=[str, DeferredToolRequests], tools=[pay], capabilities=[signoff]
        )

    signoff = process(dies=True)
    await agent(signoff).run("go")
    first, second = await signoff.pending()
    run = first.run
    await signoff.answer(first.id, YES, by="ana")
    await signoff.answer(second.id, YES, by="ana")

    async def killed(*_: Any, **__: Any) -> None:
        raise ConnectionError("killed")

    dies = process(dies=True)
    dies.broker.finish = lambda *_, **__: None  # type: ignore[method-assign]
    dies.broker.runs.save_later = lambda _, **__: None  # type: ignore[method-assign]
    dies.broker.runs.end = killed  # type: ignore[method-assign]
    with pytest.raises(ConnectionError, match="killed"):
        await resume_run(agent(dies), run)
    assert len(set(keys)) == 2, "two calls, two keys"
    after = process()
    await after.broker.sweep()
    for request in (first, second):
        await after.broker.tell(request.id, happened=False, by=ANA)
    await resume_run(agent(after), run)
    for request in await after.pending():
        await after.answer(request.id, YES, by="ana")
    await resume_run(agent(process()), run)
    assert set(keys[:2]) == set(keys[2:])


async def test_secrets_are_told_apart_in_every_process_and_stay_out_of_the_record(process: Process) -> None:
    logged: list[str] = []

    def login(password: SecretStr, token: str) -> str:
        logged.append(password.get_secret_value())
        return f"token={token}"

    turns = [calls(("login", {"password": "hunter2hunter2", "token": "tok-abcdef123456"})), {"say": "in"}]

    def agent(signoff: Signoff) -> Agent[Any, Any]:
        return Agent(
            ScriptedModel(turns), output_type=[str, DeferredToolRequests], tools=[login], capabilities=[signoff]
        )

    rules = [{"ask": "login"}]
    options = {"policy": rules, "secrets": ["tok-abcdef123456"]}
    await agent(process(**options)).run("go")
    there = process(**options)
    [request] = await there.pending()
    await there.answer(request.id, YES, by="ana")
    await resume_run(agent(process(**options)), request.run)
    assert logged == ["hunter2hunter2"]
    record = await there.broker.store.read(lambda tx: "\n".join(one.body for one in tx.record.entries()))
    assert "hunter2" not in record
    assert "abcdef" not in record


async def test_a_pattern_is_remembered_for_what_it_spells_out_and_no_more(process: Process, till: Till) -> None:
    signoff = process()
    await agent_with(signoff, pays(50), till, suspends=True).run("go")
    [request] = await signoff.pending()
    wide = next(one for one in offers(request) if one.name == "amount")
    terms = Terms(scope=Scope.PROJECT, match=wide.match, budget=Budget(arg="amount", limit=Decimal(120), daily=True))
    await signoff.answer(request.id, replace(YES, terms=terms), by="ana")
    await resumed(process(), pays(50), till, request.run)
    later = process()
    for amount in (50, 50, 20, 1, 51, 1_000_000):
        await agent_with(later, pays(amount), till, suspends=True).run("go")
    assert [paid for paid, _ in till.paid] == [50, 50, 50, 20], "50 of the first approval, then 120 of the budget"
    assert [one.args["amount"] for one in await later.pending()] == [1, 51, 1_000_000]


async def test_what_was_approved_is_not_asked_again_where_policy_allows_it_by_now(process: Process, till: Till) -> None:
    run = await asked(process(), pays(5), till)
    signoff = process()
    [request] = await signoff.pending()
    await signoff.answer(request.id, YES, by="ana")
    lenient = process(policy=[{"allow": {"tool": "pay", "args": {"amount": {"<=": 5}}}}])
    await resumed(lenient, pays(5), till, run)
    assert till.paid == [(5, "shop")] and not await lenient.pending()
    assert (await lenient.broker.get(request.id)).state is State.SUCCEEDED, "and the approval is spent"


async def test_messages_are_stored_once(process: Process, till: Till) -> None:
    signoff = process()
    history: list[Any] = []
    for _ in range(3):
        agent = agent_with(signoff, [{"say": "hello " * 50}] * 3, till, suspends=True)
        history = (await agent.run("hi " * 50, message_history=history)).all_messages()
    turns = pays(5)
    await agent_with(signoff, [{"say": "x"}] * 3 + turns, till, suspends=True).run("pay", message_history=history)
    first = (await signoff.pending())[0]
    run = await signoff.broker.runs.get(first.run)
    segments = await signoff.broker.runs.messages(run)
    assert [one.count for one in segments] == [6, 2], "what was there before, and what is new"
    await agent_with(signoff, [{"say": "x"}] * 3 + turns, till, suspends=True).run("pay", message_history=history)
    second = (await signoff.pending())[1]
    again = await signoff.broker.runs.messages(await signoff.broker.runs.get(second.run))
    assert again[0] == segments[0], "the history is not written again"


async def test_asked_in_place_with_a_durable_store(process: Process, till: Till) -> None:
    signoff = process(wait="inline", approver=ScriptedApprover(["approve", "deny"]))
    result = await agent_with(signoff, pays(5, 6), till).run("go")
    assert till.paid == [(5, "shop")]
    assert [outcome for outcome, _ in returns(result.all_messages())] == ["success", "denied"]
    [status] = await signoff.broker.runs.list()
    assert status.run.state is RunState.DONE


async def test_whoever_watches_a_resumed_run_hears_what_was_denied_meanwhile(process: Process, till: Till) -> None:
    turns = pays(5)
    run = await asked(process(), turns, till)
    heard: list[tuple[str, str, str]] = []
    later = process(observe=lambda event: heard.append((str(event.what), event.by, event.text)))
    await later.answer((await later.pending())[0].id, NO, by=ANA)
    await resume_run(agent_with(later, turns, till, suspends=True), run)
    assert heard == [("denied", "ana", "not today")]


async def test_an_approval_that_policy_denies_by_now_comes_to_nothing_and_says_why(
    process: Process, till: Till
) -> None:
    turns = pays(5)
    run = await asked(process(), turns, till)
    later = process(policy=[{"deny": "pay", "reason": "the till is closed"}])
    [request] = await later.pending()
    await later.answer(request.id, YES, by=ANA)
    result = await resume_run(agent_with(later, turns, till, suspends=True), run)
    assert [outcome for outcome, _ in returns(result.all_messages())] == ["denied"] and not till.paid
    settled = await later.broker.get(request.id)
    assert settled.decision is not None
    assert (settled.state, settled.decision.note) == (State.CANCELLED, "policy denies it: the till is closed")


@pytest.mark.parametrize("rule", ["ask", "allow"])
async def test_a_result_is_serialised_once_for_what_is_shown_and_what_is_saved(
    process: Process, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    serialised = list[Any]()
    to_json = run_saver.to_json

    def noted(value: Any, **options: Any) -> bytes:
        serialised.append(value)
        return to_json(value, **options)

    monkeypatch.setattr(run_saver, "to_json", noted)
    approver = ScriptedApprover([YES])
    signoff = process(wait="inline", approver=approver, policy=[{rule: "list_all"}])
    agent = Agent(ScriptedModel([calls(("list_all", {})), {"say": "done"}]), capabilities=[signoff])

    @agent.tool_plain
    def list_all() -> dict[str, int]:
        return {"one": 1}

    assert (await agent.run("go")).output == "done"
    assert serialised == [{"one": 1}]


def test_a_store_that_only_the_file_names_is_not_missed_silently(tmp_path: Path) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text("store: sqlite:other.db\npolicy: []\n")
    with pytest.warns(RuntimeWarning, match=r"(?s)signoff.yaml names a store, and this .* none: .*store="):
        Signoff(file, wait="suspend")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Signoff(file)  # it waits here for the answer
        Signoff(file, wait="suspend", store="memory:")
