"""Policies are marks: the toolset stays the object it is, and whoever shares it keeps a policy of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.toolsets import AbstractToolset, DynamicToolset, FunctionToolset, WrapperToolset
from tests.gate.agents import calls, returns
from tests.pairwise import cases
from tests.toolsets.projects import Project, project, run

from signoff import ApprovalMemory, Signoff
from signoff.errors import WrongFile, WrongUse
from signoff.testing import ScriptedApprover, ScriptedModel
from signoff.toolsets import approval_tool, filesystem_rw, with_approval

__all__ = ["project"]


def look() -> str:
    """Look."""
    return "seen"


def wipe() -> str:
    """Wipe everything."""
    return "wiped"


MADE = [("look", {}), ("wipe", {})]
RULES: list[dict[str, Any]] = [{"allow": "look"}, {"deny": "wipe"}]


async def gated(toolset: AbstractToolset[Any], *answers: str, rules: Any = ()) -> tuple[list[str], list[str]]:
    """The tools that were asked about, and what became of each call."""
    ui = ScriptedApprover(list(answers))
    gate = Signoff(list(rules), approver=ui, memory=ApprovalMemory(file=None))
    turns = [*(calls(one) for one in MADE), {"say": "done"}]
    done = await Agent(ScriptedModel(turns), toolsets=[toolset], capabilities=[gate]).run("go")
    return [one.tool_name for one in ui.asked], [outcome for outcome, _ in returns(done.all_messages())]


@pytest.mark.mission("C10")
async def test_c10_with_approval_gives_back_the_very_toolset() -> None:
    class Mine(FunctionToolset[Any]):
        __slots__ = ("more",)

    class Frozen(WrapperToolset[Any]):
        def __setattr__(self, name: str, value: Any) -> None:
            if name != "wrapped":
                raise TypeError("frozen")
            super().__setattr__(name, value)

    tools = Mine()
    marked = with_approval(tools, RULES)
    assert marked is tools
    assert isinstance(marked, Mine)
    marked.tool_plain(look)
    marked.tool_plain(wipe)
    assert await gated(tools) == ([], ["success", "denied"])
    for other in (filesystem_rw("."), Frozen(FunctionToolset[Any]([look, wipe]))):
        assert with_approval(other, RULES) is other
        assert type(other).__name__ in ("FilesToolset", "Frozen")
    assert await gated(other) == ([], ["success", "denied"])
    with pytest.raises(WrongUse, match=r"(?s)takes a toolset, not .*approval_policy"):
        with_approval(Mine, "allow")  # pyright: ignore[reportArgumentType]


@pytest.mark.mission("C10")
async def test_c10_of_two_marks_the_stricter_holds_and_the_same_twice_is_one() -> None:
    tools = FunctionToolset[Any]([look, wipe])
    with_approval(with_approval(tools, "allow"), [{"ask": "wipe"}])
    assert await gated(tools, "deny") == (["wipe"], ["success", "denied"])
    before = dict(vars(tools))
    with_approval(tools, "allow")
    assert vars(tools) == before


class ByClass(FunctionToolset[Any]):
    approval_policy = RULES


class Below(ByClass):
    pass


def by_attribute(value: Any, name: str = "approval_policy") -> FunctionToolset[Any]:
    tools = FunctionToolset[Any]([look, wipe])
    setattr(tools, name, value)
    return tools


PRE_APPROVED = {"look": {"pre_approved": True}, "wipe": {"blocked": True, "block_reason": "never"}}


MAKES: tuple[Callable[[], AbstractToolset[Any]], ...] = (
    lambda: by_attribute(RULES),
    lambda: by_attribute(PRE_APPROVED),
    lambda: by_attribute(PRE_APPROVED, "approval_config"),
    lambda: by_attribute(PRE_APPROVED, "__llm_do_approval__"),
    lambda: by_attribute(PRE_APPROVED, "__llm_do_approval_config__"),
    lambda: with_approval(FunctionToolset[Any]([look, wipe]), PRE_APPROVED),
    lambda: ByClass([look, wipe]),
    lambda: Below([look, wipe]),
)
AROUND = ("nothing", "prefixed and back", "made for each run")


@pytest.mark.mission("C10")
@pytest.mark.parametrize(
    ("make", "around"),
    cases(product(MAKES, AROUND), {(make, AROUND[number % 3]) for number, make in enumerate(MAKES)}),
)
async def test_c10_an_attribute_means_the_same_as_the_call(
    make: Callable[[], AbstractToolset[Any]], around: str
) -> None:
    toolset = make()
    if around == "prefixed and back":
        toolset = toolset.prefixed("a").renamed({"look": "a_look", "wipe": "a_wipe"})
    elif around == "made for each run":
        inner = toolset
        toolset = DynamicToolset(lambda ctx: inner)
    assert await gated(toolset, rules=[{"allow": "*"}]) == ([], ["success", "denied"])


@pytest.mark.parametrize(
    "value", [5, look, {"mode": "prompt"}, {"look": {"pre_aproved": True}}, "maybe", [{"alow": 1}]]
)
async def test_an_attribute_that_is_no_policy_asks(value: Any) -> None:
    asked, outcomes = await gated(by_attribute(value), "deny", "deny", rules=[{"allow": "*"}])
    assert (asked, outcomes) == (["look", "wipe"], ["denied", "denied"])


async def test_an_attribute_that_is_changed_later_counts_as_it_is() -> None:
    config = {"look": {"pre_approved": True}}
    tools = by_attribute(config)
    assert (await gated(tools, "deny"))[0] == ["wipe"]
    config["look"]["pre_approved"] = False
    assert (await gated(tools, "deny", "deny"))[0] == ["look", "wipe"]


class PerRun(FunctionToolset[Any]):
    """Each run has a toolset of its own, as of a server that each user logs in to."""

    async def for_run(self, ctx: RunContext[Any]) -> FunctionToolset[Any]:
        return PerRun([look, wipe])


@pytest.mark.mission("C10")
@pytest.mark.parametrize(
    "make",
    [
        lambda: DynamicToolset(lambda ctx: FunctionToolset[Any]([look, wipe])),
        lambda: DynamicToolset(lambda ctx: FunctionToolset[Any]([look, wipe])).filtered(lambda ctx, one: True),
        lambda: PerRun(),
        lambda: copy.copy(with_approval(FunctionToolset[Any]([look, wipe]), [{"deny": "wipe"}])),
    ],
)
@pytest.mark.parametrize("way", ["call", "attribute"])
async def test_c10_the_mark_goes_with_what_a_toolset_becomes_for_a_run(
    make: Callable[[], AbstractToolset[Any]], way: str
) -> None:
    toolset = make()
    if way == "call":
        with_approval(toolset, RULES)
    else:
        setattr(toolset, "approval_policy", RULES)  # noqa: B010 - no attribute of the class
    assert await gated(toolset, rules=[{"allow": "*"}]) == ([], ["success", "denied"])
    if way == "call":
        agent = Agent(ScriptedModel([calls(*MADE), {"say": "done"}]), toolsets=[toolset])
        told = returns((await agent.run("go")).all_messages())
        assert sorted(outcome for outcome, _ in told) == ["failed", "success"]


async def test_a_decorated_tool_and_a_marked_toolset_hold_together() -> None:
    tools = with_approval(FunctionToolset[Any](), [{"deny": "wipe"}])
    approval_tool(tools, "allow")(look)
    approval_tool(tools, "allow")(wipe)
    assert await gated(tools) == ([], ["success", "denied"])


# --- in toolsets.py ---

SHARED = """
    from pydantic_ai.toolsets import FunctionToolset

    def look() -> str:
        return "seen"

    def wipe() -> str:
        return "wiped"

    def make():
        return FunctionToolset([look, wipe])

    one = make()
