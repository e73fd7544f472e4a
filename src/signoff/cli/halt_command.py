"""`signoff halt` and `signoff unhalt`: the kill switch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from signoff.cli import shared_options
from signoff.cli.desk_command import Printed, run_on_desk
from signoff.cli.server_choice import is_elsewhere
from signoff.cli.terminal_text import by_wall_clock, safe
from signoff.errors import WrongUse
from signoff.store.chosen_store import ChosenStore, named_store
from signoff.wiring.project import settings_for
from signoff.wiring.stores import chosen_store

if TYPE_CHECKING:
    from signoff.cli.approval_desk import ApprovalDesk


@click.command()
@shared_options.note("The reason; stopped runs report it.")
@shared_options.who
@shared_options.anywhere
def halt(store: str | None, policy: str | None, **given: Any) -> None:
    """Stop everything: no new call runs, in any process that uses this store. Pending requests stay pending.

    \b
    Example:
      signoff halt --note "wrong prices in the catalogue"
    """
    is_new = not is_elsewhere(store) and _meant("halt", store, policy).is_missing
    run_on_desk(_halted, store=store, policy=policy, make=True, **given)
    if is_new:
        click.echo("Nothing has run with this store yet. This does not stop runs of other users or with another store.")


async def _halted(desk: ApprovalDesk, note: str) -> Printed:
    said = await desk.halt(note)
    return Printed(lines=[f"Nothing new runs: {safe(by_wall_clock(said))}"], where=True)


def _meant(command: str, store: str | None, policy: str | None) -> ChosenStore:
    """The selected store. The kill switch must reach what runs, so it needs a project here or a named store."""
    settings = settings_for(policy)
    if named_store(store) is None and not settings.file:
        raise WrongUse(
            f"there is no signoff.yaml here or above, so there is no project to {command}.\n"
            f"  Change to its directory, or name its store: signoff {command} --store …; signoff stores lists them"
        )
    return chosen_store(store, settings)


@click.command()
@shared_options.note("The reason, for the audit log.")
@shared_options.who
@shared_options.anywhere
def unhalt(store: str | None, policy: str | None, **given: Any) -> None:
    """Lift a halt: calls run again.

    \b
    Example:
      signoff unhalt
    """
    if not is_elsewhere(store):
        _meant("unhalt", store, policy)
    run_on_desk(_lifted, store=store, policy=policy, **given)


async def _lifted(desk: ApprovalDesk, note: str) -> Printed:
    was = await desk.unhalt(note)
    return Printed(lines=["The halt is lifted: calls run again." if was else "There was no halt."], where=True)
