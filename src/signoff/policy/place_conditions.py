"""Conditions on the kind of a path: secret, hidden, sensitive, outside a directory, or code that is run later."""

from __future__ import annotations

from dataclasses import dataclass, field

from signoff.policy.call_paths import Facts, PathText
from signoff.policy.match import Links
from signoff.policy.match_result import YES, MatchResult
from signoff.policy.paths import is_inside
from signoff.policy.phrases import listed, shown
from signoff.policy.places import runs_later
from signoff.policy.secret import may_match_secret, secret_place
from signoff.policy.sensitive_files import sensitive_place
from signoff.policy.touched_doubt import touched_doubt

_NAMED = "is named by settings of the project, so tools read settings or code from it"
KINDS = ("secret", "hidden", "code", "sensitive")


@dataclass(frozen=True, slots=True)
class PlaceCondition:
    """Paths of the call are of a kind, or outside all the directories: all of them in allow rules, otherwise one.

    Looks at the arguments that are named as paths, as written and with symlinks resolved; each form counts. To ask or
    deny, also at the files that a shell command touches.
    """

    kind: str = ""
    """`secret` (keys, passwords, tokens are stored there), `hidden` (a name starts with a dot), `code` (what is written
    there is run later), `sensitive` (either, or of a kind that often is: see `sensitive_files`). Where the disk is
    seen, what settings of the project name is of the last two kinds."""
    wanted: bool = True
    outside: tuple[str, ...] = ()
    every: bool = False
    text: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        words = (
            f"outside {listed(self.outside)}" if self.outside else f"that is {'' if self.wanted else 'not '}{self.kind}"
        )
        object.__setattr__(self, "text", f"on a path {words}")

    @property
    def stands_for(self) -> str:
        """The argument whose value a plain text in a rule's examples is."""
        return "path"

    @property
    def links(self) -> Links:
        return Links.NAMED if self.every else Links.ANY

    def find(self, facts: Facts) -> MatchResult:
        paths = facts.named_paths if self.every else [*facts.named_paths, *facts.touched_paths]
        if not paths and (self.every or facts.touched is None):
            return MatchResult.no("no argument has the name of a path")
        doubt = ""
        for path in paths:
            held = self._holds(path, facts)
            if self.every and not held:
                return MatchResult.no(f"{shown(path.argument)} is not a path {self.text.removeprefix('on a path ')}")
            if held and not self.every:
                if why := self._why(path, facts):
                    facts.note(why)
                return YES
            doubt = doubt or (f"{shown(path.argument)} {path.doubt}" if path.doubt else "")
        if doubt:
            return MatchResult.unknown(doubt)
        if self.every:
            return YES
        if found := touched_doubt(self, facts):
            return found
        return MatchResult.no(f"no path in the call is {self.text.removeprefix('on a path ').removeprefix('that is ')}")

    def may_hold(self, pattern: str, facts: Facts, *, floating: bool = True) -> bool:
        """Whether a file pattern of a command may stand for such a path."""
        if self.outside:
            return pattern.startswith(("/", "~")) or ".." in pattern.split("/")
        if not floating:
            return False
        if not self.wanted or self.kind in ("code", "sensitive"):
            return True
        return "/." in f"/{pattern}" if self.kind == "hidden" else bool(may_match_secret(pattern))

    def is_about(self, path: PathText, facts: Facts) -> bool:
        """Whether a file that a command may touch is such a path."""
        return self._holds(path, facts)

    def _holds(self, path: PathText, facts: Facts) -> bool:
        if self.outside:
            return any(not any(is_inside(form, one, facts.root) for one in self.outside) for form in path.forms)
        of_kind = any(self._is(form, facts) for form in path.forms)
        return of_kind is self.wanted

    def _is(self, form: str, facts: Facts) -> str | bool:
        if self.kind == "hidden":
            start = len(facts.root or "") if facts.root and form.startswith(f"{facts.root}/") else 0
            return "/." in form[start:]
        if self.kind == "secret":
            return secret_place(form)
        known = sensitive_place(form, facts.root or "") if self.kind == "sensitive" else runs_later(form)
        return known or (_NAMED if form in facts.call.named else "")

    @property
    def minds_settings(self) -> bool:
        """Whether it is about what settings of the project name."""
        return self.kind in ("code", "sensitive")

    def _why(self, path: PathText, facts: Facts) -> str:
        if self.outside or self.kind == "hidden" or not self.wanted:
            return ""
        why = next((said for form in path.forms if isinstance(said := self._is(form, facts), str) and said), "")
        return f"{shown(path.argument)} {why}"
