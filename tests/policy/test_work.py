"""What others send is read, judged and shown in work that grows with its length alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.contracts.samples import request
from tests.policy.rules import policy
from tests.steps import grows_linearly

from signoff.channels.render import TerminalLook, draw_card
from signoff.core.call import Call
from signoff.core.card import shown_card
from signoff.core.codec import dump_question
from signoff.core.safe_text import safe_beginning
from signoff.core.strict_json import read_json
from signoff.core.summary import summary_of
from signoff.core.visible_text import suspicious, visible
from signoff.policy.addresses import may_name_somebody, read_recipients
from signoff.policy.places import runs_later
from signoff.policy.shell.command_facts import ShellFacts
from signoff.policy.shell.common_files import KnownFiles, may_share
from signoff.policy.shell.literal_words import read_line
from signoff.policy.sql import read_sql
from signoff.policy.step_count import StepCount
from signoff.policy.url import urls_in
from signoff.server.aap_wire import read_submission
from signoff.server.text_marks import diff_lines, marked

POLICY = policy(
    {"deny": {"path": "**/.env"}},
    {"ask": {"tool": "*", "path": "**/a*b*/**"}},
    {"allow": {"tool": "fetch", "url": "https://example.com/**"}},
    {"allow": {"tool": "mail", "recipients": {"domains": ["a.example"]}}},
    {"allow": {"tool": "read_file", "path": "src/**"}},
    {"ask": "*"},
)


def shell(line: str) -> None:
    facts = ShellFacts(line)
    assert facts.commands is not None
    assert facts.touched is not None
    assert facts.effects is not None


def among_links(size: int) -> tuple[str, KnownFiles]:
    """A line of commands with a pattern, and as many symlinks that it stands for."""
    line = "".join(f"cat a{number} *;" for number in range(size))
    return line, KnownFiles({f"l{number}": "/elsewhere" for number in range(size)})


def sql(text: str) -> None:
    for dialect in ("postgres", "mssql"):
        read_sql(text, dialect)


def judged(tool: str, key: str) -> Callable[[object], object]:
    return lambda value: POLICY.judge(Call(tool=tool, args={key: value}))


def shown(args: Mapping[str, Any]) -> None:
    one = request(args=args, call=Call(tool="deploy", args=args), summary=summary_of("deploy", args, {}))
    dump_question(one)
    draw_card(shown_card(one), TerminalLook(), whole=True)


def submitted(args: Mapping[str, Any]) -> None:
    read_submission(json.dumps({"tool": "a", "arguments": args, "timeout": "1h"}).encode())


def repeated(piece: str, before: str = "", after: str = "") -> Callable[[int], str]:
    return lambda size: before + piece * (size // len(piece)) + after


def listed(piece: str) -> Callable[[int], list[str]]:
    return lambda size: [piece] * (size // len(piece))


def named(size: int) -> dict[str, object]:
    return {f"a{number}": "b" for number in range(size // 4)}


def numbers(size: int) -> dict[str, object]:
    return {"numbers": [1.5] * (size // 4)}


def lines(size: int) -> dict[str, object]:
    return {"text": "a b\n" * (size // 4)}


SHELL = (
    "ls;",
    "cd a;",
    "cd ..;",
    "rm a;",
    "cp a b;",
    "foo a;",
    "diff a b;",
    "sed s/a/b/;",
    "awk 1 x|",
    "./foo a;",
    "sh -c 'ls';",
    "cat a* b*;",
    "$(ls) ",
    "a=b;",
    "ls|",
)
WORDS = ("a ", "'a' ", "* ", "{a,b} ", ">a ", "<a ", "a/../", "~/", "[a]", "-a ", "a=b,c=d:")
WORD_SIZES = {"<a ": 150}
"""Where a bound is between two sizes, they say nothing."""
SQL = (
    ("select a", "[1]", ""),
    ("select ", "1,", "1"),
    ("select * from t where a in (", "1,", "1)"),
    ("select * from t where ", "a=1 or ", "a=1"),
    ("", "select * from t union all ", "select 1"),
    ("with a as (select 1) ", "select * from a union all ", "select 1"),
    ("with a as (select 1)", ",b as (select * from a)", " select 1"),
    ("select * from a", " join b on a.x=b.x", ""),
    ("select a", "::int", ""),
    ("insert into t values ", "(1),", "(1)"),
    ("select ", "f(1),", "1"),
)
READERS: Mapping[str, tuple[Callable[[Any], object], Callable[[int], object], int]] = {
    **{f"the strict shell reader: {piece}": (read_line, repeated(piece, "echo "), 4_000) for piece in (*SHELL, *WORDS)},
    **{f"a shell line of {piece}": (shell, repeated(piece), 40 * len(piece)) for piece in SHELL},
    **{f"a program with {piece}": (shell, repeated(piece, "foo "), WORD_SIZES.get(piece, 600)) for piece in WORDS},
    **{f"SQL of {piece}": (sql, repeated(piece, before, after), 15 * len(piece)) for before, piece, after in SQL},
    **{
        f"a path of {piece}": (judged("read_file", "path"), repeated(piece), 1_000)
        for piece in ("a/", "../", "~/", "*/", "/", "\u00e9/")
    },
    **{f"names of {piece}": (look, repeated(piece), 1_500) for piece in ("a/", "../", "*") for look in (runs_later,)},
    "a pattern among links": (lambda given: ShellFacts(*given), among_links, 50),
    "many paths": (judged("read_file", "paths"), listed("a/b"), 300),
    "patterns that share": (lambda text: may_share("**/a*b*/**", text, StepCount()), repeated("*a"), 400),
    "an address": (judged("fetch", "url"), repeated("https://a."), 2_000),
    "addresses in a text": (urls_in, repeated("https://a.example/ "), 2_000),
    "recipients": (read_recipients, repeated("a@a.example,"), 1_000),
    "many recipients": (judged("mail", "to"), listed("a@a.example"), 1_000),
    "who may be named": (may_name_somebody, repeated("a\u0301@ "), 4_000),
    "JSON, nested": (
        lambda text: read_json(text, exact=True),
        lambda size: "[" * 50 + "1," * size + "1" + "]" * 50,
        500,
    ),
    "JSON, names": (lambda text: read_json(text, exact=True), lambda size: json.dumps(named(size)), 2_000),
    "a call of an agent": (submitted, named, 4_000),
    "a diff": (diff_lines, repeated("+a 'b' 1\n", "@@ -1 +1,99 @@\n"), 1_000),
    "hidden characters": (visible, repeated("\u202ea"), 2_000),
    "stacked marks": (visible, repeated("\u0301\u0316"), 2_000),
    "look-alikes": (suspicious, repeated("a\u0430 "), 2_000),
    "markers": (marked, repeated("\u27e6a\u27e7"), 2_000),
    "the text of an error": (lambda text: safe_beginning(text, longest=100_000), repeated("a: b\n"), 4_000),
    "a card of names": (shown, named, 400),
    "a card of numbers": (shown, numbers, 2_000),
    "a card of lines": (shown, lines, 800),
}


@pytest.mark.parametrize("reader", READERS)
def test_the_work_grows_with_the_text_alone(reader: str) -> None:
    work, of_size, size = READERS[reader]
    grows_linearly(of_size, work, size, sizes=(1, 2))
