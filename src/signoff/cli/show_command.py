"""`signoff show`: one request as every channel shows it, and all that became of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from signoff.cli import id_completion, shared_options
from signoff.core.moment import Zone, in_utc
from signoff.errors import WrongUse

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.channels.screen import Screen
    from signoff.config import Settings
    from signoff.core.card import Card
    from signoff.core.record import Entry
    from signoff.core.request import ApprovalRequest

ROWS = 500
"""Of one argument, unless all of it is wanted."""


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.waiting)
@click.option("--whole", is_flag=True, help=f"Every line of every argument; else {ROWS} of each.")
@click.option("--arg", metavar="NAME", help="Print one argument and nothing else: whole, secrets masked.")
@click.option("--no-pager", is_flag=True, help="At a terminal, print also what does not fit the screen.")
@shared_options.as_json
@shared_options.where
def show(
    request_id: str,
    whole: bool,
    arg: str | None,
    no_pager: bool,
    as_json: bool,
    store: str | None,
    policy: str | None,
) -> None:
    """One request: what would run, who is asked, who said what, what became of it. ID may be its beginning.

    What does not fit the screen is shown by PAGER, or less.

    \b
    Examples:
      signoff show k3f9
      signoff show k3f9 --arg content > content.txt
    """
    from signoff.cli.open_broker import with_broker

    async def work(broker: Broker, settings: Settings) -> tuple[ApprovalRequest, Sequence[Entry], str]:
        from signoff.wiring.project import requester_of

        await broker.sweep()
        request = await broker.comments.shown_with(await broker.find(request_id))
        history = await broker.store.read(lambda tx: tx.record.entries(request=request.id))
        return request, history, requester_of(None, settings)

    if arg is not None and (as_json or whole):
        raise WrongUse(f"--arg prints one argument; leave out {'--json' if as_json else '--whole'}")
    request, history, viewer = with_broker(store, policy, work)
    if arg is not None:
        _print_argument(request, arg)
        return
    if as_json:
        card, problem = _card(request, in_utc)
        from signoff.cli.request_report import request_data
        from signoff.cli.terminal_text import as_json as json_line

        click.echo(json_line(request_data(request, card, problem, history)))
        return
    card, problem = _card(request, datetime.astimezone, now=datetime.now(UTC), viewer=viewer)
    _print(lambda screen: _draw(screen, request, card, problem, history, whole=whole), pager=not no_pager)


def _card(
    request: ApprovalRequest, zone: Zone, *, now: datetime | None = None, viewer: str = ""
) -> tuple[Card | None, str]:
    """The card, or why there can be none: then it cannot be approved either."""
    from signoff.core.card import card_for
    from signoff.core.request import State
    from signoff.core.visible import visible
    from signoff.errors import CannotCanonicalise

    try:
        pending = request.state is State.PENDING
        return card_for(request, zone=zone, now=now if pending else None, viewer=viewer), ""
    except CannotCanonicalise as error:
        return None, f"this call cannot be shown, so it cannot be approved: {visible(str(error))}"


def _print_argument(request: ApprovalRequest, name: str) -> None:
    """One argument as it would run, but for its secrets; at a terminal, what hides or steers is spelled out."""
    import json

    from signoff.core.redact import redact
    from signoff.core.safe import visible_around
    from signoff.core.visible import visible
    from signoff.policy.phrases import did_you_mean

    shown = redact(request.effective_args, secrets=request.secrets)
    if name not in shown.args:
        there = [visible(one) for one in shown.args]
        hint = did_you_mean(name, there) if there else "it has none"
        raise WrongUse(f"{visible(request.tool_name)} has no argument {visible(name)} in this call\n  {hint}")
    value = shown.args[name]
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)
    if sys.stdout.isatty():
        text = visible_around([one.placeholder for one in shown.masked], text, lines=True)
    click.echo(text.encode("utf-8", "surrogatepass"), nl=not text.endswith("\n"))


def _print(draw: Callable[[Screen], None], *, pager: bool) -> None:
    """Print what is drawn: through a pager where it does not fit the screen."""
    from rich.console import Console

    from signoff.channels.keyboard import Keyboard
    from signoff.channels.screen import Screen

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


def _draw(
    screen: Screen, request: ApprovalRequest, card: Card | None, problem: str, history: Sequence[Entry], *, whole: bool
) -> None:
    from signoff.channels.render import WHOLE, Cut, draw_card
    from signoff.cli.request_report import choices, comment_facts, history_facts, offer_facts, outcome_facts
    from signoff.core.request_status import status_of

    if card is not None:
        rest = f"`signoff show {card.request_id} --whole` prints everything, `--arg NAME` one argument alone"
        card = replace(card, comments=(), left_out=0)  # all of them stand below
        screen.show(draw_card(card, screen.look, cut=WHOLE if whole else Cut(rows=ROWS, args=ROWS, rest=rest)).lines)
    else:
        screen.say(problem, "bold red")
    _frame(screen, status_of(request).title, outcome_facts(request))
    _frame(screen, "what was said about it", comment_facts(request))
    _frame(screen, "history", history_facts(history))
    _frame(screen, "what an answer may be remembered as (approve --remember N)", offer_facts(request))
    for line in choices(request):
        screen.say(line)


def _frame(screen: Screen, title: str, facts: Iterable[tuple[str, str]]) -> None:
    from signoff.channels.render import draw_facts

    named: list[tuple[str, str]] = list(facts)
    if named:
        screen.show(draw_facts(named, screen.look, title).lines)
