"""`signoff approve` and `signoff deny`: a person's answer, from anywhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from signoff.cli import id_completion, shared_options

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.cli.remember import RememberOptions
    from signoff.config import Settings
    from signoff.core.decision import ApprovalDecision
    from signoff.core.people import Actor
    from signoff.core.request import ApprovalRequest
    from signoff.errors import RequestError

F = TypeVar("F", bound=Callable[..., Any])

SCOPES = ("run", "session", "worker", "project")
VIA = "command"
"""How the record says that an answer was given."""


def _remembering(*limits: Callable[[Any], Any]) -> Callable[[F], F]:
    """`--remember` and what limits it."""
    every = (
        click.option("--yes", is_flag=True, help="Remember without asking back."),
        *limits,
        click.option("--until", metavar="WHEN", help="Remember until then: 2h, 3d, friday, 2031-05-24."),
        click.option(
            "--for", "scope", type=click.Choice(SCOPES), help="Where it is remembered. Default: the whole project."
        ),
        click.option(
            "--remember", metavar="exact|N|ARG", help="Also hold for later calls: as `signoff show` numbers it."
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
@shared_options.note("For the record and the model.")
@click.option("--args", "arguments", metavar="JSON|@FILE", help="Run it with these arguments, whole, instead.")
@_remembering(
    click.option("--budget", metavar="'ARG 200/day'", help="Remember while ARG adds up to no more: 200/day, or 200."),
    click.option("--uses", type=click.IntRange(1, 1_000_000), metavar="N", help="Remember for so many calls."),
)
@shared_options.as_json
@shared_options.where
def approve(
    request_ids: tuple[str, ...],
    name: str | None,
    note: str,
    arguments: str | None,
    remember: str | None,
    scope: str | None,
    until: str | None,
    uses: int | None,
    budget: str | None,
    yes: bool,
    as_json: bool,
    store: str | None,
    policy: str | None,
) -> None:
    """Let calls run. Each ID may be the beginning of one, and is answered on a line of its own.

    \b
    Examples:
      signoff approve k3f9 --note "checked with Ben"
      signoff approve k3f9 --args '{"to": "ana", "amount": 20}'
      signoff approve k3f9 --remember amount --budget 'amount 200/day' --until friday

    Exit code 1 if any of them could not be approved; the message says who was faster, or why not.
    """
    if arguments is not None and len(request_ids) > 1:
        raise click.UsageError("--args are for one request")
    if arguments is not None and remember is not None:
        raise click.UsageError("--remember is for calls as they are asked; other arguments (--args) hold once")
    wish = _wish(remember, scope, until, uses, budget)
    answer = TypedAnswer(True, note, arguments, wish, yes)
    _give(answer, request_ids, name, as_json, store, policy)


@click.command(no_args_is_help=True)
@click.argument("request_ids", metavar="ID...", nargs=-1, required=True, shell_complete=id_completion.pending)
@shared_options.who
@shared_options.note("Why; the model is told.")
@_remembering()
@shared_options.as_json
@shared_options.where
def deny(
    request_ids: tuple[str, ...],
    name: str | None,
    note: str,
    remember: str | None,
    scope: str | None,
    until: str | None,
    yes: bool,
    as_json: bool,
    store: str | None,
    policy: str | None,
) -> None:
    """Say no to calls. A person's no is final. Each ID may be the beginning of one.

    \b
    Examples:
      signoff deny k3f9 q8w2 --note "not on a Friday"
      signoff deny k3f9 --remember exact --for run
    """
    answer = TypedAnswer(False, note, None, _wish(remember, scope, until, None, None), yes)
    _give(answer, request_ids, name, as_json, store, policy)


def _wish(
    remember: str | None, scope: str | None, until: str | None, uses: int | None, budget: str | None
) -> RememberOptions | None:
    if remember is None:
        if scope or until or uses or budget:
            raise click.UsageError("--for, --until, --uses and --budget limit what is remembered: add --remember exact")
        return None
    from signoff.cli.remember import RememberOptions

    return RememberOptions(which=remember, scope=scope or "project", until=until, uses=uses, budget=budget)


@dataclass(frozen=True, slots=True)
class TypedAnswer:
    """What was typed, for every id."""

    approved: bool
    note: str
    arguments: str | None
    wish: RememberOptions | None
    yes: bool

    async def decision(self, request: ApprovalRequest, broker: Broker, settings: Settings) -> ApprovalDecision:
        """The decision about one request. Raises a `RequestError` where it cannot be given."""
        from signoff.cli.terminal_text import now
        from signoff.core.decision import ApprovalDecision

        if self.approved:
            from signoff.wiring.answer_checks import refuse_unseen

            refuse_unseen(request)
        decision = ApprovalDecision(approved=self.approved, note=self.note)
        if self.arguments is not None:
            from signoff.cli.json_argument import given_args
            from signoff.wiring.answer_checks import checked_answer

            decision = replace(decision, edited_args=given_args(self.arguments))
            decision = await checked_answer(broker, settings, request, decision)
        if self.wish is not None:
            from signoff.broker.grants import check_terms

            decision = replace(decision, terms=self.wish.terms(request, now()))
            check_terms(request, decision)
        return decision


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one id."""

    given: str
    request: ApprovalRequest | None = None
    decision: ApprovalDecision | None = None
    problems: tuple[str, ...] = ()
    """Why not, where it was not."""
    again: bool = False
    """Whether they had approved the same before."""
    is_unknown: bool = False
    """Whether there is no such request here."""


