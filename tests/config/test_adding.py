"""One more rule in the text of a file: only lines are added, and what is read is the old rules and exactly this one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.config.rule_insertion import Added, add_rule, policy_in_text
from signoff.core.canonical import canonical
from signoff.errors import PolicyError
from signoff.policy.composer import read_document
from signoff.policy.rule_text import rule_lines

RULE: dict[str, Any] = {
    "allow": {"tool": "pay", "args": {"to": "ana # : *", "*": {"exists": False}}},
    "examples": {"match": [{"args": {"to": "ana # : *"}}]},
}
ROOT = "/project"


def added(text: str, at: int, rule: dict[str, Any] = RULE) -> Added:
    found = add_rule(text, rule, at=at, file="signoff.yaml", root=ROOT)
    was, now = read_document(text, file="f").value, read_document(found.text, file="f").value
    rules = list(was.get("policy", []))
    rules.insert(at, rule)
    assert canonical(now) == canonical({**was, "policy": rules})
    assert policy_in_text(found.text, file="signoff.yaml", root=ROOT) == found.policy
    assert found.rule.place.line > 0
    return found


# --- layouts ---

COMMENTS = st.sampled_from(["", "# why", "# tab\there", "# ümlaut 日本 😀", "#", "# - allow: not_a_rule", "# policy:"])
BLANKS = st.sampled_from(["", "", "   "])
ITEMS = st.sampled_from([
    ["{allow: a}"],
    ["allow: a", "reason: plain words # no comment: really"],
    ["deny: {path: '**/.env'}   # trailing"],
    ['ask: "b"', "message: |", "  two", "  lines", ""],
    ["ask:", "- b", "- {tool: c}", "reason: >-", "  folded", "  text"],
    ["ask: [b,", "  c]", "by: ops"],
    ["deny:", "  tool: d", "", "  # inside", "  args: {x: 1}"],
    ["&shared ask: e"],
    ["{allow: 'f', reason: \"a\\", "  b\"}"],
])  # fmt: skip
BREAKS = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def block_files(draw: st.DrawFn) -> tuple[str, int]:
    """A file with its rules in lines, in one of many layouts; and how many there are."""
    indent = draw(st.sampled_from(["", "  ", "    "]))
    dash = draw(st.sampled_from(["- ", "-   "]))
    lines = draw(st.lists(COMMENTS, max_size=2))
    lines += draw(st.sampled_from([[], ["%YAML 1.1", "---"], ["---"], ["--- # first"]]))
    if draw(st.booleans()):
        lines += ["model: test", "toolsets:", "  files: {use: filesystem_ro}"]
    lines.append(draw(st.sampled_from(["policy:", "policy:   # the rules", '"policy":', "policy: &rules"])))
    count = draw(st.integers(1, 4))
    for number in range(count):
        lines += [f"{indent}{one}" if one else one for one in draw(st.lists(COMMENTS, max_size=2))]
        lines += draw(st.lists(BLANKS, max_size=1))
        item = [line.replace("&shared", f"&shared{number}") for line in draw(ITEMS)]
        below = indent + " " * len(dash)
        lines += [f"{indent}{dash}{item[0]}", *(f"{below}{line}" if line else line for line in item[1:])]
    lines += draw(st.lists(COMMENTS, max_size=2))
    lines += draw(st.sampled_from([[], ["people:", "  ana: {roles: [ops]}"], ["locked: false", "", "# the end"]]))
    lines += draw(st.sampled_from([[], ["..."]]))
    line_break = draw(BREAKS)
    text = line_break.join(lines)
    return (text + line_break if draw(st.booleans()) else text), count


@given(block_files(), st.data())
@examples(nightly=5_000, daily=40)
def test_only_lines_are_added_to_rules_in_lines(file: tuple[str, int], data: st.DataObject) -> None:
    text, count = file
    try:
        policy_in_text(text, file="f", root=ROOT)
    except PolicyError:
        return  # such as a block text whose end is a directive for the next line
    at = data.draw(st.integers(0, count))
    found = added(text, at)
    ends = next((one for one in ("\r\n", "\n", "\r") if one in text), "\n")
    lines = [f"{line}{ends}" for line in rule_lines(RULE)]
    joined = without_rule(found.text, lines, ends)
    assert joined == text


def without_rule(text: str, lines: list[str], ends: str) -> str:
    """The text without the lines of the rule, however deep they are indented."""
    stripped = [line.strip() for line in lines]
    whole = text.split(ends)
    for start in range(len(whole)):
        if [one.strip() for one in whole[start : start + len(stripped)]] == stripped:
            return ends.join([*whole[:start], *whole[start + len(stripped) :]])
    raise AssertionError("the lines of the rule are not there")


@st.composite
def flow_files(draw: st.DrawFn) -> tuple[str, int]:
    """A file with its rules in brackets."""
    items = draw(st.lists(st.sampled_from(["{allow: a}", "{ask: b, reason: 'c, d]'}", "allow: e", '{"deny": "f"}'])))
    between = draw(st.sampled_from([", ", ",", ",\n  ", ",  # why\n  ", "\n  , "]))
    start = draw(st.sampled_from(["[", "[ ", "[\n  ", "[ # rules\n  "]))
    end = draw(st.sampled_from(["]", " ]", "\n  ]", ",]" if items else "]", ", # last\n  ]" if items else "]"]))
    policy = f"policy: {start}{between.join(items)}{end}"
    before, after = draw(st.sampled_from([("", ""), ("# é\n", "\n"), ("{model: x, ", "}"), ("---\n", " # x\n...\n")]))
    return f"{before}{policy}{after}", len(items)


@given(flow_files(), st.data())
@examples(nightly=3_000, daily=30)
def test_a_rule_goes_between_brackets(file: tuple[str, int], data: st.DataObject) -> None:
    text, count = file
    try:
        policy_in_text(text, file="f", root=ROOT)
    except PolicyError:
        return
    found = added(text, data.draw(st.integers(0, count)))
    rest = iter(found.text)
    assert all(one in rest for one in text), "nothing is taken away, and nothing changes places"


@pytest.mark.parametrize(
    "text",
    [
        "toolsets: {files: {use: filesystem_ro}}\n",
        "toolsets: {files: {use: filesystem_ro}}",
        "# a\n  toolsets:\n    files: {use: filesystem_ro}\n# b\n\n",
        "---\ntoolsets: {files: {use: filesystem_ro}}\n...\n",
        "toolsets:\r\n  files: {use: filesystem_ro}\r\n",
    ],
    ids=ascii,
)
def test_a_file_without_rules_gets_its_first(text: str) -> None:
    found = added(text, 0)
    rest = iter(found.text)
    assert all(one in rest for one in text)
    assert "policy:" in found.text


def test_a_comment_stays_with_the_rule_that_it_is_about() -> None:
    text = "policy:\n  # reading\n  - allow: read   # harmless\n\n  # paying\n  - ask: pay\n  # last words\n"
    new = '  - allow: {tool: pay, args: {to: "ana # : *", "*": {exists: false}}}\n'
    new += '    examples: {match: [{args: {to: "ana # : *"}}]}\n'
    assert added(text, 0).text == text.replace("policy:\n", f"policy:\n{new}")
    assert added(text, 1).text == text.replace("# harmless\n", f"# harmless\n{new}")
    assert added(text, 2).text == text.replace("- ask: pay\n", f"- ask: pay\n{new}")


@pytest.mark.parametrize(
    "text",
    [
        "defaults:\n  worker:\n    policy: &r\n    - {ask: a}\npolicy: *r\n",
        "policy: &r\n- {ask: a}\ndefaults:\n  worker:\n    policy: *r\n",
        "{toolsets: {files: {use: filesystem_ro}}}",
        "? policy\n: - ask: a\n",
    ],
)
def test_what_cannot_be_added_to_is_refused_with_the_lines_to_paste(text: str) -> None:
    with pytest.raises(PolicyError, match="no line can be added here") as error:
        add_rule(text, RULE, at=0, file="signoff.yaml", root=ROOT)
    assert "nothing was written; paste it by hand" in str(error.value)
    assert all(line in str(error.value) for line in rule_lines(RULE))


def test_a_reference_that_others_share_is_refused() -> None:
    text = "policy: &r\n- {ask: a}\ndefaults:\n  worker:\n    policy: *r\n"
    with pytest.raises(PolicyError, match="no line can be added here"):
        add_rule(text, RULE, at=1, file="signoff.yaml", root=ROOT)


def test_an_id_that_is_taken_is_an_error_of_the_rule() -> None:
    with pytest.raises(PolicyError, match="is taken by rule"):
        add_rule("policy:\n- {ask: a, id: x}\n", {**RULE, "id": "x"}, at=0, file="signoff.yaml", root=ROOT)


def test_examples_of_other_rules_still_have_to_hold() -> None:
    text = "policy:\n- {otherwise: deny, examples: {match: [{tool: pay, args: {to: 'ana # : *'}}]}}\n"
    with pytest.raises(PolicyError, match="should match"):
        add_rule(text, RULE, at=0, file="signoff.yaml", root=ROOT)
    assert added(text, 1).at == 1
