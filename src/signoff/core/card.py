"""The card that every channel draws: one request, as texts that are safe to show.

Every text on a card has been redacted and escaped with `visible`, once. A channel does the layout; it adds and hides
nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, cast

from signoff.core.call import FREE
from signoff.core.comment import unanswered
from signoff.core.decision import Keeps, Remember
from signoff.core.inbox_row import needs_of
from signoff.core.moment import Zone, ahead, in_utc, moment_text
from signoff.core.preview import BASIS, Preview, marked_lines, read_diff, unified_diff
from signoff.core.redact import Redactor, without_half_a_mask
from signoff.core.remembering import may_be_remembered, may_be_widened
from signoff.core.request import CARD, LONG, ApprovalRequest, State, WithEdit
from signoff.core.request_context import MOST_ANSWERS, NO_TALLY, PastCall, Tally, shortened
from signoff.core.request_status import without_answer
from signoff.core.safe_text import safe_text
from signoff.core.summary import own_words, summary_of
from signoff.core.verdict import Verdict
from signoff.core.visible_text import OPEN, quoted, suspicious
from signoff.errors import SignoffError

LONG_TEXT = 600
LONG_LINES = 12
IRREVERSIBLE = "it cannot be undone, as the rule says"
_MOST_WARNINGS = 6
_ONE_LINE = 60
_FAR = timedelta(days=30)
"""A deadline that is further away is shown without the time that is left."""
_DESCRIBE = frozenset("summary reason note path diff before after preview".split())
"""Metadata keys with which a tool describes exactly the call that was asked about."""
_LINES = ("summary", "reason", "path")
"""Metadata keys that the one-line summary of a call is made of."""
DRAFTED = "drafted"
"""Metadata key for the digests of a draft that a tool shows, so that it later writes only what was shown."""
_OURS = frozenset({"signoff", "leads_to", DRAFTED, BASIS})
"""Metadata keys that are for programs."""
_LONGEST_TASK = 200
_LONGEST_CLAIM = 400
_LONGEST_PAST = 50
_LONGEST_COMMENT = 600
_MOST_COMMENTS = 8
"""Only the latest comments are shown; `signoff show` lists all of them."""
_OUTCOMES = {"success": "done", "failed": "failed", "denied": "denied", "retried": "not accepted by the tool"}
_LEFT_OUT = "the arguments were edited; the tool's description of the original call is left out"
_AS_MADE = " (before the edit)"
_CODE = frozenset("command cmd shell argv script code sql query program url host hostname path file tool".split())


_ESCAPED = re.compile(r"\\(?:u(00[01][0-9a-f])|([bfr])|.)")
"""An escape sequence in JSON. The groups match control characters, except line breaks and tabs."""


class Choice(StrEnum):
    """What a person can do with a card."""

    APPROVE = "approve"
    DENY = "deny"
    DENY_NOTE = "deny_note"
    EDIT = "edit"
    SESSION = "session"
    ALWAYS = "always"
    WIDER = "wider"
    """Approve, and remember it for similar calls, too."""
    EVERYTHING = "everything"
    WHY = "why"


APPROVING = frozenset({Choice.APPROVE, Choice.EDIT, Choice.SESSION, Choice.ALWAYS, Choice.WIDER})


@dataclass(frozen=True, slots=True, kw_only=True)
class CardArg:
    """One argument, in full."""

    name: str
    text: str
    """A string as it is, any other value as JSON. Line breaks are kept."""
    masked: bool = False
    """Whether a secret in it is masked."""
    long: bool = False
    """Whether a channel may show it behind a button. A person must open it before they can approve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardComment:
    """A comment on the request."""

    heading: str
    """Who does what: `ana asks back`."""
    text: str
    """In quotes if a model wrote it, because nothing checks it."""
    is_open: bool = False
    """Whether it is a question that nobody has answered yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One request as a person sees it."""

    request_id: str
    title: str
    """One line about the call, as the tool describes it. It may hold arguments: anybody may read only the `chain`."""
    tool: str
    chain: str
    """The workers that led to the call, and the tool: `triage > analyzer > shell`."""
    toolset: str = ""
    loosened: tuple[str, ...] = ()
    """How the run was loosened, one line each. Channels show it before everything else."""
    why: str = ""
    """Why signoff asks, as a sentence."""
    task: str = ""
    """The prompt of the run, and for whom it runs. In quotes if an agent in another program tells it."""
    session: str = ""
    """The session of an agent in another program, and the directory it makes the call in."""
    claim: str = ""
    """What the model said when it made the call. Nothing checks it."""
    recent: tuple[str, ...] = ()
    """The last calls of the run and their outcomes, oldest first."""
    comments: tuple[CardComment, ...] = ()
    """The latest comments, oldest first."""
    left_out: int = 0
    """How many earlier comments are not shown."""
    answers: str = ""
    """How people answered similar calls before, on one line; empty if they never did."""
    note: str = ""
    """What the tool adds about the call, such as how it would run."""
    rule: str = ""
    """Which rules decided."""
    errors: tuple[str, ...] = ()
    """What policy could not evaluate."""
    message: str = ""
    """The rule's message to the person who is asked."""
    needs: str = ""
    """Who must approve; empty if anyone may."""
    until: str = ""
    """The deadline, and what happens on timeout."""
    irreversible: bool = False
    """Whether the rule marks the call as irreversible."""
    args: tuple[CardArg, ...] = ()
    details: tuple[CardArg, ...] = ()
    """The other metadata that the tool gave about the call."""
    masked: tuple[str, ...] = ()
    """What was masked, and why, one sentence each."""
    warnings: tuple[str, ...] = ()
    """What a reader might overlook or misread, such as hidden or look-alike characters."""
    preview: Preview | None = None
    changed: str = ""
    """Why it is asked again, although it was answered before."""
    problem: str = ""
    """Why the last answer was not accepted."""
    choices: tuple[Choice, ...] = ()
    keeps: Keeps = Keeps.ALWAYS
    """The longest that an answer can be remembered."""
    digest: str = ""
    """Digest of the arguments that would run: an approval of this card is valid for these."""

    @property
    def is_long(self) -> bool:
        """Whether part of it may be behind a button, which a person must open before they can approve."""
        return any(one.long for one in (*self.args, *self.details))


