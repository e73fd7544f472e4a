"""Regular expressions in linear time (RE2), so that no pattern or text from a model causes catastrophic backtracking.

A pattern has the meaning that it has in Python's `re`: Python's own parser reads it, it is translated for RE2, and RE2
matches in one pass over the text. Constructs that need backtracking are refused: lookahead and lookbehind,
backreferences, possessive repeats. RE2 supports word boundaries (`\\b`) in ASCII texts only; in others the result is
unknown.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

_parser: Any = import_module("re._parser")  # the parser of `re`; it has no public name
MOST_REPEATS = 1_000
"""The limit of RE2."""


class BadRegex(ValueError):
    """An unusable pattern; the message says why."""


@dataclass(frozen=True, slots=True)
class LinearRegex:
    """A regular expression. Two are equal if they are written the same. Raises `BadRegex`."""

    pattern: str
    _exact: Any = field(init=False, repr=False, compare=False)
    _loose: Any = field(init=False, repr=False, compare=False)
    """The expression without its word boundaries, if any: matches everything that `_exact` does, and more."""
    _ends: bool = field(init=False, repr=False, compare=False)
    """Whether it has a `$`, which in Python also matches before a final line break."""

    def __post_init__(self) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # about sets that a later Python will read differently
                tree = _parser.parse(self.pattern)
            writer = _Re2Writer()
            exact = writer.write(tree, tree.state.flags)
            loose = _Re2Writer(bounded=False).write(tree, tree.state.flags) if writer.has_boundary else exact
        except (re.error, Warning) as error:
            raise BadRegex(str(error)) from error
        except (OverflowError, RecursionError) as error:
            raise BadRegex("it is too large or nested too deeply") from error
        object.__setattr__(self, "_exact", _compiled(exact))
        object.__setattr__(self, "_loose", _compiled(loose) if loose != exact else self._exact)
        object.__setattr__(self, "_ends", writer.has_end)

    @property
    def size(self) -> int:
        """How many instructions it has: a match takes so many steps for each character, at most."""
        return max(self._exact.programsize, self._loose.programsize)

    @property
    def has_word_boundaries(self) -> bool:
        """Whether what it matches in a text that is not ASCII is not certain."""
        return self._loose is not self._exact

    def fullmatch(self, text: str) -> bool | None:
        """Return whether it matches the whole text; None if unknown."""
        if _is_broken(text):
            return None
        # Python versions disagree about `\B` in the empty string.
        doubts_words = self.has_word_boundaries and not (text and text.isascii())
        if (self._loose if doubts_words else self._exact).fullmatch(text):
            return None if doubts_words else True
        return None if self._ends and text.endswith("\n") else False

    def search(self, line: str) -> bool:
        """Return whether it matches anywhere in a line. In a non-ASCII line, word boundaries match everywhere."""
        if _is_broken(line):
            line = line.encode("utf-8", "replace").decode()
        return (self._exact if line.isascii() else self._loose).search(line) is not None


def _compiled(written: str) -> Any:
    re2: Any = import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(written, options)
    except re2.error as error:
        [why] = error.args
        raise BadRegex(f"it is too large ({why.decode() if isinstance(why, bytes) else why})") from error


def _is_broken(text: str) -> bool:
    """Whether a text has a lone surrogate, so that it is not valid Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


@dataclass(slots=True)
class _Re2Writer:
    """Translates what Python's parser returned into RE2 syntax."""

    bounded: bool = True
    """Whether to keep word boundaries."""
    has_boundary: bool = False
    has_end: bool = False

    def write(self, tree: Iterable[Any], flags: int) -> str:
        inner = self._all(tree, flags)
        return f"(?i:{inner})" if flags & re.IGNORECASE else inner

    def _all(self, tree: Iterable[Any], flags: int) -> str:
        return "".join(self._one(kind, value, flags) for kind, value in tree)

    def _one(self, kind: Any, value: Any, flags: int) -> str:
        match str(kind):
            case "LITERAL":
                return f"[{_LETTER_I}]" if _is_letter_i(value, value, flags) else _char(value)
            case "NOT_LITERAL":
                return f"[^{_LETTER_I if _is_letter_i(value, value, flags) else _char(value)}]"
            case "ANY":
                return "(?s:.)" if flags & re.DOTALL else r"[^\n]"
            case "IN":
                return _set(value, flags)
            case "AT":
                return self._at(str(value), flags)
            case "BRANCH":
                return f"(?:{'|'.join(self._all(one, flags) for one in value[1])})"
            case "SUBPATTERN":
                _, added, removed, tree = value
                return self._group(added, removed, tree, flags)
            case "MAX_REPEAT" | "MIN_REPEAT":
                low, high, tree = value
                return f"(?:{self._all(tree, flags)}){_times(low, high)}{'?' if str(kind) == 'MIN_REPEAT' else ''}"
            case other:
                what = _REFUSED.get(other, other.lower())
                raise BadRegex(f"{what} is not supported: patterns are matched in linear time")

    def _group(self, added: int, removed: int, tree: Iterable[Any], flags: int) -> str:
        inside = (flags | added) & ~removed
        inner = self._all(tree, inside)
        changed = (inside ^ flags) & re.IGNORECASE
        return f"(?{'' if not changed else 'i' if inside & re.IGNORECASE else '-i'}:{inner})"

    def _at(self, where: str, flags: int) -> str:
        lines = flags & re.MULTILINE
        match where:
            case "AT_BEGINNING":
                return "(?m:^)" if lines else r"\A"
            case "AT_BEGINNING_STRING":
                return r"\A"
            case "AT_END":
                self.has_end = self.has_end or not lines
                return "(?m:$)" if lines else r"\z"
            case "AT_END_STRING":
                return r"\z"
            case _:  # AT_BOUNDARY or AT_NON_BOUNDARY
                self.has_boundary = True
                return "" if not self.bounded else r"\b" if where == "AT_BOUNDARY" else r"\B"


