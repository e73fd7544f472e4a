"""The inbox as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from signoff.cli.terminal_text import by_wall_clock, clip, count, fold, pad, safe
from signoff.core.moment import ago, ahead
from signoff.core.request import State
from signoff.core.visible_text import quoted
from signoff.views.inbox_view import OUTCOMES, DeliveryView, InboxFilter, RequestPage, RequestRow

_INDENT = " " * 12
CHOSEN = "> "
"""How the line of the chosen request begins. Then the others are indented as far."""


def trouble(delivery: DeliveryView, at: datetime) -> str:
    """What is wrong with a delivery, in words; empty if nothing is."""
    name, problem = safe(delivery.channel), safe(delivery.problem)
    if not problem:
        return ""
    since = f" since {clock(delivery.since, at)}" if delivery.since is not None else ""
    soon = f"; next try {clock(delivery.next_at, at)}" if delivery.next_at is not None else ""
    return f"{name}: fails{since} ({problem}){soon}"


def clock(moment: datetime, at: datetime) -> str:
    """A moment in local time, with the zone; with the date if it is not today."""
    here, today = moment.astimezone(), at.astimezone()
    return f"{here:%H:%M %Z}" if here.date() == today.date() else f"{here:%Y-%m-%d %H:%M %Z}"


def lines(
    page: RequestPage, at: datetime, width: int, *, of: InboxFilter | None = None, chosen: str = ""
) -> Iterator[str]:
    """The inbox page for people; `chosen` is the id of the request that is marked."""
    if page.halted:
        for line in fold(f"Nothing new runs: {safe(by_wall_clock(page.halted))}", width):
            yield click.style(line, fg="red", bold=True)
        yield ""
    mine, text = (of.me is not None, of.chosen.text) if of is not None else (False, "")
    if not page.requests:
        yield f"No pending requests{' for you' if mine else ''}{f' with {quoted(safe(text))}' if text else ''}."
        return
    who = ("you" if mine else "a person") + (f", with {quoted(safe(text))}" if text else "")
    number = len(page.requests)
    if page.next is not None:
        yield click.style(
            f"The oldest {'request' if number == 1 else f'{number:,} requests'} for {who}; --limit shows more",
            bold=True,
        )
    else:
        yield click.style(f"{count(number, 'request waits', 'requests wait')} for {who}", bold=True)
    ages = [ago(item.opened_at, at) for item in page.requests]
    column = max(map(len, ages))
    for item, age in zip(page.requests, ages, strict=True):
        yield ""
        mark = (CHOSEN if item.id == chosen else " " * len(CHOSEN)) if chosen else ""
        for index, line in enumerate(_item_lines(item, pad(age, column), at, width - len(mark))):
            yield f"{mark if not index else ' ' * len(mark)}{line}"
        for one in item.deliveries:
            if told := trouble(one, at):
                for line in fold(" " * len(mark) + _INDENT + told, width, " " * len(mark) + _INDENT):
                    yield click.style(line, fg="yellow")


def _item_lines(item: RequestRow, age: str, at: datetime, width: int) -> Iterator[str]:
    is_unknown = item.state is State.UNKNOWN
    head = f"{safe(item.id)}  {age}  "
    title = clip(safe(item.title), max(20, width - len(head)))
    yield click.style(safe(item.id), fg="cyan") + head[len(safe(item.id)) :] + click.style(title, bold=True)
    if item.damaged:
        for line in fold(_INDENT + safe(item.damaged), width, _INDENT):
            yield click.style(line, fg="red")
        return
    if item.apart:
        yield clip(f"{_INDENT}{safe(item.apart)}", width)
    if item.run:
        yield clip(f"{_INDENT}run {safe(item.run)}" + (f": {item.task}" if item.task else ""), width)
    elif item.session:
        yield clip(f"{_INDENT}session {item.session}" + (f": {item.task}" if item.task else ""), width)
    yield from loosened_lines(item.loosened, width, _INDENT)
    if not is_unknown:
        for line in fold(_INDENT + " · ".join(_facts(item, at)), width, _INDENT):
            yield click.style(line, dim=True)
        return
    for line in fold(
        f"{_INDENT}outcome unknown: its process died or stopped responding. What happened?", width, _INDENT
    ):
        yield click.style(line, fg="yellow")
    for word in item.answers:
        command = f"{_INDENT}  signoff outcome {safe(item.id)} {word:9}"
        yield from fold(f"{command}  {OUTCOMES.get(word, '')}", width, _INDENT + " " * 6)


def loosened_lines(texts: Sequence[str], width: int, indent: str) -> Iterator[str]:
    """How a run was loosened: a line that stands out, wrapped rather than cut."""
    for text in texts:
        for line in fold(f"{indent}LOOSENED: {text}", width, indent):
            yield click.style(line, fg="yellow", bold=True)


def _facts(item: RequestRow, at: datetime) -> Iterator[str]:
    chain = " > ".join(filter(None, (item.worker, item.tool)))
    if item.worker or not item.title.startswith(item.tool):
        yield safe(chain)
    yield f"needs {item.needs}" if item.needs else "asks anyone"
    if item.deadline is not None:
        yield f"{item.then} {ahead(item.deadline, at)}"
    if item.questions:
        yield f"{count(item.questions, 'question')} not answered"
    if item.assigned:
        yield f"{safe(item.assigned)} has it"
