"""Lazy imports for public packages, and deprecated names that have moved."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(
    package: str, homes: Mapping[str, str], moved: Mapping[str, tuple[str, str]] | None = None
) -> Callable[[str], object]:
    """Return the `__getattr__` of a package: `homes` says in which module below `signoff` each of its names is.

    `moved` holds former names: where each one is (`module:name`), and what to write today, for the warning.
    """

    def find(name: str) -> object:
        if (home := homes.get(name)) is not None:
            value = getattr(import_module(f"signoff.{home}"), name)
            setattr(sys.modules[package], name, value)
            return value
        if moved is not None and name in moved:
            place, today = moved[name]
            module, _, now = place.partition(":")
            # 3: the line that imports or uses the name, two calls above this one
            warnings.warn(f"{package}.{name} is deprecated: use {today}", DeprecationWarning, stacklevel=3)
            return getattr(import_module(f"signoff.{module}"), now or name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
