"""Which functions a statement calls, told from its tokens: the database's own view, whatever a parser makes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from signoff.policy.sql.lexer import NUMBER, QUOTED, SIGN, STRING, WORD, Token
from signoff.policy.sql.names import about_function, pure, stands_before

_BULK = frozenset(
    {"randomblob", "zeroblob", "repeat", "space", "lpad", "rpad", "generate_series", "replicate", "range"}
)
_ONLY_NUMBERS = frozenset({"randomblob", "zeroblob"})
_MOST = 10_000_000
_OWN_SCHEMAS = {"postgres": frozenset({"pg_catalog"})}


class Call(NamedTuple):
    """A name with an opening parenthesis after it."""

    name: str
    schema: str
    quoted: bool
    at: int


def calls(tokens: Sequence[Token]) -> Iterator[Call]:
    """Every name before a parenthesis that is no keyword there."""
    for at in range(1, len(tokens)):
        name = tokens[at - 1]
        if tokens[at].kind != SIGN or tokens[at].text != "(" or name.kind not in (WORD, QUOTED):
            continue
        if [one.text for one in tokens[at + 1 : at + 3]] == ["+", ")"]:
            continue  # Oracle's outer join; no call has such arguments
        before = tokens[at - 2] if at > 1 else None
        schema = tokens[at - 3].text if before is not None and before.text == "." and at > 2 else ""
        if name.kind == WORD and not schema:
            previous = "" if before is None else "string" if before.kind == STRING else before.low or before.text
            if stands_before(name.low, previous):
                continue
        yield Call(name.text, schema, name.kind == QUOTED, at - 1)


def doubts(tokens: Sequence[Token], dialect: str, generic: bool, not_calls: Counter[str]) -> Iterator[tuple[str, str]]:
    """(why, word) of every function that may do more than compute.

    `not_calls` says how often a name before a parenthesis is known to be something else: a table with its columns.
    """
    known = pure(dialect, generic)
    found = list(calls(tokens))
    times = Counter(call.name.lower() for call in found)
    for call in found:
        low = call.name.lower() if call.name.isascii() else call.name
        if not_calls[low] and not_calls[low] == times[low]:
            continue
        shown = f"{call.schema}.{call.name}" if call.schema else call.name
        if call.schema and call.schema.lower() not in _OWN_SCHEMAS.get(dialect, ()):
            yield f"unknown: `{shown}` is not a function that is known to only compute", shown
        elif (low not in known and not low.startswith("pg_stat_get_")) or (call.quoted and call.name != low):
            yield about_function(call.name), call.name
        elif low in _BULK and (why := _too_much(tokens, call)):
            yield why, call.name


def _too_much(tokens: Sequence[Token], call: Call) -> str:
    """Why a function that makes as much as its numbers say may never end."""
    depth = 0
    plain = True
    for token in tokens[call.at + 1 :]:
        depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == SIGN else 0
        if not depth:
            break
        if token.kind == NUMBER and _value(token.text) > _MOST:
            return f"waits: `{call.name}` makes {token.text} of something"
        plain = plain and (token.kind == NUMBER or token.text in "()")
    if not plain and call.name.lower() in _ONLY_NUMBERS:
        return f"waits: nobody can tell how much `{call.name}` makes"
    return ""


def _value(number: str) -> float:
    try:
        return float(int(number, 16)) if number[:2].lower() == "0x" else float(number.lstrip("$?"))
    except (ValueError, OverflowError):
        return float("inf")
