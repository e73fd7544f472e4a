"""Split SQL into tokens as a database does, and give up where two databases, or two settings of one, differ.

The parser gets SQL that is written from these tokens: without comments, every string in plain quotes with nothing in it
that could end it early. So the parser cannot see other strings, comments or statements than the database does.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from signoff.policy.phrases import cut
from signoff.policy.sql.statement_facts import NotUnderstood

WORD, STRING, QUOTED, NUMBER, VARIABLE, SIGN, END = "word", "string", "quoted", "number", "variable", "sign", "end"


class Token(NamedTuple):
    """A piece of SQL. `text` is its meaning: a name or string without its quotes."""

    kind: str
    text: str
    gap: bool
    """Whether blanks or a comment came before it."""

    @property
    def low(self) -> str:
        """A bare word in lower case; "" for anything else, so that quoted names are never taken for keywords."""
        return self.text.lower() if self.kind == WORD else ""


@dataclass(frozen=True, slots=True)
class Manner:
    """The lexical rules of a database."""

    parser: str
    """The parser's name for the dialect."""
    quotes: str = '"'
    """The characters that quote a name."""
    strings: str = "'"
    escapes: bool = False
    """Whether a backslash may or may not escape a quote, depending on a setting."""
    prefixes: str = "n"
    dollar: bool = False
    hash_comment: bool = False
    dash_needs_blank: bool = False
    nests: bool = False
    """Whether comments nest."""
    special_comments: tuple[str, ...] = ()
    signs: str = ""
    whole_signs: bool = False
    """Whether adjacent signs are one operator, which may be user-defined."""
    variables: str = ""


_SIGNS = "+ - * / % = < > <= >= <> != || , . ( ) ->  ->>"
_PG_SIGNS = (
    "^ & | # ~ << >> :: [ ] : ! @ @@ @> <@ ? ?| ?& #> #>> && ~* !~ !~* ~~ ~~* !~~ !~~* => |/ ||/ << >> &< &> -|- <-> "
    "@? #- ^@ |&> <&| &<| <<| |>> @-@ ## <^ >^ ?- ?# ?-| ?|| ~= >>= <<= !! |"
)
_MANNERS = {
    "postgres": Manner("postgres", escapes=True, prefixes="e n b x", dollar=True, nests=True, signs=_PG_SIGNS,
                       whole_signs=True, variables="$1"),
    "duckdb": Manner("duckdb", prefixes="e x", dollar=True, signs=_PG_SIGNS + " { } // ** ==", whole_signs=True,
                     variables="$1"),
    "sqlite": Manner("sqlite", quotes='"`[', prefixes="x", signs="& | ~ << >> == ?", variables="$ : @ ?1"),
    "mysql": Manner("mysql", quotes="`", strings="'\"", escapes=True, prefixes="n b x _", hash_comment=True,
                    dash_needs_blank=True, special_comments=("/*!", "/*M!", "/*m!", "/*+"),
                    signs="^ & | ~ << >> ! && <=> ?", variables="@ @@"),
    "mssql": Manner("tsql", quotes='"[', prefixes="n", signs="^ & | ~ !< !> ?", variables="@ @@"),
    "oracle": Manner("oracle", prefixes="n", signs="^= ?", variables=":"),
}  # fmt: skip
_NAMES = {
    "postgres": "postgres", "postgresql": "postgres", "pg": "postgres", "sqlite": "sqlite", "sqlite3": "sqlite",
    "mysql": "mysql", "mariadb": "mysql", "duckdb": "duckdb", "mssql": "mssql", "tsql": "mssql", "oracle": "oracle",
    "": "generic", "generic": "generic",
}  # fmt: skip
READINGS = ("postgres", "sqlite", "mysql")
"""SQL without a named dialect must be harmless in all of these databases."""

_BLANK = re.compile(r"[ \t\r\n]+")
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w$.]|[^\x00-\x7f])", re.ASCII)
_NAME = re.compile(r"[^\W\d][\w$]*")
MOST_SIGNS = 32
"""The limit for signs in a row: databases split longer runs, too, but how is worked out for each sign anew."""
_OPERATOR = re.compile(rf"[-+*/<>=~!@#%^&|?]{{1,{MOST_SIGNS + 1}}}")
_DOLLAR = re.compile(r"\$(?:[A-Za-z_]\w*)?\$", re.ASCII)
_VARIABLE = re.compile(r"(?:\$|:|@@?)[A-Za-z_]\w*(?![\w$(])|\$\d+(?![\w$])|\?\d+(?![\w$])", re.ASCII)
_NAMED = re.compile(r":(?:[^\W\d]|['\"{])")
_COMMENT = re.compile(r"/\*|\*/")
_BEFORE_NAME = frozenset({"from", "join", ".", "into", "update", "table", "describe", "desc"})
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"})


def dialect_named(name: str) -> str:
    """Return the canonical name of a dialect; "" if it is not known."""
    return _NAMES.get(name.strip().lower(), "")


