"""Attacks on toolsets and their catalog: around attached policies, through plugins, and out with secrets."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool
from tests.gate.agents import calls, returns
from tests.start import signoff
from tests.toolsets.projects import Project, project

from signoff import ApprovalMemory, Signoff
from signoff.core.redact import redact_text
from signoff.errors import SignoffError, WrongFile, WrongUse
from signoff.policy.engine import Policy
from signoff.store.store_factory import open_store
from signoff.testing import ScriptedApprover, ScriptedModel
from signoff.toolsets import Registration, approval_tool, filesystem_rw, shell_readonly, with_approval

__all__ = ["project"]

RULES: list[dict[str, Any]] = [
    {"deny": {"tool": "pay", "args": {"amount": {">": 100}}}},
    {"allow": {"tool": "pay", "args": {"amount": {"<=": 10}}}},
]
ANYTHING = [{"allow": "*"}]


class Till:
    """A tool that writes down what it did."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def pay(self, amount: int) -> str:
        """Pay."""
        self.paid.append(amount)
        return f"paid {amount}"

    @property
    def tools(self) -> FunctionToolset[Any]:
        return FunctionToolset([self.pay], id="till")


def wrapped(till: Till, rules: Any = RULES) -> AbstractToolset[Any]:
    return with_approval(till.tools, rules)


def registered(till: Till, rules: Any = RULES) -> AbstractToolset[Any]:
    return Registration(toolset=lambda: till.tools, policy=rules).made(name="till")


def decorated(till: Till, rules: Any = RULES) -> FunctionToolset[Any]:
    tools = FunctionToolset[Any](id="till")
    approval_tool(tools, rules)(till.pay)
    return tools


WAYS = pytest.mark.parametrize("way", [wrapped, registered, decorated])
Way = Callable[..., AbstractToolset[Any]]


async def gated(toolset: AbstractToolset[Any], made: Any, *answers: str, rules: Any = ANYTHING) -> Any:
    """One call a turn behind a gate: whom it asked about what, and what became of the calls."""
    ui = ScriptedApprover(list(answers))
    gate = Signoff(rules, approver=ui, memory=ApprovalMemory(file=None))
    turns = [*(calls(one) for one in made), {"say": "done"}]
    result = await Agent(ScriptedModel(turns), toolsets=[toolset], capabilities=[gate]).run("go")
    return [one.args for one in ui.asked], [outcome for outcome, _ in returns(result.all_messages())]


async def edited(toolset: AbstractToolset[Any], made: Any, to: dict[str, Any]) -> Any:
    """Without a gate: the call asks, and whoever approves it exchanges its arguments."""
    model = ScriptedModel([calls(made), {"say": "done"}])
    agent = Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests])
    paused = await agent.run("go")
    assert isinstance(paused.output, DeferredToolRequests)
    [asked] = paused.output.approvals
    results = DeferredToolResults(approvals={asked.tool_call_id: ToolApproved(override_args=to)})
    done = await agent.run(message_history=paused.all_messages(), deferred_tool_results=results)
    return returns(done.all_messages())[-1]


# --- an edit overrides a deny ---


@WAYS
@pytest.mark.parametrize(("amount", "paid"), [(99_999, []), (60, [60])])
async def test_without_a_gate_an_edited_approval_does_not_override_a_deny(
    way: Way, amount: int, paid: list[int]
) -> None:
    till = Till()
    outcome, _ = await edited(way(till), ("pay", {"amount": 50}), {"amount": amount})
    assert till.paid == paid
    assert outcome == ("success" if paid else "failed")


