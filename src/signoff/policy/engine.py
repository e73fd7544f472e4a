"""A policy: ordered rules, and the one way they decide about a call.

Deny wins wherever it stands. Otherwise the first rule that matches answers, and where none does the policy abstains.
What cannot be evaluated never helps a call: in a deny rule it asks at least, in an ask rule it counts as a match, in
an allow rule it does not. A rule that raises asks, whatever it says. `otherwise: deny` is a rule that denies in its
turn: what comes to it is named by no rule above, and what is in doubt is not named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from signoff.core.call import Call
from signoff.core.verdict import ANYONE, Effect, Verdict
from signoff.policy.call_paths import Facts, path_texts
from signoff.policy.glob import is_visible
from signoff.policy.index import Candidate, Index, Shelf
from signoff.policy.match import Links
from signoff.policy.match_result import MatchResult, Truth
from signoff.policy.places import normal
from signoff.policy.requirement import together
from signoff.policy.rule import Rule
from signoff.policy.strictest import strictest

if TYPE_CHECKING:
    from signoff.policy.explain import Explanation
    from signoff.policy.lint import Problem

LONGEST_PATH = 4096


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Rules and their source. Create one with `parse_policy`, `Policy.from_rules` or `config.load_policy`."""

    rules: tuple[Rule, ...]
    file: str = ""
    name: str = ""
    """The name of the layer. Generated ids of rules start with it."""
    root: str | None = None
    """The absolute directory that relative paths start from."""
    revision: str = ""
    """Digest of what the rules say: changes with their content and order, not with comments or layout."""
    written: object = field(default=None, repr=False, compare=False)
    """The rules as written, as JSON values; None if they were not read from any."""
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
        """A policy from rules as mappings, written as in a file. Raises `PolicyError` as reading a file does."""
        from signoff.policy.parse import parse_rules  # who only judges needs no parser

        parsed = parse_rules(list(rules), file=file, name=name, root=root)
        return cls(root=root, name=name, **parsed._asdict())

    def judge(self, call: Call) -> Verdict:
        """The verdict of this policy alone; *ask* if no rule matches."""
        if call.claimed:
            return self._with_claims(call) or self.silence(call)
        shelf = self._index.shelf(call.tool)
        if shelf.certain and not call.unreadable:
            return shelf.answer or shelf.silence
        facts = Facts(call, self.root)
        return _remarked(_weigh(shelf, facts) or shelf.silence, facts)

    def judge_layer(self, call: Call) -> Verdict | None:
        """As `judge`, but None if no rule matches: as a layer, it abstains."""
        if call.claimed:
            return self._with_claims(call)
        shelf = self._index.shelf(call.tool)
        if shelf.certain and not call.unreadable:
            return shelf.answer
        facts = Facts(call, self.root)
        verdict = _weigh(shelf, facts)
        return _remarked(verdict, facts) if verdict is not None else None

    def _with_claims(self, call: Call) -> Verdict | None:
        """Whoever offers the tool claims labels for it: judged with them and without, and the stricter answer holds."""
        plain = self.judge_layer(call.changed(claimed=frozenset()))
        marked = self.judge_layer(call.changed(claimed=frozenset(), labels=call.labels | call.claimed))
        found = strictest(one for one in (plain, marked) if one is not None)
        lenient = found is not None and found.effect is Effect.ALLOW and (plain is None or marked is None)
        return None if lenient else found

    def silence(self, call: Call) -> Verdict:
        """What to say about a call no rule matches."""
        return self._index.shelf(call.tool).silence

    def nearly(self, call: Call) -> str:
        """The one condition that kept a rule from allowing this call; empty if no rule came that close."""
        shelf = self._index.shelf(call.tool)
        facts = Facts(call, self.root)
        return facts.remark if not shelf.certain and _weigh(shelf, facts) is None and facts.close else ""

    def explain(self, call: Call) -> Explanation:
        """The verdict with its rule and place, and the result of every other rule."""
        from signoff.policy.explain import explain  # only people and tests need it

        return explain((self,), call, self.judge(call))

    @cached_property
    def wants_paths(self) -> bool:
        """Whether any rule checks paths, so that links must be followed first."""
        return any(rule.looks_at_paths for rule in self.rules)

    def paths_of(self, call: Call) -> tuple[str, ...]:
        """The texts in a call that rules about its tool may read as paths, as written: the keys of `Call.resolved`.

        Empty if no rule about the tool checks paths.
        """
        links = self._index.shelf(call.tool).links
        if not links:
            return ()
        found: list[str] = []
        if links - {Links.COMMAND}:
            texts = path_texts(call.args, named_only=Links.ANY not in links)
            found += [text for _, text, named in texts if text and (named or _could_be_path(text))]
        return tuple(dict.fromkeys((*found, *self.commanded_paths_of(call))))

    def commanded_paths_of(self, call: Call) -> tuple[str, ...]:
        """Those of `paths_of` that a command in the call goes to or reads."""
        links = self._index.shelf(call.tool).links
        found: list[str] = []
        if Links.ANY in links:
            found += Facts(call.changed(resolved={}), self.root).commanded
        if Links.COMMAND in links:
            commands = (value for value in call.args.values() if isinstance(value, str))
            unfollowed = Facts(call.changed(resolved={}), self.root)
            found += [path for command in commands for path in unfollowed.shell(command).places]
        return tuple(dict.fromkeys(found))

    @cached_property
    def tool_names(self) -> frozenset[str]:
        """The tools that rules name in full."""
        globs = (glob for rule in self.rules for match in rule.matches for glob in match.tools)
        return frozenset(glob.literal for glob in globs if glob.literal is not None)

    @cached_property
    def warnings(self) -> tuple[Problem, ...]:
        """Rules that are valid but probably not meant: rules that never decide, a timeout that allows …"""
        from signoff.policy.lint import warnings_of  # only checks need it

        return warnings_of(self.rules)

    def unknown_tools(self, known: Iterable[str]) -> tuple[Problem, ...]:
        """The tool names and patterns that match no known tool: they are probably misspelt, and have no effect."""
        from signoff.policy.lint import unknown_tools  # only checks need it

        return unknown_tools(self.rules, known)


