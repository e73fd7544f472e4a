"""`signoff grants`: answers that were remembered."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from signoff.cli import id_completion, shared_options
from signoff.core.moment import Zone, in_utc

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.core.grant import Grant


@click.group(invoke_without_command=True)
@click.pass_context
def grants(ctx: click.Context) -> None:
    """Remembered answers: list, explain, revoke. Alone it lists them."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_grants, everything=False, as_json=False, store=None, policy=None)


@grants.command("list")
@click.option("--all", "everything", is_flag=True, help="Also those that were revoked.")
@shared_options.as_json
@shared_options.where
def list_grants(everything: bool, as_json: bool, store: str | None, policy: str | None) -> None:
    """List what is remembered, oldest first.

    \b
    Example:
      signoff grants list
    """
    from signoff.cli.open_broker import say_where, with_broker
    from signoff.cli.terminal_text import as_json as json_line

    async def work(broker: Broker, settings: Settings) -> Sequence[tuple[Grant, str]]:
        zone = in_utc if as_json else datetime.astimezone
        return [(one, _asleep(broker, one, zone)) for one in await broker.grants.list(revoked=everything)]

    found = with_broker(store, policy, work)
    if as_json:
        click.echo(json_line({"grants": [_data(one, asleep) for one, asleep in found]}))
        return
    if not found:
        click.echo("Nothing is remembered.")
    for one, asleep in found:
        for line in _lines(one, asleep):
            click.echo(line)
    say_where(store, policy, always=not found)


@grants.command(no_args_is_help=True)
@click.argument("grant_ids", metavar="ID...", nargs=-1, required=True, shell_complete=id_completion.grants)
@shared_options.who
@shared_options.where
def revoke(grant_ids: tuple[str, ...], name: str | None, store: str | None, policy: str | None) -> None:
    """Revoke grants: what they covered is asked about again.

    What they covered is asked about again.

    \b
    Example:
      signoff grants revoke h4w8
    """
    from signoff.cli.main import FAILED
    from signoff.cli.open_broker import looked_in, with_broker
    from signoff.cli.terminal_text import safe

    async def work(broker: Broker, settings: Settings) -> bool:
        from signoff.wiring import chosen_store, whoami

        by = whoami(name, settings, via="command").name
        are_all = all([await _revoke(broker, one, by) for one in dict.fromkeys(grant_ids)])
        if not are_all:
            click.echo(f"  {safe(looked_in(chosen_store(store, settings)))}", err=True)
        return are_all

    if not with_broker(store, policy, work):
        sys.exit(FAILED)


async def _revoke(broker: Broker, given: str, by: str) -> bool:
    from signoff.cli.terminal_text import local, safe
    from signoff.core.safe import grant_line
    from signoff.core.visible import visible
    from signoff.errors import RequestError

    try:
        grant = await broker.grants.get(given)
        done = await broker.grants.revoke(grant.id, by=by)
    except RequestError as error:
        click.echo(f"signoff: {visible(str(error))}", err=True)
        return False
    if grant.revoked_at is not None:
        when = f"revoked before by {visible(grant.revoked_by)} at {local(grant.revoked_at)}"
        click.echo(f"{when}  {safe(done.id)}")
    else:
        click.echo(f"revoked  {safe(done.id)}  {grant_line(done, zone=datetime.astimezone)}")
    return True


@grants.command(no_args_is_help=True)
@click.argument("grant_id", metavar="ID", shell_complete=id_completion.grants)
@shared_options.as_json
@shared_options.where
def explain(grant_id: str, as_json: bool, store: str | None, policy: str | None) -> None:
    """Tell all about one grant.

    What it says, who gave it, how much of it is used, and why it sleeps if it does.

    \b
    Example:
      signoff grants explain h4w8
    """
    from signoff.cli.open_broker import with_broker
    from signoff.cli.terminal_text import as_json as json_line

    async def work(broker: Broker, settings: Settings) -> tuple[Grant, str]:
        grant = await broker.grants.get(grant_id)
        return grant, _asleep(broker, grant, in_utc if as_json else datetime.astimezone)

    grant, asleep = with_broker(store, policy, work)
    if as_json:
        click.echo(json_line(_data(grant, asleep)))
        return
    for name, text in _facts(grant, asleep):
        click.echo(f"{click.style(f'{name:8}', bold=True)}  {text}")


