"""Lazy imports for public packages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package: `homes` says in which module below `signoff` each of its names is."""

    def find(name: str) -> object:
        if (home := homes.get(name)) is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"signoff.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return find
