"""`signoff run WORKER`: workers by name, what they are given, what tightens their policy, and how they are resumed."""

from __future__ import annotations

import json
import os
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from tests.cli.desk import Desk, Said
from tests.cli.wording import Wording

from signoff.core.run import RunSetup

PROJECT = """\
toolsets:
  files: {use: filesystem_rw, config: {root: .}}
policy:
  - {deny: {path: "secret/**"}, reason: it is secret}
"""
WORKERS = {
    "writer.yaml": "description: Writes\ninstructions: Write.\ntoolsets: [files]\n",
    "greeter.yaml": """\
instructions: Greet {{name}}.
input: {type: object, properties: {name: {type: string}, tone: {type: string}}, required: [name]}
""",
    "modelled.yaml": "model: script:../said.yaml\ninstructions: Say it.\n",
}
WRITES = """\
- calls: [{tool: list_files}]
- calls: [{tool: write_file, args: {path: out.txt, content: "hello\\n"}}]
- say: "{{last}}"
"""


@pytest.fixture
def shop(desk: Desk) -> Desk:
    """A project with workers, driven by scripts."""
    (desk.directory / "signoff.yaml").write_text(PROJECT)
    (desk.directory / "workers").mkdir()
    for name, text in WORKERS.items():
        (desk.directory / "workers" / name).write_text(text)
    (desk.directory / "writes.yaml").write_text(WRITES)
    (desk.directory / "said.yaml").write_text("- say: as the worker says\n")
    (desk.directory / "other.yaml").write_text("- say: as somebody else says\n")
    desk.types("")
    for name in ("SIGNOFF_MODEL", "SIGNOFF_ASK", "SIGNOFF_DENY", "SIGNOFF_POLICY"):
        desk.monkeypatch.delenv(name, raising=False)
    return desk


def writes(shop: Desk, *more: str) -> Said:
    return shop.run("run", "writer", "Write it", "--model", f"script:{shop.directory / 'writes.yaml'}", *more)


def written(shop: Desk) -> bool:
    return (shop.directory / "out.txt").exists()


# --- which worker, and what it is given ---


def test_a_worker_runs_by_its_name(shop: Desk) -> None:
    said = writes(shop, "--mode", "auto_approve")
    assert (said.code, written(shop)) == (0, True), said.err
    assert said.out == "wrote 6 bytes to out.txt\n"
    assert "allowed       List .  by" in said.err
    assert "auto-approved Write out.txt" in said.err
    assert "3 model requests" in said.err
    assert "\x1b" not in said.err, "no control codes where it is no terminal"


def test_the_project_is_found_from_any_directory_below_it(shop: Desk) -> None:
    below = shop.directory / "deep" / "down"
    below.mkdir(parents=True)
    shop.monkeypatch.delenv("SIGNOFF_STORE")
    shop.monkeypatch.chdir(below)
    said = writes(shop, "--suspend", "--json")
    assert said.code == 3, said.err
    request = said.rows[-1]["waiting"][0]["request"]
    for directory in (shop.directory, below, shop.directory / "workers"):
        shop.monkeypatch.chdir(directory)
        assert [one["id"] for one in shop.run("inbox", "--json").data["requests"]] == [request]
    shop.monkeypatch.chdir(shop.directory / "workers")
    assert shop.run("approve", request).code == 0
    assert shop.run("resume", said.rows[-1]["run"]).code == 0
    assert written(shop), "its toolset works in the project, wherever it was started and resumed"


def test_a_worker_by_the_path_of_its_file(shop: Desk, wording: Wording) -> None:
    (shop.directory / "elsewhere").mkdir()
    (shop.directory / "elsewhere" / "scribe.yaml").write_text(WORKERS["writer.yaml"])
    said = shop.run("run", "elsewhere/scribe.yaml", "Write it", "--model", "script:writes.yaml", "--suspend", "--json")
    assert said.code == 3, said.err
    assert said.rows[0]["agent"] == "worker:scribe"
    shop.run("approve", said.rows[-1]["waiting"][0]["request"])
    assert shop.run("resume", said.rows[-1]["run"]).code == 0
    assert written(shop)
    assert shop.run("run", "elsewhere/nobody.yaml", "go").err == wording()