def _give(
    answer: TypedAnswer,
    request_ids: Sequence[str],
    name: str | None,
    as_json: bool,
    store: str | None,
    policy: str | None,
) -> None:
    from signoff.cli.main import FAILED
    from signoff.cli.open_broker import looked_in, with_broker
    from signoff.cli.terminal_text import safe

    async def work(broker: Broker, settings: Settings) -> bool:
        from signoff.wiring import chosen_store, whoami

        by = whoami(name, settings, via=VIA)
        await broker.sweep()
        ready = [await _prepared(broker, settings, answer, one) for one in dict.fromkeys(request_ids)]
        if answer.wish is not None and not _confirmed(ready, answer.yes):
            click.echo("Nothing was answered.", err=True)
            return False
        done: list[Done] = []
        for one in _once(ready):
            done.append(await _answered(broker, one, by))
            _tell(done[-1], answer, as_json)  # at once: if the store fails at the next, this one was answered
        if not as_json:
            await _hint(broker, done)
            if any(one.is_unknown for one in done):
                click.echo(f"  {safe(looked_in(chosen_store(store, settings)))}", err=True)
        return not any(one.problems for one in done)

    if not with_broker(store, policy, work):
        sys.exit(FAILED)


def _once(ready: Sequence[Done]) -> Iterator[Done]:
    """Two beginnings of one id are one answer."""
    seen: set[str] = set()
    for one in ready:
        if one.request is None or one.request.id not in seen:
            yield one
        if one.request is not None:
            seen.add(one.request.id)


async def _prepared(broker: Broker, settings: Settings, answer: TypedAnswer, given: str) -> Done:
    """One answer, checked as far as it can be before anything is written."""
    from signoff.cli.request_report import late_text, outcome_step
    from signoff.core.request import State
    from signoff.errors import RequestError, UnknownRequest

    try:
        request = await broker.find(given)
        if request.state is State.UNKNOWN:
            raise RequestError(f"request {request.id} was approved and started, and {outcome_step(request)}")
        if request.state is not State.PENDING:
            return Done(given, problems=(late_text(request),))
        return Done(given, request, await answer.decision(request, broker, settings))
    except RequestError as error:
        return Done(given, problems=problems_of(error), is_unknown=isinstance(error, UnknownRequest))


def _confirmed(ready: Sequence[Done], yes: bool) -> bool:
    """Say exactly what will be stored; on a terminal, ask."""
    from signoff.core.safe import spelled_out
    from signoff.errors import WrongUse

    able = [one for one in ready if one.request is not None and one.decision is not None]
    if not able:
        return True
    click.echo("This will be remembered:" if yes else "This would be remembered:", err=True)
    for one in able:
        assert one.request is not None
        assert one.decision is not None
        click.echo(f"  {spelled_out(one.request, one.decision, datetime.astimezone)}", err=True)
    if yes:
        return True
    if not sys.stdin.isatty():
        raise WrongUse("there is no terminal to ask back at: add --yes if that is meant; nothing was answered")
    from termios import TCIFLUSH, tcflush

    tcflush(sys.stdin.fileno(), TCIFLUSH)  # what was typed before the question is no answer to it
    return click.confirm("Is that meant?", err=True)


