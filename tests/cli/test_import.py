"""`signoff import llm-do`: what a project of llm-do becomes, what is said about it, and that nothing is loosened."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests import start
from tests.cli.program import refused, signoff
from tests.cli.wording import NOT_YAML, Wording

MAIN = """\
---
name: main
description: Keeps the notes.
toolsets:
  - filesystem_project
  - clerk
---
Sort what comes in, then call `clerk(input="...")`.
"""
CLERK = """\
---
name: clerk
model: script:clerk.turns
toolsets:
  shell:
    rules:
      - pattern: ls
        approval_required: false
      - pattern: mv
        approval_required: true
      - pattern: rm
        allowed: false
    default:
      allowed: false
  letters:
    _approval_config:
      count: {pre_approved: true}
server_side_tools:
  - tool_type: web_search
    max_uses: 3
compatible_models: ["anthropic:*"]
input_model_ref: schemas.py:Letter
---
Do what you are told.
"""
PROJECT = """\
{
  "version": 1,
  "runtime": {"approval_mode": "approve_all", "max_depth": 4},
  "entry": {"agent": "main", "args": {"input": "Sort the mail"}},
  "agent_files": ["main.agent", "clerk.agent"],
  "python_files": ["tools.py"]
}
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    directory = tmp_path / "old"
    directory.mkdir()
    (directory / "main.agent").write_text(MAIN)
    (directory / "clerk.agent").write_text(CLERK)
    (directory / "project.json").write_text(PROJECT)
    return directory


def everything(directory: Path) -> dict[str, str]:
    return {str(one.relative_to(directory)): one.read_text() for one in sorted(directory.rglob("*")) if one.is_file()}


def report(*arguments: str, cwd: Path) -> dict[str, Any]:
    done = start.signoff("import", "llm-do", *arguments, "--json", cwd=cwd)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


