"""The tables beside the code, as text. (`importlib.resources` does the same, and takes longer than to read them.)"""

from __future__ import annotations

import os

_HERE = os.path.dirname(os.path.abspath(__file__))


def table_text(name: str) -> str:
    """The text of a table, by its path from this package."""
    with open(os.path.join(_HERE, name), encoding="utf-8") as file:
        return file.read()


def table_names(directory: str) -> list[str]:
    """The tables in a directory of this package, in order, by their paths from it."""
    found = sorted(os.listdir(os.path.join(_HERE, directory)))
    return [f"{directory}/{name}" for name in found if name.endswith(".toml")]