async def _answered(broker: Broker, ready: Done, by: Actor) -> Done:
    from signoff.cli.request_report import late_text
    from signoff.core.inbox_row import has_approved
    from signoff.core.request import State
    from signoff.errors import AlreadySettled, RequestError

    if ready.request is None or ready.decision is None:
        return ready
    try:
        voted = await broker.answer(ready.request.id, ready.decision, by=by)
        again = ready.decision.approved and has_approved(ready.request, by.name, voted.votes[-1].args_digest)
        return replace(ready, request=voted, again=again)
    except AlreadySettled as error:  # somebody was faster by an instant
        request = await broker.get(ready.request.id)
        return replace(ready, problems=problems_of(error) if request.state is State.PENDING else (late_text(request),))
    except RequestError as error:
        return replace(ready, problems=problems_of(error))


def problems_of(error: RequestError) -> tuple[str, ...]:
    """Why an answer was not taken, a line each."""
    from signoff.cli.terminal_text import safe
    from signoff.errors import EditRefused

    return tuple(safe(one) for one in (error.problems if isinstance(error, EditRefused) else (str(error),)))


def _tell(done: Done, answer: TypedAnswer, as_json: bool) -> None:
    from signoff.cli.terminal_text import as_json as json_line
    from signoff.cli.terminal_text import safe

    request = done.request
    if as_json:
        click.echo(json_line(_data(done)))
    elif done.problems or request is None:
        for problem in done.problems:
            click.echo(f"signoff: {safe(done.given)}: {problem}", err=True)
    else:
        for line in _lines(request, answer.approved, done):
            click.echo(line)


def _lines(request: ApprovalRequest, approved: bool, done: Done) -> Iterator[str]:
    from signoff.cli.request_report import changes
    from signoff.cli.terminal_text import safe
    from signoff.core.inbox_row import agreed_text
    from signoff.core.quorum import who
    from signoff.core.request import State
    from signoff.core.visible import visible

    word = click.style("approved", fg="green") if approved else click.style("denied  ", fg="red")
    waits = ""
    if request.state is State.PENDING:
        already = "you had approved it already; " if done.again else ""
        waits = f"; {already}{visible(agreed_text(request))}, and it needs {visible(who(request.requirement))}"
    yield f"{word}  {safe(request.id)}  {safe(request.title)}{waits}"
    if done.decision is not None and done.decision.edited_args is not None:
        for line in changes(request, done.decision.edited_args):
            yield f"          {line}"


def _data(done: Done) -> Mapping[str, Any]:
    from signoff.core.inbox_row import agreed
    from signoff.core.safe import spelled_out

    request, decision = done.request, done.decision
    if done.problems or request is None:
        return {"id": request.id if request is not None else done.given, "ok": False, "problems": list(done.problems)}
    remembered = decision is not None and decision.terms is not None
    return {
        "id": request.id,
        "ok": True,
        "state": str(request.state),
        "approvals": agreed(request),
        "quorum": request.requirement.quorum,
        "run": request.run or None,
        "remembered": spelled_out(request, decision) if remembered and decision is not None else None,
    }


async def _hint(broker: Broker, done: Sequence[Done]) -> None:
    """Which runs can go on now, if no process is about to notice by itself."""
    from signoff.cli.request_report import how_to_go_on

    runs = {one.request.run for one in done if one.request is not None and one.request.run and not one.problems}
    for run in sorted(runs):
        if await broker.store.read(lambda tx, run=run: tx.runs.get(run)) is None:
            continue  # a run that only the program that began it knows
        status = await broker.runs.status(run)
        if status.word in ("ready", "died") and not status.waiting:
            click.secho(how_to_go_on(status.run), dim=True)
