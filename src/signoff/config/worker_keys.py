"""The keys of a worker file, PydanticAI's and signoff's own, and the values they take."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from signoff.config.entries import EVERY_WORKER, Limits
from signoff.config.llm_do_words import foreign_hint
from signoff.config.merge import NAME
from signoff.config.stricter_layers import refuse_loosening
from signoff.errors import PolicyError
from signoff.policy.engine import Policy
from signoff.policy.format import (
    ANY_MAPPING,
    COUNT,
    DURATION,
    FLAG,
    WHOLE,
    Format,
    MappingFormat,
    choice,
    each,
    names,
    read_duration,
    read_elsewhere,
    read_names,
    text,
)
from signoff.policy.operators import kind_of
from signoff.policy.parse import RULE
from signoff.policy.phrases import did_you_mean, shown
from signoff.policy.placed_value import ConfigValue
from signoff.policy.policy_source import read_policy

NOT_INHERITED = ("$schema", "name", "extends")
"""Keys that are never inherited."""
SAME = {"output": "output_schema", "output_schema": "output", "input": "deps_schema", "deps_schema": "input"}
"""Two names for one key: signoff's and PydanticAI's."""

_FRACTION = r"(?i)[0-9]+\s*(?:ms|msec|us|µs|ns|millis\w*|micros\w*)|[0-9]*\.[0-9]+\s*[a-zµ]*"
_NOT_HERE = {
    "config": "toolsets",
    "use": "toolsets",
    "mcp_servers": "toolsets",
    "people": "people",
    "store": "store",
    "plugins": "plugins",
    "channels": "channels",
    "agents": "agents",
}


def check_worker(entries: Mapping[str, ConfigValue], project_file: str) -> None:
    """Refuse unknown keys, values of the wrong type, and two names for one key."""
    for key, spot in entries.items():
        if key in WORKER.keys:
            WORKER.keys[key].read(spot)
        elif key in _NOT_HERE:
            fix = f"write it in {shown(project_file)}, under `{_NOT_HERE[key]}`"
            raise spot.wrong_key(f"{shown(key)} is configuration, which is not allowed in a worker file", fix)
        else:
            raise spot.wrong_key(f"unknown key {shown(key)}", foreign_hint(key) or did_you_mean(key, WORKER.keys))
    for key in ("output", "input"):
        if key in entries and SAME[key] in entries:
            raise entries[SAME[key]].wrong_key(f"`{key}` says the same", "keep one of them")


def check_defaults(spot: ConfigValue) -> None:
    """As `check_worker`, for `defaults.worker` in the project file."""
    entries = spot.entries(what="a mapping such as {limits: {requests: 50}}")
    for key, value in entries.items():
        if key in WORKER.keys and key not in DEFAULTS.keys:
            raise value.wrong_key(f"{shown(key)} makes no sense for every worker", "write it in a worker's file")
        if key not in DEFAULTS.keys:
            raise value.wrong_key(f"unknown key {shown(key)}", did_you_mean(key, DEFAULTS.keys))
    check_worker(entries, spot.document.file)
    if "toolsets" in entries and toolset_names(entries["toolsets"], spot.document.file).changes:
        raise entries["toolsets"].wrong(
            "defaults apply first, so there is nothing to add or drop yet", "write a list of names"
        )
    if "policy" in entries:
        read_worker_policy(entries["policy"], "defaults", None, spot.document.file)


def read_worker_policy(spot: ConfigValue, name: str, root: str | None, project_file: str) -> Policy:
    """Read a worker's own rules. A rule that allows is refused: if the project has no rule, it would decide alone."""
    return refuse_loosening(
        read_policy(spot, name=name, root=root),
        spot,
        whose="a worker's own rules",
        more="grant it more",
        instead=f"write it in {shown(project_file)}, under `policy`, with {{worker: {name}}} as a condition",
        file=project_file,
    )


