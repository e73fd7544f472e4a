"""Rules for commands after `cd`, through the program: what runs where, and what the person is told who is asked."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from tests.start import signoff
from tests.toolsets.projects import several

PROGRAMS = ("pytest", "make", "rm", "npm", "tool", "git")
RULES = [
    {"id": "other", "allow": {"tool": "shell", "command": "date"}},
    {
        "id": "named",
        "allow": {
            "tool": "shell",
            "command": ["pytest *", "make test", "rm build/*", "npm run *", "./launch *", "tool *", "git commit *"],
        },
    },
]
START = "the directory that commands start in"
CASES = {
    "pytest -q": ".",
    "cd . && pytest -q": ".",
    "cd ./ && make test": ".",
    "cd ROOT && make test": ".",
    "cd LINKED && make test": ".",
    "cd sub && cd .. && make test": ".",
    "cd inner && cd .. && make test": ".",
    "cd ../project && rm build/x": ".",
    "cd . && ./launch 1": ".",
    "cd nowhere || make test": ".",
    "cd nowhere; pytest -q": ".",
    "cd sub && pytest -q": "sub",
    "cd sub/ && pytest -q && pytest x": "sub sub",
    "cd inner && pytest -q": "sub",
    "cd ROOT/sub && npm run build": "sub",
    "cd sub; pytest -q": "sub",
    # the same words mean something else there
    "cd sub && make test": "`make` runs in `sub` after a `cd`, and `make test` only applies in " + START,
    "cd sub && rm build/x": "`rm` runs in `sub` after a `cd`, and `rm build/*` only applies in " + START,
    "cd sub && tool x": "`tool` runs in `sub` after a `cd`, and `tool *` only applies in " + START,
    "cd sub && ./launch 1": "`./launch` runs in `sub` after a `cd`, and `./launch *` only applies in " + START,
    "cd sub; ./launch 1": "`./launch` runs in `sub` after a `cd`, and `./launch *` only applies in " + START,
    "cd sub && git commit -m x": "`git` runs in `sub` after a `cd`, and `git commit *` only applies in " + START,
    "cd build && rm x": "`rm` removes files",
    # outside, by the text or by a link
    "cd .. && pytest -q": "it may touch what is below `..`, which is above the working directory",
    "cd OUT && pytest -q": "after a `cd`, outside " + START,
    "cd OUT; cd ROOT; pytest -q": "after a `cd`, outside " + START,
    "cd leak && pytest -q": "`pytest` runs in `leak` after a `cd`, outside " + START,
    "cd sub/leak && pytest -q": "`pytest` runs in `sub/leak` after a `cd`, outside " + START,
    # nobody can tell
    "cd - && pytest -q": "`pytest` runs after a `cd`, in a directory that is only known when it runs",
    "cd && pytest -q": "it may touch what is below `~`, which contains directories or files that hold secrets",
    "cd -P sub && pytest -q": "`pytest` runs after a `cd`, in a directory that is only known when it runs",
    "cd '' && pytest -q": "`pytest` runs after a `cd`, in a directory that is only known when it runs",
    'cd "$X" && pytest -q': "it changes into a directory that is only known when it runs",
    "CDPATH=.. cd out && pytest -q": "the command",
    "cd s* && pytest -q": "`s*` may stand for",
    # places whose content is run
    "cd .git && pytest -q": "`pytest` runs in `.git` after a `cd`, and version control runs hooks",
    "cd node_modules/evil && npm run build": "`npm` runs in `node_modules/evil` after a `cd`, and programs load code",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with directories and links, and programs beside it that tell where they run."""
    above = tmp_path.joinpath(*"deep below a home as projects are".split())  # how deep makes no difference
    root = above / "project"
    for directory in ("workers", "sub/build", "build", ".git", "node_modules/evil"):
        (root / directory).mkdir(parents=True)
    for directory in ("out", "bin"):
        (above / directory).mkdir()
    (above / "linked").symlink_to(root)
    (root / "inner").symlink_to("sub")
    (root / "leak").symlink_to("../out")
    (root / "sub" / "leak").symlink_to("../../out")
    for file in (*(above / "bin" / name for name in PROGRAMS), root / "launch", root / "sub" / "launch"):
        file.write_text('#!/bin/sh\npwd -P >> "$RAN"\n')
        file.chmod(0o755)
    (root / "workers" / "coder.yaml").write_text("instructions: Work.\ntoolsets: [sh]\n")
    entry = {"use": "shell_file_ops", "config": {"root": ".", "sandbox": "off"}}
    (root / "signoff.yaml").write_text(yaml.safe_dump({"toolsets": {"sh": entry}, "policy": RULES}))
    return root


def spelled(command: str, project: Path) -> str:
    places = {"ROOT": project, "LINKED": project.parent / "linked", "OUT": project.parent / "out"}
    for name, place in places.items():
        command = command.replace(name, str(place))
    return command


