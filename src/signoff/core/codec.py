"""Serialize what a store keeps to JSON, and back. Default values are not written; unknown keys are refused.

The type annotation of a field determines how it is written. An unknown type fails when this module is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any, Generic, TypeVar, cast

from signoff.core.aap import AapDecision, AapInstance, AapOutcome, AapRequest, AapStatus, AapUpdate
from signoff.core.access import AccessKey, AccessKind, Permission
from signoff.core.call import Call, Veiled
from signoff.core.claim import Claim
from signoff.core.comment import Comment, CommentKind
from signoff.core.decision import ApprovalDecision, Ending, Keeps, Remember
from signoff.core.grant import Grant
from signoff.core.json_text import read, writer
from signoff.core.loosening import Loosened
from signoff.core.mode import ApprovalMode
from signoff.core.people import Actor, ActorKind, Delegation
from signoff.core.request import ApprovalRequest
from signoff.core.request_context import EarlierAnswers, PastCall, RequestContext, Tally
from signoff.core.run import EnteredCall, Process, RunSetup, RunState, SavedRun
from signoff.core.terms import ArgCondition, Budget, Fits, Scope, Terms
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.core.vote import Vote
from signoff.errors import SchemaError

T = TypeVar("T")
Data = dict[str, Any]
Codec = tuple[Callable[[Any], Any], Callable[[Any], Any]]

VEILED = "veiled"
"""Key for the names of the arguments that are placeholders for a secret."""
CHANGING = frozenset("opened_at deadline escalated state votes decision claim assigned remind_at version".split())
"""Fields of a request that change: a store keeps them in columns of their own, where it can query them."""


def _stand_in(value: object) -> object:
    return dict(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else str(value)


# ASCII only, so that lone surrogates can be stored, and in every database.
_text = writer(default=_stand_in)


def dumps(value: object) -> str:
    """Serialize to compact JSON. Values without a JSON form are written as text."""
    try:
        return _text(value)
    except (TypeError, ValueError, RecursionError):  # keys that are not strings, cycles, too deep
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


def _microseconds(span: timedelta) -> int:
    return span // timedelta(microseconds=1)


def _span(microseconds: int) -> timedelta:
    return timedelta(microseconds=microseconds)


def _sorted(texts: frozenset[str]) -> list[str]:
    return sorted(texts)


_CHOICES = (
    AapStatus,
    AccessKind,
    ActorKind,
    ApprovalMode,
    CommentKind,
    Effect,
    Ending,
    Fits,
    Keeps,
    OnTimeout,
    Remember,
    RunState,
    Scope,
)
_AS_IT_IS = frozenset(("Any", "str", "int", "bool", "Mapping[str, Any]", "Mapping[str, str]"))
_CODECS: dict[str, Codec] = {
    "datetime": (datetime.isoformat, datetime.fromisoformat),
    "timedelta": (_microseconds, _span),
    "Decimal": (str, Decimal),
    "tuple[str, ...]": (list, tuple),
    "frozenset[str]": (_sorted, frozenset),
    "frozenset[Permission]": (_sorted, lambda names: frozenset(map(Permission, names))),
    **{kind.__name__: (str, {one.value: one for one in kind}.__getitem__) for kind in _CHOICES},
}
"""How to write and read a field, by its annotation. Each shape below adds its own."""


def _codec_of(annotation: str) -> Codec | None:
    name = annotation.removesuffix(" | None")  # None is written as it is, for every type
    return None if name in _AS_IT_IS else _CODECS[name]


class _Shape(Generic[T]):
    """How one dataclass is serialized. The shapes of the types of its fields must be registered before."""

    def __init__(self, kind: type[T], *, leave: str = "", veils: str = "") -> None:
        self._kind = kind
        self._veils = veils
        parts = [one for one in fields(cast("Any", kind)) if one.name not in leave.split()]
        self._names = [one.name for one in parts]
        self._values = attrgetter(*self._names)
        self._defaults = [one.default if one.default_factory is MISSING else one.default_factory() for one in parts]
        codecs = [_codec_of(cast("str", one.type)) for one in parts]
        self._out = [codec and codec[0] for codec in codecs]
        self._back = [(name, codec[1]) for name, codec in zip(self._names, codecs, strict=True) if codec]
        pairs = zip(self._names, self._defaults, strict=True)
        self.defaults: Data = {name: default for name, default in pairs if default is not MISSING}
        """The values of fields that were not written."""
        _CODECS[kind.__name__] = self.dump, self.load
        _CODECS[f"tuple[{kind.__name__}, ...]"] = self._dump_each, self._load_each

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
        """Decode the fields that were written. The result may have unknown keys."""
        try:
            if self._veils and (veiled := data.pop(VEILED, None)):
                args: Data = data[self._veils]
                args.update({name: Veiled(args[name]) for name in veiled})
            for name, back in self._back:
                if data.get(name) is not None:
                    data[name] = back(data[name])
        except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise SchemaError(
                f"{self._kind.__name__} is stored in a format that signoff does not write: {error!r}"
            ) from error
        return data

    def load(self, data: Any) -> T:
        given = self.given(data)
        try:
            return self._kind(**given)
        except (TypeError, ValueError) as error:
            self.refuse_unknown(given)
            raise SchemaError(f"a {self._kind.__name__} is kept that cannot be one: {error}") from error

    def to_text(self, value: T) -> str:
        return dumps(self.dump(value))

    def from_text(self, text: str) -> T:
        return self.load(read(text))

    def _dump_each(self, values: Sequence[T]) -> list[Data]:
        return [self.dump(one) for one in values]

    def _load_each(self, data: Sequence[Data]) -> tuple[T, ...]:
        return tuple(self.load(one) for one in data)

    def refuse_unknown(self, given: Data) -> None:
        if unknown := sorted(given.keys() - set(self._names)):
            raise SchemaError(
                f"{self._kind.__name__} is kept with {', '.join(unknown)}, which this version does not know; "
                "a newer version of signoff wrote it: upgrade signoff"
            )


_PARTS = (
    Actor,
    Budget,
    ArgCondition,
    Terms,
    RunSetup,
    EnteredCall,
    Requirement,
    Verdict,
    PastCall,
    Tally,
    EarlierAnswers,
    Loosened,
    RequestContext,
)
"""Parts of the other types, the innermost first."""
for _part in _PARTS:
    _Shape[Any](_part)
_DECISION = _Shape(ApprovalDecision, veils="edited_args")
_VOTE = _Shape(Vote)
_CLAIM = _Shape(Claim)
_GRANT = _Shape(Grant)
_RUN = _Shape(SavedRun)
_PROCESS = _Shape(Process)
_DELEGATION = _Shape(Delegation)
_ACCESS_KEY = _Shape(AccessKey)
_COMMENT = _Shape(Comment)
for _part in (AapDecision, AapOutcome, AapUpdate):
    _Shape[Any](_part)
_AAP_REQUEST = _Shape(AapRequest)
_AAP_INSTANCE = _Shape(AapInstance)
_CALL = _Shape(Call, leave="deps", veils="args")
_QUESTION = _Shape(ApprovalRequest, leave=" ".join((*CHANGING, "call", "comments")), veils="args")

_CALL_DEFAULTS = {**_CALL.defaults, "deps": None}
_CALL_SIZE = len(fields(Call))
_QUESTION_DEFAULTS = {**_QUESTION.defaults, "comments": ()}
_REQUEST_FIELDS = {one.name for one in fields(ApprovalRequest)}
_REQUEST_SIZE = len(_REQUEST_FIELDS)


def dump_question(request: ApprovalRequest) -> str:
    """Serialize the part of a request that never changes. The call's `deps` are left out."""
    data = _QUESTION.dump(request)
    call = request.call
    if call is not None:  # tool, arguments and call id are also in the call: write them once
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
    """Load a request from its unchanging part and from all of its fields that change."""
    data = read(text)
    same = data.pop("same", False)
    if "owner" in data:  # the format of 0.1
        data["owners"] = data.pop("owner").split("\n")
    call: Call | None = None
    if (written := data.pop("call", None)) is not None:
        made: Data = {**_CALL_DEFAULTS, "args": {}, "resolved": {}, **_CALL.given(written)}
        if len(made) > _CALL_SIZE:
            _CALL.refuse_unknown(written)
        call = Call.made(made)
        data.setdefault("tool_name", call.tool)
        data.setdefault("tool_call_id", call.call_id)
        if same:
            data["args"] = call.args
    given = _QUESTION.given(data)
    request = object.__new__(ApprovalRequest)  # as `changed_to` does, for speed
    held = request.__dict__
    held.update(_QUESTION_DEFAULTS)
    held.update(args={}, metadata={}, call=call)
    held.update(given)
    held.update(changing)
    if len(held) != _REQUEST_SIZE:
        _QUESTION.refuse_unknown(given)
        raise SchemaError(f"a request is kept without {', '.join(_REQUEST_FIELDS - held.keys())}")
    return request


def load_votes(text: str) -> tuple[Vote, ...]:
    """Load votes from a JSON array."""
    return tuple(_VOTE.load(one) for one in read(text))


dump_vote = _VOTE.to_text
dump_decision, load_decision = _DECISION.to_text, _DECISION.from_text
dump_claim, load_claim = _CLAIM.to_text, _CLAIM.from_text
dump_grant, load_grant = _GRANT.to_text, _GRANT.from_text
dump_run, load_run = _RUN.to_text, _RUN.from_text
dump_process, load_process = _PROCESS.to_text, _PROCESS.from_text
dump_delegation, load_delegation = _DELEGATION.to_text, _DELEGATION.from_text
dump_access_key, load_access_key = _ACCESS_KEY.to_text, _ACCESS_KEY.from_text
dump_comment, load_comment = _COMMENT.to_text, _COMMENT.from_text
dump_aap_request, load_aap_request = _AAP_REQUEST.to_text, _AAP_REQUEST.from_text
dump_aap_instance, load_aap_instance = _AAP_INSTANCE.to_text, _AAP_INSTANCE.from_text
