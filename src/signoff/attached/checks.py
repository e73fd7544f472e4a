"""Every policy and method on the way to a tool that judges its calls, asked in turn."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, cast

from signoff.attached.attached_policies import ToolsetLayer, layers_of
from signoff.attached.toolset_methods import (
    NEEDS,
    Hook,
    MethodArguments,
    answer_of,
    describer,
    in_doubt,
    takes,
    words_of,
)
from signoff.core.call import Call
from signoff.core.verdict import Effect, Verdict
from signoff.links import looked_up
from signoff.policy.strictest_verdict import strictest
from signoff.policy.tool_labels import labels_in_doubt, labels_of
from signoff.ports import judging
from signoff.toolset_wrappers import Step


@dataclass(frozen=True, slots=True)
class AttachedCheck:
    """A policy that is attached to a toolset on the way to a tool."""

    layer: ToolsetLayer
    tool: str
    """The tool's name there."""
    below: Sequence[Step]
    """The toolset and everything below it."""
    labels: frozenset[str]
    """Labels of the tool that hold for every call: attached here and below, and those it was made with."""
    claimed: frozenset[str] = frozenset()
    """Labels that can only make rules stricter."""
    start: str = ""
    """The directory that relative paths in its calls start from, if a toolset on the way says so."""
    only_tightens: bool = False
    """Whether an allow of this policy does not count."""

    def verdict(self, args: Mapping[str, Any], ctx: Any) -> Verdict | None:
        """Return the verdict of the rules. If none matches, it asks, and yields to the project's own rules.

        Without any rule it returns None, unless it decides alone. A call that nobody judges is asked about.
        """
        policy = self.layer.policy
        if not policy.rules and not self.layer.alone:
            return None
        call = self._call(args, ctx)
        found = policy.judge_layer(call) or replace(policy.judge(call), yields=True)
        return None if self.only_tightens and found.effect is Effect.ALLOW else found

    def _call(self, args: Mapping[str, Any], ctx: Any) -> Call:
        """Return the call as the policy sees it, with every label that anything below declares."""
        policy, start = self.layer.policy, self.start
        agent, seen = getattr(ctx, "agent", None), judging.get()
        worker = (agent.name,) if agent is not None and agent.name else ()
        if seen is not None and (seen.run_id, seen.call_id) == (ctx.run_id, ctx.tool_call_id):
            worker = seen.worker  # the whole chain, which only the gate knows
            start = seen.start or start
        call = Call(
            tool=self.tool,
            args=args,
            toolset=self.layer.name,
            worker=worker,
            labels=self.labels | labels_by("capability_labels", self.below, args, ctx),
            claimed=self.claimed | labels_by("claimed_labels", self.below, args, ctx),
            deps=getattr(ctx, "deps", None),
            start=start,
        )
        return looked_up(call, policy, start or os.path.realpath(policy.root or os.curdir))


class OwnCheck(NamedTuple):
    """A toolset's own `needs_approval`."""

    method: Hook
    tool: str
    """The tool's name there."""
    takes: MethodArguments | None
    """How to call it; None if it cannot be called."""
    problem: str = ""
    """Why it cannot be called."""
    only_tightens: bool = False
    """Whether an allow of this method does not count."""

    async def verdict(self, args: Mapping[str, Any], ctx: Any, config: Mapping[str, Any]) -> Verdict | None:
        """Return what the method says. Nothing attached to the toolset can make its ask milder."""
        if self.takes is None:
            return in_doubt(f"the toolset's own check cannot be called: {self.problem}")
        found = await answer_of(self.method, self.takes, self.tool, args, ctx, config)
        return None if self.only_tightens and found is not None and found.effect is Effect.ALLOW else found


Check: TypeAlias = AttachedCheck | OwnCheck


def checks_of(steps: Sequence[Step], labels: Iterable[str] = ()) -> tuple[Check, ...]:
    """Return the checks for the calls of a tool, outermost first. `labels` are those the tool was made with.

    Computed once for a tool. Inside the toolset of one catalog entry, the policy of another entry can only make things
    stricter: both may share the same object, each with its own policy.
    """
    found: list[Check] = []
    is_inside = False
    starts = (start for one, _ in steps if isinstance(start := getattr(one, "starts_from", None), str))
    start = next(starts, "")
    for number, (toolset, tool) in enumerate(steps):
        below = steps[number:]
        own, claimed = attached_labels(below, is_inside)
        layers = [layer for layer in layers_of(toolset) if layer.tool in (None, tool)]
        for layer in layers:
            inner = is_inside and layer.by_catalog
            found.append(AttachedCheck(layer, tool, below, own.union(labels), claimed, start, inner))
        is_inside = is_inside or any(layer.by_catalog for layer in layers)
        if callable(method := getattr(toolset, NEEDS, None)):
            found.append(_own(method, tool))
    return tuple(found)


