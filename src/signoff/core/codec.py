"""What a store keeps, to JSON and back. Only what differs from its default is written; unknown keys are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from operator import attrgetter
from typing import Any, Generic, TypeVar, cast

from signoff.core.call import Call, Veiled
from signoff.core.claim import Claim
from signoff.core.context import EarlierAnswers, PastCall, RequestContext, Tally
from signoff.core.decision import ApprovalDecision, Ending, Keeps, Remember
from signoff.core.grant import Grant
from signoff.core.json_text import read, writer
from signoff.core.loosening import Loosened
from signoff.core.mode import ApprovalMode
from signoff.core.people import Actor, ActorKind, Delegation
from signoff.core.request import ApprovalRequest
from signoff.core.run import EnteredCall, Process, RunSetup, RunState, SavedRun
from signoff.core.terms import ArgCondition, Budget, Fits, Scope, Terms
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.core.vote import Vote
from signoff.errors import SchemaError

T = TypeVar("T")
Data = dict[str, Any]
Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]

VEILED = "veiled"
"""Names of the arguments beside it that stand for a secret."""
CHANGING = frozenset("opened_at deadline escalated state votes decision claim assigned remind_at version".split())
"""Fields of a request that are not part of the question: a store keeps them where it can look for them."""


def _stand_in(value: object) -> object:
    return dict(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else str(value)


# In ASCII, because then even half of a surrogate pair can be kept, and every database takes it.
_text = writer(default=_stand_in)


def dumps(value: object) -> str:
    """Compact JSON. What has no JSON form is kept as its text."""
    try:
        return _text(value)
    except (TypeError, ValueError, RecursionError):  # keys that are no texts, cycles, depth
        return _text(_plain(value, 0))


def _plain(value: object, depth: int) -> object:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth < 50:
        if isinstance(value, Mapping):
            items = cast("Mapping[object, object]", value).items()
            return {str(key): _plain(item, depth + 1) for key, item in items}
        if isinstance(value, list | tuple):
            return [_plain(item, depth + 1) for item in cast("Sequence[object]", value)]
    return str(value) if depth < 50 else "…"


class _Shape(Generic[T]):
    """How one dataclass is written. `codecs` holds what to do with fields that are not JSON as they are."""

    def __init__(
        self, kind: type[T], codecs: Mapping[str, Codec] | None = None, *, leave: str = "", veils: str = ""
    ) -> None:
        codecs = codecs or {}
        self._kind = kind
        self._veils = veils
        parts = [one for one in fields(cast("Any", kind)) if one.name not in leave.split()]
        self._names = [one.name for one in parts]
        self._values = attrgetter(*self._names)
        self._defaults = [one.default if one.default_factory is MISSING else one.default_factory() for one in parts]
        self._out = [codecs[name][0] if name in codecs else None for name in self._names]
        self._back = [(name, back) for name, (_, back) in codecs.items()]
        pairs = zip(self._names, self._defaults, strict=True)
        self.defaults: Data = {name: default for name, default in pairs if default is not MISSING}
        """What fields have that were not written."""

    def dump(self, value: T) -> Data:
        data: Data = {}
        for name, item, default, out in zip(self._names, self._values(value), self._defaults, self._out, strict=True):
            if item is not default and (default is MISSING or item != default):
                data[name] = item if out is None or item is None else out(item)
        if self._veils and (args := data.get(self._veils)):
            veiled = [name for name, item in cast("Data", args).items() if isinstance(item, Veiled)]
            if veiled:
                data[VEILED] = veiled
        return data

    def given(self, data: Any) -> Data:
        """The fields that were written, as they were. May hold others besides."""
        try:
            if self._veils and (veiled := data.pop(VEILED, None)):
                args: Data = data[self._veils]
                args.update({name: Veiled(args[name]) for name in veiled})
            for name, back in self._back:
                if data.get(name) is not None:
                    data[name] = back(data[name])
        except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise SchemaError(
                f"{self._kind.__name__} is kept in a way that signoff does not write: {error!r}"
            ) from error
        return data

    def load(self, data: Any) -> T:
        given = self.given(data)
        try:
            return self._kind(**given)
        except (TypeError, ValueError) as error:
            self.refuse_unknown(given)
            raise SchemaError(f"a {self._kind.__name__} is kept that cannot be one: {error}") from error

    def refuse_unknown(self, given: Data) -> None:
        if unknown := sorted(given.keys() - set(self._names)):
            raise SchemaError(
                f"{self._kind.__name__} is kept with {', '.join(unknown)}, which this signoff does not know; "
                "a newer one wrote it: upgrade signoff"
            )


def _seconds(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


def _sorted(texts: frozenset[str]) -> list[str]:
    return sorted(texts)


def _span(microseconds: int) -> timedelta:
    return timedelta(microseconds=microseconds)


def _part(shape: _Shape[Any]) -> Codec:
    return shape.dump, shape.load


def _choice(kind: type[StrEnum]) -> Codec:
    return str, {one.value: one for one in kind}.__getitem__


_TIME = (datetime.isoformat, datetime.fromisoformat)
_SPAN = (_seconds, _span)
_TUPLE = (list, tuple)
_SET = (_sorted, frozenset)
_NUMBER = (str, Decimal)

_ACTOR = _Shape(Actor, {"kind": _choice(ActorKind), "roles": _SET})
_BUDGET = _Shape(Budget, {"limit": _NUMBER})
_CONDITION = _Shape(ArgCondition, {"fits": _choice(Fits)})


def _pattern_out(pattern: Sequence[ArgCondition]) -> list[Data]:
    return [_CONDITION.dump(one) for one in pattern]


def _pattern_back(data: Sequence[Data]) -> tuple[ArgCondition, ...]:
    return tuple(_CONDITION.load(one) for one in data)


_PATTERN = (_pattern_out, _pattern_back)
_TERMS = _Shape(Terms, {"scope": _choice(Scope), "pattern": _PATTERN, "until": _TIME, "budget": _part(_BUDGET)})
_DECISION = _Shape(
    ApprovalDecision,
    {
        "remember": _choice(Remember),
        "terms": _part(_TERMS),
        "ending": _choice(Ending),
        "by": _part(_ACTOR),
        "at": _TIME,
    },
    veils="edited_args",
)
_VOTE = _Shape(Vote, {"by": _part(_ACTOR), "at": _TIME, "decision": _part(_DECISION), "stands_for": _part(_ACTOR)})
_CLAIM = _Shape(Claim, {"at": _TIME, "ended_at": _TIME})
_GRANT = _Shape(
    Grant,
    {
        "scope": _choice(Scope),
        "pattern": _PATTERN,
        "asked_by": _TUPLE,
        "until": _TIME,
        "budget": _part(_BUDGET),
        "at": _TIME,
        "spent": _NUMBER,
        "revoked_at": _TIME,
    },
)
_SETUP = _Shape(
    RunSetup,
    {
        "mode": _choice(ApprovalMode),
        "other_policies": _TUPLE,
        "ask": _TUPLE,
        "deny": _TUPLE,
        "rules": _TUPLE,
        "files": _TUPLE,
    },
)
_RUN = _Shape(
    SavedRun,
    {
        "setup": _part(_SETUP),
        "entered": _part(_Shape(EnteredCall)),
        "state": _choice(RunState),
        "started_at": _TIME,
        "changed_at": _TIME,
        "heard": _TUPLE,
    },
)
_PROCESS = _Shape(Process, {"seen_at": _TIME})
_DELEGATION = _Shape(Delegation, {"until": _TIME, "since": _TIME})
_REQUIREMENT = _Shape(
    Requirement, {"not_by": _SET, "timeout": _SPAN, "on_timeout": _choice(OnTimeout), "remind": _SPAN}
)
_VERDICT = _Shape(
    Verdict,
    {
        "effect": _choice(Effect),
        "rules": _TUPLE,
        "requirement": _part(_REQUIREMENT),
        "errors": _TUPLE,
        "asked_by": _TUPLE,
    },
)
_CALL = _Shape(
    Call,
    {"worker": _TUPLE, "labels": _SET, "claimed": _SET, "sensitive": _TUPLE, "unreadable": _TUPLE},
    leave="deps",
    veils="args",
)
_PAST = _Shape(PastCall)


def _recent_out(calls: Sequence[PastCall]) -> list[Data]:
    return [_PAST.dump(one) for one in calls]


def _recent_back(data: Sequence[Data]) -> tuple[PastCall, ...]:
    return tuple(_PAST.load(one) for one in data)


_TALLY = _part(_Shape(Tally))
_CONTEXT = _Shape(
    RequestContext,
    {
        "recent": (_recent_out, _recent_back),
        "answers": _part(_Shape(EarlierAnswers, {"call": _TALLY, "target": _TALLY, "tool": _TALLY})),
        "loosened": _part(_Shape(Loosened, {"policies": _TUPLE})),
    },
)
_QUESTION = _Shape(
    ApprovalRequest,
    {
        "verdict": _part(_VERDICT),
        "changed": _TUPLE,
        "secrets": _TUPLE,
        "owners": _TUPLE,
        "context": _part(_CONTEXT),
        "keeps": _choice(Keeps),
    },
    leave=" ".join(CHANGING),
    veils="args",
)


_CALL_DEFAULTS = {**_CALL.defaults, "deps": None}
_CALL_SIZE = len(fields(Call))
_QUESTION_DEFAULTS = _QUESTION.defaults
_REQUEST_FIELDS = {one.name for one in fields(ApprovalRequest)}
_REQUEST_SIZE = len(_REQUEST_FIELDS)


def dump_question(request: ApprovalRequest) -> str:
    """What is asked: everything about a request that does not change. The call's `deps` stay behind."""
    data = _QUESTION.dump(request)
    call = request.call
    if call is not None:  # a request says about its call what the call says; once is enough
        data["call"] = _CALL.dump(call)
        if request.args is call.args or request.args == call.args:
            data.pop("args", None)
            data.pop(VEILED, None)
            data["same"] = True
        if request.tool_name == call.tool:
            del data["tool_name"]
        if request.tool_call_id == call.call_id:
            del data["tool_call_id"]
    return dumps(data)


