"""Programs of directories below the root, through the program: why one is not found, how to trust it, who edits it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.start import signoff

BROAD = [{"id": "broad", "allow": {"tool": ["shell", "write_file", "edit_file", "move_file", "delete_file"]}}]
NARROW = [
    {
        "id": "tests",
        "allow": {"tool": "shell", "command": ["mytest *", "cp *", "mv *", "rm *", "tee *", "dd *", "ln *"]},
    }
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for directory in ("workers", ".venv/bin", "tools/bin", "new", "src"):
        (root / directory).mkdir(parents=True)
    for file in (".venv/bin/mytest", "tools/bin/mytest", "new/mytest"):
        (root / file).write_text(f"#!/bin/sh\necho {file}\n")
        (root / file).chmod(0o755)
    (root / "link").symlink_to("tools/bin")
    (root / "workers" / "coder.yaml").write_text("instructions: Work.\ntoolsets: [sh, files]\n")
    return root


def written(project: Path, policy: list[dict[str, Any]], **config: Any) -> None:
    toolsets = {
        "sh": {"use": "shell_file_ops", "config": {"root": ".", "sandbox": "off", **config}},
        "files": {"use": "filesystem_rw", "config": {"root": "."}},
    }
    (project / "signoff.yaml").write_text(yaml.safe_dump({"toolsets": toolsets, "policy": policy}))


def events(project: Path, calls: list[dict[str, Any]], path: str = "") -> list[dict[str, Any]]:
    turns = [{"calls": [call]} for call in calls]
    (project / "script.yaml").write_text(yaml.safe_dump([*turns, {"say": "{{last}}"}]))
    done = signoff(
        *("run", "coder", "go", "--model", "script:script.yaml", "--json", "--mode", "auto_deny"),
        cwd=project,
        PATH=f"{path}{os.environ['PATH']}",
    )
    assert done.returncode in (0, 4), done.stderr  # 4: a call was denied
    return [json.loads(line) for line in done.stdout.splitlines()]


def shell(command: str) -> dict[str, Any]:
    return {"tool": "shell", "args": {"command": command}}


@pytest.mark.parametrize("in_path", [True, False])
def test_a_program_that_is_left_out_is_named_with_the_way_to_trust_it(project: Path, in_path: bool) -> None:
    written(project, NARROW)
    [*_, last] = events(project, [shell("mytest quick")], f"{project}/.venv/bin:" if in_path else "")
    assert (
        "mytest: command not found. .venv/bin/mytest is there, but directories below the root are left out of PATH"
        in (last["output"])
    )
    assert "programs: [.venv/bin]" in last["output"]


def test_a_program_that_is_nowhere_is_not_said_to_be_left_out(project: Path) -> None:
    written(project, NARROW)
    [*_, last] = events(project, [shell("rm -q; mytest2")])
    assert "left out of PATH" not in last["output"]


def test_a_directory_that_the_file_names_is_searched_first(project: Path) -> None:
    written(project, NARROW, programs=[".venv/bin", "tools/bin"])
    assert events(project, [shell("mytest quick")])[-1]["output"] == ".venv/bin/mytest"
    assert events(project, [shell("cd src && command -v mytest")])[-1]["output"] == f"{project}/.venv/bin/mytest"
    written(project, NARROW, programs=["tools/bin", ".venv/bin"])
    assert events(project, [shell("cd . && mytest quick")])[-1]["output"] == "tools/bin/mytest"


@pytest.mark.parametrize(
    ("programs", "told"),
    [
        (["../bin"], "config.programs[0]: this should be a directory of the project"),
        (["/usr/bin"], "config.programs[0]: this should be a directory of the project"),
        ([".venv/bin", "nothing/bin"], "config.programs[1]: there is no directory `nothing/bin`"),
        (["."], "which is the root directory of the shell"),
        (".venv/bin", "this should be a list, not a text"),
        ([3], "config.programs[0]"),
    ],
)
def test_directories_are_checked_when_the_file_is_read(project: Path, programs: Any, told: str) -> None:
    written(project, NARROW, programs=programs)
    done = signoff("toolsets", "show", "sh", cwd=project)
    assert done.returncode == 1
    assert told in done.stdout


CHANGES = [
    shell("cp new/mytest tools/bin/mytest"),
    shell("cp -t tools/bin new/mytest"),
    shell("cp -ttools/bin new/mytest"),
    shell("cp --target-directory=tools/bin new/mytest"),
    shell("cd tools && cp ../new/mytest bin/"),
    shell("cp new/mytest link/mytest"),
    shell("cp new/mytest tools/b*"),
    shell("dd if=new/mytest of=tools/bin/mytest"),
    shell("dd if=new/mytest of=./tools/../tools/BIN/mytest"),
    shell("ln -s . here && cp new/mytest here/tools/bin/mytest"),
    shell("cd new && cd ../tools && cp ../new/mytest bin/"),
    shell("cd tools; cd bin; cp ../../new/mytest mytest"),
    shell("mv t* old"),
    shell("cp new/mytest */bin"),
    shell("cp new/mytest tool?/b[i]n/"),
    shell("rm -r *"),
    shell("mv new tools"),
    shell("rm -r tools"),
    {"tool": "write_file", "args": {"path": "tools/bin/mytest", "content": "x"}},
    {"tool": "write_file", "args": {"path": "TOOLS/bin/other", "content": "x"}},
    {"tool": "move_file", "args": {"source": "new", "target": "tools"}},
    {"tool": "move_file", "args": {"source": "tools", "target": "old"}},
    {"tool": "delete_file", "args": {"path": "tools/bin/mytest"}},
]
BROAD_ONLY = [
    shell("sed -n 'w tools/bin/mytest' new/mytest"),
    shell('python3 -c \'open("tools/bin/mytest", "w")\''),
    shell("echo x > tools/bin/mytest"),
    shell("bash -c 'cp new/mytest tools/bin'"),
]


@pytest.mark.parametrize("policy", [BROAD, NARROW], ids=["broad", "narrow"])
def test_a_write_into_such_a_directory_asks_whatever_rules_allow(project: Path, policy: list[dict[str, Any]]) -> None:
    before = (project / "tools/bin/mytest").read_text()
    calls = [*CHANGES, *BROAD_ONLY]
    written(project, policy, programs=["tools/bin"])
    found = [one for one in events(project, calls) if one.get("event") in ("allowed", "denied")]
    assert [one["event"] for one in found] == ["denied"] * len(calls), found
    assert (project / "tools/bin/mytest").read_text() == before
    plain = [
        shell("cp new/mytest src/"),
        shell("cd new && cd ../src && ls"),
        shell("dd if=tools/x of=src/bin"),
        shell("cat tools/bin/mytest"),
        shell("mytest tests"),
    ]
    if policy is BROAD:
        plain.append({"tool": "write_file", "args": {"path": "src/a.txt", "content": "x"}})
    assert {one["event"] for one in events(project, plain) if one.get("event") in ("allowed", "denied")} == {"allowed"}


def test_without_such_a_directory_the_same_rules_allow_the_same_writes(project: Path) -> None:
    """So it is the directory that makes them ask."""
    written(project, BROAD)
    found = events(project, [CHANGES[0], CHANGES[9]])
    assert [one["event"] for one in found if one.get("event") in ("allowed", "denied")] == ["allowed", "allowed"]


def test_doctor_and_show_name_what_could_still_change_the_programs(project: Path) -> None:
    written(project, NARROW, programs=["tools/bin"])
    done = signoff("doctor", "--json", cwd=project)
    [one] = [one for one in json.loads(done.stdout)["findings"] if one["check"] == "programs"]
    assert one["severity"] == "warning"
    assert "coder may run without a question" in one["what"] and "tools/bin" in one["what"]
    shown = signoff("toolsets", "show", "sh", cwd=project).stdout
    assert "runs programs by name from tools/bin; writes there ask" in shown
    written(project, [], programs=["tools/bin"])
    done = signoff("doctor", "--json", cwd=project)
    assert [one for one in json.loads(done.stdout)["findings"] if one["check"] == "programs"] == []
