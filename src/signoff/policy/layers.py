"""Several policies for one call: organisation, project, toolset, worker, caller. The strictest verdict wins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from signoff.core.call import Call
from signoff.core.canonical import digest
from signoff.core.verdict import Verdict
from signoff.policy.engine import FileWatch, Policy
from signoff.policy.index import NOT_NAMED
from signoff.policy.strictest_verdict import strictest

if TYPE_CHECKING:
    from signoff.policy.explain import Explanation
    from signoff.policy.lint import Problem
    from signoff.policy.shell.common_files import FileSet


@dataclass(frozen=True)
class Layers:
    """Policies from the outermost to the innermost, judged as one. An inner layer can tighten, never loosen."""

    policies: tuple[Policy, ...] = field(default=())

    def judge(self, call: Call) -> Verdict:
        """Return the strictest verdict of the layers that have one. If all abstain, it asks."""
        return compose(self.policies, call)

    def judge_layer(self, call: Call) -> Verdict | None:
        """Like `judge`, but return None if all layers abstain."""
        return strictest(verdict for policy in self.policies if (verdict := policy.judge_layer(call)) is not None)

    def is_otherwise(self, verdict: Verdict) -> bool:
        """Return whether an `otherwise` of any layer gave this verdict: no rule names the call without doubt."""
        return any(rule.otherwise and rule.id in verdict.rules for policy in self.policies for rule in policy.rules)

    def silence(self, call: Call) -> Verdict:
        """Return the verdict for a call that no rule of any layer matches."""
        return next((said for one in self.policies if (said := one.silence(call)) is not NOT_NAMED), NOT_NAMED)

    def nearly(self, call: Call) -> str:
        """Return the single thing that kept a rule of some layer from allowing the call, or ""."""
        return next((why for policy in self.policies if (why := policy.nearly(call))), "")

    def below(self, *policies: Policy) -> Layers:
        """Return these layers with more layers inside."""
        return Layers((*self.policies, *policies))

    def explain(self, call: Call) -> Explanation:
        """Return the verdict with the deciding rule and its place, and the result of every rule of every layer."""
        from signoff.policy.explain import explain  # used by people and tests only

        return explain(self.policies, call, self.judge(call))

    @cached_property
    def revision(self) -> str:
        """Digest of all layers: changes when any of them does."""
        return digest([[policy.revision, policy.root, policy.name] for policy in self.policies])

    @cached_property
    def wants_paths(self) -> bool:
        """Whether any layer looks at paths."""
        return any(policy.wants_paths for policy in self.policies)

    def paths_of(self, call: Call) -> tuple[str, ...]:
        """Return the texts that any layer may treat as paths, as written: the keys of `Call.resolved`."""
        return tuple(dict.fromkeys(text for policy in self.policies for text in policy.paths_of(call)))

    def commanded_paths_of(self, call: Call) -> tuple[str, ...]:
        """Return those of `paths_of` that a command in the call changes into (`cd`) or reads."""
        return tuple(dict.fromkeys(text for policy in self.policies for text in policy.commanded_paths_of(call)))

    def patterns_of(self, call: Call) -> tuple[FileSet, ...]:
        """Return the patterns of files that commands in the call read or write, as far as any layer looks at them."""
        return tuple(dict.fromkeys(one for policy in self.policies for one in policy.patterns_of(call)))

    def minds_settings(self, call: Call) -> bool:
        """Whether a rule of any layer that may be about the call looks at whether settings name a file."""
        return any(policy.minds_settings(call) for policy in self.policies)

    def watch(self, call: Call) -> FileWatch | None:
        """Like `Policy.watch`, for the rules of all layers."""
        found = [one for policy in self.policies if (one := policy.watch(call)) is not None]
        if not found:
            return None

        def about(path: str, leads: str) -> bool:
            return any(one.about(path, leads) for one in found)

        return FileWatch(about, any(one.thorough for one in found), sum(one.cost for one in found))

    @property
    def file(self) -> str:
        """The files the layers come from, for messages."""
        return ", ".join(dict.fromkeys(policy.file for policy in self.policies if policy.file))

    @property
    def root(self) -> str | None:
        """The directory that relative paths start from: of the first layer that has one."""
        return next((policy.root for policy in self.policies if policy.root is not None), None)

    @cached_property
    def tool_names(self) -> frozenset[str]:
        """The tools that rules of any layer name in full, without wildcards."""
        return frozenset[str]().union(*(policy.tool_names for policy in self.policies))

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(problem for policy in self.policies for problem in policy.warnings)

    def unknown_tools(self, known: Iterable[str]) -> tuple[Problem, ...]:
        """Like `Policy.unknown_tools`, for all layers."""
        names = frozenset(known)
        return tuple(problem for policy in self.policies for problem in policy.unknown_tools(names))


def compose(layers: Sequence[Policy], call: Call) -> Verdict:
    """Return the strictest verdict of several policies. If all abstain, it asks."""
    found = strictest(verdict for policy in layers if (verdict := policy.judge_layer(call)) is not None)
    return found or next((said for policy in layers if (said := policy.judge(call)) != NOT_NAMED), NOT_NAMED)