async def test_without_a_gate_an_edited_approval_does_not_override_a_built_ins_deny(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    made = ("write_file", {"path": "a.txt", "content": "a"})
    for toolset in (filesystem_rw(root), with_approval(filesystem_rw(root))):
        outcome, _ = await edited(toolset, made, {"path": "../out.txt", "content": "a"})
        assert outcome == "failed"
    assert os.listdir(tmp_path) == ["root"]
    shell = shell_readonly(root, sandbox="off")
    outcome, _ = await edited(shell, ("shell", {"command": "cat $(ls)"}), {"command": "touch made"})
    assert outcome == "failed"
    assert os.listdir(root) == []


# --- a toolset that the gate cannot see ---


class Hold(AbstractToolset[Any]):
    """No wrapper: it lists the tools of another as its own, so whoever asks it does not get to the other."""

    def __init__(self, held: AbstractToolset[Any]) -> None:
        self.held = held

    @property
    def id(self) -> str | None:
        return None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {name: replace(tool, toolset=self) for name, tool in (await self.held.get_tools(ctx)).items()}

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        return await self.held.call_tool(name, tool_args, ctx, tool)


PAYMENTS = [("pay", {"amount": amount}) for amount in (5, 50, 5000)]


@WAYS
async def test_a_gate_does_not_take_away_the_deny_of_a_toolset_it_was_not_shown(way: Way) -> None:
    till = Till()
    asked, outcomes = await gated(Hold(way(till)), PAYMENTS)
    assert till.paid == [5, 50], "where its rules are silent, the project's answer"
    assert (asked, outcomes) == ([], ["success", "success", "failed"])


@WAYS
async def test_a_hidden_toolset_that_asks_is_asked_about_once(way: Way) -> None:
    till = Till()
    hidden = Hold(way(till, [{"ask": "pay"}]))
    asked, outcomes = await gated(hidden, PAYMENTS[:2], "approve", "deny")
    assert asked == [{"amount": 5}, {"amount": 50}]
    assert (till.paid, outcomes) == ([5], ["success", "denied"])


async def test_a_hidden_built_in_keeps_its_own_rules(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    made = [("write_file", {"path": path, "content": "x"}) for path in ("a.txt", "../out.txt")]
    asked, outcomes = await gated(Hold(filesystem_rw(root)), made)
    assert (asked, outcomes) == ([], ["success", "failed"])
    assert (os.listdir(tmp_path), os.listdir(root)) == (["root"], ["a.txt"])


async def test_a_policy_that_was_heard_elsewhere_does_not_count_for_a_hidden_toolset() -> None:
    """One policy object, attached twice: to what it hides it says something else, because labels differ."""
    till = Till()
    policy = Policy.from_rules([{"deny": "money"}, {"allow": "pay"}])
    inner = with_approval(till.tools, policy, labels={"pay": "money"})
    _, outcomes = await gated(with_approval(Hold(inner), policy), PAYMENTS[:1])
    assert (till.paid, outcomes) == ([], ["failed"])


@pytest.mark.parametrize("moved", ["tools", "copy", "deepcopy"])
@pytest.mark.parametrize("with_gate", [True, False])
async def test_the_policy_of_a_decorated_tool_goes_with_it_into_another_toolset(moved: str, with_gate: bool) -> None:
    till = Till()
    own = decorated(till)
    toolset = {
        "tools": lambda: FunctionToolset[Any](list(own.tools.values())),
        "copy": lambda: copy.copy(own),
        "deepcopy": lambda: copy.deepcopy(own),
    }[moved]()
    if with_gate:
        _, outcomes = await gated(toolset, PAYMENTS)
        assert outcomes == ["success", "success", "failed" if moved == "tools" else "denied"]
    else:
        agent = Agent(ScriptedModel([calls(*PAYMENTS)]), toolsets=[toolset], output_type=[str, DeferredToolRequests])
        paused = await agent.run("go")
        assert isinstance(paused.output, DeferredToolRequests)
        assert [one.args for one in paused.output.approvals] == [{"amount": 50}]
    assert 5000 not in till.paid


async def test_the_labels_of_a_decorated_tool_go_with_it() -> None:
    till, own = Till(), FunctionToolset[Any]()
    approval_tool(own, "allow", labels="money")(till.pay)
    moved = FunctionToolset[Any](list(own.tools.values()))
    _, outcomes = await gated(moved, PAYMENTS[:1], rules=[{"deny": "money"}, *ANYTHING])
    assert (till.paid, outcomes) == ([], ["denied"])


# --- plugins ---

PLUGIN = """
    import functools
    import os
    from os import system
    from pydantic_ai.toolsets import FunctionToolset

    run = functools.partial(os.system)

    class Tools(FunctionToolset):
        box = os

        class Inner(FunctionToolset):
            pass
"""


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("mine.ts:os.system", "goes through something that is not a class"),
        ("mine.ts:os", "is a module"),
        ("mine.ts:Tools.box", "is a module"),
        ("mine.ts:Tools.box.system", "goes through something that is not a class"),
        ("mine.ts:system", "importing `posix` is not allowed"),
        ("mine.ts:run", "importing `posix` is not allowed"),
        ("mine.ts:FunctionToolset", r"importing `pydantic_ai\.toolsets\.function` is not allowed"),
    ],
)
def test_what_a_plugin_imports_is_not_allowed_with_it(path: str, what: str, project: Project) -> None:
    made = project.directory / "made"
    project.package("mine.ts", PLUGIN)
    catalog = project.catalog(f"""
        toolsets: {{bad: {{use: "{path}", config: {{command: "touch {made}"}}}}}}
        plugins: {{allow: ["mine.*"]}}
    """)
    with pytest.raises(WrongFile, match=what):
        catalog.build("bad")
    assert not made.exists()


