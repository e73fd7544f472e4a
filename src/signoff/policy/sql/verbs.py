"""SQL statements that are never read-only, by their first word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from signoff.policy.sql.function_calls import doubts
from signoff.policy.sql.lexer import Token
from signoff.policy.sql.statement_facts import NotUnderstood, Statement
from signoff.policy.sql.statement_tree import name_of, parse

VERBS: dict[str, str] = {
    "create": "writes: creates {}",
    "drop": "writes: removes {}",
    "alter": "writes: changes {}",
    "truncate": "writes: empties {}",
    "rename": "writes: renames {}",
    "comment": "writes: changes the comment of {}",
    "copy": "writes: copies rows or files of {}",
    "import": "writes: imports data",
    "export": "writes: writes files",
    "load": "runs: loads code or data",
    "install": "runs: installs code",
    "unload": "writes: writes files",
    "vacuum": "writes: rewrites the database",
    "reindex": "writes: rebuilds indexes",
    "cluster": "writes: rewrites tables",
    "refresh": "writes: rewrites a view",
    "optimize": "writes: rewrites tables",
    "repair": "writes: rewrites tables",
    "checkpoint": "writes: writes cached data to disk",
    "backup": "writes: writes files",
    "restore": "writes: replaces the database",
    "bulk": "writes: imports data",
    "handler": "changes: opens a table without the usual locks",
    "call": "runs: runs a procedure",
    "exec": "runs: runs a procedure",
    "execute": "runs: runs a prepared statement",
    "prepare": "runs: prepares a statement to run later",
    "deallocate": "changes: removes a prepared statement",
    "do": "runs: runs code",
    "declare": "changes: declares a cursor or a variable",
    "fetch": "changes: moves a cursor",
    "move": "changes: moves a cursor",
    "open": "changes: opens a cursor",
    "close": "changes: closes a cursor",
    "attach": "changes: opens another database, and creates it if it does not exist",
    "detach": "changes: closes a database",
    "use": "changes: switches to another database",
    "set": "changes: changes a setting",
    "reset": "changes: changes a setting",
    "discard": "changes: resets the session",
    "begin": "changes: starts a transaction or a block of code",
    "start": "changes: starts a transaction",
    "commit": "changes: ends a transaction",
    "end": "changes: ends a transaction",
    "rollback": "changes: ends a transaction",
    "abort": "changes: ends a transaction",
    "savepoint": "changes: sets a savepoint",
    "release": "changes: releases a savepoint",
    "lock": "changes: locks {}",
    "unlock": "changes: releases locks",
    "grant": "changes: grants rights",
    "revoke": "changes: revokes rights",
    "deny": "changes: revokes rights",
    "reassign": "changes: changes the owner of objects",
    "security": "changes: changes a label",
    "flush": "changes: empties caches or logs",
    "kill": "changes: ends a connection",
    "shutdown": "changes: stops the server",
    "purge": "changes: removes logs",
    "change": "changes: changes replication",
    "stop": "changes: stops replication",
    "listen": "changes: listens on a channel",
    "unlisten": "changes: stops listening",
    "notify": "sends: sends a message",
    "waitfor": "waits: waits for a time or a result",
    "dbcc": "changes: runs a maintenance command",
    "upsert": "writes: changes rows of {}",
    "undrop": "writes: restores {}",
}
_WITHOUT_TABLES = frozenset("""
set reset begin start commit end rollback abort savepoint release use detach checkpoint discard listen unlisten notify
unlock fetch close kill shutdown waitfor
""".split())  # fmt: skip


_PLAIN_KINDS = frozenset(
    "table view index sequence schema database temp temporary unique materialized or replace if".split()
)


def about_verb(tokens: Sequence[Token], dialect: str) -> tuple[Statement, str]:
    """Return the statement, and what is not known about it, or ""."""
    verb = tokens[0].low
    tables: tuple[str, ...] = ()
    opaque = ""
    if verb not in _WITHOUT_TABLES:
        try:
            tables = _tables(tokens, dialect)
            opaque = _more(tokens, dialect)
        except NotUnderstood:
            opaque = f"has a `{verb.upper()}` that signoff does not check further"
    shown = ", ".join(f"`{name}`" for name in tables[:3]) or "something"
    effect, _, what = VERBS[verb].format(shown).partition(": ")
    word = verb.upper()
    if verb == "copy" and any(token.low == "program" for token in tokens):
        effect, what, word = "runs", "runs a program of the server", "COPY … PROGRAM"
    writes = tables if verb in ("drop", "truncate", "rename", "lock") else tables[:1]
    statement = Statement(verb, False, tables=tables, writes=writes, why=f"{effect}: `{word}` {what}", word=word)
    return statement, opaque


def _more(tokens: Sequence[Token], dialect: str) -> str:
    """Return what a statement may do beyond its operation and tables, so that no rule allows it by these, or ""."""
    verb, kind = tokens[0].low, tokens[1].low if len(tokens) > 1 else ""
    if verb in ("create", "alter", "drop") and kind not in _PLAIN_KINDS:
        return f"has a `{verb.upper()} {kind.upper()}`, which may do more than change a table"
    if verb == "copy" and not any(token.low in ("stdin", "stdout") for token in tokens):
        return "has a `COPY` from or to a file or a program"
    query = next((at for at, token in enumerate(tokens) if token.low in ("select", "default", "check", "using")), None)
    if query is not None:
        for why, _ in doubts(tokens[query:], dialect, False, Counter()):
            return why.partition(": ")[2]
    return ""


def _tables(tokens: Sequence[Token], dialect: str) -> tuple[str, ...]:
    from sqlglot import exp

    tree = parse(tokens, dialect)
    return tuple(dict.fromkeys(name for table in tree.find_all(exp.Table) if (name := name_of(table, dialect))))