def shown_card(request: ApprovalRequest) -> Card:
    """Return the card with default options, cached on the request. Raises as `card_for` does."""
    kept: Card | None = request.__dict__.get(CARD)
    if kept is None:
        kept = request.__dict__[CARD] = card_for(request)
    return kept


def has_long_card(request: ApprovalRequest) -> bool:
    """Whether the card is long. Builds the whole card only if it may be. Raises as `card_for` does."""
    kept: bool | None = request.__dict__.get(LONG)
    if kept is None:
        _ = request.args_digest  # raises if the arguments have no digest
        writer = _Writer(_as_it_runs(request), ())
        may_be = any(one.long for one in (*writer.args(), *writer.details("")))
        kept = request.__dict__[LONG] = may_be and shown_card(request).is_long
    return kept


class AnswerTally(NamedTuple):
    """How people answered similar calls before."""

    about: str
    """`call`: exactly this call; `target`: calls that differ only in `names`; `tool`: all its calls; `never`: none."""
    names: tuple[str, ...]
    tally: Tally


def card_for(
    request: ApprovalRequest,
    *,
    secrets: Iterable[str] = (),
    remember: bool = True,
    keeps_always: bool = True,
    zone: Zone = in_utc,
    now: datetime | None = None,
    viewer: str = "",
) -> Card:
    """Build the card for a request.

    `remember` and `keeps_always` say whether an answer can be remembered at all, and for always. With `now`, the card
    says how much time is left to answer: for a card that is drawn once, not one that stays on screen. `viewer` is the
    person who reads the card, if it is one: it tells them if they have already approved the call.

    Raises `CannotCanonicalise` if the arguments cannot be shown; then they cannot be approved either.
    """
    request = _as_it_runs(request)
    verdict, call = request.verdict, request.call
    writer = _Writer(request, secrets)
    args = tuple(writer.args())
    title, why = writer.title(), writer.line(_why(request), "the reason")
    preview = writer.preview()
    said = "\n".join((title, why, preview.text if preview is not None else "", *(arg.text for arg in args)))
    details = tuple(writer.details(said))
    unreadable = call.unreadable if call else ()
    return Card(
        request_id=writer.line(request.id or request.tool_call_id),
        title=title,
        tool=writer.line(request.tool_name),
        chain=writer.line(" > ".join((*request.worker, request.tool_name))),
        toolset=writer.line((call.toolset if call else None) or ""),
        loosened=tuple(map(writer.line, request.context.loosened.texts)),
        why=why,
        task=writer.line(task_of(request), "the task"),
        session=writer.line(request.context.session_text(), "the session"),
        claim=writer.line(_line(request.context.words, _LONGEST_CLAIM), "the model's words"),
        recent=tuple(writer.line(_past(one), "an earlier call") for one in request.context.recent),
        comments=tuple(writer.comments()),
        left_out=max(0, len(request.comments) - _MOST_COMMENTS),
        answers=writer.line(_answers(request)),
        note=writer.line(_note(request), "the note"),
        rule=writer.line(", ".join(verdict.rules) if verdict else ""),
        errors=tuple(map(writer.line, _errors(verdict))) if verdict else (),
        message=writer.block(request.requirement.message, "the message"),
        needs=writer.line(needs_of(request, viewer)),
        until=writer.line(_until(request, zone, now)),
        irreversible=request.requirement.irreversible,
        preview=preview,
        changed=writer.line("; ".join(request.changed)),
        problem=writer.block(request.problem, "the problem"),
        args=args,
        details=details,
        warnings=(*map(writer.line, map(_cannot_show, unreadable)), *writer.warnings()),
        masked=tuple(writer.safe(str(masked)) for masked in writer.redactor.masked),
        choices=_choices(request, remember=remember, keeps_always=keeps_always),
        keeps=request.keeps,
        digest=request.args_digest,
    )


