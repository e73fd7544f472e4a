"""The catalog's part of docs/reference/mistakes.md: every mistake is made here, and the page says what is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.toolsets.mistakes import MISTAKES, Mistake
from tests.toolsets.projects import Project, project

from signoff.config import load_settings, load_worker
from signoff.errors import SignoffError, WrongFile
from signoff.toolsets.catalog import Catalog

__all__ = ["project"]

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "mistakes.md").read_text("utf-8")
SECTION = PAGE.partition("<!-- catalog -->")[2].partition("<!-- /catalog -->")[0]


def told(mistake: Mistake, project: Project, monkeypatch: pytest.MonkeyPatch) -> SignoffError:
    """What a worker that uses the toolsets ends with when it is built."""
    for name, text in mistake.files.items():
        (project.directory / name).write_text(text)
    project.write("workers/triage.yaml", f"toolsets: {mistake.uses}\ninstructions: Sort.\n")
    monkeypatch.chdir(project.directory)
    settings = load_settings("signoff.yaml")
    worker = load_worker(settings, "triage")
    with pytest.raises(SignoffError) as caught:
        Catalog(settings).build_all(worker.spots["toolsets"].items("names"))
    return caught.value


def row(mistake: Mistake, error: SignoffError) -> str:
    """The mistake as a line of the page."""
    what, _, fix = str(error).partition("\n")
    return f"| {mistake.title} | {' '.join(what.split())} | {' '.join(fix.split())} |".replace("|  |", "| |")


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.title)
def test_a_mistake_is_told_with_its_place_and_the_page_says_so(
    mistake: Mistake, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = told(mistake, project, monkeypatch)
    assert str(project.directory) not in str(error)
    assert row(mistake, error) in SECTION.splitlines(), row(mistake, error)
    assert isinstance(error, WrongFile)
    assert error.fix
    assert error.place is not None
    assert error.place.file in ("signoff.yaml", "workers/triage.yaml", "toolsets.py")


def test_every_row_of_the_page_is_a_mistake_that_was_made() -> None:
    titles = [line.split(" | ")[0].removeprefix("| ") for line in SECTION.splitlines() if line.startswith("| ")]
    assert titles == ["mistake", *(one.title for one in MISTAKES)]


def test_toolsets_py_of_another_user_is_not_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("toolsets.py", "raise RuntimeError('it was run')")
    catalog = project.catalog("")
    if os.getuid() == 0:
        os.chown(project.directory / "toolsets.py", 1001, -1)
    else:
        other = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: other)
    with pytest.raises(WrongFile, match="belongs to another user"):
        catalog.build("mine")