def test_a_rule_covers_a_command_after_cd_only_where_it_means_the_same(project: Path) -> None:
    ran = project.parent / "ran"
    commands = [spelled(command, project) for command in CASES]
    turns = [{"calls": [{"tool": "shell", "args": {"command": one}}]} for one in commands]
    (project / "script.yaml").write_text(yaml.safe_dump([*turns, {"say": "done"}]))
    path = f"{project.parent / 'bin'}:{os.environ['PATH']}"
    done = signoff(
        *("run", "coder", "go", "--model", "script:script.yaml", "--json", "--store", f"sqlite:{project.parent}/s.db"),
        cwd=project,
        PATH=path,
        RAN=str(ran),
    )
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    asked = {one["args"]["command"]: one["request"] for one in events if one.get("event") == "asked"}
    where = [CASES[one] for one, command in zip(CASES, commands, strict=True) if command not in asked]
    expected = [told for told in CASES.values() if told in (".", "sub", "sub sub")]
    assert where == expected
    directories = " ".join(expected).split()
    assert ran.read_text().split() == [os.path.normpath(project / directory) for directory in directories]
    store = ("--json", "--store", f"sqlite:{project.parent}/s.db")
    cards = several([("show", request, *store) for request in asked.values()], cwd=project)
    reasons = {command: json.loads(card)["card"]["why"] for command, card in zip(asked, cards, strict=True)}
    for command, told in zip(commands, CASES.values(), strict=True):
        if command in asked:
            assert told in reasons[command], (command, reasons[command])


@pytest.mark.parametrize("toolset", [(), ("--toolset", "shell_file_ops")])
def test_explain_says_the_same(project: Path, toolset: tuple[str, ...]) -> None:
    commands = ("cd . && pytest -q", "cd sub && make test", "cd leak && pytest -q", "cd - && pytest")
    explain = ("policy", "explain", "signoff.yaml", "--tool", "shell", *toolset, "--json", "--args")
    explained = several([(*explain, json.dumps({"command": command})) for command in commands], cwd=project)
    for command, text in zip(commands, explained, strict=True):
        told = json.loads(text)
        expected = CASES.get(command) or CASES["cd - && pytest -q"]
        assert (told["verdict"] == "allow") is (expected == "."), command
        assert expected == "." or expected in told["reason"], command


def test_rules_of_the_toolsets_own_entry_go_by_its_directory(project: Path) -> None:
    """A shell that starts in `sub`: `..` is outside although it is inside of the project, and so is a link there."""
    entry = {"use": "shell_file_ops", "config": {"root": "sub", "sandbox": "off"}, "policy": RULES}
    (project / "signoff.yaml").write_text(yaml.safe_dump({"toolsets": {"sh": entry}, "policy": []}))
    commands = ["cd .. && pytest -q", "cd leak && pytest -q", "cd ../sub && make test", "cd build && pytest"]
    turns = [{"calls": [{"tool": "shell", "args": {"command": one}}]} for one in commands]
    (project / "script.yaml").write_text(yaml.safe_dump([*turns, {"say": "done"}]))
    done = signoff(
        *("run", "coder", "go", "--model", "script:script.yaml", "--json", "--mode", "auto_deny"),
        cwd=project,
        PATH=f"{project.parent / 'bin'}:{os.environ['PATH']}",
        RAN=str(project.parent / "ran"),
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    allowed = [one["args"]["command"] for one in events if one.get("event") == "allowed"]
    assert allowed == commands[2:]


def test_a_link_that_the_line_itself_makes_leads_no_command_elsewhere(project: Path) -> None:
    """Rules judge where `cd` leads before the line runs; what leads elsewhere by then is asked about."""
    rules = [{"allow": {"tool": "shell", "command": ["pytest *", "ln *", "mkdir *", "rmdir *"]}}]
    entry = {"use": "shell_file_ops", "config": {"root": ".", "sandbox": "off"}}
    (project / "signoff.yaml").write_text(yaml.safe_dump({"toolsets": {"sh": entry}, "policy": rules}))
    runs = {
        ("ln -s ../out made && cd made && pytest 1",): [],
        ("ln -s ../.git sub/made; cd sub/made; pytest 2",): [],
        ("rmdir sub/build && ln -s ../../out sub/build && cd sub/build && pytest 3",): [],
        ("mkdir fresh && cd fresh && pytest 4", "cd inner && pytest 5"): ["fresh", "sub"],
    }
    ran = project.parent / "ran"
    for commands, directories in runs.items():
        turns = [{"calls": [{"tool": "shell", "args": {"command": command}}]} for command in commands]
        (project / "script.yaml").write_text(yaml.safe_dump([*turns, {"say": "done"}]))
        ran.write_text("")
        done = signoff(
            *("run", "coder", "go", "--model", "script:script.yaml", "--json", "--suspend"),
            cwd=project,
            PATH=f"{project.parent / 'bin'}:{os.environ['PATH']}",
            RAN=str(ran),
        )
        assert done.returncode == (0 if directories else 3), (commands, done.stdout, done.stderr)
        assert ran.read_text().splitlines() == [str(project / directory) for directory in directories], commands
