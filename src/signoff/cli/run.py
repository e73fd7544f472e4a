"""`signoff run`: any PydanticAI agent, under a policy, asking at this terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from signoff.cli.main import FAILED, WAITING

if TYPE_CHECKING:
    from signoff.core.event import CallEvent
    from signoff.core.request import ApprovalRequest
    from signoff.workers.runtime import Finished


@click.command(no_args_is_help=True)
@click.argument("agent")
@click.argument("prompt", required=False)
@click.option(
    "--policy", type=click.Path(dir_okay=False), help="Policy file. Default: signoff.yaml here, if there is one."
)
@click.option("--model", help="Model to use instead of the agent's own: a PydanticAI name, or script:FILE.")
@click.option(
    "--mode",
    type=click.Choice(["interactive", "auto_approve", "auto_deny"]),
    default="interactive",
    show_default=True,
    help="What happens to calls that policy asks about. Denied calls stay denied in every mode.",
)
@click.option(
    "--unattended",
    type=click.Choice(["deny", "park"]),
    default="deny",
    show_default=True,
    help="Without a terminal, calls that need an answer are denied, or the run stops with exit code 3.",
)
@click.option("--suspend", is_flag=True, help="Stop with exit code 3 as soon as an answer is needed; resume later.")
@click.option("--wait", metavar="TIME", help="Wait that long for answers (30s, 15m, 2h), then suspend.")
@click.option(
    "--store", metavar="URL", help="Where the run and its questions are kept. Default: a file for the project."
)
@click.option("--as", "requester", metavar="NAME", help="Who the run is for. Default: you.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object a line on standard output: events, then the result."
)
@click.option("--traceback", is_flag=True, help="Show the whole traceback when the agent fails.")
def run(
    agent: str,
    prompt: str | None,
    policy: str | None,
    model: str | None,
    mode: str,
    unattended: Literal["deny", "park"],
    suspend: bool,
    wait: str | None,
    store: str | None,
    requester: str | None,
    as_json: bool,
    traceback: bool,
) -> None:
    """Run AGENT (package.module:agent) with PROMPT; without PROMPT it is read from standard input.

    \b
    Example:
      signoff run mypackage.agents:agent "Tidy the notes" --policy signoff.yaml
      signoff run mypackage.agents:agent "Tidy the notes" --suspend

    Exit codes: 0 done, 1 the agent failed, 2 wrong use, 3 waiting for a person, 4 denied.
    """
    from signoff.cli.durations import read_wait
    from signoff.core.mode import ApprovalMode
    from signoff.wiring import RunOptions, run_agent

    if prompt is None and sys.stdin.isatty():
        raise click.UsageError('Say what the agent should do: signoff run AGENT "PROMPT"')
    if suspend and wait is not None:
        raise click.UsageError("--suspend waits for nothing; leave --wait out, or --suspend.")
    task = prompt if prompt is not None else sys.stdin.read()
    options = RunOptions(
        policy=policy,
        model=model,
        mode=ApprovalMode(mode),
        unattended=unattended,
        store=store,
        wait=read_wait("0s" if suspend else wait),
        requester=requester,
        observe=observer(as_json),
    )
    in_hand = InHand()
    finished = carried_out(run_agent(agent, task, options, begun=in_hand.begun), in_hand, traceback=traceback)
    sys.exit(say_finished(finished, as_json))


class InHand:
    """The run that is going on, so that whoever stops it is told how to go on."""

    def __init__(self, run: str = "") -> None:
        self.run = run

    def begun(self, run: str) -> None:
        self.run = run


def observer(as_json: bool) -> Callable[[CallEvent], None]:
    """Prints every step of every call, for people or as JSON."""
    from signoff.cli.progress import event_json, print_event

    def observe(event: CallEvent) -> None:
        if as_json:
            click.echo(event_json(event))
        else:
            print_event(event)

    return observe


def carried_out(work: Coroutine[Any, Any, Finished], in_hand: InHand, *, traceback: bool) -> Finished:
    """Run the agent; what goes wrong is one message and an exit code."""
    import asyncio

    from signoff.errors import Halted, SignoffError

    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        click.echo(f"\nsignoff: stopped. {_go_on(in_hand.run)}", err=True)
        sys.exit(130)
    except Halted as halted:
        click.echo(f"signoff: {halted}\n  {_go_on(in_hand.run)}", err=True)
        sys.exit(WAITING)
    except SignoffError:
        raise
    except Exception as error:
        if traceback:
            raise
        click.echo(f"signoff: the agent failed: {type(error).__name__}: {error}", err=True)
        click.echo("  --traceback shows where.", err=True)
        sys.exit(FAILED)


def _go_on(run: str) -> str:
    return f"To go on: signoff resume {run}" if run else ""


def say_finished(finished: Finished, as_json: bool) -> int:
    """Print how a run ended; the exit code that says so."""
    if finished.waiting:
        say_waiting(finished.run, finished.waiting, as_json, store=finished.store)
        return WAITING
    output = {"output": finished.output, **({"run": finished.run} if finished.run else {})}
    click.echo(json.dumps(output, ensure_ascii=False, default=str) if as_json else finished.output)
    return 0


def say_waiting(run: str, waiting: Sequence[ApprovalRequest], as_json: bool, *, store: str = "") -> None:
    """Print what a run waits for, and how to go on."""
    from shlex import quote

    from signoff.core.card import safe_summary

    rows = [{"request": one.id, "summary": one.title or safe_summary(one)} for one in waiting]
    if as_json:
        click.echo(json.dumps({"waiting": rows, **({"run": run} if run else {})}))
        return
    click.echo("Waiting for a person:", err=True)
    for row in rows:
        click.echo(f"  {row['request']}  {row['summary']}", err=True)
    if run:
        where = f" --store {quote(store)}" if store else ""
        first = rows[0]["request"]
        click.echo(f"Answer with: signoff approve {first}{where}   (or deny; `signoff show` tells more)", err=True)
        click.echo(f"Then go on:  signoff resume {run}{where}", err=True)
