"""Split texts into pieces with CSS classes: coloured diffs, and the parts that decided about a command or SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from signoff.core.card import CardArg
from signoff.core.preview import marked_lines
from signoff.core.visible_text import CLOSE, OPEN
from signoff.policy.shell.command_facts import ShellFacts
from signoff.policy.shell.simple_command import Concern
from signoff.policy.sql.read import read_sql

LONGEST_COLOURED = 2_000
"""Longer lines are shown without syntax colours."""
MOST_COLOURED = 50_000
"""Lines after this many characters of a diff are shown without syntax colours."""
LONGEST_READ = 8_000
"""Longer commands and SQL are not searched for the part that decided."""
_SHELL = frozenset({"command", "cmd"})
_SQL = frozenset({"sql", "query", "statement"})
_KINDS = {"+": "added", "-": "removed", "@": "place", "": "heading", " ": "same"}
_MARKER = re.compile(rf"{OPEN}(?P<mask>masked'* )?[^{OPEN}{CLOSE}]*{CLOSE}")
_WORDS = frozenset(
    "and as assert async await break case catch class const continue def default del delete do elif else enum except "
    "export extends false finally fn for from func function if impl import in insert interface is let match mod none "
    "not null or package pass private public raise return select self static struct super switch this throw true try "
    "type update use var where while with yield".split()
)
_SYNTAX = re.compile(
    r"""(?P<string>"(?:[^"\\]|\\.)*(?:"|\\?\Z)|'(?:[^'\\]|\\.)*(?:'|\\?\Z)|`[^`]*(?:`|\Z))"""
    r"""|(?P<comment>(?:^|(?<=\s))(?:\#|//|--\s).*)"""
    r"""|(?P<number>\b\d[\d_.]*\b)"""
    r"""|(?P<word>\b[A-Za-z_]+\b)""",
    re.DOTALL,
)
"""A string without a closing quote extends to the end of its line, so that every string that starts also ends. No text
is scanned twice, so the author of a diff cannot make the regular expression slow (ReDoS)."""


class Piece(NamedTuple):
    """Some text and its CSS class, or none."""

    text: str
    kind: str = ""
    why: str = ""
    """Why it is highlighted, for the pieces that decided."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff."""

    kind: str
    """`added`, `removed`, `same`, `place` or `heading`."""
    mark: str
    """The character in the first column, so that colour is never the only difference."""
    pieces: tuple[Piece, ...]


_HEADING = re.compile(r"^\+\+\+ (?:b/)?(\S.*)$", re.MULTILINE)
_PROSE = frozenset("md markdown txt text rst adoc org log csv tsv".split())


def diff_lines(diff: str) -> list[DiffLine]:
    """Split a unified diff, whose texts are safe already, into lines."""
    found: list[DiffLine] = []
    left = MOST_COLOURED if not _is_prose(diff) else -1
    for mark, line in marked_lines(diff):
        changed = mark in ("+", "-", " ")
        text = line[1:] if changed else line
        left -= len(text)
        pieces = tuple(_coloured(text) if left >= 0 else marked(text)) if changed else (Piece(text),)
        found.append(DiffLine(_KINDS[mark], mark if mark in ("+", "-") else " " if changed else "", pieces))
    return found


def _is_prose(diff: str) -> bool:
    """Whether a diff is of a text for people, in which the words of programming languages are words."""
    named = _HEADING.search(diff)
    name = named[1].rpartition("/")[2].lower() if named is not None else ""
    return "." in name and name.rpartition(".")[2] in _PROSE


def marked(text: str) -> list[Piece]:
    """Split a safe text so that markers of hidden characters and masks of secrets are highlighted."""
    found: list[Piece] = []
    at = 0
    for marker in _MARKER.finditer(text):
        if marker.start() > at:
            found.append(Piece(text[at : marker.start()]))
        found.append(Piece(marker[0], "mask" if marker["mask"] else "hidden"))
        at = marker.end()
    if at < len(text) or not found:
        found.append(Piece(text[at:]))
    return found


def argument_pieces(arg: CardArg, args: Mapping[str, Any]) -> list[Piece]:
    """Split an argument as it is shown; in a command or SQL that does more than read, the part that decided is marked.

    `args` are those of the call. If the text on the card differs from the value in them, nothing is marked, because the
    positions would be wrong.
    """
    value = args.get(arg.name)
    if not isinstance(value, str) or value != arg.text or len(value) > LONGEST_READ:
        return marked(arg.text)
    if arg.name in _SHELL:
        spans = _of_command(value)
    elif arg.name in _SQL:
        spans = _of_sql(value)
    else:
        return marked(arg.text)
    return _cut(value, spans)


class _Span(NamedTuple):
    at: int
    end: int
    why: str


def _of_command(text: str) -> list[_Span]:
    """Return the simple commands of a line that do more than read."""
    facts = ShellFacts(text)
    if facts.line is None:
        word = facts.concern.word if facts.concern is not None else ""
        return _first(text, word, facts.why)
    spans: list[_Span] = []
    for simple, judged in zip(facts.line.commands, facts.judged, strict=True):
        if isinstance(judged, Concern) and simple.words:
            spans.append(_Span(simple.words[0].at, simple.words[-1].end, judged.sentence))
    return [one for one in spans if 0 <= one.at < one.end <= len(text)]


def _of_sql(text: str) -> list[_Span]:
    """Return the words of statements that do more than read."""
    facts = read_sql(text)
    if facts.read_only or not (facts.statements and facts.word):
        return []
    return _first(text, facts.word, facts.sentence)


def _first(text: str, word: str, why: str) -> list[_Span]:
    found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) if word.strip() else None
    return [_Span(found.start(), found.end(), why)] if found is not None else []


def _cut(text: str, spans: Sequence[_Span]) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0
    for span in sorted(spans):
        if span.at < at:
            continue
        pieces += [Piece(text[at : span.at])] if span.at > at else []
        pieces.append(Piece(text[span.at : span.end], "decides", span.why))
        at = span.end
    pieces += [Piece(text[at:])] if at < len(text) or not pieces else []
    return pieces


def _coloured(text: str) -> Iterator[Piece]:
    """Colour a line of some language: strings, comments, numbers and common keywords."""
    for part in marked(text):
        if part.kind or len(part.text) > LONGEST_COLOURED:
            yield part
            continue
        at = 0
        for token in _SYNTAX.finditer(part.text):
            kind = token.lastgroup or ""
            if kind == "word" and token[0].lower() not in _WORDS:
                continue
            if token.start() > at:
                yield Piece(part.text[at : token.start()])
            yield Piece(token[0], kind)
            at = token.end()
        if at < len(part.text) or not part.text:
            yield Piece(part.text[at:])
