"""Attempts of a run inside a call to get past its caller: rules, people, directories, native tools, secrets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, Tool
from pydantic_ai.capabilities import HandleDeferredToolCalls, NativeTool
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.native_tools import WebSearchTool
from tests.attacks.nested_kit import caller
from tests.nested.chain import OUTPUT
from tests.nested.kit import ANA, YES, World, calls, waits

from signoff import Actor, ApprovalDecision, Policy, Signoff, call_agent
from signoff.core.call import Call
from signoff.core.request import State
from signoff.core.verdict import Effect, OnTimeout
from signoff.errors import EditRefused, NotEntitled
from signoff.testing import ScriptedApprover
from signoff.toolsets import filesystem_ro, shell_readonly

SECRET = "hunter two zebra"
OUTER: list[dict[str, Any]] = [{"allow": "ask_b"}, {"ask": "pay_b"}]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


def calling(world: World, b: Agent[Any, Any], rules: Any = OUTER, **gate: Any) -> Agent[Any, Any]:
    """A, which does nothing but run B."""

    async def body(ctx: Any, question: str) -> str:
        return await call_agent(ctx, b, question)

    return caller(world, body, rules=rules, **gate)


# --- who is asked, and who may answer ---


async def test_a_mode_inside_that_approves_all_does_not_answer_for_the_caller(world: World) -> None:
    b = world.payer("b", 1, gate=world.gate([{"allow": "look_b"}], mode="auto_approve"))
    assert waits((await calling(world, b, [{"allow": ["ask_b", "look_b"]}, {"ask": "pay_b"}]).run("go")).output)
    assert set(await world.pending()) == {"a-1/b-1"}
    assert world.did == ["ask_b", "look b"]


async def test_a_caller_that_denies_whatever_is_asked_denies_it_inside(world: World) -> None:
    b = world.payer("b", 1, gate=world.gate(mode="auto_approve"))
    output = (await calling(world, b, [{"allow": ["ask_b", "look_b"]}], mode="auto_deny").run("go")).output
    assert "permission_denied" in output
    assert world.did == ["ask_b", "look b"]


@pytest.mark.parametrize("own", [False, True], ids=["the caller says nothing", "the caller lets them"])
async def test_a_reviewer_inside_counts_only_where_the_caller_lets_it(world: World, own: bool) -> None:
    everything = HandleDeferredToolCalls[Any](lambda ctx, requests: requests.build_results(approve_all=True))
    gate = world.gate([{"ask": "pay_b"}], reviewers=True, wait="inline", approver=ScriptedApprover(["deny"]))
    b = world.agent("b", calls(("pay_b", {"amount": 1}, "b-1")), *world.tools("b"), gate=gate, beside=[everything])
    await calling(world, b, reviewers=own, wait="inline", approver=ScriptedApprover(["deny"])).run("go")
    assert ("pay b 1" in world.did) is own


async def test_the_role_that_answers_for_the_caller_answers_inside(world: World) -> None:
    b = world.payer("b", 1, gate=world.gate(approver=ScriptedApprover(["approve"])))
    agent = calling(world, b, [{"allow": ["ask_b", "look_b"]}, {"ask": "pay_b"}], by="ops")
    assert waits((await agent.run("go")).output)
    [request] = (await world.pending()).values()
    assert request.requirement.role == "ops"
    with pytest.raises(NotEntitled):
        await world.broker().answer(request.id, YES, by=ANA)
    assert "pay b 1" not in world.did


@pytest.mark.parametrize("name", ["carol", "zed"])
async def test_owners_at_no_level_approve_what_they_may_not(world: World, name: str) -> None:
    b = world.payer("b", 1, gate=world.gate([{"allow": "look_b"}, {"ask": "pay_b", "not_by": "owner"}], owner="carol"))
    await calling(world, b, [{"allow": ["ask_b", "look_b"]}], owner="zed").run("go")
    [request] = (await world.pending()).values()
    with pytest.raises(NotEntitled, match="the owner"):
        await world.broker().answer(request.id, YES, by=Actor(name=name, via="test"))
    await world.answer()


# --- rules ---


@pytest.mark.parametrize("amount", [500, 50], ids=["denied", "for others"])
@pytest.mark.parametrize("via", ["broker", "inner", "outer", "stranger"])
async def test_an_edit_inside_does_not_get_past_the_caller(world: World, via: str, amount: int) -> None:
    inner: list[dict[str, Any]] = [{"ask": "pay_b"}]
    outer: list[dict[str, Any]] = [
        {"allow": "ask_b"},
        {"deny": {"tool": "pay_b", "args": {"amount": 500}}},
        {"ask": {"tool": "pay_b", "args": {"amount": 50}}, "by": "ops"},
    ]

    def build(world: World) -> Agent[Any, Any]:
        turns = calls(("pay_b", {"amount": 1}, "b-1"))
        return calling(world, world.agent("b", turns, *world.tools("b"), gate=world.gate(inner)), outer)

    world.build = build
    await world.begin()
    [request] = (await world.pending()).values()
    edit = ApprovalDecision(approved=True, edited_args={"amount": amount})
    if via == "broker":  # which knows no rules: the gate does, when the call is about to run
        await world.broker().answer(request.id, edit, by=ANA)
    else:
        rules = {"inner": inner, "outer": outer, "stranger": [{"allow": "pay_b"}]}[via]
        with pytest.raises(EditRefused):
            await Signoff(rules, store=world.store()).answer(request.id, edit, by=ANA)
        assert (await world.broker().get(request.id)).state is State.PENDING
    output = await world.go_on()
    assert waits(output) or "permission_denied" in output
    assert world.did == ["ask_b", "ask_b"]


@pytest.mark.parametrize(
    "rules",
    [
        [{"ask": "fs.read", "timeout": "1m", "on_timeout": "allow"}, {"ask": {"tool": "*"}, "by": "ops", "quorum": 2}],
        [{"allow": "fs.read"}, {"ask": {"tool": "*"}, "by": "ops", "quorum": 2}],
    ],
    ids=["asked", "allowed"],
)
def test_a_label_that_is_only_claimed_makes_nothing_easier(rules: list[dict[str, Any]]) -> None:
    policy = Policy.from_rules(rules)
    verdict = policy.judge(Call(tool="wipe", args={}, claimed=frozenset({"fs.read"})))
    assert verdict.effect is Effect.ASK
    assert (verdict.requirement.role, verdict.requirement.quorum) == ("ops", 2)
    assert verdict.requirement.on_timeout is OnTimeout.DENY


async def test_a_label_that_the_caller_gives_to_a_tool_holds_inside(world: World) -> None:
    turns = calls(("pay_b", {"amount": 1}, "b-1"))
    b = world.agent("b", turns, *world.tools("b"), gate=world.gate([{"allow": "pay_b"}]))
    outer = [{"allow": ["ask_b", "pay_b"]}, {"deny": "money"}]
    output = (await calling(world, b, outer, labels={"pay_*": "money"}).run("go")).output
    assert "permission_denied" in output
    assert world.did == ["ask_b"]


NATIVE_RULES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "by worker": (
        both := [{"deny": {"tool": "web_search", "worker": "a"}}, {"allow": ["web_search", "ask_b"]}],
        both,
        {},
    ),
    "by policy": ([{"allow": "web_search"}], [{"deny": "web_search"}, {"allow": "ask_b"}], {}),
    "by native": (
        [{"allow": "web_search"}],
        [{"allow": ["web_search", "ask_b"]}],
        {"native": {"web_search": Policy.from_rules([{"deny": "web_search"}])}},
    ),
    "by judge": (
        [{"allow": "web_search"}],
        [{"allow": ["web_search", "ask_b"]}],
        {"judge": lambda call, ctx: "deny" if call.tool == "web_search" else None},
    ),
    "not at all": ([{"allow": "web_search"}], [{"allow": ["web_search", "ask_b"]}], {}),
}


@pytest.mark.parametrize("denied", NATIVE_RULES)
async def test_a_native_tool_that_the_caller_denies_is_not_offered_inside(world: World, denied: str) -> None:
    offered: list[str] = []

    class Searching(FunctionModel):
        async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> ModelResponse:
            offered.extend(one.kind for one in model_request_parameters.native_tools)
            return ModelResponse(parts=[TextPart("found")])

        @classmethod
        def supported_native_tools(cls) -> Any:
            return frozenset({WebSearchTool})

    inner, outer, options = NATIVE_RULES[denied]
    model = Searching(lambda messages, info: ModelResponse(parts=[TextPart("found")]))
    capabilities = [NativeTool(WebSearchTool()), world.gate(inner)]
    b: Agent[Any, Any] = Agent(model, name="b", output_type=OUTPUT, capabilities=capabilities)
    assert (await calling(world, b, outer, **options).run("go")).output == "found"
    assert offered == (["web_search"] if denied == "not at all" else [])


# --- directories ---


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project, and a directory in it that others start from."""
    directory = tmp_path / "project"
    (directory / "sub/secrets").mkdir(parents=True)
    (directory / "sub/secrets/key").write_text(SECRET)
    (directory / "sub/readme").write_text("hello")
    return directory


