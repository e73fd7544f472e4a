"""The page of one request: the card, votes and comments. Every text in it is safe to show."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signoff.broker.entitlements import Standing
from signoff.core.access import Permission
from signoff.core.card import APPROVING, Card, CardArg, Choice, answer_tallies, beside_edits, card_for
from signoff.core.decision import ApprovalDecision
from signoff.core.inbox_row import has_approved
from signoff.core.lifecycle import OPEN
from signoff.core.people import person_key
from signoff.core.redact import redact
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_context import MOST_ANSWERS
from signoff.core.safe_text import safe_text
from signoff.core.verdict import OnTimeout
from signoff.core.visible_text import is_clean, visible
from signoff.errors import UnknownRun
from signoff.server.edit_form import MASK, FormField, form_fields
from signoff.server.page_words import times
from signoff.server.text_marks import DiffLine, Piece, argument_pieces, diff_lines, marked
from signoff.views.request_view import RequestView, VoteView

if TYPE_CHECKING:
    from signoff.server.identity import Identity
    from signoff.server.state import ServerState

RUNNING = frozenset({State.APPROVED, State.CLAIMED})
"""Approved, with no outcome yet."""


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
    """Why parts of it are highlighted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownVote:
    """One vote."""

    vote: VoteView
    changes: tuple[ArgChange, ...]
    """What it changes in the arguments on the card."""
    offered: bool
    """Whether the viewer may approve the same edited arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgChange:
    """An argument before and after an edit; None if it is not given."""

    name: str
    before: ShownArg | None
    after: ShownArg | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNeeds:
    """Who must approve."""

    quorum: int
    role: str
    not_by: tuple[str, ...]
    """Who may not: the requester, the owner, or names."""
    veto: str
    """The role that may deny besides them."""
    escalated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAnswers:
    """How calls like this one were answered before."""

    about: str
    """Key of `page_words.EARLIER`."""
    names: str
    approved: int
    denied: int

    @property
    def approved_times(self) -> str:
        return times(self.approved, most=MOST_ANSWERS)

    @property
    def denied_times(self) -> str:
        return times(self.denied, most=MOST_ANSWERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLock:
    """Why an action is disabled."""

    word: str
    """Key of `page_words.LOCKS`, or `voted`; only `unread` is removed by reading."""
    why: str = ""
    """Details, safe to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Onlooking:
    """What a page needs to know besides the request, as of now."""

    standing: Standing
    has_read: bool = False
    remembers: bool = False
    people: tuple[str, ...] = ()
    halted: bool = False
    run_word: str = ""
    """Status of the run that waits for it; empty if there is none."""
    hindrance: str = ""
    """Why that run cannot continue here; not yet safe to show."""
    runs_agents: bool = False
    """Whether agents run here, so that the agent of the call can be asked."""
    shortage: str = ""
    """Why too few people may approve it; not yet safe to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPage:
    """One request, for the template."""

    view: RequestView
    needs: ShownNeeds | None
    """None if anyone may answer."""
    answers: tuple[ShownAnswers, ...]
    args: tuple[ShownArg, ...]
    changes: tuple[ArgChange, ...]
    """What the approved edit changed, if there is one."""
    details: tuple[ShownArg, ...]
    diff: tuple[DiffLine, ...]
    preview: Sequence[Piece]
    """The tool's preview, if it is not a diff."""
    votes: tuple[ShownVote, ...]
    beside_edits: str
    takes_edits: bool
    """Whether the agent can run the call with other arguments; otherwise it is told them."""
    form: tuple[FormField, ...]
    editable_json: str
    """The initial text of the JSON editor, secrets masked."""
    people: tuple[str, ...]
    """Whom it can be assigned to."""
    locks: tuple[CardLock, ...]
    """Why it cannot be approved."""
    approving_locks: tuple[CardLock, ...]
    """Why the viewer's approval would not count, or may not be given."""
    denying_locks: tuple[CardLock, ...]
    shortage: str
    """Why too few people may approve it; empty if there are enough."""
    taking_locks: tuple[CardLock, ...]
    """Why the viewer cannot assign it to themselves."""
    telling_locks: tuple[CardLock, ...]
    """Why the viewer cannot report the outcome of the call."""
    is_open: bool
    is_unknown: bool
    is_running: bool
    is_over: bool
    """Whether the call has run, or may have run."""
    mine: bool
    """Whether it is assigned to the viewer."""
    has_approved: bool
    """Whether the viewer has approved it, and the vote counts."""
    missing: int
    """How many more people have to approve, besides the viewer."""
    stands_for: str
    """Whose deputy the viewer would answer as."""
    then: str
    """What happens at the deadline: key of `page_words.AT_DEADLINE`; empty if there is no deadline."""
    then_role: str
    can_edit: bool
    can_remember: bool
    can_ask_agent: bool
    halted: bool
    run_word: str
    hindrance: str
    result: Sequence[Piece]
    error: Sequence[Piece]
    has_read: bool

    @property
    def card(self) -> Card | None:
        """The card, if the call can be shown."""
        return self.view.card

    @property
    def title(self) -> str:
        """What is asked, on one line."""
        return self.view.card.title if self.view.card is not None else self.view.title

    @property
    def only_call(self) -> bool:
        """Whether the title says no more than the arguments do."""
        return self.card is not None and self.is_open and self.title.startswith(f"{self.card.tool}(")


