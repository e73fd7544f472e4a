"""Parse the text of a worker file: YAML, or Markdown with front matter and the instructions below."""

from __future__ import annotations

from collections.abc import Sequence

from signoff.errors import Place, WrongFile
from signoff.policy.composer import read_document
from signoff.policy.document import Document, Node
from signoff.policy.placed_value import ConfigValue

SUFFIXES = (".yaml", ".yml", ".md")

_FENCE = "---"
_FIX = "start the file with a line `---`, then the keys, then another line `---`; the instructions follow"


def read_worker_text(text: str, file: str) -> tuple[ConfigValue, dict[str, ConfigValue]]:
    """The top value of a worker file, and its keys. Lines and columns are those of the whole file, in Markdown too."""
    front, body = _parted(text, file) if file.endswith(".md") else (text, None)
    top = ConfigValue.top(read_document(front, file=file))
    what = "a mapping with the worker's keys, such as {instructions: Sort the mail.}"
    if top.value is None and body is None:
        raise top.wrong("the file is empty", f"it should be {what}")
    entries = top.entries(what=what) if top.value is not None else {}
    if body is not None:
        if "instructions" in entries:
            fix = "keep the text below the second `---`, or the key"
            raise entries["instructions"].wrong_key("the text below the keys already holds the instructions", fix)
        entries["instructions"] = body
    return top, entries


def _parted(text: str, file: str) -> tuple[str, ConfigValue | None]:
    """Split a Markdown file into its front matter, on the same lines, and the text below."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].rstrip() != _FENCE:
        raise WrongFile("there are no keys on top of this file", place=Place(file, 1), fix=_FIX)
    for at, line in enumerate(lines[1:], start=1):
        if line.rstrip() == _FENCE:
            return "\n".join(("", *lines[1:at])), _body(lines, at + 1, file)
    raise WrongFile("the keys on top of this file have no end", place=Place(file, 1), fix=_FIX)


def _body(lines: Sequence[str], start: int, file: str) -> ConfigValue | None:
    """The instructions, with the line they start on; None if there is no text."""
    first = next((at for at in range(start, len(lines)) if lines[at].strip()), None)
    if first is None:
        return None
    text = "\n".join(line.removesuffix("\r") for line in lines[first:]).rstrip()
    return ConfigValue.top(Document(text, file, Node(first + 1, 1, text)))