def load_question(text: str, changing: Mapping[str, Any]) -> ApprovalRequest:
    """A request from its question and all of its fields that change."""
    data = read(text)
    same = data.pop("same", False)
    if "owner" in data:  # as 0.1 wrote them
        data["owners"] = data.pop("owner").split("\n")
    written: Data | None = data.pop("call", None)
    if written is not None:
        made: Data = {**_CALL_DEFAULTS, "args": {}, "resolved": {}, **_CALL.given(written)}
        if len(made) > _CALL_SIZE:
            _CALL.refuse_unknown(written)
        call = data["call"] = Call.made(made)
        data.setdefault("tool_name", call.tool)
        data.setdefault("tool_call_id", call.call_id)
        if same:
            data["args"] = call.args
    given = _QUESTION.given(data)
    request = object.__new__(ApprovalRequest)  # as `changed_to` does, for speed
    held = request.__dict__
    held.update(_QUESTION_DEFAULTS)
    held.update(args={}, metadata={})
    held.update(given)
    held.update(changing)
    if len(held) != _REQUEST_SIZE:
        _QUESTION.refuse_unknown(given)
        raise SchemaError(f"a request is kept without {', '.join(_REQUEST_FIELDS - held.keys())}")
    return request


def dump_vote(vote: Vote) -> str:
    return dumps(_VOTE.dump(vote))


def load_votes(text: str) -> tuple[Vote, ...]:
    """From a JSON array of votes."""
    return tuple(_VOTE.load(one) for one in read(text))


def dump_decision(decision: ApprovalDecision) -> str:
    return dumps(_DECISION.dump(decision))


def load_decision(text: str) -> ApprovalDecision:
    return _DECISION.load(read(text))


def dump_claim(claim: Claim) -> str:
    return dumps(_CLAIM.dump(claim))


def load_claim(text: str) -> Claim:
    return _CLAIM.load(read(text))


def dump_grant(grant: Grant) -> str:
    return dumps(_GRANT.dump(grant))


def load_grant(text: str) -> Grant:
    return _GRANT.load(read(text))


def dump_run(run: SavedRun) -> str:
    return dumps(_RUN.dump(run))


def load_run(text: str) -> SavedRun:
    return _RUN.load(read(text))


def dump_process(process: Process) -> str:
    return dumps(_PROCESS.dump(process))


def load_process(text: str) -> Process:
    return _PROCESS.load(read(text))


def dump_delegation(delegation: Delegation) -> str:
    return dumps(_DELEGATION.dump(delegation))


def load_delegation(text: str) -> Delegation:
    return _DELEGATION.load(read(text))
