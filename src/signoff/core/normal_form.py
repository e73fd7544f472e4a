"""Normal forms of Unicode, in work that grows with the text alone."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Literal, TypeAlias

from signoff.core.pieces import characters, pieces

NormalForm: TypeAlias = Literal["NFC", "NFD", "NFKC"]

MOST_MARKS = 64
"""More marks in a row than any writing has. To sort more takes work that grows with the square of their number."""


def normal_form(form: NormalForm, text: str, *, kept: str = "") -> str:
    """Normalise a text. What has more than `MOST_MARKS` marks in a row stays as it is, and so do the characters `kept`.

    Never call `unicodedata.normalize` on what others wrote: a megabyte of marks would hold up the whole process for
    minutes, whatever thread it is in.
    """
    if text.isascii():
        return text
    return "".join(_formed(form, text[start:end], kept) for start, end in pieces(text, _SEAM))


_SEAM = re.compile(r"[\0-\x7f](?=[\0-\x7f])")
"""No form joins two characters of ASCII."""


def _formed(form: NormalForm, text: str, kept: str) -> str:
    if text.isascii() or unicodedata.is_normalized(form, text):
        return text
    marks = "".join(char for char in characters(text) if _is_mark(form, char))
    stays = [f"[{re.escape(kept)}]"] if kept else []
    stays += [f"(?:^|[^{re.escape(marks)}])[{re.escape(marks)}]{{{MOST_MARKS + 1},}}"] if marks else []
    if not stays:
        return unicodedata.normalize(form, text)
    parts = re.split(f"({'|'.join(reversed(stays))})", text, flags=re.DOTALL)
    return "".join(part if index % 2 else unicodedata.normalize(form, part) for index, part in enumerate(parts))


@lru_cache(maxsize=4096)
def _is_mark(form: NormalForm, char: str) -> bool:
    """Whether a character is sorted among those before it. Some are no marks themselves, but stand for some."""
    return unicodedata.combining(unicodedata.normalize(_APART[form], char)[0]) > 0


_APART: dict[NormalForm, Literal["NFD", "NFKD"]] = {"NFC": "NFD", "NFD": "NFD", "NFKC": "NFKD"}
