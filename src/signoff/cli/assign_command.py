"""`signoff take`, `release` and `assign`: assign a request to one person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from signoff.cli import id_completion, shared_options
from signoff.cli.desk_command import on_desk
from signoff.cli.terminal_text import safe
from signoff.core.people import person_key

if TYPE_CHECKING:
    from signoff.cli.approval_desk import ApprovalDesk, HandedOverRequest


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.pending)
@shared_options.who
@on_desk()
async def take(desk: ApprovalDesk, request_id: str) -> str:
    """Take a request, so that nobody else works on it. Takes it over if somebody else has it.

    \b
    Example:
      signoff take k3f9
    """
    return _told(await desk.hand_over(request_id, None))


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.pending)
@shared_options.who
@on_desk()
async def release(desk: ApprovalDesk, request_id: str) -> str:
    """Give back a request that you took.

    \b
    Example:
      signoff release k3f9
    """
    return _told(await desk.hand_over(request_id, ""))


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.pending)
@click.argument("person", metavar="NAME")
@shared_options.who
@on_desk()
async def assign(desk: ApprovalDesk, request_id: str, person: str) -> str:
    """Assign a request to a person.

    \b
    Example:
      signoff assign k3f9 ben
    """
    return _told(await desk.hand_over(request_id, person))


def _told(done: HandedOverRequest) -> str:
    request, before, has_it = done.request, done.before, done.request.assigned
    who = f"{safe(has_it)} has it" if has_it else "free"
    changed = before and person_key(before) != person_key(has_it)
    was = f" (it was {safe(before)}'s)" if changed else ""
    told = f"{who}{was}  {safe(request.id)}  {safe(request.title)}"
    if done.may_answer:
        return told
    # Nobody else can approve it while it is assigned to them.
    why = f"{safe(has_it)} may not answer it, and nobody else can approve it while it is assigned"
    return f"{told}\n{why}: signoff release {safe(request.id)}"
