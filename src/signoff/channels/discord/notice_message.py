"""The Discord message for a notice: the card that every channel draws, within Discord's limits.

A call that is too long is shown in part and says so, and each person must open all of it before they can approve. Text
from a call is always inside code; all text outside of code is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from signoff.channels.discord.custom_id import Press, Verb
from signoff.channels.discord.message_text import first, short_span
from signoff.channels.discord.parts import MessagePart, lay_out
from signoff.channels.discord.result_message import said_sheet
from signoff.channels.discord.sheet import DESCRIPTION, FOOTER, Button, MessageSheet, Style, size
from signoff.channels.discord.status_parts import AMBER, GREY, face_of, in_a_word, said, settled, voted_for, waiting
from signoff.core.call import Veiled
from signoff.core.canonical import digest
from signoff.core.card import IRREVERSIBLE, Card, Choice, card_for, safe_summary
from signoff.core.lifecycle import OPEN
from signoff.core.notice import Asked, Notice, Together
from signoff.core.preview import Preview
from signoff.core.remembering import may_be_remembered
from signoff.core.request import ApprovalRequest, State
from signoff.core.safe_text import safe_text
from signoff.core.visible_text import visible
from signoff.errors import CannotCanonicalise

FOR_ANSWERS = 1_000
"""Characters reserved for what changes while a call is pending: whether it is shown whole must not depend on that."""
_FOR_NOTICE = 220
_LONGEST_TOOL = 120
_MOST_LINES = 20
"""Maximum calls listed in one message."""
_LONGEST_LINE = 150
_LONGEST_COMMAND = 60
LOOSENED = "⚠️ **Loosened:**"
"""The heading of what was loosened for a run. No other line begins like this."""
LOOSENED_RUN = "⚠️ **loosened**"
"""In a line about one call; its message has the details."""
_NO_DIGEST = "0" * 12


def sheet_for(notice: Notice) -> MessageSheet:
    """Return the message for a notice in its current state."""
    match notice:
        case Asked():
            return _asked(notice)
        case Together():
            return _together(notice.requests)
        case _:
            return said_sheet(notice)


def shows_whole(request: ApprovalRequest) -> bool:
    """Whether the message shows everything. If not, approving is locked for each person until they have opened it."""
    card = _card(request)
    return card is not None and _fits(request, card)


def digest_of_all(requests: Sequence[ApprovalRequest]) -> str:
    """Return a digest of several calls and their arguments, in order, for a custom id."""
    return digest([[request.id, digest_of(request)] for request in requests])[: len(_NO_DIGEST)]


def digest_of(request: ApprovalRequest) -> str:
    """Return the digest of the arguments that would run; zeros if there is none, so that they cannot be approved."""
    try:
        return request.args_digest
    except CannotCanonicalise:
        return _NO_DIGEST


def parts_of(card: Card) -> Iterator[MessagePart]:
    """Yield everything a card says about the call that does not change while it is pending."""
    yield from _facts(*((LOOSENED, text) for text in card.loosened))
    if not card.title.startswith(f"{card.tool}("):  # otherwise the title only repeats the arguments
        yield MessagePart(text=card.title)
    yield MessagePart(label="**By**", text=card.chain)
    yield from _facts(
        ("**From**", card.toolset), ("**Why**", card.why), ("**Rule**", card.rule), ("**Note**", card.note)
    )
    yield from _facts(("**Earlier**", card.answers))
    careful = IRREVERSIBLE if card.irreversible else ""
    yield from _facts(("**Message**", card.message), ("**Careful:**", careful), ("**Asked again:**", card.changed))
    yield from _facts(*(("**Not evaluated:**", error) for error in card.errors))
    yield from _facts(*(("**Look twice:**", warning) for warning in card.warnings))
    count = len(card.args)
    yield MessagePart(
        label=f"**{count:,} arguments**" if count > 1 else "**Argument**" if count else "**No arguments**"
    )
    for arg in card.args:
        yield MessagePart(name=arg.name, label="**(no name)**", text=arg.text)
    if card.details:
        yield MessagePart(label="**What the tool says**")
    for detail in card.details:
        yield MessagePart(name=detail.name, label="**(no name)**", text=detail.text)
    if card.preview is not None:
        yield _preview(card.preview)
    yield from _facts(("**Session**", card.session), ("**Task**", card.task), ("**The model says**", card.claim))
    yield from _facts(*(("**Before**", past) for past in card.recent))
    yield from _facts(*(("**Masked:**", text) for text in card.masked))


def asked_text(request: ApprovalRequest, *, hint: str) -> tuple[str, int]:
    """Return the text about one call and the number of characters left out; if there are any, it ends with `hint`."""
    return _text(request, _card(request), hint)


def _text(request: ApprovalRequest, card: Card | None, hint: str) -> tuple[str, int]:
    if card is None:
        cannot = MessagePart(label="**This call cannot be shown, so it cannot be approved here.**")
        return lay_out([*settled(request), cannot], DESCRIPTION)
    parts = [*parts_of(card), *voted_for(request)]
    if request.state is State.PENDING:
        answers, room = list(waiting(request, card)), FOR_ANSWERS
    else:
        answers = [*settled(request), *(said(card) if request.state is State.UNKNOWN else ())]
        room = max(FOR_ANSWERS, DESCRIPTION - 1 - _size_of(parts))
    told, _ = lay_out(answers, room)
    left = DESCRIPTION - size(told) - 1
    # While it is pending, the room for answers stays reserved: what is shown whole stays whole, unless somebody votes
    # for other arguments, which must be shown too.
    is_whole = _fits(request, card) if request.state is State.PENDING else _size_of(parts) <= left
    body, missing = lay_out(parts, left if is_whole else min(left, DESCRIPTION - FOR_ANSWERS - 1) - _FOR_NOTICE)
    above, below = (body, told) if request.state is State.PENDING else (told, body)
    text = "\n".join(part for part in (above, below) if part)
    return (text, 0) if is_whole else (f"{text}\n{_left_out(max(1, missing), hint)}", max(1, missing))


def title_of(request: ApprovalRequest) -> str:
    """Return the title of a message about one call."""
    face = face_of(request)
    return f"{face.before}{short_span(safe_text(request.tool_name), _LONGEST_TOOL)}{face.after}"


def footer_of(request: ApprovalRequest) -> str:
    """Return the request id and the digest of what would run. Discord interprets nothing in a footer."""
    return first(f"request {visible(request.id or request.tool_call_id)} · sha256 {digest_of(request)[:12]}", FOOTER)


def _asked(asked: Asked) -> MessageSheet:
    request = asked.request
    card = _card(request)
    text, missing = _text(request, card, _where_whole(request))
    return MessageSheet(
        title=title_of(request) + (f" ({asked.number} of {asked.of})" if asked.of > 1 else ""),
        text=text,
        footer=footer_of(request),
        colour=face_of(request).colour,
        keeps_content=True,
        rows=tuple(_rows(request, card, is_whole=not missing)),
    )


def _where_whole(request: ApprovalRequest) -> str:
    """Say how to see all of a call that does not fit."""
    if request.state is State.PENDING:
        return "Open it with *Show whole* first: you cannot approve it before."
    if request.state is State.UNKNOWN:
        return "*Show whole* has everything."
    return f"{short_span(f'/signoff show {visible(request.id)}', _LONGEST_COMMAND)} has everything."


def _rows(request: ApprovalRequest, card: Card | None, *, is_whole: bool) -> Iterator[tuple[Button, ...]]:
    if request.state is State.UNKNOWN:
        yield (
            _button(request, Verb.HAPPENED, "It happened", "success"),
            _button(request, Verb.NOT_HAPPENED, "It did not happen", "danger"),
        )
    if request.state is State.PENDING:
        yield tuple(_answers(request, card, is_whole=is_whole))
    if request.state in OPEN and not is_whole:
        yield (_button(request, Verb.WHOLE, "Show whole", "primary"),)


def _answers(request: ApprovalRequest, card: Card | None, *, is_whole: bool) -> Iterator[Button]:
    choices = set(card.choices) if card is not None else {Choice.DENY, Choice.DENY_NOTE}
    if Choice.APPROVE in choices and is_whole:
        yield _button(request, Verb.APPROVE, "Approve", "success")
    elif Choice.APPROVE in choices:
        yield _button(request, Verb.APPROVE, "Approve: open it first")
    yield _button(request, Verb.DENY, "Deny", "danger")
    yield _button(request, Verb.DENY_NOTE, "Deny with reason…")
    if Choice.EDIT in choices and may_be_edited(request):
        yield _button(request, Verb.EDIT, "Edit…")
    if choices & {Choice.SESSION, Choice.ALWAYS} and may_be_remembered(request):
        yield _button(request, Verb.REMEMBER, "Remember…")


def may_be_edited(request: ApprovalRequest) -> bool:
    """Whether edits can be checked: the tool's schema is stored, and no argument is a secret only the agent has."""
    return request.schema is not None and not any(isinstance(value, Veiled) for value in request.args.values())


