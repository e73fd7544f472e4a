"""Discord's markdown, read as its clients read it: what of a text is code, and what of the rest would act.

From the rules that the desktop client is known to use, in their order; none of its styling. Where clients differ, the
reading that lets more act.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

RULES = {
    "escape": re.compile(r"\\([^0-9A-Za-z\s])"),
    "block": re.compile(r"```(?:[a-z0-9_+\-.#]+?\n)?\n*([^\n](?s:.*?))\n*```", re.IGNORECASE),
    "span": re.compile(r"(?P<ticks>`+)((?s:.*?)[^`])(?P=ticks)(?!`)"),
    "mention": re.compile(r"@everyone|@here|<@[!&]?\d+>|<#\d+>|</[^:>]+:\d+>|<id:[a-z]+>"),
    "time": re.compile(r"<t:-?\d+(?::[tTdDfFR])?>"),
    "emoji": re.compile(r"<a?:\w+:\d+>|:[^\s:`]+?:"),
    "masked link": re.compile(r"\[(?s:[^\]]*)\]\((?s:[^)]*)\)"),
    "link": re.compile(r"<?(?:https?|discord|steam)://[^\s<]+|discord\.gg/\S+"),
    "heading": re.compile(r"(?m:^)\s*#{1,3} |(?m:^)-# "),
    "quote": re.compile(r"(?m:^)\s*>(?:>>)? "),
    "list": re.compile(r"(?m:^)\s*(?:[-*]|\d+\.) "),
    "spoiler": re.compile(r"\|\|((?s:.+?))\|\|"),
    "strike": re.compile(r"~~((?s:.+?))~~"),
    "underline": re.compile(r"__((?s:.+?))__(?!_)"),
    "bold": re.compile(r"\*\*((?s:.+?))\*\*(?!\*)"),
    "italic": re.compile(r"\*(?=\S)((?s:.+?))(?<=\S)\*(?!\*)|\b_((?s:.+?))_\b"),
}
_DULL = re.compile(r"(?<=[^\W_])[^\W_]+|(?<=\S) (?=[^\W_])")
"""Inside a word, or between two: nothing begins there."""
CODE = frozenset({"block", "span"})
AROUND = frozenset({"spoiler", "strike", "underline", "bold", "italic"})
"""What may hold other pieces."""


class Node(NamedTuple):
    """A piece of a message: what it is, what was written, and what is seen of it."""

    kind: str
    raw: str
    seen: str


def read(text: str) -> list[Node]:
    """The pieces of a message; neighbouring plain characters are one `text`."""
    nodes: list[Node] = []
    for node in _read(text):
        if nodes and node.kind == nodes[-1].kind == "text":
            nodes[-1] = Node("text", nodes[-1].raw + node.raw, nodes[-1].seen + node.seen)
        else:
            nodes.append(node)
    return nodes


def _read(text: str) -> Iterator[Node]:
    at = 0
    while at < len(text):
        if at and (dull := _DULL.match(text, at)):
            yield Node("text", dull[0], dull[0])
            at = dull.end()
            continue
        for kind, rule in RULES.items():
            if found := rule.match(text, at):
                inside = next((group for group in reversed(found.groups()) if group is not None), found[0])
                yield Node(kind, found[0], inside)
                at = found.end()
                break
        else:
            yield Node("text", text[at], text[at])
            at += 1


def outside(text: str) -> str:
    """All that does not stand in code; a `\\0` for each piece that does."""

    def left(node: Node) -> str:
        if node.kind in CODE:
            return "\0"
        return node.raw.replace(node.seen, outside(node.seen)) if node.kind in AROUND else node.raw

    return "".join(map(left, read(text)))


def acting(text: str) -> set[str]:
    """The kinds of pieces that would act or hide something."""
    nodes = read(text)
    inside = [acting(node.seen) for node in nodes if node.kind in AROUND]
    return {node.kind for node in nodes}.union(*inside) - CODE - {"text", "escape", "bold", "italic"}
