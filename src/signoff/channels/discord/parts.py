"""The text of a message in named parts, and how they are laid out within a size limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from signoff.channels.discord.message_text import block, cut_block, is_short, short_span, span
from signoff.channels.discord.sheet import size

_LEAST = 180
"""Minimum characters of a part, if it is shown at all."""
_LONGEST_NAME = 60
_LARGE = 20_000
"""Characters from which on a text fits nowhere, so that it need not be drawn to know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePart:
    """A trusted label, and an untrusted text, which is put in code."""

    label: str = ""
    """Trusted: markdown, short, with balanced backticks."""
    name: str = ""
    """An argument's name instead of a label; untrusted."""
    text: str = ""
    language: str = ""

    @property
    def whole(self) -> str:
        """The whole part."""
        head = span(self.name) if self.name else self.label
        if not self.text:
            return head
        if is_short(self.text) and not self.language:
            return f"{head}{' = ' if self.name else ' ' if head else ''}{span(self.text)}"
        return f"{head}\n{block(self.text, self.language)}".lstrip("\n")

    def within(self, room: int) -> tuple[str, int]:
        """Return what fits into `room`, and how many characters of the text are left out."""
        if self.size <= room or not self.text:
            return self.whole, 0
        head = short_span(self.name, _LONGEST_NAME) if self.name else self.label
        body, left_out = cut_block(self.text, self.language, room - size(head) - 1)
        return f"{head}\n{body}".lstrip("\n"), left_out + max(0, len(self.name) - _LONGEST_NAME)

    @property
    def size(self) -> int:
        """The size of the whole part; an estimate if it fits nowhere."""
        return self.length if self.length > _LARGE else size(self.whole)

    @property
    def length(self) -> int:
        """The number of untrusted characters."""
        return len(self.name) + len(self.text)


def lay_out(parts: Sequence[MessagePart], room: int) -> tuple[str, int]:
    """Lay out parts below each other and count the characters left out: of long parts first, then the last ones."""
    sizes = [(part.size, bool(part.text)) for part in parts]
    if sum(one + 1 for one, _ in sizes) - 1 <= room:
        return "\n".join(part.whole for part in parts), 0
    kept = _how_many(sizes, room)
    rest = parts[kept:]
    more = f"… and {len(rest):,} more" if rest else ""
    share = _share(sizes[:kept], room - size(more) - 1)
    drawn = [part.within(share) for part in parts[:kept]]
    missing = sum(left_out for _, left_out in drawn) + sum(part.length for part in rest)
    return "\n".join((*(text for text, _ in drawn), *([more] if more else ()))), missing


_Sizes = Sequence[tuple[int, bool]]
"""The size of each part, and whether it can be cut."""


def _how_many(sizes: _Sizes, room: int) -> int:
    """Return how many of the first parts fit if each is cut to the minimum."""
    if sum(_needed(sizes, _LEAST)) <= room:
        return len(sizes)
    used = size("… and 1,000,000 more") + 1
    for index, needed in enumerate(_needed(sizes, _LEAST)):
        used += needed
        if used > room:
            return index
    return len(sizes)


def _share(sizes: _Sizes, room: int) -> int:
    """Return the largest size that every part may have (binary search)."""
    low, high = 0, max((one for one, _ in sizes), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(_needed(sizes, middle)) <= room else (low, middle - 1)
    return low


def _needed(sizes: _Sizes, share: int) -> Iterator[int]:
    """Yield what each part takes, including its line break."""
    return (1 + (min(one, share) if may_be_cut else one) for one, may_be_cut in sizes)