@pytest.mark.mission("M1")
def test_m1_a_dry_run_says_what_each_line_becomes_and_writes_nothing(
    tmp_path: Path, old: Path, wording: Wording
) -> None:
    before = everything(tmp_path)
    done = start.signoff("import", "llm-do", "old", "--diff", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == wording()
    assert everything(tmp_path) == before


@pytest.mark.mission("M1")
def test_m1_what_is_written_is_a_project_that_runs(tmp_path: Path, old: Path) -> None:
    (old / "clerk.agent").write_text("---\nname: clerk\nmodel: script:clerk.turns\n---\nAnswer.\n")
    done = signoff("import", "llm-do", "old", "--into", "new", "--write", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    new = tmp_path / "new"
    assert sorted(everything(new)) == ["signoff.yaml", "workers/clerk.md", "workers/main.md"]
    (new / "workers" / "clerk.turns").write_text("- say: noted\n")
    call = "- calls: [{tool: worker_call, args: {worker: clerk, prompt: Note it}}]\n"
    (new / "main.turns").write_text(call + '- say: "the clerk says {{last}}"\n')
    ran = signoff("run", "main", "Go", "--model", "script:main.turns", cwd=new, XDG_STATE_HOME=str(tmp_path / "state"))
    assert ran.returncode == 0, ran.stderr
    assert "the clerk says noted" in ran.stdout
    assert "worker_call" in (new / "workers" / "main.md").read_text(), "the model is told how to call the clerk"


@pytest.mark.mission("M1")
def test_m1_a_shell_lets_nothing_more_run_than_llm_do_did(tmp_path: Path, old: Path) -> None:
    assert signoff("import", "llm-do", "old", "--write", cwd=tmp_path).returncode == 0
    (old / "shell.turns").write_text(
        "- calls:\n"
        + "".join(
            f"    - {{tool: shell, args: {{command: {command!r}}}}}\n"
            for command in ("ls", "cat project.json", "rm project.json", "mv a b", "ls; cat project.json")
        )
        + "- say: done\n"
    )
    (old / "toolsets.py").write_text(
        "from pydantic_ai.toolsets import FunctionToolset\n\ndef count() -> int:\n    return 1\n\n"
        "TOOLSETS = {'letters': FunctionToolset([count])}\n"
    )
    (old / "workers" / "clerk.md").write_text(
        (old / "workers" / "clerk.md").read_text().replace(", clerk_web_search", "")
    )
    ran = signoff(
        "run", "clerk", "Go", "--model", "script:shell.turns", "--json", "--unattended", "deny",
        cwd=old, XDG_STATE_HOME=str(tmp_path / "state"),
    )  # fmt: skip
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    ran_calls = [event for event in events if event.get("event") == "ran" or event.get("what") == "ran"]
    assert [event["args"]["command"] for event in ran_calls] == ["ls"], (ran.stdout, ran.stderr)
    assert (old / "project.json").exists()


def test_names_that_would_mean_more_here_let_nothing_run(tmp_path: Path, old: Path) -> None:
    front = """\
name: clerk
tool_rules:
  "*": {approval_required: false}
toolsets:
  letters: {_approval_config: {"*": {pre_approved: true}, "se*": {pre_approved: true}}}
  shell: {rules: [{pattern: "*", approval_required: false}, {pattern: "git *", approval_required: false}]}
  filesystem: {}
sandbox:
  paths: {notes: {mode: rw, write_approval: false, suffixes: ["*"]}}
"""
    (old / "clerk.agent").write_text(f"---\n{front}---\nGo.\n")
    told = report("old", cwd=tmp_path)
    assert "allow" not in told["files"][0]["text"], told["files"][0]["text"]
    assert told["counts"]["refused"] == 0


def test_nothing_that_exists_is_overwritten_unless_that_is_said(tmp_path: Path, old: Path, wording: Wording) -> None:
    (old / "signoff.yaml").write_text("policy: []\n")
    before = everything(tmp_path)
    assert refused(signoff("import", "llm-do", "old", "--write", cwd=tmp_path)) == wording()
    assert everything(tmp_path) == before
    assert signoff("import", "llm-do", "old", "--write", "--overwrite", cwd=tmp_path).returncode == 0
    assert "clerk_shell" in (old / "signoff.yaml").read_text()
    again = report("old", "--write", cwd=tmp_path)
    assert {one["change"] for one in again["files"]} == {"same"}


BAD = {
    "not YAML": ("clerk.agent", "---\nname: [clerk\n---\nx\n"),
    "not UTF-8": ("clerk.agent", b"---\nname: cl\xffrk\n---\nx\n"),
    "a bad name": ("clerk.agent", "---\nname: the clerk\n---\nx\n"),
    "two for one worker": ("clerk.agent", "---\nname: main\n---\nx\n"),
    "no mapping": ("clerk.agent", "---\n- a\n---\nx\n"),
    "yes for true": ("clerk.agent", "---\nname: clerk\nentry: yes\n---\nx\n"),
    "configuration that is none": ("clerk.agent", "---\nname: clerk\ntoolsets: {shell: 3}\n---\nx\n"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_file_that_cannot_be_carried_over_is_named_and_nothing_is_written(
    tmp_path: Path, old: Path, what: str, wording: Wording
) -> None:
    name, text = BAD[what]
    (old / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    before = sorted(one.name for one in old.rglob("*"))
    done = signoff("import", "llm-do", "old", "--write", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert done.stdout[done.stdout.index("Refused") :] == wording(yaml=NOT_YAML)
    assert sorted(one.name for one in old.rglob("*")) == before


def test_a_link_that_leads_out_is_not_followed(tmp_path: Path, old: Path) -> None:
    (tmp_path / "secret.agent").write_text("---\nname: secret\n---\nthe secret text\n")
    (old / "clerk.agent").unlink()
    (old / "clerk.agent").symlink_to("../secret.agent")
    told = report("old", "--write", cwd=tmp_path)
    assert [one["what"] for one in told["refused"]] == ["this leads out of old"]
    assert not told["written"] and "secret text" not in json.dumps(told)
    assert report("old", "--skip", "old/clerk.agent", cwd=tmp_path)["counts"]["refused"] == 0


@pytest.mark.parametrize("what", ["no files", "not JSON", "a worker in the way", "a link in the way", "two projects"])
def test_wrong_use_says_what_to_do(tmp_path: Path, old: Path, what: str, wording: Wording) -> None:
    arguments = ["old", "--write"]
    match what:
        case "no files":
            arguments = ["empty"]
            (tmp_path / "empty").mkdir()
        case "not JSON":
            (old / "project.json").write_text('{"version": 1,\n "runtime": }')
        case "a worker in the way":
            (old / "workers").mkdir()
            (old / "workers" / "main.yaml").write_text("instructions: mine\n")
            (old / "signoff.yaml").write_text("policy: []\n")
        case "a link in the way":
            (old / "workers").symlink_to(tmp_path)
        case _:
            arguments = ["."]
    assert refused(signoff("import", "llm-do", *arguments, cwd=tmp_path)) == wording()
    assert "signoff.yaml" not in os.listdir(old) or what == "a worker in the way"


def test_a_number_of_thousands_of_digits_is_refused_with_its_file(tmp_path: Path, old: Path) -> None:
    (old / "project.json").write_text(f'{{"version": {"9" * 5_000}}}')
    assert "project.json" in refused(signoff("import", "llm-do", "old", cwd=tmp_path))


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path, old: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "workers").write_text("in the way")
    refused(signoff("import", "llm-do", "old", "--into", "new", "--write", cwd=tmp_path))
    assert os.listdir(tmp_path / "new") == ["workers"]


def test_words_of_llm_do_in_our_files_get_a_hint(tmp_path: Path, wording: Wording) -> None:
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers" / "old.worker").write_text("---\nname: old\n---\nx\n")
    (tmp_path / "workers" / "a.yaml").write_text("server_side_tools: []\n")
    (tmp_path / "workers" / "b.yaml").write_text("allow_workers: [a]\n")
    (tmp_path / "signoff.yaml").write_text("toolsets: {}\n")
    assert signoff("workers", cwd=tmp_path).stdout == wording()
    assert refused(signoff("run", "old", "Go", cwd=tmp_path)) == wording()
    assert refused(signoff("run", "workers/old.worker", "Go", cwd=tmp_path)) == wording()
    (tmp_path / "signoff.yaml").write_text("toolsets: {n: {use: filesystem_rw, _approval_config: {}}}\n")
    assert refused(signoff("policy", "check", "signoff.yaml", cwd=tmp_path)) == wording()
    (tmp_path / "signoff.yaml").write_text("max_depth: 3\n")
    assert refused(signoff("policy", "check", "signoff.yaml", cwd=tmp_path)) == wording()
