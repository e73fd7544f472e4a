"""Every example in the documentation runs as printed.

A fenced block with `title="FILE"` is written to FILE. A block with `output="FILE"` holds what running it prints; `…` in
it stands for anything. Pages are independent; within a page, files stay.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tests import start

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(set((ROOT / "docs").rglob("*.md")) - set((ROOT / "docs").glob("adr/*.md")))]
MUST_RUN = ("docs/explanation/gate.md", "docs/guides/deferred.md", "docs/guides/testing.md")
FENCE = re.compile(r"^```(?P<language>\w*)(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')

AUDIOOP = "ignore:'audioop' is deprecated:DeprecationWarning"
NO_LOOP = "ignore:There is no current event loop:DeprecationWarning"  # PydanticAI's run_sync, from Python 3.12 on
"""discord.py imports it where Python still has it."""


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    language: str
    attributes: dict[str, str]
    body: str


def blocks(page: Path) -> list[Block]:
    return [
        Block(found["language"], dict(ATTRIBUTE.findall(found["info"])), found["body"])
        for found in FENCE.finditer(page.read_text("utf-8"))
    ]


def matches(expected: str, printed: str) -> bool:
    pattern = ".*?".join(re.escape(part) for part in expected.split("…"))
    return re.fullmatch(pattern, printed, re.DOTALL) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    ran = 0
    for block in blocks(page):
        if title := block.attributes.get("title"):
            (tmp_path / title).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / title).write_text(block.body, "utf-8")
        if name := block.attributes.get("output"):
            done = start.run(
                [sys.executable, "-W", "error", "-W", AUDIOOP, "-W", NO_LOOP, name],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                env={name: value for name, value in os.environ.items() if not name.endswith("_TOKEN")},
            )
            assert done.returncode == 0, done.stderr
            assert matches(block.body, done.stdout), f"{name} printed:\n{done.stdout}\n{done.stderr}"
            ran += 1
    if str(page.relative_to(ROOT)) in MUST_RUN:
        assert ran, f"{page.name} has no example that is run"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_python_block_is_a_whole_file_that_is_run_or_named(page: Path) -> None:
    outputs = {block.attributes.get("output") for block in blocks(page)}
    for block in blocks(page):
        if block.language == "python":
            title = block.attributes.get("title")
            assert title, f"{page.name}: a python block without a title is never run"
            assert title in outputs or page.name == "README.md", f"{page.name}: {title} is never run"
        if block.language == "yaml":
            yaml.safe_load(block.body)
