"""The private menu for remembering an approval (grants), and the exact text to confirm.

A choice is a value that fits into a custom id: `OFFER-SCOPE`, or `OFFER-SCOPE-MOMENT` with its expiry in seconds. The
expiry is part of it, so that exactly what was confirmed is remembered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from signoff.channels.discord.custom_id import Press, Verb
from signoff.channels.discord.message_text import first, short_span
from signoff.channels.discord.notice_message import digest_of, footer_of
from signoff.channels.discord.parts import MessagePart, lay_out
from signoff.channels.discord.sheet import DESCRIPTION, OPTION, OPTIONS, Button, Menu, MenuOption, MessageSheet
from signoff.channels.discord.status_parts import AMBER
from signoff.core.decision import ApprovalDecision
from signoff.core.request import ApprovalRequest
from signoff.core.safe_text import safe_text
from signoff.core.terms import Scope, Terms
from signoff.policy.offer import offers

_VALUE = re.compile(r"(?P<offer>[0-9]{1,3})-(?P<scope>[a-z]{3,8})(?:-(?P<until>[0-9]{9,11}))?")
_WHERE = {
    Scope.RUN: "in this run",
    Scope.SESSION: "in this session",
    Scope.WORKER: "for this worker",
    Scope.PROJECT: "anywhere in this project",
}
_LONGEST = timedelta(days=2)
"""How far in the future an expiry may be. Those on the menu are within a day."""


def choices(request: ApprovalRequest, now: datetime | None = None) -> Sequence[tuple[str, ApprovalDecision]]:
    """Return every way to remember an approval that the broker accepts, narrowest first: values and decisions.

    With `now`, also with an expiry in an hour and at the end of the day; amounts are remembered only with an expiry.
    """
    found = ((value, decision_for(request, value, now)) for value in _values(request, now))
    return [(value, decision) for value, decision in found if decision is not None][:OPTIONS]


def decision_for(request: ApprovalRequest, value: str, now: datetime | None = None) -> ApprovalDecision | None:
    """Return the approval that a value stands for, without `by`; None if it is not on offer for this call.

    With `now`, an expiry in the past or too far in the future is not on offer either.
    """
    found, offered = _VALUE.fullmatch(value), offers(request)
    if found is None or int(found["offer"]) >= len(offered) or found["scope"] not in list(Scope):
        return None
    offer, scope = offered[int(found["offer"])], Scope(found["scope"])
    until = datetime.fromtimestamp(int(found["until"]), UTC) if found["until"] else None
    if until is not None and now is not None and not now < until <= now + _LONGEST:
        return None
    if not _has_place(request, scope) or (until is None and offer.amounts):
        return None
    return ApprovalDecision(approved=True, terms=Terms(scope=scope, match=offer.match, until=until))


def remember_sheet(request: ApprovalRequest, texts: Sequence[tuple[str, str]]) -> MessageSheet:
    """Return a private menu of choices. `texts` are their values and exactly what would be remembered."""
    texts = texts[:OPTIONS]
    if not texts:
        return MessageSheet(content="The answer to this call cannot be remembered.")
    parts = [
        MessagePart(label=f"**{number}** {_label(value)}:", text=text) for number, (value, text) in enumerate(texts, 1)
    ]
    listed, _ = lay_out(parts, DESCRIPTION)
    options = (
        MenuOption(label=first(f"{number}: {_label(value)}", OPTION), value=value, description=_clipped(text))
        for number, (value, text) in enumerate(texts, 1)
    )
    menu = Menu(id=_press(request, Verb.REMEMBER), placeholder="Approve, and remember …", options=tuple(options))
    return MessageSheet(
        title="What should be remembered?", text=listed, footer=footer_of(request), colour=AMBER, rows=(menu,)
    )


def confirm_sheet(request: ApprovalRequest, value: str, text: str) -> MessageSheet:
    """Return a private message with exactly what would be remembered, and the button to confirm it."""
    tool = short_span(safe_text(request.tool_name), OPTION)
    whole = MessagePart(label=f"Approve {tool}, and from then on:", text=text).whole
    after = "A rule that denies still denies. `signoff grants` lists it, `signoff grants revoke` revokes it."
    if len(whole) + len(after) + 1 > DESCRIPTION // 2:  # counted twice in the worst case
        return MessageSheet(
            title="This cannot be remembered here",
            text="What would be remembered is too long to be shown. Approve it once, or use `signoff approve`.",
            footer=footer_of(request),
            colour=AMBER,
        )
    yes = Button(label="Approve and remember", style="success", id=_press(request, Verb.REMEMBER_YES, value))
    return MessageSheet(
        title="Confirm?", text=f"{whole}\n{after}", footer=footer_of(request), colour=AMBER, rows=((yes,),)
    )


def _values(request: ApprovalRequest, now: datetime | None) -> Iterator[str]:
    ends = _ends(now) if now is not None else ()
    for number in range(len(offers(request))):
        for scope in (Scope.RUN, Scope.SESSION):
            yield f"{number}-{scope}"
        for until in ends:
            yield f"{number}-{Scope.PROJECT}-{int(until.timestamp())}"
        yield f"{number}-{Scope.PROJECT}"


def _ends(now: datetime) -> tuple[datetime, ...]:
    """Return the expiries: in an hour, to the minute, and the end of the day in UTC, as for budgets and records."""
    utc = now.astimezone(UTC)
    hour = utc.replace(second=0, microsecond=0) + timedelta(hours=1)
    midnight = utc.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return (hour, midnight) if midnight - utc > timedelta(hours=2) else (hour,)


def _has_place(request: ApprovalRequest, scope: Scope) -> bool:
    call = request.call
    where = {
        Scope.RUN: request.run,
        Scope.SESSION: call.conversation_id if call is not None else "",
        Scope.WORKER: "".join(request.worker),
    }
    return bool(where.get(scope, "project"))


def _label(value: str) -> str:
    """Return a choice in a few words of ours."""
    found = _VALUE.fullmatch(value)
    if found is None or found["scope"] not in list(Scope):
        return "as told"
    what = "exactly these arguments" if found["offer"] == "0" else "calls like it"
    end = f", until {datetime.fromtimestamp(int(found['until']), UTC):%H:%M} UTC" if found["until"] else ""
    return f"{what}, {_WHERE[Scope(found['scope'])]}{end}"


def _clipped(text: str) -> str:
    """Truncate to an option's description, where Discord renders no markdown; the whole text is above the menu."""
    line = " ".join(text.split())
    cut = first(line, OPTION)
    return cut if cut == line else f"{first(line, OPTION - 1)}…"


def _press(request: ApprovalRequest, verb: Verb, rest: str = "") -> str:
    return Press(verb=verb, request=request.id, digest=digest_of(request), rest=rest).id
