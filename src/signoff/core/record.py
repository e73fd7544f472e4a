"""The audit log as a hash chain: every event holds the hash of the one before.

Pure functions that make and verify the links; nothing is stored here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from json import JSONDecoder
from json.encoder import encode_basestring as _quoted
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, cast

from signoff.core.canonical import canonical
from signoff.core.counted import counted
from signoff.core.json_text import read
from signoff.errors import CannotCanonicalise, RecordBroken

_SAFE_INT = 2**53

START = "0" * 64
"""The previous hash of the first event."""


KINDS: Mapping[str, str] = {
    "allowed": "policy allows a call without a question",
    "remembered": "an earlier answer of a person covers a call",
    "reviewed": "another capability of the agent approved a call, and is trusted to",
    "auto_approved": "the mode lets a call run that policy would ask about",
    "denied": "policy refuses a call, or the mode, or an earlier answer of a person",
    "asked": "a request was opened",
    "opened": "somebody opened the full text of a long call",
    "assigned": "a request was taken, assigned or released",
    "reminded": "people were reminded that the deadline is near",
    "dated": "a channel with a timeout has shown it, and its rule has no timeout",
    "escalated": "nobody answered in time: others are asked",
    "parked": "nobody answered in time: it stays open without a deadline",
    "voted": "somebody answered",
    "settled": "a request has its answer: approved, denied, expired or cancelled",
    "claimed": "the approval is used: the tool is about to run",
    "handed over": "the approval is used by a program that runs the call itself",
    "entered": "a call only waits for its inner runs",
    "returned": "a claim was given back before the call started: its approval is valid again",
    "paused": "a call was suspended with its inner run, and is claimed again when that resumes",
    "ran": "the tool returned",
    "failed": "the tool raised",
    "unknown": "a call was cut off, or its process died: its outcome is unknown",
    "late outcome": "the outcome of a call arrived after it was marked as unknown",
    "told": "a person reported the outcome of an unknown call",
    "commented": "somebody commented on a request, asked a question or replied",
    "granted": "an answer is remembered for later calls",
    "grant used": "a remembered answer with a limit was used",
    "revoked": "a remembered answer was revoked",
    "delegated": "a deputy was named for an absent person",
    "delegation ended": "a delegation ended",
    "run started": "a run began",
    "run resumed": "a process resumes a run",
    "run ended": "a run is done, failed or was cancelled",
    "access given": "a link, a session or a token was created",
    "access revoked": "a link, a session or a token was revoked",
    "rule written": "signoff wrote a rule to the policy file: for whom, and its text",
    "tool accepted": "the definition of a tool of another server was accepted, by an approval or a rule",
    "halted": "somebody halted the store (kill switch)",
    "unhalted": "somebody lifted the halt",
}
"""The events in the audit log: what each `kind` means."""


class EventDraft(NamedTuple):
    """An event that has no place in the hash chain yet. It holds no secrets."""

    kind: str
    at: datetime
    request: str = ""
    run: str = ""
    body: Mapping[str, Any] = MappingProxyType({})


class Entry(NamedTuple):
    """An event in the hash chain. Its fields are in the order of the store's columns.

    The chain holds a digest of each field of the body, not the body. So a field can be erased later, with its salt,
    and the chain still verifies; without the salt nobody can find out by guessing what was erased.
    """

    seq: int
    """1, 2, 3 … without gaps."""
    at: str
    kind: str
    request: str
    run: str
    body: str
    """What happened: a JSON object without the fields that were erased."""
    salts: str
    """The salt of each field of the body, in hex: a JSON object."""
    digests: str
    """The digest of each field that the body ever had, in hex: canonical JSON."""
    prev: str
    hash: str


class Checkpoint(NamedTuple):
    """A signature over all events up to one. Its fields are in the order of the store's columns."""

    seq: int
    hash: str
    at: str
    key: str
    """The public key, in hex."""
    signature: str
    """Ed25519 over `signed_text`, in hex."""


SALT = 16
"""Bytes of salt for each field."""


