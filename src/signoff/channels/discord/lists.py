"""Private replies to `/signoff pending`, `history` and `show`, without buttons."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from signoff.channels.discord.message_text import moment, short_span
from signoff.channels.discord.notice_message import LOOSENED_RUN, asked_text, footer_of, summary_span, title_of
from signoff.channels.discord.parts import MessagePart, lay_out
from signoff.channels.discord.request_file import whole
from signoff.channels.discord.sheet import DESCRIPTION, MessageSheet
from signoff.channels.discord.status_parts import AMBER, FACES, GREY, in_a_word
from signoff.core.request import ApprovalRequest
from signoff.core.visible_text import visible
from signoff.errors import WrongUse

_MOST = 15
_LONGEST_LINE = 80
_LINK = re.compile(r"https://[\w.-]{1,100}(?::\d{1,5})?/[\w/.-]{1,120}")


def pending_sheet(requests: Sequence[ApprovalRequest], links: Mapping[str, str]) -> MessageSheet:
    """Return the list of pending requests; `links` leads to each message, by request id."""
    if not requests:
        return MessageSheet(content="No pending requests.")

    def line(request: ApprovalRequest) -> str:
        link = links.get(request.id, "")
        where = f", [open it]({link})" if _LINK.fullmatch(link) else ""
        asked = f", asked {moment(request.opened_at, 'R')}" if request.opened_at is not None else ""
        ends = f", until {moment(request.deadline, 'T')}" if request.deadline is not None else ""
        loosened = f", {LOOSENED_RUN}" if request.context.loosened else ""
        return f"{_line(request)} {in_a_word(request)}{loosened}{asked}{ends}{where}"

    calls = "call waits" if len(requests) == 1 else "calls wait"
    return _listed(f"{len(requests):,} {calls} for an answer", requests, line, AMBER)


def history_sheet(requests: Sequence[ApprovalRequest]) -> MessageSheet:
    """Return the list of the latest decisions."""
    if not requests:
        return MessageSheet(content="No decisions yet.")

    def line(request: ApprovalRequest) -> str:
        decision = request.decision
        at = f", {moment(decision.at, 'R')}" if decision is not None and decision.at is not None else ""
        return f"{_line(request)} {in_a_word(request)}{at}"

    return _listed("What was decided last", requests, line, GREY)


def show_sheet(request: ApprovalRequest) -> MessageSheet:
    """Return one request in full, with a file if it does not fit."""
    text, missing = asked_text(request, hint="The file has everything.")
    try:
        paper = whole(request) if missing else None
    except WrongUse:
        paper = None
        text = text.replace("The file has everything.", "It is also too large for a file.")
    return MessageSheet(
        title=title_of(request),
        text=text,
        footer=footer_of(request),
        colour=FACES[request.state].colour,
        paper=paper,
    )


def _listed(
    title: str, requests: Sequence[ApprovalRequest], line: Callable[[ApprovalRequest], str], colour: int
) -> MessageSheet:
    parts = [MessagePart(label=line(request)) for request in requests[:_MOST]]
    if len(requests) > _MOST:
        parts.append(MessagePart(label=f"… and {len(requests) - _MOST:,} more"))
    text, _ = lay_out(parts, DESCRIPTION)
    return MessageSheet(title=title, text=text, colour=colour)


def _line(request: ApprovalRequest) -> str:
    return f"{short_span(visible(request.id), 20)} {summary_span(request, _LONGEST_LINE)}"
