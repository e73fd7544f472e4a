"""Whoever is taken off the project file cannot answer any longer, while the bot goes on (law 9)."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.discord.flow import Flow
from tests.discord.house import told
from tests.discord.scripts import rings, says
from tests.discord.service import Service


@pytest.mark.parametrize("is_real", [False, pytest.param(True, marks=pytest.mark.nightly)])
async def test_who_is_removed_from_people_cannot_approve_while_it_runs(
    service: Service, tmp_path: Path, is_real: bool
) -> None:
    """At night also with an interpreter that is started for the bot; the bots of all other tests are forked."""
    flow = Flow(tmp_path, service)
    flow.write({"triage": [rings("b"), says("done")]})
    await flow.start(is_real=is_real)
    try:
        question = await flow.asked(await flow.mention("go on"), "`ring`")
        file = tmp_path / "signoff.yaml"
        written = yaml.safe_load(file.read_text())
        del written["people"]["ben"]
        file.write_text(yaml.safe_dump(written, sort_keys=False))
        assert "You are not listed here" in await told(await flow.ben.press(question, "Approve"))
        assert "Approve" in question.buttons
        await flow.ana.press(question, "Approve")
        await flow.sees(question.place, "done")
    finally:
        flow.stop()