async def card_page(state: ServerState, identity: Identity, request_id: str) -> CardPage:
    """Build the page of a request as it stands now. Raises `UnknownRequest`."""
    broker, actor = state.broker, identity.actor
    request = await broker.find(request_id)
    shown = await broker.shown(request)
    run_word, hindrance = await _run_of(state, request)
    around = Onlooking(
        has_read=await state.inbox.has_opened(request.id, actor),
        standing=await broker.people.standing(request.id, actor) if request.state in OPEN else Standing(),
        remembers=broker.remembers,
        people=tuple(sorted(visible(one) for one in state.people())),
        halted=bool(await broker.switch.state()),
        shortage=shown.shortage,
        run_word=run_word,
        hindrance=hindrance,
        runs_agents=state.runs is not None,
    )
    # In a thread, because a large call would block the event loop.
    return await asyncio.to_thread(made_page, shown, identity, around)


async def _run_of(state: ServerState, request: ApprovalRequest) -> tuple[str, str]:
    """Return the status of an approved call's run, and why it cannot continue here."""
    if not request.run or request.state not in RUNNING:
        return "", ""
    try:
        status = await state.broker.runs.status(request.run)
    except UnknownRun:
        return "", ""
    if status.word not in ("ready", "died"):
        return status.word, ""
    if state.runs is None:
        return "elsewhere", ""
    return status.word, await state.runs.hindrance(request.run)


def made_page(request: ApprovalRequest, identity: Identity, around: Onlooking) -> CardPage:
    """Build the page of a request that was read from the store."""
    viewer, standing = identity.actor, around.standing
    view = RequestView.of(request, viewer.name)
    card = view.card
    args = tuple(_shown(one, request.effective_args) for one in card.args) if card is not None else ()
    details = tuple(_shown(one, {}) for one in card.details) if card is not None else ()
    preview = card.preview if card is not None else None
    choices = frozenset(card.choices) if card is not None else frozenset[Choice]()
    permitted = Permission.ANSWER in identity.permissions
    mine = bool(request.assigned) and person_key(request.assigned) == viewer.key
    is_open = request.state is State.PENDING
    voted = is_open and card is not None and has_approved(request, viewer.name, request.args_digest)
    common = (
        *(() if permitted else (CardLock(word="permission"),)),
        *((CardLock(word="taken", why=visible(request.assigned)),) if request.assigned and not mine else ()),
    )
    approving, denying = (
        (*common, CardLock(word="entitled", why=safe_text(why, secrets=request.secrets)))
        if why and permitted
        else common
        for why in (standing.approving, standing.denying)
    )
    locks = (
        *approving,
        *((CardLock(word="voted"),) if voted else ()),
        *(() if choices & APPROVING else (CardLock(word="unshowable"),)),
        *((CardLock(word="unread"),) if any(one.long for one in (*args, *details)) and not around.has_read else ()),
    )
    editable: Mapping[str, Any] = {} if card is None else redact(request.args, secrets=request.secrets).args
    can_edit = is_open and Choice.EDIT in choices and not approving
    may_keep = bool(choices & {Choice.SESSION, Choice.ALWAYS, Choice.WIDER})
    then, then_role = _then(request)
    may_approve = is_open and not [one for one in locks if one.word not in ("unread", "voted")]
    return CardPage(
        view=view,
        needs=_needs(request),
        answers=tuple(
            ShownAnswers(
                about=one.about,
                names=safe_text(", ".join(one.names), secrets=request.secrets),
                approved=one.tally.approved,
                denied=one.tally.denied,
            )
            for one in answer_tallies(request)
        ),
        args=args,
        changes=_changes(request, request.decision) if card is not None else (),
        details=details,
        diff=tuple(diff_lines(preview.text)) if preview is not None and preview.kind == "diff" else (),
        preview=marked(preview.text) if preview is not None and preview.kind == "text" else (),
        votes=tuple(_votes(request, view, viewer.name, may_approve=may_approve)) if card is not None else (),
        beside_edits=beside_edits(request),
        takes_edits=request.takes_edits,
        form=form_fields(request.schema, editable) if can_edit else (),
        editable_json=_raw(editable) if can_edit else "",
        people=around.people,
        locks=locks,
        approving_locks=approving,
        denying_locks=denying,
        taking_locks=tuple(one for one in denying if one.word != "taken"),
        telling_locks=tuple(one for one in approving if one.word != "taken"),
        is_open=is_open,
        is_unknown=request.state is State.UNKNOWN,
        is_running=request.state in RUNNING,
        is_over=request.state in (State.SUCCEEDED, State.FAILED, State.UNKNOWN, State.CLAIMED),
        mine=mine,
        has_approved=voted,
        missing=max(0, request.requirement.quorum - view.agreed - (0 if voted else 1)),
        stands_for=visible(standing.stands_for),
        then=then,
        then_role=then_role,
        can_edit=can_edit,
        can_remember=is_open
        and around.remembers
        and may_keep
        and not approving
        and not request.requirement.irreversible,
        can_ask_agent=is_open and bool(request.run) and around.runs_agents,
        halted=around.halted,
        run_word=around.run_word,
        hindrance=safe_text(around.hindrance),
        result=marked(view.result) if view.result and not view.told_by else (),
        error=marked(view.error) if view.error else (),
        has_read=around.has_read,
        shortage=safe_text(around.shortage) if is_open else "",
    )


