"""`signoff take`, `release` and `assign`: one card, one person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from signoff.cli import id_completion, shared_options
from signoff.cli.answer_command import VIA

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.core.request import ApprovalRequest


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.pending)
@shared_options.who
@shared_options.where
def take(request_id: str, name: str | None, store: str | None, policy: str | None) -> None:
    """Work on a request, so that nobody else starts. Takes it over if somebody else has it.

    \b
    Example:
      signoff take k3f9
    """
    _assign(request_id, None, name, store, policy)


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.pending)
@shared_options.who
@shared_options.where
def release(request_id: str, name: str | None, store: str | None, policy: str | None) -> None:
    """Leave a request to whoever comes next.

    \b
    Example:
      signoff release k3f9
    """
    _assign(request_id, "", name, store, policy)


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.pending)
@click.argument("person", metavar="NAME")
@shared_options.who
@shared_options.where
def assign(request_id: str, person: str, name: str | None, store: str | None, policy: str | None) -> None:
    """Hand a request to somebody.

    \b
    Example:
      signoff assign k3f9 ben
    """
    _assign(request_id, person, name, store, policy)


def _assign(request_id: str, to: str | None, name: str | None, store: str | None, policy: str | None) -> None:
    """To the person who types, where `to` is None; to nobody, where it is empty."""
    from signoff.cli.open_broker import with_broker

    async def work(broker: Broker, settings: Settings) -> str:
        from signoff.cli.people_command import named
        from signoff.wiring import whoami

        by = whoami(name, settings, via=VIA)
        person = by.name if to is None else named(to, settings) if to else ""
        await broker.sweep()
        before = await broker.find(request_id)
        after = await broker.assign(before.id, person, by=by)
        return _told(before, after) + await _warned(broker, after)

    click.echo(with_broker(store, policy, work))


async def _warned(broker: Broker, request: ApprovalRequest) -> str:
    """Where whoever has it now may not answer it: nobody else can, as long as they have it."""
    from signoff.core.people import Actor
    from signoff.core.visible import visible

    if not request.assigned or await broker.people.entitled(request.id, [Actor(name=request.assigned)]):
        return ""
    return f"\n{visible(request.assigned)} may not answer it, and nobody else can now: signoff release {request.id}"


def _told(before: ApprovalRequest, after: ApprovalRequest) -> str:
    from signoff.cli.terminal_text import safe
    from signoff.core.people import person_key
    from signoff.core.visible import visible

    who = f"{visible(after.assigned)} has it" if after.assigned else "free"
    changed = before.assigned and person_key(before.assigned) != person_key(after.assigned)
    was = f" (it was {visible(before.assigned)}'s)" if changed else ""
    return f"{who}{was}  {safe(after.id)}  {safe(after.title)}"