def by_clock(card: Card, deadline: datetime | None, zone: Zone, now: datetime | None) -> Card:
    """Convert a card's deadline from UTC to `zone`; with `now`, it also says how much time is left to answer."""
    if deadline is None or not card.until:
        return card
    told = moment_text(deadline, zone) + (_soon(deadline, now) if now is not None else "")
    return replace(card, until=card.until.replace(moment_text(deadline), told, 1))


def rule_text(rules: str) -> str:
    """Name rules by their ids in a sentence. An unnamed rule is already called `rule-4`, so `rule` is not repeated."""
    first, comma, _ = rules.partition(", ")
    return rules if first.rpartition("/")[2].startswith("rule-") else f"rule{'s' if comma else ''} {rules}"


def rules_after(text: str, rules: str) -> str:
    """Return the rules as they follow a sentence, in brackets; empty where it names one of them itself."""
    return f"({rule_text(rules)})" if rules and not names_rule(text, rules) else ""


def names_rule(text: str, rules: str) -> bool:
    """Whether a sentence names one of these rules itself, so that they need not follow it."""
    return any(f"“{one}”" in text for one in rules.split(", "))


def safe_summary(request: ApprovalRequest, *, secrets: Iterable[str] = ()) -> str:
    """The title of the card alone: one line about the call, with secrets masked and hidden characters made visible."""
    return _Writer(_as_it_runs(request), secrets).title()


AS_ASKED = "The preview is of the call as it was asked, not of this edit."
SENT_BACK = (
    "Nothing by itself: this agent cannot run a call with other arguments. The call is refused, and the agent is told "
    "these."
)
_UNKNOWN_EFFECT = f"Not known here. {AS_ASKED}"


