"""Kinds of channels: what `use` of a channel in the project file names, and all that is known about each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from signoff.errors import MissingExtra
from signoff.policy.format import Format, MappingFormat, matching
from signoff.policy.placed_value import ConfigValue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

GROUP = "signoff.channels"
"""The entry point group by which installed packages (plugins) offer kinds of channels."""
BUILT_IN: Mapping[str, str] = {
    "discord": "signoff.channels.discord.kind:DISCORD",
    "terminal": "signoff.channels.terminal_kind:TERMINAL",
}
"""The registry: the kinds that are always there, by name. Their keys are formats; loading them is cheap."""
_VARIABLE = r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"
COMMON = ("use", "extends", "timeout", "workers")
"""The keys that every channel has. A kind may not have one of these names for a key of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelAccount:
    """How people are known in a kind of channel: by an account, which stands under a key of theirs in `people`."""

    key: str
    what: str = "account"
    """What it is, in messages, as in `Discord account`."""
    pattern: str = r"\S(?:.*\S)?"
    """What an account looks like, as a regular expression."""
    wrong: str = "{} is no such account"
    """What is said of a text that does not look like one; `{}` is the text."""
    hint: str = ""
    """How to find out one's account."""
    example: str = "…"

    @property
    def format(self) -> Format[str]:
        """How it is written in a file."""
        return matching(self.pattern, f"a {self.key} id", self.wrong, self.hint, name=f"{self.key}Id")


class KindKeys(MappingFormat):
    """The keys of a kind that the registry has: formats, checked when the file is read, with their defaults."""

    __slots__ = ("defaults", "required")

    def __init__(
        self,
        keys: Mapping[str, Format[Any]],
        *,
        required: Mapping[str, tuple[str, str]] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(keys, required=required)
        self.defaults = defaults or {}
        self.required = required or {}


class CheckStep(NamedTuple):
    """One step of checking whether a channel can work."""

    step: str
    """What was checked, as in `the bot may write there`."""
    problem: str = ""
    """What is wrong, and how to fix it. Empty: nothing."""
    is_needed: bool = True
    """Whether the channel cannot work without it."""


@dataclass(frozen=True, kw_only=True)
class ChannelKind:
    """A kind of channel, for the entry point group `signoff.channels` or for `use: package.module:NAME`.

    Only `build` is needed. A class or function that makes a channel stands for a kind with that `build`.
    """

    build: Callable[..., Any]
    """Creates a `Channel`. Its parameter `config` gets the validated keys of the entry, `context` a `ChannelContext`.

    Any other parameter is filled from the key of its name.
    """
    config: Any = None
    """What checks its keys: a pydantic model, a dataclass, a TypedDict, a JSON schema. None: as `build` declares it."""
    title: str = ""
    """Its name for people, as in `Discord`."""
    account: ChannelAccount | None = None
    """How people are known there. None: by their name in `people`."""
    answers: bool = True
    """Whether people answer there. Otherwise it tells them, with a link to where they can."""
    starts: bool = False
    """Whether people can start workers from there: the entry may have `workers`, and the context a `begin`."""
    at_terminal: bool = False
    """Whether it asks at the terminal of the program that runs it. A server does not run such channels."""
    timeout: timedelta | None = None
    """How long a request waits after it was shown there, if neither its rule nor the entry says so."""
    place: tuple[str, ...] = ()
    """The keys that say where people are asked. Two channels may not have the same; lists show the first."""
    secrets: Mapping[str, str] = field(default_factory=dict[str, str])
    """Keys of secrets, and what each is, as in `{"token": "the bot's token"}`. Only a variable may be written there."""
    modules: tuple[str, ...] = ()
    """Modules that it needs and that may not be installed."""
    extra: str = ""
    """What to install for them, as pip takes it: `mycompany-pager[push]`."""
    check: Callable[..., AsyncIterator[CheckStep]] | None = None
    """Called as `build` is, by `channels test`: yields what it checked before anything is shown, step by step."""
    loggers: tuple[str, ...] = ()
    """Loggers of its library that `channels run` silences: what matters is reported as events."""


@cache
def built_in(name: str) -> ChannelKind:
    """The kind with this name in the registry."""
    module, _, attribute = BUILT_IN[name].partition(":")
    return getattr(import_module(module), attribute)


def secret_variable(what: str, example: str) -> Format[str]:
    """A key that names the environment variable of a secret. The value is never shown: it may be the secret itself."""

    def read(spot: ConfigValue) -> str:
        check_secret(spot, what, example)
        return cast("str", spot.value)

    return Format(read, {"type": "string", "pattern": f"^{_VARIABLE}$"})


def check_secret(spot: ConfigValue, what: str, example: str) -> None:
    """Raise unless the value is a variable."""
    if not re.fullmatch(_VARIABLE, spot.text("a variable")):
        raise spot.wrong("this is not a variable", f"secrets come from the environment: {example}: {what}")


def check_modules(use: str, kind: ChannelKind) -> None:
    """Raise `MissingExtra` if something that a kind needs is not installed."""
    for module in kind.modules:
        try:
            import_module(module)
        except ImportError as error:
            raise MissingExtra(f"The {kind.title or use} channel", install=kind.extra or module) from error
