"""`otherwise: deny`: what no rule above it names is refused, by what the call is and not by how it reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.policy.rules import ROOT, call, explained, policy
from tests.policy.shell.commands import spoken
from tests.policy.sql.test_sql_properties import OTHERS, READS
from tests.policy.sql.test_sql_properties import TEXTS as SQL_TEXTS
from tests.policy.test_properties import TEXTS, arguments, calls, paths, rules, tool_patterns
from tests.policy.test_reach import hidden, named_layers, told
from tests.profiles import examples
from tests.tables import table

from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.errors import PolicyError
from signoff.policy.call_paths import Facts
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.policy.match_result import YES, Truth
from signoff.policy.policy_source import parse_policy
from signoff.policy.policy_text import read_written, written
from signoff.policy.reach import reach, reach_of

DENY = {"otherwise": "deny"}
GIT: list[dict[str, Any]] = [
    {"allow": {"tool": "shell", "command": ["git status", "git diff *"]}},
    {"ask": {"tool": "shell", "command": "git push *"}},
]


def shell(command: str) -> Call:
    return Call(tool="shell", args={"command": command})


# --- what it means ---


@pytest.mark.mission("P12")
@table(
    ("command", "said"),
    [
        ("git status", "allow"),
        ("git diff --stat", "allow"),
        ("git diff a | head -3", "deny"),
        ("git status; git diff x", "allow"),
        ("git push origin main", "ask"),
        ("make", "deny"),
        ("git status; make", "deny"),
        ("git status && make", "deny"),
        ("git status | sh", "deny"),
        ("git push; make", "deny"),
        ("make; git push", "deny"),
        ("git push $(make)", "deny"),
        ("$(echo make)", "deny"),
        ("git $X", "deny"),
        ("env git push", "ask"),
        ("env X=$Y git push", "deny"),
        ("env make", "deny"),
        ("bash -c 'git push'", "deny"),
        ("git status > x", "deny"),
        ("git -c alias.x='!make' x", "deny"),
        ("", "deny"),
        ("'", "deny"),
    ],
)
def test_p12_a_rule_on_git_lets_nothing_else_in(command: str, said: str) -> None:
    for last in (DENY, {**DENY, "tool": "shell"}, {**DENY, "tool": ["s*"]}):
        assert policy(*GIT, last).judge(shell(command)).effect == said


def test_p12_it_says_that_no_rule_names_the_call_and_where() -> None:
    text = "policy:\n- allow: {tool: shell, command: git status}\n- otherwise: deny\n  reason: only git here\n"
    verdict = parse_policy(text, file="signoff.yaml").judge(Call(tool="mail"))
    assert (verdict.effect, verdict.rules) == (Effect.DENY, ("rule-2",))
    assert verdict.reason == "no rule names this call, and otherwise: deny (signoff.yaml:3): only git here"
    assert policy(DENY).judge(call()).reason == "no rule names this call, and otherwise: deny (<rules>: policy[0])"


def test_a_tool_or_a_toolset_has_a_whitelist_of_its_own() -> None:
    rules = [*GIT, {**DENY, "tool": "shell"}, {"ask": "mail"}]
    assert policy(*rules).judge(shell("make")).effect is Effect.DENY
    assert policy(*rules).judge_layer(call("zap")) is None, "about other tools it says nothing"
    assert policy(*rules).judge(call("mail")).effect is Effect.ASK
    of_db = policy({"allow": "query"}, {**DENY, "toolset": "db"})
    assert of_db.judge(call("drop", toolset="db")).effect is Effect.DENY
    assert of_db.judge(call("drop", toolset="other")).effect is Effect.ASK
    assert of_db.judge(call("drop")).effect is Effect.ASK


def test_deny_wins_and_what_is_named_is_as_before() -> None:
    rules = [{"deny": {"path": "**/.env"}}, {"ask": {"tool": "read", "args": {"n": {">": 9}}}}, {"allow": "read"}, DENY]
    said = policy(*rules).judge
    assert said(call("read", path=".env")).rules == ("rule-1",)
    assert said(call("read", n=10)).effect is Effect.ASK
    assert said(call("read", n="many")).effect is Effect.ASK, "it is named, and a rule that asks is in doubt"
    assert said(call("read", n=1)).effect is Effect.ALLOW
    assert said(call("write")).rules == ("rule-4",)


def test_doubt_names_nothing() -> None:
    ask = {"ask": {"tool": "pay", "args": {"amount": {">": 100}}}}
    verdict = policy(ask, DENY).judge(call(amount="a lot"))
    assert verdict.effect is Effect.DENY
    assert verdict.errors[0].startswith("rule-1: `amount` is a text")
    assert "rule “rule-1” could not be checked" in verdict.reason
    assert policy(ask, DENY).judge(call(amount=101)).effect is Effect.ASK
    assert policy({"allow": "pay"}, DENY).judge(call(unreadable=("x (a set)",))).effect is Effect.ASK
    assert policy({"allow": "tip"}, DENY).judge(call(unreadable=("x (a set)",))).effect is Effect.DENY


def test_doubt_whether_it_is_about_the_call_asks() -> None:
    rules = [{**DENY, "tool": "pay*"}, {"allow": "*"}]
    assert policy(*rules).judge(call("pay\n")).effect is Effect.ASK
    assert policy(*rules).judge(call("payment")).effect is Effect.DENY
    assert policy(*rules).judge(call("tip")).effect is Effect.ALLOW


def test_a_rule_that_raises_names_nothing() -> None:
    class Deps:
        @property
        def user(self) -> str:
            raise OSError("away")

    rules = [{"allow": {"tool": "pay", "deps": {"user": "ana"}}}, DENY]
    assert policy(*rules).judge(call(deps=Deps())).effect is Effect.DENY
    assert policy(*rules).judge(call(deps={"user": "ana"})).effect is Effect.ALLOW


@pytest.mark.parametrize(
    ("rule", "part", "whole"),
    [
        ({"path": "src/**"}, {"source": "src/a", "target": "/etc/x"}, {"source": "src/a", "target": "src/b"}),
        ({"url": "api.example.com"}, {"urls": ["https://api.example.com/", "https://evil.example"]},
         {"urls": ["https://api.example.com/"]}),
        ({"recipients": {"domains": "acme.com"}}, {"to": ["a@acme.com", "b@evil.example"]}, {"to": ["a@acme.com"]}),
        ({"sql": {"tables": "a"}}, {"sql": "SELECT * FROM a JOIN b ON 1=1"}, {"sql": "SELECT * FROM a"}),
    ],
)  # fmt: skip
def test_who_asks_about_a_part_names_no_more_than_that(rule: Any, part: Any, whole: Any) -> None:
    whitelist = policy({"ask": {"tool": "x", **rule}}, DENY)
    assert policy({"ask": {"tool": "x", **rule}}).judge(Call(tool="x", args=part)).effect is Effect.ASK
    refused = whitelist.judge(Call(tool="x", args=part))
    assert (refused.effect, refused.rules) == (Effect.DENY, ("rule-2",))
    assert "rule-1 only covers a part of it" in refused.reason
    assert whitelist.judge(Call(tool="x", args=whole)).effect is Effect.ASK


def test_another_rule_may_name_the_whole() -> None:
    rules = [
        {"ask": {"tool": "shell", "command": "git push *"}},
        {"allow": {"tool": "shell", "command": ["git push *", "make"]}},
    ]
    assert policy(*rules, DENY).judge(shell("git push; make")).effect is Effect.ASK
    assert policy(*rules, DENY).judge(shell("git push; ls")).effect is Effect.DENY
    assert policy(*rules, DENY).judge(shell("make")).effect is Effect.ALLOW


def test_a_rule_about_what_a_command_does_names_every_such_line() -> None:
    rules = [{"ask": {"tool": "shell", "command": {"does": "writes"}}}, DENY]
    assert policy(*rules).judge(shell("touch a; ls")).effect is Effect.ASK
    assert policy(*rules).judge(shell("ls")).effect is Effect.DENY
    assert policy(*rules).judge(shell("$X")).effect is Effect.DENY


def test_rules_below_it_name_nothing_for_it() -> None:
    rules = [{"ask": "a"}, DENY, {"allow": "b"}, {"deny": "c"}]
    assert policy(*rules).judge(call("b")).rules == ("rule-2",)
    assert policy(*rules).judge(call("c")).rules == ("rule-4",), "what denies wins wherever it stands"
    (problem,) = policy(*rules).warnings
    assert problem.what == "rule-3 never decides: rule-2 otherwise denies every call"
    assert problem.fix == "move it above rule-2, or narrow rule-2"


def test_claims_name_nothing() -> None:
    rules = [{"allow": "data.read"}, DENY]
    assert policy(*rules).judge(call("query").changed(claimed=frozenset({"data.read"}))).effect is Effect.DENY
    assert policy(*rules).judge(call("query", labels=frozenset({"data.read"}))).effect is Effect.ALLOW


def test_the_strictest_layer_holds() -> None:
    outer, inner = policy({"allow": "read"}, DENY), policy({"allow": "write"}, {"allow": "read"})
    assert Layers((outer, inner)).judge(call("write")).effect is Effect.DENY
    assert Layers((inner, outer)).judge(call("write")).effect is Effect.DENY
    assert Layers((outer, inner)).judge(call("read")).effect is Effect.ALLOW
    assert (
        Layers((policy({"allow": "read"}, {**DENY, "tool": "shell"}), inner)).judge(call("write")).effect
        is Effect.ALLOW
    )


def test_it_is_kept_with_the_question_and_changes_the_revision() -> None:
    kept = read_written(written(policy(*GIT, DENY)) or "")
    for command in ("git status", "git push; make", "make"):
        assert kept.judge(shell(command)).effect is policy(*GIT, DENY).judge(shell(command)).effect
    assert policy(*GIT, DENY).revision != policy(*GIT).revision


# --- how it is written, checked and explained ---


@table(
    ("rule", "says"),
    [
        ("{otherwise: ask}", "f:2:15: policy[0].otherwise: `otherwise` denies: what no rule names is asked about"),
        ("{otherwise: allow}", "f:2:15: policy[0].otherwise: `otherwise` denies: that names every call"),
        ("{otherwise: deny it}", "f:2:15: policy[0].otherwise: `otherwise` says `deny` and nothing else"),
        ("{otherwise: {deny: x}}", "f:2:15: policy[0].otherwise: `otherwise` says `deny` and nothing else"),
        ("{otherwise: deny, command: git}", "f:2:21: policy[0].command: `command` does not go with `otherwise`"),
        ("{otherwise: deny, tools: shell}", "f:2:21: policy[0].tools: `tools` does not go with `otherwise`"),
        ("{otherwise: deny, by: ops}", "f:2:21: policy[0].by: `by` does not go with `otherwise`"),
        ("{otherwise: deny, ask: x}", "f:2:21: policy[0].ask: a rule says one thing, not otherwise and ask"),
        ("{otherwise: deny, tool: []}", "f:2:27: policy[0].tool: the list is empty"),
        ("{otherwize: deny}", "f:2:4: policy[0].otherwize: unknown effect `otherwize`"),
        ("{allow: x, tool: shell}", "f:2:14: policy[0].tool: unknown key `tool`"),
    ],
)  # fmt: skip
def test_what_it_may_not_be(rule: str, says: str) -> None:
    with pytest.raises(PolicyError) as error:
        parse_policy(f"policy:\n- {rule}", file="f")
    assert str(error.value).startswith(says)
    assert error.value.fix


def test_examples_are_held_against_it_and_what_stands_above() -> None:
    named = "- allow: {tool: shell, command: git status}\n- ask: {tool: shell, command: git push *}\n"
    head = f"policy:\n{named}- otherwise: deny\n"
    good = "  examples: {match: [make, git status; make, git push; make], miss: [git status, git push a]}\n"
    assert len(parse_policy(head + good).rules) == 3
    assert len(parse_policy(f"{head}  tool: shell\n{good}").rules) == 3
    for bad, says in (
        ("{miss: [make]}", "this example should miss, but rule-3 matches it: it otherwise denies every call"),
        ("{match: [git status]}", "this example should match, but rule-3 does not match it: rule-1 names the call"),
        ("{match: [git push a]}", "this example should match, but rule-3 does not match it: rule-2 names the call"),
    ):
        with pytest.raises(PolicyError, match=r"policy.2..examples") as error:
            parse_policy(f"{head}  examples: {bad}\n")
        assert says in str(error.value)
    with pytest.raises(PolicyError, match="about none of them"):
        parse_policy("policy: [{otherwise: deny, examples: {match: [make]}}]")


def test_explain_says_which_rule_names_the_call_and_which_does_not() -> None:
    told = explained(*GIT, DENY, on=shell("git push; make"))
    assert told.sentence.startswith(
        "deny: no rule names this call, and otherwise: deny (<rules>: policy[2]): rule-2 only covers"
    )
    assert told.rule is not None and told.rule.id == "rule-3"
    assert [one.truth for one in told.considered] == [Truth.NO, Truth.NO, Truth.YES]
    told = explained(*GIT, DENY, on=shell("git push"))
    assert [one.truth for one in told.considered] == [Truth.NO, Truth.YES, Truth.NO]
    assert told.considered[2].why == "rule-2 names the call"
    json.dumps(told.as_json())


def test_warnings() -> None:
    def warned(*rules: dict[str, Any]) -> list[str]:
        return [problem.what for problem in policy(*rules).warnings]

    assert warned(DENY) == ["rule-1 denies every call: no rule above it names any"]
    assert warned({"deny": "x"}, DENY) == ["rule-2 denies every call: no rule above it names any"]
    assert warned({"ask": "*"}, DENY) == ["rule-2 never decides: rule-1 asks about every call"]
    assert warned({"ask": "x"}, {"deny": "*"}, DENY)[-1] == "rule-3 never decides: rule-2 denies every call"
    assert warned({"ask": "x"}, {**DENY, "tool": "x"}) == ["rule-2 never decides: rule-1 asks about `x`"]
    assert warned({"ask": "x"}, {**DENY, "tool": "y"}, {"allow": "y"}) == [
        "rule-3 never decides: rule-2 otherwise denies `y`"
    ]
    assert warned(*GIT, DENY) == []
    assert warned({"deny": {"tool": "x", "args": {"a": 1}}}, {"ask": "x"}, {**DENY, "toolset": "db"}) == []


def test_a_misspelt_tool_is_found() -> None:
    (problem,) = policy(*GIT, {**DENY, "tool": "shel"}).unknown_tools(["shell", "mail"])
    assert (problem.what, problem.fix) == ("there is no tool `shel`", "did you mean `shell`?")


@table(
    ("written", "effect"),
    [
        ([DENY], "deny"),
        ([{"allow": "tip"}, DENY], "deny"),
        ([{"allow": "pay"}, DENY], "allow"),
        ([{"allow": {"tool": "pay", "args": {"a": 1}}}, DENY], "conditional"),
        ([{"ask": {"tool": "pay", "args": {"a": 1}}}, DENY], "ask"),
        ([{"allow": "tip"}, {**DENY, "tool": "tip"}], "ask"),
        ([{**DENY, "tool": "pay"}, {"allow": "*"}], "deny"),
        ([{**DENY, "toolset": "db"}, {"allow": "*"}], "allow"),
    ],
)
def test_what_can_happen_to_a_tool(written: list[dict[str, Any]], effect: str) -> None:
    assert reach([policy(*written)], "pay").effect == effect
    assert reach([policy(*written), policy({"allow": "pay"})], "pay").effect == {
        "ask": "ask" if "args" in str(written) else "allow",
        "conditional": "conditional",
    }.get(effect, effect)


# --- for all policies, and all calls ---


otherwises = st.fixed_dictionaries(
    {"otherwise": st.just("deny")}, optional={"tool": tool_patterns, "toolset": st.sampled_from(["files", "f*"])}
)
mixed = st.tuples(rules, otherwises, rules, st.lists(otherwises, max_size=1)).map(
    lambda parts: [*parts[0], parts[1], *parts[2], *parts[3]]
)


def made(written: list[dict[str, Any]]) -> Policy:
    return Policy.from_rules(written, root=ROOT)


def law(policy: Policy, one: Call) -> Effect | None:
    """What is decided, word for word, without an index."""
    facts = Facts(one, policy.root)
    found = [(rule, rule.find(facts)) for rule in policy.rules]
    denies = [pair for pair in found if pair[0].effect is Effect.DENY and not pair[0].otherwise]
    if any(finding is YES for _, finding in denies):
        return Effect.DENY
    doubt = any(finding.truth is Truth.UNKNOWN for _, finding in denies) or bool(one.unreadable)
    answer, named = None, False
    for rule, finding in found:
        if rule.otherwise:
            if finding is YES and not named:
                return Effect.DENY
            doubt = doubt or (finding.truth is Truth.UNKNOWN and answer is None)
        elif rule.effect is not Effect.DENY:
            named = named or rule.find_name(facts) is YES
            if answer is None and finding is YES:
                answer = rule.effect
            elif answer is None:
                doubt = doubt or finding.raised or (finding.truth is Truth.UNKNOWN and rule.effect is Effect.ASK)
        if answer is Effect.ALLOW:
            break
    return Effect.ASK if doubt else answer


@examples(3_000, daily=20)
@given(mixed, calls)
def test_the_index_agrees_with_looking_at_every_rule(written: list[dict[str, Any]], one: Call) -> None:
    verdict = made(written).judge_layer(one)
    assert (verdict.effect if verdict else None) is law(made(written), one)
    assert verdict is None or ("\n" not in verdict.reason and verdict.reason)
    assert made(written).explain(one).verdict == made(written).judge(one)


@examples(1_500, daily=25)
@given(mixed, calls, st.integers(0, 6))
def test_taking_it_away_never_denies_more_and_adding_it_never_allows_more(
    written: list[dict[str, Any]], one: Call, at: int
) -> None:
    without = made([rule for rule in written if "otherwise" not in rule]).judge(one).effect
    assert made(written).judge(one).effect.strictness >= without.strictness
    more = made([*written[:at], DENY, *written[at:]]).judge(one).effect
    assert more.strictness >= made(written).judge(one).effect.strictness


@examples(1_500, daily=30)
@given(st.lists(mixed | rules, min_size=1, max_size=2), calls, hidden)
@example([[{"otherwise": "deny", "tool": "[px]*"}, {"otherwise": "deny"}]], Call(tool="pay\n", args={}), frozenset())
def test_a_verdict_is_always_within_reach(
    written: list[list[dict[str, Any]]], one: Call, unsure: frozenset[str]
) -> None:
    policies = named_layers(written)
    verdict = Layers(policies).judge(one)
    found = reach_of((policy, told(one, unsure)) for policy in policies)
    if verdict.effect is Effect.ALLOW:
        assert set(verdict.rules) <= {rule.id for rule in found.lets}
    elif verdict.effect is Effect.DENY:
        assert found.effect != "allow"
    else:
        assert found.effect != "deny"


def narrows(before: Policy, after: Policy, one: Call) -> None:
    """With `otherwise: deny` nothing more is allowed, and nothing is asked about for want of a rule."""
    was, now = before.judge(one).effect, after.judge(one).effect
    assert now.strictness >= was.strictness
    assert (now is Effect.ALLOW) == (was is Effect.ALLOW), "what is allowed is named"
    if before.judge_layer(one) is None:
        assert now is Effect.DENY
    if now is Effect.ASK:
        facts = Facts(one, after.root)
        assert any(rule.find_name(facts) is YES for rule in after.rules if rule.effect is not Effect.DENY)


commands = st.lists(spoken(), min_size=1, max_size=3).flatmap(
    lambda some: st.sampled_from(["; ", " && ", " | ", "\n", " & "]).map(
        lambda join: join.join(one.text() for one in some)
    )
)
SHELL = [
    {"deny": {"command": ["rm", "sudo"]}},
    {"ask": {"tool": "shell", "command": ["git push *", "sed *", "find *"]}},
    {"ask": {"tool": "shell", "command": {"secret": True}}},
    {"allow": {"tool": "shell", "command": ["read-only", "git status", "make test"]}},
]


@examples(3_000, daily=15)
@given(commands | st.text(max_size=30))
@example("git push; make")
@example("git status; make")
@example("sed p a; $(x)")
def test_over_commands(command: str) -> None:
    narrows(made(SHELL), made([*SHELL, DENY]), shell(command))
    narrows(made(SHELL[1:]), made([*SHELL[1:], {**DENY, "tool": "shell"}]), shell(command))


SQL = [
    {"deny": {"sql": {"operation": "drop"}}},
    {"ask": {"tool": "query", "sql": {"tables": "t"}}},
    {"allow": {"tool": "query", "sql": "read-only"}},
]


@examples(3_000, daily=25)
@given(SQL_TEXTS | READS | OTHERS | st.tuples(READS, OTHERS).map("; ".join))
def test_over_sql(text: str) -> None:
    narrows(made(SQL), made([*SQL, DENY]), Call(tool="query", args={"sql": text}))


@examples(3_000, daily=50)
@given(
    st.lists(paths, min_size=1, max_size=2),
    st.sampled_from(["allow", "ask"]),
    arguments | st.dictionaries(st.sampled_from(["path", "target", "note"]), st.sampled_from(TEXTS), max_size=3),
)
def test_over_paths(patterns: list[str], effect: str, args: dict[str, Any]) -> None:
    rules = [{"deny": {"path": "**/.env"}}, {effect: {"path": patterns}}, {"allow": {"path": {"inside": "src"}}}]
    narrows(made(rules), made([*rules, DENY]), Call(tool="read", args=args))
