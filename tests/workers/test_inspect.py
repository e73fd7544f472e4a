"""What an agent could call, found without running it: never less than what the gate would let run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.models.test import TestModel
from pydantic_ai.native_tools import MCPServerTool, WebSearchTool
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, DynamicToolset, FunctionToolset, ToolsetTool
from pydantic_ai.usage import RunUsage
from tests.workers.project import project

from signoff import Signoff
from signoff.config import load_workers
from signoff.core.verdict import Effect
from signoff.policy.engine import Policy
from signoff.policy.reach import UNSURE
from signoff.toolsets import filesystem_rw, shell_file_ops, sql
from signoff.toolsets.approval import approval_tool, with_approval
from signoff.workers.inspect import PER_RUN, AgentParts, FoundTool, InspectedAgent, tools_of
from signoff.workers.project_workers import Workers
from signoff.workers.survey import Reachable, chains_from, survey, way_to_change


def pay(amount: int) -> str:
    """Pay somebody."""
    return f"paid {amount}"


def balance() -> str:
    """What is left."""
    return "0"


class Picky(FunctionToolset[Any]):
    """A toolset of somebody else's, with code that decides."""

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> bool:
        return args.get("amount", 0) > 100

    def capability_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> list[str]:
        return ["money"] if args.get("amount") else []


def real(directory: Path) -> str:
    return os.path.realpath(directory)


async def found(*toolsets: Any, **more: Any) -> AgentParts:
    return await tools_of(InspectedAgent(agent=Agent(name="teller", toolsets=toolsets, **more)))


async def only(*toolsets: Any) -> FoundTool:
    [tool] = (await found(*toolsets)).tools
    return tool