def test_an_unknown_worker(shop: Desk, wording: Wording) -> None:
    said = shop.run("run", "wrtier", "Write it")
    assert (said.code, said.out) == (2, "")
    assert said.err == wording()
    nobody = shop.run("run", "", "Write it")
    assert nobody.code == 2
    assert nobody.err == wording()
    absolute = shop.run("run", "/nowhere.yaml", "Write it").err
    assert " /nowhere.yaml" in absolute, "not ../../nowhere.yaml"
    assert absolute == wording()
    assert not shop.file.exists(), "nothing was begun"
    (shop.directory / "program.py").write_text("")
    assert "program:agent" in shop.run("run", "program", "go").err


def test_the_prompt_may_be_piped(shop: Desk) -> None:
    shop.types("Say it, please")
    assert shop.run("run", "modelled").out == "as the worker says\n"
    assert [one["prompt"] for one in shop.run("runs", "--all", "--json").data["runs"]] == ["Say it, please"]


@pytest.mark.parametrize("given", ['{"name": "Ana"}', "@input.json", "@-"])
def test_input_is_checked_and_kept(shop: Desk, given: str) -> None:
    (shop.directory / "input.json").write_text('{"name": "Ana"}')
    shop.monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b'{"name": "Ana"}')))
    said = shop.run("run", "greeter", "Go", "--input-json", given, "--model", "script:said.yaml")
    assert (said.code, said.out) == (0, "as the worker says\n"), said.err


@pytest.mark.parametrize(
    "given",
    [
        pytest.param("{", id="cut-off"),
        pytest.param("[1]", id="list"),
        pytest.param("@nowhere.json", id="no-file"),
        pytest.param('{"name": 3}', id="type"),
        pytest.param("{}", id="missing"),
    ],
)
def test_wrong_input_is_refused_before_anything_starts(shop: Desk, given: str, wording: Wording) -> None:
    said = shop.run("run", "greeter", "Go", "--input-json", given, "--model", "script:said.yaml")
    assert (said.code, said.out) == (2, "")
    assert said.err == wording()
    assert shop.run("runs", "--all", "--json").data["runs"] == []


def test_files_are_attached(shop: Desk, wording: Wording) -> None:
    (shop.directory / "notes.txt").write_text("buy milk")
    said = shop.run("run", "modelled", "Read", "--attach", "notes.txt", "--json")
    assert said.code == 0, said.err
    missing = shop.run("run", "modelled", "Read", "--attach", "nowhere.txt")
    assert missing.code == 2
    assert missing.err == wording()


# --- its model ---


def test_the_model_is_named_by_flag_then_worker_then_project_then_environment(shop: Desk, wording: Wording) -> None:
    says = {name: f"script:{shop.directory / name}" for name in ("other.yaml", "said.yaml")}
    bare = ("run", "writer", "Go")
    none = shop.run(*bare)
    assert none.code == 2
    for way in ("--model", "signoff.yaml", "SIGNOFF_MODEL"):
        assert way in none.err
    assert none.err == wording()
    shop.monkeypatch.setenv("SIGNOFF_MODEL", says["other.yaml"])
    assert shop.run(*bare).out == "as somebody else says\n"
    (shop.directory / "signoff.yaml").write_text(PROJECT + f"model: {says['said.yaml']}\n")
    assert shop.run(*bare).out == "as the worker says\n"
    (shop.directory / "signoff.yaml").write_text(PROJECT + f"model: {says['other.yaml']}\n")
    assert shop.run("run", "modelled", "Go").out == "as the worker says\n"
    assert shop.run("run", "modelled", "Go", "--model", says["other.yaml"]).out == "as somebody else says\n"


# --- what tightens its policy ---