def test_what_a_package_shows_of_its_own_is_allowed_with_it(project: Project) -> None:
    project.package("shelf.ts", PLUGIN)
    project.write("shelf/__init__.py", "from shelf.ts import Tools\n")
    catalog = project.catalog("""
        toolsets: {one: {use: "shelf:Tools"}, other: {use: "shelf.ts:Tools.Inner"}}
        plugins: {allow: [shelf, shelf.ts]}
    """)
    assert {catalog.build(name).name for name in ("one", "other")} == {"one", "other"}


# --- secrets in errors ---

SECRET = 'it\'s "hunter2" ' + "correct horse battery staple " * 4 + "é\\end"
FAILING = """
    import json
    from collections.abc import Iterable
    from pydantic_ai.toolsets import FunctionToolset

    HOW = {how}

    class Tools(FunctionToolset):
        def __init__(self, value: str = "", several: Iterable[str] = ()):
            raise RuntimeError("cannot use " + HOW(value))
"""


@pytest.mark.parametrize(
    ("config", "how"),
    [
        ('several: "${TOKEN}"', "str"),
        *[
            ('value: "${TOKEN}"', how)
            for how in (
                "str",
                "repr",
                "json.dumps",
                "ascii",
                "lambda one: repr({'key': one})",
                'lambda one: repr([one, "\'"])',
                "lambda one: repr(one.encode())",
                "lambda one: one[:20] + '...'",
                "lambda one: '...' + one[-20:]",
                "lambda one: repr(one)[:40] + '…'",
                "lambda one: __import__('shlex').join(['run', one])",
                "lambda one: __import__('urllib.parse').parse.quote(one)",
            )
        ],
    ],
)
def test_an_error_about_config_never_tells_the_value_of_a_variable(
    config: str, how: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    project.package("failing", FAILING.format(how=how))
    catalog = project.catalog(f"""
        toolsets: {{mine: {{use: "failing:Tools", config: {{{config}}}}}}}
        plugins: {{allow: [failing]}}
    """)
    with pytest.raises(SignoffError) as refused:
        catalog.build("mine")
    told = str(refused.value)
    assert "declared secret⟧" in told or "‹hidden›" in told
    assert "hunter2" not in told and "staple" not in told and "horse" not in told


@pytest.mark.parametrize(
    "entry",
    [
        'use: native, config: {kind: "${TOKEN}"}',
        'use: filesystem_rw, config: {inner_class: "secretive.${TOKEN}:Class"}',
        'use: filesystem_rw, config: {inner_class: "${TOKEN}"}',
        'use: sql, config: {url: "${TOKEN}"}',
        'use: sql, config: {url: "${ADDRESS}"}',
        'use: filesystem_rw, config: {root: "${TOKEN}"}',
        'use: mcp, config: {command: "${TOKEN}", tools: "${TOKEN}"}',
    ],
)
def test_an_error_about_a_built_in_never_tells_the_value_of_a_variable(
    entry: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "hunter2-" * 12)
    monkeypatch.setenv("ADDRESS", "mysql://ana:hunter2@hunter2.example/hunter2")
    catalog = project.catalog(f"toolsets: {{one: {{{entry}}}}}\nplugins: {{allow: [secretive.*]}}")
    with pytest.raises(SignoffError) as refused:
        catalog.build("one")
    assert "hunter2" not in str(refused.value)


def test_the_kind_of_an_address_is_no_secret() -> None:
    secrets = ["postgresql://ana:hunter2@db.example/orders"]
    told = "write sqlite:FILE or postgresql://…, not postgresql://ana:hunt…"
    assert redact_text(told, secrets=secrets) == "write sqlite:FILE or postgresql://…, not ⟦masked 1: declared secret⟧…"


@pytest.mark.parametrize("url", ["hunter2", "hunter2:x", "mysql://ana@hunter2/db", "sqlite:hunter2/", "memory:hunter2"])
def test_a_store_that_is_none_is_refused_without_its_value(url: str) -> None:
    with pytest.raises(WrongUse, match=r"names no|not name a store") as refused:
        open_store(url)
    assert "hunter2" not in str(refused.value)


# --- at the terminal and in JSON ---

PRINTING = """
    import os
    import subprocess
    from pydantic_ai.toolsets import FunctionToolset

    print("toolsets.py says hello")

    class Tools(FunctionToolset):
        def __init__(self, key: str = ""):
            super().__init__([self.shout, self.fail])
            self.key = key

        def shout(self) -> str:
            print("a tool shouts")
            os.write(1, b"a tool writes\\n")
            subprocess.run(["echo", "a program shouts"])
            return "done"

        def fail(self) -> str:
            raise RuntimeError(f"401 for key {self.key}\\x1b[2J")

    TOOLSETS = {"loud": Tools}
"""


def loud(project: Project, *script: dict[str, Any]) -> Project:
    project.write("toolsets.py", PRINTING)
    project.write("signoff.yaml", 'toolsets: {mine: {use: loud, config: {key: "${KEY}"}}}\npolicy: [{allow: "*"}]\n')
    project.write("workers/w.yaml", "instructions: Go.\ntoolsets: [mine]\n")
    project.write("script.yaml", json.dumps(list(script)))
    return project


RUN = ("run", "w", "go", "--model", "script:script.yaml")


def started(project: Project, *arguments: str) -> Any:
    home = str(project.directory.parent)
    environment = {"HOME": home, "XDG_STATE_HOME": home, "XDG_CONFIG_HOME": home, "KEY": "correcthorse99"}
    return signoff(*arguments, cwd=project.directory, **environment)


def test_nothing_that_a_project_prints_comes_between_json(project: Project) -> None:
    loud(project, calls(("shout", {})), {"say": "bye"})
    done = started(project, *RUN, "--json")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row.get("event", row.get("output")) for row in rows] == ["started", "allowed", "ran", "bye"]
    for said in ("toolsets.py says hello", "a tool shouts", "a tool writes", "a program shouts"):
        assert said in done.stderr
    for command in (("toolsets", "--json"), ("toolsets", "show", "mine", "--json")):
        done = started(project, *command)
        assert json.loads(done.stdout), done.stderr
        assert "toolsets.py says hello" in done.stderr


def test_what_an_agent_fails_with_shows_no_secret_and_steers_no_terminal(project: Project) -> None:
    loud(project, calls(("fail", {})), {"say": "bye"})
    done = started(project, *RUN)
    assert done.returncode == 1
    assert "the agent failed: RuntimeError: 401 for key ⟦masked 1: declared secret⟧⟦ESC⟧[2J" in done.stderr
    assert "correcthorse99" not in done.stdout + done.stderr
    assert "\x1b" not in done.stderr
