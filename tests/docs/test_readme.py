"""The README's example, typed at a real terminal: it shows the card that is printed there, and does what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from tests import start
from tests.docs.test_snippets import ROOT, Block, blocks, matches

README = ROOT / "README.md"


def block(**attribute: str) -> Block:
    return next(one for one in blocks(README) if attribute.items() <= one.attributes.items())


@pytest.fixture
def example(request: pytest.FixtureRequest, tmp_path: Path) -> pexpect.spawn[str]:
    for one in blocks(README):
        if title := one.attributes.get("title"):
            (tmp_path / title).write_text(one.body, "utf-8")
    assert "Run it: `touch old.txt`, then `python example.py`." in README.read_text("utf-8")
    (tmp_path / "old.txt").touch()
    return start.terminal(
        [sys.executable, "example.py"],
        fresh=request.getfixturevalue("fresh"),
        cwd=tmp_path,
        env={**os.environ, "NO_COLOR": "1", "TERM": "xterm", "PYDANTIC_AI_NO_BANNER": "1", "SIGNOFF_AS": "ana"},
        dimensions=(40, 80),
        encoding="utf-8",
    )


def test_the_example_is_short() -> None:
    assert len(block(title="example.py").body.splitlines()) <= 12


@pytest.mark.parametrize(
    ("answer", "said", "left", "fresh"),
    [
        ("a", "Done: deleted old.txt", False, True),  # the first thing a reader tries: started as they start it
        ("d", "permission_denied", True, False),
    ],
)
def test_the_example_asks_as_printed_and_does_as_told(
    example: pexpect.spawn[str], tmp_path: Path, answer: str, said: str, left: bool, fresh: bool
) -> None:
    example.expect("your answer > ")
    shown = f"{example.before}your answer >\n".replace("\r\n", "\n").lstrip("\n")
    printed = re.sub(r"request \w{10} ", "request … ", block(card="example.py").body)
    assert matches(printed, shown), shown
    example.sendline("")
    example.expect("Enter alone is not an answer")
    example.expect("your answer > ")
    assert (tmp_path / "old.txt").exists()
    example.sendline(answer)
    example.expect(said)
    example.expect(pexpect.EOF)
    assert (tmp_path / "old.txt").exists() is left


@pytest.mark.parametrize(("given", "code"), [("", 0), (', on_denied="raise"', 1)])
def test_without_a_terminal_the_example_says_that_nobody_could_be_asked(tmp_path: Path, given: str, code: int) -> None:
    for one in blocks(README):
        if title := one.attributes.get("title"):
            (tmp_path / title).write_text(one.body.replace('"signoff.yaml")', f'"signoff.yaml"{given})'), "utf-8")
    (tmp_path / "old.txt").touch()
    done = start.run(
        [sys.executable, "example.py"], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == code
    assert "no terminal to ask at" in done.stdout + done.stderr
    assert (tmp_path / "old.txt").exists()