def manner_of(dialect: str) -> Manner:
    return _MANNERS[dialect]


def check_characters(text: str) -> None:
    """Refuse invisible characters, and those that some databases read as blanks and others as letters."""
    if text.isascii() and text.isprintable():
        return
    for char in text:
        if char not in " \t\r\n" and unicodedata.category(char) in _INVISIBLE:
            raise NotUnderstood(f"holds the character U+{ord(char):04X}, which is invisible", f"U+{ord(char):04X}")


def lex(text: str, dialect: str) -> list[Token]:
    """Return the tokens of a text, without comments. Raises `NotUnderstood`."""
    return _Lexer(text, _MANNERS[dialect]).tokens()


class _Lexer:
    def __init__(self, text: str, manner: Manner) -> None:
        self.text = text
        self.manner = manner
        self.at = 0
        self.gap = False
        self.last = ""
        self.signs = frozenset(f"{_SIGNS} {manner.signs}".split())
        self.prefixes = frozenset(manner.prefixes.split())

    def tokens(self) -> list[Token]:
        found: list[Token] = []
        while self.at < len(self.text):
            start = self.at
            if self._skipped():
                self.gap = True
                continue
            found.append(self._token())
            self.gap = False
            self.last = found[-1].low or found[-1].text
            assert self.at > start
        return found

    def _skipped(self) -> bool:
        """Skip blanks or a comment. Return whether there were any."""
        text, at = self.text, self.at
        if blank := _BLANK.match(text, at):
            self.at = blank.end()
        elif text.startswith("--", at):
            if self.manner.dash_needs_blank and text[at + 2 : at + 3] not in ("", " ", "\t", "\n", "\r"):
                raise NotUnderstood(
                    "holds `--` without a space, which some databases read as a comment and others as two minus signs",
                    "--",
                )
            self._line_comment()
        elif self.manner.hash_comment and text[at] == "#":
            self._line_comment()
        elif text.startswith("/*", at):
            self._block_comment()
        else:
            return False
        return True

    def _line_comment(self) -> None:
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        if "\r" in self.text[self.at : end - 1] or (end == len(self.text) and self.text.endswith("\r")):
            raise NotUnderstood("holds a carriage return in a comment, which ends the comment in some databases", "--")
        self.at = end

    def _block_comment(self) -> None:
        if self.text.startswith(self.manner.special_comments, self.at):
            raise NotUnderstood(
                "holds a comment that the database executes or reads as a hint", self.text[self.at : self.at + 3]
            )
        depth, end = 1, self.at + 2
        while depth:
            mark = _COMMENT.search(self.text, end)
            if mark is None:
                raise NotUnderstood("holds a comment that is not closed", "/*")
            if mark[0] == "/*" and not self.manner.nests:
                raise NotUnderstood("holds a nested comment, which ends earlier in some databases", "/*")
            depth += 1 if mark[0] == "/*" else -1
            end = mark.end()
        self.at = end

    def _token(self) -> Token:
        text, at, manner = self.text, self.at, self.manner
        char = text[at]
        if char in manner.strings:
            token = self._string(char)
            named = char == '"' and (self.last in _BEFORE_NAME or text.startswith(".", self.at))
            return self._named(token) if named else token
        if char in manner.quotes:
            return self._quoted(char)
        if char == ";":
            return self._take(END, 1)
        if number := _NUMBER.match(text, at):
            return self._take(NUMBER, number.end() - at)
        if name := _NAME.match(text, at):
            return self._word(name[0])
        if manner.dollar and (opening := _DOLLAR.match(text, at)):
            return self._dollar_string(opening[0])
        if token := self._variable():
            return token
        return self._sign()

    def _take(self, kind: str, length: int) -> Token:
        self.at += length
        return Token(kind, self.text[self.at - length : self.at], self.gap)

    def _word(self, word: str) -> Token:
        after = self.text[self.at + len(word) : self.at + len(word) + 1]
        low = word.lower()
        if after == "'" or (after == '"' and '"' in self.manner.strings):
            if low not in self.prefixes and not ("_" in self.prefixes and low.startswith("_")):
                raise NotUnderstood(f"holds a string with `{word}` before it", word)
            self.at += len(word)
            string = self._string(after, escaped=low == "e")
            if low in ("x", "b") and not re.fullmatch("[0-9a-fA-F]*", string.text):
                raise NotUnderstood(f"holds a string with `{word}` before it", word)
            return string
        if after == "&" and low == "u" and self.manner.dollar:
            return self._unicode(word)
        if "$" in word and "$$" in word:
            raise NotUnderstood("holds a name with `$$` in it", word)
        return self._take(WORD, len(word))

    def _unicode(self, word: str) -> Token:
        """Read `U&'…'`, a string that its escapes never end. A name in such quotes differs from what is written."""
        following = self.text[self.at + 2 : self.at + 3]
        if following == '"':
            raise NotUnderstood("holds a name with `U&` before it", word)
        if following != "'":
            return self._take(WORD, 1)
        self.at += 2
        return self._string("'", escaped=True)

    def _string(self, quote: str, *, escaped: bool = False) -> Token:
        end = self._closing(quote)
        inside = self.text[self.at + 1 : end]
        if (self.manner.escapes or escaped) and re.search(rf"(?<!\\)(?:\\\\)*\\(?:{quote}|\Z)", inside):
            raise NotUnderstood("holds a backslash before a quote, which may or may not end the string", "\\")
        self.at = end + 1
        return Token(STRING, inside, self.gap)

    def _named(self, token: Token) -> Token:
        """Return a token as a name: MySQL reads it so with a certain setting, or where a string would be an error."""
        if not re.fullmatch(r"[\w$ -]+", token.text):
            raise NotUnderstood("holds a quoted name that is not plain", cut(token.text, 40))
        return token._replace(kind=QUOTED)

    def _quoted(self, quote: str) -> Token:
        close = "]" if quote == "[" else quote
        end = self.text.find(close, self.at + 1)
        name = self.text[self.at + 1 : end]
        if end < 0 or not name or self.text.startswith(close, end + 1) or re.search(r"[\\\"'`\[\]\r\n]", name):
            raise NotUnderstood("holds a quoted name that is not plain", cut(name, 40) or quote)
        self.at = end + 1
        return Token(QUOTED, name, self.gap)

    def _closing(self, quote: str) -> int:
        """Return where the string that starts here ends, if a doubled quote is the only way to have one inside."""
        end = self.text.find(quote, self.at + 1)
        while end >= 0 and self.text.startswith(quote, end + 1):
            end = self.text.find(quote, end + 2)
        if end < 0:
            raise NotUnderstood("holds a string that is not closed", quote)
        return end

    def _dollar_string(self, opening: str) -> Token:
        end = self.text.find(opening, self.at + len(opening))
        if end < 0:
            raise NotUnderstood("holds a string that is not closed", opening)
        inside = self.text[self.at + len(opening) : end]
        self.at = end + len(opening)
        return Token(STRING, inside, self.gap)

    def _variable(self) -> Token | None:
        found = _VARIABLE.match(self.text, self.at)
        if found is None:
            return None
        mark = re.sub(r"\w+", "", found[0], flags=re.ASCII)
        kinds = self.manner.variables.split()
        numbered = mark in "$?" and found[0][1:].isdigit()
        if (f"{mark}1" if numbered else mark) not in kinds or self.text.startswith("::", found.end()):
            return None
        return self._take(NUMBER if numbered else VARIABLE, len(found[0]))

    def _sign(self) -> Token:
        found = _OPERATOR.match(self.text, self.at)
        if found is not None and len(found[0]) > MOST_SIGNS:
            raise NotUnderstood(f"holds more than {MOST_SIGNS} signs in a row", found[0][:8])
        if found is None:
            size = 2 if self.text.startswith("::", self.at) else 1
        elif self.manner.whole_signs:
            size = _whole(found[0])
        else:
            run = found[0]
            size = next((n for n in range(min(len(run), 3), 0, -1) if run[:n] in self.signs), 1)
        sign = self.text[self.at : self.at + size]
        if self.text.startswith(":=", self.at):
            raise NotUnderstood("sets a variable with `:=`", ":=")
        if sign not in self.signs:
            if sign == "\\":
                raise NotUnderstood("holds a backslash, which starts a command in some clients", sign)
            raise NotUnderstood(f"holds `{sign}`, which signoff does not know", sign)
        if sign == ":" and self.manner.escapes and _NAMED.match(self.text, self.at):
            raise NotUnderstood("holds a variable that some clients replace by text", ":")
        return self._take(SIGN, size)


def _whole(run: str) -> int:
    """Return the length of an operator in PostgreSQL: it ends before a comment, and only some may end in `+` or `-`."""
    for comment in ("--", "/*"):
        if (cut := run.find(comment)) > 0:
            run = run[:cut]
    while len(run) > 1 and run[-1] in "+-" and not re.search(r"[~!@#%^&|?]", run):
        run = run[:-1]
    return len(run)


def written(tokens: list[Token], dialect: str) -> str:
    """Return the tokens as plain SQL, in which only its quotes end a string."""
    quote = "`" if dialect == "mysql" else '"'
    parts: list[str] = []
    for token in tokens:
        kind, text = token.kind, token.text
        if token.gap or kind in (QUOTED, STRING):
            parts.append(" ")
        if kind == STRING:
            parts.append("'" + text.replace("'", "_").replace("\\", "_").replace("\n", " ") + "'")
        elif kind == QUOTED or (kind == WORD and not text.isascii()):
            parts.append(f"{quote}{text}{quote}")
        else:
            parts.append("?" if dialect == "sqlite" and text[0] in "$:@?" else text)
        if kind in (QUOTED, STRING):
            parts.append(" ")
    return "".join(parts)