@pytest.mark.mission("C9")
def test_c9_flags_and_environment_only_tighten(shop: Desk, wording: Wording) -> None:
    auto = ("--mode", "auto_approve")
    denied = writes(shop, *auto, "--deny", "write_*")
    assert denied.code == 0 and not written(shop)
    assert "set when the run was started: --deny write_*" in denied.err
    shop.monkeypatch.setenv("SIGNOFF_DENY", "delete_file, write_file")
    assert writes(shop, *auto).code == 0 and not written(shop)
    shop.monkeypatch.delenv("SIGNOFF_DENY")
    assert "auto-approved List ." in writes(shop, *auto, "--ask", "list_files", "--deny", "write_file").err
    shop.monkeypatch.setenv("SIGNOFF_ASK", "list_files")
    assert "auto-approved List ." in writes(shop, *auto, "--deny", "write_file").err
    shop.monkeypatch.delenv("SIGNOFF_ASK")
    (shop.directory / "strict.yaml").write_text("policy: [{deny: {path: '*.txt'}, reason: no texts}]\n")
    shop.monkeypatch.setenv("SIGNOFF_POLICY", str(shop.directory / "strict.yaml"))
    assert "no texts" in writes(shop, *auto).err
    assert not written(shop)
    (shop.directory / "strict.yaml").write_text("people: {}\npolicy: []\n")
    assert writes(shop, *auto).err == wording(), "it holds rules, and nothing is ignored"
    (shop.directory / "strict.yaml").write_text("policy: [{allow: '*'}]\n")
    refused = writes(shop)
    assert refused.code == 2, "where the project is silent, it would decide"
    assert refused.err == wording()
    assert not written(shop)


@pytest.mark.mission("C9")
def test_c9_a_locked_policy_says_so(shop: Desk) -> None:
    (shop.directory / "signoff.yaml").write_text(PROJECT + "locked: true\n")
    (shop.directory / "loose.yaml").write_text("policy: [{allow: '*'}]\n")
    below = shop.directory / "below"
    below.mkdir()
    for directory, place in ((shop.directory, "signoff.yaml:5:"), (below, "../signoff.yaml:5:")):
        shop.monkeypatch.chdir(directory)
        for flags in (["--mode", "auto_approve"], ["--policy", str(shop.directory / "loose.yaml")]):
            said = writes(shop, *flags)
            assert (said.code, said.out) == (2, "")
            assert f"the policy of this project is locked ({place}" in said.err
            assert flags[-1] in said.err
        assert shop.run("approve", "abcd", "--policy", str(shop.directory / "loose.yaml")).code == 2, (
            "roles stand there too"
        )
    shop.monkeypatch.chdir(shop.directory)
    assert not written(shop)
    assert writes(shop, "--policy", "signoff.yaml", "--mode", "auto_deny").code == 0, "stricter, or the same, is fine"
    (shop.directory / "signoff.yaml").write_text(PROJECT + "locked: false\n")
    (shop.directory / "loose.yaml").write_text(PROJECT + "  - {allow: '*'}\n")
    assert writes(shop, "--policy", "loose.yaml").code == 0 and written(shop)


@pytest.mark.mission("C9")
def test_c9_a_run_cannot_shed_by_being_resumed_what_it_began_with(shop: Desk) -> None:
    begun = writes(shop, "--deny", "write_file", "--ask", "list_files", "--suspend", "--json")
    assert begun.code == 3, begun.err
    shop.run("approve", begun.rows[-1]["waiting"][0]["request"])
    shop.monkeypatch.chdir(shop.directory / "workers")
    said = shop.run("resume", begun.rows[-1]["run"])
    assert said.code == 0
    assert "--deny write_file" in said.err
    assert not written(shop)


@pytest.mark.mission("C9")
def test_c9_locking_reaches_runs_that_were_begun_before(shop: Desk) -> None:
    begun = writes(shop, "--suspend", "--json")
    (shop.directory / "signoff.yaml").write_text(PROJECT + "locked: true\n")
    (shop.directory / "loose.yaml").write_text("policy: [{allow: '*'}]\n")
    said = shop.run("resume", begun.rows[-1]["run"], "--policy", "loose.yaml")
    assert said.code == 2 and "locked" in said.err


# --- what programs and people are shown ---


def test_json_streams_events_and_ends_with_the_answer(shop: Desk) -> None:
    rows = writes(shop, "--mode", "auto_approve", "--json").rows
    loosened = ["calls that anybody may approve run without a question (--mode auto_approve)"]
    assert rows[0] == {"event": "started", "agent": "worker:writer", "run": rows[-1]["run"], "loosened": loosened}
    assert [row["event"] for row in rows[1:-1]] == ["allowed", "ran", "auto_approved", "ran"]
    assert rows[1]["worker"] == ["writer"]
    assert sorted(rows[-1]["usage"]) == ["cost_usd", "input_tokens", "output_tokens", "requests"]
    assert (rows[-1]["usage"]["requests"], rows[-1]["usage"]["cost_usd"]) == (3, None), "a script has no price"