def read_limits(entries: Mapping[str, ConfigValue]) -> Limits:
    """Read the limits of a run."""
    return Limits(**LIMITS.values(entries))


def _time(spot: ConfigValue) -> timedelta:
    if isinstance(spot.value, float) or (isinstance(spot.value, str) and re.fullmatch(_FRACTION, spot.value.strip())):
        fix = "the smallest is `1s`; write `30s`, `15m`, `2h`, `1d` or a whole number of seconds"
        raise spot.wrong(f"time is counted in whole seconds, and this is {shown(str(spot.value))}", fix)
    return read_duration(spot)


@dataclass(frozen=True, slots=True)
class ToolsetNames:
    """The value of `toolsets` in a worker file: names with their positions."""

    names: tuple[ConfigValue, ...] = ()
    """These replace the toolsets of the extended worker."""
    add: tuple[ConfigValue, ...] = ()
    drop: tuple[ConfigValue, ...] = ()
    changes: bool = False
    """Whether it adds to, or drops from, the toolsets of the extended worker. Then `names` is empty."""

    def after(self, given: Sequence[ConfigValue]) -> list[ConfigValue]:
        """The resulting names; `given` are those of the extended worker. Raises if a change would have no effect."""
        if not self.changes:
            return list(self.names)
        there = {spot.value: spot for spot in given}
        for spot in self.drop:
            if spot.value not in there:
                fix = did_you_mean(spot.value, there) or "leave it out"
                raise spot.wrong(f"the extended worker has no toolset {shown(spot.value)} to drop", fix)
        for spot in self.add:
            if spot.value in there:
                raise spot.wrong(f"{shown(spot.value)} is given already ({there[spot.value].place})", "leave it out")
        dropped = {spot.value for spot in self.drop}
        return [*(spot for name, spot in there.items() if name not in dropped), *self.add]


def toolset_names(spot: ConfigValue, project_file: str = "signoff.yaml") -> ToolsetNames:
    """Read `toolsets`: a list of names, `{name: {}}`, or `{add: […], drop: […]}`.

    Configuration is refused, with the place where it belongs. A toolset that is called `add` is recognised by its empty
    mapping: `{add: {}}`.
    """
    if isinstance(spot.value, dict):
        return _named_or_changed(spot, project_file)
    for item in spot.one_or_more("a list of names of toolsets") if spot.value != [] else ():
        if isinstance(item.value, dict):
            raise _configured(item, next(iter(item.entries()), "NAME"), project_file)
    return ToolsetNames(tuple(read_names(spot, "names of toolsets")))


def _named_or_changed(spot: ConfigValue, project_file: str) -> ToolsetNames:
    entries = spot.entries()
    changes = {
        key: value for key, value in entries.items() if key in _CHANGED_NAMES.keys and not isinstance(value.value, dict)
    }
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
    found = {key: tuple(read_names(value, "names of toolsets")) for key, value in changes.items()}
    for key, named in found.items():
        if not named:
            raise changes[key].wrong("the list is empty", f"name the toolsets to {key}, or leave it out")
    add, drop = found.get("add", ()), found.get("drop", ())
    for one in add:
        if one.value in {other.value for other in drop}:
            raise one.wrong(f"{shown(one.value)} is added and dropped", "keep one of them")
    return ToolsetNames(add=add, drop=drop, changes=True)


def _configured(spot: ConfigValue, name: str, project_file: str) -> PolicyError:
    where = shown(project_file)
    fix = f"write it in {where}, under `toolsets`, and only the name here: toolsets: [{name}]"
    if name in ("defaults", "_defaults"):
        fix = f"write in {where} what every worker has: defaults: {{worker: {{toolsets: [NAME, …]}}}}"
    elif is_class_path(name):
        fix = f"give it a name in {where}: {named_entry(name)}, and only the name here: toolsets: [NAME]"
    return spot.wrong("a worker file lists toolsets by name; their configuration does not belong here", fix)


