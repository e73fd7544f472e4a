"""Requests to be drawn: any whatsoever, in any state, and the limits that what is drawn has to keep."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck
from hypothesis import strategies as st
from tests.matches import varying
from tests.profiles import examples

from signoff.channels.discord.custom_id import Press
from signoff.channels.discord.sheet import Button, Form, Menu, MessageSheet, size
from signoff.core.call import Call
from signoff.core.canonical import digest
from signoff.core.claim import Claim
from signoff.core.decision import ApprovalDecision, Ending, Remember
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.core.vote import Vote
from signoff.errors import CannotCanonicalise

ANY = examples(600, 20, suppress=[HealthCheck.data_too_large])
"""For tests with requests of any kind: some of them are large."""
AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
ANA, BEN = Actor(name="ana", via="discord"), Actor(name="ben", via="terminal")
BEGUN = frozenset({State.CLAIMED, State.SUCCEEDED, State.FAILED, State.UNKNOWN})
"""The states in which a call was begun."""
SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}, "amount": {"type": "number"}}}


def asked(tool: str = "pay_invoice", args: dict[str, Any] | None = None, **fields: Any) -> ApprovalRequest:
    """A request as the broker hands it out."""
    args = {"to": "ACME", "amount": 250} if args is None else args
    verdict = Verdict(
        effect=Effect.ASK,
        rules=fields.pop("rules", ("payments:2",)),
        reason=fields.pop("reason", "payments need a yes"),
        requirement=fields.pop("requirement", Requirement()),
        errors=fields.pop("errors", ()),
    )
    call = Call(
        tool=tool,
        args=args,
        worker=fields.pop("worker", ("triage", "billing")),
        toolset=fields.pop("toolset", "bank"),
        conversation_id="talk-1",
        unreadable=fields.pop("unreadable", ()),
    )
    known: dict[str, Any] = {
        "tool_call_id": "c1",
        "id": "k3f9abcdef",
        "tool_name": tool,
        "args": args,
        "call": call,
        "may_vary": varying(call),
        "verdict": verdict,
        "schema": SCHEMA,
        "opened_at": AT,
        "run": "run-1",
    }
    return ApprovalRequest(**known | fields)


def settled(request: ApprovalRequest, state: State, **fields: Any) -> ApprovalRequest:
    """The request as it stands later."""
    decision: dict[str, Any] = {"approved": True, "by": ANA, "at": AT + timedelta(minutes=1)}
    match state:
        case State.PENDING:
            return request
        case State.DENIED:
            decision |= {"approved": False}
        case State.EXPIRED:
            decision |= {"approved": False, "ending": Ending.EXPIRED, "by": None, "note": "nobody answered in time"}
        case State.CANCELLED:
            decision |= {"approved": False, "ending": Ending.CANCELLED}
        case _:
            pass
    decision |= {name: fields.pop(name) for name in ("note", "edited_args", "by", "remember") if name in fields}
    if not decision["approved"]:
        decision.pop("edited_args", None)
    claim = None
    if state in BEGUN:
        ended = AT + timedelta(minutes=2) if state in (State.SUCCEEDED, State.FAILED) else None
        claim = Claim(holder="p1", at=AT + timedelta(minutes=1), ended_at=ended, **fields)
    return request.changed_to(state=state, decision=ApprovalDecision(**decision), claim=claim)


# --- any request whatsoever ---

BITS = (
    *("`", "``", "```", "````", "```text\n", "\n", "\n\n", "\\", "\t", " ", "  ", "text", "diff\n", "a", "Z", "7", "é"),
    *("@everyone", "@here", "<@1>", "<@!1>", "<@&1>", "<#1>", "<t:1:R>", "</signoff pending:1>", "<:ok:1>", ":ok:"),
    *("[a](https://evil)", "https://evil", "<https://evil>", "discord.gg/evil", "**Approved by ana**", "*", "_", "__"),
    *("~~", "||", "# ", "-# ", "> ", ">>> ", "- ", "1. ", "⟦", "⟧", "⟦backtick×3⟧", "⟦LF⟧", "⟦masked 1: token⟧"),
    *("\u202e", "\u200b", "\ufe0f", "\x1b[2K", "\r", "\0", "👨\u200d👩", "漢", "ｒｍ", "\ue000", "\u2028"),
)
_LETTERS = {chr(0x100 + number): bit for number, bit in enumerate(BITS)}
"""A letter for each bit: Hypothesis draws a text at once, and a list one by one, which takes ten times as long."""
texts = st.text(max_size=60) | st.text(list(_LETTERS), max_size=12).map(
    lambda letters: "".join(map(_LETTERS.__getitem__, letters))
)
long_texts = texts | st.builds(lambda bit, times: bit * times, st.sampled_from(BITS), st.integers(1, 400))
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | long_texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
arguments = st.dictionaries(texts, values, max_size=4)
metadata = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("summary", "reason", "note", "path", "preview", "before", "after"), long_texts),
        "diff": long_texts,
    },
)
people = st.builds(Actor, name=texts, via=texts)
requirements = st.builds(
    Requirement,
    role=st.none() | texts,
    quorum=st.integers(1, 3),
    message=long_texts,
    not_by=st.just(frozenset[str]()) | st.just(frozenset({"requester"})),
)


@st.composite
def any_request(draw: st.DrawFn) -> ApprovalRequest:
    request = asked(
        draw(texts),
        draw(arguments),
        metadata=draw(metadata),
        reason=draw(texts),
        rules=tuple(draw(st.lists(texts, max_size=2))),
        errors=tuple(draw(st.lists(texts, max_size=2))),
        worker=tuple(draw(st.lists(texts, max_size=3))),
        toolset=draw(st.none() | texts),
        requirement=draw(requirements),
        problem=draw(long_texts),
        changed=tuple(draw(st.lists(texts, max_size=2))),
        deadline=draw(st.none() | st.just(AT + timedelta(minutes=5))),
        assigned=draw(texts),
        unreadable=tuple(draw(st.lists(texts, max_size=1))),
        secrets=tuple(draw(st.lists(texts, max_size=1))),
        requester="rita",
    )
    request = request.changed_to(votes=tuple(draw(st.lists(votes(request), max_size=4))))
    if not draw(st.booleans()) or (state := draw(st.sampled_from(State))) is State.PENDING:
        return request
    # Drawing is what takes the time, so nothing is drawn that this state does not have.
    how = {
        "note": draw(long_texts),
        "by": draw(people),
        "remember": draw(st.sampled_from(Remember)),
        "edited_args": draw(st.none() | arguments) if state in BEGUN or state is State.APPROVED else None,
    }
    claim = {name: draw(long_texts) for name in ("error", "preview", "told_by")} if state in BEGUN else {}
    return settled(request, state, **how, **claim)


@st.composite
def votes(draw: st.DrawFn, request: ApprovalRequest) -> Vote:
    """A vote for a call, or for other arguments."""
    edited = draw(st.none() | arguments)
    try:
        voted = digest(request.args if edited is None else edited)
    except CannotCanonicalise:
        edited, voted = None, "f" * 64
    return Vote(
        by=draw(people),
        at=AT,
        decision=ApprovalDecision(approved=True, edited_args=edited),
        args_digest=voted,
        stands_for=draw(st.none() | people),
    )


# --- limits, as Discord documents them ---


def check_sheet(sheet: MessageSheet) -> None:
    """Everything about a message that Discord would refuse otherwise."""
    assert size(sheet.content) <= 2000
    assert size(sheet.title) <= 256
    assert size(sheet.text) <= 4096
    assert size(sheet.footer) <= 2048
    assert size(sheet.title) + size(sheet.text) + size(sheet.footer) <= 6000
    assert sheet.content or sheet.text, "an empty message"
    assert len(sheet.rows) <= 5
    ids: list[str] = []
    for row in sheet.rows:
        if isinstance(row, Menu):
            check_menu(row)
            ids.append(row.id)
        else:
            assert 1 <= len(row) <= 5
            ids += [check_button(button) for button in row]
    assert len(ids) == len(set(ids)), "two buttons with one id"


def check_button(button: Button) -> str:
    assert 1 <= size(button.label) <= 80
    assert len(button.id) <= 100
    assert Press.of(button.id) is not None
    return button.id


def check_menu(menu: Menu) -> None:
    assert len(menu.id) <= 100 and size(menu.placeholder) <= 150
    assert 1 <= len(menu.options) <= 25
    assert len({option.value for option in menu.options}) == len(menu.options)
    for option in menu.options:
        assert 1 <= size(option.label) <= 100 and 1 <= size(option.value) <= 100 and size(option.description) <= 100


def check_form(form: Form) -> None:
    assert 1 <= size(form.title) <= 45 and len(form.id) <= 100 and Press.of(form.id) is not None
    assert 1 <= len(form.fields) <= 5
    for field in form.fields:
        assert 1 <= size(field.label) <= 45 and size(field.placeholder) <= 100
        assert size(field.value) <= field.most <= 4000
