"""What a store keeps, to JSON and back. Only what differs from its default is written; unknown keys are refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Generic, TypeVar, cast

from signoff.core.call import Call, Veiled
from signoff.core.claim import Claim
from signoff.core.decision import ApprovalDecision, Ending, Remember
from signoff.core.grant import Grant
from signoff.core.people import Answerer, AnswererKind, Delegation
from signoff.core.request import ApprovalRequest
from signoff.core.run import KeptRun, Process, RunState
from signoff.core.terms import Budget, Condition, Fits, Scope, Terms
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.core.vote import Vote
from signoff.errors import SchemaError

T = TypeVar("T")
Data = dict[str, Any]

VEILED = "veiled"
"""Names of the arguments beside it that stand for a secret."""
CHANGING = frozenset("opened_at deadline escalated state votes decision claim assigned remind_at version".split())
"""Fields of a request that are not part of the question: a store keeps them where it can look for them."""


def _stand_in(value: object) -> object:
    return dict(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else str(value)


# In ASCII, because then even half of a surrogate pair can be kept, and every database takes it.
_text = json.JSONEncoder(separators=(",", ":"), default=_stand_in).encode


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
        self,
        kind: type[T],
        codecs: Mapping[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] | None = None,
        *,
        leave: frozenset[str] = frozenset(),
        veils: str = "",
    ) -> None:
        self._kind = kind
        self._veils = veils
        self._fields: list[tuple[str, Any, Callable[[Any], Any] | None]] = []
        self._readers: dict[str, Callable[[Any], Any] | None] = {}
        for one in fields(cast("Any", kind)):
            if one.name not in leave:
                default = one.default if one.default_factory is MISSING else one.default_factory()
                out, back = (codecs or {}).get(one.name, (None, None))
                self._fields.append((one.name, default, out))
                self._readers[one.name] = back

    def dump(self, value: T) -> Data:
        data: Data = {}
        for name, default, out in self._fields:
            item = getattr(value, name)
            if item is not default and (default is MISSING or item != default):
                data[name] = item if out is None or item is None else out(item)
        if self._veils and (args := data.get(self._veils)):
            veiled = [name for name, item in cast("Data", args).items() if isinstance(item, Veiled)]
            if veiled:
                data[VEILED] = veiled
        return data

    def kwargs(self, data: object) -> Data:
        """The fields that were written, as they were."""
        if not isinstance(data, dict):
            raise SchemaError(f"{self._kind.__name__} is kept as {type(data).__name__}; nothing of signoff writes that")
        given = cast("Data", data)
        if self._veils and (veiled := given.pop(VEILED, None)):
            args: Data = given[self._veils]
            args.update({name: Veiled(args[name]) for name in veiled})
        readers = self._readers
        try:
            for name, item in given.items():
                back = readers[name]
                if back is not None and item is not None:
                    given[name] = back(item)
        except KeyError as error:
            raise SchemaError(
                f"{self._kind.__name__} is kept with {error.args[0]!r}, which this version of signoff does not know; "
                "a newer one wrote it: upgrade signoff"
            ) from error
        return given

    def load(self, data: object) -> T:
        return self._kind(**self.kwargs(data))


def _seconds(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


def _sorted(texts: frozenset[str]) -> list[str]:
    return sorted(texts)


def _span(microseconds: int) -> timedelta:
    return timedelta(microseconds=microseconds)


def _part(shape: _Shape[Any]) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    return shape.dump, shape.load


_TIME = (datetime.isoformat, datetime.fromisoformat)
_SPAN = (_seconds, _span)
_TUPLE = (list, tuple)
_SET = (_sorted, frozenset)
_NUMBER = (str, Decimal)

_ANSWERER = _Shape(Answerer, {"kind": (str, AnswererKind), "roles": _SET})
_BUDGET = _Shape(Budget, {"limit": _NUMBER})
_CONDITION = _Shape(Condition, {"fits": (str, Fits)})


def _pattern_out(pattern: Sequence[Condition]) -> list[Data]:
    return [_CONDITION.dump(one) for one in pattern]


def _pattern_back(data: Sequence[Data]) -> tuple[Condition, ...]:
    return tuple(_CONDITION.load(one) for one in data)


_PATTERN = (_pattern_out, _pattern_back)
_TERMS = _Shape(Terms, {"scope": (str, Scope), "pattern": _PATTERN, "until": _TIME, "budget": _part(_BUDGET)})
_DECISION = _Shape(
    ApprovalDecision,
    {
        "remember": (str, Remember),
        "terms": _part(_TERMS),
        "ending": (str, Ending),
        "by": _part(_ANSWERER),
        "at": _TIME,
    },
    veils="edited_args",
)
_VOTE = _Shape(
    Vote, {"by": _part(_ANSWERER), "at": _TIME, "decision": _part(_DECISION), "stands_for": _part(_ANSWERER)}
)
_CLAIM = _Shape(Claim, {"at": _TIME, "ended_at": _TIME})
_GRANT = _Shape(
    Grant,
    {
        "scope": (str, Scope),
        "pattern": _PATTERN,
        "until": _TIME,
        "budget": _part(_BUDGET),
        "at": _TIME,
        "spent": _NUMBER,
        "revoked_at": _TIME,
    },
)
_RUN = _Shape(KeptRun, {"state": (str, RunState), "started_at": _TIME, "changed_at": _TIME})
_PROCESS = _Shape(Process, {"seen_at": _TIME})
_DELEGATION = _Shape(Delegation, {"until": _TIME, "since": _TIME})
_REQUIREMENT = _Shape(Requirement, {"not_by": _SET, "timeout": _SPAN, "on_timeout": (str, OnTimeout), "remind": _SPAN})
_VERDICT = _Shape(
    Verdict, {"effect": (str, Effect), "rules": _TUPLE, "requirement": _part(_REQUIREMENT), "errors": _TUPLE}
)
_CALL = _Shape(
    Call,
    {"worker": _TUPLE, "labels": _SET, "unreadable": _TUPLE},
    leave=frozenset({"deps"}),
    veils="args",
)
_QUESTION = _Shape(
    ApprovalRequest,
    {"call": _part(_CALL), "verdict": _part(_VERDICT), "changed": _TUPLE},
    leave=CHANGING,
    veils="args",
)


def dump_question(request: ApprovalRequest) -> str:
    """What is asked: everything about a request that does not change. The call's `deps` stay behind."""
    data = _QUESTION.dump(request)
    call = request.call
    if call is not None:  # a request says about its call what the call says; once is enough
        if request.args is call.args or request.args == call.args:
            data.pop("args", None)
            data.pop(VEILED, None)
            data["same"] = True
        if request.tool_name == call.tool:
            del data["tool_name"]
        if request.tool_call_id == call.call_id:
            del data["tool_call_id"]
    return dumps(data)


