"""The everyday lines, each with what it does."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
LINES = HERE / "lines.jsonl"
LABELS = HERE / "kinds.tsv"
SOURCES = HERE / "sources.toml"
KINDS = ("reads", "checks", "network", "code", "changes", "secret", "no command")
HARMLESS = frozenset({"reads", "checks", "network"})
"""Who works beside an agent would not want to be asked about these."""
HARMFUL = frozenset({"changes", "secret"})
"""Somebody has to be asked about these."""


class Line(NamedTuple):
    """One command line, the project that it comes from, and what it does."""

    id: str
    text: str
    project: str
    kind: str


def everyday_lines() -> list[Line]:
    """Every line of the list, in its order. A line without a kind is a KeyError."""
    kinds = dict(labels())
    rows = map(json.loads, LINES.read_text(encoding="utf-8").splitlines())
    return [Line(row["id"], row["line"], row["project"], kinds[row["id"]]) for row in rows]


def labels() -> list[tuple[str, str]]:
    """The ids of lines and the kinds given to them, as they stand in the file."""
    rows = (row.split("\t") for row in LABELS.read_text(encoding="utf-8").splitlines())
    return [(id, kind) for id, kind in rows]


def id_of(text: str) -> str:
    """The id of a line, which stays the same wherever the line moves."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
