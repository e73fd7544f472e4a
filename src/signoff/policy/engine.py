"""A policy: an ordered list of rules, and how it decides about a call.

- A deny rule that matches wins, wherever it is in the list. Otherwise the first rule that matches decides. If no rule
  matches, the policy abstains.
- Doubt (a condition that cannot be evaluated) never helps a call. In a deny rule, doubt asks at least. In an ask rule,
  it counts as a match. In an allow rule, it counts as no match.
- A rule that raises an exception asks, whatever its effect.
- `otherwise: deny` denies in list order: it denies calls that no rule above it names. A call that a rule above matches
  only in doubt is not named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from signoff.core.call import Call
from signoff.core.verdict import ANYONE, Effect, Verdict
from signoff.policy.call_paths import Facts, PathText, path_texts
from signoff.policy.glob import is_visible
from signoff.policy.index import Alternative, Candidate, Index, Shelf
from signoff.policy.joint_requirement import together
from signoff.policy.match import Links
from signoff.policy.match_result import MatchResult, Truth
from signoff.policy.places import is_too_long, normal
from signoff.policy.rule import Rule
from signoff.policy.strictest_verdict import strictest

if TYPE_CHECKING:
    from signoff.policy.explain import Explanation
    from signoff.policy.lint import Problem
    from signoff.policy.shell.command_facts import ShellFacts
    from signoff.policy.shell.common_files import FileSet

IsAbout = Callable[[PathText, Facts], bool]
_SECRET, _RULES = 6, 20
"""The steps that it takes to compare a file with the known secret places, and with a condition on paths."""


class FileWatch(NamedTuple):
    """What tells which files matter to rules that ask or deny, if a command in the call touches them."""

    about: Callable[[str, str], bool]
    """Takes the name of a file in the command, and where it leads."""
    thorough: bool
    """Whether a rule that can apply to the call looks at files. Otherwise it is about secrets only, for rules that say
    what a command may read."""
    cost: int
    """The steps that one file takes."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Rules and their source. Create one with `parse_policy`, `Policy.from_rules` or `config.load_policy`."""

    rules: tuple[Rule, ...]
    file: str = ""
    name: str = ""
    """Tells layers apart. Generated ids of rules start with it."""
    root: str | None = None
    """The absolute directory that relative paths start from."""
    revision: str = ""
    """Digest of the rules. It changes with their content and order, not with comments or layout."""
    written: object = field(default=None, repr=False, compare=False)
    """The rules as written, as JSON values. None if they were not parsed from anything written."""
    _index: Index = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.root is not None:
            if not self.root.startswith("/"):
                raise ValueError(f"the root of a policy must be an absolute path, not {self.root!r}")
            object.__setattr__(self, "root", normal(self.root))
        object.__setattr__(self, "_index", Index(self.rules))

    @classmethod
    def from_rules(
        cls, rules: Iterable[Mapping[str, Any]], *, file: str = "<rules>", name: str = "", root: str | None = None
    ) -> Policy:
        """Create a policy from rules as mappings, written as in a file. Raises `PolicyError` if they are invalid."""
        from signoff.policy.parse import parse_rules  # deciding needs no parser

        parsed = parse_rules(list(rules), file=file, name=name, root=root)
        return cls(root=root, name=name, **parsed._asdict())

    def judge(self, call: Call) -> Verdict:
        """Return the verdict of this policy alone. If no rule matches, it asks."""
        if call.claimed:
            return self._with_claims(call) or self.silence(call)
        shelf = self._index.shelf(call.tool)
        if shelf.certain and not call.unreadable and not call.unseen:
            return shelf.answer or shelf.silence(call)
        facts = Facts(call, self.root)
        return _remarked(_weigh(shelf, facts) or shelf.silence(call), facts, shelf)

    def judge_layer(self, call: Call) -> Verdict | None:
        """Like `judge`, but return None if no rule matches: one layer of several then abstains."""
        if call.claimed:
            return self._with_claims(call)
        shelf = self._index.shelf(call.tool)
        if shelf.certain and not call.unreadable and not call.unseen:
            return shelf.answer
        facts = Facts(call, self.root)
        verdict = _weigh(shelf, facts)
        return _remarked(verdict, facts, shelf) if verdict is not None else None

    def _with_claims(self, call: Call) -> Verdict | None:
        """Judge the call with and without the labels that the tool's provider claims; the stricter verdict wins."""
        plain = self.judge_layer(call.changed(claimed=frozenset()))
        marked = self.judge_layer(call.changed(claimed=frozenset(), labels=call.labels | call.claimed))
        found = strictest(one for one in (plain, marked) if one is not None)
        lenient = found is not None and found.effect is Effect.ALLOW and (plain is None or marked is None)
        return None if lenient else found

    def silence(self, call: Call) -> Verdict:
        """Return the verdict for a call that no rule matches."""
        return self._index.shelf(call.tool).silence(call)

    def nearly(self, call: Call) -> str:
        """Return the single thing that kept a rule from allowing the call, or "" if no rule came that close."""
        shelf = self._index.shelf(call.tool)
        facts = Facts(call, self.root)
        return facts.remark if not shelf.certain and _weigh(shelf, facts) is None and facts.close else ""

    def explain(self, call: Call) -> Explanation:
        """Return the verdict with the deciding rule and its place, and the result of every other rule."""
        from signoff.policy.explain import explain  # used by people and tests only

        return explain((self,), call, self.judge(call))

    @cached_property
    def wants_paths(self) -> bool:
        """Whether any rule looks at paths, so that resolving symlinks beforehand changes what it sees."""
        return any(rule.looks_at_paths for rule in self.rules)

    def paths_of(self, call: Call) -> tuple[str, ...]:
        """Return the texts, as written, that rules about the tool may treat as paths: the keys of `Call.resolved`.

        Empty if no rule about the tool looks at paths.
        """
        links = self._index.shelf(call.tool).links
        if not links:
            return ()
        found: list[str] = []
        if links & {Links.NAMED, Links.ANY}:
            texts = path_texts(call.args, named_only=Links.ANY not in links)
            found += [text for _, text, _ in texts if text and _could_be_path(text)]
        return tuple(dict.fromkeys((*found, *self.commanded_paths_of(call))))

    def commanded_paths_of(self, call: Call) -> tuple[str, ...]:
        """Return those of `paths_of` that a command in the call changes into (`cd`), reads or names."""
        links = self._index.shelf(call.tool).links
        found: list[str] = []
        if Links.ANY in links and (touched := Facts(call, self.root).touched) is not None:
            found += (*touched.paths, *touched.words)
        if Links.COMMAND in links:
            found += [path for shell in _commands(call) for path in shell.places]
        if Links.WORDS in links:
            from signoff.policy.first_words import paths_in  # few policies need it

            found += paths_in(call)
        return tuple(dict.fromkeys(found))

    def patterns_of(self, call: Call) -> tuple[FileSet, ...]:
        """Return the patterns of files that commands in the call read or write, if rules about the tool look at them.

        The files that they stand for, and where these lead, belong into `Call.resolved`, too. They can only tighten.
        """
        links = self._index.shelf(call.tool).links
        found: list[FileSet] = []
        if Links.ANY in links and (touched := Facts(call, self.root).touched) is not None:
            found += touched.sets
        if Links.COMMAND in links:
            found += [pattern for shell in _commands(call) for pattern in shell.patterns]
        return tuple(dict.fromkeys(found))

    def minds_settings(self, call: Call) -> bool:
        """Whether a rule that may be about the call looks at whether settings of the project name a file."""
        shelf, labels = self._index.shelf(call.tool), call.labels | call.claimed
        alternatives = (one for candidate in (*shelf.denies, *shelf.others) for one in candidate.alternatives)
        return any(
            getattr(condition, "minds_settings", False)
            for one in alternatives
            if one.may_carry(labels)
            for condition in one.conditions
        )

    def watch(self, call: Call) -> FileWatch | None:
        """Return what tells whether a rule that asks or denies is about a file that a command in the call touches.

        None if no such rule looks at files.
        """
        shelf = self._index.shelf(call.tool)
        alternatives = [one for candidate in (*shelf.denies, *shelf.others) for one in candidate.alternatives]
        if not any(map(_watching, alternatives)):
            return None
        labels = call.labels | call.claimed
        watching = [about for one in alternatives if one.may_carry(labels) for about in _watching(one)]
        if not watching:
            return FileWatch(_is_secret, thorough=False, cost=_SECRET)
        needles = _needles(one for one in alternatives if one.may_carry(labels))
        resolved: dict[str, str] = {}
        facts = Facts(call.changed(resolved=resolved), self.root)

        def about(path: str, leads: str) -> bool:
            if needles and "/." not in f"/{path}" and "//" not in path:
                forms = (leads, *(f"{start}/{path}" for start in facts.starts()))
                if not any(needle in form for needle in needles for form in forms):
                    return _is_secret(path, leads)
            resolved.clear()
            resolved[path] = leads
            text = facts.touched_path(path)
            return any(is_about(text, facts) for is_about in watching) or _is_secret(path, leads)

        return FileWatch(about, thorough=True, cost=_SECRET + len(needles) if needles else _RULES * len(watching))

    @cached_property
    def tool_names(self) -> frozenset[str]:
        """The tools that rules name in full, without wildcards."""
        globs = (glob for rule in self.rules for match in rule.matches for glob in match.tools)
        return frozenset(glob.literal for glob in globs if glob.literal is not None)

    @cached_property
    def warnings(self) -> tuple[Problem, ...]:
        """Lint warnings: valid but probably not meant, such as rules that never decide or timeouts that allow."""
        from signoff.policy.lint import warnings_of  # used by checks only

        return warnings_of(self.rules)

    def unknown_tools(self, known: Iterable[str]) -> tuple[Problem, ...]:
        """Return the tool names and patterns that match no known tool: probably misspelt, and then without effect."""
        from signoff.policy.lint import unknown_tools  # used by checks only

        return unknown_tools(self.rules, known)