def reach(tool: FoundTool, *rules: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    result = tool.reach([Policy.from_rules(rules)], ("teller",))
    return result.effect, result.unasked


async def test_a_plain_tool_is_asked_about_unless_a_rule_speaks() -> None:
    tool = await only(FunctionToolset([pay], id="bank"))
    assert (tool.name, tool.toolset, tool.kind, tool.bare) == ("pay", "bank", "function", False)
    assert reach(tool) == ("ask", ())
    assert reach(tool, {"allow": {"toolset": "bank", "worker": "teller"}}) == ("allow", ("rule-1",))
    assert reach(tool, {"allow": {"worker": "other"}}) == ("ask", ())
    rule = Policy.from_rules([{"allow": {"worker": "other"}}])
    assert tool.reach([rule], ()).effect == "conditional"  # of any worker


async def test_a_tool_without_arguments_is_seen_as_such() -> None:
    tool = await only(FunctionToolset([balance]))
    assert tool.bare
    assert reach(tool, {"deny": {"path": "**/.env"}}, {"allow": "balance"})[0] == "allow"


async def test_a_tool_that_asks_by_itself_does() -> None:
    toolset = FunctionToolset[Any]()
    toolset.add_function(pay, requires_approval=True)
    tool = await only(toolset)
    assert reach(tool, {"allow": "*"}) == ("ask", ())


@pytest.mark.parametrize("way", ["with_approval", "approval_tool"])
async def test_what_is_attached_in_python_is_read(way: str) -> None:
    rules = [{"allow": {"label": "money", "args": {"amount": {"<": 5}}}}]
    if way == "with_approval":
        toolset: Any = with_approval(FunctionToolset([pay]), rules, name="bank", labels={"p*": "money"})
    else:
        toolset = FunctionToolset[Any](id="bank")
        approval_tool(toolset, rules, labels="money")(pay)
    tool = await only(toolset)
    assert tool.all_labels == ("money",)
    assert reach(tool) == ("conditional", ("bank/rule-1",))
    assert reach(tool, {"ask": "money"}) == ("ask", ())
    assert reach(tool, {"allow": "data.read"}) == ("conditional", ("bank/rule-1",))


async def test_a_prefixed_tool_keeps_the_rules_of_its_own_name() -> None:
    toolset = with_approval(FunctionToolset([pay]), [{"allow": "pay"}], name="bank").prefixed("big")
    tool = await only(toolset)
    assert (tool.name, tool.all_names) == ("big_pay", {"big_pay", "pay"})
    assert reach(tool) == ("allow", ("bank/rule-1",))
    assert reach(tool, {"deny": "big_*"}) == ("deny", ())


async def test_code_that_decides_may_let_anything_run_and_is_named() -> None:
    tool = await only(Picky([pay], id="bank"))
    assert tool.labels is UNSURE
    result = tool.reach([], ("teller",))
    assert (result.effect, result.unasked) == ("conditional", ("toolset",))
    assert "Picky.needs_approval" in result.lets[0].text
    assert result.lets[0].place.file == __file__
    assert reach(tool, {"ask": "pay"}) == ("ask", ())
    assert reach(tool, {"allow": "money"}) == ("conditional", ("rule-1", "toolset"))
    assert tool.judge([], ("teller",), {"amount": 1}) is None


async def test_a_toolset_that_cannot_be_listed_hides_no_other_and_tells_no_secret() -> None:
    class Broken(FunctionToolset[Any]):
        async def get_tools(self, ctx: Any) -> Any:
            raise OSError("no route to host, with hunter2-the-second")

    look = InspectedAgent(
        agent=Agent(name="teller", toolsets=[Broken(id="far"), FunctionToolset([pay])]), secrets=("hunter2-the-second",)
    )
    result = await tools_of(look)
    assert [tool.name for tool in result.tools] == ["pay"]
    [(name, why)] = result.unknown
    assert name == "far"
    assert "no route to host" in why
    assert "hunter2" not in why


async def test_native_tools_are_offered_or_not() -> None:
    agent = Agent(name="teller", capabilities=[NativeTool(WebSearchTool())])
    [tool] = (await tools_of(InspectedAgent(agent=agent))).tools
    assert (tool.name, tool.toolset, tool.kind) == ("web_search", "native", "native")
    assert reach(tool) == ("deny", ())
    assert reach(tool, {"ask": "web_search"}) == ("deny", ())
    assert reach(tool, {"allow": "web_search"}) == ("allow", ("rule-1",))
    # Nobody sees its arguments: a rule about them is in doubt, and then it is not offered.
    assert reach(tool, {"deny": {"path": "x"}}, {"allow": "web_search"}) == ("deny", ())
    own = Policy.from_rules([{"allow": "web_search"}], name="web")
    [tool] = (await tools_of(InspectedAgent(agent=agent, native={"web_search": own}))).tools
    assert reach(tool) == ("allow", ("web/rule-1",))


async def test_servers_of_the_provider_are_told_apart() -> None:
    tools = [MCPServerTool(id=name, url=f"https://{name}.example/") for name in "ab"]
    agent = Agent(name="teller", capabilities=[NativeTool(tool) for tool in tools])
    own = {
        "mcp_server:a": (Policy.from_rules([{"allow": "*"}], name="a"),),
        "mcp_server:b": [Policy.from_rules([{rule: "mcp_server"}], name="b") for rule in ("allow", "deny")],
    }
    found = {tool.shown: tool for tool in (await tools_of(InspectedAgent(agent=agent, native=own))).tools}
    assert {tool.name for tool in found.values()} == {"mcp_server"}  # what rules call them
    assert reach(found["mcp_server:a"]) == ("allow", ("a/rule-1",))
    assert reach(found["mcp_server:b"]) == ("deny", ())
    assert reach(found["mcp_server:b"], {"allow": "*"}) == ("deny", ())


# --- toolsets that list by the run ---


class ByPrompt(FunctionToolset[Any]):
    async def get_tools(self, ctx: Any) -> Any:
        tools = await super().get_tools(ctx)
        return {name: tool for name, tool in tools.items() if name != "pay" or ctx.prompt}


class Empty(FunctionToolset[Any]):
    async def get_tools(self, ctx: Any) -> Any:
        return {}


class Plain(AbstractToolset[Any]):
    """Lists always the same, as most toolsets that somebody writes do."""

    @property
    def id(self) -> str:
        return "plain"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        definition = ToolDefinition(name="balance")
        validator = FunctionToolset[Any]([balance]).tools["balance"].function_schema.validator
        tool = ToolsetTool(
            toolset=self, tool_def=definition, max_retries=ctx.max_retries, args_validator=cast("Any", validator)
        )
        return {"balance": tool}

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        return "0"


def by_deps(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
    return definition.name != "pay" or bool(ctx.deps)


def by_name(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
    return definition.name != "pay"


def by_step(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
    return ctx.run_step > 0


def by_kind(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
    return isinstance(ctx.deps, str)


def without_deps(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
    return ctx.deps is None


def with_deps(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
    return ctx.deps is not None


def by_deps_if_any(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
    try:
        return bool(ctx.deps.admin)
    except Exception:
        return False


async def prepared(ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
    return definition if ctx.deps else None


LISTINGS: dict[str, tuple[Any, list[str], bool]] = {
    "made for each run": (DynamicToolset(lambda ctx: FunctionToolset([pay])), [], True),
    "made for each run, with rules": (with_approval(DynamicToolset(lambda ctx: None, id="d"), "allow"), [], True),
    "by the prompt": (ByPrompt([pay, balance], id="shop"), ["balance"], True),
    "by the prompt, prefixed": (ByPrompt([pay], id="shop").prefixed("my"), [], True),
    "filtered by the run": (FunctionToolset([pay, balance], id="shop").filtered(by_deps), ["balance"], True),
    "filtered by name": (FunctionToolset([pay, balance], id="shop").filtered(by_name), ["balance"], False),
    "filtered by the step": (FunctionToolset([pay], id="shop").filtered(by_step), [], True),
    "filtered by the kind of deps": (FunctionToolset([pay], id="shop").filtered(by_kind), [], True),
    "filtered where there are deps": (FunctionToolset([pay], id="shop").filtered(with_deps), [], True),
    "filtered where there are none": (FunctionToolset([pay], id="shop").filtered(without_deps), ["pay"], True),
    "filtered by deps, and errors kept": (FunctionToolset([pay], id="shop").filtered(by_deps_if_any), [], True),
    "a tool that prepares itself": (FunctionToolset([Tool(pay, prepare=prepared)], id="shop"), [], True),
    "nothing for now": (Empty([pay], id="shop"), [], True),
    "nothing at all": (FunctionToolset(id="shop"), [], False),
    "always the same": (Plain(), ["balance"], False),
}


@pytest.mark.parametrize("case", LISTINGS)
async def test_a_toolset_that_lists_by_the_run_is_not_known(case: str) -> None:
    toolset, names, is_unknown = LISTINGS[case]
    result = await found(toolset)
    assert [tool.name for tool in result.tools] == names
    assert [why for _, why in result.unknown] == ([PER_RUN] if is_unknown else [])


async def test_a_worker_that_breaks_while_it_is_made_stops_no_survey(tmp_path: Path) -> None:
    settings = project(tmp_path, {"good": "toolsets: [files]", "bad": "toolsets: [files]"})
    shop = Workers(settings, models=False)

    def build(name: str) -> InspectedAgent:
        if name == "bad":
            raise KeyError("hunter2-the-second")
        return InspectedAgent(agent=shop.worker(name).agent)

    result = await survey(load_workers(settings), settings.layers, build)
    assert set(result.built) == {"good"}
    assert "KeyError" in str(result.broken["bad"])
    assert "hunter2" not in str(result.broken["bad"])


# --- the built-in toolsets ---

COMMANDS = [
    "ls",
    "cat a",
    "rm a",
    "curl http://x",
    "git push",
    "echo $(x)",
    "cat .env",
    "sleep 9",
    "python -c 1",
    "(",
    "",
]
TRIES: list[tuple[str, Mapping[str, Any]]] = [
    *(("shell", {"command": command}) for command in COMMANDS),
    ("read_file", {"path": "a.txt"}),
    ("read_file", {"path": ".env"}),
    ("write_file", {"path": "a.txt", "content": ""}),
    ("write_file", {"path": "Makefile", "content": ""}),
    ("write_file", {"path": "drafts/a.txt", "content": ""}),
    ("move_file", {"source": "a", "target": "setup.py"}),
    ("query", {"sql": "select 1"}),
    ("query", {"sql": "drop table a"}),
    ("execute", {"sql": "select 1"}),
    ("execute", {"sql": "delete from a"}),
    ("execute", {"sql": "(("}),
]
RULES: list[list[dict[str, Any]]] = [
    [],
    [{"allow": "fs.read"}],
    [{"allow": "fs.write"}, {"allow": "data.write"}],
    [{"deny": "proc.exec"}, {"allow": "*"}],
    [{"allow": {"path": {"inside": "drafts"}}}, {"allow": {"tool": "shell", "command": "rm *"}}],
    [{"ask": "data.read"}, {"ask": "fs.read"}],
    [{"allow": {"toolset": ["sql", "shell_file_ops"]}}],
]


async def by_the_gate(tool: FoundTool, signoff: Signoff, args: Mapping[str, Any]) -> Effect:
    """What the gate itself would say in a run."""
    gate = signoff.gate
    agent = Agent(TestModel(), name="teller")
    ctx = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage(), agent=agent)
    definition = ToolDefinition(name=tool.name)
    call = gate.reader.read(ctx, definition, args, tool.owner)
    return (await gate.verdict(ctx, definition, call, tool.owner)).effect


async def test_what_the_built_in_toolsets_let_run_is_within_reach(tmp_path: Path) -> None:
    toolsets = [filesystem_rw(tmp_path), shell_file_ops(tmp_path, sandbox="off"), sql(f"sqlite:{tmp_path}/a.db")]
    tools = {tool.name: tool for tool in (await found(*toolsets)).tools}
    layers = [[Policy.from_rules(rules, root=real(tmp_path))] for rules in RULES]
    judges = [(rules, policies, Signoff(policies[0])) for rules, policies in zip(RULES, layers, strict=True)]
    for (rules, policies, signoff), (name, args) in product(judges, TRIES):
        result = tools[name].reach(policies, ("teller",))
        verdict = tools[name].judge(policies, ("teller",), args)
        assert verdict is not None
        assert verdict.effect is await by_the_gate(tools[name], signoff, args), (rules, name, args)
        if verdict.effect is Effect.ALLOW:
            assert set(verdict.rules) <= set(result.unasked), (rules, name, args)
        else:
            assert result.effect != "allow", (rules, name, args)
        assert verdict.effect is Effect.DENY or result.effect != "deny", (rules, name, args)


async def test_the_labels_of_the_built_in_toolsets_are_among_those_told(tmp_path: Path) -> None:
    toolsets = [filesystem_rw(tmp_path), shell_file_ops(tmp_path, sandbox="off"), sql(f"sqlite:{tmp_path}/a.db")]
    for tool in (await found(*toolsets)).tools:
        for name, args in TRIES:
            if name == tool.name:
                home: Any = tool.home
                assert tool.labels is not UNSURE
                assert frozenset(home.capability_labels(name, args, None)) in tool.labels, (name, args)


# --- workers ---

CHAIN = {
    "triage": "instructions: Sort.\ndelegates: [analyzer, writer]\npolicy: [{ask: {tool: read_file}}]",
    "analyzer": "instructions: Look.\ntoolsets: [reading]\ndelegates: [writer]",
    "writer": "instructions: Write.\ntoolsets: [files]\npolicy: [{deny: {tool: delete_file}}]",
}
POLICY = """
policy:
  - {allow: {tool: write_file, worker: "triage > *"}}
toolsets:
  files: {use: filesystem_rw, config: {root: notes}}
  reading: {use: filesystem_ro, config: {root: notes}}
"""


async def surveyed(
    directory: Path, workers: Mapping[str, str], file: str, **more: Any
) -> dict[tuple[str, ...], Reachable]:
    settings = project(directory, workers, file=file)
    files = load_workers(settings)
    shop = Workers(settings, workers=files, models=False)

    def build(name: str) -> InspectedAgent:
        return InspectedAgent(agent=shop.delegate(name).agent)

    result = await survey(files, settings.layers, build, **more)
    assert not result.broken
    return {(*one.chain, one.tool.name): one for one in result.tools}


async def test_every_tool_is_found_through_every_worker_that_leads_to_it(tmp_path: Path) -> None:
    tools = await surveyed(tmp_path, CHAIN, POLICY)

    def at(*way: str) -> tuple[str, tuple[str, ...]]:
        return tools[way].reach.effect, tools[way].reach.unasked

    assert at("analyzer", "read_file")[0] == "conditional"
    assert at("triage", "analyzer", "read_file") == ("ask", ())  # the caller's own rule binds below it
    assert at("writer", "delete_file") == ("deny", ())
    assert at("triage", "writer", "delete_file") == ("deny", ())
    assert at("writer", "write_file") == ("ask", ())
    assert at("triage", "writer", "write_file") == ("conditional", ("rule-1",))
    assert at("triage", "worker_call") == ("allow", ("workers/rule-1",))
    assert set(await surveyed(tmp_path, CHAIN, POLICY, names=["writer"])) < set(tools)


def test_the_ways_between_workers(tmp_path: Path) -> None:
    files = load_workers(project(tmp_path, CHAIN, file=POLICY))
    assert list(chains_from(files, "writer")) == [(("writer",), False)]
    assert list(chains_from(files, "analyzer")) == [(("analyzer",), False), (("analyzer", "writer"), False)]
    # writer is called by triage itself, and through analyzer: which, only the call tells
    assert list(chains_from(files, "triage")) == [
        (("triage",), False),
        (("triage", "analyzer"), False),
        (("triage", "writer"), True),
    ]


def test_a_limit_of_depth_ends_the_ways(tmp_path: Path) -> None:
    deep = {"a": "instructions: x\ndelegates: [b]\nlimits: {depth: 1}", "b": "instructions: x\ndelegates: [c]"}
    files = load_workers(project(tmp_path, {**deep, "c": "instructions: x\ndelegates: ['*']"}, file="policy: []"))
    assert [way for way, _ in chains_from(files, "a")] == [("a",), ("a", "b")]
    assert {way[-1] for way, _ in chains_from(files, "c")} == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("rule", "target", "changes"),
    [
        ({"allow": {"tool": "shell", "command": "tee *"}}, "signoff.yaml", True),
        ({"allow": {"tool": "shell", "command": "rm *"}}, "workers/a.yaml", True),
        ({"allow": {"tool": "shell", "command": "git status"}}, "signoff.yaml", False),
        ({"allow": "write_file"}, "signoff.yaml", False),  # the toolset itself asks about what steers this program
        ({"allow": "write_file"}, "approvals.db", True),
        ({"allow": {"tool": "write_file", "path": {"inside": "drafts"}}}, "approvals.db", False),
        ({"allow": "write_file"}, "../elsewhere.db", False),  # below the root only
        ({"allow": {"tool": "shell", "command": "cp *"}}, "../elsewhere.db", False),  # no star covers a place outside
    ],
)
async def test_a_worker_that_could_change_what_it_is_bound_by(
    rule: dict[str, Any], target: str, changes: bool, tmp_path: Path
) -> None:
    policies = (Policy.from_rules([rule], root=real(tmp_path)),)
    toolsets = [filesystem_rw(tmp_path), shell_file_ops(tmp_path, sandbox="off")]
    ways = [
        way_to_change(
            Reachable(worker="w", chain=("w",), tool=tool, policies=policies, reach=tool.reach(policies, ("w",))),
            str(tmp_path / target),
        )
        for tool in (await found(*toolsets)).tools
    ]
    assert any(ways) == changes
