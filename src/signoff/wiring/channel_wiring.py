"""Build channels from the `channels` entries of the project file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from signoff.channel_kinds import (
    BUILT_IN,
    COMMON,
    GROUP,
    ChannelKind,
    KindKeys,
    built_in,
    check_modules,
    check_secret,
)
from signoff.channels.channel_context import ChannelContext, masked_channel
from signoff.config import ChannelEntry, Settings, load_worker, worker_names
from signoff.config.channel_entries import check_places
from signoff.config.plugin_code import check_allowed, load_offered, load_path, offered
from signoff.config.variables import filled_config, unset_variables
from signoff.core.address import spoken_name
from signoff.core.people import Actor
from signoff.delivery import Route
from signoff.errors import SignoffError, WrongUse
from signoff.policy.phrases import did_you_mean, shown
from signoff.ports import Begin, Channel
from signoff.wiring.project import POLICY_FILE, whoami
from signoff.wiring.project_people import Accounts, OnFile, actors_in

if TYPE_CHECKING:
    from signoff.config.config_check import GivenConfig, Shape
    from signoff.policy.placed_value import ConfigValue

_AGENT = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def channel_named(name: str, settings: Settings) -> ChannelEntry:
    """Return the entry of a channel in the project file. Raises `WrongUse` if there is none with that name."""
    entry = settings.channels.get(name)
    if entry is not None:
        return entry
    if not settings.channels:
        where = settings.file or POLICY_FILE
        raise WrongUse(
            f"{where} has no channels\n"
            "  add one, as in channels: {terminal: {}}; docs/guides/channels.md says which there are"
        )
    raise WrongUse(f"{settings.file} has no channel {shown(name)}\n  {did_you_mean(name, settings.channels)}")


def kind_of(entry: ChannelEntry, settings: Settings) -> ChannelKind:
    """Return the kind of a channel. Imports it, if `plugins.allow` covers it; raises `WrongFile` if it cannot."""
    use = entry.use
    if use in BUILT_IN:
        return built_in(use)
    from signoff.config.config_check import described  # few projects need these

    spot = entry.spots.get("use")

    def wrong(what: str, fix: str) -> SignoffError:
        return entry.spot.wrong_key(what, fix) if spot is None else spot.wrong(what, fix)

    if ":" in use:
        found = load_path(use, settings.plugins, settings.directory, wrong)
    elif use in (names := offered(GROUP)):
        found = load_offered(names[use], settings.plugins, settings.directory, wrong)
    elif spot is None:
        raise wrong(
            f"nothing says what kind of channel {shown(use)} is",
            f"add `use:` and one of {', '.join([*BUILT_IN, *names])}, or package.module:NAME",
        )
    else:
        fix = f"{did_you_mean(use, [*BUILT_IN, *names])} One of your own is written package.module:NAME"
        raise wrong(f"there is no kind of channel called {shown(use)}", fix)
    if isinstance(found, ChannelKind):
        return found
    if callable(found):
        return ChannelKind(build=found)
    raise wrong(f"{described(found)} is not a channel", _NO_CHANNEL)


_NO_CHANNEL = "a channel is a ChannelKind, or a class or function that makes a channel"


def actors(entry: ChannelEntry, settings: Settings) -> dict[str, Actor]:
    """Return who could answer in a channel, by their account or name there. Empty: nobody."""
    return actors_in(settings.people, kind_of(entry, settings), entry.name)


def channel_for(
    entry: ChannelEntry,
    settings: Settings,
    *,
    begin: Begin | None = None,
    listens: bool = True,
    link: Callable[[str], str] | None = None,
) -> Channel:
    """Build the channel that an entry describes, not opened yet. `begin` starts workers for people who ask there.

    With `listens=False` it only shows, if the channel supports that, and another program with its secret takes the
    answers. `link` returns the address of a request's page, instead of the `server.url` of the file.

    The person behind an account is looked up in the project file on each action.
    Raises `WrongFile` if its keys are invalid or its secret is not in the environment, `WrongUse` if nobody could
    answer.
    """
    from signoff.config.config_check import described, made_by

    kind, given = check_ready(entry, settings)
    check_modules(entry.use, kind)
    context = context_for(entry, settings, begin=begin, listens=listens, link=link)
    made: object = made_by(kind.build, given, context, contexts=(type(context),), shape=shape_of_kind(kind.build, kind))
    if not isinstance(made, Channel):
        raise given.wrong_use(f"{described(kind.build)} made {described(made)}, which is not a channel", _NO_CHANNEL)
    if made.name != entry.name:
        fix = "a channel has the name that its context gives: context.name"
        raise given.wrong_use(f"it calls itself {shown(str(made.name))}", fix)
    return masked_channel(made, given.secrets)


def context_for(
    entry: ChannelEntry,
    settings: Settings,
    *,
    begin: Begin | None = None,
    listens: bool = True,
    link: Callable[[str], str] | None = None,
) -> ChannelContext:
    """Return what a channel is given when it is built."""
    kind, url = kind_of(entry, settings), settings.server.url
    return ChannelContext(
        name=entry.name,
        people=Accounts(OnFile(settings), kind, entry.name),
        workspace=settings.directory,
        link=link or (lambda request_id: f"{url}/requests/{request_id}" if url else ""),
        workers=entry.workers,
        begin=begin if entry.workers else None,
        listens=listens,
        here=whoami(None, settings, via=entry.name) if kind.at_terminal else None,
        variables={key: entry.variable(kind, key) for key in kind.secrets},
    )


def check_entry(entry: ChannelEntry, settings: Settings) -> None:
    """Raise for what is wrong with a channel, as far as its kind and the file show it: also its keys and workers.

    Variables that are not set are not looked at: they may be set elsewhere.
    """
    kind = kind_of(entry, settings)
    check_workers(entry, settings)
    check_places((one, kind) for one in settings.channels.values() if one.use == entry.use)
    if not isinstance(kind.config, KindKeys) and not unset_variables(entry.config):
        given_config(entry, settings)


def check_ready(entry: ChannelEntry, settings: Settings) -> tuple[ChannelKind, GivenConfig]:
    """Return the kind of a channel and the values of its keys, without building it.

    Raises if somebody has to do something first: nobody could answer, a key is wrong, a variable is not set.
    """
    kind = kind_of(entry, settings)
    check_people(entry, settings)
    check_places((one, kind) for one in settings.channels.values() if one.use == entry.use)
    return kind, given_config(entry, settings)


def check_people(entry: ChannelEntry, settings: Settings) -> dict[str, Actor]:
    """Return who could answer in a channel. Raises `WrongUse` if it needs accounts and nobody has one."""
    kind = kind_of(entry, settings)
    people = actors_in(settings.people, kind, entry.name)
    account = kind.account
    if people or account is None or not kind.answers:
        return people
    raise WrongUse(
        f"nobody could answer in {entry.name}: {settings.file or POLICY_FILE} lists nobody's {account.what}\n"
        f'  add `{account.key}: "ID"` to people, as in people: '
        f'{{ana: {{roles: [ops], {account.key}: "{account.example}"}}}}'
    )


def given_config(entry: ChannelEntry, settings: Settings) -> GivenConfig:
    """Return the values of the keys of a channel's kind, with variables replaced, after checking them as written.

    Secrets come from the environment: they may be neither written in the file nor empty.
    """
    from signoff.config.config_check import GivenConfig, checked, keys_of

    kind, defaults = kind_of(entry, settings), {}
    if isinstance(kind.config, KindKeys):
        defaults = kind.config.defaults
    for key, what in kind.secrets.items():
        written = entry.value(kind, key)
        if written is None:
            continue
        spot = entry.spots.get(key, entry.spot)
        if key in entry.spots:
            check_secret(spot, f'"${{{key.upper()}}}"', key)
        variable = entry.variable(kind, key)
        if not os.environ.get(variable, "").strip():  # no hint at defaults: a secret would be in the file
            is_set = "an empty" if variable in os.environ else "no"
            raise spot.wrong(f"the environment has {is_set} {variable}", f"set it to {what}")
    whole = replace(entry, config={**defaults, **entry.config})
    values = filled_config(whole)
    stripped = {key: values.value[key].strip() for key in kind.secrets if isinstance(values.value.get(key), str)}
    given = GivenConfig(
        owner=entry.name,
        values={**values.value, **stripped},
        spot=entry.spot,
        spots=entry.config_spots,
        secrets=values.secrets,
        what="channel",
        under="",
    )
    if isinstance(kind.config, KindKeys):  # checked when the file was read
        return given
    shape = shape_of_kind(kind.build, kind)
    known = keys_of(shape)
    if taken := [key for key in known if key in COMMON]:
        raise given.wrong_use(f"it has a key {shown(taken[0])}, which every channel has", "it needs another name")
    given = replace(given, hint=f"its keys: {', '.join(known)}" if known else "it has no keys of its own")
    if given.values or not shape.spare:
        checked(shape, given)
    return given


def shape_of_kind(build: Callable[..., Any], kind: ChannelKind) -> Shape:
    """Return what the `build` or the `check` of a kind takes, with the model of the kind's keys."""
    from signoff.config.config_check import is_model, shape_of

    shape = shape_of(build, (ChannelContext,))
    model = kind.config
    if model is None or isinstance(model, KindKeys):
        return shape
    if is_model(model):
        return replace(shape, model=model, schema=None, spare=False)
    return replace(shape, model=None, schema=model)


