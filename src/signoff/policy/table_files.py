"""Read the tables beside the code as text. (`importlib.resources` can do this too, but takes longer than reading.)"""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def table_text(name: str) -> str:
    """Return the text of a table, by its path relative to this package."""
    return (_HERE / name).read_text(encoding="utf-8")


def table_names(directory: str) -> list[str]:
    """Return the paths of the tables in a directory of this package, sorted, relative to the package."""
    return [f"{directory}/{one.name}" for one in sorted((_HERE / directory).glob("*.toml"))]
