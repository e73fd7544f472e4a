"""`signoff policy add`: make a rule from a request's call, and write it to signoff.yaml after confirmation."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from signoff.cli import id_completion, shared_options
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import fold, safe
from signoff.core.exit_codes import FAILED
from signoff.core.request import ApprovalRequest, State
from signoff.core.safe_text import safe_text
from signoff.core.verdict import Effect
from signoff.errors import WrongUse

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.wiring.make_rule import RuleOffer, RuleOffers

WIDTH = 100


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="REQUEST", shell_complete=id_completion.waiting)
@click.option("--allow", "effect", flag_value="allow", default=True, help="The rule lets such calls run. The default.")
@click.option("--deny", "effect", flag_value="deny", help="The rule refuses such calls.")
@click.option("--ask", "effect", flag_value="ask", help="The rule asks about such calls.")
@click.option("--rule", "which", metavar="N", help="Which of the offered rules, by number or name.")
@click.option("--reason", default="", metavar="TEXT", help="The reason, written into the rule.")
@click.option("--yes", is_flag=True, help="Write it without asking for confirmation; without --rule, the narrowest.")
@shared_options.as_json
@shared_options.where
def add(
    request_id: str,
    effect: str,
    which: str | None,
    reason: str,
    yes: bool,
    as_json: bool,
    store: str | None,
    policy: str | None,
) -> None:
    """Make a rule from the call of REQUEST, and write it to signoff.yaml. REQUEST may be a prefix of its ID.

    Rules are offered narrowest first, each with a description and its exact lines, with this call as an example. The
    change is shown as a diff and written after you confirm; comments and layout are kept. Without a terminal and
    without --yes, it is only shown. The request itself does not change.

    \b
    Examples:
      signoff policy add k3f9
      signoff policy add k3f9 --deny --rule tool --reason "not from here"
      signoff policy add k3f9 --rule 1 --yes

    Exit code 1 if no rule can be made, or if the answer is no.
    """
    from signoff.cli.open_broker import with_broker
    from signoff.wiring.make_rule import rule_offers, write_rule

    async def work(broker: Broker, settings: Settings) -> tuple[Settings, RuleOffers]:
        request = await broker.find(request_id)
        return settings, await rule_offers(broker, settings, request, Effect(effect), reason=reason)

    if reason and not reason.strip():
        raise WrongUse("--reason is empty")
    settings, found = with_broker(store, policy, work)
    is_asked = not yes and not as_json and sys.stdin.isatty() and sys.stdout.isatty()
    chosen = _chosen(found, which) if found.offered else None
    if not as_json:
        _list(found, alone=chosen if which is not None else None)
        if found.offered and is_asked and which is None:
            chosen = _ask_which(found)
        if chosen is not None:
            _show(found, chosen)
    is_written = chosen is not None and (yes or (is_asked and _is_meant(found.file)))
    if chosen is not None and is_written:
        write_rule(settings, chosen)
        with_broker(store, policy, partial(_record, found=found, rule=chosen, file=os.path.abspath(found.file)))
    if as_json:
        click.echo(json_line(_data(found, chosen, is_written)))
    else:
        for line in _told(found, chosen, is_written, is_asked):
            click.echo(line, err=not is_written)
    if not found.offered or (is_asked and not is_written):
        sys.exit(FAILED)


async def _record(broker: Broker, settings: Settings, *, found: RuleOffers, rule: RuleOffer, file: str) -> None:
    from signoff.cli.approval_desk import VIA
    from signoff.wiring.make_rule import record_rule

    text = _safe(found, rule.proposal.text)
    await record_rule(broker, settings, found.request, text, rule.digest, file=file, via=VIA)


def _chosen(found: RuleOffers, which: str | None) -> RuleOffer:
    """The rule that was named, else the narrowest."""
    if which is None:
        return found.offered[0]
    if which.isdecimal() and 1 <= int(which) <= len(found.offered):
        return found.offered[int(which) - 1]
    for offer in found.offered:
        if offer.proposal.name == which:
            return offer
    there = ", ".join(f"{number} ({_safe(found, one.proposal.name)})" for number, one in enumerate(found.offered, 1))
    raise WrongUse(f"request {found.request.id} offers no --rule {_safe(found, which)}; it offers {there}")


def _safe(found: RuleOffers, text: str) -> str:
    return safe_text(text, secrets=found.request.secrets)


def _list(found: RuleOffers, *, alone: RuleOffer | None) -> None:
    """Print the offered rules, each as a sentence and as YAML lines, and why others are not offered."""
    for number, offer in enumerate(found.offered, start=1):
        if alone is not None and offer is not alone:
            continue
        first, *rest = fold(f"{number}. {_safe(found, offer.proposal.text)}", WIDTH, "   ")
        click.secho(first, bold=True)
        for line in rest:
            click.secho(line, bold=True)
        for line in offer.proposal.lines:
            click.echo(f"     {safe(line)}")
        click.echo("")
    for why in found.refused if alone is None else ():
        for line in why.splitlines():
            click.secho(f"{'' if line.startswith(' ') else 'not offered: '}{_safe(found, line)}", dim=True, err=True)


def _ask_which(found: RuleOffers) -> RuleOffer | None:
    """Ask which rule to use; None if the user chose none."""
    count = len(found.offered)
    if count == 1:
        return found.offered[0]
    while True:
        _forget_typed()
        said = click.prompt(
            f"Which one? 1 to {count}, Enter for none", default="", show_default=False, err=True
        ).strip()
        if not said:
            return None
        if said.isdecimal() and 1 <= int(said) <= count:
            return found.offered[int(said) - 1]
        click.echo(f"  type a number from 1 to {count}", err=True)


def _show(found: RuleOffers, offer: RuleOffer) -> None:
    """Print the diff. Secrets in the file's other lines are masked."""
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in offer.diff:
        click.secho(_safe(found, line), fg=colours.get(line[:1]) if not line.startswith(("+++", "---")) else None)
    for problem in offer.warnings:
        click.secho(f"warning: {_safe(found, problem.what)}", fg="yellow")