def effect_of_edit(
    request: ApprovalRequest,
    args: Mapping[str, Any],
    with_edit: WithEdit | None,
    *,
    secrets: Iterable[str] = (),
) -> Preview | None:
    """What a call would change with edited arguments. May block, as `with_edit` does.

    None if neither the tool nor the card says anything about what it changes. If the card has a preview, but that of
    the edited call is not known, it says so: the one on the card is of another call.
    """
    if not request.takes_edits:
        return Preview(kind="text", text=SENT_BACK)
    changed = with_edit(args) if with_edit is not None else None
    if changed is None:
        return Preview(kind="text", text=_UNKNOWN_EFFECT) if _preview_of(request.metadata) is not None else None
    try:
        return card_for(changed, secrets=secrets).preview
    except (SignoffError, ValueError, TypeError, RecursionError):  # said when the answer is taken
        return None


def beside_edits(request: ApprovalRequest) -> str:
    """What to say beside edited arguments that somebody voted for, if the card shows a preview of other ones."""
    return AS_ASKED if request.decision is None and _preview_of(request.metadata) is not None else ""


def remember_text(request: ApprovalRequest, scope: Remember = Remember.SESSION) -> str:
    """Say exactly what would be remembered."""
    within = "among" if request.keeps is Keeps.BATCH else "in"
    how_long = (
        ", in this session or any later one," if scope is Remember.ALWAYS else f" {within} {_LASTS[request.keeps]}"
    )
    return (
        f"You will not be asked again{how_long} for {safe_text(request.tool_name)} with exactly these arguments. "
        "Other arguments or a changed tool still ask; a rule that denies still denies."
    )


_LASTS = {
    Keeps.NOTHING: "this call",
    Keeps.BATCH: "the calls asked about now",
    Keeps.RUN: "this run",
    Keeps.SESSION: "this session",
    Keeps.EXACTLY: "this session",
    Keeps.ALWAYS: "this session",
}


def session_text(keeps: Keeps) -> str:
    """How long an answer for the session is remembered: `for this session`, or less if it cannot be kept that long."""
    return f"for {_LASTS[keeps]}"


