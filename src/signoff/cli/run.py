"""`signoff run`: any PydanticAI agent, under a policy, asking at this terminal."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Literal

import click

from signoff.cli.main import FAILED, WAITING

if TYPE_CHECKING:
    from signoff.core.event import CallEvent
    from signoff.core.request import ApprovalRequest


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
    as_json: bool,
    traceback: bool,
) -> None:
    """Run AGENT (package.module:agent) with PROMPT; without PROMPT it is read from standard input.

    \b
    Example:
      signoff run mypackage.agents:agent "Tidy the notes" --policy signoff.yaml

    Exit codes: 0 done, 1 the agent failed, 2 wrong use, 3 waiting for a person, 4 denied.
    """
    import asyncio

    from signoff.cli.progress import event_json, print_event
    from signoff.core.mode import ApprovalMode
    from signoff.errors import SignoffError
    from signoff.wiring import run_agent

    if prompt is None and sys.stdin.isatty():
        raise click.UsageError('Say what the agent should do: signoff run AGENT "PROMPT"')
    task = prompt if prompt is not None else sys.stdin.read()

    def observe(event: CallEvent) -> None:
        if as_json:
            click.echo(event_json(event))
        else:
            print_event(event)

    try:
        finished = asyncio.run(
            run_agent(
                agent,
                task,
                policy=policy,
                model=model,
                mode=ApprovalMode(mode),
                unattended=unattended,
                observe=observe,
            )
        )
    except SignoffError:
        raise
    except Exception as error:
        if traceback:
            raise
        click.echo(f"signoff: the agent failed: {type(error).__name__}: {error}", err=True)
        click.echo("  --traceback shows where.", err=True)
        sys.exit(FAILED)
    if finished.waiting:
        _say_waiting(finished.waiting, as_json)
        sys.exit(WAITING)
    click.echo(json.dumps({"output": finished.output}, ensure_ascii=False, default=str) if as_json else finished.output)


def _say_waiting(waiting: tuple[ApprovalRequest, ...], as_json: bool) -> None:
    from signoff.core.card import safe_summary

    rows = [{"request": one.id, "summary": safe_summary(one)} for one in waiting]
    if as_json:
        click.echo(json.dumps({"waiting": rows}))
        return
    click.echo("Waiting for a person:", err=True)
    for row in rows:
        click.echo(f"  {row['request']}  {row['summary']}", err=True)