def _is_meant(file: str) -> bool:
    _forget_typed()
    return click.confirm(f"Write this into {file}?", default=False, err=True)


def _forget_typed() -> None:
    """Discard input that was typed before the question."""
    from termios import TCIFLUSH, tcflush

    tcflush(sys.stdin.fileno(), TCIFLUSH)


def _told(found: RuleOffers, chosen: RuleOffer | None, is_written: bool, is_asked: bool) -> Iterator[str]:
    request = found.request
    if not found.offered:
        yield f"signoff: no rule can be made from request {request.id}; nothing was written"
        return
    if chosen is None or not is_written:
        yield "Nothing was written."
        if not is_asked and chosen is not None:
            number = found.offered.index(chosen) + 1
            yield f"  to write it: signoff policy add {request.id}{_flag(found.effect)} --rule {number} --yes"
        return
    added = chosen.added
    yield f"wrote {added.rule.id} into {found.file}, line {added.rule.place.line}"
    if chosen.moved:
        yield f"  the rules below it moved down by one: {', '.join(chosen.moved)}"
    yield from _what_now(request)


def _flag(effect: Effect) -> str:
    return "" if effect == "allow" else f" --{effect}"


def _what_now(request: ApprovalRequest) -> Iterator[str]:
    if request.state is State.PENDING:
        yield f"Request {request.id} is still pending: answer it with signoff approve {request.id}, or deny."
    yield "Runs that wait in their process keep the rules they started with. New and resumed runs use the changed file;"
    yield "resumed runs ask again about calls that were approved under the old rules and are not allowed by the new."


def _data(found: RuleOffers, chosen: RuleOffer | None, is_written: bool) -> dict[str, Any]:
    return {
        "request": found.request.id,
        "effect": str(found.effect),
        "file": found.file,
        "rules": [
            {
                "number": number,
                "name": one.proposal.name,
                "text": one.proposal.text,
                "lines": list(one.proposal.lines),
                "id": one.added.rule.id,
                "line": one.added.rule.place.line,
                "moved": list(one.moved),
                "warnings": [problem.what for problem in one.warnings],
                "diff": [_safe(found, line) for line in one.diff],
            }
            for number, one in enumerate(found.offered, start=1)
        ],
        "refused": [_safe(found, why) for why in found.refused],
        "chosen": found.offered.index(chosen) + 1 if chosen is not None else None,
        "written": is_written,
    }
