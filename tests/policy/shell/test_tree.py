"""The full parse: every command is listed, wherever it stands, or the tree says that it is not understood."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.tables import table

from signoff.policy.shell.literal_words import Refused, read_line
from signoff.policy.shell.syntax_tree import LONGEST, Command, Tree, parse_tree


def words(text: str) -> list[tuple[str | None, ...]]:
    return [command.words for command in parse_tree(text).commands]


@table(
    ("text", "inside"),
    [
        ("rm x", ""),
        ("ls; rm x", ""),
        ("ls\nrm x", ""),
        ("ls && rm x", ""),
        ("ls || rm x", ""),
        ("ls | rm x", ""),
        ("ls |& rm x", ""),
        ("rm x | cat", ""),
        ("rm x & ls", ""),
        ("! rm x", ""),
        ("A=1 B=2 rm x", ""),
        (r"ls \; ; rm x", ""),
        ("ls # a comment\nrm x", ""),
        ("(rm x)", "subshell"),
        ("{ rm x; }", "group"),
        ("for a in b; do rm x; done", "loop"),
        ("for ((a=0; a<1; a++)); do rm x; done", "loop"),
        ("while rm x; do ls; done", "loop"),
        ("until ls; do rm x; done", "loop"),
        ("select a in b; do rm x; done", "loop"),
        ("if ls; then rm x; fi", "condition"),
        ("if rm x; then ls; fi", "condition"),
        ("if ls; then ls; elif ls; then ls; else rm x; fi", "condition"),
        ("case a in b) ls;; *) rm x;; esac", "condition"),
        ("ls $(rm x)", "substitution"),
        ("ls `rm x`", "substitution"),
        ('ls "a $(rm x) b"', "substitution"),
        ('ls "${a:-$(rm x)}"', "substitution"),
        ("ls ${a/$(rm x)/b}", "substitution"),
        ("ls ${a[$(rm x)]}", "substitution"),
        ("ls $((1 + $(rm x)))", "substitution"),
        ("ls $[1 + $(rm x)]", "substitution"),
        ("((a = $(rm x)))", "substitution"),
        ("a=$(rm x)", "substitution"),
        ("a=(b $(rm x))", "substitution"),
        ("a[$(rm x)]=b", "substitution"),
        ("A=$(rm x) ls", "substitution"),
        ("export A=$(rm x)", "substitution"),
        ("[ -f $(rm x) ]", "substitution"),
        ("[[ -f $(rm x) ]]", "substitution"),
        ("for a in $(rm x); do ls; done", "substitution"),
        ("case $(rm x) in b) ls;; esac", "substitution"),
        ("ls $(ls $(ls $(rm x)))", "substitution"),
        ("cat <<< $(rm x)", "substitution"),
        ("ls <(rm x)", "process substitution"),
        ("ls > >(rm x)", "process substitution"),
        ("cat <<E\na $(rm x) b\nE\n", "here-document"),
        ("cat <<E\n${a:-$(rm x)}\nE\n", "here-document"),
    ],
)
def test_a_command_is_found_wherever_it_stands(text: str, inside: str) -> None:
    commands = parse_tree(text).commands
    found = [command for command in commands if command.words == ("rm", "x")]
    assert [(command.via, command.inside) for command in found] == [((), inside)]
    assert found[0].at == text.rindex("rm x") or text.startswith("A=1")


@table(
    ("source", "text"),
    [
        ("plain", "plain"),
        ("'a b'", "a b"),
        ('"a b"', "a b"),
        (r"a\ b", "a b"),
        ("a'b'\"c\"d", "abcd"),
        (r'"a\"b\\c\$d\`e\f"', 'a"b\\c$d`e\\f'),
        ("'a\\b'", "a\\b"),
        ('"$"', "$"),
        ("a$", "a$"),
        (r"$'a\tb\'c\x41\101\u00e9\\'", "a\tb'cAAé\\"),
        ("''", ""),
        ("*.py", "*.py"),
        ("~/x", "~/x"),
        ("{}", "{}"),
        ("HEAD@{1}", "HEAD@{1}"),
        ("a=b", "a=b"),
        ("é", "é"),
        ("\U0001f600", "\U0001f600"),
        ('"$a"', None),
        ("a$b", None),
        ("$(c)", None),
        ("{a,b}", None),
        ("x{1..3}", None),
        ('$"a"', None),
        ("$((1))", None),
        ("<(c)", None),
    ],
)
def test_words_are_what_the_program_is_given_or_none(source: str, text: str | None) -> None:
    tree = parse_tree(f"prog {source} end")
    assert tree.commands[0].words == ("prog", text, "end")
    assert tree.opaque == ()


@pytest.mark.parametrize("source", [r"$'\cA'", r"$'\xff'", r"$'a\0b'", r"$'\q'"])
def test_odd_escapes_are_not_guessed(source: str) -> None:
    tree = parse_tree(f"prog {source}")
    assert tree.commands[0].words == ("prog", None)
    assert tree.opaque


@table("program", ["$TOOL", '"$TOOL"', "$(which rm)", "`which rm`", "/bin/r?", "/bin/[r]m", "*", "r$x"])
def test_a_program_that_is_not_literal(program: str) -> None:
    tree = parse_tree(f"{program} -rf /")
    assert tree.commands[0].words == (None, "-rf", "/")
    assert any(reason.startswith("runs a program whose name is an expansion") for reason in tree.opaque)


@table("source", ["rm", "'rm'", '"rm"', r"\rm", "r'm'", 'r""m', r"$'\x72m'", r"$'\162m'"])
def test_quotes_do_not_hide_a_program(source: str) -> None:
    assert parse_tree(f"{source} x") == Tree((Command(("rm", "x")),))


@table(
    ("text", "argv", "writes", "reads"),
    [
        ("rm > out -rf /", ("rm", "-rf", "/"), ("out",), ()),
        ("> out rm -rf /", ("rm", "-rf", "/"), ("out",), ()),
        ("rm 2>&1 -rf > out / < in", ("rm", "-rf", "/"), ("out",), ("in",)),
        ("rm -rf / >> 'a b'", ("rm", "-rf", "/"), ("a b",), ()),
        ("rm -rf / &> a", ("rm", "-rf", "/"), ("a",), ()),
        ("rm -rf / >| a 2>> b", ("rm", "-rf", "/"), ("a", "b"), ()),
        ("rm -rf / >& a", ("rm", "-rf", "/"), ("a",), ()),
        ("rm -rf / >&2 2>&-", ("rm", "-rf", "/"), (), ()),
        ("rm -rf / <<< word", ("rm", "-rf", "/"), (), ()),
        ("rm <<< word -rf /", ("rm", "-rf", "/"), (), ()),
        ("rm -rf / > ~/x", ("rm", "-rf", "/"), ("~/x",), ()),
    ],
)
def test_redirects(text: str, argv: tuple[str, ...], writes: tuple[str, ...], reads: tuple[str, ...]) -> None:
    tree = parse_tree(text)
    assert (tree.commands[0].words, tree.writes, tree.reads, tree.opaque) == (argv, writes, reads, ())


def test_words_behind_a_redirect_belong_to_the_last_command() -> None:
    assert words("ls && rm 2>&1 > out -rf /") == [("ls",), ("rm", "-rf", "/")]
    assert words("ls | rm > out -rf /") == [("ls",), ("rm", "-rf", "/")]


@pytest.mark.parametrize("target", ["$x", '"$x"', "$(rm y)", "*.txt", "{a,b}"])
def test_a_target_that_is_not_literal(target: str) -> None:
    tree = parse_tree(f"ls > {target}")
    assert tree.writes == ("?",)
    assert tree.opaque
    assert parse_tree(f"ls < {target}").reads == ("?",)


def test_reading_and_writing_one_file() -> None:
    tree = parse_tree("cat <> file")
    assert tree.opaque and "file" in tree.writes


@table(
    ("text", "opaque"),
    [
        ("sh <<'E'\nrm x\nE\n", False),
        ("sh <<E\nrm x\nE\n", False),
        ("sudo bash -s <<-E\n\trm x\n\tE\n", False),
        ("bash <<< 'rm x'", False),
        ('bash <<< "rm x"', False),
        ("ssh host <<E\nrm x\nE\n", False),
        ("sh <<E\nrm x; ls $y\nE\n", True),
        ("cat <<E | sh\nrm x\nE\n", True),
        ("echo 'rm x' | sh", True),
        ("printf 'rm x' | sudo sh", True),
        ("bash <<< \"rm x; $y\"", True),
    ],
)  # fmt: skip
def test_a_text_that_a_shell_reads_is_parsed(text: str, opaque: bool) -> None:
    tree = parse_tree(text)
    assert ("rm", "x") in [command.words for command in tree.commands if command.via]
    assert bool(tree.opaque) is opaque


def test_a_quoted_here_document_is_data() -> None:
    assert parse_tree("cat <<'E'\n$(rm x) `rm y`\nE\n") == Tree((Command(("cat",), stdin="$(rm x) `rm y`\n"),))


def test_a_test_is_a_command() -> None:
    assert words('[ -f "a b" ] && [ ! $x = b$y ]') == [
        ("[", "-f", "a b", "]"),
        ("[", "!", None, "=", None, "]"),
    ]


def test_a_word_that_only_looks_like_an_assignment() -> None:
    assert words("1A=2 rm x") == [("1A=2", "rm", "x")]


# What the parser gets wrong, or may: the tree says so.
PITFALLS = [
    ('echo "$\\\n(rm x)"', "continues on the next line"),
    ("r\\\nm x", "continues on the next line"),
    ("echo ${x:-`rm y`}", "backquote"),
    ("echo `ls \\`rm x\\``", "backslash inside backquotes"),
    ("cat <<E > out\na\nE\n", "here-document"),
    ("cat <<E && rm x\na\nE\n", "here-document"),
    ("cat <<A <<B\na\nA\nrm x\nB\n", "here-document"),
    ("cat <<E\nE \nrm x\nE\n", "whose end is unclear"),
    ("cat <<E\n`rm x`\nE\n", "backquotes inside a here-document"),
    ("cat <<é\nrm x\né\n", "unusual delimiter"),
    ("rm\rx", "control character"),
    ("rm\vx", "control character"),
    ("rm\fx", "control character"),
    ("ls\0rm", "control character"),
    ("rm\u00a0x", "unusual space"),
    ("ls \ud800", "half of a surrogate pair"),
    ("\\ rm x", "space"),
    ("rm\\ < x", "space"),
    ("rm x2>&1", "digit"),
    ("!'a' x", "`!`"),
    ("{} x", "`{}`"),
    ("ls <'a'\\ b c", "does not understand"),
    ("ls\n\\\nrm x", "continues on the next line"),
    ("<<<$\trm x", "without a name"),
    ("echo ${ rm x; }", "only some shells know"),
    ("ls <\\''a' - 2>x", "skips"),
    ("[\n]", "several lines"),
    ("@a=b", "not be an assignment"),
    ("echo ${x@P}", "prompt"),
    ("[[ 'a[$(rm x)]' -eq 0 ]]", "subscript"),
    ("ls (", "cannot be parsed"),
    ("ls ) rm x", "cannot be parsed"),
    ('echo "x', "cannot be parsed"),
    ("rm >", "cannot be parsed"),
    ("if ls; then rm x", "cannot be parsed"),
    ("f() { rm x; }", "defines the function `f`"),
    ("function ls { rm x; }", "defines the function `ls`"),
    ("declare -n a=b", "`declare`"),
    ("typeset a=b", "`typeset`"),
    ("PATH=/x", "sets `PATH`"),
    ("IFS=/ A=1", "sets `IFS`"),
    ("PATH+=:/x ls", "sets `PATH`"),
    ("BASH_ENV=x bash -c ls", "sets `BASH_ENV`"),
    ("for PATH in /x; do ls; done", "sets `PATH`"),
]


@table(("text", "reason"), PITFALLS)
def test_pitfalls_are_opaque(text: str, reason: str) -> None:
    assert [said for said in parse_tree(text).opaque if reason in said]


# Tricks that hide a command from those who look at the start, or at the text.
HOSTILE = [
    "ls;rm -rf /",
    "ls\n\n\trm -rf /",
    "ls &rm -rf /",
    "true&&rm -rf /",
    "ls|rm -rf /",
    "echo '$(' ; rm -rf / ; echo ')'",
    "echo \"'\" ; rm -rf / # '",
    'echo \\" ; rm -rf / ; echo \\"',
    "echo a#b ; rm -rf /",
    "echo $(( 1 # 2\n)) ; rm -rf /",
    ": ${x:=$(rm -rf /)}",
    "ls $(echo $(true; rm -rf /))",
    "test -f x || { ls; (rm -rf /); }",
    "cat <<'A'\nB\nA\nrm -rf /\n",
    "x='a\nb'; rm -rf /",
    "env -i bash -c 'eval \"rm -rf /\"'",
    "sudo sh -c \"sh -c 'rm -rf /'\"",
    "bash -c 'echo \"$(rm -rf /)\"'",
    "find . -type f -exec sudo rm -rf / \\;",
    "echo x | xargs -I{} bash -c 'rm -rf /'",
    "while :; do case $x in *) rm -rf /;; esac; done",
    "coproc rm -rf /",
    "git log --format=$(rm -rf /)",
    "A=`rm -rf /` ls",
    "echo ${#x} ; rm -rf /",
    "echo é'ü'; rm -rf /",
]


@table("text", HOSTILE)
def test_hostile_lines_show_the_command(text: str) -> None:
    assert ("rm", "-rf", "/") in words(text)


def test_positions_count_characters() -> None:
    tree = parse_tree("echo é\U0001f600; rm x")
    assert [command.at for command in tree.commands] == [0, 9]


def test_a_text_that_is_too_long_is_not_parsed() -> None:
    assert parse_tree("rm x;" + " " * LONGEST) == Tree(opaque=("is too long",))
    assert parse_tree("rm x" + " " * (LONGEST - 4)).commands == (Command(("rm", "x")),)


@table("unit", ["(", "$(", '"$(', "${x:-", "{ ", "<(", "`", "[[ ", "if a; then ", "sh -c '"])
def test_deep_nesting_is_no_error(unit: str) -> None:
    assert parse_tree(unit * 4000).opaque


@pytest.mark.parametrize("deep", [1_200, pytest.param(4_000, marks=pytest.mark.nightly)])
def test_texts_within_texts_are_no_error(deep: int) -> None:
    assert parse_tree("eval " * deep).opaque


FOR = pytest.param("for ", marks=pytest.mark.nightly)  # two seconds; the limit that ends it ends `sudo`, too


@pytest.mark.parametrize("unit", ["a|", "a=(", ")", ">", "${", "$[", "<<A\n", "\nE\n case a", "|=}", "sudo ", FOR])
def test_what_makes_the_parser_slow_is_cut_short(unit: str) -> None:
    """Without the limits these take up to 40 s each; the bound is wide for slow machines."""
    text = unit * (LONGEST // len(unit))
    started = time.process_time()
    tree = parse_tree(text)
    assert time.process_time() - started < 8
    assert tree.opaque


def test_many_texts_for_other_shells_are_bounded() -> None:
    text = "true"
    for _ in range(18):
        text = f"eval eval {text}"
    assert any("too deep" in reason for reason in parse_tree(text).opaque)


PIECES = st.sampled_from((
    *"rm ls a -rf / ' \" \\ $ ( ) { } [ ] < > | & ; ` # ! ~ * ? = , . : @ % + ^ 1 é $( ${ $(( )) <<".split(),
    *"2>&1 if then fi for in do done case esac function time sh -c eval sudo env xargs find -exec {} git".split(),
    *"[[ ]] == =~ trap export declare $' \\x \\u <<< <<E <( && || ;;".split(),
    *(" ", " ", " ", "\n", "\t", "\r", "\0", "\ud800", "\nE\n", "\\\n"),
))  # fmt: skip
TEXTS = st.one_of(st.lists(PIECES, max_size=30).map("".join), st.text(max_size=60))


@examples(100_000, daily=50)
@given(TEXTS)
@example("")
@example("\ud800")
@example("\0")
def test_no_text_raises(text: str) -> None:
    tree = parse_tree(text)
    assert all(command.words and 0 <= command.at <= len(text) for command in tree.commands)
    assert all(tree.opaque for command in tree.commands if command.words[0] is None)
    assert all(isinstance(reason, str) and reason for reason in tree.opaque)


PLAIN = st.lists(
    st.sampled_from((
        *"ls rm -rf / | && || ; 2>/dev/null 2>&1 <f a=b # ~ * ? [ ] { } ! test = $ % @ , ' \" \\ 1 < \\'".split(),
        *(" ", " ", "'a b'", '"c d"', "\\ ", "\n", "[ -f x ]"),
    )),
    min_size=1,
    max_size=12,
).map("".join)  # fmt: skip


@examples(10_000, daily=50)
@given(PLAIN)
def test_both_readings_agree(text: str) -> None:
    """Where the strict reading accepts a line, the full parse has the same words, or says that it is not sure."""
    line = read_line(text)
    if isinstance(line, Refused):
        return
    tree = parse_tree(text)
    found = [command.words for command in tree.commands if not command.via]
    assert found == [simple.argv for simple in line.commands] or tree.opaque


@pytest.mark.parametrize(
    "text", ["grep -rn 'a b' src | head -5", "cat a 2>/dev/null && ls -l x\\ y; wc -l < f", "[ -f x ]"]
)
def test_both_readings_agree_without_doubt(text: str) -> None:
    line = read_line(text)
    assert not isinstance(line, Refused)
    assert words(text) == [simple.argv for simple in line.commands]
    assert parse_tree(text).opaque == ()
