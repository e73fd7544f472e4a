"""What the tables of a store share: SQL in a transaction, and values as the columns of a database hold them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from operator import attrgetter
from types import NoneType
from typing import Any, ClassVar, Generic, Protocol, TypeVar, get_args

from signoff.core.codec import StoredShape, read_stored, wrong_type
from signoff.errors import StoreDamaged
from signoff.store.dialect import Dialect

Row = Sequence[Any]
T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
ALL = 2**62
"""The limit that means no limit."""
NEVER = -ALL
"""Stands for "no time" in a column that is sorted by."""
_ODD = "\x01json:"
"""Prefix of a text that is stored as JSON because a database would not take it unchanged."""


class Wire(Protocol):
    """Sends SQL to a database inside a transaction that the caller begins and ends."""

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Row]: ...

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run a statement without fetching rows. It may be sent later, but before the next `rows` or the commit."""
        ...


class Sql:
    """Runs SQL as `Dialect` describes it. Values are texts, numbers, bytes, times, choices of an `Enum`, and None."""

    def __init__(self, wire: Wire, dialect: Dialect) -> None:
        self._wire = wire
        self._dialect = dialect

    def rows(self, sql: str, *values: Any) -> Sequence[Row]:
        return self._wire.rows(self._dialect[sql], [_COLUMNS[type(value)](value) for value in values])

    def run(self, sql: str, *values: Any) -> None:
        self._wire.run(self._dialect[sql], [_COLUMNS[type(value)](value) for value in values])


class Table:
    """One noun of a store: its SQL, and what the rows mean. A table may be read by more than one of them."""

    def __init__(self, sql: Sql) -> None:
        self._rows = sql.rows
        self._run = sql.run

    def _value(self, sql: str, *values: Any) -> Any:
        """Return the first column of the first row; None if there is no row."""
        rows = self._rows(sql, *values)
        return rows[0][0] if rows else None


def insert(table: str, columns: Iterable[str]) -> str:
    names = tuple(columns)
    return f"insert into {{s}}{table} ({', '.join(names)}) values ({', '.join('?' * len(names))})"


def put(table: str, columns: Iterable[str], key: str, *, fixed: Iterable[str] = ()) -> str:
    """Insert a row, or change the one with the same `key`: all columns but those of the key and the fixed ones."""
    names = tuple(columns)
    left = {*key.split(", "), *fixed}
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in left)
    return f"{insert(table, names)} on conflict ({key}) do {f'update set {changes}' if changes else 'nothing'}"


def span(prefix: str) -> tuple[str, str]:
    """The range of ids that start with a prefix."""
    return prefix, kept(prefix) + "~"  # `~` sorts after every character that an id can contain


class Documents(Table, Generic[T]):
    """Values of one type as JSON in the column `body`, beside the columns that they are found by."""

    table: ClassVar[str]
    shape: StoredShape[T]
    columns: ClassVar[Sequence[str]]
    """The others: attributes of the value. One of them is `id`."""
    fixed: ClassVar[Sequence[str]] = ()
    """Columns that never change."""
    _attributes: ClassVar[attrgetter[tuple[Any, ...]]]
    _puts: ClassVar[str]

    def __init_subclass__(cls) -> None:
        names = (*cls.columns, "body")
        cls._attributes = attrgetter(*cls.columns)
        cls._puts = put(cls.table, names, "id", fixed=cls.fixed)

    def put(self, value: T) -> None:
        """Add a value, or replace the one with the same id."""
        self._run(self._puts, *self._row(value))

    def _row(self, value: T) -> list[Any]:
        return [*self._found_by(value), self.shape.to_text(value)]

    def _found_by(self, value: T) -> Sequence[Any]:
        return self._attributes(value)

    def get(self, id_: str) -> T | None:
        return self._first("id = ?", id_)

    def _where(self, condition: str, *values: Any) -> list[T]:
        rows = self._rows(f"select body from {{s}}{self.table} where {condition}", *values)
        return [self._read(body) for (body,) in rows]

    def _first(self, condition: str, *values: Any) -> T | None:
        found = self._where(condition, *values)
        return found[0] if found else None

    def _read(self, body: str) -> T:
        return self.shape.from_text(body)


# --- values ---


def moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)


def micros(moment: datetime) -> int:
    """Microseconds since 1970, UTC."""
    return (moment - EPOCH) // _TICK


