"""Enter, type-ahead and closed terminals: nothing a person did not mean becomes a yes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pexpect
import pytest
from tests import start

AGENT = """
import asyncio
from pathlib import Path
from pydantic_ai import Agent
from signoff import ApprovalMemory, Signoff
from signoff.testing import ScriptedModel

def touch(name: str) -> str:
    Path(name).touch()
    return f"touched {name}"

turns = [{"calls": [{"tool": "touch", "args": {"name": "done"}}]}, {"say": "END {{last}}"}]
agent = Agent(ScriptedModel(turns), tools=[touch], capabilities=[Signoff([], memory=ApprovalMemory(None))])
print("READY", flush=True)
input()
print(asyncio.run(agent.run("go")).output)
"""


@pytest.fixture
def terminal(tmp_path: Path) -> pexpect.spawn[str]:
    (tmp_path / "program.py").write_text(AGENT)
    environment = {**os.environ, "TERM": "dumb", "PYDANTIC_AI_NO_BANNER": "1"}
    child = start.terminal([sys.executable, "program.py"], cwd=tmp_path, env=environment, encoding="utf-8")
    child.expect("READY")
    return child


def test_enter_never_approves(terminal: pexpect.spawn[str], tmp_path: Path) -> None:
    terminal.sendline("")
    for typed in ("", " ", "\t", "ok", "Y E S", "1", "approve it"):
        terminal.expect("your answer > ")
        terminal.sendline(typed)
    terminal.expect("your answer > ")
    assert not (tmp_path / "done").exists()
    terminal.sendintr()
    terminal.expect("END .*permission_denied")
    terminal.expect(pexpect.EOF)
    assert not (tmp_path / "done").exists()


def test_what_was_typed_before_the_question_is_no_answer(terminal: pexpect.spawn[str], tmp_path: Path) -> None:
    terminal.send("\na\na\na\n")
    terminal.expect("your answer > ")
    assert not (tmp_path / "done").exists()
    terminal.sendline("d")
    terminal.expect("END .*permission_denied")
    assert not (tmp_path / "done").exists()


def test_a_terminal_that_goes_away_is_a_no(terminal: pexpect.spawn[str], tmp_path: Path) -> None:
    terminal.sendline("")
    terminal.expect("your answer > ")
    terminal.sendeof()
    terminal.expect("END .*permission_denied")
    assert not (tmp_path / "done").exists()
