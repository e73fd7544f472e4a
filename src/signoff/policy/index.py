"""An index of rules by tool: find once per tool which of a thousand rules can apply, and cache that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from signoff.core.call import Call
from signoff.core.verdict import Effect, Verdict
from signoff.policy.call_paths import Facts
from signoff.policy.glob import any_glob
from signoff.policy.match import Condition, LabelCondition, Links, Match, all_hold, links_of
from signoff.policy.match_result import MatchResult, Truth, any_holds
from signoff.policy.rule import Rule

MOST_SHELVES = 1024
LONGEST_NAME = 256

NOT_NAMED = Verdict(effect=Effect.ASK, reason="no rule names this tool")
NOT_MATCHED = Verdict(effect=Effect.ASK, reason="no rule matches this call")


@dataclass(frozen=True, slots=True)
class Known:
    """A condition with a known result: what matching the tool's name gave."""

    finding: MatchResult
    text: str = "the tool's name"

    def find(self, facts: Facts) -> MatchResult:
        return self.finding


@dataclass(frozen=True, slots=True)
class Alternative:
    """One alternative of a rule for a given tool, and its verdict."""

    conditions: tuple[Condition, ...]
    verdict: Verdict

    def may_carry(self, labels: frozenset[str]) -> bool:
        """Whether it may be about a call with these labels."""
        return not any(isinstance(one, LabelCondition) and one.labels.isdisjoint(labels) for one in self.conditions)

    @property
    def names_command(self) -> bool:
        """Whether it allows commands that it names by patterns."""
        return any(getattr(condition, "names_command", False) for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule that can apply to a tool, with only those of its alternatives that can."""

    rule: Rule
    alternatives: tuple[Alternative, ...]

    @property
    def certain(self) -> Verdict | None:
        """The verdict, if it does not depend on the call; otherwise None."""
        first = self.alternatives[0]
        return None if first.conditions else first.verdict

    @property
    def is_general(self) -> bool:
        """Whether it is about every call of a kind, whatever the arguments."""
        return all(isinstance(one, Known | LabelCondition) for any_of in self.alternatives for one in any_of.conditions)

    def named_command(self, answer: Verdict) -> bool:
        """Whether the rule gave this verdict because a pattern of it names the command."""
        return any(one.verdict is answer and one.names_command for one in self.alternatives)

    def find(self, facts: Facts) -> Verdict | MatchResult:
        """Return the verdict if the rule matches, otherwise why it does not."""
        facts.rule = self.rule.id
        doubts: list[MatchResult] = []
        for alternative in self.alternatives:
            finding = all_hold(alternative.conditions, facts)
            if finding.truth is Truth.YES:
                return alternative.verdict
            doubts.append(finding)
        return any_holds(doubts)


@dataclass(frozen=True, slots=True)
class Whitelist:
    """An `otherwise` and the rules above it, read for what they name: an allowlist."""

    otherwise: Candidate
    naming: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Listed(Candidate):
    """An ask rule above an `otherwise`: this rule or another must name the whole call it asks about."""

    whitelists: tuple[Whitelist, ...]

    def find(self, facts: Facts) -> Verdict | MatchResult:
        """Return the verdict if the rule matches, or that of the `otherwise` if only a part of the call is named."""
        answer = Candidate.find(self, facts)
        if not isinstance(answer, Verdict):
            return answer
        for one in self.whitelists:
            refused = one.otherwise.find(facts)
            if not isinstance(refused, Verdict):
                continue
            if any(isinstance(other.find(facts), Verdict) for other in one.naming):
                break
            why = self.rule.find_name(facts).why
            return replace(refused, reason=f"{refused.reason}: {self.rule.id} only covers a part of it: {why}")
        return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Everything that the policy can say about one tool."""

    denies: tuple[Candidate, ...]
    others: tuple[Candidate, ...]
    """Rules that ask or allow, and `otherwise` rules, in list order."""
    certain: bool
    """Whether every call of the tool gets the same verdict."""
    answer: Verdict | None
    """That verdict. None if no rule applies to the tool."""
    is_named: bool
    """Whether a rule names the tool."""
    labels: frozenset[str]
    """The labels that rules name for tools like it."""
    links: frozenset[Links]
    """Which texts need their symlinks resolved for the rules."""

    def silence(self, call: Call) -> Verdict:
        """Return the verdict if no rule matches."""
        return NOT_MATCHED if self.is_named or not self.labels.isdisjoint(call.labels) else NOT_NAMED


class Index:
    """Finds the shelf of a tool: exact names by lookup, patterns by trying each once per tool.

    Caches up to `MOST_SHELVES` shelves, for names of up to `LONGEST_NAME` characters.
    """

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self._exact: dict[str, list[tuple[int, int]]] = {}
        self._patterns: list[tuple[int, int]] = []
        self._shelves: dict[str, Shelf] = {}
        for at, rule in enumerate(rules):
            for number, match in enumerate(rule.matches):
                names = [glob.literal for glob in match.tools]
                if not names or None in names:
                    self._patterns.append((at, number))
                else:
                    for name in filter(None, names):
                        self._exact.setdefault(name, []).append((at, number))

    def shelf(self, tool: str) -> Shelf:
        """Return every rule that can apply to the tool."""
        found = self._shelves.get(tool)
        if found is None:
            found = self._build(tool)
            if len(tool) <= LONGEST_NAME:
                if len(self._shelves) >= MOST_SHELVES:
                    self._shelves.clear()
                self._shelves[tool] = found
        return found

    def _build(self, tool: str) -> Shelf:
        spots = sorted({*self._exact.get(tool, ()), *self._patterns})
        alternatives: dict[int, list[Alternative]] = {}
        naming: dict[int, list[Alternative]] = {}
        named = False
        for at, number in spots:
            match = self._rules[at].matches[number]
            if match.tools and any_glob(match.tools, tool) is Truth.NO:
                continue
            named = named or bool(match.tools)
            rule = self._rules[at]
            alternatives.setdefault(at, []).append(_alternative(rule, match, tool))
            if rule.naming:
                naming.setdefault(at, []).append(_alternative(rule, rule.naming[number], tool))
        found = {at: Candidate(self._rules[at], tuple(some)) for at, some in alternatives.items()}
        meant = {at: Candidate(self._rules[at], tuple(some)) for at, some in naming.items()}
        links = links_of(one for some in (found, meant) for one in _conditions(some.values()))
        return _shelf(_listed(found, meant) if meant else list(found.values()), named, links)


def _listed(found: dict[int, Candidate], meant: dict[int, Candidate]) -> list[Candidate]:
    """Return the candidates. Ask rules are limited to what is named above the `otherwise` rules below them."""
    whitelists: dict[int, Whitelist] = {}
    for at, candidate in found.items():
        if candidate.rule.otherwise:
            above = [number for number in found if number < at and found[number].rule.effect is not Effect.DENY]
            whitelists[at] = Whitelist(candidate, tuple(meant.get(number, found[number]) for number in above))
    return [
        Listed(one.rule, one.alternatives, tuple(some for number, some in whitelists.items() if number > at))
        if at in meant
        else one
        for at, one in found.items()
    ]


def _alternative(rule: Rule, match: Match, tool: str) -> Alternative:
    finding = match.find_tool(tool)
    conditions = match.conditions if finding.truth is Truth.YES else (Known(finding), *match.conditions)
    return Alternative(conditions, rule.verdict(match))


def _shelf(candidates: list[Candidate], named: bool, links: frozenset[Links]) -> Shelf:
    denies = tuple(one for one in candidates if one.rule.effect is Effect.DENY and not one.rule.otherwise)
    others = tuple(one for one in candidates if one.rule.effect is not Effect.DENY or one.rule.otherwise)
    certain, answer = True, None
    for candidate in denies or others:
        answer = candidate.certain
        certain = answer is not None
        break
    return Shelf(
        denies=denies,
        others=others,
        certain=certain,
        answer=answer,
        is_named=named,
        labels=frozenset[str]().union(
            *(one.labels for one in _conditions(candidates) if isinstance(one, LabelCondition))
        ),
        links=links,
    )


def _conditions(candidates: Iterable[Candidate]) -> Iterable[Condition]:
    return (condition for one in candidates for alternative in one.alternatives for condition in alternative.conditions)
