"""`channels:` in the project file: where people are asked, besides the terminal of a command."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from signoff.config.merge import NAME, check_name
from signoff.config.variables import filled
from signoff.policy.format import (
    DURATION,
    Format,
    MappingFormat,
    choice,
    matching,
    names,
    read_duration,
)
from signoff.policy.phrases import did_you_mean, shown
from signoff.policy.placed_value import ConfigValue

TIMEOUTS: Mapping[str, timedelta | None] = {"discord": timedelta(minutes=5), "terminal": None}
"""Default timeout of each kind of channel, if neither the entry nor the rule sets one."""
NOTIFIED = ("approvers", "nobody")
"""Who may be notified of a call: the people who may answer it, or nobody."""
DISCORD_TOKEN = "${DISCORD_TOKEN}"
NO_TIMEOUT = "none"

_DISCORD_ID = "[1-9][0-9]{14,19}"
_PLANNED = ("slack", "web", "webhook", "notify")
_VARIABLE = r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"
_EXAMPLE = 'a mapping such as {channel: "112233445566778899"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelEntry:
    """One channel, as in the file. The environment is read only when the channel is opened."""

    name: str
    use: str
    """The kind of channel: `discord` or `terminal`."""
    token: str = ""
    """The environment variable that holds the token, as written: `${NAME}`."""
    channel: str = ""
    """The id of the channel at the service in which people are asked."""
    workers: tuple[str, ...] = ()
    """The workers that may be started from there."""
    timeout: timedelta | None = None
    """Timeout of a request after it was shown there, if its rule sets none; None: no timeout."""
    notify: str = NOTIFIED[0]
    """Who is notified of a request there: one of `NOTIFIED`."""
    spot: ConfigValue
    spots: Mapping[str, ConfigValue] = field(default_factory=dict[str, ConfigValue])
    """The position of each key."""

    @property
    def variable(self) -> str:
        """The name of the environment variable that holds the token; empty if none is needed."""
        return self.token[2:-1]

    def secret(self) -> str:
        """The token, from the environment. Raises `WrongFile` that names the variable if it is not set."""
        spot = self.spots.get("token", self.spot)
        if self.variable and self.variable not in os.environ:  # no hint at defaults: a secret would be in the file
            raise spot.wrong(f"the environment has no {self.variable}", "set it to the bot's token")
        value: str = filled(self.token, spot).value
        if not value.strip():
            raise spot.wrong(f"the environment has an empty {self.variable}", "set it to the bot's token")
        return value.strip()


def read_channels(spot: ConfigValue) -> dict[str, ChannelEntry]:
    """Read every channel, in the order of the file."""
    found = spot.entries(what="a mapping of names to channels") if spot.value is not None else {}
    entries = {name: _entry(name, one) for name, one in found.items()}
    _check_places(entries)
    return entries


def discord_id(what: str) -> Format[str]:
    """A Discord id. It must be in quotes: other programs would round a number."""
    return matching(
        _DISCORD_ID,
        what,
        "{} is not a Discord ID: an ID has 15 to 20 digits",
        "turn on Developer Mode in Discord (Settings, Advanced), then right-click and Copy ID",
        name="discordId",
    )


def is_discord_id(text: str) -> bool:
    """Whether a text can be a Discord id."""
    return re.fullmatch(_DISCORD_ID, text) is not None


def _entry(name: str, spot: ConfigValue) -> ChannelEntry:
    check_name(spot, name, "channel")
    keys = spot.entries(what=_EXAMPLE)
    use = _kind(name, spot, keys)
    KINDS[use].entries(spot)
    if use == "discord" and "channel" not in keys:
        raise spot.wrong("`channel` is missing", 'write the id of a text channel: channel: "112233445566778899"')
    token = DISCORD_TOKEN if use == "discord" else ""
    found: dict[str, Any] = {"token": token, "timeout": TIMEOUTS[use], **KINDS[use].values(keys), "use": use}
    return ChannelEntry(name=name, spot=spot, spots=keys, **found)


def _kind(name: str, spot: ConfigValue, keys: Mapping[str, ConfigValue]) -> str:
    """The kind of channel: the value of `use`, or else its name."""
    use = keys["use"].text("a kind of channel, such as discord") if "use" in keys else name
    if use in KINDS:
        return use
    wrong = keys["use"].wrong if "use" in keys else spot.wrong_key
    if use in _PLANNED:
        raise wrong(f"this version has no {use} channel yet", f"remove it for now; there are: {', '.join(KINDS)}")
    if "use" in keys:
        raise wrong(f"there is no kind of channel called {shown(use)}", did_you_mean(use, KINDS))
    raise wrong(f"nothing says what kind of channel {shown(use)} is", f"add `use:` and one of {', '.join(KINDS)}")


def _read_timeout(spot: ConfigValue) -> timedelta | None:
    return None if spot.value == NO_TIMEOUT else read_duration(spot)


def _read_notify(spot: ConfigValue) -> str:
    found = spot.text(f"who is notified: {' or '.join(NOTIFIED)}")
    if found not in NOTIFIED:
        raise spot.wrong(f"notify cannot be {shown(found)}", did_you_mean(found, NOTIFIED))
    return found


def _check_places(entries: Mapping[str, ChannelEntry]) -> None:
    """Refuse two entries with the same bot and Discord channel: each would not recognise the messages of the other."""
    taken: dict[tuple[str, str], str] = {}
    for name, entry in entries.items():
        if entry.use != "discord":
            continue
        other = taken.setdefault((entry.channel, entry.token), name)
        if other != name:
            raise entry.spots["channel"].wrong(
                f"{shown(other)} already uses this Discord channel with the same bot",
                'name another channel of Discord\'s, or another bot: token: "${OTHER_TOKEN}"',
            )


_DISCORD = MappingFormat(
    {
        "use": choice(TIMEOUTS).about("The kind of channel. Default: the name of the entry."),
        "token": matching(
            _VARIABLE,
            "a variable",
            "this is not a variable",  # the value is never shown: it may be the token itself
            f'secrets come from the environment: token: "{DISCORD_TOKEN}"',
        ).about("The environment variable that holds the bot's token. Default: ${DISCORD_TOKEN}"),
        "channel": discord_id("the id of a Discord channel").about(
            "The id of the text channel in which threads are created, in quotes."
        ),
        "workers": names("workers")
        .into(lambda found: tuple(one.value for one in found))
        .about("The workers that can be started by mentioning the bot. Default: none."),
        "timeout": Format(_read_timeout, {"anyOf": [{"const": NO_TIMEOUT}, DURATION]}).about(
            "How long to wait for an answer if the rule sets no timeout; none: without limit. Default on Discord: 5m."
        ),
        "notify": choice(NOTIFIED)
        .by(_read_notify)
        .about("Who is mentioned in a request. Default: approvers, the people who may answer it."),
    }
)
KINDS: Mapping[str, MappingFormat] = {
    "discord": _DISCORD,
    "terminal": MappingFormat({key: _DISCORD.keys[key] for key in ("use", "timeout")}),
}
"""The keys of each kind of channel."""
_CHANNEL = Format(
    _entry,
    {
        **_DISCORD.schema,
        "if": {"properties": {"use": {"const": "discord"}}, "required": ["use"]},
        "then": {"required": ["channel"]},
    },
    "channel",
)
CHANNELS = Format(
    read_channels,
    {
        "description": "Channels besides the terminal: signoff channels run NAME.",
        "type": ["object", "null"],
        "propertyNames": {"pattern": f"^{NAME}$"},
        "properties": {
            "discord": {"$ref": _CHANNEL, "anyOf": [{"required": ["channel"]}, {"required": ["use"]}]},
            "terminal": _CHANNEL,
        },
        "additionalProperties": {"$ref": _CHANNEL, "required": ["use"]},
    },
)