def routes_for(names: Iterable[str], settings: Settings, *, begin: Begin | None = None) -> list[Route]:
    """Return the routes for these channels. Errors are raised before any channel is opened."""
    entries = [channel_named(name, settings) for name in dict.fromkeys(names)]
    for entry in entries:
        check_workers(entry, settings)
    return [
        Route(channel_for(entry, settings, begin=begin), timeout=entry.timeout(kind_of(entry, settings)))
        for entry in entries
    ]


def check_workers(entry: ChannelEntry, settings: Settings) -> None:
    """Raise if a worker or Python agent that could be started from a channel is missing or invalid."""
    if entry.workers and not kind_of(entry, settings).starts:
        raise entry.spots["workers"].wrong_key("no workers can be started from there", "remove them")
    known = worker_names(settings)
    spoken: dict[str, str] = {}
    for at, name in enumerate(entry.workers):
        listed = entry.spots["workers"]
        spot = listed.child(at) if isinstance(listed.value, list) else listed
        other = spoken.setdefault(spoken_name(name).casefold(), name)
        if other != name:
            what = f"people would use the same name for {shown(other)} and {shown(name)}"
            raise spot.wrong(what, "give one of them another name, or leave it out")
        if ":" in name:
            check_agent(name, settings, spot)
        elif name not in known:
            raise spot.wrong(f"there is no worker {shown(name)}", did_you_mean(name, known))
        else:
            load_worker(settings, name)


def check_agent(path: str, settings: Settings, spot: ConfigValue) -> None:
    """Raise unless this path names an agent in Python that may be imported and can be started from a channel."""

    def wrong(what: str, fix: str) -> SignoffError:
        return spot.wrong(what, fix)

    if not _AGENT.fullmatch(path):
        raise spot.wrong(f"{shown(path)} is not the location of an agent", "write package.module:agent")
    check_allowed(path, settings.plugins, wrong)
    found = load_path(path, settings.plugins, settings.directory, wrong)
    from signoff.workers.load import why_no_plain_agent

    if (problem := why_no_plain_agent(found)) is not None:
        raise spot.wrong(f"{shown(path)} {problem[0]}", problem[1])