def _button(request: ApprovalRequest, verb: Verb, label: str, style: Style = "secondary") -> Button:
    return Button(label=label, style=style, id=Press(verb=verb, request=request.id, digest=digest_of(request)).id)


def _together(requests: Sequence[ApprovalRequest]) -> MessageSheet:
    pending = [request for request in requests if request.state is State.PENDING]
    # Only the pending ones: if one is answered in between, the press is about something else.
    all_of_them = digest_of_all(pending or requests)
    too_many = len(requests) > _MOST_LINES
    cards = [] if too_many else [_card(request) for request in pending]
    is_open = [card is not None and _fits(one, card) for one, card in zip(pending, cards, strict=False)]
    closed = is_open.count(False)
    # What has to be opened is read there; all else goes by its line here.
    is_cut = any(fits and _is_cut(one) for one, fits in zip(pending, is_open, strict=False))
    loosened = dict.fromkeys(visible(text) for request in requests for text in request.context.loosened.texts)
    parts = [*_facts(*((LOOSENED, text) for text in loosened)), *_lines(requests)]
    text, _ = lay_out([*parts, *_hints(bool(pending) and too_many, is_cut, closed)], DESCRIPTION)
    may_approve = not (too_many or is_cut) and all(
        card is not None and Choice.APPROVE in card.choices for card in cards
    )

    def button(verb: Verb, label: str, style: Style) -> Button:
        return Button(label=label, style=style, id=Press(verb=verb, request=requests[0].id, digest=all_of_them).id)

    buttons = [button(Verb.ALL_DENY, "Deny all", "danger")]
    if may_approve and closed:
        buttons.insert(0, button(Verb.ALL_APPROVE, f"Approve all: open {closed:,} first", "secondary"))
    elif may_approve:
        buttons.insert(0, button(Verb.ALL_APPROVE, "Approve all", "success"))
    return MessageSheet(
        title=_how_many(len(requests), len(pending)),
        text=text,
        footer=f"sha256 {all_of_them}",
        colour=AMBER if pending else GREY,
        rows=(tuple(buttons),) if pending else (),
    )


