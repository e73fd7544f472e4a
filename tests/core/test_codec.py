"""What is written as JSON comes back as it was; what a newer signoff wrote is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.core import codec
from signoff.core.call import Call, Veiled
from signoff.core.claim import Claim
from signoff.core.decision import ApprovalDecision, Ending, Remember
from signoff.core.grant import Grant
from signoff.core.mode import ApprovalMode
from signoff.core.people import Actor, ActorKind, Delegation
from signoff.core.request import ApprovalRequest
from signoff.core.run import EnteredCall, Process, RunSetup, RunState, SavedRun
from signoff.core.terms import Budget, Scope, Terms
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.core.vote import Vote
from signoff.errors import SchemaError, StoreDamaged

TEXT = st.text(st.characters(exclude_categories=()), max_size=12)  # half a surrogate pair too: models write it
NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
VALUES = JSON | TEXT.map(Veiled)
ARGS = st.dictionaries(TEXT, VALUES, max_size=4)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=4)
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-11))])
TIMES = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=ZONES)  # noqa: DTZ001
SPANS = st.timedeltas(timedelta(0), timedelta(days=9_999))
AMOUNTS = st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=0, max_value=10**12)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
SETS = st.frozensets(TEXT, max_size=3)

ACTORS = st.builds(Actor, name=TEXT, kind=st.sampled_from(ActorKind), roles=SETS, via=TEXT)
BUDGETS = st.builds(Budget, arg=TEXT, limit=AMOUNTS, daily=st.booleans())
MATCHES = st.none() | OBJECTS
TERMS = st.builds(
    Terms,
    scope=st.sampled_from(Scope),
    match=MATCHES,
    until=st.none() | TIMES,
    max_uses=st.none() | st.integers(0, 99),
    budget=st.none() | BUDGETS,
)
ENDED: dict[str, st.SearchStrategy[Any]] = {
    "note": TEXT,
    "remember": st.sampled_from(Remember),
    "terms": st.none() | TERMS,
    "by": st.none() | ACTORS,
    "at": st.none() | TIMES,
}
DECISIONS = st.builds(ApprovalDecision, approved=st.just(True), edited_args=st.none() | ARGS, **ENDED) | st.builds(
    ApprovalDecision,
    approved=st.just(False),
    ending=st.sampled_from([one for one in Ending if one is not Ending.APPROVED]),
    **ENDED,
)
VOTES = st.builds(Vote, by=ACTORS, at=TIMES, decision=DECISIONS, args_digest=TEXT, stands_for=st.none() | ACTORS)
CLAIMS = st.builds(
    Claim, holder=TEXT, at=TIMES, ended_at=st.none() | TIMES, error=TEXT, digest=TEXT, preview=TEXT, told_by=TEXT
)
GRANTS = st.builds(
    Grant,
    tool=TEXT,
    memory_key=TEXT,
    approved=st.booleans(),
    scope=st.sampled_from(Scope),
    toolset=st.none() | TEXT,
    id=TEXT,
    where=TEXT,
    match=MATCHES,
    until=st.none() | TIMES,
    max_uses=st.none() | st.integers(0, 99),
    budget=st.none() | BUDGETS,
    at=st.none() | TIMES,
    note=TEXT,
    used=st.integers(0, 9),
    spent=AMOUNTS,
    spent_on=TEXT,
    revoked_at=st.none() | TIMES,
    revoked_by=TEXT,
)
SETUPS = st.builds(
    RunSetup,
    directory=TEXT,
    project=TEXT,
    project_id=TEXT,
    policy=TEXT,
    model=TEXT,
    mode=st.sampled_from(ApprovalMode),
    ask=TEXTS,
    deny=TEXTS,
    rules=TEXTS,
    worker_file=TEXT,
    input=st.none() | OBJECTS,
    files=TEXTS,
    chat=st.booleans(),
    after=TEXT,
)
ENTERED = st.builds(
    EnteredCall, tool=TEXT, args_digest=TEXT, schema_hash=TEXT, policy_revision=TEXT, granted=st.booleans()
)
RUNS = st.builds(
    SavedRun,
    places=st.dictionaries(TEXT, TEXT, max_size=2),
    id=TEXT,
    prompt=TEXT,
    setup=SETUPS,
    entered=st.none() | ENTERED,
    state=st.sampled_from(RunState),
    epoch=st.integers(0, 9),
    started_at=st.none() | TIMES,
    changed_at=st.none() | TIMES,
    rest=TEXT,
    format=st.integers(1, 9),
    detail=TEXT,
)
PROCESSES = st.builds(Process, id=TEXT, host=TEXT, pid=st.integers(0, 2**40), born=TEXT, seen_at=TIMES)
DELEGATIONS = st.builds(Delegation, absent=TEXT, deputy=TEXT, until=TIMES, since=TIMES, by=TEXT)
REQUIREMENTS = st.builds(
    Requirement,
    role=st.none() | TEXT,
    quorum=st.integers(1, 5),
    not_by=SETS,
    timeout=st.none() | SPANS,
    on_timeout=st.sampled_from(OnTimeout),
    escalate_to=st.none() | TEXT,
    veto=st.none() | TEXT,
    remind=st.none() | SPANS,
    message=TEXT,
    irreversible=st.booleans(),
)
VERDICTS = st.builds(
    Verdict, effect=st.sampled_from(Effect), rules=TEXTS, reason=TEXT, requirement=REQUIREMENTS, errors=TEXTS
)
CALLS = st.builds(
    Call,
    tool=TEXT,
    args=ARGS,
    toolset=st.none() | TEXT,
    worker=TEXTS,
    labels=SETS,
    resolved=st.dictionaries(TEXT, TEXT, max_size=2),
    unreadable=TEXTS,
    call_id=TEXT,
    run_id=TEXT,
    conversation_id=TEXT,
    path=TEXT,
    schema_hash=TEXT,
)


@st.composite
def questions(draw: st.DrawFn) -> ApprovalRequest:
    """Requests whose arguments are the call's own, or others."""
    call = draw(st.none() | CALLS)
    is_same = call is not None and draw(st.booleans())
    return ApprovalRequest(
        tool_call_id=call.call_id if call is not None and is_same else draw(TEXT),
        tool_name=call.tool if call is not None and is_same else draw(TEXT),
        args=call.args if call is not None and is_same else draw(ARGS),
        metadata=draw(OBJECTS),
        summary=draw(TEXT),
        id=draw(TEXT),
        call=call,
        verdict=draw(st.none() | VERDICTS),
        policy_revision=draw(TEXT),
        schema=draw(st.none() | OBJECTS),
        changed=draw(TEXTS),
        problem=draw(TEXT),
        requester=draw(TEXT),
        owners=draw(TEXTS),
        run=draw(TEXT),
        title=draw(TEXT),
    )


