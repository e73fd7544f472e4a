"""Completion: commands, options and ids, with what they stand for; and nothing at all where something is wrong."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from tests.cli.desk import Desk, asks
from tests.cli.program import signoff

from signoff.cli.main import COMMANDS


def completed(desk: Desk, line: str, shell: str = "zsh") -> dict[str, str]:
    """What the shell is offered after `line`, by value, with the help beside it."""
    words = line.split(" ")
    desk.monkeypatch.setenv("_SIGNOFF_COMPLETE", f"{shell}_complete")
    desk.monkeypatch.setenv("COMP_WORDS", line)
    desk.monkeypatch.setenv("COMP_CWORD", str(len(words) - 1) if shell != "fish" else words[-1])
    said = desk.run()
    desk.monkeypatch.delenv("_SIGNOFF_COMPLETE")
    assert said.err == ""
    rows = said.out.strip("\n").splitlines()
    return {rows[at + 1]: rows[at + 2] for at in range(0, len(rows), 3)}


def test_commands(desk: Desk) -> None:
    before = set(sys.modules)
    offered = completed(desk, "signoff ")
    assert set(offered) == set(COMMANDS)
    assert offered["inbox"] == "List pending requests."
    assert not {"pydantic_ai", "signoff.cli.run_command"} & (set(sys.modules) - before)
    assert set(completed(desk, "signoff un")) == {"unhalt"}
    assert "--remember" in completed(desk, "signoff approve --re")
    assert set(completed(desk, "signoff grants ")) == {"list", "revoke", "explain"}


def test_ids_of_requests(desk: Desk) -> None:
    desk.open(asks(id="abcd234567"), asks(id="abce234567", summary="Odd\x1b[2J\n\ntitle"), asks(id="xyz2345678"))
    died = desk.start_and_die(asks(id="died234567"))
    pay = 'pay(to="ana", amount=250, currency="EUR")'
    odd = "Odd⟦ESC⟧[2J⟦LF×2⟧title"
    assert completed(desk, "signoff approve abc") == {"abcd234567": pay, "abce234567": odd}
    assert set(completed(desk, "signoff deny abcd234567 abc")) == {"abce234567"}, "what was typed is not offered again"
    assert set(completed(desk, "signoff show ")) == {"abcd234567", "abce234567", "xyz2345678", died}
    assert set(completed(desk, "signoff outcome ")) == {died}
    assert set(completed(desk, "signoff take x")) == {"xyz2345678"}
    assert completed(desk, "signoff approve nothing") == {}


def test_names_of_channels(desk: Desk) -> None:
    (desk.directory / "signoff.yaml").write_text(
        'policy: []\nchannels: {terminal: {}, discord: {channel: "112233445566778899"}}\n'
    )
    assert set(completed(desk, "signoff channels ")) == {"list", "run", "test"}
    assert completed(desk, "signoff channels run ") == {"terminal": "terminal", "discord": "discord"}
    assert set(completed(desk, "signoff channels run discord ")) == {"terminal"}, "what was typed is not offered again"
    assert set(completed(desk, "signoff channels test d")) == {"discord"}
    (desk.directory / "signoff.yaml").write_text("channels: [")
    assert completed(desk, "signoff channels test d") == {}


def test_ids_of_runs_and_grants(desk: Desk) -> None:
    run = desk.begin("runabc2345", prompt="Pay the bills")
    assert completed(desk, "signoff cancel r") == {run: "shop:agent Pay the bills"}
    [one] = desk.open(asks())
    desk.run("approve", one, "--remember", "exact", "--yes")
    [grant] = desk.run("grants", "list", "--json").data["grants"]
    assert set(completed(desk, "signoff grants revoke ")) == {grant["id"]}
    assert completed(desk, "signoff grants explain ")[grant["id"]].startswith("always pay, exactly as in: ")


def test_another_store_is_asked_where_one_is_named(desk: Desk) -> None:
    desk.open(asks(id="abcd234567"))
    desk.monkeypatch.setenv("SIGNOFF_STORE", "sqlite:other.db")
    assert completed(desk, "signoff show ") == {}
    assert set(completed(desk, f"signoff show --store sqlite:{desk.file} ")) == {"abcd234567"}
    assert not (desk.directory / "other.db").exists()


@pytest.mark.parametrize("spoil", ["database", "policy", "scheme"])
def test_whatever_is_wrong_nothing_is_said(desk: Desk, spoil: str) -> None:
    desk.open(asks())
    if spoil == "database":
        desk.file.write_bytes(b"x" * 4096)
    elif spoil == "policy":
        (desk.directory / "signoff.yaml").write_text("policy: [")
    else:
        desk.monkeypatch.setenv("SIGNOFF_STORE", "what:ever")
    for line in ("signoff approve ", "signoff cancel ", "signoff grants revoke "):
        assert completed(desk, line) == {}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(desk: Desk, shell: str) -> None:
    done = signoff("completion", shell, cwd=desk.directory)
    assert done.returncode == 0
    assert "_SIGNOFF_COMPLETE" in done.stdout
    if program := shutil.which(shell):
        checked = subprocess.run([program, "-n"], input=done.stdout, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr


def test_a_shell_nobody_knows(desk: Desk) -> None:
    assert desk.run("completion", "cmd").code == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_an_id(desk: Desk) -> None:
    desk.open(asks(id="abcd234567"))
    script = signoff("completion", "bash", cwd=desk.directory).stdout
    starter = desk.directory / "signoff"
    starter.write_text(f"#!{sys.executable}\nfrom signoff.cli.main import main\nmain()\n")
    starter.chmod(0o755)
    ask = f"""
PATH={desk.directory}:$PATH
{script}
COMP_WORDS=(signoff approve ab)
COMP_CWORD=2
_signoff_completion signoff
echo "got ${{COMPREPLY[*]}}"
"""
    done = subprocess.run(
        ["bash", "--norc"],
        input=ask,
        capture_output=True,
        text=True,
        check=True,
        env=desk.environment,
        cwd=desk.directory,
    )
    assert "got abcd234567" in done.stdout, done.stderr
