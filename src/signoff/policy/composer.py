"""Parse YAML text into a `Document`.

Built from the parser's events, not from its values, so that duplicate keys, tags, alias bombs and deep nesting are
seen and refused before they have any effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import yaml

from signoff.errors import Place, PolicyError
from signoff.policy.document import DEEPEST, Document, KeyStep, Node, key_text
from signoff.policy.phrases import shown
from signoff.policy.scalar import Ambiguous, plain_scalar

LARGEST_TEXT = 5_000_000
MOST_NODES = 200_000

_library: Any = yaml  # its type stubs leave `parse` untyped
_loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_YAML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PLAIN_TAGS = frozenset({None, "!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})


def read_document(text: str, *, file: str) -> Document:
    """Parse one YAML document. Raises `PolicyError` with the place of anything that is not plain, JSON-like YAML."""
    if len(text) > LARGEST_TEXT:
        raise PolicyError(f"the file is larger than {LARGEST_TEXT // 1_000_000} MB", place=Place(file))
    if odd := _NOT_YAML.search(text):
        raise PolicyError(
            f"this is not YAML: the character U+{ord(odd.group()):04X} is not allowed",
            place=_place_of_offset(text, odd.start(), file),
        )
    try:
        root = _Builder(file).build(_library.parse(text, Loader=_loader))
    except yaml.MarkedYAMLError as error:
        raise _broken(error, text, file) from error
    except yaml.YAMLError as error:
        raise PolicyError(f"this is not YAML: {' '.join(str(error).split())}", place=Place(file)) from error
    return Document(root.value, file, root)


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not been read yet."""

    node: Node
    anchor: str | None
    mapping: dict[str, Node] | None = None
    sequence: list[Node] | None = None
    key: str | None = None


class _Builder:
    """Turns parser events into nodes with its own stack, so that no input causes a recursion error."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.anchors: dict[str, Node] = {}
        self.stack: list[_Open] = []
        self.root: Node | None = None
        self.total = 0

    def build(self, events: Iterator[Any]) -> Node:
        documents = 0
        for event in events:
            match event:
                case yaml.DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        raise self.wrong(event, "a second document starts here", "keep one document in a file")
                case yaml.ScalarEvent():
                    self.scalar(event)
                case yaml.AliasEvent():
                    self.alias(event)
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    self.open(event)
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    self.close(event)
                case _:
                    pass
        return self.root or Node(1, 1)

    def scalar(self, event: Any) -> None:
        self.check_tag(event)
        plain = not event.style and event.tag is None
        try:
            value = plain_scalar(event.value) if plain else event.value
        except Ambiguous as error:
            raise self.wrong(event, error.what, error.fix) from error
        self.place(event, Node(*_spot(event), value, end=_end(event)), event.anchor)

    def alias(self, event: Any) -> None:
        node = self.anchors.get(event.anchor)
        if node is None:
            alias = shown(f"*{event.anchor}")
            raise self.wrong(
                event, f"{alias} refers to nothing above it", f"define it with {shown(f'&{event.anchor}')}"
            )
        alias = Node(*_spot(event), node.value, node.children, node.keys, node.size, _end(event), "alias")
        self.place(event, alias, None)

    def open(self, event: Any) -> None:
        self.check_tag(event)
        if self.stack and self.stack[-1].mapping is not None and self.stack[-1].key is None:
            raise self.wrong(event, "a key must be a text, not a list or mapping")
        if len(self.stack) >= DEEPEST:
            raise self.wrong(event, f"nested more than {DEEPEST} deep")
        self.count(event, 1)
        node = Node(*_spot(event), end=_spot(event), style="flow" if event.flow_style else "block")
        if isinstance(event, yaml.MappingStartEvent):
            self.stack.append(_Open(node, event.anchor, mapping={}))
        else:
            self.stack.append(_Open(node, event.anchor, sequence=[]))

    def close(self, event: Any) -> None:
        done = self.stack.pop()
        node = done.node
        if node.style == "flow":  # block style ends with its last value, not where the parser notices
            node.end = _end(event)
        if done.mapping is not None:
            node.children = done.mapping
            node.value = {key: child.value for key, child in done.mapping.items()}
        else:
            node.children = done.sequence or []
            node.value = [child.value for child in node.children]
        self.place(None, node, done.anchor)

    def place(self, event: Any, node: Node, anchor: str | None) -> None:
        """Put a finished value into the mapping or list that is being read, or make it the root."""
        if anchor:
            self.anchors[anchor] = node
        if not self.stack:
            self.root = node
            return
        above = self.stack[-1]
        above.node.end = max(above.node.end, node.end)
        if above.mapping is not None and above.key is None:
            above.key = self.new_key(event, node, above)
            return
        if event is not None:
            self.count(event, node.size)
        above.node.size += node.size
        if above.mapping is not None and above.key is not None:
            above.mapping[above.key] = node
            above.key = None
        elif above.sequence is not None:
            above.sequence.append(node)

    def new_key(self, event: Any, node: Node, above: _Open) -> str:
        key = node.value
        if not isinstance(key, str):
            written = event.value if isinstance(event, yaml.ScalarEvent) else str(key)
            raise self.wrong(event, f"the key {shown(written)} is not a text", "write it in quotes")
        if key in above.node.keys:
            first = above.node.keys[key][0]
            raise self.wrong(event, f"the key {shown(key)} is already there on line {first}", "keep one of them")
        cast("dict[str, tuple[int, int]]", above.node.keys)[key] = (node.line, node.column)
        return key

    def count(self, event: Any, more: int) -> None:
        self.total += more
        if self.total > MOST_NODES:
            raise self.wrong(event, f"the file holds more than {MOST_NODES:,} values, aliases written out")

    def check_tag(self, event: Any) -> None:
        if event.tag not in _PLAIN_TAGS:
            raise self.wrong(event, f"the tag {shown(event.tag)} is not supported", "write plain values, without `!`")

    def wrong(self, event: Any, what: str, fix: str = "") -> PolicyError:
        trail: list[KeyStep] = []
        for above in self.stack:
            if above.sequence is not None:
                trail.append(len(above.sequence))
            elif above.key is not None:
                trail.append(above.key)
        return PolicyError(what, place=Place(self.file, *_spot(event), key_text(tuple(trail))), fix=fix)


def _spot(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _end(event: Any) -> tuple[int, int]:
    return event.end_mark.line + 1, event.end_mark.column + 1


def _broken(error: yaml.MarkedYAMLError, text: str, file: str) -> PolicyError:
    mark = error.problem_mark or error.context_mark
    place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
    context = f" ({error.context})" if error.context else ""
    line = text.splitlines()[mark.line] if mark and mark.line < len(text.splitlines()) else ""
    fix = "indent with spaces: YAML does not take tabs" if line[: len(line) - len(line.lstrip())].count("\t") else ""
    return PolicyError(f"this is not YAML: {' '.join(f'{error.problem}{context}'.split())}", place=place, fix=fix)


def _place_of_offset(text: str, offset: int, file: str) -> Place:
    return Place(file, text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1)