def changing(request: ApprovalRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in codec.CHANGING}


def veiled(args: Any) -> set[str]:
    return {name for name, value in args.items() if isinstance(value, Veiled)}


@examples(1_000, daily=25)
@given(questions())
def test_a_question_comes_back_as_it_was(request: ApprovalRequest) -> None:
    back = codec.load_question(codec.dump_question(request), changing(request))
    assert back == request
    assert back.__dict__.keys() == request.__dict__.keys()
    assert veiled(back.args) == veiled(request.args)
    if request.call is not None and back.call is not None:
        assert back.call.resolved == request.call.resolved
        assert veiled(back.call.args) == veiled(request.call.args)
        assert (type(back.call.worker), type(back.call.labels)) == (tuple, frozenset)


ROUND_TRIPS: list[tuple[st.SearchStrategy[Any], Callable[[Any], str], Callable[[str], Any]]] = [
    (DECISIONS, codec.DECISION.to_text, codec.DECISION.from_text),
    (CLAIMS, codec.CLAIM.to_text, codec.CLAIM.from_text),
    (GRANTS, codec.GRANT.to_text, codec.GRANT.from_text),
    (RUNS, codec.RUN.to_text, codec.RUN.from_text),
    (PROCESSES, codec.PROCESS.to_text, codec.PROCESS.from_text),
    (DELEGATIONS, codec.DELEGATION.to_text, codec.DELEGATION.from_text),
    (VOTES, lambda vote: f"[{codec.VOTE.to_text(vote)}]", lambda text: codec.load_votes(text)[0]),
]


