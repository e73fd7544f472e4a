"""`signoff people` and `signoff delegate`: who may answer, who stands in for whom, and links to sign in with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from signoff.cli import shared_options

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.core.people import Delegation


@click.group(invoke_without_command=True)
@shared_options.as_json
@shared_options.where
@click.pass_context
def people(ctx: click.Context, as_json: bool, store: str | None, policy: str | None) -> None:
    """Who may answer, with which roles, and who stands in for whom until when.

    \b
    Example:
      signoff people
    """
    if ctx.invoked_subcommand is not None:
        return
    from signoff.cli.open_broker import with_broker
    from signoff.cli.terminal_text import as_json as json_line
    from signoff.cli.terminal_text import iso, now

    async def work(broker: Broker, settings: Settings) -> tuple[Settings, Sequence[Delegation]]:
        return settings, await broker.store.read(lambda tx: tx.delegations.current(now()))

    settings, away = with_broker(store, policy, work)
    if as_json:
        told = [{"name": one.name, "roles": sorted(one.roles)} for one in settings.people.values()]
        stand_ins = [
            {"absent": one.absent, "deputy": one.deputy, "until": iso(one.until), "since": iso(one.since), "by": one.by}
            for one in away
        ]
        click.echo(json_line({"people": told, "delegations": stand_ins}))
        return
    for line in _lines(settings, away):
        click.echo(line)


def _lines(settings: Settings, away: Sequence[Delegation]) -> Iterator[str]:
    from signoff.cli.terminal_text import local, pad
    from signoff.core.visible import visible

    if not settings.people:
        where = f"{settings.file} names nobody" if settings.file else "There is no policy file here that names people"
        yield f"{where}: whoever can use this store may answer, by their own name."
    width = max((len(visible(name)) for name in settings.people), default=0)
    for person in settings.people.values():
        roles = ", ".join(map(visible, sorted(person.roles))) or click.style("no roles", dim=True)
        yield f"{click.style(pad(visible(person.name), width), bold=True)}  {roles}"
    if away:
        yield ""
    for one in away:
        by = f" (arranged by {visible(one.by)})" if one.by else ""
        yield f"{visible(one.deputy)} stands in for {visible(one.absent)} until {local(one.until)}{by}"


@people.command(no_args_is_help=True)
@click.argument("person", metavar="NAME")
@click.option("--url", metavar="URL", help="Where the server is reached. Default: server.url of signoff.yaml, or here.")
@click.option("--expires", default="1d", show_default=True, metavar="WHEN", help="Until when: 2h, 1d, monday.")
@shared_options.as_json
@shared_options.who
@shared_options.where
def link(
    person: str,
    url: str | None,
    expires: str,
    as_json: bool,
    name: str | None,
    store: str | None,
    policy: str | None,
) -> None:
    """Make a link for NAME to sign in to the server with, once. Give it to nobody else.

    Where the file names admins, only they make links for others.

    \b
    Example:
      signoff people link ana --as ben
    """
    from signoff.cli.access_options import check_admin, server_address
    from signoff.cli.open_broker import with_broker
    from signoff.cli.terminal_text import as_json as json_line
    from signoff.cli.terminal_text import iso, local, now, when
    from signoff.core.access import AccessKey, AccessKind, link_url
    from signoff.core.visible import visible

    at = now()
    lasts = when(expires, at, option="--expires") - at

    async def work(broker: Broker, settings: Settings) -> tuple[AccessKey, str]:
        from signoff.wiring import whoami

        by = whoami(name, settings, via="command")
        holder = holder_named(person, settings)
        check_admin(by, settings, holder=holder)
        address = server_address(url, settings)
        key, secret = await broker.access.issue(AccessKind.LINK, holder, by=by.name, lasts=lasts)
        return key, link_url(address, secret)

    key, address = with_broker(store, policy, work, make=True)
    if as_json:
        click.echo(json_line({"id": key.id, "person": key.holder, "url": address, "expires_at": iso(key.expires_at)}))
        return
    click.echo(address)
    told = (
        f"Signs in as {visible(key.holder)}, once, until {local(key.expires_at)}. Take it back: signoff tokens revoke"
    )
    click.echo(f"{told} {key.id}", err=True)


@click.command(no_args_is_help=True)
@click.argument("absent")
@click.argument("deputy")
@click.option("--until", required=True, metavar="WHEN", help="Until when: 2h, 3d, monday, 2031-05-24.")
@shared_options.who
@shared_options.where
def delegate(absent: str, deputy: str, until: str, name: str | None, store: str | None, policy: str | None) -> None:
    """Have DEPUTY answer in the place of ABSENT for a while; the record names both.

    \b
    Example:
      signoff delegate ana ben --until monday
    """
    from signoff.cli.open_broker import with_broker
    from signoff.cli.terminal_text import local, now, when
    from signoff.core.people import Delegation
    from signoff.core.visible import visible

    since = now()
    end = when(until, since)

    async def work(broker: Broker, settings: Settings) -> Delegation:
        from signoff.wiring import whoami

        by = whoami(name, settings, via="command")
        who = Delegation(
            absent=named(absent, settings), deputy=named(deputy, settings), until=end, since=since, by=by.name
        )
        await broker.people.delegate(who)
        return who

    made = with_broker(store, policy, work, make=True)
    click.echo(f"{visible(made.deputy)} stands in for {visible(made.absent)} until {local(made.until)}.")


def named(name: str, settings: Settings) -> str:
    """The person as the policy file spells them. Where it names people, it has to be one of them."""
    from signoff.core.people import person_key
    from signoff.core.visible import visible
    from signoff.errors import WrongUse
    from signoff.policy.phrases import did_you_mean

    if not name.strip():
        raise WrongUse("a person needs a name")
    if not settings.people:
        return name.strip()
    for one in settings.people:
        if person_key(one) == person_key(name):
            return one
    raise WrongUse(f"{settings.file} knows nobody called {visible(name)}\n  {did_you_mean(name, settings.people)}")


def holder_named(name: str, settings: Settings) -> str:
    """The person a key is for, as the file spells them; where it names nobody, only whoever works here."""
    from signoff.core.people import person_key
    from signoff.core.visible import visible
    from signoff.errors import WrongUse
    from signoff.wiring import whoami

    if settings.people:
        return named(name, settings)
    here = whoami(None, settings, via="command").name
    if person_key(name) != person_key(here):
        where = settings.file or "a signoff.yaml"
        raise WrongUse(
            f"a server lets in only {visible(here)} as long as no people are on file\n"
            f"  Add {visible(name)} to `people` in {where}"
        )
    return here