def _watching(alternative: Alternative) -> list[IsAbout]:
    """Return what tells whether an alternative of a rule that asks or denies is about a file."""
    conditions = [one for one in alternative.conditions if not getattr(one, "every", True)]
    return [about for one in conditions if (about := getattr(one, "is_about", None)) is not None]


def _needles(alternatives: Iterable[Alternative]) -> tuple[str, ...]:
    """Return texts of which one is in each file that a rule is about; none if that is not known."""
    conditions = [one for alternative in alternatives for one in alternative.conditions]
    watching = [one for one in conditions if not getattr(one, "every", True) and hasattr(one, "is_about")]
    found: list[tuple[str, ...]] = [getattr(one, "needles", ()) for one in watching]
    return tuple(dict.fromkeys(needle for one in found for needle in one)) if all(found) else ()


def _is_secret(path: str, leads: str) -> bool:
    from signoff.policy.secret import is_plain, secret_place  # few policies need it

    named = path.removeprefix("./")
    if leads.endswith(named) and is_plain(leads):
        return False
    return bool(secret_place(leads)) or (not leads.endswith(named) and bool(secret_place(path)))


def _remarked(verdict: Verdict, facts: Facts, shelf: Shelf) -> Verdict:
    """Add to the reason what parsing the call showed: which command, and which word of it.

    That is what a rule found that decided. Where none is about more than the kind of call, it is what kept the call
    from being allowed.
    """
    if not facts.remark or verdict.effect is Effect.ALLOW:
        return verdict
    remark = next((facts.found[rule] for rule in verdict.rules if rule in facts.found), "")
    if not remark:
        deciding = (one for one in (*shelf.denies, *shelf.others) if one.rule.id in verdict.rules)
        remark = facts.remark if all(one.is_general for one in deciding) else ""
    if not remark or remark in verdict.reason:
        return verdict
    return replace(verdict, reason=f"{verdict.reason}: {remark}")


