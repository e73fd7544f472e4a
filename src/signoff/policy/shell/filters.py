"""File name patterns that a program matches itself: `grep --include`, `rg -g`, pathspecs.

Unlike globs of a shell, their wildcards match a leading dot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from signoff.policy.secret import may_match_secret, secret_place

_MOST_CHOICES = 64
MOST_FILTERS = 200
"""The most patterns that are looked at for each file. With more, none is known to be left out."""
_MOST_BRACES = 8
_BRACES = re.compile(r"\{([^{}]*)\}")
_FIRST = re.compile(r"\[[^]]?[^]]*\]|\?|\*+")
_SAYS_NOTHING = re.compile(r"[*?./]*|\**\.[A-Za-z0-9]+")
_BETWEEN = re.compile(r"[|()^$,/:]")


class Filter(NamedTuple):
    """A pattern that includes or excludes files; if several match, the last one decides."""

    lets_in: bool
    pattern: str
    directories: bool = False
    """Whether it is matched against directories, with everything below them."""


def names_secret(pattern: str) -> str:
    """Return why a program may find a secret place by this pattern; "" if that is not expected.

    A pattern that says nothing about a name, such as `*` or `*.json`, is assumed to match ordinary names.
    """
    if pattern.count("{") > _MOST_BRACES:
        return "matches too many names to check"
    for number, choice in enumerate(_choices(pattern)):
        if number >= _MOST_CHOICES:
            return "matches too many names to check"
        plain = choice.replace("\\", "")
        for one in (choice, plain, *_hidden(plain)):
            if why := secret_place(one) or may_match_secret(one):
                return why
    return ""


def regex_names_secret(regex: str) -> str:
    """Like `names_secret`, for a regular expression, or several words separated by `:`, as `ack` takes them."""
    for piece in _BETWEEN.split(regex):
        plain = piece.replace("\\", "").replace(".*", "*").replace(".+", "*")
        for one in (plain, f".{plain.lstrip('.')}", f"*{plain}*" if len(plain) > 2 and plain[0] != "." else plain):
            if piece and (why := names_secret(one)):
                return why
    return ""


def keeps_out(filters: Sequence[Filter], path: str) -> bool:
    """Whether these filters certainly exclude a file. False where programs differ."""
    if not filters or len(filters) > MOST_FILTERS:
        return False
    parts = path.split("/")
    if any(one.directories and any(_matches(one.pattern, part) for part in parts[:-1]) for one in filters):
        return True
    files = [one for one in filters if not one.directories]
    out = bool(files) and files[0].lets_in
    for one in files:
        if one.lets_in:
            out = out and not _may_match(one.pattern, parts[-1])
        else:
            out = out or _matches(one.pattern, parts[-1])
    return out


def _choices(pattern: str) -> Iterator[str]:
    """Expand `{a,b}` in a pattern."""
    found = _BRACES.search(pattern)
    if found is None:
        yield pattern
        return
    for choice in found[1].split(","):
        yield from _choices(pattern[: found.start()] + choice + pattern[found.end() :])


def _hidden(pattern: str) -> Iterator[str]:
    """Yield the pattern with a dot in place of a wildcard at the start of its last part."""
    directory, slash, name = pattern.rpartition("/")
    found = _FIRST.match(name)
    if found is None or _SAYS_NOTHING.fullmatch(name):
        return
    rest = name[found.end() :]
    yield f"{directory}{slash}.{rest}"
    if found[0].startswith("*"):
        yield f"{directory}{slash}.*{rest}"
        if (second := _FIRST.match(rest)) is not None:
            yield f"{directory}{slash}.{rest[second.end() :]}"


def _plain(pattern: str) -> bool:
    return not any(char in pattern for char in "/\\{}[]")


def _matches(pattern: str, name: str) -> bool:
    """Whether the pattern matches in every program."""
    return _plain(pattern) and fnmatchcase(name, pattern)


def _may_match(pattern: str, name: str) -> bool:
    return not _plain(pattern) or fnmatchcase(name.lower(), pattern.lower())
