"""The options of `Signoff`: wrong ones are refused when they are given, and people may be named for each run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, RunContext
from tests.gate.agents import pays
from tests.tables import table

from signoff import (
    Actor,
    ApprovalDecision,
    ApprovalMemory,
    Signoff,
    SignoffError,
    resume,
    run_with_approval_sync,
)
from signoff.channels import open_inbox, scripted_approver
from signoff.errors import NotEntitled, WrongUse
from signoff.testing import ScriptedModel
from signoff.toolsets import filesystem_ro
from signoff.workers import Workers

YES = ApprovalDecision(approved=True)


async def waits(ctx: RunContext[Any]) -> str:
    return "ana"


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("approver", "ana", "it must be an object with `choose`, or a function of the request, not a str"),
        ("wait", "forever", "'inline', 'suspend', or a number of seconds"),
        ("wait", True, "it must be 'inline', 'suspend', a number of seconds, or a timedelta"),
        ("wait", None, "it must be 'inline', 'suspend'"),
        ("mode", "auto", "it must be one of 'interactive', 'auto_approve', 'auto_deny'"),
        ("mode", "auto_aprove", "did you mean `auto_approve`?"),
        ("memory", "grants.db", "a str has no `lookup` and no `remember`"),
        ("on_denied", "rasie", "it must be one of 'tell', 'raise'; did you mean `raise`?"),
        ("on_denied", 3, "it must be one of 'tell', 'raise'"),
        ("judge", "strict", "it must be a function"),
        ("reviewers", "yes", "it must be True or False"),
        ("labels", {"pay": "mony"}, "'pay': unknown label `mony`; did you mean `money`?"),
        ("labels", {"pay": None}, "it must be a label, or a list of labels"),
        ("labels", ["money"], "it must be a mapping of tool names to labels"),
        ("tools", "pay", "it must be a list of texts"),
        ("tools", [5], "it must be a list of texts"),
        ("secrets", "hunter2", "it must be a list of texts"),
        ("secrets", iter(["hunter2"]), "which can be read more than once"),
        ("people", {"ana": "ops"}, "'ana': the roles of a person are a list: ['ops']"),
        ("people", ["ana"], "it must be a mapping of people's names to their roles"),
        ("people", {"ana": None}, "'ana': the roles of a person are a list of texts"),
        ("people", {5: ["ops"]}, "5 is not a name"),
        ("owner", 5, "it must be a name, or a function of the RunContext"),
        ("requester", waits, "a plain function of the RunContext, not an async one"),
        ("requester", None, "it must be a name, or a function"),
        ("nested", 1, "it must be True or False"),
        ("by", "", "it must be the name of a role"),
        ("by", ["ops"], "it must be the name of a role"),
        ("native", "web_search", "it must be a mapping of native tools to policies"),
        ("observe", 5, "it must be a function"),
        ("store", 5, "an int has no `read` and no `write`"),
        ("clock", "now", "a str has no `now`"),
    ],
)
def test_a_wrong_option_is_refused_when_it_is_given(option: str, value: Any, said: str) -> None:
    with pytest.raises(WrongUse) as refused:
        Signoff([{"ask": "pay"}], **{option: value})
    assert said in str(refused.value)
    assert option in str(refused.value)


def test_a_secret_that_is_given_wrongly_is_not_shown() -> None:
    with pytest.raises(WrongUse) as refused:
        Signoff([], secrets="hunter2secret")
    assert "hunter2secret" not in str(refused.value)


@dataclass
class Deps:
    user: str


def shop(
    directory: Path, paid: list[int], not_by: str = "requester", **options: Any
) -> tuple[Signoff, Agent[Deps, Any]]:
    def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    rules = [{"ask": "pay", "not_by": not_by}]
    people = {"ana": ["ops"], "ben": ["ops"]}
    signoff = Signoff(rules, people=people, wait="suspend", store=f"sqlite:{directory / 'signoff.db'}", **options)
    output: Any = [str, DeferredToolRequests]
    agent = Agent(
        ScriptedModel(pays(5)), name="shop", deps_type=Deps, output_type=output, tools=[pay], capabilities=[signoff]
    )
    return signoff, agent


async def test_who_a_run_is_for_is_told_by_a_function_of_its_context(tmp_path: Path) -> None:
    paid: list[int] = []
    signoff, agent = shop(tmp_path, paid, requester=lambda ctx: ctx.deps.user)
    await agent.run("go", deps=Deps("ana"))
    await agent.run("go", deps=Deps("ben"))
    first, second = await signoff.pending()

    assert [first.requester, second.requester] == ["ana", "ben"]
    with pytest.raises(NotEntitled):
        await signoff.answer(first.id, YES, by="ana")
    await signoff.answer(first.id, YES, by="ben")
    await signoff.answer(second.id, YES, by="ana")
    await resume(agent, first.run, deps=Deps("ben"))
    assert paid == [5], "whoever resumes it does not change whom it was for"


async def test_a_resumed_run_keeps_its_requester(tmp_path: Path) -> None:
    paid: list[int] = []
    signoff, agent = shop(tmp_path, paid, requester=lambda ctx: ctx.deps.user)
    await agent.run("go", deps=Deps("ana"))
    [asked] = await signoff.pending()
    await signoff.cancel(asked.id, "asked anew")
    await resume(agent, asked.run)  # by somebody who does not know for whom it was
    [again] = await signoff.pending()

    assert again.requester == "ana"
    with pytest.raises(NotEntitled):
        await signoff.answer(again.id, YES, by="ana")


@pytest.mark.parametrize("returned", [None, "", 5, object()])
async def test_a_function_that_tells_no_name_stops_the_run(tmp_path: Path, returned: Any) -> None:
    paid: list[int] = []
    _, agent = shop(tmp_path, paid, requester=lambda ctx: returned)
    with pytest.raises(WrongUse, match="it must return a name"):
        await agent.run("go", deps=Deps("ana"))
    assert paid == []


async def test_a_function_that_fails_stops_the_run(tmp_path: Path) -> None:
    _, agent = shop(tmp_path, [], owner=lambda ctx: ctx.deps.nothing)
    with pytest.raises(WrongUse, match="the function failed with AttributeError"):
        await agent.run("go", deps=Deps("ana"))


async def test_an_owner_may_be_told_by_a_function_too(tmp_path: Path) -> None:
    signoff, agent = shop(tmp_path, [], not_by="owner", owner=lambda ctx: ctx.deps.user)
    await agent.run("go", deps=Deps("ana"))
    [asked] = await signoff.pending()

    with pytest.raises(NotEntitled):
        await signoff.answer(asked.id, YES, by="ana")
    await signoff.answer(asked.id, YES, by="ben")


@pytest.mark.usefixtures("sync_loop")
@table(
    ("make", "said"),
    [
        (lambda: Signoff([], aprover=None), "Signoff(aprover=…): there is no such option; did you mean `approver`?"),
        (
            lambda: Signoff([], wait="suspnd"),
            "wait='suspnd': say 'inline', 'suspend', or a number of seconds; did you mean `suspend`?",
        ),
        (lambda: Signoff(7), "Signoff(policy=7): it must be the path of a file, a Policy, or a list of rules"),
        (lambda: run_with_approval_sync(Agent("test"), mode="auto"), "mode='auto': it must be one of 'interactive'"),
        (lambda: Actor(name="ana", kind="robot"), "Actor(kind='robot'): it must be one of 'person', 'script', 'model'"),
        (lambda: Actor(name="ana", roles="ops"), "Actor(roles='ops'): it must be a set of names, as in {'ops'}"),
        (lambda: ApprovalDecision(approved=True, remember="forever"), "remember='forever': it must be one of 'none'"),
        (lambda: ApprovalMemory(5), "ApprovalMemory(5): it must be the path of a file, or None for no file"),
        (lambda: scripted_approver("approve"), "the answers of a script are a list: write ['approve']"),
        (lambda: scripted_approver(["aprove"]), "'aprove' is not an answer: say approve, deny"),
        (lambda: filesystem_ro(5), "root=5: it must be the path of a directory"),
        (lambda: filesystem_ro(max_chars=0), "max_chars=0: it must be at least 1"),
        (lambda: open_inbox("sqlite:x.db", people=["ana"]), "open_inbox(people=…): it must be people's names"),
        (lambda: Workers(5), "Workers(5): it must be what load_settings(FILE) returns"),
        (
            lambda: asyncio.get_event_loop().run_until_complete(resume(Agent("test"), 7)),
            "give a run's ID, a SuspendedRun, or the result",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_when_it_is_given(make: Callable[[], object], said: str) -> None:
    with pytest.raises((SignoffError, ValueError)) as refused:
        make()
    assert said in str(refused.value)
