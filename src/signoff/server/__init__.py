"""The web inbox and the HTTP API, as a Starlette application. The layers above pass in what runs agents.

To mount it in your own application, use `inbox_app`. It needs `pip install 'signoff[web]'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff.lazy_names import lazy_names

if TYPE_CHECKING:  # above this package: it is public here, as users look for it here
    from signoff.wiring.mounted_inbox import inbox_app as inbox_app

_HOMES = {"inbox_app": "wiring.mounted_inbox"}

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

_find = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> object:
    return _find(name)


def __dir__() -> list[str]:
    return __all__
