"""`signoff show`: one request, whole, as every channel shows it, and all that became of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from signoff.cli import ids, options

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.channels.screen import Screen
    from signoff.config import Settings
    from signoff.core.card import Card
    from signoff.core.record import Entry
    from signoff.core.request import ApprovalRequest


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=ids.waiting)
@options.as_json
@options.where
def show(request_id: str, as_json: bool, store: str | None, policy: str | None) -> None:
    """One request: what would run, who is asked, who said what, what became of it. ID may be its beginning.

    \b
    Example:
      signoff show k3f9
    """
    from signoff.cli.opening import with_broker

    async def work(broker: Broker, settings: Settings) -> tuple[ApprovalRequest, Sequence[Entry]]:
        await broker.sweep()
        request = await broker.find(request_id)
        return request, await broker.store.read(lambda tx: tx.entries(request=request.id))

    request, history = with_broker(store, policy, work)
    card, problem = _card(request)
    if as_json:
        from signoff.cli.telling import request_data
        from signoff.cli.words import as_json as json_line

        click.echo(json_line(request_data(request, card, problem, history)))
        return
    _draw(request, card, problem, history)


def _card(request: ApprovalRequest) -> tuple[Card | None, str]:
    """The card, or why there can be none: then it cannot be approved either."""
    from signoff.core.card import card_for
    from signoff.core.visible import visible
    from signoff.errors import CannotCanonicalise

    try:
        return card_for(request), ""
    except CannotCanonicalise as error:
        return None, f"this call cannot be shown, so it cannot be approved: {visible(str(error))}"


def _draw(request: ApprovalRequest, card: Card | None, problem: str, history: Sequence[Entry]) -> None:
    from rich.console import Console

    from signoff.channels.keyboard import Keyboard
    from signoff.channels.render import draw_card
    from signoff.channels.screen import Screen
    from signoff.cli.telling import choices, history_facts, offer_facts, outcome_facts, standing

    screen = Screen(Console(file=sys.stdout, markup=False, emoji=False, highlight=False), Keyboard())
    if card is not None:
        screen.show(draw_card(card, screen.look, whole=True).lines)
    else:
        screen.say(problem, "bold red")
    _frame(screen, standing(request), outcome_facts(request))
    _frame(screen, "history", history_facts(history))
    _frame(screen, "what an answer may be remembered as (approve --remember N)", offer_facts(request))
    for line in choices(request):
        screen.say(line)


def _frame(screen: Screen, title: str, facts: Iterable[tuple[str, str]]) -> None:
    from signoff.channels.render import draw_facts

    named: list[tuple[str, str]] = list(facts)
    if named:
        screen.show(draw_facts(named, screen.look, title).lines)
