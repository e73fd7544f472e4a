"""Edit a JSON file that somebody else wrote: add or remove an item, and keep everything else as it is.

Comments and trailing commas, which some programs allow in their files, are accepted and kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from signoff.errors import WrongUse

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_REMARK = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/)")
_WORD = re.compile(r"[-+.\w]+")


@dataclass(slots=True)
class JsonNode:
    """A value and its position in the text."""

    start: int
    end: int = 0
    value: Any = None
    members: list[tuple[str, int, JsonNode]] = field(default_factory=list["tuple[str, int, JsonNode]"])
    """For an object: keys, their positions, and their values."""
    items: list[JsonNode] = field(default_factory=list["JsonNode"])

    def member(self, key: str) -> JsonNode | None:
        return next((node for name, _, node in self.members if name == key), None)


def read_json(text: str, file: str) -> JsonNode:
    """Parse the value in a file. Raises `WrongUse` with the line of an error."""
    if not text.strip():
        return JsonNode(0, len(text), {})
    reader = _Reader(text, file)
    node = reader.value(reader.space(0))
    if reader.space(node.end) != len(text):
        raise reader.wrong(reader.space(node.end), "there is text after the end")
    return node


def with_item(text: str, file: str, path: Sequence[str], item: Any) -> str:
    """Return the text with one more item in the list at this path of keys. A missing list is created."""
    node = read_json(text, file)
    if not text.strip():
        return json.dumps(_nested(path, [item]), indent=2) + "\n"
    step = _indent(text)
    depth = 0
    for number, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise WrongUse(f"{file}: {'.'.join(path[:number]) or 'the file'} should be an object")
        found = node.member(key)
        if found is None:
            return _grown(text, node, f"{json.dumps(key)}: ", _nested(path[number + 1 :], [item]), step, depth)
        node, depth = found, depth + 1
    if not isinstance(node.value, list):
        raise WrongUse(f"{file}: {'.'.join(path)} should be a list")
    return _grown(text, node, "", item, step, depth)


def without_items(text: str, file: str, path: Sequence[str], chosen: Sequence[int]) -> str:
    """Return the text without some items of a list. A list or object that becomes empty is removed too."""
    for index in sorted(chosen, reverse=True):
        nodes = [read_json(text, file)]
        for key in path:
            found = nodes[-1].member(key)
            if found is None:
                return text
            nodes.append(found)
        text = _cut(text, nodes, path, index)
    return text


def _cut(text: str, nodes: list[JsonNode], path: Sequence[str], index: int) -> str:
    spans = [(one.start, one.end) for one in nodes[-1].items]
    depth = len(path)
    while len(spans) == 1 and depth > 0:  # it would be empty: remove the member that holds it
        depth -= 1
        around = nodes[depth]
        index = [name for name, _, _ in around.members].index(path[depth])
        spans = [(start, node.end) for _, start, node in around.members]
    start, end = spans[index]
    if index + 1 < len(spans):
        return text[:start] + text[spans[index + 1][0] :]
    if index > 0:
        return _without_last(text, spans[index - 1][1], start, end)
    whole = nodes[depth]
    return text[: whole.start + 1] + text[whole.end - 1 :]


def _without_last(text: str, before: int, start: int, end: int) -> str:
    """Return the text without the last of several items. A trailing comma stays a trailing comma."""
    gap = _SPACE.match(text, end)
    behind = gap.end() if gap is not None else end
    between = text[before:start].rstrip()
    if text[behind : behind + 1] == ",":
        return text[:before] + between + text[behind + 1 :]
    comma = between.find(",")
    return text[:before] + between[:comma] + between[comma + 1 :] + text[end:]


def _grown(text: str, node: JsonNode, key: str, value: Any, step: str, depth: int) -> str:
    """Return the text with one more member or item at the end of a value."""
    pad = step * (depth + 1)
    written = key + json.dumps(value, indent=len(step) if step.strip(" ") == "" else step).replace("\n", f"\n{pad}")
    ends = [end.end for _, _, end in node.members] + [one.end for one in node.items]
    if not ends:
        return f"{text[: node.start + 1]}\n{pad}{written}\n{step * depth}{text[node.end - 1 :]}"
    last = ends[-1]
    gap = _SPACE.match(text, last)
    behind = gap.end() if gap is not None else last
    has_comma = text[behind : behind + 1] == ","
    head = text[: behind + 1] if has_comma else f"{text[:last]},"
    rest = text[behind + 1 :] if has_comma else text[last:]
    remark = _REMARK.match(rest)  # a comment behind the last item stays there
    kept = remark[0] if remark is not None else ""
    return f"{head}{kept}\n{pad}{written}{',' if has_comma else ''}{rest[len(kept) :]}"


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _indent(text: str) -> str:
    found = re.search(r"[{\[][ \t]*(?://[^\n]*)?\r?\n([ \t]+)", text)
    return found[1] if found else "  "


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file

    def wrong(self, at: int, what: str) -> WrongUse:
        line = self.text.count("\n", 0, at) + 1
        return WrongUse(f"{self.file}:{line}: {what}; nothing was changed")

    def space(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def value(self, at: int) -> JsonNode:
        first = self.text[at : at + 1]
        if first == "{":
            return self._object(at)
        if first == "[":
            return self._array(at)
        found = (_STRING if first == '"' else _WORD).match(self.text, at)
        if found is None:
            raise self.wrong(at, "a value is missing")
        try:
            return JsonNode(at, found.end(), json.loads(found[0]))
        except ValueError as error:
            raise self.wrong(at, f"{found[0][:40]!r} is not a JSON value") from error

    def _object(self, at: int) -> JsonNode:
        node, value = JsonNode(at), dict[str, Any]()
        at = self.space(at + 1)
        while self.text[at : at + 1] != "}":
            key = self.value(at)
            if not isinstance(key.value, str):
                raise self.wrong(at, "a key should be a text")
            colon = self.space(key.end)
            if self.text[colon : colon + 1] != ":":
                raise self.wrong(colon, "a colon is missing")
            inner = self.value(self.space(colon + 1))
            if key.value in value:
                raise self.wrong(at, f"the key {key.value!r} is given twice")
            node.members.append((key.value, at, inner))
            value[key.value] = inner.value
            at = self._next(inner.end, "}")
        node.value, node.end = value, at + 1
        return node

    def _array(self, at: int) -> JsonNode:
        node = JsonNode(at)
        at = self.space(at + 1)
        while self.text[at : at + 1] != "]":
            inner = self.value(at)
            node.items.append(inner)
            at = self._next(inner.end, "]")
        node.value, node.end = [one.value for one in node.items], at + 1
        return node

    def _next(self, at: int, end: str) -> int:
        """Return the position of the next item, or of the closing bracket."""
        at = self.space(at)
        if self.text[at : at + 1] == ",":
            return self.space(at + 1)
        if self.text[at : at + 1] != end:
            raise self.wrong(at, f"a comma or {end!r} is missing")
        return at


def values_at(text: str, file: str, path: Sequence[str]) -> list[Any]:
    """Return the items of the list at this path of keys; empty if there is none."""
    node: JsonNode | None = read_json(text, file)
    for key in path:
        node = node.member(key) if node is not None else None
    found: object = node.value if node is not None else None
    return cast("list[Any]", found) if isinstance(found, list) else []
