"""Export the audit log as a file, and verify it: a header, one event per line, and a last line with a signature.

Every line is canonical JSON. The last one signs the number of events, the hash of the last event and a digest of all
bytes before it. So anything that is changed, added, moved or cut is detected, and the hash chain tells where.

Pure functions: they make lines and read lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from json.encoder import encode_basestring as _quoted
from typing import Any, NoReturn, cast

from signoff.core.audit_text import account_of
from signoff.core.canonical import canonical
from signoff.core.json_text import writer
from signoff.core.record import Checkpoint, Entry, IsSigned, Verified, Walk
from signoff.core.safe_text import kept_text
from signoff.errors import CannotCanonicalise, Place, RecordBroken, WrongFile

FORMAT = "signoff record"
VERSION = 1

_SAFE_INT = 2**53
_EVENT = frozenset(Entry._fields)
_OBJECTS = ("body", "digests", "salts")
_CHECKPOINT = {"at": str, "hash": str, "key": str, "seq": int, "signature": str}
_END = {"at": str, "digest": str, "events": int, "hash": str, "key": str, "signature": str}
_HEADER = {"at": str, "format": str, "key": str, "store": str, "version": int}


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line of an export."""

    store: str
    """Id of the store that it comes from."""
    key: str
    """Public key of the exporter, in hex."""
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """A verified export, in which nothing is wrong."""

    header: Header
    record: Verified

    @property
    def key(self) -> str:
        """The public key that signed the whole file."""
        return self.header.key


class Exporter:
    """Makes the lines of an export. Verifies the log at the same time, because a broken log must not be signed."""

    def __init__(self, header: Header, is_signed: IsSigned) -> None:
        self._header = header
        self._walk = Walk(is_signed)
        self._digest = sha256()

    @property
    def events(self) -> int:
        return self._walk.seq

    def begin(self) -> bytes:
        header = self._header
        first = {"at": header.at, "format": FORMAT, "key": header.key, "store": header.store, "version": VERSION}
        return self._line(_as_line(first))

    def event(self, entry: Entry) -> bytes:
        self._walk.event(entry)
        return self._line(event_line(entry))

    def checkpoint(self, checkpoint: Checkpoint) -> bytes:
        """The line of a checkpoint, right after the event that it signs."""
        self._walk.checkpoint(checkpoint)
        fields = {name: getattr(checkpoint, name) for name in _CHECKPOINT}
        return self._line(_as_line({"checkpoint": fields}))

    def end(self, sign: Callable[[bytes], str], *, events: int) -> tuple[bytes, Verified]:
        """The last line, after that many events. `sign` makes a signature, in hex, with the key in the header."""
        if self._walk.seq < events:
            raise self._walk.cut_off(f"the store counts {events:,}")
        record, digest, at = self._walk.end(), self._digest.hexdigest(), self._header.at
        signature = sign(_signed_text(record.events, record.head, digest, at))
        end = {"at": at, "digest": digest, "events": record.events, "hash": record.head, "key": self._header.key}
        return _as_line({"end": {**end, "signature": signature}}), record

    def _line(self, line: bytes) -> bytes:
        self._digest.update(line)
        return line


def event_line(entry: Entry) -> bytes:
    """The line of an event."""
    return (
        f'{{"at":{_quoted(entry.at)},"body":{entry.body},"digests":{entry.digests},"hash":{_quoted(entry.hash)},'
        f'"kind":{_quoted(entry.kind)},"prev":{_quoted(entry.prev)},"request":{_quoted(entry.request)},'
        f'"run":{_quoted(entry.run)},"salts":{entry.salts},"seq":{entry.seq}}}\n'
    ).encode()