def _asleep(broker: Broker, grant: Grant, zone: Zone) -> str:
    """Why it does not speak now; empty where it does."""
    from signoff.cli.terminal_text import now

    return grant.why_asleep(None, now(), zone) or broker.grants.why_without_role(grant)


def _lines(grant: Grant, asleep: str) -> Iterator[str]:
    from signoff.cli.terminal_text import local, safe
    from signoff.core.safe import grant_line
    from signoff.core.visible import visible

    says = grant_line(grant, zone=datetime.astimezone)
    yield f"{click.style(safe(grant.id), fg='cyan')}  {click.style(says, dim=bool(asleep))}"
    facts = [f"by {visible(grant.by)}"] if grant.by else []
    facts += [local(grant.at)] if grant.at is not None else []
    facts += _usage(grant)
    facts += [f"asleep: {visible(asleep)}"] if asleep else []
    yield click.style(" " * 12 + " · ".join(facts), dim=True)


def _facts(grant: Grant, asleep: str) -> Iterator[tuple[str, str]]:
    from signoff.cli.request_report import masked
    from signoff.cli.terminal_text import local, safe
    from signoff.core.safe import grant_line
    from signoff.core.visible import visible

    yield "grant", safe(grant.id)
    yield "says", grant_line(grant, zone=datetime.astimezone)
    yield "from", safe(grant.summary)
    if grant.by:
        yield "by", visible(grant.by) + (f" at {local(grant.at)}" if grant.at is not None else "")
    if grant.note:
        yield "note", masked(grant.note)
    if usage := _usage(grant):
        yield "used", ", ".join(usage)
    yield "now", f"asleep: {visible(asleep)}" if asleep else "it speaks"
    if not asleep:
        yield "", "A rule that denies still denies. If the tool changes what it takes, the grant sleeps:"
        yield "", "that is seen only when a call comes, which is then asked about."


def _usage(grant: Grant) -> list[str]:
    from signoff.cli.terminal_text import count, now
    from signoff.core.visible import visible

    if not grant.is_counted:
        return []
    used = count(grant.used, "use") if grant.max_uses is None else f"{grant.used} of {count(grant.max_uses, 'use')}"
    if grant.budget is None:
        return [used]
    today = " today" if grant.budget.daily else ""
    spent = f"{visible(grant.budget.arg)} {grant.spent_by(now())} of {grant.budget.limit} spent{today}"
    return [used, spent]


def _data(grant: Grant, asleep: str) -> dict[str, Any]:
    from signoff.cli.request_report import masked
    from signoff.cli.terminal_text import iso, now
    from signoff.core.safe import grant_line

    budget = grant.budget
    return {
        "id": grant.id,
        "text": grant_line(grant),
        "tool": grant.tool,
        "toolset": grant.toolset,
        "approved": grant.approved,
        "scope": str(grant.scope),
        "where": grant.where or None,
        "summary": grant.summary,
        "by": grant.by or None,
        "at": iso(grant.at),
        "note": masked(grant.note) or None,
        "until": iso(grant.until),
        "max_uses": grant.max_uses,
        "used": grant.used,
        "budget": {"arg": budget.arg, "limit": str(budget.limit), "daily": budget.daily} if budget else None,
        "spent": str(grant.spent_by(now())) if budget else None,
        "asleep": asleep or None,
        "revoked_at": iso(grant.revoked_at),
        "revoked_by": grant.revoked_by or None,
    }
