"""`signoff approve` and `signoff deny`: answer requests from the command line."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from signoff.cli import id_completion, shared_options
from signoff.cli.approval_desk import ApprovalDesk, GivenAnswer, PreparedAnswer, TypedAnswer
from signoff.cli.desk_command import Printed, run_on_desk
from signoff.cli.json_argument import given_args
from signoff.cli.local_desk import problems_of
from signoff.cli.remember_option import RememberOptions
from signoff.cli.terminal_text import by_wall_clock, safe
from signoff.core.card import SENT_BACK
from signoff.core.request import State
from signoff.errors import RequestError, ServerFailed, StoreError, WrongUse

if TYPE_CHECKING:
    from signoff.core.preview import Preview

F = TypeVar("F", bound=Callable[..., Any])

SCOPES = ("run", "session", "worker", "project")


def _remembering(*limits: Callable[[Any], Any]) -> Callable[[F], F]:
    """Add `--remember` and the options that limit it."""
    every = (
        click.option("--yes", is_flag=True, help="Remember without asking for confirmation."),
        *limits,
        click.option("--until", metavar="WHEN", help="Remember until: 2h, 3d, friday, 2031-05-24."),
        click.option(
            "--for", "scope", type=click.Choice(SCOPES), help="Where it is remembered. Default: the whole project."
        ),
        click.option(
            "--remember", metavar="exact|N|ARG", help="Also cover later calls; N is a number that `signoff show` lists."
        ),
    )

    def decorated(command: F) -> F:
        for option in every:
            command = option(command)
        return command

    return decorated


@click.command(no_args_is_help=True)
@click.argument("request_ids", metavar="ID...", nargs=-1, required=True, shell_complete=id_completion.pending)
@shared_options.who
@shared_options.note("A note for the audit log and the model.")
@click.option(
    "--args", "arguments", metavar="JSON|@FILE", help="Run it with these arguments instead; give all of them."
)
@_remembering(
    click.option(
        "--budget", metavar="'ARG 200/day'", help="Remember until the sum of ARG exceeds this: 200/day, or 200."
    ),
    click.option("--uses", type=click.IntRange(1, 1_000_000), metavar="N", help="Remember for this many calls."),
)
@shared_options.as_json
@shared_options.anywhere
def approve(
    request_ids: tuple[str, ...],
    note: str,
    arguments: str | None,
    remember: str | None,
    scope: str | None,
    until: str | None,
    uses: int | None,
    budget: str | None,
    yes: bool,
    as_json: bool,
    **place: Any,
) -> None:
    """Approve calls. Each ID may be a prefix; the result of each is printed on its own line.

    \b
    Examples:
      signoff approve k3f9 --note "checked with Ben"
      signoff approve k3f9 --args '{"to": "ana", "amount": 20}'
      signoff approve k3f9 --remember amount --budget 'amount 200/day' --until friday

    Exit code 1 if any of them could not be approved; the message says why, or who answered first.
    """
    if arguments is not None and len(request_ids) > 1:
        raise click.UsageError("--args applies to one request only")
    if arguments is not None and remember is not None:
        raise click.UsageError("--remember cannot be combined with --args: edited arguments are approved once")
    wish = _wish(remember, scope, until, uses, budget)
    args = given_args(arguments) if arguments is not None else None
    answer = TypedAnswer(True, note, args, wish, yes)
    run_on_desk(_given, answer=answer, request_ids=request_ids, hints=not as_json, as_json=as_json, **place)


@click.command(no_args_is_help=True)
@click.argument("request_ids", metavar="ID...", nargs=-1, required=True, shell_complete=id_completion.pending)
@shared_options.who
@shared_options.note("The reason; the model reads it.")
@_remembering()
@shared_options.as_json
@shared_options.anywhere
def deny(
    request_ids: tuple[str, ...],
    note: str,
    remember: str | None,
    scope: str | None,
    until: str | None,
    yes: bool,
    as_json: bool,
    **place: Any,
) -> None:
    """Deny calls. A person's denial is final. Each ID may be a prefix.

    \b
    Examples:
      signoff deny k3f9 q8w2 --note "not on a Friday"
      signoff deny k3f9 --remember exact --for run
    """
    answer = TypedAnswer(False, note, None, _wish(remember, scope, until, None, None), yes)
    run_on_desk(_given, answer=answer, request_ids=request_ids, hints=not as_json, as_json=as_json, **place)


def _wish(
    remember: str | None, scope: str | None, until: str | None, uses: int | None, budget: str | None
) -> RememberOptions | None:
    if remember is None:
        if scope or until or uses or budget:
            raise click.UsageError("--for, --until, --uses and --budget need --remember: add --remember exact")
        return None
    return RememberOptions(which=remember, scope=scope or "project", until=until, uses=uses, budget=budget)


@dataclass(frozen=True, slots=True)
class Done:
    """The result for one id."""

    ready: PreparedAnswer
    answer: GivenAnswer | None = None
    """None if the answer was not accepted; `problems` say why."""
    problems: tuple[str, ...] = ()


async def _given(
    desk: ApprovalDesk, answer: TypedAnswer, request_ids: Sequence[str], hints: bool
) -> AsyncIterator[Printed]:
    ready = [await desk.prepared(one, answer) for one in dict.fromkeys(request_ids)]
    if answer.wish is not None and not _confirmed(ready, answer.yes):
        click.echo("Nothing was answered.", err=True)
        yield Printed(ok=False)
        return
    done: list[Done] = []
    for one in _once(ready):
        done.append(await _answered(one))
        yield _told(done[-1], answer)
    if hints:
        unknown = any(one.ready.is_unknown for one in done)
        yield Printed(lines=await _hints(desk, done), notes=[f"  {safe(desk.place)}"] if unknown else [])


def _once(ready: Sequence[PreparedAnswer]) -> Iterator[PreparedAnswer]:
    """Skip a second prefix of the same id."""
    seen: set[str] = set()
    for one in ready:
        if one.give is None or one.id not in seen:
            yield one
        if one.give is not None:
            seen.add(one.id)


def _confirmed(ready: Sequence[PreparedAnswer], yes: bool) -> bool:
    """Print exactly what will be remembered; ask for confirmation at a terminal."""
    able = [one for one in ready if one.give is not None]
    if not able:
        return True
    click.echo("This will be remembered:" if yes else "This would be remembered:", err=True)
    for one in able:
        click.echo(f"  {by_wall_clock(one.remembered)}", err=True)
    if yes:
        return True
    if not sys.stdin.isatty():
        raise WrongUse("there is no terminal to confirm at: add --yes to confirm; nothing was answered")
    from termios import TCIFLUSH, tcflush

    tcflush(sys.stdin.fileno(), TCIFLUSH)  # discard input typed before the question was shown
    return click.confirm("Confirm?", err=True)


async def _answered(ready: PreparedAnswer) -> Done:
    if ready.give is None:
        return Done(ready, problems=ready.problems)
    try:
        return Done(ready, await ready.give())
    except RequestError as error:
        return Done(ready, problems=problems_of(error))


def _told(done: Done, answer: TypedAnswer) -> Printed:
    if done.answer is None:
        notes = [f"signoff: {safe(done.ready.given)}: {problem}" for problem in done.problems]
        return Printed(notes=notes, data=_data(done), ok=False)
    return Printed(lines=_lines(done.answer, answer), data=_data(done))


def _lines(given: GivenAnswer, answer: TypedAnswer) -> Iterator[str]:
    request = given.request
    word = click.style("approved", fg="green") if answer.approved else click.style("denied  ", fg="red")
    if given.effect is not None and given.effect.text == SENT_BACK:
        word = click.style("refused ", fg="red")
    waits = ""
    if request.state is State.PENDING:
        already = "you have already approved it; " if given.again else ""
        names = f" ({', '.join(map(safe, request.approved_by))})" if request.approved_by else ""
        waits = f"; {already}{len(request.approved_by)} of {request.quorum}{names}, and it needs {safe(request.who)}"
        waits += f"; {safe(request.shortage)}" if request.shortage else ""
    yield f"{word}  {safe(request.id)}  {safe(request.title)}{waits}"
    if answer.arguments is not None:
        for line in request.votes[-1].changes if request.votes else ():
            yield f"          {line}"
        yield from (f"          {line}" for line in _effect_lines(given.effect))


def _effect_lines(effect: Preview | None) -> Iterator[str]:
    if effect is None or not effect.text:
        return
    counts = f": +{effect.added} -{effect.removed}" if effect.kind == "diff" else ""
    yield f"what it changes{counts}"
    yield from map(safe, effect.text.split("\n"))


def _data(done: Done) -> Mapping[str, Any]:
    if done.answer is None:
        return {"id": done.ready.id or done.ready.given, "ok": False, "problems": list(done.problems)}
    request = done.answer.request
    return {
        "id": request.id,
        "ok": True,
        "state": request.state,
        "approvals": len(request.approved_by),
        "quorum": request.quorum,
        "run": request.run,
        "remembered": done.ready.remembered,
    }


async def _hints(desk: ApprovalDesk, done: Sequence[Done]) -> list[str]:
    """How the runs continue that wait for nobody now."""
    runs = {one.answer.request.run for one in done if one.answer is not None and one.answer.request.run}
    lines: list[str] = []
    with suppress(ServerFailed, StoreError):  # the answers themselves were printed
        for run in sorted(runs):
            lines += filter(None, [await desk.going_on(run)])
    return [click.style(line, dim=True) for line in lines]
