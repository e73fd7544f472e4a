"""Conditions on paths: which patterns they match, and which directory they are inside.

An allow rule must be sure: every path in the call must match, as written and with symlinks resolved. An ask or deny
rule must not be evaded: it is enough if any text of the call matches in any reading.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from posixpath import normpath

from signoff.policy.call_paths import Facts, PathText
from signoff.policy.glob import BadGlob, Glob, any_glob, is_visible
from signoff.policy.match import Links
from signoff.policy.match_result import YES, MatchResult, Truth
from signoff.policy.phrases import listed, shown
from signoff.policy.places import normal
from signoff.policy.touched_doubt import touched_doubt

_FREE = ("/", "**")
"""Patterns that start with these do not depend on the policy's root."""


class BadPath(ValueError):
    """An unusable path pattern or directory; the message says why and what to write."""


@dataclass(frozen=True, slots=True)
class PathCondition:
    """Paths of the call match one of the patterns and are inside one of the directories, if these are given."""

    patterns: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    """The directory itself counts as inside."""
    every: bool = False
    """Whether all paths must match (allow), or one is enough (ask, deny)."""
    absolute: tuple[Glob, ...] = field(init=False, repr=False, compare=False)
    relative: tuple[Glob, ...] = field(init=False, repr=False, compare=False)
    """Globs over absolute paths, and globs over paths relative to the policy's root."""
    needles: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Every match contains one of these texts; empty if directories or bare wildcards rule that out."""
    anchored: bool = field(init=False, repr=False, compare=False)
    needs_root: bool = field(init=False, repr=False, compare=False)
    text: str = field(init=False, compare=False)
    no: MatchResult = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises `BadGlob` or `BadPath` if a pattern or directory is unusable."""
        patterns = [_pattern(written) for written in self.patterns]
        directories = tuple(read_directory(written) for written in self.directories)
        if not self.every:
            patterns += [itself for pattern in patterns if (itself := _directory_itself(pattern))]
        relative = [pattern for pattern in patterns if not pattern.startswith(_FREE)]
        object.__setattr__(self, "directories", directories)
        object.__setattr__(self, "absolute", tuple(Glob(one) for one in patterns if one not in relative))
        object.__setattr__(self, "relative", tuple(Glob(one) for one in relative))
        needles = tuple(glob.needle for glob in (*self.absolute, *self.relative))
        object.__setattr__(self, "needles", needles if all(needles) and not directories else ())
        anchored = bool(directories) or not all(pattern.startswith("**") for pattern in patterns)
        object.__setattr__(self, "anchored", anchored)
        object.__setattr__(self, "needs_root", bool(relative) or not all(one.startswith("/") for one in directories))
        object.__setattr__(self, "text", f"on a path {self._words()}")
        object.__setattr__(self, "no", MatchResult.no(f"no argument is a path {self._words()}"))

    @property
    def stands_for(self) -> str:
        """The argument whose value a plain text in a rule's examples is."""
        return "path"

    @property
    def links(self) -> Links:
        return Links.NAMED if self.every else Links.ANY

    def find(self, facts: Facts) -> MatchResult:
        return self._every(facts) if self.every else self._some(facts)

    def _every(self, facts: Facts) -> MatchResult:
        paths = facts.named_paths
        if not paths:
            return MatchResult.no("no argument has the name of a path")
        unknown = None
        for path in paths:
            doubt = self._doubt(path, facts)
            for form in path.forms:
                truth = self._holds(form, facts.root)
                if truth is Truth.NO:
                    return MatchResult.no(f"{shown(path.argument)} is not a path {self._words()}")
                if truth is Truth.UNKNOWN:
                    doubt = doubt or "holds control characters, which no wildcard matches"
            if doubt:
                unknown = MatchResult.unknown(f"{shown(path.argument)} {doubt}")
        return unknown or YES

    def _some(self, facts: Facts) -> MatchResult:
        if self.needles and (haystack := facts.haystack) and not any(needle in haystack for needle in self.needles):
            return touched_doubt(self, facts) or self.no  # fast path for most calls
        unknown = None
        for path in facts.any_paths:
            doubt = path.doubt if facts.root else self._doubt(path, facts)
            for form in path.forms:
                truth = self._holds(form, facts.root)
                if truth is Truth.YES:
                    return YES
                if truth is Truth.UNKNOWN:
                    doubt = doubt or "holds control characters, which no wildcard matches"
            if doubt and unknown is None:
                unknown = MatchResult.unknown(f"{shown(path.argument)} {doubt}")
        if unknown is None or unknown.strange:
            unknown = touched_doubt(self, facts) or unknown
        return unknown or self.no

    def is_about(self, path: PathText, facts: Facts) -> bool:
        """Whether a file that a command may touch is, or may be, such a path."""
        return any(self._holds(form, facts.root) is not Truth.NO for form in path.forms)

    def may_hold(self, pattern: str, facts: Facts, *, floating: bool = True) -> bool:
        """Whether a file pattern of a command may stand for such a path."""
        from signoff.policy.shell.common_files import may_share, normal_pattern  # few policies need it

        if facts.root is None and self.needs_root:
            return True
        rules = [
            one.pattern for one in self.absolute if floating or self.directories or not one.pattern.startswith("**")
        ]
        rules += [f"{(facts.root or '').rstrip('/')}/{one.pattern}" for one in self.relative]
        places = [one if one.startswith("/") else normal(f"{facts.root or '/'}/{one}") for one in self.directories]
        within = [part for place in places for part in (place, f"{place.rstrip('/')}/**")]
        wanted = [some for some, given in ((rules, self.patterns), (within, self.directories)) if given]
        for start in facts.starts():
            whole = normal_pattern(pattern, start)
            if whole is None or pattern.startswith("~"):
                return True
            if all(any(may_share(rule, whole, facts.files.count) for rule in some) for some in wanted):
                return True
        return False

    def _holds(self, form: str, root: str | None) -> Truth:
        if not (self.directories or self.relative):
            return any_glob(self.absolute, form)
        if self.directories and not any(is_inside(form, directory, root) for directory in self.directories):
            return Truth.UNKNOWN if self.needs_root and root is None else Truth.NO
        if not self.patterns:
            return Truth.YES
        truth = any_glob(self.absolute, form)
        if truth is Truth.YES or not self.relative:
            return truth
        if root is None:
            return Truth.UNKNOWN
        start = f"{root}/" if root != "/" else root
        below = any_glob(self.relative, form[len(start) :]) if form.startswith(start) and form != start else Truth.NO
        return truth if below is Truth.NO else below

    def _doubt(self, path: PathText, facts: Facts) -> str:
        if path.doubt:
            return path.doubt
        if facts.root is None and (self.needs_root or (self.anchored and path.floating)):
            return "is relative, and the policy has no root directory"
        return ""

    def _words(self) -> str:
        like = f"like {listed(self.patterns)}" if self.patterns else ""
        inside = f"inside {listed(self.directories)}" if self.directories else ""
        return " and ".join(filter(None, (like, inside)))