def denying(project: Path, *allowed: str) -> Policy:
    rules = [{"deny": {"path": "sub/secrets/**"}}, {"allow": ["ask_b", *allowed]}]
    return Policy.from_rules(rules, root=str(project))


PATHS = {"secrets/key": False, "../sub/secrets/key": False, "./x/../secrets/key": False, "readme": True}


@pytest.mark.parametrize("path", PATHS)
async def test_a_path_from_another_directory_does_not_get_past_the_callers_rule(
    world: World, project: Path, path: str
) -> None:
    def read_file(path: str) -> str:
        world.did.append(path)
        return (project / "sub" / path).read_text()

    (project / "sub/x").mkdir()
    own = Policy.from_rules([{"allow": "read_file"}], root=str(project / "sub"))
    b = world.agent("b", calls(("read_file", {"path": path}, "b-1")), read_file, gate=world.gate(own))
    output = (await calling(world, b, denying(project, "read_file")).run("go")).output
    assert (path in world.did) is PATHS[path], output
    assert SECRET not in output


@pytest.mark.parametrize("nested", [False, True], ids=["alone", "inside"])
@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("read_file", {"path": "secrets/key"}),
        ("read_file", {"path": "link"}),
        ("shell", {"command": "cat secrets/key"}),
        ("shell", {"command": "cat ./secrets/../secrets/key"}),
        ("shell", {"command": "cat link"}),
    ],
)
async def test_a_toolset_that_starts_from_a_directory_of_its_own_is_held_by_rules_of_the_project(
    world: World, project: Path, tool: str, args: dict[str, Any], nested: bool
) -> None:
    (project / "sub/link").symlink_to("secrets/key")
    toolset = filesystem_ro(project / "sub") if tool == "read_file" else shell_readonly(project / "sub", sandbox="off")
    rules = denying(project, tool)
    b = world.agent("b", calls((tool, args, "b-1")), toolsets=[toolset], gate=world.gate(rules))
    output = (await (calling(world, b, rules) if nested else b).run("go")).output
    assert "permission_denied" in output and "sub/secrets/**" in output
    assert SECRET not in output