@dataclass(slots=True)
class _Writer:
    """Makes the texts of one card safe to show, and numbers the masks through."""

    request: ApprovalRequest
    secrets: Iterable[str]
    redactor: Redactor = field(init=False)
    _shown: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        request = self.request
        context = request.context
        shown_texts = (request.args, request.metadata, request.summary, request.problem, request.requirement.message)
        self.redactor = Redactor(
            (*self.secrets, *request.secrets),
            avoid=(
                *shown_texts,
                context.prompt,
                context.words,
                context.session_text(),
                request.effective_args,
                *(one.text for one in request.comments),
            ),
        )
        self._shown = self.redactor.mapping(request.effective_args)

    def line(self, text: str, where: str = "") -> str:
        """Make a text safe that is shown on one line."""
        return self.safe(self.redactor.text(text, where)) if text else ""

    def block(self, text: str, where: str = "") -> str:
        """Make a text safe that may have several lines."""
        return self.safe(self.redactor.text(text, where), lines=_has_lines(text)) if text else ""

    def safe(self, text: str, *, lines: bool = False) -> str:
        """Make hidden characters of a redacted text visible, and keep its masks."""
        return self.redactor.visible(text, lines=lines)

    def args(self) -> Iterator[CardArg]:
        for name, value in self._shown.items():
            yield self._named(name, value)

    def details(self, said: str) -> Iterator[CardArg]:
        """The tool's metadata that is nowhere else on the card; `said` is the text of the rest."""
        metadata = self.request.metadata
        shown = {*_OURS, *_previewed(metadata), *(("note",) if _note(self.request) else ())}
        if self.request.problem:  # a draft that was refused: a person wrote it, not the tool
            shown.add("draft")
        rest = {name: value for name, value in metadata.items() if name not in shown and value not in (None, "")}
        for name, value in self.redactor.mapping(rest).items() if rest else ():
            one = self._named(name, value)
            if name not in _LINES or one.text not in said:
                yield one

    def _named(self, name: str, value: object) -> CardArg:
        text = value if isinstance(value, str) and not _reads_as_json(value) else _as_json(value)
        shown = self.safe(text, lines=not isinstance(value, str) or _has_lines(value))
        return CardArg(
            name=self.safe(name),
            text=shown,
            masked=f"{OPEN}{self.redactor.stem} " in shown,
            long=len(shown) > LONG_TEXT or shown.count("\n") >= LONG_LINES,
        )

    def title(self) -> str:
        request = self.request
        tool, metadata = self.redactor.text(request.tool_name, "the name of the tool"), request.metadata
        plain = summary_of(request.tool_name, request.args, metadata)
        if request.summary and request.summary != plain:
            return self.line(request.summary, "the summary")
        # Redact before shortening: half a secret would not be recognised.
        said = {name: value for name, value in metadata.items() if name in _LINES}
        safe = {
            name: self.redactor.text(text, "the summary") if isinstance(text, str) else text
            for name, text in said.items()
        }
        if not self.redactor.masked and self._shown == request.args:
            line = plain
        else:
            line = self._without_half_a_mask(summary_of(tool, self._shown, safe))
        # The call itself is shown as JSON, which escapes control characters in its own way.
        return self.safe(line if any(said.values()) else _ESCAPED.sub(_unescaped, line))

    def _without_half_a_mask(self, line: str) -> str:
        if not line.endswith("…"):
            return line
        return f"{without_half_a_mask(line.removesuffix('…'), self.redactor.stem)}…"

    def preview(self) -> Preview | None:
        preview = _preview_of(self.request.metadata)
        if preview is None:
            return None
        text = self.redactor.text(preview.text, "the preview")
        if preview.kind == "text":
            return replace(preview, text=self.safe(text, lines=True))
        # Line by line: signoff writes the marks in the first column, and a blank after a mark is no trailing blank.
        lines = ((line[:1], line[1:]) if mark else ("", line) for mark, line in marked_lines(text))
        return replace(preview, text="\n".join(first + self.safe(rest, lines=True) for first, rest in lines))

    def comments(self) -> Iterator[CardComment]:
        """The latest comments."""
        waiting = {one.id for one in unanswered(self.request.comments)}
        for one in self.request.comments[-_MOST_COMMENTS:]:
            # Mask before shortening: half a secret would not be recognised.
            masked = shortened(self.redactor.text(one.text, "a comment"), _LONGEST_COMMENT)
            text = self.safe(masked, lines=_has_lines(masked))
            yield CardComment(
                heading=self.line(one.heading),
                text=f"“{text}”" if one.is_claim else text,
                is_open=one.id in waiting,
            )

    def warnings(self) -> Iterator[str]:
        found = [f"the tool's name holds {what}" for what in suspicious(self.request.tool_name, code=True)]
        for name, text in _strings(self._shown, ""):
            words = {word.lower() for word in re.split(r"\W|_", name)}
            found += [f"{self.safe(name)} holds {what}" for what in suspicious(text, code=bool(words & _CODE))]
        yield from found[:_MOST_WARNINGS]
        if len(found) > _MOST_WARNINGS:
            yield f"and {len(found) - _MOST_WARNINGS} more of this kind"


def _unescaped(escape: re.Match[str]) -> str:
    """Undo the JSON escape of a control character, so that it gets the same marker as elsewhere on the card."""
    if escape[1]:
        return chr(int(escape[1], 16))
    return {"b": "\b", "f": "\f", "r": "\r"}[escape[2]] if escape[2] else escape[0]


def _as_it_runs(request: ApprovalRequest) -> ApprovalRequest:
    """Drop the tool's description of the original call if a person edited the arguments since.

    Where its summary said no more than the arguments do, the edited ones say it in the same words: a command line, or
    a word and a path, if nothing but free text was edited.
    """
    if request.decision is None or request.decision.edited_args is None:
        return request
    tool, runs = request.tool_name, _in_same_words(request)
    is_same = bool(runs)
    has_words = request.summary not in ("", summary_of(tool, request.args, request.metadata))
    dropped = _DESCRIBE.difference(("summary",) if is_same else ())
    said = (has_words and not is_same) or not dropped.isdisjoint(request.metadata)
    metadata = {"summary": runs} if is_same else {}
    return request.changed_to(summary="", metadata={**metadata, "note": _LEFT_OUT} if said else metadata)


