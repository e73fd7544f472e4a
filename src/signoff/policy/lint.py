"""Lint a policy: find what is valid but probably not meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from signoff.core.verdict import Effect, OnTimeout
from signoff.errors import Place, PolicyError
from signoff.policy.glob import Glob
from signoff.policy.match import Condition, LabelCondition, Match, ValueCondition
from signoff.policy.match_result import Truth
from signoff.policy.operators import Matches, Operator, Over
from signoff.policy.phrases import did_you_mean, shown
from signoff.policy.rule import Rule

_ADDRESS = re.compile(r"@[\w*-]+(\.[\w*-]+)+")


@dataclass(frozen=True, slots=True)
class Problem:
    """A lint warning: something about a rule that a person should check."""

    what: str
    place: Place
    rule: str
    fix: str = ""
    kind: str = ""
    """The kind of problem: `dead`, `shadowed` (an ask rule below an allow rule that covers it) …"""

    def __str__(self) -> str:
        return f"{self.place}: {self.what}" + (f"; {self.fix}" if self.fix else "")

    def as_error(self) -> PolicyError:
        """Return the problem as an exception, for callers that do not tolerate it."""
        return PolicyError(self.what, place=self.place, fix=self.fix)


def unknown_tools(rules: Iterable[Rule], known: Iterable[str]) -> tuple[Problem, ...]:
    """Return the names and patterns in `tool` that match none of the known tools."""
    names = frozenset(known)
    found: list[Problem] = []
    for rule in rules:
        for glob in dict.fromkeys(glob for match in rule.matches for glob in match.tools):
            if glob.literal is not None:
                if glob.literal not in names:
                    what = f"there is no tool {shown(glob.pattern)}"
                    found.append(Problem(what, rule.place, rule.id, did_you_mean(glob.pattern, names), "tool"))
            elif all(glob.find(name) is Truth.NO for name in names):
                what = f"no tool matches {shown(glob.pattern)}"
                found.append(Problem(what, rule.place, rule.id, did_you_mean(glob.pattern, names), "tool"))
    return tuple(found)


def warnings_of(rules: tuple[Rule, ...]) -> tuple[Problem, ...]:
    """Return warnings about rules that never decide, rules that allow everything, and timeouts that allow."""
    found = (*_lenient(rules), *_dead(rules), *_empty(rules))
    return tuple(sorted(found, key=lambda problem: problem.place.line))


def _lenient(rules: Iterable[Rule]) -> Iterator[Problem]:
    for rule in rules:
        if rule.requirement.on_timeout is OnTimeout.ALLOW:
            undone = ", and it cannot be undone" if rule.requirement.irreversible else ""
            what = f"{rule.id} allows the call when nobody answers in time{undone}"
            yield Problem(what, rule.place, rule.id, "`deny` or `park` keeps a person in charge", "silence")
        if rule.effect is Effect.ALLOW and Match() in rule.matches:
            what = f"{rule.id} allows every call that no rule before it asks about and no rule denies"
            yield Problem(what, rule.place, rule.id, "name the tools it is meant for", "everything")
        if rule.effect is Effect.ALLOW:
            for name, pattern in _addressed(rule):
                what = f"{rule.id} allows {name} like {shown(pattern)}, which also matches a text with more addresses"
                fix = f"use `recipients: {{domains: [{pattern.rpartition('@')[2]}]}}`, which reads each address"
                yield Problem(what, rule.place, rule.id, fix, "address")
            for pattern, why in _of_commands(rule, "broad"):
                what = f"{rule.id} allows {shown(pattern)}, and {why}"
                yield Problem(what, rule.place, rule.id, "write the full command it is meant for", "broad")
            for pattern, why in _of_commands(rule, "left_open"):
                what = f"{rule.id} allows {shown(pattern)}; {why}"
                yield Problem(what, rule.place, rule.id, "name the options in the pattern, one rule for each", "open")


def _addressed(rule: Rule) -> Iterator[tuple[str, str]]:
    """Yield patterns that look like an email address but match a whole text, each with the argument's name."""
    for match in rule.matches:
        for condition in match.conditions:
            if isinstance(condition, ValueCondition):
                for glob in _globs(condition.operator):
                    if glob.literal is None and _ADDRESS.search(glob.pattern):
                        yield condition.name, glob.pattern


