"""Glob patterns over names, values and paths: case-sensitive, full match, in time linear in the text.

Over values and paths, `*` matches any characters except `/`, `**` any characters, `**/` any number of whole directories
(also none), `?` one character except `/`, `[a-z]` and `[!a-z]` one character of a set. Names have no directories: there
`*` matches any characters. A wildcard never matches a control character. For a text that would need that, the result
is unknown.

A pattern is split at `**` into parts, and each part at `*` into chunks of fixed length. Taking the earliest position
for each in turn never loses a match, so there is no backtracking, whatever the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from signoff.policy.match_result import Truth

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters: line breaks, text direction (bidi), invisible characters, and lone surrogates."""


def is_visible(text: str) -> bool:
    """Whether a text has no control characters."""
    return text.isprintable() or CONTROL.search(text) is None


class BadGlob(ValueError):
    """An invalid pattern; the message says why and what to write."""


class Leap(Enum):
    """What comes before a part of a pattern."""

    START = "nothing"
    RUN = "any run of characters"
    DIRECTORIES = "any number of whole directories"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of fixed length: plain text, or a regular expression if it has `?` or a set."""

    text: str
    length: int
    expression: re.Pattern[str] | None = None

    def stands_at(self, text: str, start: int) -> bool:
        if self.expression is None:
            return text.startswith(self.text, start)
        return self.expression.match(text, start) is not None

    def first(self, text: str, start: int, latest: int) -> int:
        """Return the first position from `start` to `latest` where it matches, or -1."""
        if self.expression is None:
            return text.find(self.text, start, latest + self.length)
        found = self.expression.search(text, start, latest + self.length)
        return -1 if found is None else found.start()


@dataclass(frozen=True, slots=True)
class GlobPart:
    """Chunks separated by `*`, which matches within one directory."""

    leap: Leap
    chunks: tuple[Chunk, ...]
    slashes: int

    @property
    def bare_leap(self) -> Leap | None:
        """Its leap, if only plain text follows; otherwise None."""
        return self.leap if len(self.chunks) == 1 and self.chunks[0].expression is None else None

    def earliest_end(self, text: str, start: int) -> int:
        """Return the earliest end of the part if its leap begins at `start`, or -1."""
        if self.leap is Leap.START:
            return self._run(text, start)
        while True:
            if self.leap is Leap.RUN:
                start = self.chunks[0].first(text, start, len(text))
                if start < 0:
                    return -1
            end = self._run(text, start)
            if end >= 0:
                return end
            slash = text.find("/", start)
            if slash < 0:
                return -1
            start = slash + 1

    def ends(self, text: str, start: int) -> bool:
        """Whether the part, with its leap beginning at `start`, can end where the text ends."""
        if self.leap is Leap.START:
            return self._closes(text, start)
        if len(self.chunks) == 1 and self.leap is Leap.RUN:
            begin = len(text) - self.chunks[0].length
            return begin >= start and self.chunks[0].stands_at(text, begin)
        directory = self._last_directory(text)
        if self.leap is Leap.DIRECTORIES:
            return directory >= start and self._closes(text, directory)
        begin = self.chunks[0].first(text, max(start, directory), len(text))
        return begin >= 0 and self._closes(text, begin)

    def _run(self, text: str, start: int) -> int:
        if not self.chunks[0].stands_at(text, start):
            return -1
        position = start + self.chunks[0].length
        for chunk in self.chunks[1:]:
            position = self._after(chunk, text, position)
            if position < 0:
                return -1
        return position

    def _closes(self, text: str, start: int) -> bool:
        last = self.chunks[-1]
        begin = len(text) - last.length
        if len(self.chunks) == 1:
            return start == begin and last.stands_at(text, begin)
        if not self.chunks[0].stands_at(text, start):
            return False
        position = start + self.chunks[0].length
        for chunk in self.chunks[1:-1]:
            position = self._after(chunk, text, position)
            if position < 0:
                return False
        return position <= begin and text.find("/", position, begin) < 0 and last.stands_at(text, begin)

    def _after(self, chunk: Chunk, text: str, position: int) -> int:
        """Return the earliest end of `chunk` after any characters within one directory, or -1."""
        slash = text.find("/", position)
        found = chunk.first(text, position, len(text) if slash < 0 else slash)
        return -1 if found < 0 else found + chunk.length

    def _last_directory(self, text: str) -> int:
        """Return where the directory begins in which the part must start: it crosses a known number of directories."""
        slash = len(text)
        for _ in range(self.slashes + 1):
            slash = text.rfind("/", 0, slash)
            if slash < 0:
                return 0
        return slash + 1


@dataclass(frozen=True, slots=True)
class Glob:
    """A compiled pattern. Two globs are equal if they are written the same."""

    pattern: str
    over_names: bool = False
    parts: tuple[GlobPart, ...] = field(init=False, repr=False, compare=False)
    literal: str | None = field(init=False, repr=False, compare=False)
    """The only text that it matches, if the pattern has no wildcard; otherwise None."""
    head: str = field(init=False, repr=False, compare=False)
    tail: str = field(init=False, repr=False, compare=False)
    """Prefix and suffix of every match. Most texts are rejected by these alone."""
    needle: str = field(init=False, repr=False, compare=False)
    """The longest plain text that every match contains; "" if there is none."""
    only_ends: bool = field(init=False, repr=False, compare=False)
    """Whether the pattern is only head and tail, with any characters between them."""

    def __post_init__(self) -> None:
        parts = tuple(_parts(self.pattern, self.over_names))
        first, last = parts[0].chunks[0], parts[-1].chunks[-1]
        only = first if len(parts) == 1 and len(parts[0].chunks) == 1 else None
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "literal", only.text if only and only.expression is None else None)
        object.__setattr__(self, "head", first.text if first.expression is None else "")
        object.__setattr__(self, "tail", last.text if last.expression is None else "")
        plain = [chunk.text for part in parts for chunk in part.chunks if chunk.expression is None]
        object.__setattr__(self, "needle", max(plain, key=len, default=""))
        object.__setattr__(self, "only_ends", [part.bare_leap for part in parts] == [Leap.START, Leap.RUN])

    def find(self, text: str) -> Truth:
        """Return whether all of `text` matches; unknown if a wildcard would match a control character."""
        if self.literal is not None:
            return Truth.YES if text == self.literal else Truth.NO
        if self.needle not in text:
            return Truth.NO
        if not (text.startswith(self.head) and text.endswith(self.tail) and self._fits(text)):
            return Truth.NO
        return Truth.YES if is_visible(text) else Truth.UNKNOWN

    def _fits(self, text: str) -> bool:
        if self.only_ends:
            return len(text) >= len(self.head) + len(self.tail)
        position = 0
        for part in self.parts[:-1]:
            position = part.earliest_end(text, position)
            if position < 0:
                return False
        return self.parts[-1].ends(text, position)


def any_glob(globs: Iterable[Glob], text: str) -> Truth:
    """Return whether one of several globs matches; unknown if none does and one might."""
    answer = Truth.NO
    for glob in globs:
        truth = glob.find(text)
        if truth is Truth.YES:
            return truth
        if truth is Truth.UNKNOWN:
            answer = truth
    return answer


_TOKEN = re.compile(
    r"(?P<directories>(?:^|(?<=/))\*\*+/) | (?P<run>\*\*+) | (?P<star>\*) | (?P<one>\?)"
    r"| \[(?P<negated>[!^]?)(?P<set>\]?[^\]]*)\] | (?P<open>\[) | (?P<plain>[^*?\[]+)",
    re.VERBOSE,
)


def wildcards(pattern: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a valid pattern over paths, each with its kind.

    The kinds are `directories` (`**/`), `run` (`**`), `star`, `one` (`?`), `set` and `plain`.
    """
    return ((str(token.lastgroup), token.group()) for token in _TOKEN.finditer(pattern))