def _in_same_words(request: ApprovalRequest) -> str:
    """The summary of an edited call, where that of the original holds nothing but what the arguments say."""
    tool, asked, runs, summary = request.tool_name, request.args, request.effective_args, request.summary
    labels = request.call.labels if request.call is not None else frozenset[str]()
    words = own_words(tool, labels, asked)
    if words and summary == summary_of(tool, {}, {"summary": words}):
        return own_words(tool, labels, runs)
    path, changed = asked.get("path"), {name for name in {**asked, **runs} if asked.get(name) != runs.get(name)}
    has_verb = isinstance(path, str) and re.fullmatch(rf"[A-Z][a-z]+ {re.escape(path)}", summary) is not None
    return summary if has_verb and changed <= FREE else ""


def _why(request: ApprovalRequest) -> str:
    said = request.metadata.get("reason")
    if request.verdict is not None and request.verdict.reason:
        edited = request.decision is not None and request.decision.edited_args is not None
        return f"{request.verdict.reason}{_AS_MADE if edited else ''}"
    return said if isinstance(said, str) and said.strip() else "the tool asks for approval"


def task_of(request: ApprovalRequest) -> str:
    """Return the prompt that led to a call, and for whom it is made. Not safe to show yet."""
    task = _line(request.context.prompt, _LONGEST_TASK)
    if task and request.context.session:
        task = f"“{task}”"
    if request.requester:
        return f"{task} (for {request.requester})" if task else f"none given (for {request.requester})"
    return task


def origin_of(request: ApprovalRequest) -> tuple[str, str]:
    """Return the session of a request in short, and its task, safe to show in a list: runs have both of their own."""
    redactor = Redactor(request.secrets, avoid=(request.context.session_text(), request.context.prompt))
    session, task = request.context.session_text(short=True), task_of(request)
    return redactor.visible(redactor.text(session)), redactor.visible(redactor.text(task))


def _errors(verdict: Verdict) -> Iterator[str]:
    """What policy could not evaluate, as far as the reason does not say it already: each cause once, with its rules."""
    rules: dict[str, list[str]] = {}
    for error in verdict.errors:
        rule, _, why = error.partition(": ")
        if (why or error) not in verdict.reason:
            rules.setdefault(why or error, []).extend([rule] if why else [])
    for why, of in rules.items():
        yield f"{', '.join(of)}: {why}" if of else why


def _past(call: PastCall) -> str:
    return f"{shortened(call.summary, _LONGEST_PAST)}: {_OUTCOMES.get(call.outcome, call.outcome)}"


def answer_tallies(request: ApprovalRequest) -> tuple[AnswerTally, ...]:
    """How people answered before: this call, calls that differ only in free text, the tool. Each if it adds any."""
    answers, free = request.context.answers, request.call.free if request.call is not None else ()
    if answers.tool == NO_TALLY:
        return ()
    tool = AnswerTally("tool", (request.tool_name,), answers.tool)
    if request.effective_args is not request.args:  # the tallies were counted for the original ones
        return (tool,)
    found: list[AnswerTally] = []
    if answers.call != NO_TALLY:
        found.append(AnswerTally("call", (), answers.call))
    if answers.target not in (answers.call, NO_TALLY):
        found.append(AnswerTally("target", tuple(free), answers.target))
    if answers.tool != answers.target:
        found.append(tool)
    if answers.target == NO_TALLY:
        found.append(AnswerTally("never", (), NO_TALLY))
    return tuple(found)


def _answers(request: ApprovalRequest) -> str:
    return "; ".join(map(_answers_text, answer_tallies(request)))


def _answers_text(earlier: AnswerTally) -> str:
    if earlier.about == "never":
        return "never approved or denied with these arguments"
    texts = {
        "call": "exactly this call",
        "target": f"whatever the {' and the '.join(earlier.names)}",
        "tool": f"{' '.join(earlier.names)} in all",
    }
    return f"{texts[earlier.about]}: {_tally_text(earlier.tally)}"


