"""A number of things in words."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """Return `1 request`, `3 requests`."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
