"""Build channels from the `channels` entries of the project file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from signoff.config import ChannelEntry, Settings
from signoff.core.address import spoken_name
from signoff.core.people import Actor
from signoff.errors import MissingExtra, SignoffError, WrongUse
from signoff.policy.phrases import did_you_mean, shown
from signoff.wiring.project import POLICY_FILE, whoami
from signoff.wiring.project_people import Accounts, OnFile, by_account

if TYPE_CHECKING:
    from signoff.delivery import Route
    from signoff.policy.placed_value import ConfigValue
    from signoff.ports import Begin, Channel

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
            '  add one, as in channels: {discord: {channel: "112233445566778899"}}; see docs/guides/discord.md'
        )
    raise WrongUse(f"{settings.file} has no channel {shown(name)}\n  {did_you_mean(name, settings.channels)}")


def actors(entry: ChannelEntry, settings: Settings) -> dict[str, Actor]:
    """Return who could answer in a channel, by their name or account there. Empty: nobody."""
    if entry.use == "discord":
        return by_account(settings.people, entry.name)
    return {name: Actor(name=name, roles=person.roles, via=entry.name) for name, person in settings.people.items()}


def channel_for(
    entry: ChannelEntry, settings: Settings, *, begin: Begin | None = None, listens: bool = True
) -> Channel:
    """Build the channel that an entry describes, not opened yet. `begin` starts workers for people who ask there.

    With `listens=False` it only shows, if the channel supports that, and another program with its secret takes the
    answers.

    The person behind an account is looked up in the project file on each action.
    Raises `WrongFile` if its secret is not in the environment, `WrongUse` if nobody could answer.
    """
    if entry.use == "terminal":
        return _terminal(entry, settings)
    discord_people(entry, settings)
    token = entry.secret()
    need_discord()
    from signoff.channels.discord.bot import discord_channel

    return discord_channel(
        token,
        secret=entry.variable,
        name=entry.name,
        channel=entry.channel,
        people=Accounts(OnFile(settings), entry.name),
        begin=begin if entry.workers else None,
        workers=entry.workers,
        listens=listens,
        notifies=entry.notify != "nobody",
    )


def need_discord() -> None:
    """Raise `MissingExtra` if discord.py is not installed."""
    from importlib import import_module

    try:
        import_module("discord")
    except ImportError as error:
        raise MissingExtra("The Discord channel", "discord") from error


def discord_people(entry: ChannelEntry, settings: Settings) -> dict[str, Actor]:
    """Return who could answer on Discord, by account. Raises `WrongUse` if nobody could."""
    if people := actors(entry, settings):
        return people
    raise WrongUse(
        f"nobody could answer in {entry.name}: {settings.file or POLICY_FILE} lists nobody's Discord account\n"
        '  add `discord: "ID"` to people, as in people: {ana: {roles: [ops], discord: "102938475610293847"}}'
    )


def routes_for(names: Iterable[str], settings: Settings, *, begin: Begin | None = None) -> list[Route]:
    """Return the routes for these channels. Errors are raised before any channel is opened."""
    from signoff.delivery import Route

    entries = [channel_named(name, settings) for name in dict.fromkeys(names)]
    for entry in entries:
        check_workers(entry, settings)
    return [Route(channel_for(entry, settings, begin=begin), timeout=entry.timeout) for entry in entries]


def check_workers(entry: ChannelEntry, settings: Settings) -> None:
    """Raise if a worker or Python agent that could be started from a channel is missing or invalid."""
    from signoff.config import load_worker, worker_names

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
    from signoff.config.plugin_code import check_allowed, load_path

    def wrong(what: str, fix: str) -> SignoffError:
        return spot.wrong(what, fix)

    if not _AGENT.fullmatch(path):
        raise spot.wrong(f"{shown(path)} is not the location of an agent", "write package.module:agent")
    check_allowed(path, settings.plugins, wrong)
    found = load_path(path, settings.plugins, settings.directory, wrong)
    from signoff.workers.load import why_no_plain_agent

    if (problem := why_no_plain_agent(found)) is not None:
        raise spot.wrong(f"{shown(path)} {problem[0]}", problem[1])


def _terminal(entry: ChannelEntry, settings: Settings) -> Channel:
    """Return a channel that asks the person at this terminal."""
    from signoff.channels.approver import ApproverChannel
    from signoff.channels.approvers import terminal_approver

    me = whoami(None, settings, via=entry.name)
    return ApproverChannel(terminal_approver(actor=me, headless="park"), name=entry.name, by=me)