def test_an_output_with_a_schema_is_json(shop: Desk) -> None:
    (shop.directory / "workers" / "counter.yaml").write_text(
        "instructions: Count.\noutput: {type: object, properties: {count: {type: integer}}, required: [count]}\n"
    )
    (shop.directory / "counts.yaml").write_text("- calls: [{tool: final_result, args: {count: 3}}]\n")
    run = ("run", "counter", "Count", "--model", "script:counts.yaml")
    assert json.loads(shop.run(*run).out) == {"count": 3}
    assert shop.run(*run, "--json").rows[-1]["output"] == {"count": 3}


def test_a_worker_that_reaches_a_limit_failed(shop: Desk) -> None:
    (shop.directory / "workers" / "writer.yaml").write_text(WORKERS["writer.yaml"] + "limits: {requests: 1}\n")
    said = writes(shop)
    assert (said.code, said.out) == (1, "")
    assert "workers/writer.yaml:4:20: limits.requests" in said.err
    assert "⟦" not in said.err


@pytest.fixture
def nested(shop: Desk) -> Desk:
    """A worker that has another one write."""
    (shop.directory / "signoff.yaml").write_text(PROJECT + "  - {allow: worker_call}\n")
    (shop.directory / "workers" / "lead.yaml").write_text(
        "instructions: Lead.\ndelegates: [writer]\nmodel: script:../lead.yaml\n"
    )
    (shop.directory / "workers" / "writer.yaml").write_text(WORKERS["writer.yaml"] + "model: script:../writes.yaml\n")
    (shop.directory / "lead.yaml").write_text(
        "- calls: [{tool: worker_call, args: {worker: writer, prompt: Write}}]\n- say: 'It says: {{last}}'\n"
    )
    return shop


@pytest.mark.mission("D9")
def test_d9_a_worker_in_a_worker_is_shown_with_its_chain_and_resumed_with_its_caller(nested: Desk) -> None:
    said = nested.run("run", "lead", "Go", "--suspend")
    assert said.code == 3, said.err
    assert "  allowed       lead > writer > List ." in said.err
    assert "  asked         lead > writer > Write out.txt" in said.err
    [run] = nested.run("runs", "--json").data["runs"]
    assert (run["agent"], len(run["waiting"])) == ("worker:lead", 1), "the inner run is part of the outer one"
    assert "  waiting    lead  started" in nested.run("runs").out
    nested.run("approve", run["waiting"][0]["id"])
    went_on = nested.run("resume", "--all", "--json")
    assert went_on.code == 0, went_on.err
    assert went_on.rows[-1]["output"] == "It says: wrote 6 bytes to out.txt"
    assert went_on.rows[-1]["usage"]["requests"] == 5, "what a worker delegates is counted to it"
    assert written(nested)


def test_resuming_all_names_each_worker_as_people_do(nested: Desk) -> None:
    nested.run("run", "lead", "Go", "--suspend")
    [run] = nested.run("runs", "--json").data["runs"]
    nested.run("approve", run["waiting"][0]["id"])
    assert f"run {run['id']}: lead\n" in nested.run("resume", "--all").err


@pytest.mark.parametrize("number", [1, 3, 6])
def test_how_to_answer_all_that_a_run_waits_for(shop: Desk, number: int, wording: Wording) -> None:
    calls = ", ".join(f"{{tool: write_file, args: {{path: {at}.txt, content: x}}}}" for at in range(number))
    (shop.directory / "writes.yaml").write_text(f"- calls: [{calls}]\n- say: done\n")
    said = writes(shop, "--suspend")
    ids = [one["id"] for one in shop.run("runs", "--json").data["runs"][0]["waiting"]]
    assert len(ids) == number
    look, answer, resume = said.err.splitlines()[-3:]
    assert "\n".join((look, answer)) == wording(request=ids)
    assert resume.startswith("Resume:  signoff resume ")
    named = ids if number == 1 else ["ID"]
    assert look.split()[:4] == ["Review:", "signoff", "show", *named], "first of all somebody looks"
    assert answer.count(named[0]) == 2 and not any(one in answer for one in ids[1:]), "nothing answers several unseen"
    for one in ids:
        assert shop.run("show", one).code == shop.run("approve", one).code == 0
    assert shop.run("resume", "--all").code == 0
    assert (shop.directory / f"{number - 1}.txt").exists()


