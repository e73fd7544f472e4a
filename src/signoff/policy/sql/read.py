"""Analyse a text of SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from signoff.policy.sql.lexer import END, READINGS, Token, check_characters, dialect_named, lex
from signoff.policy.sql.statement import SqlReading, judge
from signoff.policy.sql.statement_facts import NotUnderstood, SqlFacts, Statement

LONGEST = 65_536
"""The limit in characters; longer SQL is opaque."""
MOST_STATEMENTS = 100
_DOT = re.compile(
    r"\.(tables|schema|fullschema|indexes|indices|databases|dbinfo|show|help|version|headers|mode)"
    r"(?:[ \t]+[A-Za-z0-9_%]+)?[ \t]*\n?",
    re.ASCII,
)


def read_sql(text: str, dialect: str = "") -> SqlFacts:
    """Return what a text of SQL does. Never raises; anything that is not understood makes it opaque.

    Dialects: `postgres`, `sqlite`, `mysql`, `duckdb`, `mssql`, `oracle`, and other usual names of these. Without one,
    or with `generic`, it must be a read for PostgreSQL, SQLite and MySQL alike.

    The content of the database is not known here: a view, a column's default, a row-level security policy, or a
    function that is called like a column (`t.f` in PostgreSQL, `f` in Oracle) may do more than the text says.
    """
    try:
        return _read(text, dialect)
    except NotUnderstood as doubt:
        return SqlFacts((), doubt.why, doubt.word)
    except Exception as error:  # law 1: a mistake of ours asks
        return SqlFacts((), f"cannot be read ({type(error).__name__})")


def _read(text: str, dialect: str) -> SqlFacts:
    name = dialect_named(dialect)
    if not name:
        raise NotUnderstood(f"is in a dialect that signoff does not know: {dialect[:40]!r}")
    if len(text) > LONGEST:
        raise NotUnderstood(f"is longer than {LONGEST:,} characters")
    check_characters(text)
    if name == "sqlite" and (command := _DOT.fullmatch(text.lstrip(" \t\n"))):
        return SqlFacts((Statement("show", True, word=f".{command[1]}"),))
    if name != "generic":
        return _as_one(text, SqlReading(name))
    return _merged([_as_one(text, SqlReading(one, generic=True)) for one in READINGS])


def _as_one(text: str, reading: SqlReading) -> SqlFacts:
    try:
        tokens = lex(text, reading.dialect)
    except NotUnderstood as doubt:
        return SqlFacts((), doubt.why, doubt.word)
    statements: list[Statement] = []
    opaque = word = ""
    parts = _parts(tokens)
    if len(parts) > MOST_STATEMENTS:
        return SqlFacts((), f"holds more than {MOST_STATEMENTS} statements")
    for part in parts:
        try:
            statement, doubt = judge(part, reading)
        except NotUnderstood as error:
            opaque, word = opaque or error.why, word or error.word
            continue
        statements.append(statement)
        opaque, word = opaque or doubt, word or (statement.word if doubt else "")
    return SqlFacts(tuple(statements), opaque, word)


def _parts(tokens: Sequence[Token]) -> list[list[Token]]:
    """Return the tokens of each statement. Empty statements do nothing in any database."""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.kind == END:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _merged(readings: Sequence[SqlFacts]) -> SqlFacts:
    """Return what holds for every database: a read if all agree, and every table that any of them sees."""
    counts = {len(one.statements) for one in readings}
    worst = next((one for one in readings if not one.read_only and not one.opaque), None)
    worst = worst or next((one for one in readings if not one.read_only), readings[0])
    opaque = next((one for one in readings if one.opaque), None)
    if len(counts) > 1:
        if opaque is None:
            return SqlFacts(worst.statements, "is read differently by different databases; name the `dialect`")
        return SqlFacts(worst.statements, opaque.opaque, opaque.opaque_word)
    merged = tuple(_united(same) for same in zip(*(one.statements for one in readings), strict=True))
    return SqlFacts(merged, opaque.opaque if opaque else "", opaque.opaque_word if opaque else "")


def _united(same: Sequence[Statement]) -> Statement:
    first = next((one for one in same if not one.read_only and not one.why.startswith("unknown:")), None)
    first = first or next((one for one in same if not one.read_only), same[0])

    def all_of(part: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for one in same for name in getattr(one, part)))

    return replace(
        first,
        tables=all_of("tables"),
        columns=all_of("columns"),
        writes=all_of("writes"),
        functions=all_of("functions"),
    )