def is_class_path(name: str) -> bool:
    """Whether the name of a toolset is rather the path of its class."""
    return "." in name or ":" in name


def named_entry(path: str) -> str:
    """An entry of the project's file for a class path, with a colon or a dot before the class."""
    module, dot, kind = path.rpartition(".")
    use = path if ":" in path or not dot else f"{module}:{kind}"
    return f'toolsets: {{NAME: {{use: "{use}", config: {{…}}}}}}'


def delegate_names(spot: ConfigValue) -> list[ConfigValue]:
    """The names under `delegates`, or `*` alone."""
    items = read_names(spot, "names of workers")
    every = next((item for item in items if item.value == EVERY_WORKER), None)
    if every is not None and len(items) > 1:
        raise every.wrong("`*` is every worker already", 'write `delegates: "*"`, or only names')
    return items


def _capability(spot: ConfigValue) -> None:
    if not isinstance(spot.value, dict):
        spot.text("a capability: a name, or {NAME: what it takes}")
    elif len(spot.entries()) != 1:
        raise spot.wrong("a capability is one name with its options", "write it as in {Thinking: {…}}")


def _capabilities(spot: ConfigValue) -> None:
    for item in spot.items("a list of capabilities") if spot.value != [] else ():
        _capability(item)


def _json_schema(spot: ConfigValue) -> None:
    ANY_MAPPING.read(spot)
    from jsonschema import Draft202012Validator, SchemaError  # few worker files need it, and the import is slow

    try:
        Draft202012Validator.check_schema(spot.value)
    except SchemaError as error:
        where = ConfigValue(spot.document, error.instance, (*spot.trail, *error.path))
        said = " ".join(error.message.split())[:200]
        raise where.wrong(
            f"this is not a JSON schema: {said}", "write it as in {type: object, properties: {…}}"
        ) from error


def _object_schema(spot: ConfigValue) -> None:
    _json_schema(spot)
    if spot.value.get("type") != "object":
        fix = "write it as in {type: object, properties: {issue: {type: string}}, required: [issue]}"
        raise spot.wrong("the input of a worker has fields, and this schema describes none", fix)


def _positive(spot: ConfigValue) -> float:
    if isinstance(spot.value, bool) or not isinstance(spot.value, (int, float)) or not math.isfinite(spot.value):
        raise spot.wrong(f"this should be a number, not {kind_of(spot.value)}")
    if spot.value <= 0:
        raise spot.wrong(f"{spot.value} is too small", "it should be more than 0")
    return spot.value


def _retries(spot: ConfigValue) -> object:
    return (RETRIES if isinstance(spot.value, dict) else WHOLE).read(spot)


