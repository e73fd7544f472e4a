"""`channels:` in the project file: where people are asked, besides the terminal of a command.

An entry names a kind of channel by `use`. Its keys are those of every channel, and those of its kind: the keys of a
kind of the registry are checked when the file is read; those of any other when the channel is opened, because that
imports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

from signoff.channel_kinds import BUILT_IN, COMMON, ChannelKind, KindKeys, built_in
from signoff.config.merge import NAME, USE_PATTERN, check_name, lineage, merged, read_use
from signoff.policy.format import DURATION, DeferredFormat, Format, MappingFormat, names, read_duration, text
from signoff.policy.phrases import shown
from signoff.policy.placed_value import ConfigValue

NO_TIMEOUT = "none"
_EXAMPLE = "a mapping such as {use: KIND}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelEntry:
    """One channel, as in the file, with `extends` and the project's defaults merged in."""

    name: str
    use: str
    """The kind of channel: a name of the registry, an entry point, or `package.module:NAME`."""
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The keys of its kind, as written: variables are replaced when the channel is opened."""
    workers: tuple[str, ...] = ()
    """The workers that may be started from there."""
    given_timeout: timedelta | None = None
    """Its `timeout`. None: it has none, or it is `none`."""
    spot: ConfigValue
    spots: Mapping[str, ConfigValue] = field(default_factory=dict[str, ConfigValue])
    """The position of each key: with `extends`, in another entry."""
    config_spots: Mapping[str, ConfigValue] = field(default_factory=dict[str, ConfigValue])
    """The position of each key of `config`, by its path."""

    def timeout(self, kind: ChannelKind) -> timedelta | None:
        """Timeout of a request after it was shown there, if its rule sets none; None: no timeout."""
        return self.given_timeout if "timeout" in self.spots else kind.timeout

    def value(self, kind: ChannelKind, key: str) -> Any:
        """The value of a key of its kind, as written, or its default."""
        if key in self.config:
            return self.config[key]
        return kind.config.defaults.get(key) if isinstance(kind.config, KindKeys) else None

    def variable(self, kind: ChannelKind, key: str) -> str:
        """The name of the environment variable that holds a secret; empty if there is none."""
        written = self.value(kind, key)
        return written[2:-1] if isinstance(written, str) else ""

    def place(self, kind: ChannelKind) -> str:
        """Where people are asked there, as far as one key of its kind says it."""
        found = self.value(kind, kind.place[0]) if kind.place else None
        return found if isinstance(found, str) else ""


def read_channels(spot: ConfigValue, defaults: ConfigValue | None = None) -> dict[str, ChannelEntry]:
    """Read every channel, in the order of the file, with `extends` and the defaults merged in."""
    found = spot.entries(what="a mapping of names to channels") if spot.value is not None else {}
    written: dict[str, dict[str, ConfigValue]] = {}
    for name, one in found.items():
        check_name(one, name, "channel")
        written[name] = one.entries(what=_EXAMPLE)
    base = DEFAULTS.entries(defaults) if defaults is not None else {}
    DEFAULTS.values(base)
    entries = {name: _entry(name, found, written, base) for name in found}
    check_places((entry, built_in(entry.use)) for entry in entries.values() if entry.use in BUILT_IN)
    return entries


def check_places(channels: Iterable[tuple[ChannelEntry, ChannelKind]]) -> None:
    """Refuse two channels in the same place: each would not recognise the messages of the other."""
    taken: dict[tuple[object, ...], str] = {}
    for entry, kind in channels:
        if not kind.place:
            continue
        other = taken.setdefault((entry.use, *(str(entry.value(kind, key)) for key in kind.place)), entry.name)
        if other != entry.name:
            are = "is" if len(kind.place) == 1 else "are"
            raise entry.spots.get(kind.place[0], entry.spot).wrong(
                f"{shown(other)} already asks there: {' and '.join(map(shown, kind.place))} {are} the same",
                f"two channels of a kind need different places: change {' or '.join(map(shown, kind.place))}",
            )


def has_foreign_kinds(channels: object) -> bool:
    """Whether one of the `channels`, as written, is of a kind that is not in the registry."""
    if not isinstance(channels, dict):
        return False
    entries = cast("dict[str, Any]", channels)

    def use_of(name: str, seen: tuple[str, ...] = ()) -> object:
        entry: Any = entries.get(name)
        if not isinstance(entry, dict):
            return name
        if "use" in entry:
            return cast("object", entry["use"])
        parent: object = cast("dict[str, Any]", entry).get("extends")
        return use_of(parent, (*seen, name)) if isinstance(parent, str) and parent not in seen else name

    return any(use_of(name) not in [*BUILT_IN] for name in entries)


def _entry(
    name: str,
    found: Mapping[str, ConfigValue],
    written: Mapping[str, Mapping[str, ConfigValue]],
    base: Mapping[str, ConfigValue],
) -> ChannelEntry:
    line = lineage(name, lambda one: written[one].get("extends"), written, "channel")
    spot, layers = found[name], [base, *(written[one] for one in line)]
    keys = {key: value for layer in layers for key, value in layer.items() if key != "extends"}  # the innermost wins
    use = read_use(keys["use"], "a kind of channel, such as terminal") if "use" in keys else line[0]
    values: dict[str, Any] = _KEYS.values(keys)
    spots = dict(keys)
    if use in BUILT_IN:
        kind = built_in(use)
        format_of(kind).check(keys, spot)
        config, config_spots = kind.config.values(keys), {key: keys[key] for key in kind.config.keys if key in keys}
    else:
        own = merged(found[one] for one in line)
        config = {key: value for key, value in own.value.items() if key not in COMMON}
        config_spots = {path: one for path, one in own.spots.items() if path not in COMMON}
    timeout = values.pop("timeout", None)
    return ChannelEntry(
        name=name,
        use=use,
        config=config,
        workers=values.get("workers", ()),
        given_timeout=timeout,
        spot=spot,
        spots=spots,
        config_spots=config_spots,
    )


def format_of(kind: ChannelKind) -> MappingFormat:
    """The keys that an entry of a kind of the registry may have."""
    keys: KindKeys = kind.config
    common = {key: one for key, one in _KEYS.keys.items() if kind.starts or key != "workers"}
    return MappingFormat({**common, **keys.keys}, what=_EXAMPLE, required=keys.required)


def _read_timeout(spot: ConfigValue) -> timedelta | None:
    return None if spot.value == NO_TIMEOUT else read_duration(spot)


_KEYS = MappingFormat(
    {
        "use": Format(
            lambda spot: read_use(spot, "a kind of channel"),
            {"type": "string", "pattern": USE_PATTERN, "examples": [*BUILT_IN]},
        ).about(
            "The kind of channel: a built-in name, an entry point, or package.module:NAME. Default: the entry's name."
        ),
        "extends": text("the name of a channel").about("Another channel, whose keys apply unless this one sets them."),
        "timeout": Format(_read_timeout, {"anyOf": [{"const": NO_TIMEOUT}, DURATION]}).about(
            "How long to wait for an answer if the rule sets no timeout; none: without limit. Default: the kind's."
        ),
        "workers": names("workers")
        .into(lambda found: tuple(one.value for one in found))
        .about("The workers that can be started from there. Default: none."),
    }
)
"""The keys of every channel."""
DEFAULTS = MappingFormat({"timeout": _KEYS.keys["timeout"]}, what="a mapping such as {timeout: 15m}")
"""The keys of `defaults.channel`."""


def _schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each kind of the registry: its name, and the schema of its entries."""
    for name in BUILT_IN:
        whole = format_of(built_in(name)).schema
        keys = {key: value for key, value in whole.items() if key != "required"}
        keys["description"] = f"A channel of the kind {name}."
        one = Format(lambda spot: spot, keys, f"{name}Channel")
        yield name, {"$ref": one, **_required(list(whole.get("required", ())))}


