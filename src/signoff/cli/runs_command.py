"""`signoff runs` and `signoff cancel`: saved runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from signoff.cli import id_completion, shared_options
from signoff.cli.desk_command import Printed, on_desk, run_on_desk
from signoff.cli.inbox_page import loosened_lines
from signoff.cli.request_report import outcome_step, resume_step
from signoff.cli.terminal_text import by_wall_clock, cells, clip, count, now, pad, safe, short_local
from signoff.core.card import rules_after
from signoff.core.moment import ago
from signoff.core.request import State
from signoff.core.result_text import in_short
from signoff.views.run_view import ALL, GOING, RunFilter, RunHistoryView, RunList, RunView

if TYPE_CHECKING:
    from signoff.cli.approval_desk import ApprovalDesk

_COLOURS = {"running": "green", "waiting": "yellow", "ready": "cyan", "died": "red", "failed": "red", "damaged": "red"}
_INDENT = " " * 12
_STATES = ("running", "waiting", "ready", "died", "done", "failed", "cancelled", "damaged")


@click.group(invoke_without_command=True)
@click.option("--all", "everything", is_flag=True, help="Include ended runs.")
@click.option("--state", type=click.Choice(_STATES), help="Only runs in this state.")
@click.option("--agent", default="", metavar="NAME", help="Only runs of this worker or agent.")
@click.option("--search", default="", metavar="TEXT", help="Only runs with this in task, agent, requester or end.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="How many to show.")
@shared_options.as_json
@shared_options.anywhere
@click.pass_context
def runs(
    ctx: click.Context, everything: bool, state: str | None, agent: str, search: str, limit: int, **place: Any
) -> None:
    """List runs, newest first: running, waiting for a person, ready to resume, died; with --all also ended ones.

    \b
    Examples:
      signoff runs
      signoff runs --state failed --agent triage
      signoff runs --all --search "order 4711"
      signoff runs show 7kq2
    """
    if ctx.invoked_subcommand is not None:
        return
    if everything and state:
        raise click.UsageError("--all and --state exclude each other: a state selects ended runs, too")
    chosen = RunFilter(limit=limit, state=state or (ALL if everything else GOING), agent=agent, text=search)
    run_on_desk(_listed, chosen=chosen, **place)


async def _listed(desk: ApprovalDesk, chosen: RunFilter) -> Printed:
    found = await desk.runs(chosen)
    return Printed(lines=_lines(found, chosen), data=found, where=not found.runs)


def _lines(found: RunList, chosen: RunFilter) -> Iterator[str]:
    from shutil import get_terminal_size

    if found.halted:
        yield click.style(f"Nothing new runs: {safe(by_wall_clock(found.halted))}", fg="red", bold=True)
        yield ""
    if not found.runs:
        yield _none(chosen)
    width = get_terminal_size().columns if sys.stdout.isatty() else 120
    for index, one in enumerate(found.runs):
        if index:
            yield ""
        yield from _run_lines(one, width)
    if found.next:
        yield ""
        yield click.style(f"The newest {chosen.limit:,}; --limit shows more", dim=True)


def _none(chosen: RunFilter) -> str:
    if chosen.agent or chosen.text or chosen.state not in (ALL, GOING):
        where = "" if chosen.state != GOING else " signoff runs --all looks at ended runs, too."
        return f"No such runs.{where}"
    return "There are no runs." if chosen.state == ALL else "No active runs. signoff runs --all includes ended runs."


def _run_lines(run: RunView, width: int) -> Iterator[str]:
    since = f"  started {ago(run.started_at, now())}" if run.started_at is not None else ""
    state = click.style(pad(run.state, 9), fg=_COLOURS.get(run.state), bold=True)
    agent = clip(safe(run.name or "an agent of a program"), 60)
    yield f"{click.style(safe(run.id), fg='cyan')}  {state}  {agent}{click.style(since, dim=True)}"
    if run.task:
        yield _INDENT + clip(safe(run.task), width - len(_INDENT))
    yield from loosened_lines(run.loosened, width, _INDENT)
    for request in run.waiting:
        text = f"waits for {safe(request.id)}: {safe(request.title)}"
        yield click.style(_INDENT + clip(text, width - len(_INDENT)), fg="yellow")
        if request.state is State.UNKNOWN:
            yield click.style(f"{_INDENT}{outcome_step(request.id)}", dim=True)
    if (rest := run.waiting_count - len(run.waiting)) > 0:
        yield click.style(f"{_INDENT}and for {count(rest, 'more request', 'more requests')}", fg="yellow")
    if run.is_idle:
        yield click.style(f"{_INDENT}{_why_it_can_go_on(run)}: {resume_step(run)}", dim=True)
    if run.detail:
        yield click.style(_INDENT + clip(safe(in_short(run.detail)), width - len(_INDENT)), dim=True)


def _why_it_can_go_on(run: RunView) -> str:
    if run.died:
        died = "its process died or stopped responding"
        if run.state == "waiting":
            return f"{died}; when it is answered"
        return f"{died}, and its requests are settled" if run.answered and not run.waiting else died
    return "its other requests are settled" if run.waiting else "its requests are settled"


@runs.command(no_args_is_help=True)
@click.argument("run_id", metavar="RUN", shell_complete=id_completion.runs)
@shared_options.as_json
@on_desk()
async def show(desk: ApprovalDesk, run_id: str) -> Printed:
    """Show one run as a timeline: prompt, model texts, calls, verdicts, questions, answers, outcomes, tokens. RUN may
    be a prefix of its ID.

    \b
    Example:
      signoff runs show 7kq2
    """
    found = await desk.run(run_id)
    return Printed(lines=_timeline(found), data=found)


def _timeline(found: RunHistoryView) -> Iterator[str]:
    from shutil import get_terminal_size

    width = get_terminal_size().columns if sys.stdout.isatty() else 120
    yield from _run_lines(found.run, width)
    if found.run.requester:
        yield f"{_INDENT}for {safe(found.run.requester)}"
    yield ""
    if found.earlier:
        yield click.style(f"{count(found.earlier, 'earlier entry is', 'earlier entries are')} left out", dim=True)
    for one in found.timeline:
        what = by_wall_clock(one.what)
        about = "  ".join(filter(None, (one.who, f"“{what}”" if one.kind == "model" else what)))
        ids = rules_after(about, ", ".join(one.rules))
        rules = f"  {ids}" if ids else ""
        kind = one.kind if one.exit_code is None else f"{one.kind}, exit {one.exit_code}"
        head = f"{short_local(one.at)}  {kind:<12}  "
        request = f"  [{one.request}]" if one.request else ""
        room = width - len(head) - len(request)  # what leads to the request is not cut off
        told = about + rules if cells(about) + len(rules) <= room else clip(about, max(20, room))
        yield f"{head}{told}{request}"
    took = found.spent
    if took.answers:
        price = f", ${took.cost:.4f}" if took.cost is not None else ""
        tokens = f"{took.input_tokens:,} tokens in, {took.output_tokens:,} out"
        yield ""
        yield click.style(f"{count(took.answers, 'answer')} of the model on record, {tokens}{price}", dim=True)


@click.command(no_args_is_help=True)
@click.argument("run_id", metavar="RUN", shell_complete=id_completion.runs)
@shared_options.who
@shared_options.note("The reason, for the audit log.")
@on_desk()
async def cancel(desk: ApprovalDesk, run_id: str, note: str) -> str:
    """Cancel a run: its requests are withdrawn, its unused approvals are void, and it cannot be resumed.

    A process that executes it stops at its next step. A call that is already running is not stopped.

    \b
    Example:
      signoff cancel 7kq2 --note "wrong customer"
    """
    done = await desk.cancel(run_id, note)
    asked = f"; {count(done.withdrawn, 'request')} withdrawn" if done.withdrawn else ""
    still = "; its process stops at its next step" if done.alive else ""
    return f"cancelled  run {safe(done.id)}{asked}{still}"
