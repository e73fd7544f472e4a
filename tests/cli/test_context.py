"""What a person is told beside the call: what the run is for, what the model says, and what came before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.program import signoff

WORKER = "name: clerk\ninstructions: Keep the notes.\ntoolsets: [filesystem_rw]\n"
SCRIPT = """
- say: First I look at it.
  calls: [{tool: read_file, args: {path: notes.md}}]
- say: The milk is missing, so I add it. Please approve quickly.
  calls: [{tool: write_file, args: {path: notes.md, content: "milk\\n"}}]
- say: done
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "signoff.yaml").write_text("store: sqlite:signoff.db\npolicy: []\n")
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers" / "clerk.yaml").write_text(WORKER)
    (tmp_path / "script.yaml").write_text(SCRIPT)
    (tmp_path / "notes.md").write_text("bread\n")
    return tmp_path


def asked(project: Path, prompt: str) -> None:
    done = signoff("run", "clerk", prompt, "--model", "script:script.yaml", "--suspend", cwd=project)
    assert done.returncode == 3, done.stderr


def test_a_card_says_what_the_run_is_for_what_the_model_claims_and_what_came_before(project: Path) -> None:
    asked(project, "Note the milk, with token ghp_" + 36 * "a")
    [waiting] = json.loads(signoff("inbox", "--json", cwd=project).stdout)["requests"]
    shown = signoff("show", waiting["id"], cwd=project).stdout
    flat = " ".join(shown.replace("│", " ").replace("↳", " ").split())
    assert "task Note the milk, with token ⟦masked" in flat and "ghp_" not in shown
    assert "model says “The milk is missing, so I add it. Please approve quickly.”" in flat
    assert "before Read notes.md: done" in flat
    data = json.loads(signoff("show", waiting["id"], "--json", cwd=project).stdout)
    assert data["card"]["claim"] == "The milk is missing, so I add it. Please approve quickly."
    assert data["card"]["recent"] == ["Read notes.md: done"] and data["card"]["task"].startswith("Note the milk")
    assert waiting["task"].startswith("Note the milk") and "ghp_" not in json.dumps(waiting)


def test_the_questions_of_three_runs_are_told_apart_in_the_inbox(project: Path) -> None:
    for prompt in ("Note the milk", "Note it for ben", "Tidy up"):
        asked(project, prompt)
    lines = signoff("inbox", cwd=project).stdout.splitlines()
    runs = [line.strip() for line in lines if line.strip().startswith("run ")]
    told = [line.partition(": ")[2].partition(" (for ")[0] for line in runs]
    assert told == ["Note the milk", "Note it for ben", "Tidy up"]
    assert len(set(runs)) == 3


def test_a_run_is_told_as_a_timeline(project: Path) -> None:
    asked(project, "Note the milk")
    [waiting] = json.loads(signoff("inbox", "--json", cwd=project).stdout)["requests"]
    approved = signoff("approve", waiting["id"], "--note", "fine", cwd=project)
    assert approved.returncode == 0, approved.stderr
    resumed = signoff("resume", waiting["run"], cwd=project)
    assert resumed.returncode == 0, resumed.stderr
    told = json.loads(signoff("runs", "show", waiting["run"], "--json", cwd=project).stdout)
    happened = [(one["kind"], one["what"]) for one in told["timeline"]]
    kinds = [kind for kind, _ in happened]
    assert ("prompt", "Note the milk") in happened
    assert ("model", "The milk is missing, so I add it. Please approve quickly.") in happened
    ran = len(kinds) - 1 - kinds[::-1].index("ran")
    assert kinds.index("prompt") < kinds.index("asked") < kinds.index("settled") < ran
    assert told["spent"]["answers"] >= 2
    page = signoff("runs", "show", waiting["run"], cwd=project).stdout
    assert "Note the milk" in page and "of the model" in page
    assert waiting["run"] in signoff("runs", "--all", cwd=project).stdout
