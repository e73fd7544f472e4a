"""The text of a message in parts, each with a name, and how they are laid out in the room there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from signoff.channels.discord.message_text import block, cut_block, is_short, short_span, span
from signoff.channels.discord.sheet import size

_LEAST = 180
"""Characters that a part gets at least, if it is shown at all."""
_LONGEST_NAME = 60
_LARGE = 20_000
"""Characters from which on a text fits nowhere, so that it need not be drawn to see that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePart:
    """A few words of ours, and a text from elsewhere, which stands in code."""

    label: str = ""
    """Ours: markdown, short, without backticks that are not closed."""
    name: str = ""
    """Of an argument, instead of a label: from elsewhere."""
    text: str = ""
    language: str = ""

    @property
    def whole(self) -> str:
        """All of it."""
        head = span(self.name) if self.name else self.label
        if not self.text:
            return head
        if is_short(self.text) and not self.language:
            return f"{head}{' = ' if self.name else ' ' if head else ''}{span(self.text)}"
        return f"{head}\n{block(self.text, self.language)}".lstrip("\n")

    def within(self, room: int) -> tuple[str, int]:
        """What there is room for, and how many characters of the text are left out."""
        if self.size <= room or not self.text:
            return self.whole, 0
        head = short_span(self.name, _LONGEST_NAME) if self.name else self.label
        body, left_out = cut_block(self.text, self.language, room - size(head) - 1)
        return f"{head}\n{body}".lstrip("\n"), left_out + max(0, len(self.name) - _LONGEST_NAME)

    @property
    def size(self) -> int:
        """How much room all of it takes; about, where it fits nowhere."""
        return self.length if self.length > _LARGE else size(self.whole)

    @property
    def length(self) -> int:
        """Characters that are from elsewhere."""
        return len(self.name) + len(self.text)


def lay_out(parts: Sequence[MessagePart], room: int) -> tuple[str, int]:
    """The parts below each other, and how many characters were left out: of long parts first, then the last ones."""
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
"""Of every part, and whether it can be cut."""


def _how_many(sizes: _Sizes, room: int) -> int:
    """How many of the first parts can be shown, if each of them is content with little."""
    if sum(_needed(sizes, _LEAST)) <= room:
        return len(sizes)
    used = size("… and 1,000,000 more") + 1
    for index, needed in enumerate(_needed(sizes, _LEAST)):
        used += needed
        if used > room:
            return index
    return len(sizes)


def _share(sizes: _Sizes, room: int) -> int:
    """The largest size that every part may have."""
    low, high = 0, max((one for one, _ in sizes), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(_needed(sizes, middle)) <= room else (low, middle - 1)
    return low


def _needed(sizes: _Sizes, share: int) -> Iterator[int]:
    """What each part takes, with the line break after it."""
    return (1 + (min(one, share) if may_be_cut else one) for one, may_be_cut in sizes)
