"""Inside an engine that makes runs durable: killed and recovered, a question stays one, and a call runs once."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from tests import start

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        importlib.util.find_spec("dbos") is None, reason="no DBOS here: .venv/bin/uv pip install dbos brings it"
    ),
]
PROGRAM = Path(__file__).with_name("dbos_program.py")


def play(place: Path, act: str, code: int = 0) -> list[str]:
    done = start.run(
        [sys.executable, str(PROGRAM), str(place), act], capture_output=True, text=True, timeout=start.PATIENCE
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout.splitlines()


def test_a_question_outlives_the_process_and_is_asked_once(tmp_path: Path) -> None:
    [asked] = play(tmp_path, "begin", 9)
    assert not (tmp_path / "paid.txt").exists()
    assert play(tmp_path, "answer") == [asked, "done"]
    assert (tmp_path / "paid.txt").read_text() == "3\n"


def test_a_call_whose_process_died_is_not_made_again(tmp_path: Path) -> None:
    [asked] = play(tmp_path, "die", 9)
    assert play(tmp_path, "wait") == ["done"]
    assert (tmp_path / "paid.txt").read_text() == "3\n"
    store = f"sqlite:{tmp_path / 'approvals.db'}"
    shown = start.run([*start.SIGNOFF, "inbox", "--store", store], capture_output=True, text=True, cwd=tmp_path)
    assert f"signoff outcome {asked} happened" in shown.stdout
