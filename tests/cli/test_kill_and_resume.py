"""`kill -9` of a run that waits at its card, as docs/explanation/reliability.md prints it.

It is answered while nothing runs, and resumed.

The page's transcript is played line by line: what stands behind `$` is typed, in a terminal of 80 columns, and what
follows has to be printed. Ids differ each time, and `…` stands for anything.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pexpect
import pytest
from tests import start
from tests.docs.test_snippets import ROOT, blocks

PAGE = ROOT / "docs" / "explanation" / "reliability.md"
ASKS = "your answer > "
LIVE = re.compile(r"(?:\r\x1b\[K[^\r\n]*)*\r\x1b\[K")
"""The line at the bottom that says what goes on, until it is taken away."""
ID = re.compile(r"\b(?:request|resume|approve|run) ([2-9a-z]{10})\b")


@dataclass
class Terminal:
    """Types commands and holds what they print against the page."""

    directory: Path
    ids: dict[str, str] = field(default_factory=dict)
    """As they stand on the page, and as they are here."""

    def start(self, command: str) -> pexpect.spawn[str]:
        for printed, real in self.ids.items():
            command = command.replace(printed, real)
        words = shlex.split(command)
        arguments = [*start.SIGNOFF, *words[1:]] if words[0] == "signoff" else ["/bin/sh", "-c", command]
        environment = {"NO_COLOR": "1", "TERM": "xterm", "PYDANTIC_AI_NO_BANNER": "1", "SIGNOFF_AS": "ana"}
        return start.terminal(
            arguments,
            cwd=self.directory,
            env={**os.environ, **environment, "XDG_STATE_HOME": str(self.directory / ".state")},
            dimensions=(40, 80),
            encoding="utf-8",
        )

    def check(self, command: str, expected: str, printed: str) -> None:
        printed = LIVE.sub("", printed).replace("\r\n", "\n")
        found = re.fullmatch(self._pattern(expected.strip()), printed.strip(), re.DOTALL)
        assert found, f"$ {command}\n{printed}\n--- the page says:\n{expected}"
        for name, real in found.groupdict().items():
            self.ids[name.removeprefix("id_")] = real

    def _pattern(self, expected: str) -> str:
        pattern = ".*?".join(re.escape(part) for part in expected.split("…"))
        pattern = pattern.replace(re.escape("just now"), r"(?:just now|\d+ s ago)")
        fresh = [name for name in dict.fromkeys(ID.findall(expected)) if name not in self.ids]
        for name in fresh:
            first, *others = pattern.split(name)
            pattern = f"{first}(?P<id_{name}>[2-9a-z]{{10}})" + f"(?P=id_{name})".join(others)
        for name, real in self.ids.items():
            pattern = pattern.replace(name, real)
        return pattern


def steps() -> Iterator[tuple[str, str]]:
    """What is typed on the page, and what is printed after it."""
    text = "".join(block.body for block in blocks(PAGE) if block.attributes.get("transcript") == "kill")
    for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = step.partition("\n")
        yield command, printed


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    shutil.copytree(ROOT / "examples" / "mail", tmp_path / "mail")
    return Terminal(tmp_path / "mail")


def test_a_killed_run_is_answered_while_nothing_runs_and_resumed_as_printed(terminal: Terminal) -> None:
    (first, shown), *rest = steps()
    waiting = terminal.start(first)
    waiting.expect_exact(ASKS)
    assert shown.rstrip().endswith("your answer > Killed")
    terminal.check(first, shown.rstrip().removesuffix("Killed"), f"{waiting.before}{ASKS}")
    os.kill(waiting.pid, signal.SIGKILL)
    waiting.expect(pexpect.EOF)
    waiting.close()
    assert waiting.signalstatus == signal.SIGKILL
    for command, expected in rest:
        doing = terminal.start(command)
        doing.expect(pexpect.EOF)
        doing.close()
        assert doing.exitstatus == 0, doing.before
        terminal.check(command, expected, doing.before or "")
    assert [command.split()[1] for command, _ in rest if command.startswith("signoff")][:3] == [
        "inbox",
        "approve",
        "resume",
    ]
    sent = [json.loads(file.read_text("utf-8"))["to"] for file in (terminal.directory / "outbox").iterdir()]
    assert sorted(sent) == [["ben@ours.example"], ["eve@elsewhere.example"]], "each once"