def _required(keys: list[str]) -> dict[str, Any]:
    return {"anyOf": [{"required": keys}, {"required": ["extends"]}]} if keys else {}


def _entry_schema() -> dict[str, Any]:
    return {
        "description": "A channel of any kind: these keys, and those of its kind.",
        "type": "object",
        "properties": _KEYS.keys,
        "additionalProperties": True,
        "allOf": [
            {
                "if": {"properties": {"use": {"const": name}}, "required": ["use"]},
                "then": schema,
            }
            for name, schema in _schemas()
        ],
    }


def _channels_schema() -> dict[str, Any]:
    return {
        "description": "Channels besides the terminal: signoff channels run NAME.",
        "type": ["object", "null"],
        "propertyNames": {"pattern": f"^{NAME}$"},
        "properties": {
            name: {
                "if": {"anyOf": [{"required": ["use"]}, {"required": ["extends"]}]},
                "then": {"$ref": _ENTRY},
                "else": schema,
            }
            for name, schema in _schemas()
        },
        "additionalProperties": {"$ref": _ENTRY},
    }


_ENTRY = DeferredFormat(lambda spot: spot, _entry_schema, "channel")
CHANNELS = DeferredFormat(read_channels, _channels_schema)
_BUILT_IN_USE = {"properties": {"use": {"enum": [*BUILT_IN]}}}
ONLY_BUILT_IN = {
    "properties": dict.fromkeys(BUILT_IN, _BUILT_IN_USE),
    "additionalProperties": {"required": ["use"], **_BUILT_IN_USE},
}
"""The schema of channels that are all of kinds of the registry."""
