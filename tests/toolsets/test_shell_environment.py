"""What programs find around them: nothing of ours that changes what they do, and only files that are root's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from signoff.policy.shell.line import CommandLine, Pipeline, Simple, Word
from signoff.toolsets.builtin.shell.approved_command import run_approved
from signoff.toolsets.builtin.shell.argv import run_line
from signoff.toolsets.builtin.shell.environment import find_program, others_change
from signoff.toolsets.builtin.shell.subprocesses import CommandResult

TRICKS = {
    "LD_LIBRARY_PATH": "/tmp",
    "LD_AUDIT": "",
    "BASH_ENV": "trap.sh",
    "ENV": "trap.sh",
    "BASH_FUNC_ls%%": "() { echo fooled; }",
    "SHELLOPTS": "xtrace",
    "PS4": "$(echo fooled >&2)",
    "GIT_EXTERNAL_DIFF": "evil",
    "GIT_DIR": "/nowhere",
    "GIT_CONFIG_COUNT": "0",
    "LESSOPEN": "|evil",
    "TAR_OPTIONS": "--checkpoint-action=exec=evil",
    "GREP_OPTIONS": "--color=always",
    "RIPGREP_CONFIG_PATH": "evil",
    "PERL5OPT": "-Mevil",
    "NODE_OPTIONS": "--require evil",
    "PAGER": "evil",
    "MY_API_KEY": "k-1",
    "GITHUB_TOKEN": "t-1",
    "DB_PASSWORD": "p-1",
    "SIGNOFF_STORE": "sqlite:x",
}


@pytest.fixture
def tricked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a trap in it, and an environment full of ways into the trap."""
    (tmp_path / "trap.sh").write_text("echo fooled\n")
    (tmp_path / "ls").write_text("#!/bin/sh\necho fooled\n")
    (tmp_path / "ls").chmod(0o755)
    for name, value in TRICKS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HARMLESS", "yes")
    monkeypatch.setenv("PATH", f":.:{os.environ['PATH']}")
    return tmp_path


def variables(outcome: CommandResult) -> dict[str, str]:
    return dict(one.split("=", 1) for one in outcome.out.splitlines() if "=" in one)


async def run(root: Path, *words: str) -> CommandResult:
    return await run_line(CommandLine((Pipeline((Simple(tuple(map(Word, words))),)),)), root=str(root))


async def test_what_runs_unasked_gets_an_environment_made_from_nothing(tricked: Path) -> None:
    found = variables(await run(tricked, "env"))
    assert found.pop("SIGNOFF_CALL")
    assert found.pop("USER") == found.pop("LOGNAME")
    found.pop("TZ", None)
    assert found == {
        "PATH": "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin",
        "HOME": os.environ["HOME"],
        "PWD": str(tricked),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PAGER": "cat",
    }


async def test_what_was_approved_gets_ours_without_the_tricks(tricked: Path) -> None:
    outcome = await run_approved("env; ls", root=str(tricked))
    found = variables(outcome)
    assert "fooled" not in outcome.out + outcome.err and "trap.sh" in outcome.out
    assert {name: found[name] for name in TRICKS if name in found} == {"PAGER": "cat"}
    assert found["HARMLESS"] == "yes"
    assert all(directory.startswith("/") for directory in found["PATH"].split(":"))


async def test_a_named_variable_is_kept(tricked: Path) -> None:
    found = variables(await run_approved("env", root=str(tricked), keep=["GITHUB_TOKEN"]))
    assert found["GITHUB_TOKEN"] == "t-1" and "DB_PASSWORD" not in found


@pytest.mark.parametrize(
    ("zone", "passed"), [("Europe/Vienna", True), ("UTC", True), (":/etc/passwd", False), ("../x", False)]
)
async def test_the_time_zone_is_passed_by_its_name_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str, passed: bool
) -> None:
    monkeypatch.setenv("TZ", zone)
    assert ("TZ" in variables(await run(tmp_path, "env"))) is passed


def test_a_program_is_found_where_only_root_can_put_one() -> None:
    found = find_program("ls")
    assert found.name in ("/usr/bin/ls", "/bin/ls") and os.path.realpath(found.name) == found.path
    assert find_program("/bin/ls").path == os.path.realpath("/bin/ls")
    for name in ("", "no-such-program", "./ls", "a\0b", "..", "/usr/bin/../bin/ls", "/usr/bin", "/etc/passwd"):
        assert not find_program(name).path and find_program(name).why, name


def test_what_others_can_change_is_not_trusted(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o777)
    assert others_change(str(program))
    program.chmod(0o755)
    parent = others_change(str(program))
    assert parent and ("root" in parent or "others" in parent), (
        "a directory above belongs to somebody, or is open to all"
    )
    (tmp_path / "link").symlink_to("/bin/ls")
    assert "plain file" in others_change(str(tmp_path / "link"))
    assert others_change(find_program("ls").path) == ""
