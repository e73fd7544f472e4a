"""Ids that people read, type and say aloud."""

from __future__ import annotations

import os

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""Without characters that are easily confused: 0 o, 1 l i."""
LENGTH = 10


def new_id() -> str:
    """Return a new id: short, random, and hard to misread."""
    # Byte values that would make some letters more likely than others are dropped (no modulo bias).
    letters = os.urandom(2 * LENGTH).translate(_LETTERS, _LEFT_OUT)[:LENGTH].decode()
    return letters if len(letters) == LENGTH else new_id()


_EVEN = 256 - 256 % len(ALPHABET)
_LETTERS = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
_LEFT_OUT = bytes(range(_EVEN, 256))
