"""Numbers about what was asked and decided, the form from a schema, and texts in pieces: all of it pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.tables import table

from signoff.core.call import Call
from signoff.core.card import CardArg
from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.people import Actor, ActorKind
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Effect, Verdict
from signoff.core.vote import Vote
from signoff.server.charts import badge, days_chart
from signoff.server.edit_form import form_fields
from signoff.server.insights import insights, is_too_fast, quantile
from signoff.server.text_marks import argument_pieces, diff_lines

NOON = datetime(2031, 5, 24, 12, tzinfo=UTC)


def decided(
    tool: str, seconds: float, *, approved: bool = True, by: str = "ana", days: int = 0, **more: Any
) -> ApprovalRequest:
    opened = NOON - timedelta(days=days)
    args = more.pop("args", {"x": 1})
    decision = ApprovalDecision(
        approved=approved,
        by=Actor(name=by, kind=more.pop("kind", ActorKind.PERSON)),
        at=opened + timedelta(seconds=seconds),
        ending=Ending.APPROVED if approved else Ending.DENIED,
    )
    return ApprovalRequest(
        tool_call_id="c",
        tool_name=tool,
        args=args,
        id=f"{tool}-{seconds}-{days}",
        call=Call(tool=tool, args=args),
        verdict=Verdict(effect=Effect.ASK, rules=(f"{tool}-rule",)),
        opened_at=opened,
        state=State.APPROVED if approved else State.DENIED,
        decision=decision,
    )


def test_what_was_decided_by_whom_and_how_fast() -> None:
    often = [decided("mail", 10 * number, days=number % 3) for number in range(1, 7)]
    mixed = [decided("pay", 60, by="ben"), decided("pay", 120, approved=False, by="ben")]
    machine = decided("mail", 1, kind=ActorKind.MODE)
    waiting = decided("mail", 0).changed_to(state=State.PENDING, decision=None)
    old = decided("mail", 5, days=40)
    found = insights([*often, *mixed, machine, waiting, old], now=NOON, days=7)
    assert (found.asked, found.approved, found.denied, found.waiting) == (10, 7, 1, 1)
    assert (found.median, found.p90) == (40, 120)
    assert [(one.name, one.asked, one.decided, one.rate) for one in found.by_tool] == [
        ("mail", 8, 6, 1.0),
        ("pay", 2, 2, 0.5),
    ]
    assert [(one.name, one.answers) for one in found.by_person] == [("ana", 6), ("ben", 2)]
    assert [one.name for one in found.by_rule] == ["mail-rule", "pay-rule"]
    assert [(one.name, one.decided) for one in found.never_denied] == [("mail", 6)]
    assert [(one.asked, one.decided) for one in found.days][-3:] == [(2, 2), (2, 2), (6, 4)]
    chart = str(days_chart(found.days, title="<b>", about='"'))
    assert "<b>" not in chart
    assert chart.count('class="asked"') == sum(one.asked > 0 for one in found.days)


def test_an_approval_that_became_void_counts_in_no_table() -> None:
    void = ApprovalDecision(approved=False, note="the file changed", ending=Ending.CANCELLED, at=NOON)
    vote = Vote(by=Actor(name="ana"), at=NOON, decision=ApprovalDecision(approved=True), args_digest="1")
    one = decided("pay", 10).changed_to(state=State.CANCELLED, decision=void, votes=(vote,))
    found = insights([one, decided("pay", 20, days=1).changed_to(votes=(vote,))], now=NOON, days=7)
    assert (found.asked, found.approved, found.denied, found.cancelled) == (2, 1, 0, 1)
    of_tables = (sum(one.decided for one in table) for table in (found.days, found.by_tool, found.by_rule))
    assert {*of_tables, sum(one.answers for one in found.by_person)} == {1}


def test_every_vote_of_a_person_counts() -> None:
    one = decided("pay", 120, by="ben")
    first, last = Actor(name="ana"), Actor(name="ben")
    edited = ApprovalDecision(approved=True, edited_args={"x": 2})
    votes = (
        Vote(by=first, at=NOON + timedelta(seconds=60), decision=edited, args_digest="2"),
        Vote(by=last, at=NOON + timedelta(seconds=120), decision=edited, args_digest="2"),
        Vote(by=Actor(name="bot", kind=ActorKind.MODEL), at=NOON, decision=edited, args_digest="2"),
    )
    found = insights([one.changed_to(votes=votes), decided("pay", 10, by="Ana")], now=NOON, days=7).by_person
    told = [(share.name, share.answers, share.approved, share.edited, share.median) for share in found]
    assert told == [("ana", 2, 2, 1, 10), ("ben", 1, 1, 1, 120)]


def test_faster_than_it_can_be_read() -> None:
    words = {"text": "word " * 200}  # a minute, and a second to begin
    assert is_too_fast(decided("mail", 59, args=words))
    assert not is_too_fast(decided("mail", 62, args=words))
    assert is_too_fast(decided("mail", 0.5, args={}))
    assert not is_too_fast(decided("mail", 0.5, args=words, approved=False))  # a no needs no reading
    assert not is_too_fast(decided("mail", 0.5, args=words, kind=ActorKind.MODE))


@table(
    ("values", "part", "result"),
    [([], 0.5, None), ([7], 0.9, 7), ([3, 1, 2], 0.5, 2), ([1, 2, 3, 4], 0.5, 2), (list(range(1, 11)), 0.9, 9)],
)
def test_quantiles(values: list[float], part: float, result: float | None) -> None:
    assert quantile(values, part) == result


def test_the_icon_counts() -> None:
    assert ">3<" in badge(3)
    assert ">99+<" in badge(100)
    assert "<text" not in badge(0)


SCHEMA = {
    "type": "object",
    "required": ["name", "count"],
    "properties": {
        "name": {"type": "string", "description": "Who"},
        "count": {"type": "integer", "minimum": 1},
        "price": {"type": "number"},
        "sure": {"type": "boolean"},
        "size": {"enum": ["s", "m"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"$ref": "#/$defs/Place"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "any": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    },
    "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
}


def test_a_form_from_a_schema() -> None:
    args = {"name": "bo", "count": 2, "price": 1.5, "sure": True, "size": "m", "tags": ["a"], "place": {"city": "x"}}
    fields = {one.name: one for one in form_fields(SCHEMA, {**args, "note": None, "extra": {"k": 1}})}
    assert {name: one.kind for name, one in fields.items()} == {
        "name": "text",
        "count": "integer",
        "price": "number",
        "sure": "boolean",
        "size": "choice",
        "tags": "list",
        "place": "object",
        "note": "text",
        "any": "json",
        "extra": "json",
    }
    assert fields["name"].required
    assert not fields["price"].required
    assert not fields["any"].given
    assert (fields["note"].nullable, fields["note"].is_null) == (True, True)
    assert fields["place"].fields[0].path == '["place", "city"]'
    assert fields["count"].limits == {"minimum": "1"}
    assert fields["size"].choices == (('"s"', "s"), ('"m"', "m"))


@table(
    ("schema", "args", "kind"),
    [
        ({"type": "string"}, {"x": 5}, "json"),  # not what the schema says: nothing is lost
        ({"type": "integer"}, {"x": "five"}, "json"),
        ({"type": "string"}, {"x": "a\u202eb"}, "json"),  # an input would turn it round
        ({"type": "array", "items": {"type": "string"}}, {"x": ["a", 1]}, "json"),
        ({"enum": ["a"]}, {"x": "b"}, "json"),
        ({"$ref": "#/nowhere"}, {"x": 1}, "json"),
        ({"$ref": "#/properties/x"}, {"x": 1}, "json"),
        ({"type": "string"}, {"x": "one\ntwo"}, "lines"),
    ],
)
def test_what_a_form_cannot_tell_is_edited_as_json(schema: dict[str, Any], args: dict[str, Any], kind: str) -> None:
    [one] = form_fields({"type": "object", "properties": {"x": schema}}, args)
    assert one.kind == kind
    assert "\u202e" not in one.value


def test_a_hostile_schema_ends() -> None:
    deep: dict[str, Any] = {"type": "object", "properties": {}}
    deep["properties"]["x"] = deep
    assert form_fields(deep, {"x": {"x": {"x": {"x": {}}}}})
    wide = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(5_000)}}
    assert form_fields(wide, {}) == ()
    assert form_fields(None, {"x": 1}) == ()


def test_a_diff_keeps_every_character() -> None:
    diff = '--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-def f(): return "⟦U+202E⟧" # 1\n+x = 2\n same'
    lines = diff_lines(diff)
    assert [one.kind for one in lines] == ["heading", "heading", "place", "removed", "added", "same"]
    assert "\n".join(one.mark + "".join(piece.text for piece in one.pieces) for one in lines) == diff
    assert ("⟦U+202E⟧", "hidden") in [(piece.text, piece.kind) for piece in lines[3].pieces]


@table(
    ("name", "text", "marked"),
    [
        ("command", "ls && rm -rf x; cat y", ["rm -rf x"]),
        ("command", "ls -l", []),
        ("command", "cat 'unclosed", ["'unclosed"]),
        ("sql", "select 1", []),
        ("sql", "select 1; drop table t", ["drop"]),
        ("text", "rm -rf x", []),
    ],
)
def test_what_decided_is_marked(name: str, text: str, marked: list[str]) -> None:
    pieces = argument_pieces(CardArg(name=name, text=text), {name: text})
    assert "".join(one.text for one in pieces) == text
    assert [one.text for one in pieces if one.kind == "decides"] == marked
    changed = argument_pieces(CardArg(name=name, text=f"{text}⟦masked 1: x⟧"), {name: text})
    assert not [one for one in changed if one.kind == "decides"]
