"""Operators on one value: `equals`, `in`, `matches` (glob), `regex`, comparisons, `exists`, and over lists.

`test` returns True, False, or a text that says why the answer is unknown.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, cast

from signoff.core.call import Veiled
from signoff.core.canonical import canonical
from signoff.errors import CannotCanonicalise
from signoff.policy.glob import Glob, any_glob
from signoff.policy.linear_regex import LinearRegex
from signoff.policy.match_result import Truth
from signoff.policy.phrases import as_json, listed, shown

Answer: TypeAlias = "bool | str"

_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {**_COMPARE, "equals": operator.eq}
"""Comparisons for amounts and counts."""
LISTS = ("all", "any", "none")
OPERATORS = ("equals", "in", "matches", "regex", *_COMPARE, "exists", *LISTS)
COMPARISONS = frozenset(_COMPARE)

_FLAGS = {"true": frozenset("true 1 yes on y t".split()), "false": frozenset("false 0 no off n f".split())}
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.ASCII)
_MOST_DIGITS = 64
_STEPS_UP = re.compile(r"(?:^|[/\\])\.\.(?:$|[/\\])")


class Operator(Protocol):
    """One check of a value."""

    @property
    def text(self) -> str:
        """What is checked, in words that follow `is` or `is not`: `"ana"`, `> 100`, `like src/**`."""
        ...

    def test(self, value: Any) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Equals:
    """Equal as JSON to one of several values: `1` equals `1.0`, but `true` is not `1` and `"1"` is not `1`.

    In rules that ask or deny, what a tool may take for one of the values is in doubt: `"true"`, `1` or `"yes"` for
    `true`, `"1"` for `1`.
    """

    texts: frozenset[str]
    others: frozenset[str]
    """The canonical JSON of the values that are not texts."""
    text: str
    wary: bool = True
    """Whether it must be sure: as in an allow rule."""

    @classmethod
    def to(cls, *values: Any, wary: bool = True) -> Equals:
        """Create it from values. Raises `CannotCanonicalise` if a value has no JSON form."""
        words = "one of " if len(values) > 1 else ""
        return cls(
            frozenset(value for value in values if isinstance(value, str) and canonical(value)),
            frozenset(canonical(value) for value in values if not isinstance(value, str)),
            f"{words}{', '.join(map(as_json, values[:8]))}{' …' if len(values) > 8 else ''}",
            wary,
        )

    def test(self, value: Any) -> Answer:
        if isinstance(value, str):
            return value in self.texts or self._may_be(value.strip().lower())
        if not self.others and (self.wary or not isinstance(value, (int, float)) or value is True or value is False):
            return False
        try:
            written = canonical(value)
            return written in self.others or self._may_be(written) or self._may_be_text(written)
        except CannotCanonicalise as error:
            return f"cannot be compared: {error}"

    def _may_be(self, written: str) -> Answer:
        """Return doubt if a tool may take what is written for one of the truth values or numbers."""
        if self.wary:
            return False
        meant = next((flag for flag, words in _FLAGS.items() if written in words), "")
        if meant not in self.others:
            meant = _as_number(written)
        return f"may be taken for `{meant}`" if meant in self.others else False

    def _may_be_text(self, number: str) -> Answer:
        """Return doubt if a tool may take a number for one of the texts."""
        if self.wary or number not in self.texts:
            return False
        return f"may be taken for `{as_json(number)}`"


def _as_number(written: str) -> str:
    """Return the canonical JSON of a number that is written as a text; "" if it is none."""
    if len(written) > _MOST_DIGITS or not _NUMBER.fullmatch(written):
        return ""
    try:
        number = float(written) if set(written) & set(".e") else int(written)
        return canonical(number)
    except (CannotCanonicalise, ValueError, OverflowError):
        return ""


@dataclass(frozen=True, slots=True)
class Matches:
    """Matches one of several globs."""

    globs: tuple[Glob, ...]
    wary: bool
    """Whether a wildcard must not match `..` (path traversal). Set in allow rules."""
    any_case: bool = False
    """Whether to ignore case. The globs are then in lower case."""
    text: str = field(init=False)

    def __post_init__(self) -> None:
        case = ", in any case" if self.any_case else ""
        object.__setattr__(self, "text", f"like {listed(glob.pattern for glob in self.globs)}{case}")

    def test(self, value: Any) -> Answer:
        if not isinstance(value, str):
            return f"is {kind_of(value)}, not a text, so it cannot match a pattern"
        truth = any_glob(self.globs, value.lower() if self.any_case else value)
        if truth is Truth.UNKNOWN:
            return "holds control characters, which no wildcard matches"
        if truth is Truth.YES and self.wary and _STEPS_UP.search(value) and not self._spells_out(value):
            return "holds `..`, which no wildcard matches in an allow rule; use a `path` condition, which resolves it"
        return truth is Truth.YES

    def _spells_out(self, value: str) -> bool:
        return any(glob.literal == value for glob in self.globs)


@dataclass(frozen=True, slots=True)
class Regex:
    """A regular expression matches the whole text."""

    expression: LinearRegex
    text: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", f"matched by the regex {shown(self.expression.pattern)}")

    def test(self, value: Any) -> Answer:
        if not isinstance(value, str):
            return f"is {kind_of(value)}, not a text, so it cannot match a regex"
        matched = self.expression.fullmatch(value)
        if matched is None:
            return "holds characters that make the end of a word or line unclear to the regex"
        return matched


@dataclass(frozen=True, slots=True)
class Compare:
    """A number is below or above another."""

    sign: str
    bound: float
    text: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", f"{self.sign} {as_json(self.bound)}")

    def test(self, value: Any) -> Answer:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return f"is {kind_of(value)}, not a number, so `{self.sign}` cannot be checked"
        if value != value:
            return f"is not a number, so `{self.sign}` cannot be checked"
        return _COMPARE[self.sign](value, self.bound)


@dataclass(frozen=True, slots=True)
class Exists:
    """The key is present, even if its value is null; or it is absent."""

    wanted: bool

    @property
    def text(self) -> str:
        return "given" if self.wanted else "absent"

    def test(self, value: Any) -> Answer:
        return self.wanted


@dataclass(frozen=True, slots=True)
class Over:
    """All, any or none of the values in a list satisfy operators. For an empty list, only `none` holds."""

    how: Literal["all", "any", "none"]
    operators: tuple[Operator, ...]
    """Must all hold for the same value."""
    text: str = field(init=False)

    def __post_init__(self) -> None:
        words = " and ".join(one.text for one in self.operators)
        object.__setattr__(self, "text", f"a list of which {self.how} {'is' if self.how == 'any' else 'are'} {words}")

    def test(self, value: Any) -> Answer:
        if not isinstance(value, (list, tuple)):
            return f"is {kind_of(value)}, not a list, so `{self.how}` cannot be checked"
        items = cast("Sequence[object]", value)
        answers = [self._of_one(item) for item in items]
        settles = self.how != "all"  # one yes decides `any` and `none`, one no decides `all`
        if any(answer is settles for answer in answers):
            return self.how == "any"
        if doubts := [answer for answer in answers if isinstance(answer, str)]:
            return f"holds a value that {doubts[0]}"
        return bool(items) if self.how == "all" else self.how == "none"

    def _of_one(self, item: object) -> Answer:
        if isinstance(item, Veiled):
            return "is a secret"
        answers = [one.test(item) for one in self.operators]
        if False in answers:
            return False
        return next((answer for answer in answers if isinstance(answer, str)), True)


def kind_of(value: object) -> str:
    """Return what type a value has, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "a mapping"
        case _:
            return f"a {type(value).__name__}"
