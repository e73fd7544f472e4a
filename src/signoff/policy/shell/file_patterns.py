"""File patterns of a shell (`*.py`, `a[0-9]?`): what they match, as bash reads them with its default settings.

Names that start with a dot need a dot in the pattern. Character sets that shells read differently raise `Unclear`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from signoff.policy.step_count import StepCount, Unclear

_CLASSES: dict[str, Callable[[str], bool]] = {
    "alpha": str.isalpha,
    "digit": lambda one: one in "0123456789",
    "alnum": lambda one: one.isalpha() or one in "0123456789",
    "upper": str.isupper,
    "lower": str.islower,
    "space": lambda one: one in " \t\n\v\f\r",
    "blank": lambda one: one in " \t",
    "punct": lambda one: one.isprintable() and not one.isalnum() and one != " ",
    "cntrl": lambda one: ord(one) < 32 or ord(one) == 127,
    "xdigit": lambda one: one in "0123456789abcdefABCDEF",
    "graph": lambda one: one.isprintable() and one != " ",
    "print": str.isprintable,
}


class Chars(NamedTuple):
    """A set of characters in brackets."""

    none_of: bool
    ranges: tuple[tuple[str, str], ...]
    classes: tuple[str, ...]

    def holds(self, one: str) -> bool:
        if self.classes and one > "\x7f":  # which characters beyond ASCII are letters depends on the locale
            raise Unclear("has a class of characters such as [:alpha:] that meets a name with other characters")
        found = any(low <= one <= high for low, high in self.ranges) or any(
            _CLASSES[name](one) for name in self.classes
        )
        return found != self.none_of


STAR, ANY = "*", "?"
_AT_ONCE, _EACH = 128, 4
"""How many characters are compared before they are counted, and how many make one step."""
Token = str | Chars
"""`STAR`, `ANY`, a set, or a literal character after a backslash."""


def escaped(text: str) -> str:
    """Escape a text so that as a pattern it matches only itself."""
    return "".join(f"\\{one}" if one in "\\*?[]" else one for one in text)


def unescaped(pattern: str) -> str:
    """Return the text of which `escaped` made a pattern."""
    return re.sub(r"\\(.)", r"\1", pattern, flags=re.DOTALL)


def is_wild(pattern: str) -> bool:
    """Whether a pattern stands for anything but one text."""
    return re.search(r"(?<!\\)(?:\\\\)*[*?\[]", pattern) is not None


def components(pattern: str) -> list[str]:
    """Split the pattern at its slashes. An escaped slash counts too, because no file name contains one."""
    parts = pattern.replace("\\/", "/").split("/")
    if any(not part for part in parts[1:-1]):
        raise Unclear("has two slashes in a row")
    return parts


def fits_name(tokens: Sequence[Token], name: str, count: StepCount) -> bool:
    """Whether a file name matches one component of a pattern."""
    if name.startswith(".") and tokens[0] != "\\.":
        return False
    if any("\udc80" <= one <= "\udcff" for one in name):
        raise Unclear("may match a file name that is not text")
    return fits(tokens, name, count)


def fits(tokens: Sequence[Token], name: str, count: StepCount) -> bool:
    """Whether the whole name matches, without exponential backtracking.

    It takes at most as many steps as the product of both lengths. Raises `Unclear` if the count ends.
    """
    at = place = compared = 0
    star, mark = -1, 0
    while place < len(name):
        compared += 1
        if not compared % _AT_ONCE:
            count.take(_AT_ONCE // _EACH)
        token = tokens[at] if at < len(tokens) else None
        if token == STAR:
            star, mark = at, place
            at += 1
        elif token is not None and _fits_one(token, name[place]):
            at += 1
            place += 1
        elif star >= 0:
            mark += 1
            at, place = star + 1, mark
        else:
            break
    count.take(1 + compared % _AT_ONCE // _EACH)
    return place >= len(name) and all(token == STAR for token in tokens[at:])


def _fits_one(token: Token, one: str) -> bool:
    if isinstance(token, Chars):
        return token.holds(one)
    return token == ANY or token == f"\\{one}"


def tokens_of(part: str) -> list[Token]:
    """Tokenize one component of a pattern."""
    tokens: list[Token] = []
    at = 0
    while at < len(part):
        one = part[at]
        if one == "\\" and at + 1 < len(part):
            tokens.append(part[at : at + 2])
            at += 2
        elif one == "[":
            chars, at = _set(part, at)
            tokens.append(chars)
        else:
            tokens.append(one if one in "*?" else f"\\{one}")
            at += 1
    return tokens


def _set(part: str, start: int) -> tuple[Token, int]:
    """Parse the set of characters at `start`. Returns it and where it ends; a lone bracket is a character."""
    at = start + 1
    none_of = part[at : at + 1] in ("!", "^")
    at += none_of
    members: list[tuple[str, bool]] = []  # each with whether it is unescaped
    classes: list[str] = []
    first = at
    while at < len(part) and (part[at] != "]" or at == first):
        if part[at] == "[" and part[at + 1 : at + 2] in (":", ".", "="):
            name, at = _class(part, at)
            classes.append(name)
            members.append(("", False))
        elif part[at] == "\\" and at + 1 < len(part):
            members.append((part[at + 1], False))
            at += 2
        else:
            members.append((part[at], True))
            at += 1
    if at >= len(part):
        if at > start + 1:
            raise Unclear("has a bracket that is not closed")
        return "\\[", start + 1
    return Chars(none_of, _ranges(members), tuple(classes)), at + 1


def _class(part: str, at: int) -> tuple[str, int]:
    end = part.find(":]", at + 2)
    name = part[at + 2 : end] if end > 0 and part[at + 1] == ":" else ""
    if name not in _CLASSES:
        raise Unclear("has a set of characters that shells read differently")
    return name, end + 2


def _ranges(members: list[tuple[str, bool]]) -> tuple[tuple[str, str], ...]:
    """`a-z` as a range, other members as themselves."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(members):
        low = members[at][0]
        if at + 2 < len(members) and members[at + 1] == ("-", True):
            high = members[at + 2][0]
            if not low or not high or low > high or max(low, high) > "\x7f":
                raise Unclear("has a range of characters that shells read differently")
            found.append((low, high))
            at += 3
        else:
            if low:
                found.append((low, low))
            at += 1
    return tuple(found)