@pytest.mark.mission("C9")
def test_c9_what_the_caller_denies_is_denied_below_too(nested: Desk) -> None:
    said = nested.run("run", "lead", "Go", "--deny", "write_file", "--mode", "auto_approve")
    assert said.code == 0
    assert "denied        lead > writer > Write out.txt" in said.err
    assert not written(nested)


# --- resuming ---


def kept(shop: Desk, run: str) -> Any:
    return shop.do(lambda broker: broker.runs.get(run)).setup


def test_a_worker_is_resumed_in_another_directory_as_it_began(shop: Desk) -> None:
    begun = writes(shop, "--suspend", "--json")
    run = begun.rows[-1]["run"]
    assert kept(shop, run).policy == str(shop.directory / "signoff.yaml")
    other = shop.directory.parent / "other"
    other.mkdir()
    shop.monkeypatch.chdir(other)
    shop.run("approve", begun.rows[-1]["waiting"][0]["request"])
    said = shop.run("resume", run, "--json")
    assert said.code == 0, said.err
    assert [row.get("event") for row in said.rows] == ["started", "approved", "ran", None]
    assert said.rows[-1]["usage"]["requests"] == 3, "what was used before the pause counts"
    assert written(shop)
    assert shop.run("resume", "--all").code == 0


def test_a_worker_that_died_before_its_first_question_begins_anew_with_all_it_was_given(shop: Desk) -> None:
    (shop.directory / "notes.txt").write_text("buy milk")
    setup = RunSetup(
        directory=str(shop.directory),
        policy=str(shop.directory / "signoff.yaml"),
        model="script:said.yaml",
        input={"name": "Ana"},
        files=(str(shop.directory / "notes.txt"),),
    )
    run = shop.begin("runabc2345", agent="worker:greeter", prompt="Go", setup=setup)
    said = shop.run("resume", run)
    assert (said.code, said.out) == (0, "as the worker says\n"), said.err


def test_a_kept_worker_that_is_gone(shop: Desk, wording: Wording) -> None:
    begun = writes(shop, "--suspend", "--json")
    os.unlink(shop.directory / "workers" / "writer.yaml")
    shop.run("approve", begun.rows[-1]["waiting"][0]["request"])
    said = shop.run("resume", begun.rows[-1]["run"])
    assert said.code == 2
    assert said.err == wording()


def test_the_terminal_shows_what_goes_on(shop: Desk, tmp_path: Path) -> None:
    child = shop.sits_down("run", "writer", "Write it", "--model", "script:writes.yaml")
    child.expect("allowed")
    child.expect("list_files")
    child.expect("your answer > ")
    child.sendline("a")
    child.expect("you approve it once")
    child.expect("wrote 6 bytes to out.txt")
    child.expect("3 model requests")
    child.wait()
    assert child.exitstatus == 0


# --- what is done elsewhere ---

FAX = """\
from pydantic_ai import CallDeferred, FunctionToolset

kit = FunctionToolset()


@kit.tool_plain
def send_fax(to: str) -> str:
    raise CallDeferred
"""


def test_a_run_that_waits_for_what_is_done_elsewhere_is_not_over(shop: Desk) -> None:
    (shop.directory / "faxline.py").write_text(FAX)
    shop.monkeypatch.syspath_prepend(shop.directory)
    rules = "toolsets: {fax: {use: 'faxline:kit'}}\nplugins: {allow: [faxline]}\npolicy: [{allow: {tool: send_fax}}]\n"
    (shop.directory / "signoff.yaml").write_text(rules)
    (shop.directory / "workers" / "faxer.yaml").write_text("instructions: Fax.\ntoolsets: [fax]\n")
    (shop.directory / "faxes.yaml").write_text("- calls: [{tool: send_fax, args: {to: bob}}]\n- say: Never.\n")
    run = ("run", "faxer", "Fax it", "--suspend", "--model", f"script:{shop.directory / 'faxes.yaml'}")
    said = shop.run(*run)
    assert said.code == 3 and not said.out, said
    assert "Waiting for external results: send_fax." in said.err
    told = json.loads(shop.run(*run, "--json").out.splitlines()[-1])
    assert (told["waiting"], told["elsewhere"]) == ([], ["send_fax"])


