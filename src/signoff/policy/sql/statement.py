"""Judge one SQL statement: by its first word, then by its syntax tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from signoff.policy.phrases import cut
from signoff.policy.sql import function_calls
from signoff.policy.sql.lexer import NUMBER, QUOTED, SIGN, STRING, VARIABLE, WORD, Token
from signoff.policy.sql.names import listed, secret_setting
from signoff.policy.sql.statement_facts import NotUnderstood, Statement
from signoff.policy.sql.statement_tree import SAID, SqlSurvey, parse, survey
from signoff.policy.sql.verbs import VERBS, about_verb


class SqlReading(NamedTuple):
    """How a text is read: as SQL of this database, and whether it must be right for several databases."""

    dialect: str
    generic: bool = False


Judged = tuple[Statement, str]
"""A statement, and why it is not fully understood; "" if it is."""


def judge(tokens: Sequence[Token], reading: SqlReading) -> Judged:
    """Return one statement, and why it is not fully understood. Raises `NotUnderstood` if nothing is known."""
    first = tokens[0].low or tokens[0].text
    if special := _SPECIAL.get(first):
        return special(tokens, reading)
    if first in _DML or (first in _QUERIES and (first != "from" or reading.dialect == "duckdb")):
        return _query(tokens, reading)
    if first not in VERBS:
        shown = cut(tokens[0].text, 40)
        raise NotUnderstood(f"starts with `{shown}`, which is not known to only read", shown)
    return about_verb(tokens, reading.dialect)


def _query(tokens: Sequence[Token], reading: SqlReading) -> Judged:
    try:
        statement, found = examined(tokens, reading)
    except NotUnderstood as doubt:
        # What the words certainly say helps a person more than "not understood".
        if deed := _plain_deed(tokens, reading.dialect) or _first_deed(tokens):
            return Statement(deed[0], False, why=deed[1], word=deed[2]), doubt.why
        raise
    return _with(statement, [(why, word) for _, why, word in found.deeds], found.doubts)


def _first_deed(tokens: Sequence[Token]) -> tuple[str, str, str] | None:
    first = tokens[0].low
    return (first, f"writes: `{first.upper()}` {SAID[first]} a table", first.upper()) if first in _DML else None


def _with(statement: Statement, deeds: Sequence[tuple[str, str]], doubts: Sequence[tuple[str, str]]) -> Judged:
    """Return the statement with the worst problem found; known effects come before unknown ones.

    A statement that may do more than its operation says is not fully understood: no rule may allow it by operation.
    """
    problems = [*deeds, *doubts]
    if not problems:
        return statement, ""
    why, word = next((one for one in problems if not one[0].startswith("unknown:")), problems[0])
    opaque = doubts[0][0].partition(": ")[2] if doubts else ""
    return _as(statement, read_only=False, why=why, word=word), opaque


def _as(statement: Statement, **changed: object) -> Statement:
    from dataclasses import replace

    return replace(statement, **changed)  # type: ignore[arg-type]


def examined(tokens: Sequence[Token], reading: SqlReading) -> tuple[Statement, SqlSurvey]:
    """Return a query or a change of rows as if it were a read, and everything that contradicts that."""
    dialect = reading.dialect
    if len(tokens) == 1:
        raise NotUnderstood(f"is only the word `{tokens[0].text}`", tokens[0].text)
    replaces = tokens[0].low == "replace"
    parsed = [Token(WORD, "INSERT", True), *tokens[1:]] if replaces else tokens
    found = survey(parse(parsed, dialect), dialect, reading.generic)
    if replaces and found.writes:
        found.deeds.insert(0, ("replace", f"writes: `REPLACE` replaces rows of `{found.writes[0]}`", "REPLACE"))
    if deed := _plain_deed(tokens, dialect):
        if not any(one[0] == deed[0] for one in found.deeds):
            found.deeds.append(deed)
    found.doubts.extend(function_calls.doubts(tokens, dialect, reading.generic, found.not_calls))
    functions = [
        one.name.lower() for one in function_calls.calls(tokens, dialect) if not found.not_calls[one.name.lower()]
    ]
    statement = Statement(
        operation=_operation(tokens, found),
        read_only=True,
        tables=_once(found.tables),
        columns=_once(found.columns),
        writes=_once(found.writes),
        functions=_once(functions),
    )
    return statement, found


def _once(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _operation(tokens: Sequence[Token], found: SqlSurvey) -> str:
    deeds = [one[0] for one in found.deeds]
    first = tokens[0].low
    if deeds:
        return first if first in deeds else next((one for one in deeds if one != "lock"), deeds[0])
    return "values" if first == "values" else "select"


def _plain_deed(tokens: Sequence[Token], dialect: str) -> tuple[str, str, str] | None:
    """Return what the words alone say, whatever the parser made of them."""
    starts = listed("words", "mssql", "starts") if dialect == "mssql" else frozenset[str]()
    for at, token in enumerate(tokens):
        low = token.low
        following = tokens[at + 1].low if at + 1 < len(tokens) else ""
        if low == "into" and tokens[0].low not in ("insert", "replace", "merge") and tokens[max(at - 1, 0)].low not in (
            "insert", "replace", "merge", "ignore",
        ):  # fmt: skip
            shown = f"INTO {following.upper()}" if following in ("outfile", "dumpfile") else "INTO"
            return "select into", f"writes: `{shown}` writes the result to a table, file or variable", shown
        if low == "for" and following in ("update", "share", "no", "key", "read", "fetch"):
            return "lock", f"changes: `FOR {following.upper()}` locks rows", f"FOR {following.upper()}"
        if low == "lock" and following == "in":
            return "lock", "changes: `LOCK IN SHARE MODE` locks rows", "LOCK IN SHARE MODE"
        if low == "procedure":
            return "call", "runs: `PROCEDURE` runs code", "PROCEDURE"
        if low == "next" and following == "value":
            return "sequence", "changes: `NEXT VALUE FOR` advances a sequence", "NEXT VALUE FOR"
        if low == "nextval" and at and tokens[at - 1].text == ".":
            return "sequence", "changes: `NEXTVAL` advances a sequence", "NEXTVAL"
        if token.kind == VARIABLE and dialect == "mssql" and _is_set(tokens, at):
            return "set", f"changes: `{token.text}` is set", token.text
        if low in starts and tokens[at - 1].text != "." and not (at == 0 and low in _DML):
            return low, f"unknown: `{token.text}` may start another statement", token.text
    return None


def _is_set(tokens: Sequence[Token], at: int) -> bool:
    """Whether a T-SQL variable is assigned here, not compared."""
    following = "".join(one.text for one in tokens[at + 1 : at + 3])
    compared = tokens[at - 1].low in ("where", "and", "or", "on", "when", "not", "having") or tokens[at - 1].text == "("
    return bool(re.match(r"[-+*/%&|^]?=", following)) and not compared


_QUERIES = ("select", "with", "values", "from", "(")
_DML = ("insert", "update", "delete", "merge", "replace")
_EXPLAIN_WORDS = frozenset({"query", "plan", "for", "extended", "partitions", "verbose", "logical", "physical"})
_EXPLAIN_OPTIONS = frozenset("""
analyze verbose costs settings generic_plan buffers serialize wal timing summary memory format
""".split())  # fmt: skip
_VALUES = frozenset({"true", "false", "on", "off", "0", "1", "text", "xml", "json", "yaml", "none", "binary"})


def _explain(tokens: Sequence[Token], reading: SqlReading) -> Judged:
    if reading.dialect == "oracle":
        why = "writes: `EXPLAIN PLAN` adds rows to the plan table"
        return Statement("explain", False, writes=("plan_table",), why=why, word="EXPLAIN PLAN"), ""
    if reading.dialect == "mssql":
        raise NotUnderstood("uses `EXPLAIN`, which signoff does not know in this dialect", "EXPLAIN")
    at, runs = _explain_options(tokens)
    rest = tokens[at:]
    if not rest:
        raise NotUnderstood("explains nothing", "EXPLAIN")
    rest = _spelled_out(rest)
    first = rest[0].low or rest[0].text
    if first not in (*_QUERIES, *_DML):
        if not runs and at == 1 and _is_name(rest) and first not in VERBS:
            return _described(rest, reading)
        raise NotUnderstood(f"explains `{cut(rest[0].text, 40)}`, which signoff does not know", cut(rest[0].text, 40))
    statement, found = examined(rest, reading)
    if runs:
        ran = [(f"{why} (`EXPLAIN ANALYZE` runs it)", word) for _, why, word in found.deeds]
        operation = statement.operation if ran else "explain"
        return _with(_as(statement, operation=operation), ran, found.doubts)
    # A planner may run functions, but it changes no rows: the explained statement may be a write.
    hidden = [(why, word) for operation, why, word in found.deeds if operation in ("call", "sequence")]
    return _with(_as(statement, operation="explain", writes=()), hidden, found.doubts)


def _explain_options(tokens: Sequence[Token]) -> tuple[int, bool]:
    """Return where the explained statement starts, and whether it is run."""
    at, runs = 1, tokens[0].low in ("analyze", "summarize")
    while at < len(tokens):
        token = tokens[at]
        if token.low == "analyze":
            runs, at = True, at + 1
        elif token.low in _EXPLAIN_WORDS and not (at + 1 == len(tokens) or tokens[at + 1].text == "."):
            at += 1
        elif token.low == "format" and at + 2 < len(tokens) and tokens[at + 1].text == "=":
            at += 3
        elif token.text == "(" and at == 1 and _is_option(tokens[at + 1 : at + 3]):
            at, ran = _listed_options(tokens, at + 1)
            runs = runs or ran
        else:
            break
    return at, runs


def _is_option(tokens: Sequence[Token]) -> bool:
    return bool(tokens) and tokens[0].low in _EXPLAIN_OPTIONS


def _listed_options(tokens: Sequence[Token], at: int) -> tuple[int, bool]:
    runs = False
    while at < len(tokens):
        option = tokens[at].low
        value = ""
        at += 1
        if option not in _EXPLAIN_OPTIONS:
            break
        if at < len(tokens) and tokens[at].text not in (",", ")"):
            value = tokens[at].text.lower()
            at += 1
            if value not in _VALUES:
                break
        runs = runs or (option == "analyze" and value not in ("false", "off", "0"))
        if at < len(tokens) and tokens[at].text in (",", ")"):
            at += 1
            if tokens[at - 1].text == ")":
                return at, runs
        else:
            break
    raise NotUnderstood("has options of `EXPLAIN` that signoff does not know", "EXPLAIN")


def _spelled_out(tokens: Sequence[Token]) -> Sequence[Token]:
    """Expand `TABLE t` to the query that it abbreviates."""
    if tokens[0].low != "table":
        return tokens
    words = [Token(WORD, "SELECT", True), Token(SIGN, "*", True), Token(WORD, "FROM", True)]
    return [*words, *tokens[1:2], *tokens[2:]]


def _table(tokens: Sequence[Token], reading: SqlReading) -> Judged:
    if len(tokens) < 2 or tokens[1].kind not in (WORD, QUOTED):
        raise NotUnderstood("cannot be parsed: `TABLE`", "TABLE")
    return _query(_spelled_out(tokens), reading)


def _is_name(tokens: Sequence[Token]) -> bool:
    """Whether the tokens are a name, optionally with a schema, and optionally a column name after it."""
    kinds = "".join("n" if one.kind in (WORD, QUOTED) else "." if one.text == "." else "x" for one in tokens)
    return kinds in ("n", "n.n", "n.n.n", "nn", "n.nn")


def _name(tokens: Sequence[Token]) -> str:
    whole = tokens[0].text
    for dot, name in zip(tokens[1::2], tokens[2::2], strict=False):
        if dot.text != ".":
            break
        whole += f".{name.text}"
    return whole if tokens[0].kind == QUOTED else whole.lower()


def _describe(tokens: Sequence[Token], reading: SqlReading) -> Judged:
    rest = tokens[1:]
    if rest and rest[0].low == "table" and len(rest) > 1:
        rest = rest[1:]
    if _is_name(rest) and rest[0].low not in ("select", "analyze", "with", "values", *_DML, *VERBS):
        return _described(rest, reading)
    return _explain(tokens, reading)


def _described(name: Sequence[Token], reading: SqlReading) -> Judged:
    if reading.dialect == "duckdb":  # DuckDB reads the name of a file as a table
        query = [Token(WORD, "SELECT", True), Token(SIGN, "*", True), Token(WORD, "FROM", True), *name]
        statement, opaque = _query(query, reading)
        return _as(statement, operation="describe"), opaque
    return Statement("describe", True, tables=(_name(name),)), ""


_DUCKDB_LISTS = frozenset(("tables", "databases", "schemas", "variables", "all"))


def _show(tokens: Sequence[Token], reading: SqlReading) -> Judged:
    shown = [
        one for one in tokens[1:] if one.kind in (WORD, QUOTED, STRING, NUMBER) or one.text in (".", ",", "=", "*", "%")
    ]
    if not shown or len(shown) != len(tokens) - 1 or any(one.low in ("into", "procedure") for one in tokens):
        raise NotUnderstood("has a `SHOW` statement that signoff does not understand", "SHOW")
    if word := _shows_secret(shown, reading):
        return Statement("show", False, why=f"discloses: `{word}` shows a secret, or the hash of one", word=word), ""
    if reading.dialect == "duckdb" and _is_name(shown) and shown[0].low not in _DUCKDB_LISTS:
        return _described(shown, reading)  # there, `SHOW t` is `DESCRIBE t`
    tables = [_name(shown[at + 1 :]) for at, one in enumerate(shown[:-1]) if one.low in ("from", "in", "table")]
    return Statement("show", True, tables=_once(tables)), ""


def _shows_secret(shown: Sequence[Token], reading: SqlReading) -> str:
    """Return the words of a `SHOW` that discloses a secret: a PostgreSQL setting or a MySQL login. Or ""."""
    if reading.dialect == "postgres" and _is_name(shown):
        name = "".join(one.text for one in shown)
        if secret_setting(name) or name.lower() == "all":  # `all` includes `primary_conninfo`, with its password
            return f"SHOW {_name(shown)}"
    first = [one.low for one in shown[:2]]
    logins = first in (["create", "user"], ["create", "server"]) or first[0] == "grants"
    return f"SHOW {' '.join(first).upper()}" if logins and reading.dialect == "mysql" else ""


def _pragma(tokens: Sequence[Token], reading: SqlReading) -> Judged:
    rest = list(tokens[1:])
    if len(rest) > 2 and rest[1].text == ".":
        rest = rest[2:]
    name = rest[0].text.lower() if rest and rest[0].kind in (WORD, QUOTED) else ""
    own = "duckdb_" if reading.dialect == "duckdb" else ""
    if len(rest) == 1 and name in listed("pragmas", f"{own}alone"):
        return Statement("pragma", True), ""
    argument = len(rest) == 4 and rest[1].text == "(" and rest[3].text == ")" and rest[1].kind == rest[3].kind == SIGN
    if argument and name in listed("pragmas", f"{own}about") and rest[2].kind != SIGN:
        tables = (rest[2].text.lower(),) if "table" in name or name == "index_list" or "key" in name else ()
        return Statement("pragma", True, tables=tables), ""
    why = f"changes: `PRAGMA {name}` is not known to only report"
    return Statement("pragma", False, why=why, word=f"PRAGMA {name}"), ""


def _analyze(tokens: Sequence[Token], reading: SqlReading) -> Judged:
    """MariaDB runs and explains with this word; other databases gather statistics."""
    follows = tokens[1].low if len(tokens) > 1 else ""
    if follows in ("select", "with", *_DML) or (reading.dialect == "mysql" and follows == "format"):
        return _explain(tokens, reading)
    return Statement("analyze", False, why="writes: `ANALYZE` writes statistics", word="ANALYZE"), ""


_SPECIAL: dict[str, Callable[[Sequence[Token], SqlReading], Judged]] = {
    "table": _table,
    "explain": _explain,
    "describe": _describe,
    "desc": _describe,
    "summarize": _describe,
    "show": _show,
    "pragma": _pragma,
    "analyze": _analyze,
}
