"""Find which functions a statement calls, from its tokens: as the database sees it, whatever a parser makes of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from signoff.policy.sql.lexer import NUMBER, QUOTED, SIGN, STRING, WORD, Token
from signoff.policy.sql.names import about_function, listed, pure, secret_setting

_BULK = frozenset(
    {"randomblob", "zeroblob", "repeat", "space", "lpad", "rpad", "generate_series", "replicate", "range"}
)
_ONLY_NUMBERS = frozenset({"randomblob", "zeroblob"})
_FORMATS = frozenset({"printf", "format"})
_PLAIN_SETTING = re.compile(r"[A-Za-z0-9_. -]+", re.ASCII)
_WIDE = re.compile(r"%[^a-zA-Z%]*(?:\d{7,}|\*)")
WITHOUT_ARGUMENTS = frozenset({"last_insert_id"})
"""Functions that only report if they are called without arguments."""
_MOST = 10_000_000
_OWN_SCHEMAS = {"postgres": frozenset({"pg_catalog"})}


class FunctionCall(NamedTuple):
    """A name followed by an opening parenthesis."""

    name: str
    schema: str
    quoted: bool
    at: int


def calls(tokens: Sequence[Token], dialect: str) -> Iterator[FunctionCall]:
    """Yield every name before a parenthesis that is not a keyword there."""
    for at in range(1, len(tokens)):
        name = tokens[at - 1]
        if tokens[at].kind != SIGN or tokens[at].text != "(" or name.kind not in (WORD, QUOTED):
            continue
        if [one.text for one in tokens[at + 1 : at + 3]] == ["+", ")"]:
            continue  # Oracle's outer join; no call has such arguments
        before = tokens[at - 2] if at > 1 else None
        schema = tokens[at - 3].text if before is not None and before.text == "." and at > 2 else ""
        if name.kind == WORD and not schema and _is_keyword(name.low, before, tokens[at + 1 : at + 2], dialect):
            continue
        yield FunctionCall(name.text, schema, name.kind == QUOTED, at - 1)


def _is_keyword(word: str, before: Token | None, inside: Sequence[Token], dialect: str) -> bool:
    """Whether a word before a parenthesis is a keyword there, and cannot be a user-defined function."""
    if word in listed("words", "reserved"):
        return True
    if before is None or (word == "top" and dialect != "mssql"):
        return False
    if word in listed("words", "infix"):
        operand = before.kind not in (SIGN, WORD) or before.text in (")", "]")
        named = before.kind == WORD and before.low not in listed("words", "openers")
        return operand or named or (before.low == "not" and word in ("like", "ilike", "rlike"))
    if word in ("any", "some") and dialect not in ("postgres", "duckdb"):
        if not inside or (inside[0].low not in ("select", "with", "values", "table") and inside[0].text != "("):
            return False
    return ("string" if before.kind == STRING else before.low or before.text) in listed("words", "after", word)


def doubts(tokens: Sequence[Token], dialect: str, generic: bool, not_calls: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield (why, word) for every function that may do more than compute.

    `not_calls` counts how often a name before a parenthesis is known to be something else: a table with its columns.
    """
    known = pure(dialect, generic)
    found = list(calls(tokens, dialect))
    times = Counter(call.name.lower() for call in found)
    for call in found:
        low = call.name.lower() if call.name.isascii() else call.name
        if not_calls[low] and not_calls[low] == times[low]:
            continue
        if low in WITHOUT_ARGUMENTS and tokens[call.at + 2].text == ")":
            continue
        shown = f"{call.schema}.{call.name}" if call.schema else call.name
        if call.schema and call.schema.lower() not in _OWN_SCHEMAS.get(dialect, ()):
            yield f"unknown: `{shown}` is not a function signoff knows to only compute", shown
        elif low not in known or (call.quoted and call.name != low):
            yield about_function(call.name), call.name
        elif why := _by_arguments(low, tokens, call):
            yield why, call.name


def _by_arguments(low: str, tokens: Sequence[Token], call: FunctionCall) -> str:
    if low == "current_setting":
        return _setting(tokens[call.at + 2 : call.at + 4])
    return _too_much(tokens, call) if low in _BULK or low in _FORMATS else ""


def _setting(argument: Sequence[Token]) -> str:
    """Return why a setting must not be read, or "". A setting that is not a plain string may be any."""
    plain = bool(argument) and argument[0].kind == STRING and _PLAIN_SETTING.fullmatch(argument[0].text)
    if len(argument) < 2 or not plain or argument[1].text not in (")", ","):
        return "discloses: `current_setting` reads a setting that is only known when it runs"
    return f"discloses: the setting {argument[0].text} holds a secret" if secret_setting(argument[0].text) else ""


def _too_much(tokens: Sequence[Token], call: FunctionCall) -> str:
    """Return why a function whose output size depends on its numbers may not end (resource exhaustion), or ""."""
    depth = 0
    plain = True
    for token in tokens[call.at + 1 :]:
        depth += {"(": 1, ")": -1}.get(token.text, 0) if token.kind == SIGN else 0
        if not depth:
            break
        if token.kind == NUMBER and _value(token.text) > _MOST:
            return f"waits: `{call.name}` creates {token.text} items or characters"
        if token.kind == STRING and call.name.lower() in _FORMATS and _WIDE.search(token.text):
            return f"waits: `{call.name}` may create any number of items or characters"
        plain = plain and (token.kind == NUMBER or token.text in "()")
    if not plain and call.name.lower() in _ONLY_NUMBERS:
        return f"waits: `{call.name}` may create any number of items or characters"
    return ""


def _value(number: str) -> float:
    try:
        return float(int(number, 16)) if number[:2].lower() == "0x" else float(number.lstrip("$?"))
    except (ValueError, OverflowError):
        return float("inf")
