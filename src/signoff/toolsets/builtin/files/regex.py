"""Regular expressions in linear time: what a model writes as a pattern must not be able to keep us busy.

A pattern becomes a graph, and all ways through it are taken at once, one character after the other; sets of places that
were met before are remembered. Python's own `re` tries one way after the other, which takes years for some patterns.
What has a meaning without going back is supported: text, `.`, sets, groups, `|`, `*` `+` `?` `{m,n}` (lazy ones too: it
is only asked whether a line matches), `^` `$` `\\A` `\\Z` `\\b` `\\B`, and `(?i)` in front.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

MOST_CHARS = 500
MOST_NODES = 2_000
_MOST_STATES = 2_000
_MOST_DEPTH = 40

_COUNT = re.compile(r"\{(?:(\d{1,4})(?:(,)(\d{0,4}))?|(,)(\d{0,4}))\}")
_GROUP = re.compile(r"\((?:\?:|\?P<\w+>|(?!\?))")
_SET = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]")
_DOUBTFUL_SET = re.compile(r"(?<!^)\[|--|&&|\|\||~~")
_CODE = re.compile(r"x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[dDwWsStnrfv]|[^\w\s]| ")


class BadPattern(ValueError):
    """A pattern that cannot be used; the message says why."""


class Assertion(Enum):
    """What a spot between two characters may be asked to be."""

    START = "^"
    END = "$"
    EDGE = r"\b"
    NO_EDGE = r"\B"


_PLACES = {
    "^": Assertion.START,
    "$": Assertion.END,
    r"\A": Assertion.START,
    r"\Z": Assertion.END,
    r"\b": Assertion.EDGE,
    r"\B": Assertion.NO_EDGE,
}


@dataclass(frozen=True, slots=True)
class Eat:
    """One character like this."""

    like: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """One of them."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same, again and again; `most` None for any number."""

    part: Part
    least: int
    most: int | None


Part = Eat | Assertion | Concatenation | Alternatives | Repeat


class _PatternReader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        ignore = text.startswith("(?i)")
        self.at: int = 4 if ignore else 0
        self.flags = re.DOTALL | (re.IGNORECASE if ignore else 0)

    def read(self) -> Part:
        part = self._choice(0)
        if self.at < len(self.text):
            raise BadPattern("a `)` closes nothing")
        return part

    def _choice(self, depth: int) -> Part:
        if depth > _MOST_DEPTH:
            raise BadPattern("its groups are nested too deep")
        rows = [self._row(depth)]
        while self.text.startswith("|", self.at):
            self.at += 1
            rows.append(self._row(depth))
        return rows[0] if len(rows) == 1 else Alternatives(tuple(rows))

    def _row(self, depth: int) -> Part:
        parts: list[Part] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            part = self._one(depth)
            count = self._count()
            if count is not None:
                if isinstance(part, Assertion):
                    raise BadPattern("it repeats a place between characters")
                part = Repeat(part, *count)
                if self._count() is not None:
                    raise BadPattern("it repeats a repetition; put the inner one in a group")
            parts.append(part)
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def _one(self, depth: int) -> Part:
        char = self.text[self.at]
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._set()
        if char in "*+?" or self._count() is not None:
            raise BadPattern("it repeats nothing")
        if char == "\\" and self.at + 1 == len(self.text):
            raise BadPattern("it ends in a backslash")
        word = self.text[self.at : self.at + 2] if char == "\\" else char
        self.at += len(word)
        if word in _PLACES:
            return _PLACES[word]
        if char == "\\":
            return self._escaped()
        return self._eat("." if char == "." else re.escape(char))

    def _group(self, depth: int) -> Part:
        found = _GROUP.match(self.text, self.at)
        if found is None:
            raise BadPattern("a group that looks ahead, looks back or changes flags is not supported")
        self.at = found.end()
        part = self._choice(depth + 1)
        if not self.text.startswith(")", self.at):
            raise BadPattern("a `(` is not closed")
        self.at += 1
        return Concatenation((part,))  # what is in a group may be repeated, whatever it is

    def _set(self) -> Part:
        found = _SET.match(self.text, self.at)
        if found is None:
            raise BadPattern("a `[` is not closed")
        self.at = found.end()
        if _DOUBTFUL_SET.search(found[0]):
            raise BadPattern("a set holds `[`, `--`, `&&`, `||` or `~~`; write a backslash before it")
        return self._eat(found[0])

    def _escaped(self) -> Part:
        found = _CODE.match(self.text, self.at - 1)
        if found is None:
            raise BadPattern("a backslash before a letter or a number that means nothing here")
        self.at = found.end()
        return self._eat(f"\\{found[0]}")

    def _eat(self, like: str) -> Eat:
        try:
            return Eat(re.compile(like, self.flags))
        except re.error as error:
            raise BadPattern(f"a set cannot be read: {error}") from None

    def _count(self) -> tuple[int, int | None] | None:
        """How often the part before is wanted, where it says so."""
        if self.at >= len(self.text):
            return None
        char = self.text[self.at]
        if char in "*+?":
            self.at += 1
            count = (1 if char == "+" else 0, 1 if char == "?" else None)
        elif (found := _COUNT.match(self.text, self.at)) is not None:
            self.at = found.end()
            low, high = found[1] or "0", found[3] or found[5]
            comma = found[2] or found[4]
            count = int(low), (int(high) if high else None) if comma else int(low)
            if count[1] is not None and count[0] > count[1]:
                raise BadPattern("a count has its larger number first")
        else:
            return None
        if self.text.startswith("+", self.at):
            raise BadPattern("possessive repetition is not supported")
        if self.text.startswith("?", self.at):
            self.at += 1
        return count


