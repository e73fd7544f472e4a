"""Static analysis of what can happen to calls of one tool, whatever their arguments: reads the rules, tries no calls.

Conditions on what only a call has (its arguments, the run's deps) may hold or not. So the result errs on one side: it
names every rule that can let a call run, and sometimes a rule that never does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Literal, TypeAlias

from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.policy.call_paths import Facts
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.policy.match import Condition, LabelCondition, Match, ToolsetCondition, ValueCondition, WorkerCondition
from signoff.policy.match_result import Truth
from signoff.policy.rule import Rule

Outcome: TypeAlias = Literal["allow", "ask", "deny", "conditional"]
"""`allow`: every call runs unasked. `deny`: none runs. `ask`: none runs unasked. `conditional`: depends on the call."""


class Unsure(Enum):
    """Marks something as not known about a tool: conditions on it may hold or not."""

    UNSURE = "unsure"


UNSURE = Unsure.UNSURE


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolView:
    """What is the same for every call of a tool, as one layer sees it."""

    tool: str
    toolset: str | None | Unsure = None
    worker: tuple[str, ...] | Unsure = UNSURE
    """The chain of workers that leads to the call."""
    labels: frozenset[str] | Unsure = frozenset()
    claimed: frozenset[str] = frozenset()
    bare: bool = False
    """Whether the tool takes no arguments at all."""

    def truth(self, condition: Condition, root: str | None) -> Truth | None:
        """Return the result of the condition for every call; None if it depends on the call."""
        if not self._settles(condition):
            return None
        call = Call(
            tool=self.tool,
            toolset=self.toolset if self.toolset is not UNSURE else None,
            worker=self.worker if self.worker is not UNSURE else (),
            labels=self.labels if self.labels is not UNSURE else frozenset(),
        )
        return condition.find(Facts(call, root)).truth

    def _settles(self, condition: Condition) -> bool:
        """Whether everything that the condition looks at is known."""
        if isinstance(condition, ToolsetCondition):
            return self.toolset is not UNSURE
        if isinstance(condition, WorkerCondition):
            return self.worker is not UNSURE
        if isinstance(condition, LabelCondition):
            return self.labels is not UNSURE
        return self.bare and not _looks_at_deps(condition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What can happen to the calls of a tool. Calls whose arguments cannot be read always ask."""

    effect: Outcome
    lets: tuple[Rule, ...] = ()
    """Every rule of any layer that can let a call run without a person, outermost layer first."""
    never: Rule | None = None
    """The rule that denies every call."""


def reach(
    layers: Layers | Iterable[Policy],
    tool: str,
    toolset: str | None | Unsure = None,
    worker: tuple[str, ...] | Unsure = UNSURE,
    labels: Iterable[str] | Unsure = (),
    claimed: Iterable[str] = (),
    *,
    bare: bool = False,
) -> Reach:
    """Return what policies, judged as layers, can say about the calls of a tool. Without any policy, calls ask."""
    subject = ToolView(
        tool=tool,
        toolset=toolset,
        worker=worker,
        labels=labels if isinstance(labels, Unsure) else frozenset(labels),
        claimed=frozenset(claimed),
        bare=bare,
    )
    policies = layers.policies if isinstance(layers, Layers) else layers
    return reach_of((policy, subject) for policy in policies)


def reach_of(layers: Iterable[tuple[Policy, ToolView]]) -> Reach:
    """Like `reach`, for layers that see different things: a toolset does not know which worker calls it."""
    found = [_with_claims(policy, subject) for policy, subject in layers]
    runs = any(one.allows for one in found) and all(one.lets_through for one in found)
    never = next((one.never for one in found if one.never), None)
    lets = tuple(rule for one in found for rule in one.allows) if runs and never is None else ()
    effect: Outcome = "conditional"
    if never is not None:
        effect = "deny"
    elif not lets:
        effect = "ask"
    elif any(one.always for one in found) and all(one.only_lets_through for one in found):
        effect = "allow"
    return Reach(effect=effect, lets=lets, never=never)


@dataclass(slots=True)
class _Layer:
    """What one policy can say about a tool."""

    allows: list[Rule] = field(default_factory=list[Rule])
    stops: list[Rule] = field(default_factory=list[Rule])
    never: Rule | None = None
    """A rule that denies every call."""
    always: bool = False
    """Whether a rule allows every call that no rule before it decides."""
    silent: bool = True
    """Whether there can be a call that no rule matches."""
    blocked: bool = False
    """Whether every call asks or is denied, because a rule matches each call at least in doubt."""
    doubtful: bool = False
    """Whether a condition of an allow rule can raise an exception, which asks."""

    @property
    def lets_through(self) -> bool:
        """Whether it can let a call run: by allowing it, or by abstaining."""
        return not self.blocked and self.never is None and (bool(self.allows) or self.silent)

    @property
    def only_lets_through(self) -> bool:
        return self.lets_through and not self.stops and not self.doubtful


