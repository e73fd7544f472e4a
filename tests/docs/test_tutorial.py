"""Pages with sessions at a terminal, typed as they are printed: a real one, in a directory that holds their files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.test_snippets import ROOT, blocks
from tests.examples.transcript import Session


@pytest.mark.parametrize(
    ("page", "left"),
    [
        ("start/tutorial.md", {"groceries/notes/shopping.md": "- milk\n"}),
        ("guides/coding-agent.md", {}),
        ("guides/team-roles.md", {"current.txt": "1.2"}),
    ],
)
def test_what_is_typed_prints_what_the_page_says(page: str, left: dict[str, str], tmp_path: Path) -> None:
    for block in blocks(ROOT / "docs" / page):
        if title := block.attributes.get("title"):
            (tmp_path / title).parent.mkdir(exist_ok=True)
            (tmp_path / title).write_text(block.body, "utf-8")
    Session.in_directory(tmp_path).play((ROOT / "docs" / page).read_text("utf-8"))
    assert {name: (tmp_path / name).read_text("utf-8") for name in left} == left
