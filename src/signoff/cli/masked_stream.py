"""Mask secrets in streamed text as on a card, wherever the text was cut."""

from __future__ import annotations

import re
from collections.abc import Iterable

from signoff.core.redact import Redactor
from signoff.core.visible_text import CLOSE, OPEN

_CONTEXT = 400
"""Characters before a word that may mark it as a secret: `password:`, the name of a header."""
_BLOCK = "-----BEGIN"
_BLOCK_END = re.compile(r"-----END[^\n-]*-----")
"""End of a private key, the only kind of secret that spans several lines."""
_LONGEST_BLOCK = 20_000
_BLANK = re.compile(r"\s")
_LAST_BLANK = re.compile(r"\s\S*\Z")


class MaskedStream:
    """Returns streamed text word by word. Only private keys and known secrets with spaces span several words."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """`secrets` are values to mask wherever they occur; more may be added meanwhile."""
        self._secrets = secrets
        self._text = ""
        """The end of the text that was returned, then the text that was not."""
        self._given = 0
        self._new: list[str] = []
        """Pieces of the current word, which is not checked before it ends."""
        self._masks = 0

    def feed(self, text: str) -> str:
        """Add text; return whole words that can be shown now."""
        self._new.append(text)
        if _BLANK.search(text) is None:
            return ""
        self._join()
        blank = _LAST_BLANK.search(self._text, self._given)
        assert blank is not None, "there is one in what was just said"
        upto = min(blank.start() + 1, self._held(blank.start() + 1))
        if upto <= self._given:
            return ""
        for one in Redactor(self._secrets).found(self._text):
            if one.start < upto < one.end:
                upto = one.start
        return self._give(upto)

    def end(self) -> str:
        """Return the rest when the text is complete."""
        self._join()
        return self._give(len(self._text))

    def _join(self) -> None:
        self._text += "".join(self._new)
        self._new.clear()

    def _held(self, upto: int) -> int:
        """Start of text that may become a secret with whitespace in it."""
        text, held = self._text, upto
        block = text.find(_BLOCK, self._given)
        if block >= 0 and not _BLOCK_END.search(text, block) and len(text) - block < _LONGEST_BLOCK:
            held = min(held, block)
        begun = Redactor(self._secrets).begun(text[:upto])
        return max(held if begun is None else min(held, begun), self._given)

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
