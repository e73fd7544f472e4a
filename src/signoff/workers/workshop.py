"""Deprecated home of `Workshop` in 0.1: it is `signoff.workers.Workers` now. To be removed with 0.3."""

from __future__ import annotations

from signoff.lazy_names import lazy_names

_find = lazy_names(__name__, {}, {"Workshop": ("workers.project_workers:Workers", "signoff.workers.Workers")})


def __getattr__(name: str) -> object:
    return _find(name)
