"""The tutorial, typed as it is printed, at a real terminal, in an empty directory."""

from __future__ import annotations

from pathlib import Path

from tests.docs.test_snippets import ROOT
from tests.examples.transcript import Session


def test_the_tutorial_does_what_it_prints(tmp_path: Path) -> None:
    session = Session.in_directory(tmp_path)
    session.play((ROOT / "docs" / "start" / "tutorial.md").read_text("utf-8"))
    assert (tmp_path / "groceries" / "notes" / "shopping.md").read_text() == "- milk\n"
