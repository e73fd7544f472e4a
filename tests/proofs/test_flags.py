"""C9: what flags and the environment can do to a policy, by the command."""

from __future__ import annotations

import pytest
from tests.proofs.outside import Project

TURNS = """\
- calls: [{tool: write_file, args: {path: out.txt, content: "hello"}}]
- say: "{{last}}"
"""


@pytest.fixture
def writer(project: Project) -> Project:
    """A worker that may write without being asked."""
    project.write(signoff="policy: [{allow: write_file}]\n", workers__writer="toolsets: [filesystem_rw]\n")
    project.put({"workers/writer.turns": TURNS})
    return project


@pytest.mark.mission("C9")
def test_c9_ask_holds_a_call_that_the_policy_allows_until_a_person_answers(writer: Project) -> None:
    paused = writer.run("writer", "--ask", "write_file", "--suspend")
    assert (paused.code, paused.events("write_file"), writer.has("out.txt")) == (3, ["asked"], False)
    assert "--ask write_file" in writer.signoff("show", paused.rows[-1]["waiting"][0]["request"]).out
    done = writer.answers(paused)
    assert (done.code, writer.read("out.txt")) == (0, "hello")
    (writer.directory / "out.txt").unlink()
    alone = writer.run("writer", "--ask", "write_*")
    assert (alone.code, writer.has("out.txt")) == (4, False), "nobody is there to be asked: no"
    assert '"by": "' in alone.rows[-1]["output"] and "no terminal" in alone.rows[-1]["output"]
    by_environment = writer.run("writer", "--suspend", SIGNOFF_ASK="write_file")
    assert (by_environment.code, writer.has("out.txt")) == (3, False)
    refused = writer.answers(by_environment, "deny", "--note", "not today")
    assert (refused.code, writer.has("out.txt")) == (0, False)
    assert '"by": "ana"' in refused.rows[-1]["output"] and "not today" in refused.rows[-1]["output"]
    plain = writer.run("writer")
    assert (plain.code, writer.read("out.txt")) == (0, "hello"), "without a flag it runs"


@pytest.mark.mission("C9")
def test_c9_a_denial_by_flag_holds_in_every_mode_and_a_locked_policy_is_not_loosened(writer: Project) -> None:
    for mode in ("interactive", "auto_approve"):
        denied = writer.run("writer", "--deny", "write_file", "--mode", mode)
        assert (denied.code, denied.events("write_file"), writer.has("out.txt")) == (4, ["denied"], False)
    writer.write(signoff="policy: [{ask: write_file}]\nlocked: true\n", loose="policy: [{allow: '*'}]\n")
    for flags in (("--mode", "auto_approve"), ("--policy", "loose.yaml")):
        refused = writer.run("writer", *flags)
        assert (refused.code, writer.has("out.txt")) == (2, False)
        assert "locked (signoff.yaml:2:" in refused.err and flags[-1] in refused.err


@pytest.mark.mission("C9")
def test_c9_a_run_that_was_loosened_says_it_on_every_card_and_in_the_record(writer: Project) -> None:
    rules = "people: {ana: {roles: [ops]}}\npolicy: [{ask: write_file, by: ops}, {ask: '*'}]\n"
    writer.write(signoff=rules, loose=rules)
    mode = "calls that anybody may approve run without a question (--mode auto_approve)"
    other = "another policy than the project's: loose.yaml (--policy)"
    plain = writer.run("writer", "--suspend")
    paused = writer.run("writer", "--suspend", "--mode", "auto_approve", "--policy", "loose.yaml")
    runs = {one["id"]: one["loosened"] for one in writer.signoff("runs", "--json").data["runs"]}
    assert runs == {plain.rows[-1]["run"]: [], paused.rows[-1]["run"]: [mode, other]}
    [request] = [one["request"] for one in paused.rows[-1]["waiting"]]
    card = " ".join(writer.signoff("show", request).out.replace("│", " ").split())
    assert f"LOOSENED {mode} LOOSENED {other}" in card
    waiting = {one["id"]: one["loosened"] for one in writer.signoff("inbox", "--json").data["requests"]}
    assert waiting[request] == [mode, other]
    assert writer.answers(paused).code == 0
    events = writer.signoff("audit", "log", "--run", paused.rows[-1]["run"], "--json").rows
    said = {one["kind"]: one["body"]["loosened"] for one in events if "loosened" in one["body"]}
    assert said == {kind: [mode, other] for kind in ("run started", "asked", "run resumed")}
    assert "--mode auto_approve or --policy FILE" in " ".join(writer.signoff("doctor").out.split())
