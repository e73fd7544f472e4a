"""`signoff runs` and `signoff cancel`: runs that outlive their process."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from signoff.cli import id_completion, shared_options
from signoff.core.moment import in_utc

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.broker.runs import RunStatus
    from signoff.broker.timeline import ModelUsage, Moment, RunHistory
    from signoff.config import Settings

_COLOURS = {"running": "green", "waiting": "yellow", "ready": "cyan", "died": "red", "failed": "red"}
_INDENT = " " * 12


@click.group(invoke_without_command=True)
@click.option("--all", "everything", is_flag=True, help="Also those that are over.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="How many to show.")
@shared_options.as_json
@shared_options.where
@click.pass_context
def runs(
    ctx: click.Context, everything: bool, limit: int, as_json: bool, store: str | None, policy: str | None
) -> None:
    """Runs, newest first: running, waiting for a person, ready to go on, died; with --all also done and cancelled.

    \b
    Examples:
      signoff runs
      signoff runs show 7kq2
    """
    if ctx.invoked_subcommand is not None:
        return
    from signoff.cli.open_broker import say_where, with_broker
    from signoff.cli.terminal_text import as_json as json_line

    async def work(broker: Broker, settings: Settings) -> tuple[Sequence[RunStatus], str]:
        await broker.sweep()
        zone = in_utc if as_json else datetime.astimezone
        return await broker.runs.list(going=not everything, limit=limit + 1), await broker.switch.state(zone)

    found, halted = with_broker(store, policy, work)
    if as_json:
        told = {"halted": halted or None, "runs": [_data(one) for one in found[:limit]], "more": len(found) > limit}
        click.echo(json_line(told))
        return
    for line in _lines(found, limit, halted, everything):
        click.echo(line)
    say_where(store, policy, always=not found)


def _lines(found: Sequence[RunStatus], limit: int, halted: str, everything: bool) -> Iterator[str]:
    from shutil import get_terminal_size

    from signoff.cli.terminal_text import safe

    if halted:
        yield click.style(f"Nothing new runs: {safe(halted)}", fg="red", bold=True)
        yield ""
    if not found:
        yield "There are no runs." if everything else "No run is going. signoff runs --all lists those that are over."
    width = get_terminal_size().columns if sys.stdout.isatty() else 120
    for index, one in enumerate(found[:limit]):
        if index:
            yield ""
        yield from _run_lines(one, width)
    if len(found) > limit:
        yield ""
        yield click.style(f"The newest {limit:,}; --limit shows more", dim=True)


def _run_lines(status: RunStatus, width: int) -> Iterator[str]:
    from signoff.cli.inbox_page import loosened_lines
    from signoff.cli.request_report import by_program, masked, outcome_step
    from signoff.cli.terminal_text import agent_name, clip, now, pad, safe
    from signoff.core.moment import ago
    from signoff.core.request import State

    run, word, at = status.run, status.word, now()
    agent = agent_name(run.agent) if run.agent else "an agent of a program"
    since = f"  started {ago(run.started_at, at)}" if run.started_at is not None else ""
    state = click.style(pad(word, 9), fg=_COLOURS.get(word), bold=True)
    yield f"{click.style(safe(run.id), fg='cyan')}  {state}  {clip(agent, 60)}{click.style(since, dim=True)}"
    if run.prompt:
        yield _INDENT + clip(masked(" ".join(run.prompt.split())), width - len(_INDENT))
    yield from loosened_lines([masked(one) for one in run.setup.loosened.texts], width, _INDENT)
    for request in status.waiting:
        text = f"waits for {safe(request.id)}: {safe(request.title)}"
        yield click.style(_INDENT + clip(text, width - len(_INDENT)), fg="yellow")
        if request.state is State.UNKNOWN:
            yield click.style(f"{_INDENT}{outcome_step(request)}", dim=True)
    if word in ("ready", "died"):
        step = f"signoff resume {safe(run.id)}" if run.agent else by_program(run)
        yield click.style(f"{_INDENT}{_why_it_can_go_on(status)}: {step}", dim=True)
    if run.detail:
        yield click.style(_INDENT + clip(safe(run.detail), width - len(_INDENT)), dim=True)


def _why_it_can_go_on(status: RunStatus) -> str:
    if status.word == "died":
        return "its process is gone or silent"
    return "its other questions are settled" if status.waiting else "its questions are settled"


def _data(status: RunStatus) -> dict[str, Any]:
    from signoff.cli.request_report import masked
    from signoff.cli.terminal_text import iso

    run, process = status.run, status.process
    return {
        "id": run.id,
        "state": status.word,
        "agent": run.agent or None,
        "prompt": masked(run.prompt),
        "requester": run.requester or None,
        "loosened": [masked(one) for one in run.setup.loosened.texts],
        "started_at": iso(run.started_at),
        "changed_at": iso(run.changed_at),
        "waiting": [{"id": one.id, "state": str(one.state), "title": one.title} for one in status.waiting],
        "answered": [{"id": one.id, "state": str(one.state), "title": one.title} for one in status.answered],
        "process": process.pid if process is not None and status.alive else None,
        "detail": run.detail or None,
    }


@runs.command(no_args_is_help=True)
@click.argument("run_id", metavar="RUN", shell_complete=id_completion.runs)
@shared_options.as_json
@shared_options.where
def show(run_id: str, as_json: bool, store: str | None, policy: str | None) -> None:
    """One run as a timeline: prompt, words, calls, verdicts, questions, answers, outcomes, tokens. RUN may be its
    beginning.

    \b
    Example:
      signoff runs show 7kq2
    """
    from signoff.broker.timeline import run_history
    from signoff.cli.open_broker import with_broker
    from signoff.cli.terminal_text import as_json as json_line

    async def work(broker: Broker, settings: Settings) -> RunHistory:
        return await run_history(broker, run_id, in_utc if as_json else datetime.astimezone)

    status, found, took = with_broker(store, policy, work)
    if as_json:
        click.echo(json_line({**_data(status), "timeline": list(map(_moment_data, found)), "spent": _spent_data(took)}))
        return
    for line in _timeline(status, found, took):
        click.echo(line)


def _timeline(status: RunStatus, found: Sequence[Moment], took: ModelUsage) -> Iterator[str]:
    from shutil import get_terminal_size

    from signoff.cli.terminal_text import clip, count, short_local

    width = get_terminal_size().columns if sys.stdout.isatty() else 120
    yield from _run_lines(status, width)
    if status.run.requester:
        from signoff.cli.request_report import masked

        yield f"{_INDENT}for {masked(status.run.requester)}"
    yield ""
    for one in found:
        about = "  ".join(filter(None, (one.who, f"“{one.what}”" if one.kind == "model" else one.what)))
        rules = f"  (rule {', '.join(one.rules)})" if one.rules else ""
        head = f"{short_local(one.at)}  {one.kind:<12}  "
        yield clip(f"{head}{about}{rules}" + (f"  [{one.request}]" if one.request else ""), max(width, len(head) + 20))
    if took.answers:
        price = f", ${took.cost:.4f}" if took.cost is not None else ""
        tokens = f"{took.input_tokens:,} tokens in, {took.output_tokens:,} out"
        yield ""
        yield click.style(f"{count(took.answers, 'answer')} of the model, {tokens}{price}", dim=True)


def _moment_data(one: Moment) -> dict[str, Any]:
    from signoff.cli.terminal_text import iso

    return {
        "at": iso(one.at),
        "kind": one.kind,
        "who": one.who or None,
        "what": one.what,
        "rules": list(one.rules),
        "request": one.request or None,
    }


def _spent_data(took: ModelUsage) -> dict[str, Any]:
    return {
        "answers": took.answers,
        "input_tokens": took.input_tokens,
        "output_tokens": took.output_tokens,
        "cost": str(took.cost) if took.cost is not None else None,
    }


@click.command(no_args_is_help=True)
@click.argument("run_id", metavar="RUN", shell_complete=id_completion.runs)
@shared_options.who
@shared_options.note("Why, for the record.")
@shared_options.where
def cancel(run_id: str, name: str | None, note: str, store: str | None, policy: str | None) -> None:
    """End a run: what it asks is withdrawn, approvals it has not used are void, and nobody takes it up again.

    A process that has it in hand finds out with its next step; a call that is running is not stopped.

    \b
    Example:
      signoff cancel 7kq2 --note "wrong customer"
    """
    from signoff.cli.open_broker import with_broker
    from signoff.cli.terminal_text import count, safe

    async def work(broker: Broker, settings: Settings) -> tuple[str, int, bool]:
        from signoff.core.request import State
        from signoff.wiring import whoami

        by = whoami(name, settings, via="command")
        before = await broker.runs.status((await broker.runs.get(run_id)).id)
        done = await broker.runs.cancel(before.run.id, by=by.name, reason=note)
        withdrawn = sum(one.state is State.PENDING for one in before.waiting)
        return done.id, withdrawn, before.alive

    cancelled, withdrawn, alive = with_broker(store, policy, work)
    asked = f"; {count(withdrawn, 'question')} withdrawn" if withdrawn else ""
    still = "; its process stops at its next step" if alive else ""
    click.echo(f"cancelled  run {safe(cancelled)}{asked}{still}")
