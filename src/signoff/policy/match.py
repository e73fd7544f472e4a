"""What a rule matches: tools, and conditions that must all hold. Takes facts, returns a result, decides nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Protocol

from signoff.core.call import Veiled
from signoff.policy.call_paths import Facts
from signoff.policy.glob import Glob, any_glob
from signoff.policy.keypath import ABSENT, KeyPath
from signoff.policy.match_result import YES, MatchResult, Truth, any_holds, outweighs
from signoff.policy.operators import Exists, Operator, kind_of
from signoff.policy.phrases import listed, shown

CHAIN = " > "


class Links(Enum):
    """Which texts of a call have their symlinks resolved before a condition looks at them."""

    NAMED = "named"
    """Texts under keys that name a path."""
    ANY = "any"
    """Every text that may be a path."""
    COMMAND = "command"
    """The files that a shell command reads."""
    WORDS = "words"
    """The names after the first words of a shell command."""


class Condition(Protocol):
    """One requirement of a rule on a call. Conditions compare equal if they check the same.

    A condition that looks at paths has an attribute `links`, a `Links`.
    """

    @property
    def text(self) -> str:
        """What it checks, in words that follow a tool's name: `with amount > 100`."""
        ...

    def find(self, facts: Facts) -> MatchResult: ...


@dataclass(frozen=True, slots=True)
class ToolsetCondition:
    """The call goes to a toolset with a matching name."""

    names: tuple[Glob, ...]
    no: MatchResult = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "no", MatchResult.no("the call names no toolset"))

    @property
    def text(self) -> str:
        return f"of toolset {listed(glob.pattern for glob in self.names)}"

    def find(self, facts: Facts) -> MatchResult:
        toolset = facts.call.toolset
        if toolset is None:
            return self.no
        return name_finding(self.names, toolset, "toolset")


@dataclass(frozen=True, slots=True)
class WorkerCondition:
    """A worker in the chain has a matching name; a pattern with ` > ` matches the whole chain, `a > b`."""

    names: tuple[Glob, ...]
    innermost: bool = False
    """Set in allow rules: what a worker may do, the workers it calls may not do for it. A deny or ask rule on a worker
    also holds for the workers it calls."""
    single: tuple[Glob, ...] = field(init=False, repr=False, compare=False)
    chains: tuple[Glob, ...] = field(init=False, repr=False, compare=False)
    no: MatchResult = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "single", tuple(glob for glob in self.names if CHAIN not in glob.pattern))
        object.__setattr__(self, "chains", tuple(glob for glob in self.names if CHAIN in glob.pattern))
        object.__setattr__(
            self, "no", MatchResult.no(f"the worker is not {listed(glob.pattern for glob in self.single)}")
        )

    @property
    def text(self) -> str:
        return f"by worker {listed(glob.pattern for glob in self.names)}"

    def find(self, facts: Facts) -> MatchResult:
        workers = facts.call.worker
        if not workers:
            return MatchResult.no("no worker made the call")
        single, chains = self.single, self.chains
        meant = workers[-1:] if self.innermost else workers
        if not chains and all(any_glob(single, name) is Truth.NO for name in meant):
            return self.no
        finding = any_holds([name_finding(single, name, "worker") for name in meant]) if single else None
        if finding is not None and (not chains or finding.truth is Truth.YES):
            return finding
        if any(CHAIN in name for name in workers):
            return MatchResult.unknown("a worker has a name that looks like a chain")
        chained = name_finding(chains, CHAIN.join(workers), "chain of workers")
        return chained if finding is None or chained.truth is not Truth.NO else finding


@dataclass(frozen=True, slots=True)
class LabelCondition:
    """The call has one of these capability labels; with `every`, it has no others."""

    labels: frozenset[str]
    every: bool = False
    """Set in allow rules: a call that reads and writes is not allowed because it reads."""
    text: str = field(init=False)
    no: MatchResult = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", f"labelled {listed(sorted(self.labels))}")
        object.__setattr__(self, "no", MatchResult.no(f"the call is not {self.text}"))

    def find(self, facts: Facts) -> MatchResult:
        carried = facts.call.labels
        if self.labels.isdisjoint(carried):
            return self.no
        if self.every and not carried <= self.labels:
            return MatchResult.no(f"the call is also labelled {listed(sorted(carried - self.labels))}")
        return YES