@pytest.mark.parametrize(("values", "dump", "load"), ROUND_TRIPS, ids=lambda one: getattr(one, "__name__", ""))
@examples(1_000, daily=15)
@given(data=st.data())
def test_everything_comes_back_as_it_was(
    values: st.SearchStrategy[Any], dump: Callable[[Any], str], load: Callable[[str], Any], data: st.DataObject
) -> None:
    value = data.draw(values)
    text = dump(value)
    back = load(text)
    assert back == value
    assert text.isascii()
    for one in fields(value):
        assert type(getattr(back, one.name)) is type(getattr(value, one.name)), one.name


def test_an_edited_secret_stays_veiled() -> None:
    decision = ApprovalDecision(approved=True, edited_args={"token": Veiled("<secret 1>"), "n": 1})
    back = codec.DECISION.from_text(codec.DECISION.to_text(decision))
    assert back.edited_args is not None
    assert veiled(back.edited_args) == {"token"}


def test_amounts_keep_their_digits() -> None:
    grant = Grant(tool="t", memory_key="", approved=True, scope=Scope.PROJECT, spent=Decimal("12.340"))
    assert str(codec.GRANT.from_text(codec.GRANT.to_text(grant)).spent) == "12.340"


def test_a_request_and_its_call_are_written_once() -> None:
    call = Call(tool="deploy", args={"target": "x" * 100}, call_id="c-1")
    request = ApprovalRequest(id="r", tool_call_id="c-1", tool_name="deploy", args=call.args, call=call)
    text = codec.dump_question(request)
    assert text.count("x" * 100) == 1
    back = codec.load_question(text, changing(request))
    assert back.call is not None and back.args is back.call.args


def test_dependencies_stay_behind() -> None:
    call = Call(tool="deploy", deps=object())
    request = ApprovalRequest(id="r", tool_call_id="", tool_name="deploy", call=call)
    back = codec.load_question(codec.dump_question(request), changing(request))
    assert back == request and back.call is not None and back.call.deps is None


class Odd:
    def __str__(self) -> str:
        return "something odd"


CYCLE: dict[str, Any] = {}
CYCLE["again"] = CYCLE


@pytest.mark.parametrize(
    ("metadata", "kept"),
    [
        ({"odd": Odd()}, {"odd": "something odd"}),
        ({"when": datetime(2026, 1, 1, tzinfo=UTC)}, {"when": "2026-01-01 00:00:00+00:00"}),
        ({"amount": Decimal("1.50")}, {"amount": "1.50"}),
        (MappingProxyType({"inner": MappingProxyType({"a": 1})}), {"inner": {"a": 1}}),
        ({"keys": {(1, 2): Odd()}}, {"keys": {"(1, 2)": "something odd"}}),
        ({"pair": (1, 2)}, {"pair": [1, 2]}),
    ],
    ids=["object", "time", "decimal", "mapping", "keys", "tuple"],
)
def test_metadata_without_a_json_form_is_kept_as_text(metadata: Any, kept: dict[str, Any]) -> None:
    request = ApprovalRequest(id="r", tool_call_id="", tool_name="t", metadata=metadata)
    assert codec.load_question(codec.dump_question(request), changing(request)).metadata == kept


def test_metadata_that_holds_itself_has_an_end() -> None:
    request = ApprovalRequest(id="r", tool_call_id="", tool_name="t", metadata=CYCLE)
    assert "…" in json.dumps(json.loads(codec.dump_question(request)), ensure_ascii=False)


