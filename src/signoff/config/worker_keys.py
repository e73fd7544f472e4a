"""The keys of a worker file: PydanticAI's own and ours, and what may stand under each."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from signoff.config.entries import EVERY_WORKER, Limits
from signoff.config.foreign import foreign_hint
from signoff.config.merge import names_in
from signoff.config.tighten import refuse_loosening
from signoff.errors import PolicyError
from signoff.policy.engine import Policy
from signoff.policy.operators import kind_of
from signoff.policy.parse_requirement import read_duration
from signoff.policy.phrases import did_you_mean, shown
from signoff.policy.policy_source import read_policy
from signoff.policy.spot import ConfigValue

SPEC_KEYS = (
    "$schema", "model", "name", "description", "instructions", "deps_schema", "output_schema", "model_settings",
    "retries", "end_strategy", "tool_timeout", "metadata", "capabilities",
)  # fmt: skip
OWN_KEYS = (
    "extends", "toolsets", "delegates", "creates", "policy", "approvers", "limits", "input", "output", "attachments",
)  # fmt: skip
WORKER_KEYS = (*SPEC_KEYS, *OWN_KEYS)
LIMIT_KEYS = ("requests", "tokens", "cost", "time", "depth")
RETRY_KEYS = ("tools", "output")
END_STRATEGIES = ("early", "graceful", "exhaustive")
NOT_INHERITED = ("$schema", "name", "extends")
"""What a worker says for itself alone."""
DEFAULT_KEYS = tuple(key for key in WORKER_KEYS if key not in (*NOT_INHERITED, "description", "attachments"))
"""What `defaults.worker` may say."""
SAME = {"output": "output_schema", "output_schema": "output", "input": "deps_schema", "deps_schema": "input"}
"""Two names for one thing: ours and PydanticAI's."""

_CHANGES = ("add", "drop")
_FRACTION = re.compile(r"[0-9]+\s*(?:ms|msec|us|µs|ns|millis\w*|micros\w*)|[0-9]*\.[0-9]+\s*[a-zµ]*", re.IGNORECASE)
_NOT_HERE = {
    "config": "toolsets",
    "use": "toolsets",
    "mcp_servers": "toolsets",
    "people": "people",
    "store": "store",
    "plugins": "plugins",
    "channels": "channels",
}


def check_worker(entries: Mapping[str, ConfigValue], project_file: str) -> None:
    """Refuse unknown keys, values of the wrong kind, and two keys for one thing."""
    for key, spot in entries.items():
        if key in WORKER_KEYS:
            _CHECKS[key](spot)
        elif key in _NOT_HERE:
            fix = f"write it in {shown(project_file)}, under `{_NOT_HERE[key]}`"
            raise spot.wrong_key(f"{shown(key)} is configuration, and a worker file holds none", fix)
        else:
            raise spot.wrong_key(f"unknown key {shown(key)}", foreign_hint(key) or did_you_mean(key, WORKER_KEYS))
    for key in ("output", "input"):
        if key in entries and SAME[key] in entries:
            raise entries[SAME[key]].wrong_key(f"`{key}` says the same", "keep one of them")


def check_defaults(spot: ConfigValue) -> None:
    """The same for `defaults.worker` of the project file."""
    entries = spot.entries(what="a mapping such as {limits: {requests: 50}}")
    for key, value in entries.items():
        if key in WORKER_KEYS and key not in DEFAULT_KEYS:
            raise value.wrong_key(f"{shown(key)} makes no sense for every worker", "write it in a worker's file")
        if key not in DEFAULT_KEYS:
            raise value.wrong_key(f"unknown key {shown(key)}", did_you_mean(key, DEFAULT_KEYS))
    check_worker(entries, spot.document.file)
    if "toolsets" in entries and toolset_names(entries["toolsets"], spot.document.file).changes:
        raise entries["toolsets"].wrong("defaults come first: there is nothing to change yet", "write a list of names")
    if "policy" in entries:
        read_worker_policy(entries["policy"], "defaults", None, spot.document.file)


def read_worker_policy(spot: ConfigValue, name: str, root: str | None, project_file: str) -> Policy:
    """A worker's own rules. One that lets something run is refused: where the project is silent, it would decide."""
    return refuse_loosening(
        read_policy(spot, name=name, root=root),
        spot,
        whose="a worker's own rules",
        more="grant it more",
        instead=f"write it in {shown(project_file)}, under `policy`, with {{worker: {name}}} as a condition",
        file=project_file,
    )