class _Graph:
    """Nodes by number. Each eats a character, is a place, or leads on; node 0 is the end."""

    def __init__(self) -> None:
        self.what: list[re.Pattern[str] | Assertion | None] = [None]
        self.to: list[tuple[int, ...]] = [()]

    def add(self, what: re.Pattern[str] | Assertion | None, *to: int) -> int:
        if len(self.what) >= MOST_NODES:
            raise BadPattern("it repeats too much")
        self.what.append(what)
        self.to.append(to)
        return len(self.what) - 1

    def put(self, part: Part, then: int) -> int:
        """The node where a part begins that leads on to `then`."""
        match part:
            case Eat():
                return self.add(part.like, then)
            case Assertion():
                return self.add(part, then)
            case Concatenation():
                for one in reversed(part.parts):
                    then = self.put(one, then)
                return then
            case Alternatives():
                return self.add(None, *[self.put(one, then) for one in part.parts])
            case Repeat():
                return self._repeat(part, then)

    def _repeat(self, part: Repeat, then: int) -> int:
        entry = then
        if part.most is None:
            entry = self.add(None)
            self.to[entry] = (self.put(part.part, entry), then)
        for _ in range(0 if part.most is None else part.most - part.least):
            entry = self.add(None, self.put(part.part, entry), then)
        for _ in range(part.least):  # a node for each round, so that rounds of nothing count as well
            entry = self.add(None, self.put(part.part, entry))
        return entry


_State = tuple[frozenset[int], str]
"""Nodes to be looked at, and what was before: nothing, a letter (`w`) or something else (`-`)."""


class LinearPattern:
    """A pattern whose search takes time in proportion to the text."""

    def __init__(self, pattern: str) -> None:
        """Raises `BadPattern`."""
        if len(pattern) > MOST_CHARS:
            raise BadPattern(f"it is longer than {MOST_CHARS} characters")
        self._graph = _Graph()
        self._begin = self._graph.put(_PatternReader(pattern).read(), 0)
        self._known: dict[tuple[_State, str], _State | None] = {}

    def search(self, line: str) -> bool:
        """Whether it matches anywhere in a line without line breaks."""
        state: _State = (frozenset((self._begin,)), "")
        for char in (*line, ""):
            key = (state, char)
            if key in self._known:
                found = self._known[key]
            else:
                if len(self._known) >= _MOST_STATES:
                    self._known.clear()
                found = self._known[key] = self._next(state, char)
            if found is None:
                return True
            state = found
        return False

    def _next(self, state: _State, char: str) -> _State | None:
        """Where one character leads (empty: the end); None where the pattern has matched before it."""
        nodes, before = state
        here = _places(before, char)
        seen: set[int] = set()
        after: set[int] = {self._begin}
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            if node == 0:
                return None
            what = self._graph.what[node]
            if isinstance(what, re.Pattern):
                if char and what.match(char):
                    after.update(self._graph.to[node])
            elif what is None or what in here:
                waiting.extend(self._graph.to[node])
        return frozenset(after), _kind(char)


def _kind(char: str) -> str:
    return "w" if char.isalnum() or char == "_" else "-"


def _places(before: str, char: str) -> set[Assertion]:
    edge = (before == "w") != (bool(char) and _kind(char) == "w")
    here = {Assertion.EDGE if edge else Assertion.NO_EDGE}
    if not before:
        here.add(Assertion.START)
    if not char:
        here.add(Assertion.END)
    return here