def linked(draft: EventDraft, seq: int, prev: str, salt: bytes) -> Entry:
    """Link the event into the chain as number `seq`, after the event whose hash is `prev`.

    `salt` is random: `SALT` bytes for each field of the body.
    """
    try:
        return _linked(draft, draft.body, seq, prev, salt)
    except (CannotCanonicalise, TypeError, RecursionError):
        # An event is never lost because of its content: a value without a JSON form is written as text.
        return _linked(draft, _readable(draft.body, 0), seq, prev, salt)


def _linked(draft: EventDraft, body: Mapping[str, Any], seq: int, prev: str, salt: bytes) -> Entry:
    at, hexes, place = timestamp(draft.at), salt.hex(), 0
    texts, salts, digests = list[str](), list[str](), list[str]()
    for name in _in_order(body):
        text, quoted = _field(body[name]), _quoted(name)
        own = hexes[place : place + 2 * SALT]
        place += 2 * SALT
        texts.append(f"{quoted}:{text}")
        salts.append(f'{quoted}:"{own}"')
        digests.append(f'{quoted}:"{_digest(own, text)}"')
    parts = (f"{{{','.join(texts)}}}", f"{{{','.join(salts)}}}", f"{{{','.join(digests)}}}")
    link = hash_of(seq, at, draft.kind, draft.request, draft.run, parts[-1], prev)
    return Entry(seq, at, draft.kind, draft.request, draft.run, *parts, prev, link)


def _in_order(body: Mapping[str, Any]) -> list[str]:
    """The names of fields as canonical JSON sorts them."""
    if "".join(body).isascii():
        return sorted(body)
    return sorted(body, key=lambda name: name.encode("utf-16-be", "surrogatepass"))


def _field(value: object) -> str:
    if type(value) is str:
        return _quoted(value)
    if type(value) is bool:
        return "true" if value else "false"
    text = canonical(value)
    if _BIG.search(text):
        try:
            _read(text)
        except ValueError:
            raise CannotCanonicalise("an integer is larger than JSON has them") from None
        if type(value) is int:
            raise CannotCanonicalise("an integer is larger than JSON has them")
    return text


_BIG = re.compile(r"[0-9]n")
"""The end of an integer that only canonical JSON has, or something in a text that looks like one: it does no harm."""


