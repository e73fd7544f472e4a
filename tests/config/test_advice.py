"""Advice in errors can be followed: what is written as it says is accepted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.toolsets import FunctionToolset

from signoff.config import load_settings, load_worker
from signoff.errors import SignoffError, WrongUse
from signoff.toolsets import approval_tool, with_approval
from signoff.toolsets.catalog import Catalog


def refused(directory: Path, worker: str, file: str = "policy: []\n") -> str:
    (directory / "workers").mkdir(exist_ok=True)
    (directory / "signoff.yaml").write_text(file)
    (directory / "workers" / "clerk.yaml").write_text(worker)
    settings = load_settings(directory / "signoff.yaml")
    try:
        for name in load_worker(settings, "clerk").toolsets:
            Catalog(settings).check(name)
    except SignoffError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "toolsets",
    [
        "{llm_do.shell_toolset.ShellApprovalToolset: {rules: []}}",
        "[{llm_do.shell_toolset.ShellApprovalToolset: {rules: []}}]",
        "[llm_do.shell_toolset.ShellApprovalToolset]",
        '["llm_do.shell_toolset:ShellApprovalToolset"]',
    ],
)
def test_a_class_path_in_a_worker_gets_an_entry_with_a_name(tmp_path: Path, toolsets: str) -> None:
    told = refused(tmp_path, f"toolsets: {toolsets}\n")
    [advice] = re.findall(r"toolsets: (\{NAME: \{use: .*?, config: \{…\}\}\})", told)
    assert '"llm_do.shell_toolset:ShellApprovalToolset"' in advice
    entry = advice.replace("NAME", "shell").replace("{…}", "{}")
    assert refused(tmp_path, "toolsets: [shell]\n", f"policy: []\ntoolsets: {entry}\n") == ""


def test_the_defaults_of_every_worker_are_written_as_it_says(tmp_path: Path) -> None:
    told = refused(tmp_path, "toolsets: {_defaults: [shell, delegation]}\n")
    [advice] = re.findall(r"defaults: (\{worker: .*\})", told)
    file = f"policy: []\ndefaults: {advice.replace('NAME, …', 'filesystem_ro')}\n"
    assert refused(tmp_path, "instructions: Hi.\n", file) == ""


def test_a_file_without_rules_says_that_an_empty_policy_is_enough(tmp_path: Path) -> None:
    told = ""
    try:
        refused(tmp_path, "", "people: {ana: {roles: [ops]}}\n")
    except SignoffError as error:
        told = str(error)
    assert "`policy: []` is enough" in told
    assert refused(tmp_path, "instructions: Hi.\n", "people: {ana: {roles: [ops]}}\npolicy: []\n") == ""


@pytest.mark.parametrize(
    ("policy", "effect"),
    [
        ({"mode": "prompt"}, "ask"),
        ({"mode": "auto_approve"}, "allow"),
        ({"pre_approved": True}, "allow"),
        ({"pre_approved": False}, "ask"),
        ({"blocked": True}, "deny"),
    ],
)
def test_options_without_a_tool_say_what_to_write_for_every_call(policy: Any, effect: str) -> None:
    for attach in (
        lambda given: with_approval(FunctionToolset(), given),
        lambda given: approval_tool(FunctionToolset(), given)(lambda: "x"),
    ):
        with pytest.raises(WrongUse, match=rf"write '{effect}' in place of the mapping"):
            attach(policy)
    with_approval(FunctionToolset(), effect)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"pre_approved": True}, r"write @approval_tool\(tools, 'allow'\)"),
        ({"pre_approved": False}, r"write @approval_tool\(tools, 'ask'\)"),
        ({"blocked": True}, r"write @approval_tool\(tools, 'deny'\)"),
        ({"retrys": 2}, "did you mean `retries`"),
        ({"lables": ["money"]}, "did you mean `labels`"),
    ],
)
def test_an_option_that_the_decorator_does_not_take_is_refused_with_what_to_write(
    options: dict[str, Any], advice: str
) -> None:
    with pytest.raises(WrongUse, match=advice):
        approval_tool(FunctionToolset(), **options)(lambda: "x")
    approval_tool(FunctionToolset(), "allow", retries=2, name="pay")(lambda: "x")


@pytest.mark.parametrize(("key", "ours"), [("rules", "`policy:` of a toolset"), ("default", "otherwise: deny")])
def test_llm_dos_keys_of_a_shell_get_ours(tmp_path: Path, key: str, ours: str) -> None:
    file = f"toolsets: {{sh: {{use: shell_file_ops, config: {{{key}: []}}}}}}\n"
    (tmp_path / "signoff.yaml").write_text(file)
    with pytest.raises(SignoffError, match=rf"llm-do's `{key}` is .*{ours}"):
        Catalog(load_settings(tmp_path / "signoff.yaml")).build("sh")
