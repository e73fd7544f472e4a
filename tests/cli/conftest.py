"""Fixtures for tests of the commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.cli.desk import POLICY, Desk
from tests.cli.wording import Wording


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    made = Desk(tmp_path, capsys, monkeypatch)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "signoff.yaml").write_text(POLICY)
    return made


@pytest.fixture
def wording(snapshot: SnapshotAssertion, tmp_path: Path) -> Wording:
    return Wording(snapshot, tmp_path)
