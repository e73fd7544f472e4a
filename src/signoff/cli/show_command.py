"""`signoff show`: one request as channels show it, with votes, outcome and history."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
from rich.console import Console

from signoff.channels.keyboard import Keyboard
from signoff.channels.render import WHOLE, Cut, draw_card, draw_facts
from signoff.channels.terminal_screen import Screen
from signoff.cli import id_completion, shared_options
from signoff.cli.open_desk import with_desk
from signoff.cli.request_report import (
    choices,
    comment_facts,
    history_facts,
    offer_facts,
    outcome_facts,
)
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import safe
from signoff.core.card import by_clock
from signoff.core.request import State
from signoff.core.safe_text import redacted_text
from signoff.core.visible_text import visible
from signoff.errors import SignoffError, WrongUse
from signoff.policy.phrases import did_you_mean
from signoff.views.request_view import RequestView

if TYPE_CHECKING:
    from signoff.cli.approval_desk import ApprovalDesk

ROWS = 500
"""Most rows of one argument, unless --whole is given."""


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.waiting)
@click.option("--whole", is_flag=True, help=f"Print every line of every argument, not only {ROWS} of each.")
@click.option("--arg", metavar="NAME", help="Print only this argument, in full, secrets masked.")
@click.option("--no-pager", is_flag=True, help="Print everything, without a pager.")
@shared_options.who
@shared_options.as_json
@shared_options.anywhere
def show(
    request_id: str,
    whole: bool,
    arg: str | None,
    no_pager: bool,
    name: str | None,
    as_json: bool,
    store: str | None,
    policy: str | None,
) -> None:
    """Show one request: what would run, who is asked, the votes and the outcome. ID may be a prefix.

    If the text does not fit the screen, PAGER (or less) shows it. A long call can be approved after it was shown to you
    in full: with --whole, if it has more lines than are printed without.

    \b
    Examples:
      signoff show k3f9
      signoff show k3f9 --arg content > content.txt
    """

    async def work(desk: ApprovalDesk) -> RequestView:
        request = await desk.request(request_id)
        if arg is None:
            await _note_reader(desk, request, whole=whole or as_json)
        return request

    if arg is not None and (as_json or whole):
        raise WrongUse(f"--arg prints one argument; leave out {'--json' if as_json else '--whole'}")
    request = with_desk(store, policy, name, work)
    if arg is not None:
        _print_argument(request, arg)
        return
    if as_json:
        click.echo(json_line(request))
        return
    _print(lambda screen: _draw(screen, request, whole=whole), pager=not no_pager)


async def _note_reader(desk: ApprovalDesk, request: RequestView, *, whole: bool) -> None:
    """Record that a long call is shown to the person, if nothing is left out and they may read and answer here."""
    card = request.card if request.state is State.PENDING else None
    if card is None or not card.is_long:
        return
    if whole or not draw_card(card, _screen().look, cut=Cut(rows=ROWS, args=ROWS)).shortened:
        with suppress(SignoffError):  # whoever may only look is shown it all the same
            await desk.opened(request)


def _screen() -> Screen:
    return Screen(Console(file=sys.stdout, markup=False, emoji=False, highlight=False), Keyboard())


def _print_argument(request: RequestView, name: str) -> None:
    """Print one argument as it would run, secrets masked; a terminal gets control and hidden characters escaped."""
    if request.args is None:
        raise WrongUse(request.problem)
    args: Mapping[str, object] = request.args
    if name not in args:
        there = [visible(one) for one in args]
        hint = did_you_mean(name, there) if there else "it has none"
        raise WrongUse(f"{safe(request.tool)} has no argument {visible(name)} in this call\n  {hint}")
    value = args[name]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)
    if sys.stdout.isatty():
        text = redacted_text(text, lines=True)
    click.echo(text.encode("utf-8", "surrogatepass"), nl=not text.endswith("\n"))


def _print(draw: Callable[[Screen], None], *, pager: bool) -> None:
    """Print what `draw` draws, through a pager if it does not fit the screen."""
    console = Console(file=sys.stdout, markup=False, emoji=False, highlight=False)
    screen = Screen(console, Keyboard())
    if not (pager and sys.stdin.isatty() and sys.stdout.isatty()):
        draw(screen)
        return
    with console.capture() as drawn:
        draw(screen)
    text = drawn.get()
    if text.count("\n") < console.height:
        sys.stdout.write(text)
    else:
        click.echo_via_pager(text.removesuffix("\n"), color=None if screen.look.colour else False)


def _draw(screen: Screen, request: RequestView, *, whole: bool) -> None:
    card = request.card
    if card is not None:
        rest = f"`signoff show {card.request_id} --whole` prints everything, `--arg NAME` only one argument"
        now = datetime.now(UTC) if request.state is State.PENDING else None
        card = by_clock(card, request.deadline, datetime.astimezone, now)
        card = replace(card, comments=(), left_out=0)  # all comments are printed below
        cut = replace(WHOLE if whole else Cut(rows=ROWS, args=ROWS, rest=rest), asks=request.state is State.PENDING)
        screen.show(draw_card(card, screen.look, cut=cut).lines)
    else:
        screen.say(request.problem, "bold red")
    _frame(screen, request.status, outcome_facts(request))
    _frame(screen, "comments", comment_facts(request))
    _frame(screen, "history", history_facts(request))
    _frame(screen, "what can be remembered (approve --remember N)", offer_facts(request))
    for line in choices(request):
        screen.say(line)


def _frame(screen: Screen, title: str, facts: Iterable[tuple[str, str]]) -> None:
    named: list[tuple[str, str]] = list(facts)
    if named:
        screen.show(draw_facts(named, screen.look, title).lines)
