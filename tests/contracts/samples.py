"""What the contract tests put into a store: plain things by number, and one of each with a value in every field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from tests.matches import ANY, below, match, up_to

from signoff.core.aap import AapDecision, AapInstance, AapOutcome, AapRequest, AapStatus, AapUpdate
from signoff.core.access import AccessKey, AccessKind, Permission
from signoff.core.call import Call, Veiled
from signoff.core.canonical import digest
from signoff.core.comment import Comment, CommentKind
from signoff.core.decision import ApprovalDecision, Ending, Remember
from signoff.core.delivery import Delivery, DeliveryState
from signoff.core.grant import Grant
from signoff.core.lifecycle import Claimed, Event, Lost, Succeeded, Voted, advance
from signoff.core.mode import ApprovalMode
from signoff.core.notice import RunResult
from signoff.core.people import Actor, ActorKind, Delegation
from signoff.core.record import START, Checkpoint, Entry, EventDraft, is_link
from signoff.core.request import ApprovalRequest
from signoff.core.request_filter import ListState, RequestFilter
from signoff.core.run import EnteredCall, Process, RunSetup, RunState, SavedRun, Segment
from signoff.core.subject import Subject, SubjectKind
from signoff.core.terms import Budget, Scope, Terms
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.ports import Transaction

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ANA = Actor(name="ana", roles=frozenset({"ops", "dev"}), via="terminal")
YES = ApprovalDecision(approved=True)

TEXT = "Zürich 東京 🦔 e\u0301 \u202eevil\u202c \u200b 'quoted' \"double\" \\ %s %(x)s ? {s} $1 :name\n\t\r\x00\x1b[31m"
"""What breaks careless quoting, escaping and encoding, a NUL included."""
HALF = f"{TEXT} \ud83e"
"""With half of a surrogate pair, which is in no encoding: models write it."""
ARGS: dict[str, Any] = {
    "text": TEXT,
    "naïve key": [1, -1, 0, 2**53 + 1, 10**300, -(10**40)],
    "floats": [0.1, 1e-300, 1e300, -0.5],
    "nested": {"deep": [{"list": [[], {}, None, True, False, ""]}], "": "an empty key"},
    "secret": Veiled("<secret 0123456789abcdef>"),
}


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def request(number: int = 1, **fields: Any) -> ApprovalRequest:
    """A pending request, opened `number` seconds after noon unless said otherwise."""
    name = fields.pop("name", f"r{number:04}")
    conversation = fields.pop("conversation", "conversation")
    call = Call(tool="deploy", args={"n": number}, call_id=name, run_id="run", conversation_id=conversation)
    given: dict[str, Any] = {
        "id": name,
        "tool_call_id": name,
        "tool_name": "deploy",
        "args": call.args,
        "call": call,
        "title": f"deploy {number}",
        "opened_at": at(number),
    }
    return ApprovalRequest(**{**given, **fields})


def approved(one: ApprovalRequest) -> ApprovalRequest:
    return advance(one, Voted(ANA, YES), at(2_000))


def claimed(one: ApprovalRequest, holder: str = "p1") -> ApprovalRequest:
    return advance(one, Claimed(holder), at(2_001))


def lost(one: ApprovalRequest) -> ApprovalRequest:
    return advance(one, Lost(), at(2_002))


def steps(one: ApprovalRequest, *events: Event) -> ApprovalRequest:
    for event in events:
        one = advance(one, event, at(2_000))
    return one


RICH_CALL = Call(
    tool="transfer",
    args=ARGS,
    toolset="bänk",
    worker=("triage", "analyzer"),
    labels=frozenset({"money", "net.egress"}),
    deps=object(),
    resolved={"a/b": "/srv/a/b"},
    unreadable=("handle: a socket",),
    call_id="call-1",
    run_id="run-1",
    conversation_id="conversation-1",
    path="a-1/b-2/call-1",
    schema_hash=digest("schema"),
)
REQUIREMENT = Requirement(
    role="ops",
    quorum=2,
    escalate_quorum=2,
    not_by=frozenset({"requester", "owner"}),
    timeout=timedelta(minutes=15, microseconds=1),
    on_timeout=OnTimeout.ESCALATE,
    escalate_to="boss",
    veto="security",
    remind=timedelta(minutes=5),
    message="Two ops people, please 🙏",
    irreversible=True,
)
RICH_TERMS = Terms(
    scope=Scope.WORKER,
    match=match(path=below("a/b"), amount=up_to(19.99), flag=False, list=[1, {"x": None}, TEXT], text=ANY),
    until=datetime(2027, 3, 1, 8, 30, 0, 123_456, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    max_uses=0,
    budget=Budget(arg="amount", limit=Decimal("200.10"), daily=True),
)
EDITED = ApprovalDecision(
    approved=True, note=HALF, edited_args={**ARGS, "more": 1}, remember=Remember.ALWAYS, terms=RICH_TERMS
)
BEN = Actor(name="Bén", kind=ActorKind.PERSON, roles=frozenset({"dev"}), via="web")
EVE = Actor(name="eve", roles=frozenset({"ops"}))


def rich_request(name: str = "rich") -> ApprovalRequest:
    """A request with a value in every field but those that come later in its life."""
    return ApprovalRequest(
        id=name,
        tool_call_id="call-1",
        tool_name="transfer",
        args=ARGS,
        metadata={"summary": HALF, "diff": ["-a", "+b"], "n": 10**30},
        summary="Überweisung 🦔",
        call=RICH_CALL,
        verdict=Verdict(
            effect=Effect.ASK, rules=("policy[3]", "bank[0]"), reason=HALF, requirement=REQUIREMENT, errors=("oops",)
        ),
        policy_revision=digest("policy"),
        schema={"type": "object", "properties": {"text": {"type": "string", "maxLength": 10}}},
        changed=("request q1 was approved by ana, but the policy changed since it was asked",),
        problem="amount: too large",
        opened_at=datetime(2026, 1, 1, 12, 0, 0, 1, tzinfo=UTC),
        deadline=at(900),
        requester="rita",
        owners=("otto", "Ottilie"),
        run="run-row-1",
        title="transfer 1 € to Zürich",
        assigned="",
        remind_at=at(600),
    )


def rich_life() -> list[ApprovalRequest]:
    """A request through its life, one version after the other, ending claimed, with an outcome."""
    asked = rich_request()
    escalated = asked.changed_to(escalated=True, assigned="Bén", waiter="wäiter", version=1)
    freed = escalated.changed_to(assigned="", deadline=None, remind_at=None, version=2)
    boss = Actor(name="boss", roles=frozenset({"boss"}), via="api")
    chief = Actor(name="chief", roles=frozenset({"boss", "ops"}))
    first = advance(freed, Voted(BEN, EDITED, (boss,)), at(10))
    second = advance(first, Voted(chief, EDITED), at(20.000_001))
    running = advance(second, Claimed("process-1"), at(21))
    done = advance(running, Succeeded(digest("result"), HALF), at(22))
    assert done.decision is not None and done.claim is not None and done.votes[0].stands_for == boss
    return [asked, escalated, freed, first, second, running, done]


RICH_ENDINGS = (
    ApprovalDecision(approved=False, note="too late", ending=Ending.EXPIRED, at=at(5)),
    ApprovalDecision(approved=False, ending=Ending.CANCELLED, by=ANA, at=at(5)),
    ApprovalDecision(approved=True, by=Actor(name="auto", kind=ActorKind.MODE), remember=Remember.SESSION),
)

RICH_GRANT = Grant(
    id="g-rich",
    tool="transfer",
    memory_key="",
    approved=True,
    scope=Scope.WORKER,
    schema_hash=digest("schema"),
    toolset="bänk",
    where="triage > analyzer",
    match=RICH_TERMS.match,
    until=RICH_TERMS.until,
    max_uses=3,
    budget=Budget(arg="amount", limit=Decimal("1E+2")),
    by="ana",
    at=at(0.5),
    note=HALF,
    summary="transfer 1 € to Zürich",
    used=2,
    spent=Decimal("12.340"),
    spent_on="2026-01-01",
    revoked_at=at(60),
    revoked_by="Bén",
)

RICH_RUN = SavedRun(
    id="run-rich",
    conversation_id="conversation-1",
    agent="app.agents:triage",
    prompt=HALF,
    setup=RunSetup(
        policy="signoff.yaml",
        directory="/srv/bäckup dir",
        other_policies=("loose.yaml", TEXT),
        mode=ApprovalMode.AUTO_DENY,
        deny=("rm", "dd"),
        input={"n": [1, None, {"x": 2**70}]},
        chat=True,
    ),
    entered=EnteredCall(tool="ask_clerk", args_digest="a", schema_hash="s", policy_revision="p"),
    requester="rita",
    state=RunState.FAILED,
    epoch=7,
    holder="process-1",
    started_at=at(0.000_001),
    changed_at=at(99),
    tip=digest("tip"),
    rest='{"usage": {"n": 1}, "text": "🦔"}',
    format=99,
    detail=HALF,
)
CHECKPOINT = Checkpoint(seq=0, hash=START, at="2026-01-01T12:00:00.000000Z", key="ab" * 32, signature="cd" * 64)
PROCESS = Process(id="process-1", host="höst/1234/5678", pid=2**22, born="123456789", seen_at=at(1.5))


def run(number: int, **fields: Any) -> SavedRun:
    return SavedRun(**{"id": f"run{number:04}", "started_at": at(number), **fields})


def grant(number: int, **fields: Any) -> Grant:
    given: dict[str, Any] = {"tool": "deploy", "memory_key": f"key{number}", "approved": True, "scope": Scope.PROJECT}
    return Grant(**{"id": f"g{number:04}", **given, **fields})


def segment(parent: str, body: bytes) -> Segment:
    return Segment(id=digest([parent, body.hex()]), parent=parent, count=len(body), body=body)


SEGMENTS = [segment("", b"1"), segment("", b"2")]
SEGMENTS += [segment(SEGMENTS[0].id, b"3"), segment(SEGMENTS[0].id, b"4")]
SEGMENTS += [segment(SEGMENTS[2].id, b"5")]


def draft(number: int = 1, **fields: Any) -> EventDraft:
    return EventDraft(**{"kind": "judged", "at": at(number), "body": {"n": number}, **fields})


def delegation(absent: str, deputy: str, since: float, until: float) -> Delegation:
    return Delegation(absent=absent, deputy=deputy, since=at(since), until=at(until), by="böss")


def access_key(number: int, **fields: Any) -> AccessKey:
    given = {"id": f"key-{number}", "digest": f"digest-{number}", "kind": AccessKind.TOKEN, "holder": "ana"}
    return AccessKey(**{**given, "created_at": NOON, "expires_at": at(1_000), **fields})


def aap_request(number: int, **fields: Any) -> AapRequest:
    given = {"id": f"aap-{number}", "instance": "instance-1", "key": f"attempt-{number}", "asked": "digest"}
    return AapRequest(**{**given, "body": "{}", "created_at": NOON, "deadline": at(100 + number), **fields})


def aap_instance(number: int, **fields: Any) -> AapInstance:
    given = {"id": f"instance-{number}", "name": "bot", "access": f"key-{number}", "owner": "ana", "created_at": NOON}
    return AapInstance(**{**given, **fields})


AAP_APPROVED = AapDecision(status=AapStatus.APPROVED, at=at(1), expires_at=at(600))
RICH_AAP_REQUEST = aap_request(
    9,
    key=HALF,
    body='{"arguments": {"a": 1.50, "b": "\\ud800\\u0000 🦔"}, "tool": "x"}',
    request="r0001",
    grant="g0001",
    decision=AapDecision(status=AapStatus.APPROVED, at=at(1), note=HALF, expires_at=at(600)),
    consumed_at=at(2),
    consumed_as=HALF,
    outcome=AapOutcome(succeeded=False, at=at(3), note=HALF),
)
RICH_AAP_INSTANCE = aap_instance(
    9,
    name=HALF,
    owner=HALF,
    provisioner=HALF,
    key="made-once",
    asked="digest",
    updates=(AapUpdate(key=HALF, asked="other", at=at(4), name="more"),),
    revoked_at=at(5),
    revoked_by=HALF,
)


RICH_KEY = AccessKey(
    id="key-9",
    kind=AccessKind.SESSION,
    digest="digest-9",
    holder=HALF,
    is_program=True,
    label=HALF,
    permissions=frozenset({Permission.READ, Permission.RUN}),
    created_at=NOON,
    created_by=HALF,
    expires_at=at(9),
    used_at=at(2),
    revoked_at=at(3),
)


def comment(about: str, text: str, **fields: Any) -> Comment:
    return Comment(**{"id": "c1", "request": about, "by": ANA, "at": NOON, "text": text, **fields})


RICH_COMMENT = comment(HALF, HALF, kind=CommentKind.ANSWER, answers="c0")

RICH_DELIVERY = Delivery(
    channel="dïscord",
    subject=Subject(SubjectKind.RESULT, HALF),
    trail=HALF,
    state=DeliveryState.FAILED,
    place="112233445566778899/998877665544332211",
    shown=2**40,
    live=False,
    attempts=7,
    since=at(0.000_001),
    may_stand=True,
    hopeless=True,
    due=at(61).astimezone(timezone(timedelta(hours=-11))),
    problem=HALF,
    result=RunResult(run=HALF, state=RunState.CANCELLED, worker=TEXT, text="🦔\x00" + HALF),
)


def delivery(number: int, **fields: Any) -> Delivery:
    """The request of that number, due in one channel."""
    subject = Subject(SubjectKind.REQUEST, f"r{number:04}")
    return Delivery(**{"channel": "discord", "subject": subject, "trail": "run0001", **fields})


def everything(tx: Transaction) -> dict[str, Any]:
    """All that can be read, in one go."""
    requests = [tx.requests.get(one) for one in tx.requests.like("r", limit=1_000)]
    grants = list(tx.grants.all(revoked=True))
    tools = sorted({(one.tool, one.memory_key) for one in grants})
    runs = list(tx.runs.all())
    return {
        "ids": [*tx.requests.like("", limit=1_000), *tx.runs.like("", limit=1_000)],
        "requests": requests,
        "about": {
            key: tx.requests.about(key) for key in sorted({one.call.key for one in requests if one and one.call})
        },
        "before": {one.id: tx.past.before(one.call) for one in requests if one and one.call},
        "open_requests": list(tx.queue.open()),
        "inbox": list(tx.queue.page(limit=1_000)),
        "lists": [list(tx.listings.page(RequestFilter(state=one), limit=1_000)) for one in ListState],
        "recent": [ids_in_order(tx.past.recent(limit=1_000)), list(tx.past.recent(limit=2))],
        "of_run": {run.id: list(tx.requests.of(run=run.id)) for run in runs},
        "of_conversation": list(tx.requests.of(conversation_id="conversation")),
        "due": {seconds: list(tx.queue.due(at(seconds))) for seconds in (0, 10, 100, 10_000)},
        "claimed": sorted(tx.queue.claimed()),
        "awaited": sorted(tx.queue.awaited()),
        "results": {one.id: tx.results.get(one.id) for one in requests if one},
        "grants": [list(tx.grants.all()), grants, [tx.grants.get(one.id) for one in grants]],
        "grants_about": {f"{tool} {key}": ids(tx.grants.about(tool, key)) for tool, key in tools},
        "runs": [runs, list(tx.runs.all(going=True)), [tx.runs.get(one.id) for one in runs]],
        "segments": [list(tx.segments.chain(one.id)) for one in SEGMENTS],
        "processes": [tx.processes.get(f"process-{n}") for n in range(5)],
        "delegations": {seconds: list(tx.delegations.current(at(seconds))) for seconds in (0, 5, 10, 20)},
        "deliveries": deliveries(tx),
        "head": tx.record.head(),
        "entries": list(tx.record.entries()),
        "touched": list(tx.record.touched(0)),
        "checkpoints": list(tx.checkpoints.all()),
        "leases": list(tx.leases.all()),
        "readers": [tx.readers.has("r0001", "digest", person) for person in ("ana", "ben")],
        "policies": {name: tx.policies.get(name) for name in ("one", "two")},
        "conversations": [tx.conversations.get(name) for name in ("discord:1", "discord:2")],
        "access_keys": [
            list(tx.access_keys.all()),
            list(tx.access_keys.all(kind=AccessKind.TOKEN)),
            list(tx.access_keys.all(holder="ana")),
            [tx.access_keys.get(f"key-{n}") for n in range(4)],
            [tx.access_keys.by_digest(f"digest-{n}") for n in range(4)],
        ],
        "comments": {name: list(tx.comments.of(name)) for name in ("r0001", "r0002")},
        "replies": {name: tx.replies.get("ana", name) for name in ("first", "second")},
        "aap_requests": [
            [tx.aap_requests.get(f"aap-{n}") for n in range(5)],
            [tx.aap_requests.by_key("instance-1", f"attempt-{n}") for n in range(5)],
            list(tx.aap_requests.going("instance-1")),
            tx.aap_requests.waiting("instance-1"),
            list(tx.aap_requests.due(at(10_000))),
        ],
        "aap_instances": [list(tx.aap_instances.all()), tx.aap_instances.by_key("cron", "made-1")],
        "settings": {name: tx.settings.get(name) for name in ("name", "new", "dropped")},
    }


def deliveries(tx: Transaction) -> dict[str, Any]:
    """All of them, and by each that they are found by."""
    stored = list(tx.deliveries.find())
    channels, trails = (sorted({getattr(one, name) for one in stored}) for name in ("channel", "trail"))
    requests = sorted({one.subject.about for one in stored})
    return {
        "all": stored,
        "one by one": [tx.deliveries.get(one.channel, one.subject) for one in stored],
        "live": list(tx.deliveries.find(live=True)),
        "of channel": [tx.deliveries.find(channel=one, live=live) for one in channels for live in (False, True)],
        "of trail": [tx.deliveries.find(trail=one, live=live) for one in trails for live in (False, True)],
        "of request": [tx.deliveries.find(request=one, live=live) for one in requests for live in (False, True)],
        "of two": [tx.deliveries.find(channel=one, trail=other) for one in channels for other in trails],
    }


def ids_in_order(found: Iterable[Any]) -> list[str]:
    return [one.id for one in found]


def ids(found: Iterable[Any]) -> list[str]:
    return sorted(one.id for one in found)


def chained(entries: Sequence[Entry]) -> None:
    """Numbered without gaps, each with the hash of the one before."""
    before, link = 0, START
    for entry in entries:
        assert (entry.seq, entry.prev) == (before + 1, link)
        assert is_link(entry)
        before, link = entry.seq, entry.hash