@dataclass(frozen=True, slots=True)
class _Alternative:
    """One alternative of a rule: the conditions that depend on the call."""

    open: tuple[Condition, ...]
    doubt: bool
    """Whether something in it is always in doubt: then it never holds."""

    @property
    def holds(self) -> bool:
        """Whether it holds for every call."""
        return not self.open and not self.doubt

    def follows(self, other: _Alternative) -> bool:
        """Whether the other holds wherever this one does."""
        return not other.doubt and all(one in self.open for one in other.open)


def _with_claims(policy: Policy, subject: ToolView) -> _Layer:
    """Like `_layer`, with and without the claimed labels. A call is allowed only if both allow it."""
    if not subject.claimed:
        return _layer(policy, subject)
    labels = subject.labels
    marked = labels if isinstance(labels, Unsure) else labels | subject.claimed
    one = _layer(policy, replace(subject, claimed=frozenset()))
    other = _layer(policy, replace(subject, claimed=frozenset(), labels=marked))
    return _Layer(
        allows=list({rule.id: rule for rule in (*one.allows, *other.allows)}.values())
        if one.allows and other.allows
        else [],
        stops=list({rule.id: rule for rule in (*one.stops, *other.stops)}.values()),
        never=one.never or other.never,
        always=one.always and other.always,
        silent=one.silent or other.silent,
        blocked=one.blocked or other.blocked,
        doubtful=one.doubtful or other.doubtful,
    )


def _layer(policy: Policy, subject: ToolView) -> _Layer:
    layer = _Layer()
    spoken = [(rule, found) for rule in policy.rules if (found := list(_alternatives(rule, policy, subject)))]
    denies = [(rule, found) for rule, found in spoken if rule.effect is Effect.DENY and not rule.otherwise]
    for rule, found in denies:
        layer.stops.append(rule)
        if any(one.holds for one in found):
            layer.never = rule
            return layer
        layer.blocked = layer.blocked or any(one.doubt and not one.open for one in found)
    before = [one for _, found in denies for one in found]
    for at, (rule, found) in enumerate(spoken):
        if rule.effect is not Effect.DENY or rule.otherwise:
            if rule.effect is Effect.ALLOW:  # an ask rule also asks in doubt, where an earlier rule does not match
                found = [one for one in found if not any(one.follows(earlier) for earlier in before)]
            before += found
            if _decides(layer, rule, found):
                if rule.effect is Effect.ASK:  # an `otherwise` still denies what it does not name as a whole
                    layer.stops += [below for below, _ in spoken[at:] if below.otherwise]
                break
    return layer


def _decides(layer: _Layer, rule: Rule, found: list[_Alternative]) -> bool:
    """Record what an allow, ask or `otherwise` rule can do. Return whether it decides every call that reaches it."""
    if not found:
        return False
    sure = any(one.holds for one in found)
    if rule.otherwise and sure and not layer.allows and all(one.effect is Effect.DENY for one in layer.stops):
        layer.never = rule
    if rule.effect is not Effect.ALLOW:
        layer.stops.append(rule)
        if sure or any(one.doubt and not one.open for one in found):
            layer.silent = False
            layer.blocked = layer.blocked or not layer.allows
            return sure or not rule.otherwise  # below a rule in doubt, another one may be sure
        return False
    layer.doubtful = layer.doubtful or any(_looks_at_deps(one) for alternative in found for one in alternative.open)
    if any(not one.doubt for one in found):
        layer.allows.append(rule)
    if sure:
        layer.always, layer.silent = True, False
    return sure


def _alternatives(rule: Rule, policy: Policy, subject: ToolView) -> Iterator[_Alternative]:
    """Yield the alternatives of a rule that can hold, or be in doubt, for a call of the tool."""
    for match in rule.matches:
        found = _alternative(match, subject, policy.root)
        if found is not None:
            yield found


def _alternative(match: Match, subject: ToolView, root: str | None) -> _Alternative | None:
    truth: Truth | None = match.find_tool(subject.tool).truth
    doubt = truth is Truth.UNKNOWN
    left: list[Condition] = []
    if truth is Truth.NO:
        return None
    for condition in match.conditions:
        truth = subject.truth(condition, root)
        if truth is Truth.NO:
            return None
        if truth is None:
            left.append(condition)
        doubt = doubt or truth is Truth.UNKNOWN
    return _Alternative(tuple(left), doubt)


def _looks_at_deps(condition: Condition) -> bool:
    return isinstance(condition, ValueCondition) and condition.source == "deps"