def read_limits(entries: Mapping[str, ConfigValue]) -> Limits:
    """How far a run may go."""
    return Limits(
        requests=entries["requests"].count() if "requests" in entries else None,
        tokens=entries["tokens"].count() if "tokens" in entries else None,
        cost=_positive(entries["cost"]) if "cost" in entries else None,
        time=_time(entries["time"]) if "time" in entries else None,
        depth=_from_zero(entries["depth"]) if "depth" in entries else None,
    )


def _time(spot: ConfigValue) -> timedelta:
    if isinstance(spot.value, float) or (isinstance(spot.value, str) and _FRACTION.fullmatch(spot.value.strip())):
        fix = "the smallest is `1s`; write `30s`, `15m`, `2h`, `1d` or a whole number of seconds"
        raise spot.wrong(f"time is counted in whole seconds, and this is {shown(str(spot.value))}", fix)
    return read_duration(spot)


@dataclass(frozen=True, slots=True)
class ToolsetNames:
    """What a worker file says under `toolsets`: names, each with its place."""

    names: tuple[ConfigValue, ...] = ()
    """In the place of what it extends gives."""
    add: tuple[ConfigValue, ...] = ()
    drop: tuple[ConfigValue, ...] = ()
    changes: bool = False
    """Whether it adds to what it extends gives, or drops some of it, and has no `names`."""

    def after(self, given: Sequence[ConfigValue]) -> list[ConfigValue]:
        """The names that hold, where `given` is what the file extends. Raises where a change would change nothing."""
        if not self.changes:
            return list(self.names)
        there = {spot.value: spot for spot in given}
        for spot in self.drop:
            if spot.value not in there:
                fix = did_you_mean(spot.value, there) or "leave it out"
                raise spot.wrong(f"what it extends gives no toolset {shown(spot.value)} to drop", fix)
        for spot in self.add:
            if spot.value in there:
                raise spot.wrong(f"{shown(spot.value)} is given already ({there[spot.value].place})", "leave it out")
        dropped = {spot.value for spot in self.drop}
        return [*(spot for name, spot in there.items() if name not in dropped), *self.add]


def toolset_names(spot: ConfigValue, project_file: str = "signoff.yaml") -> ToolsetNames:
    """What stands under `toolsets`: a list of names, `{name: {}}`, or `{add: […], drop: […]}`.

    Configuration there is refused with the place where it belongs. A toolset that is called `add` is told from the
    word by what it is given: nothing, as `{add: {}}`.
    """
    if isinstance(spot.value, dict):
        return _named_or_changed(spot, project_file)
    for item in spot.one_or_more("a list of names of toolsets") if spot.value != [] else ():
        if isinstance(item.value, dict):
            raise _configured(item, next(iter(item.entries()), "NAME"), project_file)
    return ToolsetNames(tuple(names_in(spot, "names of toolsets")))


def _named_or_changed(spot: ConfigValue, project_file: str) -> ToolsetNames:
    entries = spot.entries()
    changes = {key: value for key, value in entries.items() if key in _CHANGES and not isinstance(value.value, dict)}
    for key, value in entries.items():
        if key in changes:
            continue
        if changes:
            fix = f"write `add: [{key}]`, or all of them as a list of names"
            raise value.wrong_key(f"{shown(key)} is a name beside `{next(iter(changes))}`", fix)
        if value.value != {}:
            raise _configured(value, key, project_file)
    if not changes:
        return ToolsetNames(tuple(ConfigValue(spot.document, key, value.trail) for key, value in entries.items()))
    found = {key: tuple(names_in(value, "names of toolsets")) for key, value in changes.items()}
    for key, names in found.items():
        if not names:
            raise changes[key].wrong("the list is empty", f"name the toolsets to {key}, or leave it out")
    add, drop = found.get("add", ()), found.get("drop", ())
    for one in add:
        if one.value in {other.value for other in drop}:
            raise one.wrong(f"{shown(one.value)} is added and dropped", "keep one of them")
    return ToolsetNames(add=add, drop=drop, changes=True)