_POSITIVE = Format(_positive, {"type": "number", "exclusiveMinimum": 0})
_JSON_SCHEMA = ANY_MAPPING.by(_json_schema)
_NAMES, _SOME_NAMES = names("names of toolsets"), names("names of toolsets", some=True)
RETRIES = MappingFormat({"tools": WHOLE, "output": WHOLE})
LIMITS = MappingFormat(
    {
        "requests": COUNT.about("The number of model requests."),
        "tokens": COUNT.about("The number of tokens, input and output."),
        "cost": _POSITIVE.about("The cost in US dollars, by published prices."),
        "time": DURATION.by(_time).about("Execution time; waiting for people does not count."),
        "depth": WHOLE.about("How many levels deep it may delegate; 0: not at all."),
    },
    what="a mapping such as {requests: 50}",
    description="Limits of one run, including everything it delegates.",
    name="limits",
)
_CHANGED_NAMES = MappingFormat(
    {
        "add": _SOME_NAMES.about("Toolsets to add to those of the extended worker."),
        "drop": _SOME_NAMES.about("Toolsets to remove from those of the extended worker."),
    }
)
ON_DENIED = choice(("tell", "raise"))
SPEC_KEYS: Mapping[str, Format[Any]] = {
    "$schema": text("where the schema of this file is").about("The address of the JSON schema of this file."),
    "model": text("the name of a model").about("The model, as in anthropic:claude-sonnet-5. Default: the project's."),
    "name": Format(lambda spot: spot.text("the worker's name"), {"type": "string", "pattern": f"^{NAME}$"}).about(
        "The worker's name. It must match the file name."
    ),
    "description": text("what the worker does").about("What it does, in a sentence. Other workers choose by it."),
    "instructions": each(text("what the worker is told"), "a list of texts").about(
        "The instructions. {{field}} is replaced by a field of the input. In a .md file: the text below the keys."
    ),
    "deps_schema": _JSON_SCHEMA.about("PydanticAI's name for input."),
    "output_schema": _JSON_SCHEMA.about("PydanticAI's name for output."),
    "model_settings": ANY_MAPPING.about("Settings for the model, such as {temperature: 0}."),
    "retries": Format(_retries, {"anyOf": [WHOLE, RETRIES]}).about(
        "How often a failed tool call or output is retried."
    ),
    "end_strategy": choice(("early", "graceful", "exhaustive")).about(
        "What happens to tool calls beside a final answer."
    ),
    "tool_timeout": _POSITIVE.about("The time limit of a tool, in seconds."),
    "metadata": ANY_MAPPING.about("Metadata for its runs."),
    "capabilities": Format(
        _capabilities,
        {"type": "array", "items": {"anyOf": [text(), {"type": "object", "minProperties": 1, "maxProperties": 1}]}},
    ).about("PydanticAI capabilities by name."),
}
"""The keys of PydanticAI's own agent spec."""
OWN_KEYS: Mapping[str, Format[Any]] = {
    "extends": text("the name of a worker").about("Another worker, whose keys apply unless this file sets them."),
    "toolsets": Format(
        toolset_names,
        {
            "anyOf": [
                _NAMES,
                {"type": "object", "additionalProperties": {"type": "object", "maxProperties": 0}},
                _CHANGED_NAMES,
            ]
        },
    ).about(
        "Toolsets by name: built-in ones, or those under toolsets in signoff.yaml. {add: [...], drop: [...]} changes "
        "the toolsets of the extended worker."
    ),
    "delegates": _NAMES.by(delegate_names).about('Workers it may call, by name; "*" for all.'),
    "creates": FLAG.about("Whether it may create new workers. A person approves each one first."),
    "policy": Format(
        read_elsewhere,
        {
            "description": "The worker's own rules. They can only tighten: allow and on_timeout: allow belong in "
            "signoff.yaml.",
            "type": "array",
            "items": {"$ref": RULE, "properties": {"allow": False, "on_timeout": {"not": {"const": "allow"}}}},
        },
        "tightening",
    ),
    "approvers": names("roles").about("Roles that must answer its requests: one person with one of them."),
    "on_denied": ON_DENIED.about("Whether a denial is told to its model, or ends the run. Default: the project's."),
    "limits": LIMITS,
    "input": Format(
        _object_schema, {"type": "object", "properties": {"type": {"const": "object"}}, "required": ["type"]}
    ).about("JSON schema of the input. Its fields replace {{field}} in the instructions."),
    "output": _JSON_SCHEMA.about("JSON schema of the output. Default: text."),
    "attachments": names("files").about("Files that are attached to every prompt, relative to this file."),
}
WORKER = MappingFormat(
    {**SPEC_KEYS, **OWN_KEYS},
    description="An agent: PydanticAI's agent spec, with toolsets by name, delegates, limits and rules of its own.",
    schema={"not": {"anyOf": [{"required": [key, SAME[key]]} for key in ("input", "output")]}},
)
DEFAULTS = MappingFormat(
    {key: one for key, one in WORKER.keys.items() if key not in (*NOT_INHERITED, "description", "attachments")}
)
"""The keys of `defaults.worker`."""