def _weigh(shelf: Shelf, facts: Facts) -> Verdict | None:
    call = facts.call
    doubts: list[tuple[Rule, MatchResult]] = []
    for candidate in shelf.denies:
        answer = candidate.find(facts)
        if isinstance(answer, Verdict):
            return answer
        if answer.truth is Truth.UNKNOWN:
            doubts.append((candidate.rule, answer))
    first = _first_match(shelf.others, facts, doubts)
    if doubts or call.unreadable or facts.unseen:
        return _in_doubt(first, doubts, facts)
    return first


def _first_match(
    candidates: Iterable[Candidate], facts: Facts, doubts: list[tuple[Rule, MatchResult]]
) -> Verdict | None:
    """Return the first verdict (a deny only from an `otherwise`), and collect doubts on the way there."""
    for candidate in candidates:
        answer = candidate.find(facts)
        if isinstance(answer, Verdict):
            if candidate.named_command(answer):  # a person has said in words that this program may run
                doubts[:] = [(rule, doubt) for rule, doubt in doubts if not doubt.strange]
            return answer
        if answer.raised or (answer.truth is Truth.UNKNOWN and candidate.rule.effect is not Effect.ALLOW):
            doubts.append((candidate.rule, answer))
    return None


def _in_doubt(first: Verdict | None, doubts: list[tuple[Rule, MatchResult]], facts: Facts) -> Verdict:
    """Ask, with the requirements of every rule that asks or might ask. Deny if an `otherwise` was reached."""
    unread = [f"the argument {argument} cannot be read" for argument in facts.call.unreadable]
    unread += [facts.unseen] if facts.unseen else []
    errors = (*(f"{rule.id}: {finding.why}" for rule, finding in doubts), *unread)
    asking = [rule for rule, _ in doubts if rule.effect is Effect.ASK]
    deciding = [rule.id for rule in asking or [rule for rule, _ in doubts]]
    requirements = [rule.requirement for rule in asking]
    reason = f"{doubts[0][1].why}; rule “{doubts[0][0].id}” could not be checked" if doubts else unread[0]
    if first is not None and first.effect is Effect.DENY:
        return replace(first, reason=f"{first.reason}: {reason}", errors=errors)
    if doubts and doubts[0][0].effect is Effect.ASK and not doubts[0][1].raised:
        reason = f"{doubts[0][1].why}; rule “{doubts[0][0].id}” may be about it"  # all that is in doubt is who is asked
    if first is not None and first.effect is Effect.ASK:
        deciding = [*(rule.id for rule in asking), *first.rules]
        requirements.append(first.requirement)
        reason = reason if asking else first.reason
    return Verdict(
        effect=Effect.ASK,
        rules=tuple(deciding),
        reason=reason,
        requirement=together(requirements) if requirements else ANYONE,
        errors=errors,
    )


def _commands(call: Call) -> Iterator[ShellFacts]:
    """Yield what any argument does if it is a command line."""
    from signoff.policy.shell.command_facts import read_shell  # slow to import, and few policies need it

    return (read_shell(value) for value in call.args.values() if isinstance(value, str))


def _could_be_path(text: str) -> bool:
    return not is_too_long(text) and is_visible(text)
