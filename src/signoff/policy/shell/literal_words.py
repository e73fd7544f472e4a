"""The strict parser for command lines: literal words, or a refusal.

It is the only way to *allow*. It returns exactly the words that the shell would pass to each program. What it would
expand first (a variable, a substitution, braces) is refused, and so is what could be read in two ways: bash and zsh are
the shells of agents, and a hook is not told which one runs the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias, cast

from signoff.core.visible_text import is_clean
from signoff.policy.shell.line import MOST_COMMANDS, CommandLine, Join, Pipeline, Redirect, Simple, Unknown, Word

LONGEST = 16_384
"""The longest text that is parsed, in characters."""


class Refused(NamedTuple):
    """Why a command line cannot be read literally."""

    why: str
    """Follows "the command": "holds a substitution `$(`"."""
    word: str
    """The piece of text that decided."""
    at: int
    """Its position."""


# A plain word ends before one of these or at the end of the text. `<` and `>` are omitted on purpose: digits before
# them (a file descriptor) are not a word.
_WORD_ENDS = r"(?![^ \t\n;|&])"
_PLAIN, _SINGLE, _DOUBLE, _STARRED, _OPERATOR, _NOTHING, _REDIRECT = range(1, 8)
_TOKEN = re.compile(
    rf"""[ \t]*+(?:
      (?!=[^=])([\w./,:=@%+^-]++){_WORD_ENDS}
    | '([^']*+)'{_WORD_ENDS}
    | "([^"\\$`]*+)"{_WORD_ENDS}
    | (?!=[^=])([\w./,:=@%+^*?-]++){_WORD_ENDS}
    | (&&|\|\||\|&?|;|\n)
    | (\#[^\n]*+|\Z)
    | ((?:(?:[12]?>>?|&>)/dev/null|[12]?>&[12]){_WORD_ENDS}|[0-9]*+[<>][<>&|(]*+|&>>?)
    |
    )""",
    re.ASCII | re.VERBOSE,
)

_P_PLAIN, _P_SINGLE, _P_DOUBLE, _P_ESCAPED, _P_PATTERN, _P_TILDE, _P_BRACE, _P_DOLLAR = range(1, 9)
_PIECE = re.compile(
    rf"""
      ([\w./,:=@%+^\#!-]++)
    | '([^']*+)'
    | "((?:[^"\\$`]|\\[^\n]|\$(?=[] \t\n"'\\/.,:;%|&<>)}}]))*)"
    | \\([\t\x20-\x7e])
    | ([]*?[])
    | (~)
    | ([{{}}])
    | (\$){_WORD_ENDS}
    """,
    re.ASCII | re.VERBOSE,
)
_KEPT_BACKSLASH = re.compile(r'\\([$`"\\])')
_SAFE_IN_DOUBLE = re.compile(r"""(?:[^"\\$`]|\\[^\n]|\$(?=[] \t\n"'\\/.,:;%|&<>)}]))*""")

_IN_PATTERN = re.compile(r"[][*?\\]")
_IN_BRACKETS = re.compile(r"[][*?\\!^:.=-]")
_DESCRIPTOR = re.compile(r"\{\w+\}", re.ASCII)
_MANY_STARS = re.compile(r"(\\.)|((?<![^/])\*\*+(?![^/]))|\*\*+", re.DOTALL)
# Brackets that every implementation reads alike: closed, without another bracket, a slash or a multi-byte character
# inside.
_CLEAR_PATTERN = re.compile(
    r"(?:\\.|[^\\\[]|\[(?:[!^]|(?![!^]))(?:\\.|[\0-.0-Z\]-\x7f])(?:\\.|[\0-.0-Z^-\x7f])*\])*",
    re.DOTALL,
)
_CLOSED = re.compile(r"(?:\\.|[^\\\[])*\[(?:\\.|[^\\])(?:\\.|[^\\\]])*\]", re.DOTALL)

_KEYWORDS = frozenset(
    "if then else elif fi do done case esac while until for in select function time coproc [[ ]] { } !".split()
)
# bash reads the words after these as assignments: globs are not expanded, and brackets may contain blanks.
_DECLARES = frozenset("alias declare eval export let local readonly typeset".split())
_RESERVED = _KEYWORDS | _DECLARES
_ASSIGNS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\+?=|\[)")

_TO_NOWHERE = {">": 1, ">>": 1, "1>": 1, "1>>": 1, "2>": 2, "2>>": 2}
_BOTH = frozenset({"&>", "&>>", ">&"})
_JOINED = {">&": 1, "1>&": 1, "2>&": 2}
_STREAMS = {"1": 1, "2": 2}
_NULL = "/dev/null"
ONTO = {(fd, to): Redirect(fd, None, to) for fd in (1, 2) for to in (1, 2)}
_DROPPED = {1: Redirect(1), 2: Redirect(2)}
# The most common redirects, for a fast path.
COMMON = {
    **{f"{sign}{_NULL}": [_DROPPED[fd]] for sign, fd in _TO_NOWHERE.items()},
    **{f"{sign}{to}": [ONTO[fd, to]] for sign, fd in _JOINED.items() for to in (1, 2)},
    f"&>{_NULL}": [_DROPPED[1], ONTO[2, 1]],
}
_RANGE = re.compile(r"\d*-?\d*")
NETWORK = ("/dev/tcp/", "/dev/udp/")
_JOINS = {";": Join.ALWAYS, "\n": Join.ALWAYS, "&&": Join.AND, "||": Join.OR}

_BLANKS = re.compile(r"[ \t\n]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_BETWEEN_WORDS = frozenset(" \t\n;|&<>")
# Makes a word in half the time: every shell call passes through here.
_MakeWord: TypeAlias = Callable[[type[Word], tuple[str, str, bool, int, int, Unknown]], Word]
_new = cast("_MakeWord", tuple.__new__)  # pyright: ignore[reportUnknownMemberType]


def read_line(text: str) -> CommandLine | Refused:
    """Return the commands in `text` with exactly the words that bash would pass to them, or why that is not possible.

    Takes time linear in the length and never raises. Program names are not judged, except those that bash itself reads
    differently: keywords, assignments, `export` and the like.
    """
    if len(text) > LONGEST:
        return Refused(f"is longer than {LONGEST:,} characters", text[LONGEST : LONGEST + 20], LONGEST)
    if not (text.isascii() and text.isprintable()) and (found := hidden(text)):
        return found
    return _LineReader(text).line()


class _LineReader:
    """Parses one text into a line."""

    __slots__ = ("both", "count", "join", "pipelines", "redirects", "stages", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[Word] = []
        self.redirects: list[Redirect] = []
        self.stages: list[Simple] = []
        self.pipelines: list[Pipeline] = []
        self.join = Join.ALWAYS
        self.count = 0
        self.both = False
        """Whether the command has a redirect `&>`: for dash, its `&` ends the command."""

    def line(self) -> CommandLine | Refused:
        text, at, token_at = self.text, 0, _TOKEN.match
        while token := token_at(text, at):
            kind, at = token.lastindex, token.end()
            if kind == _PLAIN:
                word = _new(Word, (token[_PLAIN], "", False, token.start(_PLAIN), at, Unknown.NOT))
            elif kind is None:
                word = _word(text, at)
            elif kind <= _DOUBLE:
                word = _new(Word, (token[kind], "", False, token.start(kind) - 1, at, Unknown.NOT))
            elif kind == _STARRED:
                word = _new(Word, (token[kind], _fewer_stars(token[kind]), False, token.start(kind), at, Unknown.NOT))
            else:
                following = self.between_words(kind, token[kind], token.start(kind), at)
                if not isinstance(following, int):
                    return following
                at = following
                continue
            if isinstance(word, Refused):
                return word
            if not self.words and (refused := _no_program(word, text[word.at : word.end])):
                return refused
            if self.both:
                return Refused("has words after `&>`, which some shells take for another command", word.text, word.at)
            self.words.append(word)
            at = word.end
        return Refused("cannot be read", text[at : at + 20], at)  # not reached: the token pattern matches everywhere

    def between_words(self, kind: int, token: str, at: int, end: int) -> int | CommandLine | Refused:
        """Handle what is not a word. Return where to continue, or the final result."""
        if kind == _OPERATOR:
            return self.operator(token, at) or end
        if kind == _REDIRECT:
            if token.startswith("&") and self.text[at - 1 : at].isdecimal():
                return Refused("has a number before `&>`, which zsh takes for a descriptor", token, at)
            return self.redirect(token, at, end)
        return self.end() if end == len(self.text) else end

    def operator(self, operator: str, at: int) -> Refused | None:
        """End a command, and the pipeline unless the operator continues it."""
        if not self.words:
            if operator == "\n" and not self.redirects:
                return None
            return Refused(f"has no command before {quoted(operator)}", operator, at)
        self.count += 1
        if self.count > MOST_COMMANDS:
            return Refused(f"runs more than {MOST_COMMANDS:,} commands", operator, at)
        if operator == "|&":
            self.redirects.append(ONTO[2, 1])
        self.stages.append(Simple(tuple(self.words), tuple(self.redirects)))
        self.words, self.redirects, self.both = [], [], False
        if operator[0] != "|" or operator == "||":
            self.pipelines.append(Pipeline(tuple(self.stages), self.join))
            self.stages = []
            self.join = _JOINS[operator]
        return None

    def end(self) -> CommandLine | Refused:
        """Return the whole line after the last token."""
        if self.words and self.count == MOST_COMMANDS:
            return Refused(f"runs more than {MOST_COMMANDS:,} commands", self.words[0].text, self.words[0].at)
        if self.words:
            self.stages.append(Simple(tuple(self.words), tuple(self.redirects)))
            self.pipelines.append(Pipeline(tuple(self.stages), self.join))
        elif self.redirects:
            return Refused("has a redirect without a command", self.text[-20:], len(self.text))
        elif self.stages or self.join is not Join.ALWAYS:
            return Refused("ends where another command has to follow", self.text[-20:], len(self.text))
        elif not self.pipelines:
            return Refused("is empty", "", 0)
        return CommandLine(tuple(self.pipelines))

    def redirect(self, operator: str, at: int, end: int) -> int | Refused:
        """Handle a redirect with its target. Return where it ends."""
        self.both = self.both or operator.startswith("&")
        if operator in COMMON:
            self.redirects += COMMON[operator]
            return end
        text = self.text
        if operator not in _TO_NOWHERE and operator not in _BOTH and operator not in _JOINED and operator != "<":
            return _odd_redirect(text, operator, at, end)
        while text[end : end + 1] in (" ", "\t"):
            end += 1
        if end == len(text) or text[end] in _BETWEEN_WORDS or text[end] == "#":
            return Refused(f"has a redirect without a target: {quoted(operator)}", operator, at)
        target = _word(text, end)
        if isinstance(target, Refused):
            return target
        raw = text[end : target.end]
        if operator == "<":
            return self.source(target, raw)
        if operator in _JOINED and raw in _STREAMS:
            self.redirects.append(ONTO[_JOINED[operator], _STREAMS[raw]])
        elif target.text != _NULL or target.glob:
            return _written(operator, target, raw, at)
        elif operator in _BOTH:
            self.redirects += (_DROPPED[1], ONTO[2, 1])
        elif operator in _TO_NOWHERE:
            self.redirects.append(_DROPPED[_TO_NOWHERE[operator]])
        else:
            return _written(operator, target, raw, at)
        return target.end

    def source(self, word: Word, raw: str) -> int | Refused:
        """Handle a file that is read as input. Return where it ends."""
        if word.glob:
            return Refused("reads its input from files that a pattern names", raw, word.at)
        if word.text.startswith(NETWORK):
            return Refused("reads its input from the network", raw, word.at)
        if _RANGE.fullmatch(raw) and self.text[word.end : word.end + 1] in ("<", ">"):  # `<1-5>` is a pattern in zsh
            return Refused("has a redirect without a source: `<`", raw, word.at)
        self.redirects.append(Redirect(0, word))
        return word.end


def _word(text: str, start: int) -> Word | Refused:
    """Parse the word that starts here, piece by piece."""
    pieces: list[tuple[str, bool]] = []
    at, seen = start, 0
    while piece := _PIECE.match(text, at):
        kind = piece.lastindex or 0
        content, is_quoted = piece[kind], _P_SINGLE <= kind <= _P_ESCAPED
        if kind == _P_DOUBLE and "\\" in content:
            content = _KEPT_BACKSLASH.sub(r"\1", content)
        elif kind == _P_TILDE and at > start and text[at - 1] in "=:":
            return Refused(
                f"has `~` after `{text[at - 1]}`, which may mean the home directory", text[start : at + 1], start
            )
        seen |= 1 << kind
        pieces.append((content, is_quoted))
        at = piece.end()
    raw = text[start:at]
    following = text[at : at + 1]
    if (following and following not in _BETWEEN_WORDS) or at == start:
        return _blame(text, at)
    if raw[0] == "=" and raw[1:2] not in ("", "="):
        return Refused("starts a word with `=`, which in zsh names a program", raw, start)
    tilde = raw[0] == "~"
    if tilde and raw[1:2] not in ("", "/"):
        return Refused("names the home directory of another user, or another `~` expansion", raw, start)
    if seen >> _P_BRACE & 1 and (refused := _expands_braces(text, start, at)):
        return refused
    whole = "".join([content for content, _ in pieces])
    if not seen >> _P_PATTERN & 1:
        return Word(whole, "", tilde, start, at)
    glob = _glob(pieces)
    if glob is None:
        return Refused("holds a pattern that shells read differently", raw, start)
    return Word(whole, glob, tilde, start, at)


def _glob(pieces: list[tuple[str, bool]]) -> str | None:
    """Return the glob pattern of these pieces; "" if it matches only itself, None if shells disagree."""
    active, inside = False, False
    parts: list[str] = []
    for content, is_quoted in pieces:
        if is_quoted:
            parts.append(in_pattern(content, inside=inside))
            continue
        parts.append(content)
        active = active or content in ("*", "?")
        inside = inside or content == "["
    return as_glob("".join(parts), active=active)


def in_pattern(text: str, *, inside: bool) -> str:
    """Return a text as it has to be written in a pattern, also `inside` brackets."""
    return (_IN_BRACKETS if inside else _IN_PATTERN).sub(r"\\\g<0>", text)


def as_glob(pattern: str, *, active: bool) -> str | None:
    """Return a pattern as all shells read it; "" if it matches only itself, None if they disagree.

    It is `active` if it has an unquoted `*` or `?`.
    """
    if not active and not _CLOSED.match(pattern):
        return ""
    if not _CLEAR_PATTERN.fullmatch(pattern):
        return None
    return _fewer_stars(pattern)


def _fewer_stars(pattern: str) -> str:
    """Return stars in a row as one. Between slashes they stay two: some shells find files at any depth for them."""
    return (
        _MANY_STARS.sub(lambda stars: stars[1] or ("**" if stars[2] else "*"), pattern) if "**" in pattern else pattern
    )


def _expands_braces(text: str, start: int, end: int) -> Refused | None:
    """Return why unquoted braces may be a list, a range or the name of a file descriptor; None if not.

    zsh takes `{name}` for a descriptor also if there are blanks before the redirect: the word is gone, and the variable
    is set.
    """
    raw = text[start:end]
    if text[end : end + 1] in ("<", ">") or _DESCRIPTOR.fullmatch(raw):
        return Refused("holds braces that may name a descriptor", raw, start)
    braces = [piece.start() - start for piece in _PIECE.finditer(text, start, end) if piece.lastindex == _P_BRACE]
    inner = raw[braces[0] : braces[-1]]
    if "," in inner or ".." in inner:
        return Refused("holds braces that may expand to several words", raw, start)
    return None


def _no_program(word: Word, raw: str) -> Refused | None:
    """Return why a first word is not simply the name of a program; None if it is."""
    if raw.isalnum() and raw not in _RESERVED:
        return None
    if raw in _KEYWORDS:
        return Refused(f"uses {quoted(raw)}, a keyword of the shell", raw, word.at)
    if _ASSIGNS.match(raw):
        return Refused("sets a variable before it runs anything", raw, word.at)
    if word.glob:
        return Refused("names its program with a pattern", raw, word.at)
    if word.text in _DECLARES:
        return Refused(f"uses {quoted(word.text)}, which bash reads in a special way", raw, word.at)
    if word.text.startswith(("%", "-", "+")):  # quoted or not: for bash `\%1` is a job, too
        return Refused("starts with a job or an option of the shell, not with a program", raw, word.at)
    return None


def hidden(text: str) -> Refused | None:
    """Refuse invisible characters, and those that do not look like what they are."""
    if control := _CONTROL.search(text):
        return Refused(f"holds a control character (U+{ord(control[0]):04X})", control[0], control.start())
    if not text.isascii() and not is_clean(_BLANKS.sub(".", text)):
        at, char = next(
            ((at, char) for at, char in enumerate(text) if char > "\x7f" and not is_clean(f"a{char}")), (0, text[:1])
        )
        return Refused("holds invisible characters", char, at)
    return None


def is_keyword(raw: str) -> bool:
    """Whether a first word, as it is written, is a keyword or a builtin with its own syntax, and no program."""
    return raw in _RESERVED


def _blame(text: str, at: int) -> Refused:
    """Return which character here is not part of a literal word."""
    char, two = text[at], text[at : at + 2]
    if char == '"':
        stop = _SAFE_IN_DOUBLE.match(text, at + 1)
        at = stop.end() if stop else at
        char, two = text[at : at + 1], text[at : at + 2]
    if char in ("'", '"', ""):
        return Refused("has a quote that is not closed", text[at : at + 20], at)
    if char == "\\":
        return Refused(
            "continues on the next line after a backslash" if len(two) > 1 else "ends in a backslash", two, at
        )
    if char == "`":
        return Refused("holds a substitution in backquotes", char, at)
    if char in "()":
        return Refused("holds parentheses outside quotes", char, at)
    if char == "&":
        return Refused("starts a background process (`&`)", char, at)
    if char == "$":
        return _blame_dollar(text, at, two)
    return Refused("holds a non-ASCII character outside quotes", char, at)


def _blame_dollar(text: str, at: int, two: str) -> Refused:
    if two == "$(":
        return Refused("holds a substitution `$(`", two, at)
    if two in ("$'", '$"'):
        return Refused(f"holds a special quote: `{two}`", two, at)
    variable = re.compile(r"\$(?:\w+|\{[^}\n]{0,40}\}?|.?)", re.ASCII | re.DOTALL).match(text, at)
    name = variable[0] if variable else two
    return Refused(f"depends on a variable: {quoted(name)}", name, at)


def _odd_redirect(text: str, operator: str, at: int, end: int) -> Refused:
    """Return why a kind of redirect that is never accepted is refused."""
    sign = operator.lstrip("0123456789")
    if sign[:2] in ("<(", ">("):
        return Refused(f"holds a substitution `{sign[:2]}`", operator, at)
    if sign.startswith("<<"):
        return Refused("holds a here-document (`<<`)", operator, at)
    if sign in (">", ">>", ">|", "<>"):
        while text[end : end + 1] in (" ", "\t"):
            end += 1
        target = _word(text, end) if end < len(text) else None
        if isinstance(target, Word):
            return _written(operator, target, text[end : target.end], at)
    return Refused(f"has a redirect that is not understood: {quoted(operator)}", operator, at)


def _written(operator: str, target: Word, raw: str, at: int) -> Refused:
    """Return the refusal of a redirect that writes a file."""
    if operator in _JOINED and (raw == "-" or raw.rstrip("-").isdigit()):
        return Refused(f"has a redirect that is not understood: {quoted(operator + raw)}", operator + raw, at)
    return Refused(f"writes to the file {quoted(target.text)}", operator + raw, at)


def quoted(piece: str) -> str:
    """Return a piece of the text for a message: on one line, and cut if it is long."""
    piece = piece.replace("\n", "⏎").replace("\t", " ")
    return f"`{piece[:60]}…`" if len(piece) > 60 else f"`{piece}`"