_REFUSED = {
    "ASSERT": "lookahead or lookbehind",
    "ASSERT_NOT": "negative lookahead or lookbehind",
    "FAILURE": "negative lookahead",
    "GROUPREF": "a reference to a group",
    "GROUPREF_EXISTS": "a reference to a group",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive repeat",
}


def _char(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF:
        raise BadRegex("it holds half of a surrogate pair, which is not valid Unicode")
    return f"\\x{{{code:X}}}"


def _times(low: int, high: Any) -> str:
    endless = high == _parser.MAXREPEAT
    if max(low, 0 if endless else high) > MOST_REPEATS:
        raise BadRegex(f"it repeats something more than {MOST_REPEATS:,} times")
    if endless and low < 2:
        return "+" if low else "*"
    return f"{{{low},{'' if endless else high}}}"


# --- sets of characters ---


def _set(items: Sequence[tuple[Any, Any]], flags: int) -> str:
    """Translate `[…]`, or a class such as `\\w` by itself."""
    kinds: list[tuple[str, Any]] = [
        (str(kind), str(value) if str(kind) == "CATEGORY" else value) for kind, value in items
    ]
    negated = kinds[0][0] == "NEGATE"
    kinds = kinds[negated:]
    ascii_only = bool(flags & re.ASCII)
    apart = [value for kind, value in kinds if kind == "CATEGORY" and "_NOT_" in value]
    within = "".join(_item(kind, value, ascii_only) for kind, value in kinds if value not in apart)
    spans: list[tuple[int, int]] = [(value, value) for kind, value in kinds if kind == "LITERAL"]
    spans += [value for kind, value in kinds if kind == "RANGE"]
    if any(_is_letter_i(low, high, flags) for low, high in spans):
        within += _LETTER_I
    if not apart:
        return f"[{'^' if negated else ''}{within}]"
    if negated:  # an intersection of sets, which RE2 cannot express
        return f"(?-i:[{_ranges(''.join(_as_python(kind, value) for kind, value in kinds), flags)}])"
    others = [f"[^{_item('CATEGORY', value.replace('_NOT_', '_'), ascii_only)}]" for value in apart]
    return f"(?:{'|'.join([*([f'[{within}]'] if within else []), *others])})"


_LETTER_I = r"iI\x{130}\x{131}"
"""With IGNORECASE these four are one letter to Python, and two to RE2."""


def _is_letter_i(low: int, high: int, flags: int) -> bool:
    """Whether one of these letters is in the range and IGNORECASE is set without ASCII."""
    all_of_unicode = flags & re.IGNORECASE and not flags & re.ASCII
    return bool(all_of_unicode) and any(low <= code <= high for code in (0x49, 0x69, 0x130, 0x131))


def _item(kind: str, value: Any, ascii_only: bool) -> str:
    match kind:
        case "LITERAL":
            return _char(value)
        case "RANGE":
            low, high = value
            return f"{_char(low)}-{_char(high)}"
        case _:
            return _CLASSES[value][0 if ascii_only else 1]


_CLASSES = {
    "CATEGORY_DIGIT": ("0-9", r"\p{Nd}"),
    "CATEGORY_WORD": ("0-9A-Za-z_", r"\p{L}\p{N}_"),
    "CATEGORY_SPACE": (
        r"\t-\r ",
        r"\t-\r\x1c-\x20\x85\xa0\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}",
    ),
}
"""Inside brackets: with the ASCII flag, and with Python's Unicode meaning."""


def _as_python(kind: str, value: Any) -> str:
    match kind:
        case "LITERAL":
            return f"\\U{value:08x}"
        case "RANGE":
            low, high = value
            return f"\\U{low:08x}-\\U{high:08x}"
        case _:
            return _LETTERS[value]


_LETTERS = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
}


def _ranges(excluded: str, flags: int) -> str:
    """Return all characters except those of a set that Python reads, as ranges."""
    stretches = re.compile(f"[^{excluded}]+", flags & (re.ASCII | re.IGNORECASE)).findall(_every_character())
    found = [f"{_char(ord(one[0]))}-{_char(ord(one[-1]))}" for one in stretches]
    if not found:
        raise BadRegex("a character set in it is empty")
    return "".join(found)


@cache
def _every_character() -> str:
    return "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