def _needs(request: ApprovalRequest) -> ShownNeeds | None:
    """Who must approve; None if anyone may answer."""
    needed = request.requirement
    if not needed.is_strict:
        return None
    role, vetoes = needed.role or "", needed.veto or ""
    return ShownNeeds(
        quorum=needed.quorum,
        role=visible(role),
        not_by=tuple(sorted(needed.not_by)),
        veto=visible(vetoes) if role and vetoes != role else "",  # without a role anyone may deny
        escalated=request.escalated,
    )


def _then(request: ApprovalRequest) -> tuple[str, str]:
    """What happens at the deadline, and which role is asked then."""
    requirement = request.requirement
    if request.deadline is None:
        return "", ""
    if requirement.on_timeout is OnTimeout.ALLOW:
        return "allow", ""
    if requirement.on_timeout is OnTimeout.PARK:
        return "park", ""
    if requirement.on_timeout is OnTimeout.ESCALATE and requirement.escalate_to and not request.escalated:
        return "escalate", visible(requirement.escalate_to)
    return "deny", ""


def _changes(request: ApprovalRequest, decision: ApprovalDecision | None) -> tuple[ArgChange, ...]:
    """What a decision changes in the requested arguments, edited arguments first."""
    if decision is None or decision.edited_args is None:
        return ()
    edited = decision.edited_args
    asked, runs = (
        {name: _shown(one, {}) for name, one in zip(args, card.args, strict=True)}
        for args, card in (
            (request.args, card_for(request.changed_to(decision=None))),
            (edited, card_for(request.changed_to(decision=decision))),
        )
    )
    names = [name for name in {**edited, **request.args} if _raw_value(request.args, name) != _raw_value(edited, name)]
    return tuple(ArgChange(name=visible(name), before=asked.get(name), after=runs.get(name)) for name in names)


def _raw_value(args: Mapping[str, Any], name: str) -> str:
    """The value as JSON for comparison: 1 is not true."""
    return json.dumps(args[name], sort_keys=True, default=str) if name in args else ""


def _votes(request: ApprovalRequest, view: RequestView, viewer: str, *, may_approve: bool) -> Iterator[ShownVote]:
    offered: set[str] = set()
    for vote, shown in zip(request.votes, view.votes, strict=True):
        decision, digest = vote.decision, vote.args_digest
        is_new = decision.edited_args is not None and digest not in offered and digest != request.args_digest
        offered.add(digest)
        yield ShownVote(
            vote=shown,
            changes=_changes(request, decision) if request.state is State.PENDING else (),
            offered=may_approve and is_new and not has_approved(request, viewer, digest),
        )


def _raw(args: Mapping[str, Any]) -> str:
    """The arguments as JSON, with escapes if an input would hide characters."""
    text = json.dumps(args, ensure_ascii=False, indent=2, default=str)
    return text if is_clean(MASK.sub("", text), lines=True) else json.dumps(args, indent=2, default=str)


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
