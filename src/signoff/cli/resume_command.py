"""`signoff resume`: continue runs whose requests were answered."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from signoff.cli import id_completion, shared_options
from signoff.cli.durations import read_wait
from signoff.cli.opened_store import check_there, telling_where
from signoff.cli.resume_watch import watch_runs
from signoff.cli.run_screen import Going, carried_out, say_waiting
from signoff.cli.server_choice import is_elsewhere
from signoff.cli.terminal_runs import TerminalRuns
from signoff.cli.terminal_text import agent_name, count, safe
from signoff.cli.terminal_text import as_json as json_line
from signoff.core.exit_codes import FAILED, WAITING
from signoff.core.people import Actor
from signoff.engine.segment import segment
from signoff.errors import RunError, SignoffError
from signoff.store.chosen_store import OPTION
from signoff.views.run_view import RunFilter
from signoff.wiring.caller import Caller
from signoff.wiring.job import RunOptions
from signoff.wiring.project import reader_of, settings_for
from signoff.wiring.stores import chosen_store, open_broker

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.broker.run_status import RunStatus
    from signoff.config import Settings
    from signoff.core.request import ApprovalRequest
    from signoff.wiring.job import RunOptions

T = TypeVar("T")

MOST_ELSEWHERE = 10_000
"""Most runs that a server is asked for with --all."""


@click.command(no_args_is_help=True)
@click.argument("run", required=False, shell_complete=id_completion.runs)
@click.option(
    "--all", "everything", is_flag=True, help="Resume every run that is ready: answered, or its process died."
)
@click.option(
    "--watch", is_flag=True, help="Like --all, but keep running: resume each run when it is answered, until Ctrl-C."
)
@shared_options.ui
@click.option("--suspend", is_flag=True, help="Run approved calls; stop with exit code 3 at the next question.")
@click.option("--wait", metavar="TIME", help="Wait this long for answers (30s, 15m, 2h), then suspend.")
@click.option("--policy", type=click.Path(dir_okay=False), help="Policy file. Default: the one the run started with.")
@click.option("--ask", metavar="TOOL", multiple=True, help="Ask about this tool, whatever the policy says. Repeatable.")
@click.option("--deny", metavar="TOOL", multiple=True, help="Deny this tool, whatever the policy says. Repeatable.")
@click.option("--model", help="Model to use. Default: the one the run started with.")
@click.option("--store", metavar="URL", help="Store of the run. Default: the project's.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line: events, then the result.")
@click.option("--traceback", is_flag=True, help="Show the whole traceback when the agent fails.")
@shared_options.elsewhere
def resume(
    run: str | None,
    everything: bool,
    watch: bool,
    ui: Literal["terminal", "tui"],
    suspend: bool,
    wait: str | None,
    policy: str | None,
    ask: tuple[str, ...],
    deny: tuple[str, ...],
    model: str | None,
    store: str | None,
    as_json: bool,
    traceback: bool,
) -> None:
    """Resume RUN. RUN is its ID, or a prefix of it.

    Approved calls run, once. The model is told about denied calls. Open requests are asked at this terminal, or stay
    open if there is none. If two processes resume the same run, one wins.

    \b
    Example:
      signoff resume 7kq2
      signoff resume --all
      signoff resume --watch

    Exit codes: 0 done, 1 the agent failed, 2 usage error, 3 waiting for a person.
    """
    if (run is None) is not (everything or watch):
        raise click.UsageError("Name one run, or use --all or --watch.")
    if watch and (everything or wait is not None):
        raise click.UsageError("--watch covers all runs and waits for answers; leave out --all and --wait.")
    if is_elsewhere(store):
        if watch or suspend or wait or policy or ask or deny or model or traceback or ui != "terminal":
            raise click.UsageError(
                "a server resumes the run with the options it started with: leave out the other options"
            )
        _resume_elsewhere(run, store, as_json=as_json)
        return
    if suspend and wait is not None:
        raise click.UsageError("--suspend does not wait; leave out --wait or --suspend.")
    chosen = chosen_store(store, settings_for(policy))
    if chosen.named_by == OPTION or run is not None:
        check_there(chosen)
    going = Going(as_json=as_json, whole=False)
    # The run continues in the directory it began in; paths given here are relative to this directory.
    policy = os.path.abspath(policy) if policy is not None else None
    options = RunOptions(
        policy=policy,
        model=_from_here(model),
        unattended="park",
        ui=ui,
        store=chosen.address,
        wait=read_wait("0s" if suspend or watch else wait),
        caller=Caller.here(ask, deny),
        observe=going.progress.observe,
        message=going.progress.message,
        listener=going.listener,
    )
    if watch:
        watch_runs(options, going, traceback=traceback)
        return
    with telling_where(chosen):
        found = [] if chosen.is_missing else _found(run, options)
    agents = settings_for(policy).agents
    ours = [one for one in found if run is not None or one.run.agent or one.run.name in agents]
    if not ours:
        click.echo("No run is ready to resume. `signoff runs` lists all runs.", err=True)
        if found:
            ready = count(len(found), "run is ready", "runs are ready")
            click.echo(f"{ready}, started by a program: only that program can resume it, with resume().", err=True)
        click.echo(safe(chosen.in_words()), err=True)
        return
    codes = [_resumed(status, options, going, traceback=traceback, alone=run is not None) for status in ours]
    sys.exit(next((code for code in codes if code not in (0, WAITING)), max(codes)))


def _resume_elsewhere(run: str | None, store: str | None, *, as_json: bool) -> None:
    """Let a server resume a run, or all that can be resumed. `signoff runs` shows their results."""
    from signoff.cli.remote_desk import RemoteDesk
    from signoff.cli.server_client import server_for

    desk = RemoteDesk(server_for(store))

    def tell(run_id: str, problem: str = "") -> None:
        if as_json:
            click.echo(json_line({"run": run_id, "resumed": not problem, **({"problem": problem} if problem else {})}))
        elif problem:
            click.echo(f"signoff: {problem}", err=True)
        else:
            click.echo(f"the server resumes run {safe(run_id)}")

    async def work() -> int:
        if run is not None:
            found = (await desk.run(run)).run
            await desk.resume(found.id)
            tell(found.id)
            return 0
        going = (await desk.runs(RunFilter(limit=MOST_ELSEWHERE))).runs
        ready = [one.id for one in reversed(going) if one.state in ("ready", "died") and one.agent]
        refused = 0
        for one in ready:  # one by one: another process may resume one first, and a server may refuse another
            try:
                await desk.resume(one)
                tell(one)
            except RunError as error:
                refused += 1
                tell(one, safe(str(error)))
        if not ready:
            click.echo("No run is ready to resume. `signoff runs` lists all runs.", err=True)
        return FAILED if refused else 0

    sys.exit(asyncio.run(work()))


def _from_here(model: str | None) -> str | None:
    kind, colon, file = (model or "").partition(":")
    return f"script:{os.path.abspath(file)}" if colon and kind == "script" else model


def _found(prefix: str | None, options: RunOptions) -> list[RunStatus]:
    """The selected runs, after deadlines that have passed were applied."""

    async def look(broker: Broker, _: Settings) -> list[RunStatus]:
        await broker.sweep()
        if prefix is not None:
            return [await broker.runs.status((await broker.runs.get(prefix)).id)]
        runs = await broker.runs.list(going=True)
        return [one for one in reversed(runs) if one.word in ("ready", "died")]

    return _asked(look, options)


def _waiting(run_id: str, options: RunOptions) -> Sequence[ApprovalRequest]:
    """The requests that a run waits for."""

    async def look(broker: Broker, settings: Settings) -> Sequence[ApprovalRequest]:
        name = reader_of(options.requester, settings)
        reader = Actor(name=name) if name else None
        return [await broker.shown(one, reader) for one in await broker.runs.waiting(run_id)]

    return _asked(look, options)


def _asked(look: Callable[[Broker, Settings], Coroutine[Any, Any, T]], options: RunOptions) -> T:
    async def asked() -> T:
        broker, settings = open_broker(options.store, options.policy)
        try:
            return await look(broker, settings)
        finally:
            broker.store.close()

    return asyncio.run(asked())


def _resumed(status: RunStatus, options: RunOptions, going: Going, *, traceback: bool, alone: bool) -> int:
    nobody = not sys.stdin.isatty() or options.wait is not None
    if alone and nobody and status.waiting and not status.answered and not status.run.holder:
        say_waiting(status.run.id, _waiting(status.run.id, options), going.as_json)
        return WAITING
    if not alone and not going.as_json:
        click.echo(f"run {status.run.id}: {agent_name(status.run.agent)}", err=True)
    going.run = status.run.id
    try:
        return carried_out(_went_on(status, options, going, alone=alone), going, traceback=traceback)
    except SignoffError as error:
        if alone:
            raise
        click.echo(f"signoff: run {status.run.id}: {error}", err=True)
        return FAILED
    except SystemExit as left:
        if alone or not isinstance(left.code, int):
            raise
        return left.code


async def _went_on(status: RunStatus, options: RunOptions, going: Going, *, alone: bool) -> int:
    """Execute the run until it ends or waits. If it was a turn of a chat and is `alone`, continue the chat."""
    broker, _ = open_broker(options.store, options.policy)
    try:
        runs = TerminalRuns(broker, options, going, chats=alone)
        end = await segment(runs, status)
        if end.error is not None:
            raise end.error
        return runs.code
    finally:
        broker.watch.close()
        broker.store.close()
