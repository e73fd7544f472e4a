"""What a rule matches besides values: tools, toolsets, workers, labels, alternatives."""

from __future__ import annotations

from typing import Any

import pytest
from tests.policy.rules import call, finding
from tests.tables import table

from signoff.core.call import LABELS
from signoff.core.verdict import Effect
from signoff.policy.engine import Policy
from signoff.policy.match_result import Truth

YES, NO, UNKNOWN = Truth.YES, Truth.NO, Truth.UNKNOWN


@table(
    ("match", "tool", "answer"),
    [
        ("bash", "bash", YES),
        ("bash", "bash_admin", NO),
        ("bash", "Bash", NO),
        ("bash", "bash\n", NO),
        ("git_*", "git_status", YES),
        ("git_*", "git_x\ny", UNKNOWN),
        ("*", "anything\nat all", YES),
        ("**", "x", YES),
        ({}, "anything", YES),
        ({"tool": "*"}, "x", YES),
        ({"tool": ["read", "write"]}, "write", YES),
        ({"tool": ["read", "w*"]}, "exec", NO),
        (["read", "write"], "write", YES),
        (["read", {"tool": "x"}], "write", NO),
        (["read*", "x"], "read\n", UNKNOWN),
        ({"tool": "money"}, "money", YES),
        ("fs", "fs", YES),
    ],
)
def test_tools(match: Any, tool: str, answer: Truth) -> None:
    assert finding(match, call(tool)).truth is answer


@pytest.mark.parametrize("label", sorted(LABELS))
def test_a_known_label_is_a_label(label: str) -> None:
    assert finding(label, call("x", labels=frozenset({label}))).truth is YES
    assert finding(label, call(label)).truth is NO


def test_labels() -> None:
    match = {"label": ["fs.read", "fs.write"]}
    assert finding(match, call(labels=frozenset({"money", "fs.write"}))).truth is YES
    assert finding(match, call(labels=frozenset({"money"}))).truth is NO
    assert finding({"label": "money", "tool": "pay"}, call("pay", labels=frozenset({"money"}))).truth is YES
    assert finding({"label": "money", "tool": "pay"}, call("tip", labels=frozenset({"money"}))).truth is NO


def test_toolsets() -> None:
    assert finding({"toolset": "files"}, call(toolset="files")).truth is YES
    assert finding({"toolset": ["db", "fi*"]}, call(toolset="files")).truth is YES
    assert finding({"toolset": "files"}, call(toolset="files2")).truth is NO
    assert finding({"toolset": "files"}, call()).truth is NO
    assert finding({"toolset": "f*"}, call(toolset="f\n")).truth is UNKNOWN


@table(
    ("pattern", "worker", "answer"),
    [
        ("triage", ("triage",), YES),
        ("triage", ("main", "triage"), YES),
        ("triage", ("triage", "analyzer"), YES),
        ("tri*", ("triage",), YES),
        ("triage", (), NO),
        ("main > triage", ("main", "triage"), YES),
        ("main > triage", ("triage",), NO),
        ("main > *", ("main", "a", "b"), YES),
        ("* > triage", ("other", "triage"), YES),
        ("* > triage", ("triage",), NO),
        (["main > triage", "solo"], ("solo",), YES),
        (["main > triage", "solo"], ("x",), NO),
        # Nobody gets into a chain by calling himself one.
        ("main > triage", ("main > triage",), UNKNOWN),
        ("main > *", ("main > x", "y"), UNKNOWN),
        (["main > triage", "evil*"], ("evil > x",), YES),
    ],
)
def test_workers(pattern: Any, worker: tuple[str, ...], answer: Truth) -> None:
    assert finding({"worker": pattern}, call(worker=worker)).truth is answer


def test_what_a_worker_must_not_do_nobody_does_for_it_and_what_it_may_do_only_itself() -> None:
    rules = [{"deny": {"tool": "pay", "worker": "intern"}}, {"allow": {"tool": "pay", "worker": "clerk"}}]
    policy = Policy.from_rules(rules)
    assert policy.judge(call(worker=("intern", "clerk"))).effect is Effect.DENY
    assert policy.judge(call(worker=("clerk", "helper"))).effect is Effect.ASK
    assert policy.judge(call(worker=("boss", "clerk"))).effect is Effect.ALLOW


def test_all_conditions_must_hold_and_a_no_beats_an_unknown() -> None:
    match = {"tool": "pay", "toolset": "bank", "args": {"amount": {">": 1}, "to": "ana"}}
    assert finding(match, call(toolset="bank", args={"amount": 2, "to": "ana"})).truth is YES
    assert finding(match, call(toolset="bank", args={"amount": "2", "to": "ana"})).truth is UNKNOWN
    assert finding(match, call(toolset="bank", args={"amount": "2", "to": "bob"})).truth is NO
    assert finding(match, call(toolset="shop", args={"amount": "2", "to": "ana"})).truth is NO


def test_alternatives_any_yes_beats_an_unknown() -> None:
    match = [{"args": {"amount": {">": 1}}}, {"args": {"to": "ana"}}]
    assert finding(match, call(args={"amount": "2", "to": "ana"})).truth is YES
    assert finding(match, call(args={"amount": "2", "to": "bob"})).truth is UNKNOWN
    assert finding(match, call(args={"amount": 0, "to": "bob"})).truth is NO
