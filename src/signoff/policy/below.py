"""The condition that an argument is a path inside a directory, written plainly, of an ordinary file."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from typing import ClassVar
from urllib.parse import unquote

from signoff.core.call import UNFOLLOWED, Veiled
from signoff.policy.call_paths import Facts, is_below
from signoff.policy.keypath import ABSENT, KeyPath
from signoff.policy.match import Links
from signoff.policy.match_result import YES, MatchResult
from signoff.policy.operators import kind_of
from signoff.policy.paths import read_directory
from signoff.policy.phrases import shown
from signoff.policy.places import is_too_long, normal
from signoff.policy.sensitive_files import sensitive_place

_ESCAPES = re.compile(r"\\|%(?:00|2e|2f|5c)", re.IGNORECASE)
_BLANK = ("", ".", "..")


@dataclass(frozen=True, slots=True)
class BelowCondition:
    """An argument is a path inside a directory.

    With `every`, in allow rules: a single path without `..` or another odd step, with no link on its way, that is not
    sensitive (see `sensitive_files`), and not the directory itself. Otherwise any spelling of a path in the directory,
    or of the directory, and any that leads there.
    """

    key: KeyPath
    directory: str
    every: bool = False
    text: str = field(init=False, compare=False)
    no: MatchResult = field(init=False, repr=False, compare=False)
    links: ClassVar[Links] = Links.ANY

    def __post_init__(self) -> None:
        """Raises `BadPath` if the directory is unusable."""
        object.__setattr__(self, "directory", read_directory(self.directory))
        what = (
            f"{shown(self.key.text)} is {'an ordinary file' if self.every else 'a path'} below {shown(self.directory)}"
        )
        object.__setattr__(self, "text", f"where {what}")
        object.__setattr__(self, "no", MatchResult.no(what.replace(" is ", " is not ", 1)))

    @property
    def minds_settings(self) -> bool:
        """Whether it is about what settings of the project name."""
        return self.every

    def find(self, facts: Facts) -> MatchResult:
        value = self.key.in_args(facts.call.args)
        if value is ABSENT:
            return MatchResult.no(f"{shown(self.key.text)} is not given")
        if not isinstance(value, str) or isinstance(value, Veiled):
            kind = "a secret" if isinstance(value, Veiled) else kind_of(value)
            return MatchResult.unknown(f"{shown(self.key.text)} is {kind}, not a path")
        if not self.every:
            return YES if self._may_hold(value, facts) else self.no
        if not _is_plain(value):
            return MatchResult.no(f"{shown(self.key.text)} is not a path that is written plainly")
        if not self._holds(value, facts):
            return self.no
        if facts.call.resolved.get(value, value) != value:
            return MatchResult.no(f"{shown(self.key.text)} leads elsewhere by a link")
        if why := why_sensitive(value, facts):
            return MatchResult.no(f"{shown(self.key.text)} {why}")
        return YES

    def _holds(self, path: str, facts: Facts) -> bool:
        start = facts.call.start
        if (not start or start == facts.root) and path.startswith("/") == self.directory.startswith("/"):
            # Both start from the same directory, whichever that is.
            return self.directory == "." or path.startswith(f"{self.directory.rstrip('/')}/")
        directory = _from(facts.root, self.directory)
        forms = [normal(posixpath.join(one, path)) for one in facts.starts()] if directory else []
        return bool(forms) and all(form != directory and is_below(form, directory) for form in forms)

    def _may_hold(self, path: str, facts: Facts) -> bool:
        directory = _from(facts.root, self.directory) or normal(f"/{self.directory}")
        forms = {*facts.readings(path), *(_spelled_out(path, start) for start in facts.starts())}
        return any(is_below(form, directory) for form in (*forms, facts.call.resolved.get(path, "")))


def _from(root: str | None, directory: str) -> str:
    """Return a directory as an absolute path; "" if it is not known where relative ones start from."""
    if directory.startswith("/"):
        return directory
    return normal(f"{root}/{directory}") if root is not None else ""


def _is_plain(path: str) -> bool:
    # Some tools ignore blanks around a step of a path, or invisible characters; some decode `%2e`.
    steps = path.split("/")[path.startswith("/") :]
    return path.isprintable() and not _ESCAPES.search(path) and all(step.strip() not in _BLANK for step in steps)


def why_sensitive(path: str, facts: Facts) -> str:
    """Return why no directory covers a path, in words that follow it; "" if one does."""
    if is_too_long(path):
        return "is longer than a path can be"
    if facts.call.resolved.get(path) == UNFOLLOWED:
        return "cannot be looked at completely"
    places = [path] if facts.call.start in ("", facts.root) else [path, facts.lexical(path)]
    if why := next((why for one in places if (why := sensitive_place(one, facts.root or ""))), ""):
        return why
    return "is named by settings of the project" if facts.lexical(path) in facts.call.named else ""


def _spelled_out(path: str, start: str) -> str:
    """Normalize a path: decode `%` escapes, drop hidden characters, join it to the start directory, resolve `..`."""
    plain = unquote(path).replace("\\", "/")
    steps = "/".join("".join(filter(str.isprintable, step)).strip() for step in plain.split("/"))
    return normal(posixpath.join(start, steps))