def _configured(spot: ConfigValue, name: str, project_file: str) -> PolicyError:
    fix = f"write it in {shown(project_file)}, under `toolsets`, and only the name here: toolsets: [{name}]"
    return spot.wrong("a worker file lists toolsets by name; what configures them belongs elsewhere", fix)


def delegate_names(spot: ConfigValue) -> list[ConfigValue]:
    """The names under `delegates`, or `*` alone."""
    items = names_in(spot, "names of workers")
    every = next((item for item in items if item.value == EVERY_WORKER), None)
    if every is not None and len(items) > 1:
        raise every.wrong("`*` is every worker already", 'write `delegates: "*"`, or only names')
    return items


def _mapping(spot: ConfigValue) -> None:
    spot.entries()


def _instructions(spot: ConfigValue) -> None:
    for item in spot.one_or_more("a list of texts"):
        item.text("what the worker is told")


def _retries(spot: ConfigValue) -> None:
    if not isinstance(spot.value, dict):
        _from_zero(spot)
        return
    for value in spot.entries(RETRY_KEYS).values():
        _from_zero(value)


def _capabilities(spot: ConfigValue) -> None:
    for item in spot.items("a list of capabilities") if spot.value != [] else ():
        if not isinstance(item.value, dict):
            item.text("a capability: a name, or {NAME: what it takes}")
        elif len(item.entries()) != 1:
            raise item.wrong("a capability is one name, with what it takes", "write it as in {Thinking: {…}}")


def _json_schema(spot: ConfigValue) -> None:
    _mapping(spot)
    from jsonschema import Draft202012Validator, SchemaError  # few worker files need it, and it takes its time

    try:
        Draft202012Validator.check_schema(spot.value)
    except SchemaError as error:
        where = ConfigValue(spot.document, error.instance, (*spot.trail, *error.path))
        said = " ".join(error.message.split())[:200]
        raise where.wrong(
            f"this is no JSON schema: {said}", "write it as in {type: object, properties: {…}}"
        ) from error


def _object_schema(spot: ConfigValue) -> None:
    _json_schema(spot)
    if spot.value.get("type") != "object":
        fix = "write it as in {type: object, properties: {issue: {type: string}}, required: [issue]}"
        raise spot.wrong("what a worker is given has fields, and this schema describes none", fix)


def _number(spot: ConfigValue) -> float:
    if isinstance(spot.value, bool) or not isinstance(spot.value, (int, float)) or not math.isfinite(spot.value):
        raise spot.wrong(f"this should be a number, not {kind_of(spot.value)}")
    return spot.value


def _positive(spot: ConfigValue) -> float:
    if _number(spot) <= 0:
        raise spot.wrong(f"{spot.value} is too small", "it should be more than 0")
    return spot.value


def _from_zero(spot: ConfigValue) -> int:
    if isinstance(spot.value, bool) or not isinstance(spot.value, int):
        raise spot.wrong(f"this should be a whole number, not {kind_of(spot.value)}")
    if spot.value < 0:
        raise spot.wrong(f"{spot.value} is too small", "it should be 0 or more")
    return spot.value


_CHECKS: dict[str, Callable[[ConfigValue], object]] = {
    "$schema": lambda spot: spot.text("where the schema of this file is"),
    "model": lambda spot: spot.text("the name of a model"),
    "name": lambda spot: spot.text("the worker's name"),
    "description": lambda spot: spot.text("what the worker does"),
    "instructions": _instructions,
    "deps_schema": _json_schema,
    "output_schema": _json_schema,
    "model_settings": _mapping,
    "retries": _retries,
    "end_strategy": lambda spot: spot.choice(END_STRATEGIES),
    "tool_timeout": _positive,
    "metadata": _mapping,
    "capabilities": _capabilities,
    "extends": lambda spot: spot.text("the name of a worker"),
    "toolsets": toolset_names,
    "delegates": delegate_names,
    "creates": lambda spot: spot.flag(),
    "policy": lambda spot: None,  # read as rules, under the name of its worker
    "approvers": lambda spot: names_in(spot, "roles"),
    "limits": lambda spot: read_limits(spot.entries(LIMIT_KEYS, what="a mapping such as {requests: 50}")),
    "input": _object_schema,
    "output": _json_schema,
    "attachments": lambda spot: names_in(spot, "files"),
}
