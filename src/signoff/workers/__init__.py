"""Agents described by files, for programs: `Workers(load_settings("signoff.yaml")).worker("main").agent`.

A program with its own agent needs at most `load_policy`. Nothing is loaded before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff.lazy_names import lazy_names

if TYPE_CHECKING:
    from signoff.config import Settings as Settings
    from signoff.config import find_project as find_project
    from signoff.config import load_policy as load_policy
    from signoff.config import load_settings as load_settings
    from signoff.config import load_worker as load_worker
    from signoff.config import load_workers as load_workers
    from signoff.workers.project_workers import Workers as Workers

_HOMES = {
    "Settings": "config",
    "Workers": "workers.project_workers",
    "find_project": "config",
    "load_policy": "config",
    "load_settings": "config",
    "load_worker": "config",
    "load_workers": "config",
}

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

_find = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> object:
    return _find(name)


def __dir__() -> list[str]:
    return __all__