def load_question(text: str) -> ApprovalRequest:
    """The request as it was when it had just been asked."""
    data = json.loads(text)
    same = data.pop("same", False)
    given = _QUESTION.kwargs(data)
    call: Call | None = given.get("call")
    if call is not None:
        given.setdefault("tool_name", call.tool)
        given.setdefault("tool_call_id", call.call_id)
        if same:
            given["args"] = call.args
    return ApprovalRequest(**given)


def dump_vote(vote: Vote) -> str:
    return dumps(_VOTE.dump(vote))


def load_votes(text: str) -> tuple[Vote, ...]:
    """From a JSON array of votes."""
    return tuple(_VOTE.load(one) for one in json.loads(text))


def dump_decision(decision: ApprovalDecision) -> str:
    return dumps(_DECISION.dump(decision))


def load_decision(text: str) -> ApprovalDecision:
    return _DECISION.load(json.loads(text))


def dump_claim(claim: Claim) -> str:
    return dumps(_CLAIM.dump(claim))


def load_claim(text: str) -> Claim:
    return _CLAIM.load(json.loads(text))


def dump_grant(grant: Grant) -> str:
    return dumps(_GRANT.dump(grant))


def load_grant(text: str) -> Grant:
    return _GRANT.load(json.loads(text))


def dump_run(run: KeptRun) -> str:
    return dumps(_RUN.dump(run))


def load_run(text: str) -> KeptRun:
    return _RUN.load(json.loads(text))


def dump_process(process: Process) -> str:
    return dumps(_PROCESS.dump(process))


def load_process(text: str) -> Process:
    return _PROCESS.load(json.loads(text))


def dump_delegation(delegation: Delegation) -> str:
    return dumps(_DELEGATION.dump(delegation))


def load_delegation(text: str) -> Delegation:
    return _DELEGATION.load(json.loads(text))