def _own(method: Hook, tool: str) -> OwnCheck:
    try:
        return OwnCheck(method, tool, takes(method))
    except TypeError as error:
        return OwnCheck(method, tool, None, str(error))


def attached_labels(steps: Sequence[Step], is_inside: bool = False) -> tuple[frozenset[str], frozenset[str]]:
    """Return the labels attached to a tool on the way down to it, and those that are only claimed.

    The claimed ones come from a catalog entry inside the toolset of another entry, or are in doubt.
    """
    own, claimed = set[str](), set[str]()
    for toolset, tool in steps:
        layers = [layer for layer in layers_of(toolset) if layer.tool in (None, tool)]
        for layer in layers:
            (claimed if is_inside and layer.by_catalog else own).update(labels_of(layer.labels, tool))
            claimed.update(labels_in_doubt(layer.labels, tool))
        is_inside = is_inside or any(layer.by_catalog for layer in layers)
    return frozenset(own), frozenset(claimed)


def labels_by(hook: str, steps: Sequence[Step], args: Mapping[str, Any], ctx: Any) -> frozenset[str]:
    """Return all labels that toolsets on the way declare for a call through methods of that name."""
    found: set[str] = set()
    for toolset, tool in steps:
        method: Any = getattr(toolset, hook, None)
        if callable(method):
            found.update(cast("Iterable[str]", method(tool, args, ctx)))
    return frozenset(found)


async def said(checks: Sequence[Check], args: Callable[[], dict[str, Any]], ctx: Any) -> list[Verdict]:
    """Return the verdicts of all checks on a call, as layers. Each check gets `args()`, a copy of its own."""
    attached: list[tuple[ToolsetLayer, Verdict | None]] = []
    own: list[Verdict | None] = []
    for check in checks:
        if isinstance(check, AttachedCheck):
            try:
                verdict = check.verdict(args(), ctx)
            except Exception as error:
                verdict = in_doubt(f"the toolset's capability labels are unknown: {error!r}")
            attached.append((check.layer, verdict))
            continue
        own += [await check.verdict(args(), ctx, config) for config in _configs(check, attached)]
    # Where a layer that decides alone is silent, no other attached policy may allow the call.
    unanswered = any(layer.alone and verdict is not None and verdict.yields for layer, verdict in attached)
    ruled = [one for _, one in attached if one is not None and not (unanswered and one.effect is Effect.ALLOW)]
    return [*ruled, *(one for one in own if one is not None)]


def _configs(own: OwnCheck, above: Sequence[tuple[ToolsetLayer, Verdict | None]]) -> Iterable[Mapping[str, Any]]:
    """Yield the `config` for `needs_approval`: what is attached above, with what that means for the tool.

    Each layer that decides alone asks the method by itself, with its own config.
    """
    if own.takes is None or not own.takes.config:
        yield {}
        return
    alone = [layer for layer, _ in above if layer.alone]
    for asking in alone or [None]:
        config: dict[str, Any] = {}
        verdicts: list[Verdict] = []
        for layer, verdict in above:
            if layer.alone and layer is not asking:
                continue
            config.update(layer.config)
            verdicts += [verdict] if verdict is not None else []
        ruled = strictest(verdicts)
        options = config.get(own.tool, {})
        if isinstance(options, Mapping):
            is_approved = ruled is not None and ruled.effect is Effect.ALLOW
            config[own.tool] = {**options, "pre_approved": is_approved}
        yield config


async def described(steps: Sequence[Step], args: Callable[[], dict[str, Any]], ctx: Any) -> dict[str, Any]:
    """Return what toolsets on the way say about a call; the outermost has the last word."""
    words: dict[str, Any] = {}
    for toolset, tool in reversed(steps):
        if (method := describer(toolset)) is not None:
            words.update(await words_of(method, tool, args(), ctx))
    return words
