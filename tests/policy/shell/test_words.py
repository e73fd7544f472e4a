"""The strict tokenizer by itself: what it reads, what it refuses and why."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import NIGHTLY, examples
from tests.tables import table

from signoff.policy.shell.line import CommandLine, Join, Redirect, Word
from signoff.policy.shell.literal_words import LONGEST, Refused, read_line


def read(text: str) -> CommandLine:
    line = read_line(text)
    assert isinstance(line, CommandLine), (text, line)
    return line


def only(text: str) -> Word:
    """The one argument of `p`."""
    (command,) = read(f"p {text}").commands
    assert len(command.words) == 2, command
    return command.words[1]


@table(
    ("text", "argv"),
    [
        ("ls -la", ("ls", "-la")),
        ("  ls\t-l  ", ("ls", "-l")),
        ("grep 'a  b' \"c d\"", ("grep", "a  b", "c d")),
        ("p a'b'\"c\"d", ("p", "abcd")),
        ("p ''", ("p", "")),
        (r"p a\ b \$x \"", ("p", "a b", "$x", '"')),
        (r'p "\$ \` \" \\ \a \n"', ("p", '$ ` " \\ \\a \\n')),
        (r"p '\a$x`y`'", ("p", r"\a$x`y`")),
        ('p "a$" "$ b" "$/" a$', ("p", "a$", "$ b", "$/", "a$")),
        ("p ! a!b '!'", ("p", "!", "a!b", "!")),
        ("p a#b '#' # c", ("p", "a#b", "#")),
        ("# before\n\np a", ("p", "a")),
        ("find . -exec {} +", ("find", ".", "-exec", "{}", "+")),
        ("git show stash@{0} HEAD@{1}..HEAD", ("git", "show", "stash@{0}", "HEAD@{1}..HEAD")),
        ("p } { a}", ("p", "}", "{", "a}")),
        ("p if then done a=b", ("p", "if", "then", "done", "a=b")),
        ("'if' x", ("if", "x")),
        (r"\time x", ("time", "x")),
        ("[ -f a ]", ("[", "-f", "a", "]")),
        ("p 'ü' \"a\nb\t\"", ("p", "ü", "a\nb\t")),
        ("git log HEAD~1 HEAD^", ("git", "log", "HEAD~1", "HEAD^")),
        ("jq .[] a", ("jq", ".[]", "a")),
    ],
)
def test_literal_words(text: str, argv: tuple[str, ...]) -> None:
    (command,) = read(text).commands
    assert command.argv == argv
    assert not any(word.glob or word.tilde for word in command.words)


def test_every_word_knows_where_it_stands() -> None:
    text = "p  a 'b c' \"d\" e*\\ f | ~/g <h"
    words = [word for command in read(text).commands for word in command.words]
    assert [text[word.at : word.end] for word in words] == ["p", "a", "'b c'", '"d"', "e*\\ f", "~/g"]


@table(
    ("text", "plain", "glob"),
    [
        ("*.py", "*.py", "*.py"),
        ("a?", "a?", "a?"),
        ("**/a", "**/a", "**/a"),
        ("***/a", "***/a", "**/a"),
        ("a/**", "a/**", "a/**"),
        ("a**/b", "a**/b", "a*/b"),
        ("'*'*", "**", r"\**"),
        (r"\[a]*", "[a]*", r"\[a]*"),
        ("[a-c]", "[a-c]", "[a-c]"),
        ("[!a'-'c]", "[!a-c]", r"[!a\-c]"),
        ("'a-b'*", "a-b*", "a-b*"),
        (r'"a\b"*', r"a\b*", r"a\\b*"),
        ("'*'", "*", ""),
        ("[", "[", ""),
        (".[].a", ".[].a", ""),
    ],
)
def test_patterns(text: str, plain: str, glob: str) -> None:
    word = only(text)
    assert (word.text, word.glob) == (plain, glob)


def test_the_home_directory() -> None:
    assert [only(text).tilde for text in ("~", "~/a", "~/*")] == [True] * 3
    assert [only(text).tilde for text in ("'~'", r"\~", "a~", '"~"/a')] == [False] * 4
    assert only("~/*.py")[:3] == ("~/*.py", "~/*.py", True)


def test_pipelines_and_what_joins_them() -> None:
    line = read("a 1 | b|c && d || e; f\ng &&\n\n h ;\n")
    shape = [(pipeline.join, [stage.argv[0] for stage in pipeline.stages]) for pipeline in line.pipelines]
    assert shape == [
        (Join.ALWAYS, ["a", "b", "c"]),
        (Join.AND, ["d"]),
        (Join.OR, ["e"]),
        (Join.ALWAYS, ["f"]),
        (Join.ALWAYS, ["g"]),
        (Join.AND, ["h"]),
    ]


ERR_TO_OUT = Redirect(2, None, 1)


@table(
    ("text", "redirects"),
    [
        ("p >/dev/null", [Redirect(1)]),
        ("p 1> /dev/null 2>>'/dev/null'", [Redirect(1), Redirect(2)]),
        ("2>/dev/null p", [Redirect(2)]),
        ("p 2>&1 >/dev/null", [ERR_TO_OUT, Redirect(1)]),
        ("p &>/dev/null", [Redirect(1), ERR_TO_OUT]),
        ("p >&/dev/null", [Redirect(1), ERR_TO_OUT]),
        ("p >&2", [Redirect(1, None, 2)]),
        ("p 1>& 2", [Redirect(1, None, 2)]),
        ("p < a", [Redirect(0, Word("a", at=4, end=5))]),
        ("p <~/a", [Redirect(0, Word("~/a", tilde=True, at=3, end=6))]),
        ("p 2>/dev/null |& q", [Redirect(2), ERR_TO_OUT]),
    ],
)
def test_redirects_that_change_nothing(text: str, redirects: list[Redirect]) -> None:
    first = read(text).commands[0]
    assert first.argv == ("p",)
    assert list(first.redirects) == redirects


def test_digits_before_a_redirect_are_a_stream_only_where_bash_says_so() -> None:
    assert read("p a2>/dev/null").commands[0] == read("p a2 >/dev/null").commands[0]._replace()
    assert [read(text).commands[0].argv for text in (r"p \2>/dev/null", "p ''2>/dev/null", "p 2 >/dev/null")] == [
        ("p", "2")
    ] * 3


REFUSED = [
    ("", "is empty"),
    (" \n\t# a", "is empty"),
    ("p 1&>/dev/null", "a number before"),
    ("p &", "background"),
    ("p & q", "background"),
    ("(p)", "parentheses"),
    ("p a(b)", "parentheses"),
    ("((1))", "parentheses"),
    ("p !(a)", "parentheses"),
    ("p $(q)", "substitution `$(`"),
    ('p "$(q)"', "substitution `$(`"),
    ("p $((1))", "substitution `$(`"),
    ("p `q`", "backquotes"),
    ('p "`q`"', "backquotes"),
    ("p <(q)", "substitution `<(`"),
    ("p >(q)", "substitution `>(`"),
    ("p $a", "variable: `$a`"),
    ('p "x$a"', "variable: `$a`"),
    ("p ${a}", "variable: `${a}`"),
    ('p "$[1]"', "variable"),
    ("p $? ", "variable: `$?`"),
    ("p $$", "variable"),
    ("p $'a'", "special quote"),
    ('p $"a"', "special quote"),
    ("A=b p", "sets a variable"),
    ("A+=b p", "sets a variable"),
    ("a[0]=b p", "sets a variable"),
    ("a[0 1]=b p", "sets a variable"),
    (">/dev/null A=b p", "sets a variable"),
    ("export a=*", "`export`"),
    ("p <<a\na", "`<<`"),
    ("p <<<a", "`<<`"),
    ("p <>a", "writes to the file `a`"),
    ("p >|a", "writes to the file `a`"),
    ("p > 'a b'", "writes to the file `a b`"),
    ("p >>a", "writes to the file `a`"),
    ("p 2>a", "writes to the file `a`"),
    ("p &>a", "writes to the file `a`"),
    ("p >&a", "writes to the file `a`"),
    ("p 3>a", "writes to the file `a`"),
    ("p >/dev/null/../sda", "writes to the file"),
    ("p >/dev/nul?", "writes to the file"),
    ("p 3>&1", "not understood"),
    ("p >&-", "not understood"),
    ("p <&3", "not understood"),
    ("p <*", "that a pattern names"),
    ("p </dev/tcp/a/1", "network"),
    ("p {fd}>/dev/null", "may name a descriptor"),
    ("p {a} >&2", "may name a descriptor"),
    ("p {PATH}\t2>&1", "may name a descriptor"),
    ("p x {a1_} < a", "may name a descriptor"),
    ("p {a} y", "may name a descriptor"),
    ("p <1>/dev/null", "without a source"),
    ("p >", "without a target"),
    ("p > #a", "without a target"),
    (">/dev/null", "without a command"),
    ("p {a,b}", "several words"),
    ("p {1..3}", "several words"),
    ("p a{b,'c'}d", "several words"),
    ("p a\\\nb", "continues on the next line"),
    ('p "a\\\nb"', "continues on the next line"),
    ("p a\\", "ends in a backslash"),
    ("p ~root", "another user"),
    ("p ~+", "another user"),
    ("p a=~", "`~` after `=`"),
    ("p a:~/b", "`~` after `:`"),
    ("p a\0b", "U+0000"),
    ("p 'a\x1bb'", "U+001B"),
    ("p a\rq", "U+000D"),
    ("p\vq", "U+000B"),
    ("p 'a\x7f'", "U+007F"),
    ("p é", "non-ASCII"),
    ("p\u00a0q", "invisible"),
    ("p '\u202e'", "invisible"),
    ("p '\u200b'", "invisible"),
    ("p # \u2066", "invisible"),
    ("p '\ud800'", "invisible"),
    ("p 'a", "not closed"),
    ('p "a', "not closed"),
    ("p ;; q", "no command before `;`"),
    ("p | | q", "no command before `|`"),
    ("&& p", "no command before `&&`"),
    ("p\n| q", "no command before `|`"),
    ("p |", "another command has to follow"),
    ("p &&", "another command has to follow"),
    ("p || # a\n", "another command has to follow"),
    ("[[:alpha:]]* a", "that shells read differently"),
    ("p [[:alpha:]]*", "that shells read differently"),
    ("p [a/b]*", "that shells read differently"),
    ("l? a", "with a pattern"),
    ("%1", "job"),
    ("a" * (LONGEST + 1), "16,384"),
]
KEYWORDS = "if then else elif fi do done case esac while until for in select function time coproc [[ ]] { } !".split()


@table(("text", "why"), REFUSED)
def test_everything_else_is_refused_and_says_why(text: str, why: str) -> None:
    refused = read_line(text)
    assert isinstance(refused, Refused), (text, refused)
    assert why in refused.why, refused
    assert (
        text.startswith(refused.word, refused.at)
        or refused.at >= len(text)
        or refused.why.startswith(("writes", "has a redirect"))
    )


@table("keyword", KEYWORDS)
@table("before", ["", "p; ", "p | ", "p && ", "2>&1 ", "p\n"])
def test_keywords_are_refused_where_a_command_begins(keyword: str, before: str) -> None:
    refused = read_line(f"{before}{keyword} a")
    assert isinstance(refused, Refused) and refused[1:] == (keyword, len(before))
    assert read(f"{before}'{keyword}' a").commands[-1].argv == (keyword, "a")
    assert read(f"p {keyword}").commands[0].argv == ("p", keyword)


def test_the_longest_text_is_read() -> None:
    assert read("p " + "a" * (LONGEST - 2)).commands[0].argv[1] == "a" * (LONGEST - 2)


@examples(3_000, daily=50)
@given(st.text(st.characters() | st.sampled_from("\ud800'\"\\$`|&;<>{}[]*?~!#=: \n"), max_size=40))
def test_no_text_raises(text: str) -> None:
    assert isinstance(read_line(text), CommandLine | Refused)
    assert isinstance(read_line("p " + text), CommandLine | Refused)


PIECES = [
    "a",
    "{",
    "[",
    "*",
    "[a",
    "$",
    "'",
    '"',
    "\\",
    "\\a",
    "a ",
    "a;",
    "a|",
    "2>&1 ",
    "~",
    "{,",
    "'a'b",
    '"$ "a',
    "<a ",
]
PIECES += [
    "# ",
    "\n",
    "1",
    "1>",
    "'é'",
    "'\u0301'",
    "[]",
    "[!",
    "**",
    "a\\",
    '"\\',
    "''",
    "a&&",
    "&>",
    "\u200b",
    "é\u0301",
]


@table("piece", PIECES if NIGHTLY else PIECES[::3])
def test_time_grows_with_the_length_only(piece: str) -> None:
    """Twice the text would take four times as long if any part of it were read again and again."""
    for start in ("", "p ", 'p "'):
        text = (start + piece * LONGEST)[:LONGEST]
        began = time.process_time()
        read_line(text)
        assert time.process_time() - began < 1