@pytest.mark.parametrize(
    ("tool", "args"), [("read_file", {"path": "readme"}), ("shell", {"command": "cat readme"})], ids=["file", "shell"]
)
async def test_what_the_projects_rules_leave_alone_is_read(
    world: World, project: Path, tool: str, args: dict[str, Any]
) -> None:
    toolset = filesystem_ro(project / "sub") if tool == "read_file" else shell_readonly(project / "sub", sandbox="off")
    rules = denying(project, tool)
    b = world.agent("b", calls((tool, args, "b-1")), toolsets=[toolset], gate=world.gate(rules))
    assert "hello" in (await calling(world, b, rules).run("go")).output


# --- secrets ---


@pytest.mark.parametrize(
    ("outer", "ends"),
    [
        ("allow", "well"),
        pytest.param("allow", "badly"),
        pytest.param("ask", "well"),
        pytest.param("ask", "badly"),
    ],
)
async def test_secrets_of_a_gate_inside_stay_off_the_record(world: World, ends: str, outer: str) -> None:
    def look_b(dsn: str) -> str:
        return f"connected with {SECRET}"

    def pay_b(dsn: str) -> str:
        if ends == "badly":
            raise OSError(f"cannot connect with {SECRET}")
        return f"paid with {SECRET}"

    def build(world: World) -> Agent[Any, Any]:
        rules = [{"allow": "look_b"}, {"ask": "pay_b"}, {"deny": "drop_b"}]
        made = [(tool, {"dsn": f"db {SECRET}"}, f"b-{tool}") for tool in ("look_b", "drop_b", "pay_b")]
        tools = [look_b, pay_b, Tool(look_b, name="drop_b")]
        b = world.agent("b", calls(*made), *tools, gate=world.gate(rules, secrets=[SECRET]))
        return calling(world, b, [{outer: "ask_b"}, {"allow": "look_b"}])

    world.build = build
    output = await world.begin()
    if outer == "ask":
        await world.answer("a-1")
        output = await world.go_on()
    assert SECRET not in str(output.metadata)
    request = await world.answer("a-1/b-pay_b")
    assert SECRET not in request.title
    if ends == "badly":
        with pytest.raises(OSError, match="cannot connect"):
            await world.go_on()
    else:
        assert SECRET in await world.go_on(), "the caller's model is told what the tool said"
    run = await world.run()
    assert run.detail and SECRET not in run.detail
    for one in await world.requests():
        assert one.claim is not None and SECRET not in f"{one.claim.error} {one.claim.preview}"
    record = await world.store().read(lambda tx: "\n".join(f"{one.kind} {one.body}" for one in tx.record.entries()))
    assert "asked" in record and "run ended" in record
    assert SECRET not in record
