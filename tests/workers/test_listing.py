"""What an agent could call, found without running it, with the gate's verdict on one call of each tool."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.native_tools import MCPServerTool, WebSearchTool
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import DynamicToolset, ExternalToolset, FunctionToolset

from signoff import Signoff
from signoff.core.verdict import Effect
from signoff.policy.engine import Policy
from signoff.toolsets import filesystem_rw, shell_file_ops, sql
from signoff.toolsets.approval import approval_tool, with_approval
from signoff.workers.changes import way_to_change
from signoff.workers.listing import PER_RUN, ListedTool, ToolListing, tools_of


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


async def found(*toolsets: Any, rules: Any = (), **more: Any) -> ToolListing:
    policy = rules if isinstance(rules, Policy) else Policy.from_rules(rules)
    return await tools_of(Agent(name="teller", toolsets=toolsets), Signoff(policy, **more))


async def only(toolset: Any, *rules: Mapping[str, Any]) -> ListedTool:
    [tool] = (await found(toolset, rules=rules)).tools
    return tool


def told(tool: ListedTool) -> tuple[str, tuple[str, ...]]:
    """What the gate says to the sample call, and the rules that can let calls run."""
    return str(tool.verdict.effect), tuple(rule.id for rule in tool.lets)


async def test_a_plain_tool_is_asked_about_unless_a_rule_speaks() -> None:
    bank = FunctionToolset[Any]([pay], id="bank")
    tool = await only(bank)
    assert (tool.name, tool.toolset, tool.kind, tool.call.args) == ("pay", "bank", "function", {"amount": 0})
    assert told(tool) == ("ask", ())
    assert told(await only(bank, {"allow": {"toolset": "bank", "worker": "teller"}})) == ("allow", ("rule-1",))
    assert told(await only(bank, {"allow": {"worker": "other"}})) == ("ask", ())
    small = {"allow": {"tool": "pay", "args": {"amount": {"<": 5}}}}
    assert told(await only(bank, small)) == ("allow", ("rule-1",))
    large = {"allow": {"tool": "pay", "args": {"amount": {">": 5}}}}
    assert told(await only(bank, large)) == ("ask", ("rule-1",))  # another call may run


async def test_a_sample_has_what_must_be_given_in_words_that_rules_are_about() -> None:
    def move(source: str, target: str, kind: Literal["copy", "link"], deep: bool, mode: int = 0) -> str:
        return ""

    tool = await only(FunctionToolset([move]))
    assert tool.call.args == {"source": "example.txt", "target": "other.txt", "kind": "copy", "deep": False}
    definition = ToolDefinition(
        name="odd", parameters_json_schema={"type": "object", "required": ["a"], "properties": {"a": {"type": "odd"}}}
    )
    [odd] = (await found(ExternalToolset([definition]))).tools
    assert (odd.call.args, odd.kind, told(odd)) == ({}, "external", ("ask", ()))


async def test_a_tool_that_asks_by_itself_does() -> None:
    toolset = FunctionToolset[Any]()
    toolset.add_function(pay, requires_approval=True)
    assert told(await only(toolset, {"allow": "*"})) == ("ask", ())


@pytest.mark.parametrize("way", ["with_approval", "approval_tool"])
async def test_what_is_attached_in_python_is_read(way: str) -> None:
    rules = [{"allow": {"label": "money", "args": {"amount": {"<": 5}}}}]
    if way == "with_approval":
        toolset: Any = with_approval(FunctionToolset([pay]), rules, name="bank", labels={"p*": "money"})
    else:
        toolset = FunctionToolset[Any](id="bank")
        approval_tool(toolset, rules, labels="money")(pay)
    tool = await only(toolset)
    assert (tool.call.labels, told(tool)) == (frozenset({"money"}), ("allow", ("bank/rule-1",)))
    assert told(await only(toolset, {"ask": "money"})) == ("ask", ())


async def test_a_prefixed_tool_keeps_the_rules_of_its_own_name() -> None:
    toolset = with_approval(FunctionToolset([pay]), [{"allow": "pay"}], name="bank").prefixed("big")
    tool = await only(toolset)
    assert (tool.name, tool.all_names) == ("big_pay", {"big_pay", "pay"})
    assert told(tool) == ("allow", ("bank/rule-1",))
    assert told(await only(toolset, {"deny": "big_*"})) == ("deny", ())


async def test_code_that_decides_is_asked_about_the_sample() -> None:
    picky = Picky([pay], id="bank")
    assert told(await only(picky)) == ("allow", ())
    assert told(await only(picky, {"ask": "pay"})) == ("ask", ())
    assert told(await only(picky, {"allow": "money"})) == ("allow", ("rule-1",))  # with an amount

    class Refuses(FunctionToolset[Any]):
        def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> bool:
            raise PermissionError("closed on Sundays")

    tool = await only(Refuses([pay]))
    assert (tool.verdict.effect, tool.verdict.reason) == (Effect.DENY, "closed on Sundays")


async def test_a_judge_of_the_programs_own_is_not_asked() -> None:
    asked: list[object] = []
    gate = Signoff([{"allow": "pay"}], judge=lambda call, ctx: asked.append(call))
    [tool] = (await tools_of(Agent(name="teller", toolsets=[FunctionToolset([pay])]), gate)).tools
    assert (told(tool)[0], asked) == ("allow", [])


async def test_a_toolset_that_cannot_be_listed_hides_no_other_and_tells_no_secret() -> None:
    class Broken(FunctionToolset[Any]):
        async def get_tools(self, ctx: Any) -> Any:
            raise OSError("no route to host, with hunter2-the-second")

    result = await found(Broken(id="far"), FunctionToolset([pay]), secrets=("hunter2-the-second",))
    assert [tool.name for tool in result.tools] == ["pay"]
    [(name, why)] = result.unknown
    assert name == "far"
    assert "no route to host" in why
    assert "hunter2" not in why


async def natives(tools: Sequence[Any], *rules: Mapping[str, Any], **own: Any) -> dict[str, str]:
    agent = Agent(name="teller", capabilities=[NativeTool(tool) for tool in tools])
    listed = (await tools_of(agent, Signoff(rules, **own))).tools
    assert {(tool.toolset, tool.kind) for tool in listed} == {("native", "native")}
    return {tool.shown: str(tool.verdict.effect) for tool in listed}


async def test_native_tools_are_offered_or_not() -> None:
    search = [WebSearchTool()]
    assert await natives(search) == {"web_search": "deny"}
    assert await natives(search, {"ask": "web_search"}) == {"web_search": "deny"}
    assert await natives(search, {"allow": "web_search"}) == {"web_search": "allow"}
    # Nobody sees its arguments: a rule about them is in doubt, and then it is not offered.
    assert await natives(search, {"deny": {"path": "x"}}, {"allow": "web_search"}) == {"web_search": "deny"}
    own = Policy.from_rules([{"allow": "web_search"}], name="web")
    assert await natives(search, native={"web_search": own}) == {"web_search": "allow"}


async def test_servers_of_the_provider_are_told_apart() -> None:
    tools = [MCPServerTool(id=name, url=f"https://{name}.example/") for name in "ab"]
    own = {
        "mcp_server:a": (Policy.from_rules([{"allow": "*"}], name="a"),),
        "mcp_server:b": [Policy.from_rules([{rule: "mcp_server"}], name="b") for rule in ("allow", "deny")],
    }
    assert await natives(tools, native=own) == {"mcp_server:a": "allow", "mcp_server:b": "deny"}


# --- toolsets that list by the run ---


class Empty(FunctionToolset[Any]):
    async def get_tools(self, ctx: Any) -> Any:
        return {}


def by_deps(ctx: RunContext[Any], definition: ToolDefinition) -> bool:
    return definition.name != "pay" or bool(ctx.deps)


async def prepared(ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
    return definition if ctx.deps else None


LISTINGS: dict[str, tuple[Any, list[str], bool]] = {
    "made for each run": (DynamicToolset(lambda ctx: FunctionToolset([pay])), [], True),
    "made for each run, with rules": (with_approval(DynamicToolset(lambda ctx: None, id="d"), "allow"), [], True),
    "filtered by the run": (FunctionToolset([pay, balance], id="shop").filtered(by_deps), ["balance"], True),
    "filtered, prefixed": (FunctionToolset([pay], id="shop").filtered(by_deps).prefixed("my"), [], True),
    "a tool that prepares itself": (FunctionToolset([Tool(pay, prepare=prepared)], id="shop"), [], True),
    "nothing for now": (Empty([pay], id="shop"), [], True),
    "nothing at all": (FunctionToolset(id="shop"), [], False),
    "always the same": (FunctionToolset([balance], id="shop"), ["balance"], False),
}


@pytest.mark.parametrize("case", LISTINGS)
async def test_a_toolset_that_lists_by_the_run_is_not_known(case: str) -> None:
    toolset, names, is_unknown = LISTINGS[case]
    result = await found(toolset)
    assert [tool.name for tool in result.tools] == names
    assert [why for _, why in result.unknown] == ([PER_RUN] if is_unknown else [])


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


async def test_rules_by_which_built_in_toolsets_let_calls_run_are_named(tmp_path: Path) -> None:
    toolsets = [filesystem_rw(tmp_path), shell_file_ops(tmp_path, sandbox="off"), sql(f"sqlite:{tmp_path}/a.db")]
    for rules in RULES:
        listed = (await found(*toolsets, rules=Policy.from_rules(rules, root=real(tmp_path)))).tools
        tools = {tool.name: tool for tool in listed}
        for name, args in TRIES:
            judge = tools[name].judge
            assert judge is not None
            verdict = await judge.verdict(args)
            if verdict.effect is Effect.ALLOW:
                assert set(verdict.rules) <= {rule.id for rule in tools[name].lets}, (rules, name, args)


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
    toolsets = [filesystem_rw(tmp_path), shell_file_ops(tmp_path, sandbox="off")]
    tools = (await found(*toolsets, rules=Policy.from_rules([rule], root=real(tmp_path)))).tools
    ways = [await way_to_change(tool, str(tmp_path / target)) for tool in tools]
    assert any(ways) == changes
