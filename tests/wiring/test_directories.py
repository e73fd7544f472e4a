"""Runs of two projects in one process: each goes by the directory it began in, wherever the process stands."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from tests.workers.project import project

from signoff.core.mode import ApprovalMode
from signoff.core.run import RunSetup, SavedRun
from signoff.errors import WrongUse
from signoff.wiring.job import RunOptions, Task, job_of

WORKER = "instructions: Write.\ntoolsets: [files]\n"
SCRIPT = """\
- calls: [{tool: write_file, args: {path: a.txt, content: %s}}]
- say: "{{last}}"
"""


def run_in(directory: Path, **changes: str) -> SavedRun:
    setup = RunSetup(directory=str(directory), mode=ApprovalMode.AUTO_APPROVE, model="script:talk.yaml", **changes)
    return SavedRun(id="r", agent="worker:clerk", prompt="Go.", setup=setup)


@pytest.mark.parametrize("named", ["", "signoff.yaml"], ids=["the nearest project", "a relative policy"])
async def test_two_projects_at_once_get_each_their_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    names = ("one", "two")
    for name in names:
        project(tmp_path / name, {"clerk": WORKER})
        (tmp_path / name / "talk.yaml").write_text(SCRIPT % name)
    jobs = [
        job_of(run_in(tmp_path / name, policy=named), RunOptions(store=f"sqlite:{tmp_path / name / 'kept.db'}"))
        for name in names
    ]
    try:
        await asyncio.gather(*(job.run(Task(text="Go.")) for job in jobs))
    finally:
        for job in jobs:
            job.close()
    assert [(tmp_path / name / "notes" / "a.txt").read_text() for name in names] == ["one", "two"]
    assert [job.setup.directory for job in jobs] == [str(tmp_path / name) for name in names]
    assert Path.cwd() == tmp_path / "elsewhere"
    assert not any((tmp_path / "elsewhere").iterdir())


def test_without_a_project_the_directory_of_the_run_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "agent_of_a_run.py").write_text("from pydantic_ai import Agent\nagent = Agent('test', name='mine')\n")
    run = SavedRun(id="r", agent="agent_of_a_run:agent", prompt="Go.", setup=RunSetup(directory=str(tmp_path)))
    job = job_of(run, RunOptions(store=f"sqlite:{tmp_path / 'kept.db'}"))
    job.close()
    assert job.setup.directory == str(tmp_path)


def test_a_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"started in .*gone, which cannot be entered: No such file"):
        job_of(run_in(tmp_path / "gone"), RunOptions())