def _pattern(written: str) -> str:
    plain = normpath(_check(written))
    if plain == ".":
        raise BadPath("`.` is a directory, not a pattern; write `inside: .`")
    return plain.replace("//", "/")


def _directory_itself(pattern: str) -> str | None:
    """For `secrets/**` return `secrets`: moving or deleting the directory affects its content. Otherwise None."""
    directory = pattern.removesuffix("/**")
    return None if directory in ("", "**", pattern) else directory


def read_directory(written: str) -> str:
    if "*" in written or "?" in written:
        raise BadPath("`inside` takes a directory, not a pattern; use `matches` for patterns")
    plain = normpath(_check(written.rstrip("/") or written[:1]))
    return plain.replace("//", "/")


def _check(pattern: str) -> str:
    if not pattern:
        raise BadPath("an empty path matches nothing; `.` is the root directory of the policy")
    if not is_visible(pattern):
        raise BadGlob("a path cannot hold control characters or line breaks")
    if pattern.startswith("~") or "$" in pattern:
        raise BadPath("`~` and `$` are not expanded; write an absolute path, or `**/name` for a name anywhere")
    if "\\" in pattern:
        raise BadPath("directories are separated by `/`")
    if len(pattern) > 1 and pattern.endswith("/"):
        raise BadPath(f"a path does not end in `/`; write `{pattern}**` for what is inside")
    if ".." in pattern.split("/") or "." in pattern.split("/")[1:]:
        raise BadPath("a pattern cannot hold `.` or `..`; write the resolved path")
    return pattern


def is_inside(path: str, directory: str, root: str | None) -> bool:
    """Whether an absolute path is a directory or inside it. A relative directory starts from the root."""
    if not directory.startswith("/"):
        if root is None:
            return False
        directory = root if directory == "." else f"{root.rstrip('/')}/{directory}"
    return path == directory or path.startswith(directory if directory == "/" else directory + "/")