def _tally_text(tally: Tally) -> str:
    counts = (("approved", tally.approved), ("denied", tally.denied))
    return ", ".join(f"{word} {_times(number)}" for word, number in counts if number)


def _times(number: int) -> str:
    more = " or more" if number >= MOST_ANSWERS else ""
    return {1: "once", 2: "twice"}.get(number, f"{number}{more} times")


def _line(text: str, longest: int) -> str:
    return shortened(" ".join(text.split()), longest)


def _note(request: ApprovalRequest) -> str:
    said = request.metadata.get("note")
    return said if isinstance(said, str) else ""


def _until(request: ApprovalRequest, zone: Zone, now: datetime | None) -> str:
    if request.deadline is None or request.state is not State.PENDING:
        return ""
    soon = _soon(request.deadline, now) if now is not None else ""
    return f"{moment_text(request.deadline, zone)}{soon}, then {without_answer(request)}"


def _soon(deadline: datetime, now: datetime) -> str:
    return f" ({ahead(deadline, now)})" if deadline - now < _FAR else ""


def _choices(request: ApprovalRequest, *, remember: bool, keeps_always: bool) -> tuple[Choice, ...]:
    offered = set(Choice)
    if request.call is not None and request.call.unreadable:
        offered -= APPROVING
    by_role = request.requirement.is_strict and may_be_remembered(request)
    if (request.requirement.is_strict and not by_role) or not remember or request.keeps is Keeps.NOTHING:
        offered -= {Choice.SESSION, Choice.ALWAYS, Choice.WIDER}
    if not keeps_always or request.keeps not in (Keeps.EXACTLY, Keeps.ALWAYS):
        offered -= {Choice.ALWAYS, Choice.WIDER}
    if request.keeps is not Keeps.ALWAYS or not may_be_widened(request):
        offered -= {Choice.WIDER}
    return tuple(choice for choice in Choice if choice in offered)


def _cannot_show(argument: str) -> str:
    return f"{argument} cannot be shown, so this call cannot be approved here"


def _previewed(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The metadata keys that the preview is made of."""
    if _is_text(metadata.get("diff")):
        return ("diff",)
    if isinstance(metadata.get("after"), str) or isinstance(metadata.get("before"), str):
        return ("before", "after")
    return ("preview",)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _preview_of(metadata: Mapping[str, Any]) -> Preview | None:
    diff, before, after = metadata.get("diff"), metadata.get("before"), metadata.get("after")
    if isinstance(diff, str) and diff.strip():
        return read_diff(diff.removesuffix("\n"))
    if isinstance(after, str) or isinstance(before, str):
        old, new, path = (text if isinstance(text, str) else "" for text in (before, after, metadata.get("path")))
        return unified_diff(old, new, path)
    said = metadata.get("preview")
    if said is None or said == "":
        return None
    return Preview(kind="text", text=said if isinstance(said, str) else _as_json(said))


def _as_json(value: object) -> str:
    line = json.dumps(value, ensure_ascii=False, default=str)
    if len(line) <= _ONE_LINE or not isinstance(value, (dict, list)):
        return line
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _reads_as_json(text: str) -> bool:
    """Whether a text would be taken for another type of value (`5`, `true`, `[1]`, nothing): it is shown in quotes."""
    if not text or text.isspace():
        return True
    if text[0] not in '{["-0123456789tfn':
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _has_lines(text: str) -> bool:
    return "\n" in text.rstrip("\n")


def _strings(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield every text in a value, with the quoted name of its argument or its path in it."""
    if isinstance(value, str):
        yield quoted(path), value
    elif isinstance(value, Mapping):
        for name, item in cast("Mapping[str, object]", value).items():
            yield from _strings(item, f"{path}.{name}" if path else name)
            if suspicious(name):
                yield f"a name in {quoted(path) if path else 'the arguments'}", name
    elif isinstance(value, list):
        for index, item in enumerate(cast("Sequence[object]", value)):
            yield from _strings(item, f"{path}[{index}]")