def _digest(salt: str, text: str) -> str:
    try:
        return sha256(f"{salt}\n{text}".encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise CannotCanonicalise("a text holds half of a surrogate pair, which is not Unicode") from error


def timestamp(moment: datetime) -> str:
    """Format a moment as the audit log does: UTC, always with microseconds, so that texts sort by time."""
    utc = moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    return f"{utc.isoformat(timespec='microseconds')[:-6]}Z"


def hash_of(seq: int, at: str, kind: str, request: str, run: str, digests: str, prev: str) -> str:
    """SHA-256 over the event's canonical JSON, without its own hash. `digests` is canonical already."""
    if type(at) is type(kind) is type(prev) is type(request) is type(run) is str and 0 <= seq < _SAFE_INT:
        # The same text as `canonical` below makes, several times faster.
        head = (
            f'{{"at":{_quoted(at)},"kind":{_quoted(kind)},"prev":{_quoted(prev)},'
            f'"request":{_quoted(request)},"run":{_quoted(run)},"seq":{seq}}}'
        )
    else:
        head = canonical({"at": at, "kind": kind, "prev": prev, "request": request, "run": run, "seq": seq})
    try:
        return sha256(f"{head}\n{digests}".encode()).hexdigest()
    except UnicodeEncodeError as error:
        raise CannotCanonicalise("a text holds half of a surrogate pair, which is not Unicode") from error


def is_link(entry: Entry) -> bool:
    """Whether the event's hash matches its digests, and the digests what is left of its body."""
    return _left_out(entry) is not None


def erased(entry: Entry) -> tuple[str, ...]:
    """The fields of a sound event that were erased."""
    return _left_out(entry) or ()


def _left_out(entry: Entry) -> tuple[str, ...] | None:
    """The fields that an event has no more; None if it is not sound."""
    try:
        link = hash_of(entry.seq, entry.at, entry.kind, entry.request, entry.run, entry.digests, entry.prev)
        if entry.hash != link:
            return None
        digests, salts, texts = read(entry.digests), read(entry.salts), _texts(entry.body)
        if texts.keys() != salts.keys():
            return None
        for name, text in texts.items():
            if digests[name] != _digest(salts[name], text):
                return None
        return tuple(name for name in digests if name not in texts) if len(digests) > len(texts) else ()
    except (CannotCanonicalise, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        return None  # a database can hold anything


def _texts(written: str) -> dict[str, str]:
    """The fields of a JSON object as they are spelled; raises `ValueError` unless it is one without spaces."""
    found: dict[str, str] = {}
    at = 1
    while written != "{}":
        if written[at - 1] != ("," if found else "{"):
            raise ValueError("it is not an object")
        name, end = _read(written, at)
        at, colon = _read(written, end + 1)[1], written[end]
        if type(name) is not str or name in found or colon != ":":
            raise ValueError("it is not an object")
        found[name] = written[end + 1 : at]
        at += 1
        if at == len(written) and written[at - 1] == "}":
            break
    return found


_read = JSONDecoder().raw_decode


def signed_text(seq: int, link: str, at: str) -> bytes:
    """The bytes that a checkpoint signs."""
    return f"signoff record 1\n{seq}\n{link}\n{at}\n".encode()


IsSigned: TypeAlias = Callable[[str, str, bytes], bool]
"""Verifies a signature (hex) over a text, by a public key (hex)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The result of verifying an audit log in which nothing is wrong."""

    events: int
    head: str
    """Hash of the last event."""
    signed: Mapping[str, int] = field(default_factory=dict[str, int])
    """By public key: the last event that it signed. Whose keys they are is not known here."""
    erased: int = 0
    """How many events lack a part of their body, because it was erased."""


class Trust(StrEnum):
    """Why a signature is trusted."""

    PINNED = "pinned"
    """It was made with a key that the person who verifies trusts."""
    OWN = "own"
    """It was made with this machine's own key."""
    CARRIED = "carried"
    """The log came with its own key: nothing was changed since it was signed, but the signer is unknown."""
    NOBODY = "nobody"
    """There is no signature."""


@dataclass(frozen=True, slots=True)
class Vouched:
    """Which key vouches for an audit log, up to which event, and why it is trusted."""

    trust: Trust
    key: str = ""
    upto: int = 0


def vouched(signed: Mapping[str, int], *, pinned: Collection[str] = (), own: str = "") -> Vouched:
    """Return the most trusted signature of an audit log. If keys are pinned, no other key counts."""
    for trust, keys in ((Trust.PINNED, pinned), (Trust.OWN, (own,)), (Trust.CARRIED, signed)):
        known = [key for key in keys if key in signed]
        if known:
            key = max(known, key=lambda one: signed[one])
            return Vouched(trust, key, signed[key])
        if pinned:
            break
    return Vouched(Trust.NOBODY)


class Walk:
    """Verifies an audit log event by event, without keeping it. Raises at the first fault.

    A checkpoint may come before the event that it signs, or right after it.
    """

    def __init__(self, is_signed: IsSigned, *, after: int = 0, link: str = START) -> None:
        self.seq = after
        """The last event that was verified."""
        self.hash: str = link
        self._is_signed = is_signed
        self._vouched = after
        self._signed: dict[str, int] = {}
        self._erased = 0
        self._ahead: dict[int, list[tuple[Checkpoint, str]]] = {}

    def event(self, entry: Entry) -> None:
        """Verify the next event. Raises `RecordBroken` unless it was written right after the last one."""
        left_out = _left_out(entry)
        if entry.seq != self.seq + 1 or entry.prev != self.hash or left_out is None:
            raise self._wrong(entry)
        self.seq, self.hash = entry.seq, entry.hash
        self._erased += bool(left_out)
        if self._ahead:
            for checkpoint, where in self._ahead.pop(self.seq, ()):
                self._match(checkpoint, where)

    def checkpoint(self, checkpoint: Checkpoint, where: str = "") -> None:
        """Verify a checkpoint; `where` says where it is stored, if not in the log itself."""
        texts = (checkpoint.hash, checkpoint.at, checkpoint.key, checkpoint.signature)
        if type(checkpoint.seq) is not int or not all(type(text) is str for text in texts):
            raise RecordBroken("a checkpoint was changed: its fields have the wrong types")
        if checkpoint.seq > self.seq:
            self._ahead.setdefault(checkpoint.seq, []).append((checkpoint, where))
        elif checkpoint.seq < self.seq:
            what = f"{_named(checkpoint, where)} comes after event {self.seq}: the log is out of order"
            raise RecordBroken(what, seq=checkpoint.seq)
        else:
            self._match(checkpoint, where)

    def end(self) -> Verified:
        """Finish, after the last event. Raises `RecordBroken` if a checkpoint signs more events than came."""
        for seq in sorted(self._ahead):
            for checkpoint, where in self._ahead[seq]:
                self._check_signature(checkpoint, where)
        if self._ahead:
            checkpoint, where = self._ahead[max(self._ahead)][0]
            raise self.cut_off(f"{_named(checkpoint, where)} signs {_events(checkpoint.seq)}")
        return Verified(events=self.seq, head=self.hash, signed=dict(self._signed), erased=self._erased)

    def cut_off(self, why: str) -> RecordBroken:
        """Make the error for a truncated log: more events are known to have been written than came."""
        after = f"after event {self.seq}" if self.seq else "whole"
        return RecordBroken(f"the log is truncated {after}: {why}", seq=self.seq + 1)

    def _match(self, checkpoint: Checkpoint, where: str) -> None:
        self._check_signature(checkpoint, where)
        if checkpoint.hash != self.hash:
            first = self._vouched + 1
            which = f"event {first}" if first >= self.seq else f"something in events {first} to {self.seq}"
            named = _named(checkpoint, where)
            raise RecordBroken(
                f"{which} is not what was signed: {named} belongs to another log, or everything after it was rewritten",
                seq=min(first, self.seq) or 1,
            )
        self._vouched = self._signed[checkpoint.key] = self.seq

    def _check_signature(self, checkpoint: Checkpoint, where: str) -> None:
        text = signed_text(checkpoint.seq, checkpoint.hash, checkpoint.at)
        if not self._is_signed(checkpoint.key, checkpoint.signature, text):
            what = f"{_named(checkpoint, where)} has a wrong signature: it was changed or forged"
            raise RecordBroken(what, seq=checkpoint.seq)

    def _wrong(self, entry: Entry) -> RecordBroken:
        due = self.seq + 1
        if entry.seq > due:
            gap = f"event {due} is" if entry.seq == due + 1 else f"events {due} to {entry.seq - 1} are"
            return RecordBroken(f"{gap} missing: event {entry.seq} is there instead", seq=due)
        if entry.seq < due:
            return RecordBroken(
                f"event {entry.seq} is repeated: it appears again after event {self.seq}", seq=entry.seq
            )
        if not is_link(entry):
            return RecordBroken(f"event {due} was changed: its hash does not match its content", seq=due)
        if self.seq == self._vouched:  # all events before it are signed, or there are none: so this event is at fault
            return RecordBroken(f"event {due} was changed or inserted: it was written after another event", seq=due)
        what = f"event {self.seq} was changed or replaced: event {due} was written after another one"
        return RecordBroken(what, seq=self.seq)


def _named(checkpoint: Checkpoint, where: str) -> str:
    return f"the checkpoint at event {checkpoint.seq}" + (f" that is kept in {where}" if where else "")


def _events(count: int) -> str:
    return counted(count, "event")


_DEEPEST = 50


def _readable(value: Any, depth: int) -> Any:
    """Replace values without a JSON form by texts."""
    if isinstance(value, int) and not -_SAFE_INT <= value <= _SAFE_INT:
        return str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if depth < _DEEPEST and isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {cast("str", _readable(str(name), depth)): _readable(item, depth + 1) for name, item in items}
    if depth < _DEEPEST and isinstance(value, (list, tuple)):
        return [_readable(item, depth + 1) for item in cast("Sequence[object]", value)]
    try:
        canonical(value)
    except (CannotCanonicalise, RecursionError):
        return f"({type(value).__name__} without a JSON form)"
    return value
