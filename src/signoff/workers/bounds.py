"""Bounds on a new worker besides its creator's file: rules that name workers, and files that must not be read."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, cast

from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

from signoff.attached.attached_policies import layers_of
from signoff.config import Settings, WorkerFile
from signoff.core.call import Call
from signoff.core.canonical import digest
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.errors import WrongUse
from signoff.policy.engine import Policy
from signoff.policy.glob import any_glob
from signoff.policy.match import CHAIN, Match, WorkerCondition
from signoff.policy.match_result import Truth
from signoff.policy.rule import Rule
from signoff.policy.strictest_verdict import strictest
from signoff.toolset_wrappers import parts_of
from signoff.toolsets.builtin.files.file_toolset import FilesToolset
from signoff.toolsets.builtin.shell.shell_toolset import ShellToolset
from signoff.toolsets.catalog import NATIVE, BuiltToolset


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerBound:
    """A policy that applies to a worker besides its own."""

    policy: Policy
    toolset: str = ""
    """The toolset that the rules belong to; empty if they are about every call."""
    prefix: str = ""
    """Prefix of the names of its tools, which its own rules do not know."""
    lasting: bool = True
    """Whether it applies beyond the current run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The policies over a creator, outermost first, and its toolsets as they were built for it."""

    layers: tuple[WorkerBound, ...]
    built: tuple[BuiltToolset, ...] = ()

    @property
    def revision(self) -> str:
        """A digest that changes whenever one of the policies changes."""
        return digest([[one.toolset, one.prefix, one.policy.revision] for one in self.layers])


def bounds_of(
    settings: Settings, creator: WorkerFile, *, caller: Sequence[Policy] = (), built: Sequence[BuiltToolset] = ()
) -> Bounds:
    """Return what applies to a worker: the rules of the user, the project, the caller and its toolsets."""
    layers = [WorkerBound(policy=policy) for policy in settings.layers]
    layers += [WorkerBound(policy=policy, lasting=False) for policy in caller]
    attached = {one.name: list(_attached(one.toolset)) for one in built}
    for name in creator.toolsets:
        entry = settings.toolsets.get(name)
        own = [entry.policy] if entry is not None and entry.policy is not None else []
        policies = {id(policy): policy for policy in (*own, *attached.get(name, ()))}.values()
        prefix = f"{entry.prefix}_" if entry is not None and entry.prefix else ""
        known_as = NATIVE if entry is not None and entry.use == NATIVE else name
        layers += [WorkerBound(policy=policy, toolset=known_as, prefix=prefix) for policy in policies]
    return Bounds(layers=tuple(layers), built=tuple(built))


def _attached(toolset: AbstractToolset[Any] | None) -> Iterator[Policy]:
    """Yield the policies of a toolset, and of everything it wraps or combines."""
    for part in parts_of(toolset) if toolset is not None else ():
        yield from (layer.policy for layer in layers_of(part))
        if isinstance(own := getattr(part, "policy", None), Policy):
            yield own


# --- names ---


def refuse_trusted(layers: Sequence[WorkerBound], name: str, creator: str) -> None:
    """Refuse a name to which rules grant something that they do not grant to the creator: the model chose the name."""
    for layer in layers:
        rules = layer.policy.rules
        for number, rule in enumerate(rules):
            if not _loosens(rule, rules[number + 1 :]):
                continue
            if any(_gives_more(match, name, creator) for match in rule.matches):
                always = any(_gives_more(match, _ANOTHER, creator) for match in rule.matches)
                raise WrongUse(
                    f"the name is not allowed: {rule.id} {rule.text}, "
                    f"which is not meant for a worker that {creator} creates\n"
                    + (
                        f"  no other name is, either: let the rule name the workers that {creator} may call"
                        if always
                        else "  choose a name that no rule names"
                    )
                )


_ANOTHER = "0" * 64
"""A name that only a rule about any worker is about."""


def _loosens(rule: Rule, later: Sequence[Rule]) -> bool:
    """Return whether a matching call may get a milder effect: it runs, asks fewer people than a later rule, or is asked
    about where a later `otherwise` denies.
    """
    if rule.effect is not Effect.ASK:
        return rule.effect is Effect.ALLOW
    needed = rule.requirement
    if needed.on_timeout is OnTimeout.ALLOW:
        return True
    return any(
        one.otherwise or (one.effect is Effect.ASK and one.requirement.is_strict and one.requirement != needed)
        for one in later
    )


def _conditions(match: Match) -> list[WorkerCondition]:
    return [one for one in match.conditions if isinstance(one, WorkerCondition)]


def _gives_more(match: Match, name: str, creator: str) -> bool:
    """Return whether a rule may be about a call by the new worker, and not about the same call by its creator.

    The creator makes it where the new worker is called from: in the place of it, or before it if it calls it itself.
    """
    found = _conditions(match)
    return all(_may_hold(one, name) for one in found) and not all(_holds_for_both(one, name, creator) for one in found)


def _may_hold(one: WorkerCondition, worker: str) -> bool:
    """Return whether a condition holds for some chain that ends with this worker."""
    return (bool(one.single) and not one.innermost) or _is_about(one, worker)


def _is_about(one: WorkerCondition, worker: str) -> bool:
    """Return whether a condition may hold for a chain because it ends with this worker."""
    named = bool(one.single) and any_glob(one.single, worker) is not Truth.NO
    return named or any(_may_end_with(glob.pattern, worker) for glob in one.chains)


def _holds_for_both(one: WorkerCondition, name: str, creator: str) -> bool:
    """Return whether a condition that holds for the new worker surely holds for its creator, too."""
    if one.single and any_glob(one.single, creator) is Truth.YES:
        return True
    if one.single and any_glob(one.single, name) is not Truth.NO:
        return False
    return all(_goes_on(glob.pattern, creator) for glob in one.chains if _may_end_with(glob.pattern, name))


def _goes_on(pattern: str, creator: str) -> bool:
    """Return whether a pattern is about everything that certain workers lead to, and the creator is not one of them."""
    head, _, last = pattern.rpartition(CHAIN)
    return last == "*" and not _may_end_with(head, creator)


def _may_end_with(pattern: str, worker: str) -> bool:
    """Return whether a pattern over chains may match one that ends with this worker: rather too often than never."""
    text, is_set, _ = pattern.partition("[")
    _, star, tail = (text + "*" if is_set else text).replace("?", "*").rpartition("*")  # each may match a ` > `, too
    if tail == worker or tail.endswith(CHAIN + worker):
        return True
    return bool(star) and worker.endswith(tail)


# --- rules that apply to the new worker ---


def rules_for(settings: Settings, layers: Sequence[WorkerBound], creator: WorkerFile, name: str) -> list[Any]:
    """Return the rules that a new worker of this name gets: those of the creator's file, and all that name the creator.

    They are rewritten for the new worker: what the creator must not do, or has to ask about, applies to it wherever it
    runs, not only where its creator calls it.
    """
    mine: list[_Copied] = []
    own = creator.policy.rules if creator.policy is not None else ()
    for rule, spot in zip(own, creator.policy_spots, strict=True):
        by_default = spot.document.file == settings.file  # it applies to every worker anyway, unless it names one
        binding = _binding(rule, creator.name, name)
        about = _about(rule, spot.value, binding, whole=not by_default)
        mine.append(_Copied(rule, about, widened=any(binding)))
    others: list[list[_Copied]] = []
    for layer in (one for one in layers if one.lasting):
        copied: list[_Copied] = []
        for number, rule in enumerate(layer.policy.rules):
            binding = _binding(rule, creator.name, name)
            if rule.effect is Effect.ALLOW or not any(binding):
                continue
            written = layer.policy.written
            if not isinstance(written, list):
                raise WrongUse(f"{rule.id} is about {creator.name}, and cannot be copied to a new worker")
            raw = cast("list[Any]", written)[number]
            about = _about(rule, raw, binding, whole=False, layer=layer, directory=settings.directory)
            copied.append(_Copied(rule, about, widened=True, toolset=layer.toolset))
        others.append(copied)
    return [one.about for one in _in_order(mine, others, creator.name) if one.about is not None]


@dataclass(frozen=True, slots=True)
class _Copied:
    """A rule that binds a creator, and what it becomes for its new worker."""

    rule: Rule
    about: dict[str, Any] | None
    """None if it applies to the new worker as it is."""
    widened: bool
    """Whether it is about more calls now: whoever makes them."""
    toolset: str = ""

    @property
    def people(self) -> Requirement | None:
        """Who must agree, without what people are told and how long it takes; None if that may be anyone."""
        needed = self.rule.requirement
        if self.rule.effect is not Effect.ASK or not needed.is_strict:
            return None
        return replace(needed, timeout=None, remind=None, message="", irreversible=False)


def _in_order(mine: Sequence[_Copied], others: Sequence[Sequence[_Copied]], creator: str) -> list[_Copied]:
    """Return the rules in an order in which a call of the new worker needs whoever the same call of its creator needs.

    Of the rules in one file the first decides, but rules of several layers count together. Raises `WrongUse` if there
    is no such order.
    """
    found = [*mine, *(one for layer in others for one in layer)]
    if not any(one.widened for one in found) or not any(one.people for one in found):
        return found
    from_layers = any(one.people for layer in others for one in layer)
    mixed = from_layers and any(one.about is None and one.rule.effect is Effect.ASK and not one.people for one in mine)
    for layer in (mine, *others):
        widest = [one.people for one in layer if one.people and one.widened]
        mixed = mixed or (bool(widest) and len(_people(layer)) > 1)
    for one, other in combinations((mine, *others), 2):
        apart = one and other and one[0].toolset and other[0].toolset and one[0].toolset != other[0].toolset
        both = bool(_people(one)) and bool(_people(other))
        mixed = mixed or (both and not apart and len(_people(one) | _people(other)) > 1)
    if mixed:
        raise WrongUse(f"the rules about {creator} want different people to agree; one file cannot say that")
    return sorted(found, key=lambda one: one.people is None)


def _people(layer: Sequence[_Copied]) -> set[Requirement]:
    return {one.people for one in layer if one.people}


def _binding(rule: Rule, creator: str, name: str) -> list[bool]:
    """Return which alternatives of a rule are about the creator, and do not already name the new worker."""
    return [_binds(_conditions(match), creator, name) for match in rule.matches]


def _binds(found: Sequence[WorkerCondition], creator: str, name: str) -> bool:
    named = any(_is_about(one, creator) for one in found) and all(_may_hold(one, creator) for one in found)
    return named and not all(any_glob(one.single, name) is Truth.YES for one in found)


def _about(
    rule: Rule, raw: Any, named: Sequence[bool], *, whole: bool, layer: WorkerBound | None = None, directory: str = ""
) -> dict[str, Any] | None:
    """Return a rule without the condition that the creator makes the call; with `whole`, its other alternatives too."""
    written = cast("dict[str, Any]", raw)
    if not any(named):  # an `otherwise` names no worker
        return dict(written) if whole else None
    effect = str(rule.effect)
    items: list[Any] = written[effect] if isinstance(written[effect], list) else [written[effect]]
    kept = [
        _anywhere(item, layer, directory) if is_named else item
        for item, is_named in zip(items, named, strict=True)
        if is_named or whole
    ]
    left_out = {effect, "examples", *(() if whole else ("id",))}
    rest = {key: value for key, value in written.items() if key not in left_out}
    if rest.get("on_timeout") == str(OnTimeout.ALLOW):  # in a worker's own rules a timeout lets nothing run
        del rest["on_timeout"]
    return {effect: kept[0] if len(kept) == 1 else kept, **rest}


def _anywhere(item: Mapping[str, Any], layer: WorkerBound | None, directory: str) -> dict[str, Any]:
    found = {key: value for key, value in item.items() if key != "worker"}
    if layer is None or not layer.toolset:
        return found
    if layer.policy.root not in (None, directory):  # its paths start elsewhere: without them the rule applies to more
        found.pop("path", None)
    tools: Any = found.get("tool")
    if layer.prefix and tools is not None:
        names = cast("list[str]", tools if isinstance(tools, list) else [tools])
        found["tool"] = [f"{layer.prefix}{name}" for name in names]
    return {**found, "toolset": layer.toolset}


# --- files ---


def why_unreadable(bounds: Bounds, creator: WorkerFile, path: str) -> str:
    """Return why a new worker must not be given a file: its creator could not read it. Empty if it could."""
    verdict = reading_verdict(bounds, creator, path)
    return verdict.reason if verdict.effect is Effect.DENY else ""


def reading_verdict(bounds: Bounds, reader: WorkerFile, path: str) -> Verdict:
    """Return the verdict on a worker reading a file with its own tools: that of the most permissive tool."""
    path = os.path.realpath(path)
    beside = os.path.dirname(reader.file)
    if path in {os.path.realpath(os.path.join(beside, one)) for one in reader.attachments}:
        return Verdict(effect=Effect.ALLOW, reason=f"it is attached to {reader.name}")
    own = (reader.policy,) if reader.policy is not None else ()
    over = [*(one.policy for one in bounds.layers if not one.toolset), *own]
    call = Call(tool="read_file", args={"path": path}, worker=(reader.name,), labels=frozenset({"fs.read"}))
    any_way = strictest(_judged(over, call))
    if any_way is not None and any_way.effect is Effect.DENY:
        return any_way
    best = Verdict(effect=Effect.DENY, reason=f"{reader.name} has no tool to read it with")
    for one in bounds.built:
        tool, args = _reading(one.toolset, path)
        if not tool:
            continue
        layers = [layer for layer in bounds.layers if layer.toolset == one.name]
        prefix = layers[0].prefix if layers else ""
        seen = call.changed(tool=tool, args=args, toolset=one.name)
        judged = [*_judged([layer.policy for layer in layers], seen), *_judged(over, seen.changed(tool=prefix + tool))]
        found = strictest(judged) or Verdict(effect=Effect.ASK, reason="no rule is about reading it")
        if _STRICTNESS.index(found.effect) <= _STRICTNESS.index(best.effect):
            best = found
    return best


_STRICTNESS = (Effect.ALLOW, Effect.ASK, Effect.DENY)


def _judged(policies: Sequence[Policy], call: Call) -> list[Verdict]:
    return [found for one in policies if (found := one.judge_layer(call)) is not None]


def _reading(toolset: AbstractToolset[Any] | None, path: str) -> tuple[str, Mapping[str, Any]]:
    """Return how a toolset of signoff's own would read a file. What others read is not known."""
    while isinstance(toolset, WrapperToolset):
        toolset = toolset.wrapped
    if isinstance(toolset, FilesToolset):
        root, found = os.path.realpath(toolset.root.path), ("read_file", {"path": path})
    elif isinstance(toolset, ShellToolset):
        root, found = toolset.root, ("shell", {"command": f"cat {shlex.quote(path)}"})
    else:
        return "", {}
    return found if os.path.commonpath((root, path)) == root else ("", {})
