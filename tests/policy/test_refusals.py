"""Everything a policy file can get wrong is refused with file, line, column, key path and what to do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.tables import table

from signoff.errors import PolicyError
from signoff.policy.engine import Policy
from signoff.policy.phrases import did_you_mean
from signoff.policy.policy_source import parse_policy


def test_a_hint_names_all_words_that_are_equally_near() -> None:
    words = ["b/notetaker", "a/notetaker", "writer"]
    assert did_you_mean("notetaker", words) == "did you mean `a/notetaker` or `b/notetaker`?"
    assert did_you_mean("alow", ["allow", "ask", "deny"]) == "did you mean `allow`?"
    assert did_you_mean("zzz", ["allow", "ask"]) == "known here: `allow`, `ask`"


def refused(text: str) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, file="signoff.yaml", root="/srv/app")
    return caught.value


@table(
    ("rule", "column", "key", "says", "fix"),
    [
        # the rule itself
        ("x", 5, "", "a rule", ""),
        ("{}", 5, "", "neither allow, ask nor deny", "{ask: TOOL}"),
        ("{reason: x}", 5, "", "neither allow, ask nor deny", ""),
        ("{alow: x}", 6, ".alow", "unknown effect `alow`", "did you mean `allow`?"),
        ("{permit: x}", 6, ".permit", "unknown effect `permit`", "`allow`, `ask`, `deny`"),
        ("{allow: x, deny: y}", 16, ".deny", "not allow and deny", "two rules"),
        ("{ask: x, qourum: 2}", 14, ".qourum", "unknown key `qourum`", "did you mean `quorum`?"),
        ("{ask: x, why: y}", 14, ".why", "unknown key `why`", ""),
        ("{ask: }", 11, ".ask", "a tool, a label or a mapping, not null", "{}"),
        ("{ask: 3}", 11, ".ask", "not a number", ""),
        ("{ask: []}", 11, ".ask", "the list is empty", "a list of"),
        ("{ask: [x, [y]]}", 15, ".ask[1]", "not a list", ""),
        ('{ask: ""}', 11, ".ask", "the text is empty", ""),
        ('{ask: "a[b"}', 11, ".ask", "bad pattern `a[b`", "never closed"),
        ("{ask: fs.raed}", 11, ".ask", "unknown label `fs.raed`", "did you mean `fs.read`?"),
        # ids and reasons
        ('{ask: x, id: ""}', 18, ".id", "the text is empty", ""),
        ("{ask: x, id: 7}", 18, ".id", "not a number", "quotes"),
        ("{ask: x, id: a b}", 18, ".id", "bad id `a b`", "letters"),
        ("{ask: x, reason: [a]}", 22, ".reason", "not a list", ""),
        # what is matched
        ("{ask: {tol: x}}", 12, ".ask.tol", "unknown key `tol`", "did you mean `tool`?"),
        ("{ask: {tool: 3}}", 18, ".ask.tool", "not a number", "quotes"),
        ("{ask: {tool: []}}", 18, ".ask.tool", "the list is empty", ""),
        ("{ask: {tool: {a: 1}}}", 18, ".ask.tool", "not a mapping", ""),
        ("{ask: {toolset: [a, 1]}}", 25, ".ask.toolset[1]", "not a number", ""),
        ("{ask: {worker: true}}", 20, ".ask.worker", "not true or false", ""),
        ("{ask: {label: fs.wirte}}", 19, ".ask.label", "unknown label `fs.wirte`", "did you mean `fs.write`?"),
        ("{ask: {label: [money, x]}}", 27, ".ask.label[1]", "unknown label `x`", "known here"),
        ("{ask: {tool: pay, by: ops}}", 23, ".ask.by", "`by` is about the rule, not about the call", "beside `ask`"),
        # commands, SQL, URLs, amounts
        ("{ask: {command: ls | wc}}", 21, ".ask.command", "bad command pattern `ls | wc`", "one simple command"),
        ("{ask: {command: {}}}", 21, ".ask.command", "requires nothing", "`matches`, `does`"),
        ("{ask: {command: {does: write}}}", 28, ".ask.command.does", "`write`", "writes"),
        (
            "{allow: {command: {does: runs}}}",
            24,
            ".allow.command.does",
            "makes no sense where a rule allows",
            "read-only",
        ),
        ("{ask: {sql: select}}", 17, ".ask.sql", "`select`", "read-only"),
        ("{ask: {sql: {dialect: postgres}}}", 17, ".ask.sql", "requires nothing", "`is`"),
        ("{ask: {sql: {is: read-only, dialect: db2}}}", 42, ".ask.sql.dialect", "`db2`", "postgres"),
        ("{ask: {url: https://}}", 17, ".ask.url", "bad URL pattern `https://`", "write a host"),
        ("{ask: {url: {private: maybe}}}", 27, ".ask.url.private", "true or false", ""),
        ("{ask: {amount: many}}", 20, ".ask.amount", "should be a number", "currency: EUR"),
        ('{ask: {amount: {">": 5, "<": 4}}}', 20, ".ask.amount", "no amount is in this range", ""),
        ("{ask: {path: {secret: 1}}}", 27, ".ask.path.secret", "true or false", ""),
        ("{ask: {path: {outside: a/*}}}", 28, ".ask.path.outside", "bad path", "takes a directory"),
        # arguments
        ("{ask: {args: x}}", 18, ".ask.args", "a mapping of argument names", ""),
        ("{ask: {args: {}}}", 18, ".ask.args", "this is empty", "leave the key out"),
        ("{ask: {args: {a: {}}}}", 22, ".ask.args.a", "this is empty", "an operator"),
        ("{ask: {args: {a..b: 1}}}", 19, '.ask.args["a..b"]', "bad key `a..b`", "`/a.b`"),
        ('{ask: {args: {"": 1}}}', 19, '.ask.args[""]', "bad key ``", ""),
        ("{ask: {args: {items.*.x: 1}}}", 19, '.ask.args["items.*.x"]', "bad key", "no wildcards"),
        ('{ask: {args: {a: {"=>": 1}}}}', 23, '.ask.args.a["=>"]', "unknown operator `=>`", "did you mean `>=`?"),
        ('{ask: {args: {a: {"==": 1}}}}', 23, '.ask.args.a["=="]', "unknown operator `==`", "did you mean `equals`?"),
        ('{ask: {args: {a: {"!=": 1}}}}', 23, '.ask.args.a["!="]', "there is no operator `!=`", "order the rules"),
        ('{ask: {args: {a: {"&&": 1}}}}', 23, '.ask.args.a["&&"]', "unknown operator `&&`", "equals, in"),
        ("{ask: {args: {a: {gt: 1}}}}", 23, ".ask.args.a.gt", "unknown operator `gt`", "did you mean `>`?"),
        ("{ask: {args: {a: {match: x}}}}", 23, ".ask.args.a.match", "unknown operator `match`", "`matches`"),
        ("{ask: {args: {a: {equal: x}}}}", 23, ".ask.args.a.equal", "unknown operator `equal`", "`equals`"),
        ("{ask: {args: {a: {contains: x}}}}", 23, ".ask.args.a.contains", "unknown operator", "`….contains`"),
        ("{ask: {args: {a: {in: [1], b: 2}}}}", 23, ".ask.args.a.in", "mixed", "known operators"),
        ("{ask: {args: {a: {in: []}}}}", 27, ".ask.args.a.in", "the list is empty", ""),
        ("{ask: {args: {a: {in: x}}}}", 27, ".ask.args.a.in", "a list of values, not a text", ""),
        ("{ask: {args: {a: {matches: 3}}}}", 32, ".ask.args.a.matches", "not a number", ""),
        ('{ask: {args: {a: {matches: ["b", "["]}}}}', 38, ".ask.args.a.matches[1]", "bad pattern `[`", ""),
        ('{ask: {args: {a: {regex: "(("}}}}', 30, ".ask.args.a.regex", "bad regex `((`", ""),
        (
            '{ask: {args: {a: {regex: "(?!a)b"}}}}',
            30,
            ".ask.args.a.regex",
            "bad regex `(?!a)b`: negative lookahead",
            "",
        ),
        ('{ask: {args: {a: {regex: "a{99999999999}"}}}}', 30, ".ask.args.a.regex", "bad regex", ""),
        ('{ask: {args: {a: {">": "1"}}}}', 28, '.ask.args.a[">"]', "a number, not a text", ""),
        ('{ask: {args: {a: {">": true}}}}', 28, '.ask.args.a[">"]', "a number, not true or false", ""),
        ('{ask: {args: {a: {">": 5, "<": 5}}}}', 22, ".ask.args.a", "no number is in this range", ""),
        ('{ask: {args: {a: {">=": 6, "<=": 5}}}}', 22, ".ask.args.a", "no number is in this range", ""),
        ("{ask: {args: {a: {exists: 1}}}}", 31, ".ask.args.a.exists", "true or false, not a number", ""),
        ("{ask: {args: {a: {exists: false, in: [1]}}}}", 22, ".ask.args.a", "cannot hold together", ""),
        ("{ask: {deps: {user._x: 1}}}", 19, '.ask.deps["user._x"]', "bad key", "public"),
        # paths
        ("{ask: {path: 3}}", 18, ".ask.path", "not a number", ""),
        ("{ask: {path: {}}}", 18, ".ask.path", "this is empty", "`matches` or `inside`"),
        ("{ask: {path: {insde: x}}}", 19, ".ask.path.insde", "unknown key `insde`", "did you mean `inside`?"),
        ("{ask: {path: []}}", 18, ".ask.path", "the list is empty", ""),
        ("{ask: {path: ~/.ssh/**}}", 18, ".ask.path", "bad path `~/.ssh/**`", "not expanded"),
        ("{ask: {path: $HOME/x}}", 18, ".ask.path", "bad path `$HOME/x`", "not expanded"),
        ("{ask: {path: secrets/}}", 18, ".ask.path", "bad path `secrets/`", "`secrets/**`"),
        ("{ask: {path: a/../b}}", 18, ".ask.path", "bad path `a/../b`", "write the resolved path"),
        ("{ask: {path: .}}", 18, ".ask.path", "bad path `.`", "inside: ."),
        ("{ask: {path: 'a\\b'}}", 18, ".ask.path", "bad path", "separated by `/`"),
        ('{ask: {path: "a[b"}}', 18, ".ask.path", "bad path `a[b`", "never closed"),
        ("{ask: {path: {inside: src/*}}}", 27, ".ask.path.inside", "bad path `src/*`", "use `matches`"),
        ("{ask: {path: {inside: [.., a]}}}", 28, ".ask.path.inside[0]", "bad path `..`", ""),
        # who must agree
        ("{allow: x, by: ops}", 16, ".by", "`by` only makes sense on an `ask` rule", "make the rule an `ask` rule"),
        ("{deny: x, quorum: 2}", 15, ".quorum", "only makes sense on an `ask` rule", ""),
        ("{deny: x, message: y}", 15, ".message", "only makes sense on an `ask` rule", "use `reason`"),
        ("{ask: x, by: [a]}", 18, ".by", "a role, not a list", ""),
        ("{ask: x, quorum: 0}", 22, ".quorum", "0 is too small", "1 or more"),
        ("{ask: x, quorum: 1.5}", 22, ".quorum", "a whole number", ""),
        ("{ask: x, quorum: true}", 22, ".quorum", "a whole number, not true or false", ""),
        ("{ask: x, not_by: requestor}", 22, ".not_by", "unknown value `requestor`", "did you mean `requester`?"),
        ("{ask: x, not_by: []}", 22, ".not_by", "the list is empty", ""),
        ("{ask: x, timeout: 15 minutes}", 23, ".timeout", "a duration, not `15 minutes`", "`15m`"),
        ("{ask: x, timeout: 0}", 23, ".timeout", "must be more than 0", ""),
        ("{ask: x, timeout: -5}", 23, ".timeout", "must be more than 0", ""),
        ("{ask: x, timeout: 1.5}", 23, ".timeout", "a duration, not a number", ""),
        ("{ask: x, timeout: 9999999999d}", 23, ".timeout", "longer than ten years", ""),
        ("{ask: x, on_timeout: wait}", 26, ".on_timeout", "unknown value `wait`", "`park`"),
        ("{ask: x, on_timeout: escalate}", 26, ".on_timeout", "nobody is named", "`escalate_to: ROLE`"),
        ("{ask: x, remind: 5m}", 14, ".remind", "no deadline to remind of", "`timeout: 15m`"),
        ("{ask: x, timeout: 5m, remind: 5m}", 35, ".remind", "before the question", "shorter than `timeout`"),
        ("{ask: x, escalate_to: boss}", 14, ".escalate_to", "no effect", "`on_timeout: escalate`"),
        ("{ask: x, message: ''}", 23, ".message", "the text is empty", ""),
    ],
)
def test_a_wrong_rule(rule: str, column: int, key: str, says: str, fix: str) -> None:
    error = refused(f"# comment\npolicy:\n  - {rule}\n")
    assert error.place is not None
    assert (error.place.file, error.place.line, error.place.column) == ("signoff.yaml", 3, column)
    assert error.place.key == f"policy[0]{key}"
    assert says in error.what
    assert fix in error.fix
    assert str(error).startswith(f"signoff.yaml:3:{column}: policy[0]{key}: ")


@table(
    ("text", "place", "says", "fix"),
    [
        ("", "signoff.yaml:1:1", "there is no `policy` here", "policy:\n      - {allow: read_file}"),
        ("{}", "signoff.yaml:1:1", "there is no `policy` here", "- {allow: read_file}"),
        ("- allow: x", "signoff.yaml:1:1", "a mapping with `policy`, not a list", ""),
        ("policies: []", "signoff.yaml:1:1: policies", "unknown key `policies`", "did you mean `policy`?"),
        ("policy:", "signoff.yaml:1:8: policy", "a list of rules, not null", ""),
        ("policy: {allow: x}", "signoff.yaml:1:9: policy", "a list of rules, not a mapping", ""),
        ("policy: [}", "signoff.yaml:1:10", "this is not YAML", ""),
        (
            "policy:\n- {allow: x, id: a}\n- {allow: y, id: a}",
            "signoff.yaml:3:18: policy[1].id",
            "the id `a` is taken by rule 1",
            "its own id",
        ),
        (
            "policy:\n- {allow: x, id: rule-2}\n- {allow: y}",
            "signoff.yaml:3:3: policy[1]",
            "the id `rule-2` is taken by rule 1",
            "",
        ),
    ],
)
def test_a_wrong_file(text: str, place: str, says: str, fix: str) -> None:
    error = refused(text)
    assert str(error.place) == place
    assert says in error.what
    assert fix in error.fix


def test_rules_made_in_python_are_refused_with_the_key_path() -> None:
    with pytest.raises(PolicyError, match=r"^<rules>: policy\[1\]\.ask\.args\.amount: this is empty"):
        Policy.from_rules([{"allow": "x"}, {"ask": {"args": {"amount": {}}}}])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", {1}])
def test_values_made_in_python_must_be_json(value: Any) -> None:
    with pytest.raises(PolicyError):
        Policy.from_rules([{"ask": {"args": {"x": value}}}])
    with pytest.raises(PolicyError):
        Policy.from_rules([{"ask": {"args": {"x": {"in": [value]}}}}])
    with pytest.raises(PolicyError):
        Policy.from_rules([{"ask": "x", "examples": {"miss": [{"tool": "y", "args": {"z": value}}]}}])


def test_a_long_or_odd_name_is_shown_short_and_escaped() -> None:
    error = refused("policy:\n- {" + json.dumps("a\nb" * 100) + ": 1, ask: x}")
    assert "\n" not in error.what
    assert len(error.what) < 200
