"""Analyse the syntax tree of a statement. Only node types on an allowlist count as harmless."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from signoff.policy.sql.cte_scopes import CteScopes
from signoff.policy.sql.function_calls import WITHOUT_ARGUMENTS
from signoff.policy.sql.lexer import Token, manner_of, written
from signoff.policy.sql.names import about_function, listed, pure
from signoff.policy.sql.statement_facts import NotUnderstood

if TYPE_CHECKING:
    from sqlglot import exp

MOST_TOKENS = 20_000
DEEPEST = 100

_PLAIN = frozenset("""
Alias Aliases All Any AtIndex AtTimeZone Between BitString Boolean Bracket ByteString CTE Check Collate Column
ColumnDef Connect Cube DataType DataTypeParam Distinct Escape Except Fetch Filter ForClause From Group
GroupingSets Having HavingMax HexString Identifier IgnoreNulls In IndexTableHint Intersect Interval IntervalSpan
Introducer JSON JSONColumnDef JSONExtractQuote JSONKeyValue JSONPath JSONPathFilter JSONPathKey JSONPathPart
JSONPathRecursive JSONPathRoot JSONPathScript JSONPathSelector JSONPathSlice JSONPathSubscript JSONPathUnion
JSONPathWildcard JSONSchema JSONValue FormatJson Join Lambda Lateral Limit LimitOptions Literal National Null
ObjectIdentifier Offset OnCondition OpenJSONColumnDef Order Ordered OverflowTruncateBehavior Parameter Partition Pivot
PivotAlias PivotAny Placeholder Prior PseudoType Pseudocolumn Qualify QueryOption RespectNulls Rollup Schema Select
SessionParameter Slice Star Subquery Table TableAlias TableColumn TableFromRows TableSample Tuple Union UnpivotColumns
Values Var Version Where Window WindowSpec With WithTableHint WithinGroup Paren Case Cast PositionalColumn
""".split())  # fmt: skip
_WRITING = frozenset({"Insert", "Update", "Delete", "Merge", "When", "Whens", "Returning", "OnConflict", "Into"})
_NEVER = frozenset({"PropertyEQ", "NextValueFor", "Operator", "ReadCSV", "ReadParquet"})
_ours: ContextVar[bool] = ContextVar("signoff_sql_parsing", default=False)


@dataclass(slots=True)
class SqlSurvey:
    """What was found in a tree."""

    tables: list[str] = field(default_factory=list[str])
    columns: list[str] = field(default_factory=list[str])
    writes: list[str] = field(default_factory=list[str])
    deeds: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """(operation, why, word) for everything in it that writes."""
    doubts: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """(why, word) for everything that may do more than it says."""
    not_calls: Counter[str] = field(default_factory=Counter[str])
    ctes: CteScopes = field(default_factory=CteScopes)


@lru_cache(maxsize=1)
def _sqlglot() -> Any:
    import sqlglot

    # SQL that sqlglot cannot parse leads to our verdict, not to a line in the application's log.
    logging.getLogger("sqlglot").addFilter(lambda record: not _ours.get())
    return sqlglot


@lru_cache(maxsize=8)
def _parser_dialect(dialect: str) -> Any:
    """The parser's dialect, without moving array indices to its base.

    To see whether `a[1]` is an array, it would work out the types of all before each bracket, so that work on
    `a[1][1]…` would grow with the square of its length.
    """
    made = _sqlglot().Dialect.get_or_raise(manner_of(dialect).parser)
    made.INDEX_OFFSET = 0
    return made


def parse(tokens: Sequence[Token], dialect: str) -> exp.Expr:
    """Return the syntax tree of one statement. Raises `NotUnderstood`."""
    depth = deepest = 0
    for token in tokens:
        if token.kind == "sign":
            depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token.text, 0)
            deepest = max(deepest, depth)
    if deepest > DEEPEST or len(tokens) > MOST_TOKENS:
        raise NotUnderstood("is too deeply nested or too long")
    sqlglot = _sqlglot()
    mark = _ours.set(True)
    try:
        trees = sqlglot.parse(written(list(tokens), dialect), read=_parser_dialect(dialect))
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        raise NotUnderstood("cannot be parsed", tokens[0].text) from error
    except Exception as error:  # a bug of the parser must not let anything pass
        raise NotUnderstood(f"cannot be parsed ({type(error).__name__})", tokens[0].text) from error
    finally:
        _ours.reset(mark)
    if len(trees) != 1 or trees[0] is None or type(trees[0]).__name__ in ("Command", "Block"):
        raise NotUnderstood(f"cannot be parsed: `{tokens[0].text}`", tokens[0].text)
    return cast("exp.Expr", trees[0])


def survey(tree: exp.Expr, dialect: str, generic: bool) -> SqlSurvey:
    """Visit every node once and collect what it does."""
    from sqlglot import exp

    found = SqlSurvey()
    values = isinstance(tree, exp.Anonymous) and tree.name.lower() == "values"  # how the MySQL parser returns VALUES
    if not values and not isinstance(tree, (exp.Query, exp.Values, exp.Insert, exp.Update, exp.Delete, exp.Merge)):
        raise NotUnderstood(f"is not a query but a `{type(tree).__name__.lower()}`", type(tree).__name__.lower())
    for node in tree.walk():
        kind = type(node).__name__
        _facts_of(found, node, dialect, generic)
        if kind in _WRITING or kind == "Lock":
            _deed(found, node, dialect)
        elif kind in _NEVER and not (kind == "PropertyEQ" and dialect == "duckdb"):  # in DuckDB it is part of a struct
            found.doubts.append(_never(kind))
        elif kind not in _PLAIN and not isinstance(node, (exp.Func, exp.Binary, exp.Unary, exp.Predicate)):
            found.doubts.append((f"unknown: `{kind.lower()}` is not known to only read", kind.lower()))
    sources = {one.alias_or_name.lower() for one in tree.find_all(exp.Table, exp.Subquery)}
    if any(column.lower() in sources for column in found.columns):
        found.columns.append("*")  # the name of a table used as a value means its whole row
    if dialect == "oracle":
        found.doubts.extend(_dual(tree))
    return found


def _facts_of(found: SqlSurvey, node: exp.Expr, dialect: str, generic: bool) -> None:
    from sqlglot import exp

    if isinstance(node, exp.Table):
        _table(found, node, dialect)
    elif isinstance(node, exp.Anonymous):
        _anonymous(found, node, dialect, generic)
    elif isinstance(node, exp.DataType):
        _type(found, node, dialect)
    elif isinstance(node, exp.With):
        _endless(found, node)
    elif isinstance(node, exp.WithTableHint):
        _hints(found, node)
    elif isinstance(node, exp.TableAlias) and node.args.get("columns"):
        found.not_calls[node.name.lower()] += 1
    elif isinstance(node, exp.Partition):
        found.not_calls["partition"] += 1
    elif isinstance(node, exp.Schema) and isinstance(node.this, exp.Table):
        found.not_calls[node.this.name.lower()] += 1
        found.columns.extend(one.name for one in node.expressions)
    else:
        found.columns.extend(_columns(node))


def _columns(node: exp.Expr) -> Iterator[str]:
    from sqlglot import exp

    if isinstance(node, exp.Column):
        yield node.name or "*"
    elif isinstance(node, exp.Star) and not isinstance(node.parent, (exp.Count, exp.Column)):
        yield "*"
    elif isinstance(node, exp.Join):
        yield from (one.name for one in node.args.get("using") or ())


def name_of(table: exp.Table, dialect: str) -> str:
    """Return `schema.table` as usually written. Case is kept only where quotes keep it."""
    from sqlglot import exp

    parts = [part for part in table.parts if isinstance(part, exp.Identifier)]
    keeps = dialect in ("postgres", "oracle")
    return ".".join(part.name if part.quoted and keeps else part.name.lower() for part in parts)


def _table(found: SqlSurvey, node: exp.Table, dialect: str) -> None:
    from sqlglot import exp

    if isinstance(node.parent, exp.Table) and node.parent.args.get("indexed") is node:
        return
    name = name_of(node, dialect)
    if not name:
        return  # a function, found from the tokens
    low = name.lower()
    if not found.ctes.names(node, low):
        found.tables.append(name)
    last = low.rpartition(".")[2]
    secret = listed("tables", "discloses")
    if low in secret or (
        last in secret
        and last.startswith(
            ("pg_", "_pg_", "user", "link$", "fsdir", "duckdb_", "decrypted_", "sql_logins", "syslogins")
        )
    ):
        found.doubts.append((f"discloses: `{name}` holds secrets or reads files", name))
    elif any(char in low for char in "/\\:*?@") or (dialect == "duckdb" and _is_file(node, low)):
        found.doubts.append((f"discloses: `{name}` may be a file or an address, not a table", name))
    elif dialect == "sqlite" and last.startswith("pragma_") and last[7:] not in _pragmas():
        found.doubts.append((f"unknown: `{name}` is not a pragma signoff knows to only report", name))
    elif dialect == "mssql" and low.count(".") > 2:
        found.doubts.append((f"sends: `{name}` is a table of another server", name))


def _pragmas() -> frozenset[str]:
    return listed("pragmas", "alone") | listed("pragmas", "about")


_ENDS = tuple("""
.csv .tsv .json .jsonl .ndjson .parquet .txt .xlsx .gz .zst .db .duckdb .arrow .arrows .feather .ipc .geojson .shp .gpkg
.avro .orc .xml .yaml .log .sqlite .bz2
""".split())  # fmt: skip


def _is_file(node: exp.Table, name: str) -> bool:
    """Whether DuckDB may look for a file of this name."""
    return name.endswith(_ENDS) or any("." in part.name for part in node.parts)


def _anonymous(found: SqlSurvey, node: exp.Anonymous, dialect: str, generic: bool) -> None:
    name = str(node.name)
    low = name.lower()
    pragma = dialect == "sqlite" and low.startswith("pragma_") and low[7:] in _pragmas()
    if pragma:
        found.not_calls[low] += 1
    elif low in WITHOUT_ARGUMENTS and not node.expressions:
        return
    elif low not in pure(dialect, generic):
        found.doubts.append((about_function(name), name))


def _type(found: SqlSurvey, node: exp.DataType, dialect: str) -> None:
    from sqlglot import exp

    if dialect in ("sqlite", "mysql") or node.this != exp.DataType.Type.USERDEFINED:
        return
    name = node.sql()
    if name.lower().strip('"') not in listed("types", "known"):
        found.doubts.append((f"unknown: `{name}` is a custom type, which may run code", name))


SAID = {
    "insert": "adds rows to",
    "replace": "replaces rows of",
    "update": "changes rows of",
    "delete": "removes rows of",
    "merge": "changes rows of",
}


def _deed(found: SqlSurvey, node: exp.Expr, dialect: str) -> None:
    from sqlglot import exp

    if isinstance(node, (exp.Insert, exp.Update, exp.Delete, exp.Merge)):
        operation = type(node).__name__.lower()
        if isinstance(node, exp.Insert) and (node.args.get("replace") or node.args.get("overwrite")):
            operation = "replace"
        names = list(_targets(node, dialect))
        found.writes.extend(names)
        shown = ", ".join(f"`{name}`" for name in names) or "a table"
        found.deeds.append((operation, f"writes: `{operation.upper()}` {SAID[operation]} {shown}", operation.upper()))
    elif isinstance(node, exp.Into):
        found.writes.extend(_targets(node, dialect))
        found.deeds.append(("select into", "writes: `SELECT INTO` creates a table", "INTO"))
    elif type(node).__name__ == "Lock":
        found.deeds.append(("lock", "changes: `FOR UPDATE` or a similar clause locks rows", "FOR UPDATE"))


def _targets(node: exp.Expr, dialect: str) -> Iterator[str]:
    from sqlglot import exp

    others: Any = node.args.get("tables") or []  # MySQL's `DELETE a, b FROM …`
    for place in others or [node.this]:
        table = place.find(exp.Table) if isinstance(place, exp.Expr) else None
        if table is not None:
            yield name_of(table, dialect)


def _hints(found: SqlSurvey, node: exp.WithTableHint) -> None:
    for hint in node.expressions:
        if hint.name.lower() not in ("nolock", "readuncommitted", "readcommitted", "readpast", "noexpand", "forceseek"):
            found.deeds.append(("lock", f"changes: `{hint.name}` may lock rows", hint.name))


def _never(kind: str) -> tuple[str, str]:
    return {
        "PropertyEQ": ("changes: `:=` sets a variable", ":="),
        "NextValueFor": ("changes: `NEXT VALUE FOR` advances a sequence", "NEXT VALUE FOR"),
        "Operator": ("unknown: `OPERATOR` may be a custom operator, which may run code", "OPERATOR"),
    }.get(kind, (f"discloses: `{kind}` reads files", kind))


def _endless(found: SqlSurvey, node: exp.With) -> None:
    """Find recursive queries that never end: the step reads only itself and has no condition."""
    from sqlglot import exp

    for cte in node.expressions:
        union, name = cte.this, cte.alias.lower()
        if not isinstance(union, exp.Union) or union.args.get("distinct") or union.args.get("limit"):
            continue
        step = union.expression
        tables = [one.name.lower() for one in step.find_all(exp.Table)]
        if tables == [name] and not any(step.find(one) for one in (exp.Where, exp.Join, exp.Limit, exp.Having)):
            found.doubts.append((f"waits: `{name}` calls itself without a limit", name))


_ORACLE_WORDS = frozenset(
    """rownum rowid level sysdate systimestamp user uid sessiontimezone dbtimezone current_date
current_timestamp localtimestamp dummy ora_rowscn connect_by_isleaf connect_by_iscycle""".split()
)


def _dual(tree: exp.Expr) -> Iterator[tuple[str, str]]:
    """Find Oracle functions called without parentheses: a column of `dual`, or of a table that is not named, is one."""
    from sqlglot import exp

    tables = [one for one in tree.find_all(exp.Table) if one.name]
    real = any(one.name.lower() != "dual" for one in tables)
    sources = {one.alias_or_name.lower() for one in tables}
    sources |= {one.alias.lower() for one in tree.find_all(exp.Subquery, exp.CTE, exp.TableAlias) if one.alias_or_name}
    for column in tree.find_all(exp.Column):
        name, owner = column.name.lower(), column.table.lower()
        if name in ("nextval", "currval") and owner:
            yield f"changes: `{column.sql()}` advances a sequence", name.upper()
        elif (owner not in sources) if owner else (not real and name not in _ORACLE_WORDS):
            yield f"unknown: `{column.sql()}` may be a function", column.name