@dataclass(frozen=True, slots=True)
class ValueCondition:
    """A value in the arguments or the deps satisfies one operator."""

    source: Literal["args", "deps"]
    key: KeyPath
    operator: Operator
    text: str = field(init=False)
    no: MatchResult = field(init=False, repr=False, compare=False)
    absent: MatchResult = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        name = self.name
        object.__setattr__(self, "text", f"where {name} is {self.operator.text}")
        object.__setattr__(self, "no", MatchResult.no(f"{name} is not {self.operator.text}"))
        gone = isinstance(self.operator, Exists) and not self.operator.wanted
        object.__setattr__(self, "absent", YES if gone else MatchResult.no(f"{name} is not given"))

    @property
    def name(self) -> str:
        return f"`{self.key.text}`" if self.source == "args" else f"deps `{self.key.text}`"

    def find(self, facts: Facts) -> MatchResult:
        call = facts.call
        value = self.key.in_args(call.args) if self.source == "args" else self.key.in_deps(call.deps)
        if value is ABSENT:
            return self.absent
        if isinstance(value, Veiled):
            return MatchResult.unknown(f"{self.name} is a secret")
        answer = self.operator.test(value)
        if isinstance(answer, str):
            return MatchResult.unknown(f"{self.name} {answer}")
        return YES if answer else self.no


@dataclass(frozen=True, slots=True)
class OthersCondition:
    """The call has no arguments other than these."""

    names: frozenset[str]
    text: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", "where no other argument is given" if self.names else "without arguments")

    def find(self, facts: Facts) -> MatchResult:
        more = [name for name in facts.call.args if name not in self.names]
        return MatchResult.no(f"there are other arguments: {listed(more)}") if more else YES


@dataclass(frozen=True, slots=True)
class Match:
    """One alternative of a rule. Without tools and conditions it matches every call."""

    tools: tuple[Glob, ...] = ()
    conditions: tuple[Condition, ...] = ()

    @property
    def text(self) -> str:
        """What it matches, as part of a sentence: "`pay` where `amount` is > 100"."""
        words = listed(glob.pattern for glob in self.tools) or ("calls" if self.conditions else "every call")
        for condition in self.conditions:
            again = " where " in words and condition.text.startswith("where ")
            words += f" and {condition.text.removeprefix('where ')}" if again else f" {condition.text}"
        return words

    def find_tool(self, tool: str) -> MatchResult:
        """Return whether the tool's name matches."""
        return name_finding(self.tools, tool, "tool") if self.tools else YES

    def find(self, facts: Facts) -> MatchResult:
        """Return whether the tool and all conditions match a call."""
        tool = self.find_tool(facts.call.tool)
        if tool.truth is Truth.NO:
            return tool
        conditions = all_hold(self.conditions, facts)
        return tool if conditions.truth is Truth.YES else conditions


def text_argument(facts: Facts, name: str, what: str) -> str | MatchResult:
    """Return the text of an argument that a condition wants to parse, or the reason why there is none."""
    value = facts.call.args.get(name)
    if value is None:
        return MatchResult.no(f"the call has no {shown(name)}")
    if isinstance(value, str) and not isinstance(value, Veiled):
        return value
    found = "a secret" if isinstance(value, Veiled) else kind_of(value)
    return MatchResult.unknown(f"{shown(name)} is {found}, not {what}")


def links_of(conditions: Iterable[Condition]) -> frozenset[Links]:
    """Return which texts need their symlinks resolved before these conditions look at a call."""
    return frozenset(links for one in conditions if isinstance(links := getattr(one, "links", None), Links))


def name_finding(globs: tuple[Glob, ...], name: str, what: str) -> MatchResult:
    """Return whether a name matches one of several globs."""
    match any_glob(globs, name):
        case Truth.YES:
            return YES
        case Truth.NO:
            return MatchResult.no(f"the {what} is not {listed(glob.pattern for glob in globs)}")
        case Truth.UNKNOWN:
            return MatchResult.unknown(f"the {what}'s name holds control characters, which no wildcard matches")


def all_hold(conditions: Iterable[Condition], facts: Facts) -> MatchResult:
    """Return yes if all hold, no as soon as one does not, otherwise the doubt. An exception in a condition is doubt."""
    doubt: MatchResult | None = None
    for condition in conditions:
        try:
            finding = condition.find(facts)
        except Exception as error:  # a condition that breaks must never let a call through
            finding = MatchResult.of_error(f"checking {condition.text.removeprefix('where ')}", error)
        if finding.truth is Truth.YES:
            continue
        if finding.truth is Truth.NO:
            return finding
        if doubt is None or outweighs(finding, doubt):
            doubt = finding
    return doubt or YES
