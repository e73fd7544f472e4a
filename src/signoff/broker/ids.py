"""Ids that people read, type and say aloud."""

from __future__ import annotations

import secrets

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""Without what people mix up: 0 o, 1 l i."""
LENGTH = 10


def new_id() -> str:
    """A fresh id: short, random, and hard to misread."""
    number, letters = secrets.randbits(64), ""
    for _ in range(LENGTH):
        number, rest = divmod(number, len(ALPHABET))
        letters += ALPHABET[rest]
    return letters
