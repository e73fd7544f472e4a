"""Secrets in a text that comes in pieces: masked as on a card, however the text was cut."""

from __future__ import annotations

import re
from collections.abc import Iterable

from signoff.core.redact import Redactor
from signoff.core.visible_text import CLOSE, OPEN

_CONTEXT = 400
"""Characters before a word that may tell that it is a secret: `password:`, the name of a header."""
_BLOCK = "-----BEGIN"
_BLOCK_END = re.compile(r"-----END[^\n-]*-----")
"""Around a private key, which is the one shape that goes over several lines."""
_LONGEST_BLOCK = 20_000
_BLANK = re.compile(r"\s")
_LAST_BLANK = re.compile(r"\s\S*\Z")


class MaskedStream:
    """Gives back what was said as far as it is decided: no shape but that of a private key takes in a blank."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """`secrets` are values to mask wherever they stand; more may be added to them meanwhile."""
        self._secrets = secrets
        self._text = ""
        """What was said: the end of what was given back, then what was not."""
        self._given = 0
        self._new: list[str] = []
        """What was said since: pieces of one word, which is not looked at before it ends."""
        self._masks = 0

    def feed(self, text: str) -> str:
        """What can be shown now that this was said: whole words."""
        self._new.append(text)
        if _BLANK.search(text) is None:
            return ""
        self._join()
        blank = _LAST_BLANK.search(self._text, self._given)
        assert blank is not None, "there is one in what was just said"
        upto = min(blank.start() + 1, self._held())
        if upto <= self._given:
            return ""
        for one in Redactor(self._secrets).found(self._text):
            if one.start < upto < one.end:
                upto = one.start
        return self._give(upto)

    def end(self) -> str:
        """What is still to be shown when all was said."""
        self._join()
        return self._give(len(self._text))

    def _join(self) -> None:
        self._text += "".join(self._new)
        self._new.clear()

    def _held(self) -> int:
        """Where something begins that may become a secret which has blanks in it."""
        text, held = self._text, len(self._text)
        block = text.find(_BLOCK, self._given)
        if block >= 0 and not _BLOCK_END.search(text, block) and len(text) - block < _LONGEST_BLOCK:
            held = block
        for secret in self._secrets:
            if not any(map(str.isspace, secret)):
                continue
            for start in range(max(self._given, len(text) - len(secret) + 1), min(held, len(text))):
                if secret.startswith(text[start:]):
                    held = start
                    break
        return max(held, self._given)

    def _give(self, upto: int) -> str:
        if upto <= self._given:
            return ""
        shown, at = "", self._given
        for one in Redactor(self._secrets).found(self._text[:upto]):
            if one.end <= at:
                continue
            self._masks += 1
            shown += f"{self._text[at : max(at, one.start)]}{OPEN}masked {self._masks}: {one.kind}{CLOSE}"
            at = one.end
        shown += self._text[at:upto]
        keep = max(0, upto - _CONTEXT)
        self._text, self._given = self._text[keep:], upto - keep
        return shown
