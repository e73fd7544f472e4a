"""Fixtures for tests of the commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from tests.cli.desk import POLICY, Desk
from tests.cli.wording import Wording
from tests.stores import closed_in_the_end


@pytest.fixture(autouse=True)
def programs_end() -> Iterator[None]:
    with closed_in_the_end():
        yield


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
