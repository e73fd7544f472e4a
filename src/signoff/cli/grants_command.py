"""`signoff grants`: remembered answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import click

from signoff.cli import id_completion, shared_options
from signoff.cli.desk_command import Printed, on_desk
from signoff.cli.terminal_text import by_wall_clock, count, local, safe
from signoff.core.visible_text import visible
from signoff.errors import RequestError
from signoff.views.grant_view import GrantView

if TYPE_CHECKING:
    from signoff.cli.approval_desk import ApprovalDesk


@click.group(invoke_without_command=True)
@click.pass_context
def grants(ctx: click.Context) -> None:
    """List, explain and revoke remembered answers. Without a subcommand: list."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_grants, everything=False, as_json=False, store=None, policy=None)


@grants.command("list")
@click.option("--all", "everything", is_flag=True, help="Include revoked grants.")
@shared_options.as_json
@on_desk()
async def list_grants(desk: ApprovalDesk, everything: bool) -> Printed:
    """List remembered answers, oldest first.

    \b
    Example:
      signoff grants list
    """
    found = await desk.grants(everything=everything)
    lines = [line for one in found.grants for line in _lines(one)] or ["No remembered answers."]
    return Printed(lines=lines, data=found, where=not found.grants)


@grants.command(no_args_is_help=True)
@click.argument("grant_ids", metavar="ID...", nargs=-1, required=True, shell_complete=id_completion.grants)
@shared_options.who
@on_desk()
async def revoke(desk: ApprovalDesk, grant_ids: tuple[str, ...]) -> AsyncIterator[Printed]:
    """Revoke grants.

    Calls that they covered ask again.

    \b
    Example:
      signoff grants revoke h4w8
    """
    are_all = True
    for one in dict.fromkeys(grant_ids):
        yield (done := await _revoke(desk, one))
        are_all = are_all and done.ok
    if not are_all:
        yield Printed(notes=[f"  {safe(desk.place)}"])


async def _revoke(desk: ApprovalDesk, given: str) -> Printed:
    try:
        grant, done = await desk.revoke(given)
    except RequestError as error:
        return Printed(notes=[f"signoff: {visible(str(error))}"], ok=False)
    if grant.revoked_at is not None:
        when = f"already revoked by {safe(grant.revoked_by)} at {local(grant.revoked_at)}"
        return Printed(lines=[f"{when}  {safe(done.id)}"])
    return Printed(lines=[f"revoked  {safe(done.id)}  {by_wall_clock(done.text)}"])


@grants.command(no_args_is_help=True)
@click.argument("grant_id", metavar="ID", shell_complete=id_completion.grants)
@shared_options.as_json
@on_desk()
async def explain(desk: ApprovalDesk, grant_id: str) -> Printed:
    """Explain one grant.

    Prints what it covers, who gave it, how much of it is used, and why it is inactive, if it is.

    \b
    Example:
      signoff grants explain h4w8
    """
    grant = await desk.grant(grant_id)
    lines = [f"{click.style(f'{name:8}', bold=True)}  {text}" for name, text in _facts(grant)]
    return Printed(lines=lines, data=grant)


def _lines(grant: GrantView) -> Iterator[str]:
    asleep, says = safe(by_wall_clock(grant.asleep)), safe(by_wall_clock(grant.text))
    yield f"{click.style(safe(grant.id), fg='cyan')}  {click.style(says, dim=bool(asleep))}"
    facts = [f"by {safe(grant.by)}"] if grant.by else []
    facts += [local(grant.at)] if grant.at is not None else []
    facts += _usage(grant)
    facts += [f"inactive: {asleep}"] if asleep else []
    yield click.style(" " * 12 + " · ".join(facts), dim=True)


def _facts(grant: GrantView) -> Iterator[tuple[str, str]]:
    asleep = safe(by_wall_clock(grant.asleep))
    yield "grant", safe(grant.id)
    yield "says", safe(by_wall_clock(grant.text))
    yield "from", safe(grant.summary)
    if grant.by:
        yield "by", safe(grant.by) + (f" at {local(grant.at)}" if grant.at is not None else "")
    if grant.note:
        yield "note", safe(grant.note)
    if usage := _usage(grant):
        yield "used", ", ".join(usage)
    yield "now", f"inactive: {asleep}" if asleep else "active"
    if not asleep:
        yield "", "A rule that denies still denies. If the tool's parameters change, the grant becomes inactive:"
        yield "", "signoff notices that at the next call, and asks."


def _usage(grant: GrantView) -> list[str]:
    most, budget = grant.max_uses, grant.budget
    if not grant.counted:
        return []
    used = count(grant.used, "use") if most is None else f"{grant.used} of {count(most, 'use')}"
    if budget is None:
        return [used]
    today = " today" if budget.daily else ""
    return [used, f"{safe(budget.arg)} {budget.spent} of {budget.limit} spent{today}"]