"""


def code(project: Project, text: str) -> None:
    project.write("toolsets.py", SHARED + text)


@pytest.mark.mission("C10")
async def test_c10_a_side_map_of_policies_means_the_same_as_the_call(project: Project) -> None:
    code(
        project,
        """
    TOOLSETS = {"instance": one, "factory": make, "bare": make()}
    TOOLSET_APPROVALS = {"instance": {"look": {"pre_approved": True}}, "factory": [{"allow": "look"}, {"deny": "wipe"}]}
    """,
    )
    catalog = project.catalog("toolsets: {careful: {use: factory, policy: [{ask: look}]}}")
    for name, asked in {"instance": ["wipe"], "factory": [], "bare": ["look", "wipe"], "careful": ["look"]}.items():
        built = catalog.build(name)
        assert type(built.toolset) is not FunctionToolset, "it enforces its policy"
        ui, _ = await run(built, MADE, *["deny"] * len(asked))
        assert [one.tool_name for one in ui.asked] == asked, name
        assert {one.call.toolset for one in ui.asked} <= {name}


async def test_an_object_that_a_program_also_uses_is_left_as_it_is(project: Project) -> None:
    """Else an approval that one process recorded for it is void in another, which built a worker before."""
    code(project, "\n    TOOLSETS = {'one': one}\n    TOOLSET_APPROVALS = {'one': [{'allow': 'look'}]}\n")
    catalog = project.catalog("")
    shared: Any = catalog.target("one")
    asked: list[list[tuple[str | None, str]]] = []
    for _ in range(2):
        ui = ScriptedApprover(["deny", "deny"])
        gate = Signoff([], approver=ui, memory=ApprovalMemory(file=None))
        turns = [*(calls(one) for one in MADE), {"say": "done"}]
        await Agent(ScriptedModel(turns), toolsets=[shared], capabilities=[gate]).run("go")
        asked.append([(one.call.toolset, one.tool_name) for one in ui.asked])
        ui, _ = await run(catalog.build("one"), MADE, "deny")
        assert [(one.call.toolset, one.tool_name) for one in ui.asked] == [("one", "wipe")]
    assert asked == 2 * [[(None, "look"), (None, "wipe")]]


@pytest.mark.mission("C10")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("TOOLSETS = {}\n    TOOLSET_APROVALS = {}", r"toolsets.py:\d+: `TOOLSET_APROVALS` .*mean `TOOLSET_APPROVALS`"),
        ("TOOLSETS = {'a': one}\n    TOOLSET_APPROVALS = {'b': 'ask'}", "has `b`, which TOOLSETS does not have"),
        ("TOOLSETS = {'a': one}\n    TOOLSET_APPROVALS = {'a': 'maybe'}", "for `a` is not a policy: 'maybe'"),
        ("TOOLSETS = {'a': one}\n    TOOLSET_APPROVALS = ['a']", "TOOLSET_APPROVALS is a list"),
        ("TOOLSETS = {'a': one}\n    TOOLSET_APPROVALS = {'a': {'look': {'pre': True}}}", "has the option `pre`"),
        ("TOOLSETS = {'a': one}\n    one.approval_policy = 5", "an int; write allow, ask, deny"),
    ],
)
def test_c10_what_toolsets_py_says_wrongly_is_told_with_its_place(text: str, told: str, project: Project) -> None:
    code(project, f"\n    {text}\n")
    with pytest.raises((WrongFile, WrongUse), match=f"(?s){told}"):
        project.catalog("").build("a")


def test_a_constant_that_the_file_reads_itself_is_no_mistake(project: Project) -> None:
    code(project, "\n    LIMIT = 5\n    TOOLSETS = {'a': one} if LIMIT else {}\n")
    assert project.catalog("").build("a").toolset is not None


@pytest.mark.mission("C10")
@pytest.mark.parametrize("order", [["loose", "strict"], ["strict", "loose"]])
async def test_c10_one_object_under_two_names_keeps_the_policy_of_each(order: list[str], project: Project) -> None:
    code(project, "\n    TOOLSETS = {'one': one, 'around': one.prefixed('x')}\n")
    catalog = project.catalog("""
        toolsets:
          loose: {use: one, policy: [{allow: "*"}]}
          strict: {use: one, policy: [{deny: wipe}]}
    """)
    built = {name: catalog.build(name) for name in (*order, "around", "one")}
    for name, asked in {"loose": [], "strict": ["look"], "one": ["look", "wipe"]}.items():
        ui, _ = await run(built[name], MADE, *["deny"] * len(asked))
        assert [one.tool_name for one in ui.asked] == asked, name
    ui, _ = await run(built["around"], [("x_look", {})], "deny")
    assert [one.tool_name for one in ui.asked] == ["x_look"]


def test_c10_functions_that_give_one_object_to_two_names_are_refused(project: Project) -> None:
    code(project, "\n    TOOLSETS = {'one': lambda: one, 'other': lambda: one}\n")
    catalog = project.catalog("")
    catalog.build("one")
    assert catalog.build("one").toolset is catalog.build("one").toolset
    with pytest.raises(WrongFile, match=r"(?s)the same object as `one`, which.*function that creates the toolset"):
        catalog.build("other")


async def test_what_an_entry_says_does_not_reach_into_another_entrys_toolset(project: Project) -> None:
    code(project, "\n    TOOLSETS = {'inner': lambda: one, 'outer': lambda: one.filtered(lambda ctx, tool: True)}\n")
    catalog = project.catalog('toolsets: {free: {use: inner, policy: [{allow: "*"}]}}')
    outer = catalog.build("outer")
    catalog.build("free")
    ui, _ = await run(outer, MADE, "deny", "deny")
    assert [one.tool_name for one in ui.asked] == ["look", "wipe"]


async def test_what_an_entry_forbids_holds_where_another_is_made_of_it(project: Project) -> None:
    code(
        project,
        """
    def around(context):
        return context.catalog.build("inner").toolset.filtered(lambda ctx, tool: True)

    TOOLSETS = {"around": around, "make": make}
    """,
    )
    catalog = project.catalog("""
        toolsets:
          inner: {use: make, policy: [{deny: wipe}], labels: {look: money}}
          outer: {use: around, policy: [{deny: money}, {allow: "*"}]}
    """)
    ui, told = await run(catalog.build("outer"), MADE)
    assert (ui.asked, [outcome for outcome, _ in told]) == ([], ["denied", "denied"])


# --- needs_approval, as it is written out there ---


class Result:
    def __init__(self, status: Any = None, block_reason: Any = None, **flags: Any) -> None:
        self.status, self.block_reason = status, block_reason
        for name, value in flags.items():
            setattr(self, name, value)


def answering(answer: Any, takes: str = "name, tool_args, ctx") -> AbstractToolset[Any]:
    """A toolset with a `needs_approval` of that signature."""
    space: dict[str, Any] = {"answer": answer}
    exec(f"def plain(self, {takes}): return answer(locals()) if callable(answer) else answer", space)
    kind = type("Mine", (FunctionToolset,), {"needs_approval": space["plain"]})
    return kind([look, wipe])


@pytest.mark.mission("W9")
@pytest.mark.parametrize(
    ("answer", "effect"),
    [
        (False, "success"),
        (True, "asked"),
        ({"description": "Execute: look"}, "asked"),
        (Result("pre_approved"), "success"),
        (Result("needs_approval"), "asked"),
        (Result("blocked", "not here"), "denied"),
        (Result(is_blocked=False, is_pre_approved=True, is_needs_approval=False), "success"),
        (Result(is_blocked=True, is_pre_approved=True), "denied"),
        (Result("pre_approved", is_blocked=lambda: False), "asked"),
        (Result("pre_approved", is_needs_approval=True), "asked"),
        (Result("fine"), "asked"),
        (Result(), "asked"),
        ({}, "asked"),
        (1, "asked"),
        (0, "asked"),
        (["pre_approved"], "asked"),
        ("blocked", "denied"),
    ],
)
async def test_w9_every_answer_is_understood_and_doubt_asks(answer: Any, effect: str) -> None:
    ui = ScriptedApprover(["deny"] * 2)
    gate = Signoff([], approver=ui, memory=ApprovalMemory(file=None))
    agent = Agent(ScriptedModel([calls(MADE[0]), {"say": "done"}]), toolsets=[answering(answer)], capabilities=[gate])
    [(outcome, content)] = returns((await agent.run("go")).all_messages())
    assert ("asked" if ui.asked else outcome) == effect
    if isinstance(answer, Result) and answer.block_reason:
        assert "not here" in content
    if isinstance(answer, dict) and answer:
        assert ui.asked[0].verdict.reason == "Execute: look"
    if answer == 1 and answer is not True:
        assert "returned a value of type int, not one of these" in ui.asked[0].verdict.reason


@pytest.mark.mission("W9")
@pytest.mark.parametrize(
    "takes",
    [
        "name, tool_args",
        "name, tool_args, ctx",
        "name, tool_args, ctx, config",
        "name, tool_args, ctx=None, config=None",
        "tool, arguments, run, settings",
        "name, tool_args, config",
        "*, config, name, tool_args, ctx",
        "tool_args, name, /, *, ctx",
        "name, args, ctx, config, more=3",
        "*args",
    ],
)
async def test_w9_two_three_or_four_arguments_by_position_or_keyword(takes: str) -> None:
    seen: list[dict[str, Any]] = []

    def answer(given: Mapping[str, Any]) -> bool:
        seen.append({key: value for key, value in given.items() if key not in ("self", "answer")})
        return False

    assert await gated(answering(answer, takes)) == ([], ["success", "success"])
    values = list(seen[0]["args"] if takes == "*args" else seen[0].values())
    assert "look" in values
    assert {} in values
    assert ("ctx" not in takes) or isinstance(seen[0]["ctx"], RunContext)


@pytest.mark.parametrize("takes", ["name", "name, args, ctx, config, needed", "*, name, args, needed", "tool, name"])
async def test_w9_what_cannot_be_called_asks(takes: str) -> None:
    assert await gated(answering(False, takes), "deny", "deny") == (["look", "wipe"], ["denied", "denied"])


@pytest.mark.mission("W9")
async def test_w9_it_is_given_the_configuration_of_its_entry_and_its_own_ask_stands(project: Project) -> None:
    project.write(
        "toolsets.py",
        """
        from pydantic_ai.toolsets import FunctionToolset

        given = []

        class Tools(FunctionToolset):
            def __init__(self, limit: int = 0):
                super().__init__([self.look, self.wipe])

            def look(self) -> str:
                return "seen"

            def wipe(self) -> str:
                return "wiped"

            async def needs_approval(self, name, tool_args, ctx, config):
                given.append((name, config))
                if name == "wipe":
                    raise PermissionError("wiping is off")
                return True

            def get_approval_description(self, name, tool_args, ctx):
                return f"Execute: {name}"

        TOOLSETS = {"tools": Tools, "mapped": Tools}
        TOOLSET_APPROVALS = {"mapped": {"look": {"pre_approved": True, "depth": 2}}}
        """,
    )
    catalog = project.catalog("""
        toolsets:
          asks: {use: tools, config: {limit: 3}}
          free: {use: tools, config: {limit: 3}, policy: [{allow: "*"}]}
    """)
    for name in ("asks", "free", "mapped"):
        ui, told = await run(catalog.build(name), MADE, "deny")
        assert [one.tool_name for one in ui.asked] == ["look"], name
        assert told[1][0] == "denied" and "wiping is off" in told[1][1]
        assert ui.asked[0].summary == "Execute: look"
    import sys

    projects = (one for key, one in sys.modules.items() if key.startswith("signoff_project_toolsets_"))
    module = next(one for one in projects if hasattr(one, "given"))
    looks = [config for name, config in module.given if name == "look"]
    assert looks == [
        {"limit": 3, "look": {"pre_approved": False}},
        {"limit": 3, "look": {"pre_approved": True}},
        {"look": {"pre_approved": True, "depth": 2}},
    ]


def with_attribute(name: str, value: Any) -> Callable[[AbstractToolset[Any]], AbstractToolset[Any]]:
    def attached(tools: AbstractToolset[Any]) -> AbstractToolset[Any]:
        setattr(tools, name, value)
        return tools

    return attached


APPROVED = {"look": {"pre_approved": True}, "wipe": {"pre_approved": True}}
WAYS: dict[str, Callable[[AbstractToolset[Any]], AbstractToolset[Any]]] = {
    "nothing": lambda tools: tools,
    "mapping": lambda tools: with_approval(tools, APPROVED),
    "rules": lambda tools: with_approval(tools, [{"allow": "*"}]),
    "allow": lambda tools: with_approval(tools, "allow"),
    "twice": lambda tools: with_approval(with_approval(tools, "allow"), APPROVED),
    "attribute": with_attribute("approval_policy", "allow"),
    "llm-do": with_attribute("__llm_do_approval_config__", APPROVED),
    "behind a prefix": lambda tools: with_approval(tools.filtered(lambda ctx, tool: True), "allow"),
}


@pytest.mark.mission("W9")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("answer", [True, "ask", {"description": "Look"}, Result("needs_approval")])
async def test_w9_nothing_attached_to_a_toolset_answers_for_its_own_ask(way: str, answer: Any) -> None:
    for rules in ([], [{"allow": "*"}]):
        tools = WAYS[way](answering(answer))
        assert (await gated(tools, "deny", "deny", rules=rules))[0] == ["look", "wipe"]
    alone = WAYS[way](answering(answer))
    if way in ("nothing", "attribute", "llm-do"):  # without a gate, nothing reads them
        return
    agent = Agent(
        ScriptedModel([calls(MADE[0]), {"say": "ran"}]), toolsets=[alone], output_type=[str, DeferredToolRequests]
    )
    assert isinstance((await agent.run("go")).output, DeferredToolRequests)


@pytest.mark.mission("W9")
async def test_w9_a_person_and_auto_approve_satisfy_a_toolsets_own_ask() -> None:
    memory = ApprovalMemory(file=None)
    for asked in (["look"], []):
        ui = ScriptedApprover(["session"] * len(asked))
        gate = Signoff([], approver=ui, memory=memory)
        tools = with_approval(answering(True), "allow")
        agent = Agent(ScriptedModel([calls(MADE[0]), {"say": "done"}]), toolsets=[tools], capabilities=[gate])
        done = await agent.run("go")
        assert ([one.tool_name for one in ui.asked], returns(done.all_messages())[0][0]) == (asked, "success")
    gate = Signoff([], mode="auto_approve", memory=ApprovalMemory(file=None))
    agent = Agent(ScriptedModel([calls(MADE[0]), {"say": "done"}]), toolsets=[answering(True)], capabilities=[gate])
    assert returns((await agent.run("go")).all_messages())[0][0] == "success"


@pytest.mark.mission("W8")
@pytest.mark.parametrize("rules", [[], [{"allow": "*"}]])
async def test_w8_a_permission_error_in_needs_approval_is_a_no_that_nobody_can_approve(rules: Any) -> None:
    def refuses(given: Any) -> bool:
        raise PermissionError("Command blocked")

    tools = with_approval(answering(refuses), "allow")
    ui = ScriptedApprover(["approve"] * 4)
    gate = Signoff(rules, approver=ui, memory=ApprovalMemory(file=None), mode="auto_approve")
    agent = Agent(ScriptedModel([calls(MADE[1]), {"say": "done"}]), toolsets=[tools], capabilities=[gate])
    [(outcome, content)] = returns((await agent.run("go")).all_messages())
    assert (outcome, ui.asked) == ("denied", [])
    assert "Command blocked" in content


async def test_a_project_wide_allow_does_not_answer_for_a_toolset_that_asks() -> None:
    assert (await gated(answering(True), "deny", "deny", rules=[{"allow": "*"}]))[0] == ["look", "wipe"]


# --- misspelt tools ---


@pytest.mark.parametrize("way", ["mapping", "attribute", "added later", "behind a prefix"])
async def test_a_mapping_that_misspells_a_tool_is_refused_where_the_tools_are_known(way: str) -> None:
    tools: FunctionToolset[Any] = FunctionToolset([] if way == "added later" else [look, wipe])
    given: AbstractToolset[Any] = tools
    if way == "attribute":
        tools.approval_policy = {"lok": {"pre_approved": True}}  # pyright: ignore[reportAttributeAccessIssue]
    else:
        with_approval(tools, {"lok": {"pre_approved": True}})
    if way == "added later":
        tools.add_function(look)
    if way == "behind a prefix":
        given = tools.prefixed("my")
    with pytest.raises(WrongUse, match="names `lok`; did you mean `look`"):
        await gated(given)


def test_a_file_that_misspells_a_tool_is_refused_with_its_place(project: Project) -> None:
    code(
        project,
        """
    TOOLSETS = {"tools": make}
    TOOLSET_APPROVALS = {"tools": {"wip": {"blocked": True}}}
    """,
    )
    catalog = project.catalog("toolsets:\n  mine: {use: tools}\n")
    with pytest.raises(WrongFile, match=r"signoff\.yaml:\d+:\d+.*names `wip`; did you mean `wipe`"):
        catalog.build("mine")


async def test_a_tool_that_is_not_there_and_like_no_other_may_be_one_of_another_toolset() -> None:
    tools = with_approval(FunctionToolset([look, wipe]), {"add": {"pre_approved": True}})
    assert (await gated(tools, "deny", "deny"))[0] == ["look", "wipe"]
