"""`signoff policy add`: a rule from a request, as a person at a terminal and a program without one make it."""

from __future__ import annotations

import json
from pathlib import Path

import pexpect
import pytest
from tests.cli.desk import Desk, asks
from tests.cli.wording import Wording

from signoff.core.verdict import Requirement

PROJECT = """\
# Who may do what
people:
  ana: {roles: [ops, dev]}
policy:
  # never
  - {deny: {tool: pay, args: {to: mallory}}, reason: nothing goes to mallory}

  # the rest
  - {ask: "*"}   # really
"""
RULE = """\
  - allow: {tool: pay, args: {to: ana, amount: 250, currency: EUR, "*": {exists: false}}}
    examples: {match: [{args: {to: ana, amount: 250, currency: EUR}}]}
"""
WRITTEN = PROJECT.replace("mallory}\n", f"mallory}}\n{RULE}")


@pytest.fixture
def file(desk: Desk) -> Path:
    path = desk.directory / "signoff.yaml"
    path.write_text(PROJECT)
    return path


def test_without_a_terminal_it_is_only_shown(desk: Desk, file: Path, wording: Wording) -> None:
    [one] = desk.open(asks())
    said = desk.run("policy", "add", one[:6])
    assert said.code == 0
    assert said.out == wording(request=one)
    assert said.err == wording()
    assert file.read_text() == PROJECT


def test_it_is_written_with_yes_and_nothing_else_changes(desk: Desk, file: Path, wording: Wording) -> None:
    [one] = desk.open(asks())
    said = desk.run("policy", "add", one, "--rule", "exact", "--yes")
    assert (said.code, said.err) == (0, "")
    assert said.out == wording(request=one)
    assert file.read_text() == WRITTEN
    assert desk.run("policy", "check").code == 0
    explained = desk.run("policy", "explain", "--tool", "pay", "--args", '{"to":"ana","amount":250,"currency":"EUR"}')
    assert explained.out.startswith("allow: ")
    assert desk.request(one).state == "pending"
    [told] = [
        json.loads(line) for line in desk.run("audit", "log", "--json").out.splitlines() if "rule written" in line
    ]
    assert told["body"]["file"] == str(file) and told["body"]["via"] == "command" and told["request"] == one
    again = desk.run("policy", "add", one, "--yes")
    assert again.code == 1
    assert again.err == wording()
    assert file.read_text() == WRITTEN


def test_rules_that_deny_and_ask(desk: Desk, file: Path, wording: Wording) -> None:
    [one] = desk.open(asks())
    said = desk.run("policy", "add", one, "--deny", "--rule", "amount", "--reason", "too much", "--yes")
    assert said.out == wording(request=one)
    rule = '  - deny: {tool: pay, args: {amount: {">=": 250}}}\n    reason: "too much"\n'
    assert file.read_text() == PROJECT + rule + "    examples: {match: [{args: {amount: 250}}]}\n"
    assert desk.run("policy", "add", one, "--ask").err == wording()


def test_no_rule_goes_before_a_never_unseen(desk: Desk, file: Path) -> None:
    one, other = desk.open(asks(), asks(args={"to": "ana", "amount": 20, "currency": "EUR"}))
    assert desk.run("deny", one, "--remember", "exact", "--yes").code == 0
    [never] = desk.do(lambda broker: broker.grants.list())
    refused = desk.run("policy", "add", one, "--yes")
    assert refused.code == 1
    assert f"ana answered never to this call (grant {never.id})" in refused.out + refused.err
    assert f"signoff grants revoke {never.id}" in refused.out + refused.err
    narrow, wide = (desk.run("policy", "add", other, "--rule", name).out for name in ("exact", "amount"))
    warning = "people answered never to other calls of pay, and this rule overrides those it matches"
    assert warning not in " ".join(narrow.split()) and warning in " ".join(wide.split())
    assert file.read_text() == PROJECT
    assert desk.run("grants", "revoke", never.id).code == 0
    assert desk.run("policy", "add", one, "--rule", "exact", "--yes").code == 0


def test_json(desk: Desk, file: Path) -> None:
    [one] = desk.open(asks())
    shown = desk.run("policy", "add", one, "--json").data
    assert (shown["request"], shown["effect"], shown["chosen"], shown["written"]) == (one, "allow", 1, False)
    assert [rule["name"] for rule in shown["rules"]] == ["exact", "amount"]
    assert "\n".join(f"  {line}" for line in shown["rules"][0]["lines"]) + "\n" == RULE
    assert file.read_text() == PROJECT
    written = desk.run("policy", "add", one, "--json", "--rule", "1", "--yes").data
    assert written["written"] is True
    assert file.read_text() == WRITTEN
    refused = desk.run("policy", "add", one, "--json", "--yes")
    assert refused.code == 1
    assert refused.data["rules"] == [] and refused.data["refused"] and not refused.data["written"]


@pytest.mark.parametrize(("typed", "is_written"), [(["1", "y"], True), (["2", ""], False), (["7", ""], False)])
def test_at_a_terminal_it_asks_which_and_whether(desk: Desk, file: Path, typed: list[str], is_written: bool) -> None:
    [one] = desk.open(asks())
    child = desk.sits_down("policy", "add", one)
    for line in typed:
        child.expect([r"Enter for none: ", r"\[y/N\]: "])
        child.sendline(line)
    child.expect_exact("wrote rule-2 into signoff.yaml, line 7" if is_written else "Nothing was written.")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == (0 if is_written else 1)
    assert file.read_text() == (WRITTEN if is_written else PROJECT)


