"""The tables beside the code, as text. (`importlib.resources` does the same, and takes longer than to read them.)"""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def table_text(name: str) -> str:
    """The text of a table, by its path from this package."""
    return (_HERE / name).read_text(encoding="utf-8")


def table_names(directory: str) -> list[str]:
    """The tables in a directory of this package, in order, by their paths from it."""
    return [f"{directory}/{one.name}" for one in sorted((_HERE / directory).glob("*.toml"))]
