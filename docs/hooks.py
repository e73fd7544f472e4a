"""What the site needs besides the pages: those that lie elsewhere in the repository, and links between all of them."""

from __future__ import annotations

import json
import os.path
import re
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).parents[1]
ADOPTED = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "internals/contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "internals/benchmarks.md",
    "examples/README.md": "guides/examples.md",
}
"""Pages that lie outside of docs/, each with its place on the site."""

SCHEMAS = "reference/schemas"
"""Where on the site the JSON schemas are."""

LINK = re.compile(r"(?<!\\)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
CODE = re.compile(r"^(?P<fence> *```+).*?^(?P=fence)$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r'^( *```+\w+[^\n]*?) (?:output|card|file)="[^"]*"', re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that lie elsewhere, and the schemas as files to load."""
    from mkdocs.structure.files import File

    from signoff.config.json_schemas import SCHEMA_FILES, schema_of

    for name, file in SCHEMA_FILES.items():
        text = json.dumps(schema_of(name), ensure_ascii=False, indent=2)
        files.append(File.generated(config, f"{SCHEMAS}/{file}", content=f"{text}\n"))
    for source, place in ADOPTED.items():
        text = linked((ROOT / source).read_text("utf-8"), source, place)
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leads links that leave docs/ to the same page on the site; takes away what only tests read of an example."""
    place = page.file.src_uri
    if place not in ADOPTED.values():
        markdown = linked(markdown, f"docs/{place}", place)
    return FENCE.sub(r"\1", markdown)


def linked(markdown: str, source: str, place: str) -> str:
    """The links of a file in the repository, as they are from its place on the site."""
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    def restored(text: str) -> str:
        return re.sub(r"\0(\d+)\0", lambda found: kept[int(found[1])], text)

    def link(found: re.Match[str]) -> str:
        text, target = restored(found["text"]), found["target"]
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = os.path.normpath(PurePosixPath(source).parent / target)
        inside = ADOPTED.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else "")
        if not inside:  # a file that is not on the site: its name has to do
            return text if path in text else f"{text} (`{path}`)"
        return f"[{text}]({os.path.relpath(inside, PurePosixPath(place).parent)}{found['anchor'] or ''})"

    # Links may have code in their texts, and code may look like a link: it is put aside, and back in the end.
    return restored(LINK.sub(link, CODE.sub(keep, markdown)))