def _remarked(verdict: Verdict, facts: Facts) -> Verdict:
    """The verdict, with what the parsed call showed: which command, and which word of it."""
    if not facts.remark or verdict.effect is Effect.ALLOW or verdict.reason.endswith(facts.remark):
        return verdict
    return replace(verdict, reason=f"{verdict.reason}: {facts.remark}")


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
    if doubts or call.unreadable:
        return _in_doubt(first, doubts, call)
    return first


def _first_match(
    candidates: Iterable[Candidate], facts: Facts, doubts: list[tuple[Rule, MatchResult]]
) -> Verdict | None:
    """The first verdict, which denies only by an `otherwise`; on the way there, notes what stands in its way."""
    for candidate in candidates:
        answer = candidate.find(facts)
        if isinstance(answer, Verdict):
            return answer
        if answer.raised or (answer.truth is Truth.UNKNOWN and candidate.rule.effect is not Effect.ALLOW):
            doubts.append((candidate.rule, answer))
    return None


def _in_doubt(first: Verdict | None, doubts: list[tuple[Rule, MatchResult]], call: Call) -> Verdict:
    """Ask, on the terms of every rule that asks or might have; deny where an `otherwise` was come to."""
    unread = [f"the argument {argument} cannot be read" for argument in call.unreadable]
    errors = (*(f"{rule.id}: {finding.why}" for rule, finding in doubts), *unread)
    asking = [rule for rule, _ in doubts if rule.effect is Effect.ASK]
    deciding = [rule.id for rule in asking or [rule for rule, _ in doubts]]
    requirements = [rule.requirement for rule in asking]
    reason = f"{doubts[0][0].id} could not be checked: {doubts[0][1].why}" if doubts else unread[0]
    if first is not None and first.effect is Effect.DENY:
        return replace(first, reason=f"{first.reason}: {reason}", errors=errors)
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


def _could_be_path(text: str) -> bool:
    return len(text) <= LONGEST_PATH and is_visible(text)
