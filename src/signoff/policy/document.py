"""The content of a file as JSON values, with the line and column of every key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from signoff.errors import Place, PolicyError
from signoff.policy.phrases import as_json

KeyStep: TypeAlias = "str | int"
KeyTrail: TypeAlias = "tuple[KeyStep, ...]"

DEEPEST = 64

_SIMPLE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(slots=True)
class Node:
    """One value in the file and its position. Line and column count from 1; 0 means unknown."""

    line: int = 0
    column: int = 0
    value: Any = None
    children: Mapping[str, Node] | Sequence[Node] | None = None
    keys: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, "tuple[int, int]"])
    size: int = 1
    """How many values it holds, with YAML aliases expanded."""
    end: tuple[int, int] = (0, 0)
    """Line and column just after its last character, without the comments and blank lines that follow."""
    style: str = ""
    """How it is written: `block`, `flow`, `alias`, or "" for a scalar."""

    def child(self, step: KeyStep) -> Node | None:
        if isinstance(self.children, Mapping):
            return self.children.get(cast("str", step))
        if isinstance(self.children, Sequence) and isinstance(step, int) and step < len(self.children):
            return self.children[step]
        return None


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file as JSON values; `place_of` returns the position of a key path."""

    value: Any
    file: str
    root: Node = field(default_factory=Node, repr=False, compare=False)

    def place_of(self, trail: KeyTrail) -> Place:
        """Return the position of the value at a key path, or of the nearest value above it."""
        node = self._nearest(trail)
        return Place(self.file, node.line, node.column, key_text(trail))

    def place_of_key(self, trail: KeyTrail) -> Place:
        """Return the position of the last key of the path. A list item has no key, so its value's position is used."""
        above = self._nearest(trail[:-1])
        spot = above.keys.get(cast("str", trail[-1])) if trail else None
        return Place(self.file, *spot, key_text(trail)) if spot else self.place_of(trail)

    def _nearest(self, trail: KeyTrail) -> Node:
        node = self.root
        for step in trail:
            below = node.child(step)
            if below is None:
                break
            node = below
        return node


def key_text(trail: KeyTrail) -> str:
    """Return a key path as shown to people: `policy[2].ask.args.amount`."""
    text = ""
    for step in trail:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _SIMPLE_KEY.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{as_json(step)}]"
    return text


def document_of(value: object, *, file: str) -> Document:
    """Wrap Python values, copied into plain JSON types. Raises `PolicyError` if one is not a JSON value."""
    return Document(_plain(value, (), file), file)


def _plain(value: object, trail: KeyTrail, file: str) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if len(trail) > DEEPEST:
        raise PolicyError(f"nested more than {DEEPEST} deep", place=Place(file, key=key_text(trail[:4]) + "…"))
    if isinstance(value, Mapping):
        copied: dict[str, Any] = {}
        for key, item in cast("Mapping[object, object]", value).items():
            if not isinstance(key, str):
                raise PolicyError(f"the key {key!r} is not a text", place=Place(file, key=key_text(trail)))
            copied[str(key)] = _plain(item, (*trail, str(key)), file)
        return copied
    if isinstance(value, (list, tuple)):
        return [_plain(item, (*trail, at), file) for at, item in enumerate(cast("Sequence[object]", value))]
    raise PolicyError(f"{type(value).__name__} is not a JSON type", place=Place(file, key=key_text(trail)))
