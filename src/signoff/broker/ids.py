"""Ids that people read, type and say aloud."""

from __future__ import annotations

import os

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""Without what people mix up: 0 o, 1 l i."""
LENGTH = 10


def new_id() -> str:
    """A fresh id: short, random, and hard to misread."""
    # Of the 256 bytes there are, those that would make a letter more likely than another are left out.
    letters = os.urandom(2 * LENGTH).translate(_LETTERS, _LEFT_OUT)[:LENGTH].decode()
    return letters if len(letters) == LENGTH else new_id()


_EVEN = 256 - 256 % len(ALPHABET)
_LETTERS = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
_LEFT_OUT = bytes(range(_EVEN, 256))
