"""What a page shows of one request: the card, and what people did with it. Every text in it is safe to show."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from signoff.core.access import Permission
from signoff.core.card import APPROVING, Card, CardArg, Choice
from signoff.core.comment import Comment, unanswered
from signoff.core.lifecycle import OPEN
from signoff.core.people import person_key
from signoff.core.redact import redact
from signoff.core.request import ApprovalRequest, State
from signoff.core.safe import kept_text, safe_text
from signoff.core.visible import is_clean, visible
from signoff.server.edit_form import MASK, FormField, form_fields
from signoff.server.request_models import RequestView, card_of, view_of
from signoff.server.text_marks import DiffLine, Piece, argument_pieces, diff_lines, marked

if TYPE_CHECKING:
    from signoff.server.identity import Identity
    from signoff.server.state import ServerState

RUNNING = frozenset({State.APPROVED, State.CLAIMED})
"""It was approved, and what comes of it is not known yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownArg:
    """One argument, in pieces."""

    name: str
    pieces: Sequence[Piece]
    long: bool
    masked: bool
    size: int
    """Characters."""
    reasons: tuple[str, ...]
    """Why parts of it stand out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownComment:
    """One line of the thread."""

    id: str
    by: str
    via: str
    at: datetime
    kind: str
    pieces: Sequence[Piece]
    answers: str
    is_open: bool
    """A question that nobody answered yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPage:
    """One request, for the template."""

    id: str
    view: RequestView
    card: Card | None
    title: str
    args: tuple[ShownArg, ...]
    details: tuple[ShownArg, ...]
    diff: tuple[DiffLine, ...]
    preview: Sequence[Piece]
    """What the tool shows beforehand, where that is no diff."""
    comments: tuple[ShownComment, ...]
    form: tuple[FormField, ...]
    editable_json: str
    """The arguments as an editor begins with them, secrets masked."""
    people: tuple[str, ...]
    """Whom it can be handed to."""
    locks: tuple[str, ...]
    """Why it cannot be approved, a word each: `unread` goes away by reading, the others do not."""
    denying_locks: tuple[str, ...]
    is_open: bool
    is_unknown: bool
    is_running: bool
    mine: bool
    """Whether whoever looks has claimed it."""
    missing: int
    """How many more people have to approve, besides whoever looks."""
    can_edit: bool
    can_remember: bool
    result: Sequence[Piece]
    error: Sequence[Piece]
    rule_first: str
    has_read: bool

    @property
    def only_call(self) -> bool:
        """Whether the title says no more than the arguments do."""
        return self.card is not None and self.is_open and self.title.startswith(f"{self.card.tool}(")


async def card_page(state: ServerState, identity: Identity, request_id: str) -> CardPage:
    """Everything about one request, as it stands now. Raises `UnknownRequest`."""
    broker, actor = state.broker, identity.actor
    request = await broker.find(request_id)
    comments = await broker.comments.of(request.id)
    has_read = await state.inbox.has_opened(request.id, actor)
    entitled = bool(await state.inbox.entitled(request.id, [actor])) if request.state in OPEN else False
    return await asyncio.to_thread(  # a large call keeps nobody else waiting
        made_page,
        request,
        comments,
        identity,
        has_read=has_read,
        is_entitled=entitled,
        remembers=broker.remembers,
        people=tuple(sorted(visible(one) for one in state.people())),
    )


def made_page(
    request: ApprovalRequest,
    comments: Sequence[Comment],
    identity: Identity,
    *,
    has_read: bool,
    is_entitled: bool,
    remembers: bool,
    people: tuple[str, ...] = (),
) -> CardPage:
    """The page of a request that was read."""
    viewer = identity.actor
    view = view_of(request, viewer.name)
    card, _ = card_of(request, viewer.name)
    args = tuple(_shown(one, request.effective_args) for one in card.args) if card is not None else ()
    details = tuple(_shown(one, {}) for one in card.details) if card is not None else ()
    preview = card.preview if card is not None else None
    choices = frozenset(card.choices) if card is not None else frozenset[Choice]()
    permitted = Permission.ANSWER in identity.permissions
    mine = bool(request.assigned) and person_key(request.assigned) == viewer.key
    locks, denying = _locks(
        permitted=permitted,
        entitled=is_entitled,
        taken=bool(request.assigned) and not mine,
        showable=bool(choices & APPROVING),
        read=has_read or not any(one.long for one in (*args, *details)),
    )
    editable: Mapping[str, Any] = {} if card is None else redact(request.args, secrets=request.secrets).args
    is_open = request.state is State.PENDING
    can_edit = is_open and Choice.EDIT in choices
    may_keep = bool(choices & {Choice.SESSION, Choice.ALWAYS, Choice.WIDER})
    return CardPage(
        id=request.id,
        view=view,
        card=card,
        title=card.title if card is not None else kept_text(request.title),
        args=args,
        details=details,
        diff=tuple(diff_lines(preview.text)) if preview is not None and preview.kind == "diff" else (),
        preview=marked(preview.text) if preview is not None and preview.kind == "text" else (),
        comments=tuple(_comments(comments, request.secrets)),
        form=form_fields(request.schema, editable) if can_edit else (),
        editable_json=_raw(editable) if can_edit else "",
        people=people,
        locks=locks,
        denying_locks=denying,
        is_open=is_open,
        is_unknown=request.state is State.UNKNOWN,
        is_running=request.state in RUNNING,
        mine=mine,
        missing=max(0, request.requirement.quorum - view.agreed - 1),
        can_edit=can_edit,
        can_remember=is_open and remembers and may_keep and not request.requirement.irreversible,
        result=marked(view.result) if view.result else (),
        error=marked(view.error) if view.error else (),
        rule_first=card.rule.partition(", ")[0] if card is not None else "",
        has_read=has_read,
    )


def _raw(args: Mapping[str, Any]) -> str:
    """The arguments as JSON, with escapes where an input would not show what is in them."""
    text = json.dumps(args, ensure_ascii=False, indent=2, default=str)
    return text if is_clean(MASK.sub("", text), lines=True) else json.dumps(args, indent=2, default=str)


def _locks(
    *, permitted: bool, entitled: bool, taken: bool, showable: bool, read: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Why it cannot be approved, and why not denied either."""
    both = (
        *(() if permitted else ("permission",)),
        *(() if entitled or not permitted else ("entitled",)),
        *(("taken",) if taken else ()),
    )
    return (*both, *(() if showable else ("unshowable",)), *(() if read else ("unread",))), both


def _shown(arg: CardArg, args: Mapping[str, Any]) -> ShownArg:
    pieces = argument_pieces(arg, args)
    return ShownArg(
        name=arg.name,
        pieces=pieces,
        long=arg.long,
        masked=arg.masked,
        size=len(arg.text),
        reasons=tuple(dict.fromkeys(one.why for one in pieces if one.why)),
    )


def _comments(comments: Sequence[Comment], secrets: Sequence[str]) -> list[ShownComment]:
    waiting = {one.id for one in unanswered(comments)}
    return [
        ShownComment(
            id=one.id,
            by=visible(str(one.by)),
            via=visible(one.by.via),
            at=one.at,
            kind=str(one.kind),
            pieces=marked(safe_text(one.text, secrets=secrets, lines="\n" in one.text)),
            answers=one.answers,
            is_open=one.id in waiting,
        )
        for one in comments
    ]
