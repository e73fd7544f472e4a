"""W6: each ready-made approver is really asked, and what it answers is what becomes of the call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest
from tests import start
from tests.proofs.outside import Project

AGENT = '''\
import sys
from pathlib import Path

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.toolsets import FunctionToolset

from signoff import Actor, Signoff
from signoff.channels import headless_approver, scripted_approver, terminal_approver, tui_approver
from signoff.testing import ScriptedModel

APPROVERS = {
    "terminal": terminal_approver,
    "tui": tui_approver,
    "deny": headless_approver,
    "park": lambda: headless_approver("park"),
    "script": lambda: scripted_approver(["approve", "deny:one is enough"], by=Actor(name="eve")),
}


def write(name: str) -> str:
    """Write a file."""
    Path(name).write_text("written")
    return f"wrote {name}"


TURNS = [
    {"calls": [{"tool": "write", "args": {"name": "first.txt"}}]},
    {"calls": [{"tool": "write", "args": {"name": "second.txt"}}]},
    {"say": "{{last}}"},
]
agent = Agent(
    ScriptedModel(TURNS),
    toolsets=[FunctionToolset([write])],
    output_type=[str, DeferredToolRequests],
    capabilities=[Signoff([{"ask": "write"}], approver=APPROVERS[sys.argv[1]]())],
)
print("came to:", agent.run_sync("Go on").output)
'''


@pytest.fixture
def here(project: Project) -> Project:
    project.put({"asking.py": AGENT})
    return project


def sits(project: Project, approver: str) -> Any:
    """The program at a real (pseudo) terminal."""
    environment = {**project.environment, "TERM": "xterm"}
    command = [sys.executable, str(project.directory / "asking.py"), approver]
    return start.terminal(command, cwd=project.directory, env=environment, encoding="utf-8")


def presses_until(screen: Any, key: str, seen: str, is_taken: Callable[[], bool]) -> None:
    """Press a key until it is taken: one that comes before the card was on screen for a moment does not count.

    Once it is taken it is not pressed again: it would decide about the next card.
    """
    for _ in range(start.PATIENCE):
        if not is_taken():
            screen.send(key)
        if screen.expect_exact([seen, pexpect.TIMEOUT], timeout=3) == 0:
            return
    raise AssertionError(f"{seen!r} did not come")


@pytest.mark.mission("W6")
def test_w6_the_terminal_asks_and_does_what_is_typed(here: Project) -> None:
    program = sits(here, "terminal")
    program.expect_exact("may write run?")
    program.expect_exact("first.txt")
    assert not here.has("first.txt")
    program.expect("your answer|> ")
    program.sendline("")
    program.sendline("a")
    program.expect_exact("second.txt")
    assert here.has("first.txt"), "it ran once it was approved"
    program.sendline("d")
    program.expect_exact("came to:")
    program.expect(pexpect.EOF)
    assert '"by": "ana"' in program.before and not here.has("second.txt")


@pytest.mark.mission("W6")
def test_w6_the_full_screen_asks_and_does_what_is_pressed(here: Project) -> None:
    program = sits(here, "tui")
    program.expect_exact("first.txt")
    presses_until(program, "a", "second.txt", lambda: here.has("first.txt"))
    assert here.has("first.txt") and not here.has("second.txt")
    presses_until(program, "d", "came to:", lambda: False)
    program.expect(pexpect.EOF)
    assert '"by": "ana"' in program.before and not here.has("second.txt")


@pytest.mark.mission("W6")
@pytest.mark.parametrize(
    ("approver", "came_to", "written"),
    [
        ("deny", "no terminal", []),
        ("park", "DeferredToolRequests(", []),
        ("script", '"by": "eve", "reason": "one is enough"', ["first.txt"]),
        ("terminal", "no terminal", []),
        ("tui", "no terminal", []),
    ],
)
def test_w6_without_a_terminal_each_answers_as_it_says(
    here: Project, approver: str, came_to: str, written: list[str]
) -> None:
    done = start.run(
        [sys.executable, str(here.directory / "asking.py"), approver],
        cwd=here.directory,
        env=here.environment,
        input="a\na\n",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and came_to in done.stdout, (done.stdout, done.stderr)
    assert [one.name for one in sorted(Path(here.directory).glob("*.txt"))] == written