@dataclass(slots=True)
class _Draft:
    """A chunk that is being read."""

    text: str = ""
    source: str = ""
    length: int = 0
    plain: bool = True

    def add_text(self, text: str) -> None:
        self.text += text
        self.source += re.escape(text)
        self.length += len(text)

    def add_set(self, source: str) -> None:
        self.plain = False
        self.source += source
        self.length += 1

    def done(self) -> Chunk:
        return Chunk(self.text, self.length, None if self.plain else re.compile(self.source, re.DOTALL))


def _parts(pattern: str, over_names: bool) -> Iterator[GlobPart]:
    if not pattern:
        raise BadGlob("an empty pattern matches nothing")
    if not is_visible(pattern):
        raise BadGlob("a pattern cannot hold control characters or line breaks; use `equals` or `regex`")
    leap, drafts = Leap.START, [_Draft()]
    for token in _TOKEN.finditer(pattern):
        match token.lastgroup:
            case "directories" if not over_names:
                yield _part(leap, drafts)
                leap, drafts = Leap.DIRECTORIES, [_Draft()]
            case "directories" | "run" | "star" if over_names or token.lastgroup == "run":
                yield _part(leap, drafts)
                leap, drafts = Leap.RUN, [_Draft()]
                drafts[0].add_text("/" if token.lastgroup == "directories" else "")
            case "star":
                drafts.append(_Draft())
            case "one":
                drafts[-1].add_set("." if over_names else "[^/]")
            case "set":
                drafts[-1].add_set(_set(token, over_names))
            case "open":
                raise BadGlob("`[` is never closed; write `[[]` for a bracket")
            case _:
                drafts[-1].add_text(token.group())
    yield _part(leap, drafts)


def _part(leap: Leap, drafts: list[_Draft]) -> GlobPart:
    return GlobPart(leap, tuple(draft.done() for draft in drafts), sum(draft.text.count("/") for draft in drafts))


def _set(token: re.Match[str], over_names: bool) -> str:
    members = token["set"]
    if not members:
        raise BadGlob(f"the set `{token.group()}` is empty")
    source, rest = "", members
    while rest:
        if len(rest) > 2 and rest[1] == "-":
            if rest[0] > rest[2]:
                raise BadGlob(f"the range `{rest[:3]}` runs backwards")
            source, rest = f"{source}{re.escape(rest[0])}-{re.escape(rest[2])}", rest[3:]
        else:
            source, rest = source + re.escape(rest[0]), rest[1:]
    return f"{'' if over_names else '(?!/)'}[{'^' if token['negated'] else ''}{source}]"