SHELL = """\
toolsets:
  git:
    use: shell_file_ops
    policy:
      - allow: {tool: shell, command: [echo one, "echo two *"]}
      - ask: {tool: shell, command: touch asked}
      - otherwise: deny
        reason: only these
policy: []
"""
TRIES = """\
- calls: [{tool: shell, args: {command: echo one}}]
- calls: [{tool: shell, args: {command: "echo one; touch made"}}]
- say: "{{last}}"
"""


@pytest.mark.mission("P12")
def test_p12_a_whitelist_holds_in_a_run_and_nothing_gets_around_it(shop: Desk) -> None:
    def tries(script: str, *more: str) -> Said:
        (shop.directory / "tries.yaml").write_text(script)
        return shop.run("run", "w", "Try", "--model", f"script:{shop.directory / 'tries.yaml'}", *more)

    (shop.directory / "workers" / "w.yaml").write_text("instructions: Try.\ntoolsets: [git]\n")
    (shop.directory / "signoff.yaml").write_text(SHELL)
    said = tries(TRIES, "--mode", "auto_approve")
    assert said.code == 0, said.err
    assert "allowed       Run: " in said.err
    told = json.loads(said.out)
    assert (
        told["by"] == "policy"
        and "no rule names this call, and otherwise: deny (signoff.yaml:7): only these" in told["reason"]
    )
    both = TRIES.replace("touch made", "touch asked")
    assert "no rule names this call" in tries(both, "--mode", "auto_approve").out, "asked about is not named"
    alone = TRIES.replace("echo one; touch made", "touch asked")
    assert tries(alone, "--mode", "auto_approve").code == 0
    assert (shop.directory / "asked").exists(), "what a rule names is asked about as ever"

    (shop.directory / "signoff.yaml").write_text(SHELL.replace("policy: []", "policy: [{allow: shell}]"))
    assert "no rule names this call" in tries(TRIES).out, "a rule of the project's loosens nothing"
    (shop.directory / "signoff.yaml").write_text(
        SHELL.replace("policy: []", "policy: [{ask: mail}, {otherwise: deny}]")
    )
    closed = tries(TRIES, "--mode", "auto_approve")
    assert "otherwise: deny (signoff.yaml:9)" in closed.out, "nor does a toolset's own rule what the project closes"
    checked = shop.run("policy", "check")
    assert (
        "warning: signoff.yaml:9:" in checked.out and "the toolset `git` can do nothing: rule-2 denies" in checked.out
    )
    assert not (shop.directory / "made").exists()


@pytest.mark.mission("P12")
def test_p12_a_remembered_answer_does_not_open_a_whitelist(shop: Desk) -> None:
    (shop.directory / "workers" / "w.yaml").write_text("instructions: Try.\ntoolsets: [git]\n")
    (shop.directory / "signoff.yaml").write_text(
        SHELL.replace("      - otherwise: deny\n        reason: only these\n", "")
    )
    script = TRIES.replace("echo one; touch made", "touch made")
    (shop.directory / "tries.yaml").write_text(script)
    run = ("run", "w", "Try", "--model", f"script:{shop.directory / 'tries.yaml'}")
    waiting = shop.run(*run, "--suspend", "--json")
    assert waiting.code == 3, waiting.err
    request = waiting.rows[-1]["waiting"][0]["request"]
    assert shop.run("approve", request, "--remember", "exact", "--yes").code == 0
    again = shop.run(*run)
    assert (again.code, (shop.directory / "made").exists()) == (0, True), "the answer is remembered"
    (shop.directory / "made").unlink()
    (shop.directory / "signoff.yaml").write_text(SHELL)
    assert "no rule names this call" in shop.run(*run).out
    assert not (shop.directory / "made").exists()
