"""Serialize what a store keeps to JSON, and back. Default values are not written; unknown keys are refused.

The type annotation of a field determines how it is written. An unknown type fails when this module is imported.
What is read has the type that was written, or reading it raises `StoreDamaged`: nothing is decided from `"false"`.
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
from signoff.core.terms import Budget, Scope, Terms
from signoff.core.tool_definition import ToolDefinition, ToolPin
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.core.vote import Vote
from signoff.errors import SchemaError, StoreDamaged

T = TypeVar("T")
Data = dict[str, Any]
Encode = Callable[[Any], Any]
Codec = tuple[Encode | None, type, Encode | None]
"""How to write a value, its type in JSON, and how to read it back. Without a function it is the same in both."""
Coded = list[tuple[str, Encode]]
MOST_SOUND = 256
"""How many combinations of fields and types are remembered as sound, for each type that is stored."""

VEILED = "veiled"
"""Key for the names of the arguments that are placeholders for a secret."""
CHANGING = frozenset(
    "opened_at deadline escalated state votes decision claim assigned remind_at waiter version".split()
)
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


def _amount(text: str) -> Decimal:
    if not (amount := Decimal(text)).is_finite():
        raise ValueError(text)
    return amount


def _sorted(texts: frozenset[str]) -> list[str]:
    return sorted(texts)


def _texts(items: list[Any]) -> tuple[str, ...]:
    try:
        "".join(items)  # the fastest way to see that all of them are texts
    except TypeError:
        at, wrong = next((at, one) for at, one in enumerate(items) if type(one) is not str)
        raise wrong_type(wrong, str).within(str(at)) from None
    return tuple(items)


def _text_set(items: list[Any]) -> frozenset[str]:
    return frozenset(_texts(items))


def _permissions(items: list[Any]) -> frozenset[Permission]:
    return frozenset(map(Permission, _texts(items)))


def _mappings(items: list[Any]) -> tuple[Data, ...]:
    for at, one in enumerate(items):
        if type(one) is not dict:
            raise wrong_type(one, dict).within(str(at))
    return tuple(items)


def _text_map(items: Data) -> Data:
    for name, one in items.items():
        if type(one) is not str:
            raise wrong_type(one, str).within(name)
    return items


def _veil(args: Data, names: Any) -> None:
    if type(names) is not list:
        raise wrong_type(names, list)
    for name in _texts(cast("list[Any]", names)):
        if type(text := args[name]) is not str:
            raise wrong_type(text, str).within(name)
        args[name] = Veiled(text)


_TYPES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a whole number",
    float: "a number with a fraction",
    bool: "true or false",
    bytes: "bytes",
    type(None): "nothing",
}


def wrong_type(found: object, due: type) -> StoreDamaged:
    """Make the error for a stored value of the wrong type. It never shows the value: it may be a secret."""
    return StoreDamaged(f"holds {_TYPES.get(type(found), 'a value')} where signoff writes {_TYPES[due]}")


_CHOICES = (
    AapStatus,
    AccessKind,
    ActorKind,
    ApprovalMode,
    CommentKind,
    Effect,
    Ending,
    Keeps,
    OnTimeout,
    Remember,
    RunState,
    Scope,
)
_CODECS: dict[str, Codec] = {
    "Any": (None, object, None),
    "str": (None, str, None),
    "int": (None, int, None),
    "bool": (None, bool, None),
    "Mapping[str, Any]": (None, dict, None),
    "Mapping[str, str]": (None, dict, _text_map),
    "datetime": (datetime.isoformat, str, datetime.fromisoformat),
    "timedelta": (_microseconds, int, _span),
    "Decimal": (str, str, _amount),
    "tuple[str, ...]": (list, list, _texts),
    "tuple[Mapping[str, Any], ...]": (list, list, _mappings),
    "frozenset[str]": (_sorted, list, _text_set),
    "frozenset[Permission]": (_sorted, list, _permissions),
    **{kind.__name__: (str, str, {one.value: one for one in kind}.__getitem__) for kind in _CHOICES},
}
"""How to write and read a field, by its annotation. Each shape below adds its own."""


class StoredShape(Generic[T]):
    """How one dataclass is serialized. The shapes of the types of its fields must be registered before."""

    def __init__(self, kind: type[T], table: str = "", *, leave: str = "", veils: str = "") -> None:
        """`table` is where it is stored, unless it is part of something else."""
        self._kind = kind
        self._table = table
        self._veils = veils
        parts = [one for one in fields(cast("Any", kind)) if one.name not in leave.split()]
        self._names = [one.name for one in parts]
        self._values = attrgetter(*self._names)
        self._defaults = [one.default if one.default_factory is MISSING else one.default_factory() for one in parts]
        # None is written as it is, for every type.
        codecs = [_CODECS[cast("str", one.type).removesuffix(" | None")] for one in parts]
        self._out = [out for out, _, _ in codecs]
        self._reads = {name: (due, back) for name, (_, due, back) in zip(self._names, codecs, strict=True)}
        self._sound: dict[tuple[object, ...], Coded] = {}
        """By names and types of the fields that were written: which to decode. They are checked once, for speed."""
        pairs = zip(self._names, self._defaults, strict=True)
        self.defaults: Data = {name: default for name, default in pairs if default is not MISSING}
        """The values of fields that were not written."""
        _CODECS[kind.__name__] = self.dump, dict, self.load
        _CODECS[f"tuple[{kind.__name__}, ...]"] = self._dump_each, list, self.load_each

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

    def given(self, written: Any) -> Data:
        """Decode the fields that were written, in place. All of them are known, and have the type that is written."""
        if type(written) is not dict:
            raise wrong_type(written, dict)
        data = cast("Data", written)
        name = ""
        try:
            if self._veils and VEILED in data:
                name = VEILED
                _veil(data[self._veils], data.pop(VEILED))
                name = ""
            types = (*data, *map(type, data.values()))
            if (coded := self._sound.get(types)) is None:
                coded = self._checked(data)
                if len(self._sound) >= MOST_SOUND:
                    self._sound.clear()
                self._sound[types] = coded
            for name, back in coded:
                data[name] = back(data[name])
        except StoreDamaged as wrong:
            raise wrong.within(name) from wrong
        except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise StoreDamaged("holds a value that signoff does not write", field=name) from error
        return data

    def _checked(self, data: Data) -> Coded:
        """Return the fields that have to be decoded. Raises for an unknown one, and for one of another type.

        Null is of another type, too: None is always a default, and defaults are not written.
        """
        self._refuse_unknown(data)
        coded: Coded = []
        for name, item in data.items():
            due, back = self._reads[name]
            if type(item) is not due and due is not object:
                raise wrong_type(item, due).within(name)
            if back is not None:
                coded.append((name, back))
        return coded

    def load(self, data: Any) -> T:
        given = self.given(data)
        try:
            return self._kind(**given)
        except (TypeError, ValueError) as error:
            missing = [name for name in self._names if name not in given and name not in self.defaults]
            raise StoreDamaged("is missing" if missing else f"cannot be: {error}", field=", ".join(missing)) from error

    def to_text(self, value: T) -> str:
        return dumps(self.dump(value))

    def from_text(self, text: str) -> T:
        """Raises `StoreDamaged` with the table and, where the text has one, the id."""
        data: Any = None
        try:
            data = read_stored(text)
            return self.load(data)
        except StoreDamaged as wrong:
            raise wrong.within(table=self._table, row=_id_in(data)) from wrong

    def _dump_each(self, values: Sequence[T]) -> list[Data]:
        return [self.dump(one) for one in values]

    def load_each(self, data: Sequence[Any]) -> tuple[T, ...]:
        found = list[T]()
        try:
            for one in data:
                found.append(self.load(one))
        except StoreDamaged as wrong:
            raise wrong.within(str(len(found))) from wrong
        return tuple(found)

    def _refuse_unknown(self, given: Data) -> None:
        if unknown := sorted(given.keys() - set(self._names)):
            raise SchemaError(
                f"{self._kind.__name__} is kept with {', '.join(unknown)}, which this version does not know; "
                "a newer version of signoff wrote it: upgrade signoff"
            )


def read_stored(text: str) -> Any:
    """Parse a stored text. Raises `StoreDamaged` unless it is JSON."""
    try:
        return read(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreDamaged("is not the JSON that signoff writes") from error


def _id_in(data: Any) -> str:
    return found if type(data) is dict and type(found := cast("Data", data).get("id")) is str else ""


_PARTS = (
    Actor,
    Budget,
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
    ToolDefinition,
)
"""Parts of the other types, the innermost first."""
for _part in _PARTS:
    StoredShape[Any](_part)
DECISION = StoredShape(ApprovalDecision, "decisions", veils="edited_args")
VOTE = StoredShape(Vote, "votes")
CLAIM = StoredShape(Claim, "claims")
GRANT = StoredShape(Grant, "grants")
RUN = StoredShape(SavedRun, "runs")
PROCESS = StoredShape(Process, "processes")
DELEGATION = StoredShape(Delegation, "delegations")
ACCESS_KEY = StoredShape(AccessKey, "access_keys")
COMMENT = StoredShape(Comment, "comments")
for _part in (AapDecision, AapOutcome, AapUpdate):
    StoredShape[Any](_part)
AAP_REQUEST = StoredShape(AapRequest, "aap_requests")
AAP_INSTANCE = StoredShape(AapInstance, "aap_instances")
PIN = StoredShape(ToolPin, "settings")
_CALL = StoredShape(Call, leave="deps", veils="args")
_SHOWN = {"comments": (), "shortage": "", "refused": ""}
"""Fields that are filled when a request is loaded to be shown."""
_QUESTION = StoredShape(ApprovalRequest, leave=" ".join((*CHANGING, "call", *_SHOWN)), veils="args")

_CALL_DEFAULTS = {**_CALL.defaults, "deps": None}
_CALL_SIZE = len(fields(Call))
_QUESTION_DEFAULTS = {**_QUESTION.defaults, **_SHOWN}
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
    data: Any = None
    try:
        data = read_stored(text)
        return _question(data, changing)
    except StoreDamaged as wrong:
        raise wrong.within(table="requests", row=_id_in(data)) from wrong


def _question(data: Any, changing: Mapping[str, Any]) -> ApprovalRequest:
    if type(data) is not dict:
        raise wrong_type(data, dict)
    data = cast("Data", data)
    same = data.pop("same", False)
    call: Call | None = None
    if "call" in data:
        call = _call(data.pop("call"))
        data.setdefault("tool_name", call.tool)
        data.setdefault("tool_call_id", call.call_id)
    if same is not False:
        if same is not True or call is None or "args" in data:
            raise StoreDamaged("holds a value that signoff does not write", field="same")
        data["args"] = call.args
    given = _QUESTION.given(data)
    request = object.__new__(ApprovalRequest)  # as `changed_to` does, for speed
    held = request.__dict__
    held.update(_QUESTION_DEFAULTS)
    held.update(args={}, metadata={}, call=call)
    held.update(given)
    held.update(changing)
    if len(held) != _REQUEST_SIZE:
        raise StoreDamaged("is missing", field=", ".join(sorted(_REQUEST_FIELDS - held.keys())))
    return request


def _call(written: Any) -> Call:
    try:
        made: Data = {**_CALL_DEFAULTS, "args": {}, "resolved": {}, **_CALL.given(written)}
    except StoreDamaged as wrong:
        raise wrong.within("call") from wrong
    if len(made) != _CALL_SIZE:
        raise StoreDamaged("is missing", field="call.tool")
    return Call.made(made)


def load_votes(text: str) -> tuple[Vote, ...]:
    """Load votes from a JSON array."""
    try:
        if type(data := read_stored(text)) is not list:
            raise wrong_type(data, list)
        return VOTE.load_each(cast("list[Any]", data))
    except StoreDamaged as wrong:
        raise wrong.within(table="votes") from wrong