def kept(text: str) -> str:
    """Encode a text so that any database takes it (NUL characters, lone surrogates). Different texts stay different."""
    if "\0" in text or text.startswith(_ODD):
        return _ODD + json.dumps(text)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # a lone surrogate
            return _ODD + json.dumps(text)
    return text


def told(text: str) -> str:
    """Decode what `kept` encoded. Raises `StoreDamaged` for what is no text: a column of SQLite can hold anything."""
    if type(text) is str and text.startswith(_ODD):
        text = read_stored(text[len(_ODD) :])
    if type(text) is not str:
        raise wrong_type(text, str)
    return text


def _as_it_is(value: Any) -> Any:
    return value


class _Columns(dict[type, Callable[[Any], Any]]):
    """How a column holds the values of a type."""

    def __missing__(self, kind: type) -> Callable[[Any], Any]:
        bases = (way for base, way in self.items() if issubclass(kind, base))
        self[kind] = way = attrgetter("value") if issubclass(kind, Enum) else next(bases, _as_it_is)
        return way


_COLUMNS = _Columns({str: kept, datetime: micros, bool: int, int: _as_it_is, bytes: _as_it_is, NoneType: _as_it_is})


def column(value: Any) -> Any:
    """A value as a column holds it: a time in microseconds, a choice by its value, a text as any database takes it."""
    return _COLUMNS[type(value)](value)


class RowReader(Generic[T]):
    """Reads the rows of one query. Raises `StoreDamaged` for a value of a type that is not written to its column."""

    def __init__(self, table: str, columns: Mapping[str, Any], make: Callable[[Row], T]) -> None:
        """`columns` has the type of each column as it is read: a time and a choice are stored as others."""
        self.names = ", ".join(columns)
        """The columns of a query for such rows."""
        self._table = table
        self._columns = columns
        self.make = make
        self._sound: set[tuple[type, ...]] = set()
        """The types of the rows that were read: checked once, for speed."""

    def __call__(self, row: Row) -> T:
        try:
            types = tuple(map(type, row))
            if types not in self._sound:
                for name, kind, value in zip(self._columns, self._columns.values(), row, strict=True):
                    self._check(name, kind, value)
                self._sound.add(types)
            return self.make(row)
        except (StoreDamaged, ValueError, OverflowError) as error:
            wrong = error if isinstance(error, StoreDamaged) else self._wrong(row)
            raise wrong.within(table=self._table, row=row[0] if type(row[0]) is str else "") from error

    def _check(self, name: str, kind: Any, value: object) -> None:
        if value is None and NoneType in get_args(kind):
            return
        kind = _without_none(kind)
        due: Any = str if issubclass(kind, Enum) else _STORED_AS.get(kind, kind)
        if type(value) is not due and not (due is bytes and type(value) is memoryview):
            raise wrong_type(value, due).within(name)

    def _wrong(self, row: Row) -> StoreDamaged:
        """Make the error for the value that has the right type, and cannot be."""
        fields = [
            name
            for name, kind, value in zip(self._columns, self._columns.values(), row, strict=True)
            if _cannot_be(_without_none(kind), value)
        ]
        return StoreDamaged("holds a value that signoff does not write", field=", ".join(fields))


_STORED_AS: dict[type, type] = {datetime: int, bool: int}


def _without_none(kind: Any) -> type:
    return (get_args(kind) or (kind,))[0]


def _cannot_be(kind: type, value: Any) -> bool:
    try:
        if issubclass(kind, Enum) and value:
            kind(value)
        elif kind is datetime and value != NEVER:
            moment(value)
    except (ValueError, OverflowError):
        return True
    return False


class Recent(Generic[T]):
    """A cache for parsed texts of one kind. One step often reads what the step before it wrote or read.

    Only for immutable values. It caches what a text means, never what the store holds.
    """

    def __init__(self, load: Callable[[str], T]) -> None:
        self._load = load
        self._known: dict[str, T] = {}
        _caches.append(self._known)

    def __call__(self, text: str) -> T:
        value = self._known.get(text)
        if value is None:
            value = self._load(text)
            self.note(text, value)
        return value

    def note(self, text: str, value: T) -> None:
        """Add the parsed value of a text that was just written."""
        if len(text) <= LARGEST_REMEMBERED:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[text] = value


LARGEST_REMEMBERED = 16_000
MOST_REMEMBERED = 512


_caches: list[dict[str, Any]] = []


def forget() -> None:
    """Empty the caches, as in a new process."""
    for cache in _caches:
        cache.clear()