def bare(name: str) -> str:
    """One of each, with as little in it as can be."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    ana = Actor(name="ana")
    yes = ApprovalDecision(approved=True, by=ana, terms=Terms(budget=Budget(arg="n", limit=Decimal(1))))
    return {
        "decision": lambda: codec.DECISION.to_text(yes),
        "claim": lambda: codec.CLAIM.to_text(Claim(holder="p", at=at)),
        "grant": lambda: codec.GRANT.to_text(Grant(tool="t", memory_key="k", approved=True, scope=Scope.RUN)),
        "run": lambda: codec.RUN.to_text(SavedRun(id="r")),
        "process": lambda: codec.PROCESS.to_text(Process(id="p", host="h", pid=1, born="b", seen_at=at)),
        "delegation": lambda: codec.DELEGATION.to_text(Delegation(absent="a", deputy="b", until=at, since=at)),
    }[name]()


LOADS: dict[str, Callable[[str], Any]] = {
    "decision": codec.DECISION.from_text,
    "claim": codec.CLAIM.from_text,
    "grant": codec.GRANT.from_text,
    "run": codec.RUN.from_text,
    "process": codec.PROCESS.from_text,
    "delegation": codec.DELEGATION.from_text,
}


@pytest.mark.parametrize("name", LOADS)
def test_an_unknown_key_is_refused(name: str) -> None:
    data = json.loads(bare(name))
    LOADS[name](json.dumps(data))
    with pytest.raises(SchemaError, match=r"kept with shiny, .* upgrade signoff"):
        LOADS[name](json.dumps({**data, "shiny": 1}))


def test_an_unknown_key_inside_is_refused() -> None:
    data = json.loads(bare("decision"))
    data["by"]["shiny"] = 1
    with pytest.raises(SchemaError, match="Actor is kept with shiny"):
        codec.DECISION.from_text(json.dumps(data))


@pytest.mark.parametrize("where", ["question", "call", "verdict"])
def test_an_unknown_key_in_a_question_is_refused(where: str) -> None:
    verdict = Verdict(effect=Effect.ASK)
    request = ApprovalRequest(id="r", tool_call_id="", tool_name="t", call=Call(tool="t"), verdict=verdict)
    data = json.loads(codec.dump_question(request))
    (data if where == "question" else data[where])["shiny"] = 1
    with pytest.raises(SchemaError, match="kept with shiny"):
        codec.load_question(json.dumps(data), changing(request))


@pytest.mark.parametrize("text", ['{"kind":"robot","name":"x"}', '{"roles":7,"name":"x"}', "[]", '"x"', "{}"])
def test_what_signoff_does_not_write_is_refused(text: str) -> None:
    with pytest.raises(StoreDamaged, match=r"table decisions: its field by"):
        codec.DECISION.from_text(f'{{"approved":true,"by":{text}}}')


def test_what_is_missing_takes_the_default() -> None:
    assert codec.RUN.from_text('{"id":"r"}') == SavedRun(id="r")
    assert codec.DECISION.from_text('{"approved":false}') == ApprovalDecision(approved=False)
    request = ApprovalRequest(id="r", tool_call_id="c", tool_name="t")
    back = codec.load_question('{"id":"r","tool_call_id":"c","tool_name":"t"}', changing(request))
    assert back == request
    assert back.metadata is not ApprovalRequest.__dataclass_fields__["metadata"].default


def test_a_question_without_its_name_is_refused() -> None:
    request = ApprovalRequest(id="r", tool_call_id="c", tool_name="t")
    with pytest.raises(StoreDamaged, match="table requests, row 'r': its field tool_call_id is missing"):
        codec.load_question('{"id":"r","tool_name":"t"}', changing(request))


def test_a_type_that_is_not_known_is_told_when_it_is_described() -> None:
    @dataclass
    class Odd:
        value: complex = 0j

    with pytest.raises(KeyError, match="complex"):
        codec.StoredShape(Odd)
