"""Bounds on a new worker besides its creator's file: rules that name workers, and files that must not be read."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

from signoff.attached.attached_policies import layers_of
from signoff.config import Settings, WorkerFile
from signoff.core.call import Call
from signoff.core.canonical import digest
from signoff.core.verdict import Effect, OnTimeout, Verdict
from signoff.errors import WrongUse
from signoff.policy.engine import Policy
from signoff.policy.glob import Glob, any_glob
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
            if _loosens(rule, rules[number + 1 :]) and any(
                _names(match, name, ahead=True) and not _names(match, creator) for match in rule.matches
            ):
                raise WrongUse(
                    f"the name is not allowed: {rule.id} {rule.text}, "
                    f"which is not meant for a worker that {creator} creates\n"
                    "  choose a name that no rule names"
                )


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


def _names(match: Match, worker: str, *, ahead: bool = False) -> bool:
    """Return whether a rule names this worker; with `ahead`, also chains that may end with it later."""
    conditions = [one for one in match.conditions if isinstance(one, WorkerCondition)]
    return bool(conditions) and all(
        (one.single and any_glob(one.single, worker) is not Truth.NO)
        or any(_ends_with(glob.pattern, worker, ahead) for glob in one.chains)
        for one in conditions
    )


def _ends_with(pattern: str, worker: str, ahead: bool) -> bool:
    last = pattern.rpartition(CHAIN)[2]
    if ahead and "*" in last:
        if "[" in last:  # a character set is not worth analysing: assume it matches
            return True
        last = f"*{last.rpartition('*')[2]}"  # a star may match several workers of a chain
    return Glob(last, over_names=True).find(worker) is not Truth.NO


# --- rules that apply to the new worker ---


def rules_for(settings: Settings, layers: Sequence[WorkerBound], creator: WorkerFile, name: str) -> list[Any]:
    """Return the rules that a new worker of this name gets: those of the creator's file, and all that name the creator.

    They are rewritten for the new worker: what the creator must not do, or has to ask about, applies to it wherever it
    runs, not only where its creator calls it.
    """
    found: list[Any] = []
    own = creator.policy.rules if creator.policy is not None else ()
    for rule, spot in zip(own, creator.policy_spots, strict=True):
        by_default = spot.document.file == settings.file  # it applies to every worker anyway, unless it names one
        about = _about(rule, spot.value, _binding(rule, creator.name, name), whole=not by_default)
        if about is not None:
            found.append(about)
    for layer in (one for one in layers if one.lasting):
        for number, rule in enumerate(layer.policy.rules):
            binding = _binding(rule, creator.name, name)
            if rule.effect is Effect.ALLOW or not any(binding):
                continue
            written = layer.policy.written
            if not isinstance(written, list):
                raise WrongUse(f"{rule.id} is about {creator.name}, and cannot be copied to a new worker")
            raw = cast("list[Any]", written)[number]
            found.append(_about(rule, raw, binding, whole=False, layer=layer, directory=settings.directory))
    return found


def _binding(rule: Rule, creator: str, name: str) -> list[bool]:
    """Return which alternatives of a rule are about the creator, and do not already name the new worker."""
    conditions = [[one for one in match.conditions if isinstance(one, WorkerCondition)] for match in rule.matches]
    held = [bool(some) and all(any_glob(one.single, name) is Truth.YES for one in some) for some in conditions]
    return [_names(match, creator) and not is_held for match, is_held in zip(rule.matches, held, strict=True)]


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
