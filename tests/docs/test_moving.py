"""The page about moving here: each way has a before and an after, and what it says of an import is what one writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from tests.docs.test_snippets import FENCE, ROOT
from tests.start import signoff

PAGE = (ROOT / "docs" / "guides" / "moving.md").read_text("utf-8")
WAYS = ("llm-do", "pydantic-ai-blocking-approval", "a Discord bot", "PydanticAI's bare deferred", "LangChain's")


@pytest.mark.mission("M3")
def test_m3_every_way_here_has_a_before_and_an_after_that_is_run() -> None:
    """That each after prints what the page says is shown by `test_snippets.py`, for every page."""
    sections = re.split(r"^## From ", PAGE, flags=re.MULTILINE)[1:]
    assert [section.startswith(way) for section, way in zip(sections, WAYS, strict=True)] == [True] * len(WAYS)
    for section in sections:
        found = list(FENCE.finditer(section))
        languages = [one["language"] for one in found]
        before = languages.index("text" if section.startswith("llm-do") else "py")
        assert before < languages.index("python"), section[:40]
        assert any("output=" in one["info"] for one in found), section[:40]
    assert "docs/guides/moving.md" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.mission("M3")
def test_m3_an_import_writes_what_the_page_says(tmp_path: Path) -> None:
    old = [one["body"] for one in FENCE.finditer(PAGE) if one["body"].startswith("---\nname:")]
    assert len(old) == 2
    for text in old:
        name = yaml.safe_load(text.split("---")[1])["name"]
        (tmp_path / f"{name}.agent").write_text(text)
    done = signoff("import", "llm-do", ".", "--write", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = {
        name: one["body"]
        for one in FENCE.finditer(PAGE)
        if (name := one["info"].partition('title="')[2].rstrip('"')).endswith((".md", "signoff.yaml"))
    }
    assert yaml.safe_load((tmp_path / "signoff.yaml").read_text()) == yaml.safe_load(told["signoff.yaml"])
    for name in ("workers/main.md", "workers/clerk.md"):
        model = re.compile(r"^model: .*$", re.MULTILINE)
        assert model.sub("", (tmp_path / name).read_text()) == model.sub("", told[name])
