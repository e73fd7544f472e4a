"""`signoff people` and `signoff delegate`: who may answer, their deputies, and sign-in links."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from signoff.cli import shared_options
from signoff.cli.access_options import check_admin, expires, holder_named, server_address
from signoff.cli.desk_command import Printed, on_broker, run_on_desk
from signoff.cli.terminal_text import iso, local, now, pad, safe, when
from signoff.core.access import AccessKind, link_url
from signoff.core.visible_text import visible
from signoff.wiring.project import whoami

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.cli.approval_desk import ApprovalDesk
    from signoff.config import Settings
    from signoff.views.people_view import PeopleView


@click.group(invoke_without_command=True)
@shared_options.as_json
@shared_options.anywhere
@click.pass_context
def people(ctx: click.Context, **place: Any) -> None:
    """List the people who may answer, their roles, and their deputies.

    \b
    Example:
      signoff people
    """
    if ctx.invoked_subcommand is None:
        run_on_desk(_listed, **place)


async def _listed(desk: ApprovalDesk) -> Printed:
    found, nobody = await desk.people()
    return Printed(lines=_lines(found, nobody), data=found)


def _lines(found: PeopleView, nobody: str) -> Iterator[str]:
    if not found.people:
        yield nobody
    width = max((len(safe(one.name)) for one in found.people), default=0)
    for person in found.people:
        roles = ", ".join(map(safe, person.roles)) or click.style("no roles", dim=True)
        yield f"{click.style(pad(safe(person.name), width), bold=True)}  {roles}"
    if found.delegations:
        yield ""
    for one in found.delegations:
        by = f" (arranged by {safe(one.by)})" if one.by else ""
        yield f"{safe(one.deputy)} stands in for {safe(one.absent)} until {local(one.until)}{by}"


@people.command(no_args_is_help=True)
@click.argument("person", metavar="NAME")
@click.option("--url", metavar="URL", help="Address of the server. Default: server.url, or where it runs now.")
@expires("1d", "2h, 1d, monday")
@shared_options.as_json
@shared_options.who
@on_broker(make=True)
async def link(
    broker: Broker, settings: Settings, person: str, url: str | None, lasts: timedelta, name: str | None
) -> Printed:
    """Create a link that signs NAME in to the server, once. Send it only to that person.

    If signoff.yaml names admins, only they can create links for others.

    \b
    Example:
      signoff people link ana --as ben
    """
    by = whoami(name, settings, via="command")
    holder = holder_named(person, settings)
    check_admin(by, settings, holder=holder)
    address = await server_address(url, broker, settings)
    key, secret = await broker.access.issue(AccessKind.LINK, holder, by=by.name, lasts=lasts)
    until = f"Signs in as {visible(key.holder)}, once, until {local(key.expires_at)}."
    return Printed(
        lines=[link_url(address, secret)],
        notes=[f"{until} To revoke it: signoff tokens revoke {key.id}"],
        data={"id": key.id, "person": key.holder, "url": link_url(address, secret), "expires_at": iso(key.expires_at)},
    )


@click.command(no_args_is_help=True)
@click.argument("absent")
@click.argument("deputy")
@click.option("--until", metavar="WHEN", help="End, within 90 days: 2h, 3d, monday, 2031-05-24.")
@click.option("--end", is_flag=True, help="End the delegation now.")
@shared_options.who
@shared_options.anywhere
def delegate(absent: str, deputy: str, until: str | None, end: bool, **place: Any) -> None:
    """Let DEPUTY answer for ABSENT for a while. The audit log names both.

    \b
    Examples:
      signoff delegate ana ben --until monday
      signoff delegate ana ben --end
    """
    if end is (until is not None):
        raise click.UsageError("Give one of --until (when it ends) and --end (end it now).")
    since = now()
    last = when(until, since) if until is not None else None

    async def arranged(desk: ApprovalDesk) -> str:
        if last is None:
            whom, who = await desk.end_delegation(absent, deputy)
        else:
            whom, who = await desk.delegate(absent, deputy, last, since)
        told = f"until {local(last)}" if last is not None else "no longer"
        return f"{visible(who)} stands in for {visible(whom)} {told}."

    run_on_desk(arranged, make=last is not None, **place)