def verify_export(lines: Iterable[bytes], is_signed: IsSigned, *, name: str = "the file") -> Export:
    """Verify an export, given as its lines with their line endings.

    Raises `WrongFile` if it is not an export that this version knows, and `RecordBroken` for the first fault.
    """
    rest = iter(lines)
    first = next(rest, b"")
    header = _header(first, name)
    digest, walk = sha256(first), Walk(is_signed)
    for number, line in enumerate(rest, start=2):
        if line.startswith(b'{"end":'):
            end = _part(line, "end", _END, walk, number)
            _check_end(end, header, walk, digest.hexdigest(), is_signed)
            if next(rest, None) is not None:
                raise RecordBroken("something was added after the last line", seq=walk.seq + 1)
            record = walk.end()
            signed = {**record.signed, header.key: record.events}
            return Export(header=header, record=replace(record, signed=signed))
        if line.startswith(b'{"checkpoint":'):
            walk.checkpoint(Checkpoint(**_part(line, "checkpoint", _CHECKPOINT, walk, number)))
        else:
            _take_event(line, rest, walk, number)
        digest.update(line)
    raise walk.cut_off("its last line is not there")


def event_of(line: bytes) -> Entry:
    """Parse the event on a line; raises `ValueError` if the line is not exactly as `event_line` writes it."""
    value = _value(line)
    if value.keys() != _EVENT or type(value["seq"]) is not int:
        raise ValueError("it is not an event")
    objects = {name: value.pop(name) for name in _OBJECTS}
    if not all(type(one) is dict for one in objects.values()):
        raise ValueError("it is not an event")
    try:
        # Numbers were checked when they were parsed, so for ASCII the C encoder's text is almost always canonical.
        for text_of in (_plain_text, canonical) if line.isascii() else (canonical,):
            entry = Entry(**value, **cast("Any", {name: text_of(one) for name, one in objects.items()}))
            if event_line(entry) == line:
                return entry
    except (TypeError, RecursionError, CannotCanonicalise) as error:  # a field of the wrong type, or nested too deep
        raise ValueError("it is not an event") from error
    raise ValueError("its spelling was changed after it was written")


def _take_event(line: bytes, rest: Iterator[bytes], walk: Walk, number: int) -> None:
    due = walk.seq + 1
    try:
        entry = event_of(line)
    except ValueError as error:
        raise _wrong_line(line, number, walk, error) from error
    if entry.seq > due:
        mark = b'"seq":%d}\n' % due
        if any(later.endswith(mark) for later in rest):
            raise RecordBroken(f"event {due} is out of order: event {entry.seq} is in its place", seq=due)
    walk.event(entry)


def _check_end(end: dict[str, Any], header: Header, walk: Walk, digest: str, is_signed: IsSigned) -> None:
    events: int = end["events"]
    if events > walk.seq:
        raise walk.cut_off(f"the last line says that there were {events:,}")
    if events < walk.seq:
        raise RecordBroken(f"event {events + 1} was added: the last line signs {events:,}", seq=events + 1)
    if end["hash"] != walk.hash:
        raise RecordBroken("the last event is not the one that the last line signs", seq=walk.seq)
    if end["key"] != header.key or end["at"] != header.at:
        raise RecordBroken("the first and the last line are from different files")
    text = _signed_text(events, end["hash"], end["digest"], end["at"])
    if not is_signed(end["key"], end["signature"], text):
        raise RecordBroken("the signature in the last line is wrong: the line was changed or forged")
    if end["digest"] != digest:
        raise RecordBroken("the events are intact, but the first line or a checkpoint was changed or is missing")


def _header(line: bytes, name: str) -> Header:
    place = Place(name, 1)
    if not line:
        raise WrongFile(f"{name} is empty", fix="`signoff audit export -o FILE` writes a record to check")
    if line.startswith(b'"seq",'):
        raise WrongFile("a CSV export cannot be verified", place=place, fix="export the record as jsonl")
    try:
        value = _value(line)
    except ValueError:
        value = {}
    if value.get("format") != FORMAT or type(value.get("version")) is not int:
        fix = "`signoff audit verify` reads what `signoff audit export` writes"
        raise WrongFile("this is not an exported record", place=place, fix=fix)
    if value["version"] > VERSION:
        what = f"format version {value['version']} is newer than this program knows ({VERSION})"
        raise WrongFile(what, place=place, fix="upgrade signoff to verify it")
    if not _has(value, _HEADER) or value["version"] != VERSION or _as_line(value) != line:
        raise RecordBroken("the first line was changed")
    return Header(store=value["store"], key=value["key"], at=value["at"])


