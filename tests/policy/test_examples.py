"""`examples` on a rule are held against it when the file is read."""

from __future__ import annotations

import pytest
from tests.tables import table

from signoff.errors import PolicyError
from signoff.policy.policy_source import parse_policy


@table(
    "rule",
    [
        "{ask: pay, examples: {match: [{args: {}}, {tool: pay}, {}], miss: [{tool: tip}]}}",
        "{ask: {tool: pay, args: {amount: {'>': 9}}}, examples: {match: [{args: {amount: 10}}], miss: [{args: {}}]}}",
        "{deny: {path: '**/.env'}, examples: {match: [.env, a/../.env], miss: [a.env, {args: {path: x}}]}}",
        "{allow: {path: src/**}, examples: {match: [src/a], miss: [lib/a, src/../x]}}",
        "{allow: {tool: cat, label: fs.read, toolset: files, worker: a > b, path: src/**}, examples: {match: [src/a]}}",
        "{ask: fs.write, examples: {match: [{label: fs.write}, {labels: [money, fs.write]}], miss: [{label: money}]}}",
        "{ask: {worker: a > b}, examples: {match: [{worker: [a, b]}], miss: [{worker: b}, {worker: [b, a]}]}}",
        "{ask: {toolset: db}, examples: {match: [{toolset: db, tool: x}], miss: [{tool: x}]}}",
        "{ask: {deps: {user.role: guest}}, examples: {match: [{deps: {user: {role: guest}}}], miss: [{}]}}",
        "{ask: [pay, {path: '**/x'}], examples: {match: [a/x, {tool: pay}]}}",
    ],
)
def test_examples_that_hold(rule: str) -> None:
    for root in ("/srv/app", None):
        assert len(parse_policy(f"policy:\n- {rule}", root=root).rules) == 1


@table(
    ("rule", "place", "says"),
    [
        (
            "{ask: {tool: pay, args: {amount: {'>': 9}}}, examples: {match: [{args: {amount: 9}}]}}",
            "f:2:67: policy[0].examples.match[0]",
            "this example should match, but rule-1 does not match it: `amount` is not > 9",
        ),
        (
            "{ask: {tool: pay, args: {amount: {'>': 9}}}, examples: {match: [{args: {amount: '10'}}]}}",
            "f:2:67: policy[0].examples.match[0]",
            "rule-1 cannot be evaluated for it: `amount` is a text",
        ),
        (
            "{ask: pay, id: money, examples: {miss: [{tool: tip}, {}]}}",
            "f:2:56: policy[0].examples.miss[1]",
            "this example should miss, but money matches it: it asks about `pay`",
        ),
        (
            "{ask: {tool: pay, args: {a: {'>': 9}}}, examples: {miss: [{args: {a: x}}]}}",
            "f:2:61: policy[0].examples.miss[0]",
            "this example should miss, but rule-1 cannot be evaluated for it",
        ),
        ("{ask: pay, examples: [x]}", "f:2:24: policy[0].examples", "a mapping with `match` and `miss`"),
        ("{ask: pay, examples: {mach: [x]}}", "f:2:25: policy[0].examples.mach", "unknown key `mach`"),
        ("{ask: pay, examples: {match: []}}", "f:2:32: policy[0].examples.match", "the list is empty"),
        ("{ask: pay, examples: {match: [3]}}", "f:2:33: policy[0].examples.match[0]", "a call, not a number"),
        ("{ask: pay, examples: {match: [x]}}", "f:2:33: policy[0].examples.match[0]", "about none of them"),
        ("{ask: pay, examples: {match: [{arg: {}}]}}", "f:2:34: policy[0].examples.match[0].arg", "unknown key `arg`"),
        ("{ask: pay, examples: {match: [{args: x}]}}", "f:2:40: policy[0].examples.match[0].args", "a mapping"),
        ("{ask: [a, b], examples: {match: [{}]}}", "f:2:36: policy[0].examples.match[0]", "which tool"),
        ("{ask: 'a*', examples: {match: [{}]}}", "f:2:34: policy[0].examples.match[0]", "which tool"),
        (
            "{ask: money, examples: {match: [{label: mony}]}}",
            "f:2:43: policy[0].examples.match[0].label",
            "unknown label `mony`",
        ),
    ],
)
def test_examples_that_do_not(rule: str, place: str, says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(f"policy:\n- {rule}", file="f", root="/srv/app")
    assert str(caught.value.place) == place
    assert says in caught.value.what