def _how_many(count: int, pending: int) -> str:
    if not pending:
        return f"All {count:,} calls are answered"
    return f"{f'{pending:,} of ' if pending < count else ''}{count:,} calls wait for an answer"


def _lines(requests: Sequence[ApprovalRequest]) -> Iterator[MessagePart]:
    for number, request in enumerate(requests[:_MOST_LINES], 1):
        again = " (asked again)" if request.changed else ""
        yield MessagePart(label=f"**{number}** {summary_span(request, _LONGEST_LINE)} {in_a_word(request)}{again}")
    if len(requests) > _MOST_LINES:
        yield MessagePart(label=f"… and {len(requests) - _MOST_LINES:,} more")


def _is_cut(request: ApprovalRequest) -> bool:
    """Whether the line about a call leaves its end out, where the worst of it may stand."""
    line = summary_span(request, DESCRIPTION)
    return line.rstrip("`").endswith("…") or summary_span(request, _LONGEST_LINE) != line


def _hints(too_many: bool, is_cut: bool, closed: int) -> Iterator[MessagePart]:
    """Say why they cannot all be approved with one press."""
    if is_cut:
        yield MessagePart(label="Not all of them fit into a line, so approve them one by one, where each stands whole.")
    elif too_many:
        yield MessagePart(label="There are too many to list, so approve them one by one.")
    elif closed:
        yield MessagePart(label=f"**{closed:,}** of them have to be opened first, with *Show whole*.")


def summary_span(request: ApprovalRequest, room: int) -> str:
    """Return one line about a call."""
    try:
        title = safe_summary(request)
    except CannotCanonicalise:
        title = safe_text(request.tool_name)
    return short_span(title, room)


def _card(request: ApprovalRequest) -> Card | None:
    """Return the card; None if the call cannot be shown."""
    try:
        return card_for(request)
    except CannotCanonicalise:
        return None


def _fits(request: ApprovalRequest, card: Card) -> bool:
    return _size_of((*parts_of(card), *voted_for(request))) <= DESCRIPTION - FOR_ANSWERS - 1


def _size_of(parts: Iterable[MessagePart]) -> int:
    return sum(part.size + 1 for part in parts)


def _left_out(missing: int, hint: str) -> str:
    return f"**Not all of it fits here: {missing:,} characters are left out.** {hint}".rstrip()


def _facts(*facts: tuple[str, str]) -> Iterator[MessagePart]:
    return (MessagePart(label=label, text=text) for label, text in facts if text)


def _preview(preview: Preview) -> MessagePart:
    if preview.kind == "text":
        return MessagePart(label="**What it would do**", text=preview.text)
    if not preview.text:
        return MessagePart(label="**Nothing would change**")
    return MessagePart(
        label=f"**What would change:** +{preview.added:,} -{preview.removed:,}", text=preview.text, language="diff"
    )