def _part(line: bytes, name: str, fields: dict[str, type], walk: Walk, number: int) -> dict[str, Any]:
    """The fields of a checkpoint or of the last line."""
    try:
        value = _value(line)
        if value.keys() != {name} or not _has(value[name], fields):
            raise ValueError(f"it is no {name}")
        if _as_line(value) != line:
            raise ValueError("its spelling was changed after it was written")
    except ValueError as error:
        raise _wrong_line(line, number, walk, error) from error
    return value[name]


def _has(value: object, fields: dict[str, type]) -> bool:
    if not isinstance(value, dict):
        return False
    given = cast("dict[str, object]", value)
    return given.keys() == fields.keys() and all(type(given[name]) is kind for name, kind in fields.items())


def _wrong_line(line: bytes, number: int, walk: Walk, error: ValueError) -> RecordBroken:
    if not line.endswith(b"\n"):
        return walk.cut_off(f"line {number} breaks off")
    if line.endswith(b"\r\n"):
        return RecordBroken(f"line {number} was changed: the file's line endings were converted", seq=walk.seq + 1)
    return RecordBroken(f"line {number}, where event {walk.seq + 1} should be, was changed: {error}", seq=walk.seq + 1)


def _value(line: bytes) -> dict[str, Any]:
    """Parse the object on a line. Every fault is a `ValueError`."""
    if not line.endswith(b"\n"):
        raise ValueError("it breaks off")
    try:
        value = _loads(line[:-1].decode())
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8 text") from error
    except (ValueError, RecursionError, CannotCanonicalise) as error:
        raise ValueError("it is not JSON as signoff writes it") from error
    if type(value) is not dict:
        raise ValueError("it is not an object")
    return cast("dict[str, Any]", value)


def _not_json(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _double(text: str) -> float:
    value = float(text)
    return value if canonical(value) == text else _not_json(text)


def _integer(text: str) -> int | float:
    value = int(text)
    if not -_SAFE_INT <= value <= _SAFE_INT:  # canonical JSON has doubles only, up to 21 digits without an exponent
        return _double(text)
    return value if str(value) == text else _not_json(text)


_loads = json.JSONDecoder(parse_constant=_not_json, parse_float=_double, parse_int=_integer).decode
_plain_text = writer(ensure_ascii=False, sort_keys=True)


def _as_line(value: object) -> bytes:
    try:
        return f"{canonical(value)}\n".encode()
    except CannotCanonicalise as error:
        raise ValueError(str(error)) from error


def _signed_text(events: int, link: str, digest: str, at: str) -> bytes:
    return f"signoff export {VERSION}\n{events}\n{link}\n{digest}\n{at}\n".encode()


# --- CSV, for spreadsheets ---

COLUMNS = ("seq", "at", "kind", "by", "what", "request", "run", "body", "prev", "hash")


def csv_header() -> str:
    return _row(COLUMNS)


def csv_row(entry: Entry) -> str:
    """The CSV row of an event. Formulas are escaped, so that a spreadsheet does not evaluate them (CSV injection)."""
    told = account_of(entry)
    cells = (str(entry.seq), entry.at, entry.kind, told.who, told.what, entry.request, entry.run, entry.body)
    return _row((*cells, entry.prev, entry.hash))


def _row(cells: Iterable[str]) -> str:
    return ",".join(map(_cell, cells)) + "\r\n"


_FORMULA = frozenset("=+-@|%")


def _cell(text: str) -> str:
    shown = kept_text(text)
    if shown.lstrip("' \u00a0")[:1] in _FORMULA:
        shown = f"'{shown}"
    return '"' + shown.replace('"', '""') + '"'
