"""The site: every page is in its navigation, every link and anchor leads somewhere, and what is generated is current.

That it builds strictly, and loads nothing from elsewhere, is tried nightly and by `./dev docs`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from tests import start
from tests.docs.drawings import courses
from tests.docs.generated import DOCS, PLACE, ROOT, TABLES, filled, images, places

from signoff.config.json_schemas import SCHEMA_FILES
from signoff.core.lifecycle import FINAL, TABLE

FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"(?<!\\)\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)
LOADED = re.compile(r"""(?:src|srcset|action|data)=["']?(?:https?:)?//|<link[^>]+href=["']?(?:https?:)?//""")
AT_RUNTIME = re.compile(r"(?:@import|url\()\s*[\"']?(?:https?:)?//")


class Config(yaml.SafeLoader):
    """Reads mkdocs.yml: objects of Python in it are left out."""


Config.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: None)
CONFIG: dict[str, Any] = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Config)


def _hooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


HOOKS = _hooks()
SCHEMAS = {DOCS / HOOKS.SCHEMAS / file for file in SCHEMA_FILES.values()}
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", *(ROOT / file for file in HOOKS.ADOPTED)]


def in_nav(part: object) -> Iterator[str]:
    match part:
        case str():
            yield part
        case list():
            for each in part:
                yield from in_nav(each)
        case dict():
            yield from in_nav(list(part.values()))
        case _:
            raise AssertionError(part)


def slug(heading: str) -> str:
    """The anchor of a heading, as the site and code hosts make it: letters, digits and dashes."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", unicodedata.normalize("NFC", text).strip().lower()).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page. A heading that stands there again has a number behind it."""
    found = Counter(slug(heading) for heading in HEADING.findall(FENCE.sub("", page.read_text("utf-8"))))
    return frozenset(f"{name}_{number}" if number else name for name, count in found.items() for number in range(count))


def broken(page: Path) -> Iterator[str]:
    """The links of a page that lead nowhere."""
    for target, anchor in LINK.findall(SPAN.sub("", FENCE.sub("", page.read_text("utf-8")))):
        if "://" in target or target.startswith("mailto:"):
            continue
        file = Path(os.path.normpath(page.parent / target)) if target else page
        if not file.exists() and file not in SCHEMAS:
            yield f"{page.relative_to(ROOT)}: {target}"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{page.relative_to(ROOT)}: {target}#{anchor}"


def test_every_page_is_in_the_navigation_once() -> None:
    named = list(in_nav(CONFIG["nav"]))
    records = set(DOCS.glob("adr/0*.md"))  # they are listed on the page of decisions
    there = {str(page.relative_to(DOCS)) for page in set(DOCS.rglob("*.md")) - records}
    assert sorted(named) == sorted(there | set(HOOKS.ADOPTED.values()))
    assert CONFIG["not_in_nav"].split() == ["/adr/0*.md"]


def test_every_link_and_anchor_leads_somewhere() -> None:
    assert [link for page in PAGES for link in broken(page)] == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "a.md").write_text(
        "# A `b.c` d\n\n[x](#a-bc-d) [y](b.md#no) [z](c.md) [w](b.md)\n```\n[v](no.md)\n```\n"
    )
    (tmp_path / "b.md").write_text("# B\n")
    assert list(broken(tmp_path / "a.md")) == ["a.md: b.md#no", "a.md: c.md"]


def test_links_of_files_that_lie_elsewhere_lead_to_their_pages() -> None:
    text = "[a](docs/guides/nested.md#x), [b](SECURITY.md), [`tests/`](tests/), `[c](d)`, [e](https://example.com)"
    assert HOOKS.linked(text, "CONTRIBUTING.md", "internals/contributing.md") == (
        "[a](../guides/nested.md#x), [b](../security.md), `tests/`, `[c](d)`, [e](https://example.com)"
    )
    assert HOOKS.linked("[a](../../benchmarks/README.md)", "docs/explanation/shell.md", "explanation/shell.md") == (
        "[a](../internals/benchmarks.md)"
    )


def test_what_is_generated_is_current() -> None:
    assert sorted(found["name"] for _, found in places()) == sorted(TABLES)
    stale = [
        page.name
        for page in dict.fromkeys(page for page, _ in places())
        if filled(text := page.read_text("utf-8")) != text
    ]
    assert stale == [], "./dev docs --write"
    assert PLACE.search("<!-- generated: a -->\n<!-- end: a -->")


def test_drawings_and_pictures_are_current() -> None:
    made = images()
    stale = [file.name for file, svg in made.items() if not file.exists() or file.read_text("utf-8") != svg]
    assert stale == [], "./dev docs --write"
    assert all("@font-face" not in svg for svg in made.values())


def test_the_drawing_of_a_request_has_every_step_of_the_table() -> None:
    known = courses()
    assert {state for state, _ in known} == {state for state, _ in TABLE}
    assert {end for _, end in known} >= FINAL
    assert not {start for start, _ in known} & FINAL


@pytest.mark.nightly
@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="./dev docs installs what builds the site")
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    done = start.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        fresh=True,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(list(in_nav(CONFIG["nav"])))
    found = [page.name for page in pages if LOADED.search(page.read_text("utf-8"))]
    found += [style.name for style in (tmp_path / "site").rglob("*.css") if AT_RUNTIME.search(style.read_text("utf-8"))]
    assert found == []
