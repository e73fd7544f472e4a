"""Whether a file could match a pattern of a rule as well as one that a shell, or a recursive command, expands.

Both patterns are read as automata over the characters of an absolute path, and run side by side. Sets of characters
count as any character, so the answer is never a wrong no.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import takewhile
from typing import NamedTuple

from signoff.core.call import UNFOLLOWED
from signoff.policy.glob import wildcards
from signoff.policy.secret import secret_place
from signoff.policy.shell.file_patterns import ANY, STAR, Token, escaped, fits, is_wild, tokens_of
from signoff.policy.shell.filters import Filter
from signoff.policy.step_count import StepCount, Unclear

MOST_COMPARED = 150_000
"""The most steps of comparing the patterns of one call with rules and with known files."""
_EACH = 2
"""What it takes to compare one pair of positions."""

BELOW = "//"
"""Ends a pattern for everything below a directory, as a recursive command reads it."""
BELOW_SHOWN = "//."
"""The same for a command that skips hidden files."""

BELOW_TRACKED = "//:"
"""The same for a command that works on the files that git tracks there."""
_ENDS = (BELOW_SHOWN, BELOW_TRACKED, BELOW)

RUN = "**"
"""In a pattern of a rule: any characters."""

_LETTER = ""
"""Stands for any character that neither pattern names."""


class FileSet(NamedTuple):
    """A set of files that a command works on, as a file pattern."""

    pattern: str
    """A file pattern; it may end in `BELOW`, `BELOW_SHOWN` or `BELOW_TRACKED`."""
    filters: tuple[Filter, ...] = ()
    """Which of the files it leaves out."""


class PatternStep(NamedTuple):
    """One position of an automaton: what it takes, and whether it may take it repeatedly, or not at all."""

    chars: str | None = None
    """The only character that it takes; None for any."""
    repeats: bool = False
    slash: bool = False
    """Whether it also takes slashes."""
    dot: bool = True
    """Whether it also takes a dot at the start of a name."""
    whole: bool = False
    """Whether it takes whole directories only, each with its slash."""


_ANY_BELOW = PatternStep(repeats=True, slash=True)
"""What stands for anything below a directory."""
_DIRECTORIES = PatternStep(repeats=True, slash=True, whole=True)
"""What stands for any number of directories, also none, as some shells read `**/`."""


@lru_cache(maxsize=512)
def _of_rule(pattern: str) -> tuple[PatternStep, ...]:
    found: list[PatternStep] = []
    for kind, text in wildcards(pattern):
        match kind:
            case "directories":
                found.append(_DIRECTORIES)
            case "run":
                found.append(_ANY_BELOW)
            case "star":
                found.append(PatternStep(repeats=True))
            case "one" | "set":
                found.append(PatternStep())
            case _:
                found += [PatternStep(char) for char in text]
    return tuple(found)


@lru_cache(maxsize=512)
def _of_shell(pattern: str) -> tuple[PatternStep, ...] | None:
    """Return the automaton of a shell's pattern; None if shells read it differently."""
    found: list[PatternStep] = []
    rest: tuple[PatternStep, ...] = ()
    top, end = split_below(pattern)
    if end:
        pattern = top.rstrip("/") + "/"
        rest = (PatternStep(repeats=True, slash=True, dot=end != BELOW_SHOWN),)
    parts = pattern.replace("\\/", "/").split("/")
    for number, part in enumerate(parts):
        found += [PatternStep("/")] if number and not (found and found[-1].whole) else []
        if len(part) > 1 and not part.strip(STAR) and number < len(parts) - 1:
            found.append(_DIRECTORIES)
            continue
        try:
            tokens = tokens_of(part)
        except Unclear:
            return None
        for token, before in zip(tokens, (None, *tokens), strict=False):
            if token == before == STAR:  # git reads `**` as any characters
                found[-1] = _ANY_BELOW
                continue
            literal = isinstance(token, str) and token[0] == "\\"
            found.append(
                PatternStep(str(token)[1:] if literal else None, repeats=token == STAR, dot=tokens[0] == "\\.")
            )
    return (*found, *rest)


def split_below(pattern: str) -> tuple[str, str]:
    """Return the directory of a pattern for what is below one, and the end that says so, or ""."""
    end = next((end for end in _ENDS if pattern.endswith(end)), "")
    return pattern.removesuffix(end), end


def _meet(ours: Sequence[PatternStep], theirs: Sequence[PatternStep], count: StepCount) -> bool:
    """Return whether a path could take both through. Raises `Unclear` if the count ends."""
    todo = [(0, 0, True, True)]
    seen = set(todo)
    while todo:
        at, place, starts, whole = todo.pop()
        count.take(_EACH)
        if at == len(ours) and place == len(theirs):
            return True
        for state in _next(ours, at, theirs, place, starts=starts, whole=whole):
            if state not in seen:
                seen.add(state)
                todo.append(state)
    return False


State = tuple[int, int, bool, bool]
"""A position in both, whether a name starts here, and whether a run of whole directories may end here."""