def _globs(operator: Operator) -> Iterator[Glob]:
    if isinstance(operator, Matches):
        yield from operator.globs
    elif isinstance(operator, Over):
        for one in operator.operators:
            yield from _globs(one)


def _of_commands(rule: Rule, said: str) -> Iterator[tuple[str, str]]:
    """Yield command patterns of which a condition says something: that they are `broad`, or what is `left_open`."""
    for match in rule.matches:
        for condition in match.conditions:
            yield from getattr(condition, said, ())


def _dead(rules: tuple[Rule, ...]) -> Iterator[Problem]:
    """Find rules whose every alternative is covered by a rule that takes precedence: an earlier one, or any deny."""
    denies = _Seen()
    for rule in rules:
        if rule.effect is Effect.DENY and not rule.otherwise:
            denies.add(rule)
    earlier, earlier_denies = _Seen(), _Seen()
    for rule in rules:
        is_deny = rule.effect is Effect.DENY and not rule.otherwise
        cover = (earlier_denies if is_deny else denies).cover_of(rule) or (None if is_deny else earlier.cover_of(rule))
        if cover is not None:
            what = f"{rule.id} never decides: {cover.id} {cover.text}"
            kind = "shadowed" if rule.effect is Effect.ASK and cover.effect is Effect.ALLOW else "dead"
            yield Problem(what, rule.place, rule.id, _advice(rule, cover), kind)
        (earlier_denies if is_deny else earlier).add(rule)


def _empty(rules: tuple[Rule, ...]) -> Iterator[Problem]:
    """Find an `otherwise` about every call with no rule above it that names any."""
    for at, rule in enumerate(rules):
        if rule.otherwise and Match() in rule.matches and all(one.effect is Effect.DENY for one in rules[:at]):
            what = f"{rule.id} denies every call: no rule above it names any"
            yield Problem(
                what,
                rule.place,
                rule.id,
                "add rules above it that say what may be called, with `allow` or `ask`",
                "empty-whitelist",
            )


def _advice(rule: Rule, cover: Rule) -> str:
    if (cover.effect is Effect.DENY and not cover.otherwise) or rule.effect is cover.effect:
        return "remove one of them"
    return f"move it above {cover.id}, or narrow {cover.id}"


class _Seen:
    """Rules by the tools they name, so that comparing a thousand rules is fast."""

    def __init__(self) -> None:
        self._named: dict[str, list[tuple[Match, Rule]]] = {}
        self._wide: list[tuple[Match, Rule]] = []

    def add(self, rule: Rule) -> None:
        for match in rule.matches:
            if match.tools and all(glob.literal is not None for glob in match.tools):
                for glob in match.tools:
                    self._named.setdefault(glob.pattern, []).append((match, rule))
            else:
                self._wide.append((match, rule))

    def cover_of(self, rule: Rule) -> Rule | None:
        """Return a rule that matches everything that this one matches, or None."""
        covers = [self._cover(match) for match in rule.matches]
        return covers[0] if all(covers) else None

    def _cover(self, match: Match) -> Rule | None:
        named = self._named.get(match.tools[0].pattern, []) if match.tools else []
        return next((rule for other, rule in (*self._wide, *named) if _covers(other, match)), None)


def _covers(wide: Match, narrow: Match) -> bool:
    """Whether the wide match matches every call that the narrow match does."""
    if not all(any(_follows(condition, one) for one in narrow.conditions) for condition in wide.conditions):
        return False
    return not wide.tools or (bool(narrow.tools) and all(_has(wide.tools, glob) for glob in narrow.tools))


def _follows(wide: Condition, narrow: Condition) -> bool:
    """Whether the wide condition holds wherever the narrow one holds."""
    if isinstance(wide, LabelCondition) and isinstance(narrow, LabelCondition):
        return narrow.labels <= wide.labels and (narrow.every or not wide.every)
    return wide == narrow


def _has(globs: tuple[Glob, ...], one: Glob) -> bool:
    if one in globs:
        return True
    return one.literal is not None and any(glob.find(one.literal) is Truth.YES for glob in globs)
