"""Labels by tool name or pattern: whatever checks a pattern also matches it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.toolsets import FunctionToolset
from tests.gate.agents import calls

from signoff import ApprovalMemory, Signoff
from signoff.errors import WrongUse
from signoff.policy.glob import Glob
from signoff.policy.match_result import Truth
from signoff.policy.tool_labels import is_labelled, labels_in_doubt, labels_of
from signoff.testing import ScriptedApprover, ScriptedModel
from signoff.toolsets import Registration, with_approval
from signoff.toolsets.mcp_claims import labels_claimed

NOT_A = {"[^a]*": ["data.read"]}


def archive_delete() -> str:
    return "gone"


def look() -> str:
    return "seen"


@pytest.mark.parametrize("where", ["gate", "toolset"])
async def test_a_set_that_excludes_labels_what_it_does_not_exclude(where: str) -> None:
    tools = FunctionToolset([archive_delete, look])
    labels: Any = NOT_A if where == "gate" else {}
    if where == "toolset":
        with_approval(tools, labels=NOT_A)
    ui = ScriptedApprover(["deny"])
    gate = Signoff([{"allow": "data.read"}], approver=ui, labels=labels, memory=ApprovalMemory(file=None))
    made = [calls(("archive_delete", {})), calls(("look", {})), {"say": "done"}]
    await Agent(ScriptedModel(made), toolsets=[tools], capabilities=[gate]).run("go")
    assert [one.tool_name for one in ui.asked] == ["archive_delete"]


def test_a_server_tool_that_a_pattern_excludes_is_not_labelled() -> None:
    assert labels_claimed("archive_delete", None, ["[^a]*"]) == {"data.write"}
    assert labels_claimed("look", None, ["[^a]*"]) == frozenset()


@pytest.mark.parametrize("pattern", ["[a", "", "[z-a]*", "a\nb", "[]"])
def test_a_bad_pattern_is_refused_when_it_is_given(pattern: str) -> None:
    labels: Any = {pattern: "money"}
    with pytest.raises(WrongUse, match="bad pattern"):
        Signoff([], labels=labels)
    with pytest.raises(WrongUse, match="bad pattern"):
        with_approval(FunctionToolset([look]), "allow", labels=labels)
    with pytest.raises(WrongUse, match="bad pattern"):
        Registration(toolset=FunctionToolset([look]), labels=labels).made()


def test_an_unknown_label_is_refused_when_it_is_given() -> None:
    for give in (
        lambda labels: Signoff([], labels=labels),
        lambda labels: with_approval(FunctionToolset(), labels=labels),
    ):
        with pytest.raises(WrongUse, match="unknown label `mony`; did you mean `money`"):
            give({"look": ["mony"]})


def test_a_name_that_no_pattern_matches_for_sure_has_its_label_in_doubt() -> None:
    labels = {"pay*": ["money"], "look": ["data.read"]}
    assert (labels_of(labels, "pay\u202e"), labels_in_doubt(labels, "pay\u202e")) == (frozenset(), {"money"})
    assert (labels_of(labels, "pay_all"), labels_in_doubt(labels, "pay_all")) == ({"money"}, frozenset())


@given(st.text("ab[]^!*?-_", min_size=1, max_size=6), st.text("ab^!-_\u202e", max_size=5))
def test_labels_are_matched_by_the_glob_that_checks_them(pattern: str, tool: str) -> None:
    try:
        truth = Glob(pattern, over_names=True).find(tool)
    except ValueError:
        return
    labels = {pattern: ["money"]}
    assert (labels_of(labels, tool) == {"money"}) == is_labelled(labels, tool) == (truth is Truth.YES)
    assert (labels_in_doubt(labels, tool) == {"money"}) == (truth is Truth.UNKNOWN)