def test_a_locked_policy_is_left_alone(desk: Desk, file: Path, wording: Wording) -> None:
    file.write_text(f"{PROJECT}locked: true\n")
    [one] = desk.open(asks())
    said = desk.run("policy", "add", one, "--yes")
    assert (said.code, said.out) == (2, "")
    assert said.err == wording()
    assert file.read_text() == f"{PROJECT}locked: true\n"


def test_a_file_that_cannot_be_added_to_says_what_to_paste(desk: Desk, file: Path, wording: Wording) -> None:
    text = "policy: &r\n- {ask: pay}\ndefaults: {worker: {policy: *r}}\n"
    file.write_text(text)
    [one] = desk.open(asks())
    said = desk.run("policy", "add", one, "--yes")
    assert (said.code, said.out) == (1, "")
    assert said.err == wording(request=one)
    assert file.read_text() == text


def test_what_needs_certain_people_is_not_made_a_rule(desk: Desk, file: Path, wording: Wording) -> None:
    [one] = desk.open(asks(needs=Requirement(role="ops", quorum=2)))
    said = desk.run("policy", "add", one, "--yes")
    assert said.code == 1
    assert said.err == wording(request=one)
    assert file.read_text() == PROJECT


def test_a_secret_stays_out_of_the_file_and_off_the_screen(desk: Desk, file: Path, wording: Wording) -> None:
    [one] = desk.open(asks("send", {"to": "ana", "token": "hunter2secret"}))
    said = desk.run("policy", "add", one, "--yes")
    assert said.code == 1
    assert said.err == wording(request=one)
    for effect in ("--deny", "--ask"):
        told = desk.run("policy", "add", one, effect)
        assert "hunter2secret" not in told.out + told.err
        told = desk.run("policy", "add", one, effect, "--json")
        assert "hunter2secret" not in told.out + told.err


def test_what_hides_is_spelled_out(desk: Desk, file: Path) -> None:
    [one] = desk.open(asks("send", {"to": "ana\u202e\x1b[2J\u2028b", "note": "a: b # c\n- d"}))
    said = desk.run("policy", "add", one, "--yes")
    assert said.code == 0
    assert all(line.isprintable() for line in said.out.splitlines())
    assert all(line.isprintable() for line in file.read_text().splitlines())
    assert json.loads(desk.run("policy", "check", "--json").out)["rules"] == 3


@pytest.mark.parametrize("arguments", [("--rule", "9"), ("--rule", "nope"), ("--reason", " ")])
def test_what_is_not_on_offer(desk: Desk, file: Path, wording: Wording, arguments: tuple[str, ...]) -> None:
    [one] = desk.open(asks())
    said = desk.run("policy", "add", one, *arguments, "--yes")
    assert said.code == 2
    assert said.err == wording(request=one)
    assert file.read_text() == PROJECT


def test_help(desk: Desk, wording: Wording) -> None:
    assert desk.run("policy", "add", "--help").out == wording()


SHOP = """\
toolsets: {files: {use: filesystem_rw, config: {root: .}}}
policy:
  - {deny: delete_file}   # never
"""


def test_a_rule_is_made_at_the_question_and_the_next_run_goes_by_it(desk: Desk) -> None:
    file = desk.directory / "signoff.yaml"
    file.write_text(SHOP)
    (desk.directory / "workers").mkdir()
    (desk.directory / "workers" / "writer.yaml").write_text("instructions: Write.\ntoolsets: [files]\n")
    write = "- calls: [{tool: write_file, args: {path: a.txt, content: eggs}}]\n- say: done\n"
    (desk.directory / "script.yaml").write_text(write)
    child = desk.sits_down("run", "writer", "go", "--model", "script:script.yaml")
    for typed in ("", "9"):
        child.expect("your answer > ")
        child.sendline("u")
        child.expect("make which rule")
        child.sendline(typed)
        child.expect("Nothing was written.")
    child.expect("your answer > ")
    child.sendline("u")
    child.expect("make which rule")
    child.sendline("2")
    child.expect("write this")
    child.sendline("y")
    child.expect("Written. New runs use it")
    child.expect("your answer > ")
    assert not (desk.directory / "a.txt").exists(), "the call itself is not decided by that"
    child.sendline("q")
    child.expect(pexpect.EOF)
    child.wait()
    assert file.read_text().startswith(SHOP) and "content: {exists: true}" in file.read_text()
    (desk.directory / "script.yaml").write_text(write.replace("eggs", "something else"))
    assert desk.run("run", "writer", "go", "--model", "script:script.yaml").code == 0
    assert (desk.directory / "a.txt").read_text() == "something else"
    file.write_text(f"locked: true\n{SHOP}")
    child = desk.sits_down("run", "writer", "go", "--model", "script:script.yaml")
    child.expect("your answer > ")
    assert "by a rule" not in child.before
    child.sendline("d")
    child.expect(pexpect.EOF)
    child.wait()
