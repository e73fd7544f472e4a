"""The words that put a command into a sandbox, and what the sandbox does where there is one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pydantic_ai import Agent

from signoff import Signoff
from signoff.errors import WrongUse
from signoff.policy.shell.line import CommandLine, Pipeline, Simple, Word
from signoff.testing import ScriptedModel
from signoff.toolsets import shell_file_ops
from signoff.toolsets.builtin.shell.approved_command import run_approved
from signoff.toolsets.builtin.shell.argv import run_line
from signoff.toolsets.builtin.shell.environment import find_program
from signoff.toolsets.builtin.shell.sandbox import Sandbox, open_sandbox, probe

HERE = find_program("bwrap")


def binds(words: list[str]) -> list[tuple[str, str]]:
    """How each directory is mounted, in order."""
    kinds = ("--ro-bind", "--bind", "--tmpfs", "--dev", "--proc")
    return [(words[at], words[at + 1]) for at in range(len(words)) if words[at] in kinds]


def test_everything_is_read_only_and_the_root_comes_last() -> None:
    sandbox = Sandbox("/usr/bin/bwrap", "/tmp/project")
    words = sandbox.words("/tmp/project/sub", writable=False)
    assert words[0] == "/usr/bin/bwrap" and words[-3:] == ["--chdir", "/tmp/project/sub", "--"]
    assert binds(words)[0] == ("--ro-bind", "/") and binds(words)[-1] == ("--ro-bind", "/tmp/project")
    assert ("--tmpfs", "/tmp") in binds(words) and ("--tmpfs", "/run") in binds(words)
    assert "--bind" not in words
    for needed in ("--unshare-net", "--unshare-pid", "--die-with-parent", "--new-session"):
        assert needed in words


def test_the_environment_of_this_python_is_seen_where_it_is_below_a_hidden_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "base_prefix", "/home/me/python")
    monkeypatch.setattr(sys, "prefix", "/tmp/project/.venv")
    mounted = binds(Sandbox("/usr/bin/bwrap", "/srv/project").words("/srv/project", writable=True))
    assert mounted[-4:] == [
        ("--tmpfs", "/tmp"),
        ("--tmpfs", "/run"),
        ("--ro-bind", "/tmp/project/.venv"),
        ("--bind", "/srv/project"),
    ]


def test_only_what_was_approved_may_write_and_only_below_the_root() -> None:
    words = Sandbox("/usr/bin/bwrap", "/home/me/project").words("/home/me/project", writable=True)
    assert [place for kind, place in binds(words) if kind == "--bind"] == ["/home/me/project"]


def test_the_network_is_there_only_when_said() -> None:
    assert "--unshare-net" not in Sandbox("/usr/bin/bwrap", "/r", network=True).words("/r", writable=True)
    assert "no network" in Sandbox("/usr/bin/bwrap", "/r").text
    assert "with network" in Sandbox("/usr/bin/bwrap", "/r", network=True).text


def test_off_is_off_and_nonsense_is_refused(tmp_path: Path) -> None:
    assert open_sandbox("off", str(tmp_path)) is None
    with pytest.raises(WrongUse, match="'maybe'"):
        open_sandbox("maybe", str(tmp_path))  # type: ignore[arg-type]


def test_nothing_is_left_to_protect_around_the_whole_file_system() -> None:
    assert open_sandbox("auto", "/") is None
    with pytest.raises(WrongUse, match="whole file system"):
        open_sandbox("on", "/")


@pytest.mark.skipif(bool(HERE.path), reason="bwrap is installed")
def test_without_bwrap_on_says_how_to_install_it_and_auto_goes_without(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="apt install bubblewrap"):
        open_sandbox("on", str(tmp_path))
    assert open_sandbox("auto", str(tmp_path)) is None


def test_a_sandbox_that_does_not_work_is_found_out() -> None:
    assert probe(("/usr/bin/env", "false")) != ""
    assert probe(("/no/such/program",)) != ""
    assert probe(("/usr/bin/env",)) == ""


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    if not HERE.path:
        pytest.skip(f"bwrap cannot be run here: {HERE.why}")
    found = open_sandbox("auto", str(tmp_path))
    if found is None:
        pytest.skip("bwrap is installed, but namespaces are forbidden here")
    return found


async def test_a_real_sandbox_holds(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    inside = CommandLine((Pipeline((Simple((Word("cat"), Word("a.txt"))), Simple((Word("tee"), Word("b.txt"))))),))
    outcome = await run_line(inside, root=str(tmp_path), sandbox=sandbox)
    assert outcome.out == "x\n" and outcome.code == 1 and not (tmp_path / "b.txt").exists()
    outcome = await run_approved(
        "echo y > b.txt; echo z > /etc/z; ls /tmp /run; ls /sys/class/net", root=str(tmp_path), sandbox=sandbox
    )
    assert (tmp_path / "b.txt").read_text() == "y\n"
    assert "/etc/z" in outcome.err and "z" not in os.listdir("/etc")


def test_a_sealed_directory_is_read_only_and_no_directory_above_it_can_be_moved_away() -> None:
    """A directory that something is mounted on cannot be renamed, but the one above it could."""
    sealed = ("/r/project/a/b/bin", "/r/project/a/bin", "/r/project/tools", "/elsewhere/bin")
    words = Sandbox("/usr/bin/bwrap", "/r/project").words("/r/project", writable=True, sealed=sealed)
    mounted = binds(words)[binds(words).index(("--bind", "/r/project")) + 1 :]
    assert mounted == [
        *(("--bind", "/r/project/a"), ("--bind", "/r/project/a/b")),
        *(("--ro-bind", one) for one in sealed),
    ]
    reading = Sandbox("/usr/bin/bwrap", "/r/project").words("/r/project", writable=False, sealed=sealed)
    assert "--bind" not in reading


async def test_a_shell_seals_the_directories_of_other_shells_too(tmp_path: Path) -> None:
    root, told = tmp_path / "project", tmp_path / "told"
    for directory in ("own/bin", "other/bin"):
        (root / directory).mkdir(parents=True)
    (tmp_path / "bwrap").write_text(f'#!/bin/sh\necho "$@" >> {told}\n')
    (tmp_path / "bwrap").chmod(0o755)
    tools = shell_file_ops(root, sandbox="off", programs=[root / "own" / "bin"])
    tools.sandbox = Sandbox(str(tmp_path / "bwrap"), str(root))
    tools.guarded = (*tools.programs, str(root / "other" / "bin"))
    rules = [{"allow": {"tool": "shell", "command": "touch *"}}]
    turns = [{"calls": [{"tool": "shell", "args": {"command": "touch x"}}]}, {"say": "done"}]
    await Agent(ScriptedModel(turns), toolsets=[tools], capabilities=[Signoff(policy=rules)]).run("go")
    for directory in ("own/bin", "other/bin"):
        assert f"--ro-bind {root / directory} {root / directory}" in told.read_text()
