"""`signoff outcome`: record the outcome of a call whose process died or stopped responding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from signoff.cli import id_completion, shared_options
from signoff.cli.desk_command import on_desk
from signoff.cli.request_report import late_text
from signoff.cli.terminal_text import safe
from signoff.core.request import State
from signoff.errors import RequestError

if TYPE_CHECKING:
    from signoff.cli.approval_desk import ApprovalDesk
    from signoff.views.request_view import RequestView

RISK = "Its process may be paused, not dead: if it was inside the tool and continues, the call may still happen."
SAID = ("happened", "did-not", "stop-run")


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.unknown)
@click.argument("said", metavar="happened|did-not|stop-run", type=click.Choice(SAID))
@shared_options.who
@shared_options.note("How you know; for the audit log.")
@on_desk()
async def outcome(desk: ApprovalDesk, request_id: str, said: str, note: str) -> str:
    """Report the outcome of a call that was started and whose process died or stopped responding.

    \b
    happened   the call took effect: it counts as done, and is not run again
    did-not    it did not: the approval is void; if the run is resumed, signoff asks again
               (a process that is only paused inside the tool may still do it)
    stop-run   nobody can tell: its run is cancelled, and the request stays in the audit log as unknown

    \b
    Example:
      signoff outcome k3f9 happened --note "the payment is on the account"
    """
    if said == "stop-run":
        return await _stop_run(desk, await desk.request(request_id), note)
    request = await desk.tell(request_id, happened=said == "happened", note=note)
    told = "it happened" if said == "happened" else "it did not happen"
    risk = "" if said == "happened" else f"\n{RISK}"
    line = await desk.going_on(request.run) if request.run else ""
    go_on = f"\n{line}" if line else ""
    return f"on record: {told}  {_named(request)}{risk}{go_on}"


async def _stop_run(desk: ApprovalDesk, request: RequestView, note: str) -> str:
    if request.state is not State.UNKNOWN:
        hint = f"signoff cancel {safe(request.run)} ends its run" if request.run else "there is nothing to stop"
        raise RequestError(f"{late_text(request)}; its outcome is known, {hint}")
    if not request.run:
        raise RequestError(f"request {request.id} belongs to no saved run; use happened or did-not")
    run = await desk.cancel(request.run, note)
    return (
        f"cancelled  run {safe(run.id)}\n"
        f"Request {safe(request.id)} stays unknown until somebody reports happened or did-not."
    )


def _named(request: RequestView) -> str:
    return f"{safe(request.id)}  {safe(request.title)}"