def _next(
    ours: Sequence[PatternStep], at: int, theirs: Sequence[PatternStep], place: int, *, starts: bool, whole: bool
) -> Iterator[State]:
    one = ours[at] if at < len(ours) else None
    other = theirs[place] if place < len(theirs) else None
    if one is not None and one.repeats and (whole or not one.whole):
        yield at + 1, place, starts, True
    if other is not None and other.repeats and (starts or not other.whole):
        yield at, place + 1, starts, whole
    if one is None or other is None:
        return
    for char in {one.chars or _LETTER, other.chars or _LETTER, "/"}:
        if _takes(one, char, starts=False) and _takes(other, char, starts=starts):
            slash = char == "/"
            yield at + (not one.repeats), place + (not other.repeats), slash, slash or not one.repeats


def _takes(step: PatternStep, char: str, *, starts: bool) -> bool:
    if step.chars is not None and char != step.chars:
        return False
    if char == "/" and step.chars is None:
        return step.slash
    return not (char == "." and starts and not step.dot)


def may_share(rule: str, shell: str, count: StepCount) -> bool:
    """Whether a text could match both: a pattern of a rule, and one of a shell; yes if the count ends.

    If they are about paths, both are absolute, or begin with `**`, and have no `.` and `..`: see `normal_pattern`.
    """
    try:
        count.take(1 + len(shell) // 8)
        theirs = _of_shell(shell)
        return theirs is None or _meet(_of_rule(rule), theirs, count)
    except Unclear:
        return True


class KnownFiles:
    """What is known of the disk for one call: where paths lead, and so which files its patterns stand for."""

    __slots__ = ("_standing", "_trouble", "count", "leads")

    def __init__(self, leads: Mapping[str, str]) -> None:
        self.leads = leads
        """A path as the call has it, or a file among those that its patterns stand for -> symlinks resolved."""
        self._standing: dict[str, tuple[str, ...]] = {}
        self._trouble: dict[str, str] = {}
        self.count = StepCount(MOST_COMPARED)
        """Counts the comparisons. When it has ended, the call is in doubt, and every answer is a yes."""

    def standing_for(self, pattern: str) -> tuple[str, ...]:
        """Return those of the known files, written as the pattern is, that a shell's pattern stands for."""
        found = self._standing.get(pattern)
        if found is None:
            found = self._standing[pattern] = tuple(self._standing_for(pattern)) if self.leads else ()
        return found

    def trouble(self, pattern: str) -> str:
        """Return why one of the files that a pattern stands for must not be read; "" if nothing is known."""
        why = self._trouble.get(pattern)
        if why is None:
            reasons = (self._why_not(path) for path in self._standing_for(pattern))
            why = self._trouble[pattern] = next((one for one in reasons if one), "")
        return why

    def _why_not(self, path: str) -> str:
        leads = self.leads[path]
        if leads == UNFOLLOWED:
            return "stands for files that cannot be looked at, or for an option"
        why = secret_place(leads)
        return f"stands for {path}, which leads to {leads}, which {why}" if why else ""

    def _standing_for(self, pattern: str) -> Iterator[str]:
        if not self.leads:
            return
        theirs = _of_shell(pattern)
        start = _plain_start(theirs or ())
        anything = theirs is not None and theirs[len(start) :] == (_ANY_BELOW,)
        plain = "**" not in pattern and not split_below(pattern)[1]
        parts = [tokens_of(part) for part in pattern.replace("\\/", "/").split("/")] if theirs and plain else []
        try:
            self.count.take(1 + (len(pattern) + len(self.leads)) // 8)
            for file in self.leads:
                if file == pattern or theirs is None or (file.startswith(start) and anything):
                    yield file
                elif file.startswith(start):
                    steps = [PatternStep(char) for char in file] if not parts else ()
                    if _fits_parts(parts, file, self.count) if parts else _meet(steps, theirs, self.count):
                        yield file
        except Unclear:
            return  # the call is in doubt


def _fits_parts(parts: Sequence[Sequence[Token]], file: str, count: StepCount) -> bool:
    """Whether a file may be one that a pattern stands for, of which each part is within one directory."""
    names = file.split("/")
    return len(names) == len(parts) and all(map(partial(_fits_name, count), parts, names))


def _fits_name(count: StepCount, part: Sequence[Token], name: str) -> bool:
    if name.startswith(".") and (not part or part[0] != "\\."):
        return False
    return fits([token if isinstance(token, str) else ANY for token in part], name, count)


def _plain_start(steps: Sequence[PatternStep]) -> str:
    """Return the characters that a pattern begins with."""
    return "".join(one.chars or "" for one in takewhile(lambda one: one.chars is not None and not one.repeats, steps))


def normal_pattern(pattern: str, start: str) -> str | None:
    """Return a shell's pattern as an absolute one, from the directory `start`, without `.` and `..`.

    None if it is not known where it leads: `..` after a wildcard.
    """
    pattern, end = split_below(pattern)
    parts: list[str] = []
    for part in (pattern if pattern.startswith("/") else f"{escaped(start)}/{pattern}").split("/"):
        if part == "..":
            if parts and is_wild(parts[-1]):
                return None
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts) + (end if parts else end[1:])
