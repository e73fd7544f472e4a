"""Check that an awk program is harmless: split it into tokens, and find what it could do besides printing."""

from __future__ import annotations

import re
from enum import Enum, auto

from signoff.policy.shell.languages.expr import Brackets, Stop, regex_end, settle
from signoff.policy.shell.languages.trouble import Trouble

_SPECIAL = {
    "system": "runs: runs a command",
    "extension": "runs: loads code",
    "ENVIRON": "discloses: reads the environment, which may hold secrets",
    "PROCINFO": "discloses: reads facts about the process",
    "SYMTAB": "discloses: reads every variable and the environment",
    "FUNCTAB": "unknown: calls functions by name",
    "ARGV": "discloses: may make it read other files",
    "ARGC": "discloses: may make it read other files",
}
_FUNCTIONS = frozenset(
    """
    length substr index split sub gsub gensub match sprintf tolower toupper int sqrt exp log sin cos atan2 rand srand
    strftime systime mktime and or xor compl lshift rshift strtonum asort asorti patsplit typeof isarray mkbool
    close fflush
""".split()
)
_BEFORE_VALUE = frozenset("print printf return else do".split())
_CONTROL = frozenset("if while for switch".split())
_KEYWORDS = frozenset("""
    BEGIN END BEGINFILE ENDFILE function func break continue next nextfile exit delete in getline case default
""".split()) | _BEFORE_VALUE | _CONTROL  # fmt: skip

_TOKEN = re.compile(
    r"""
    (?P<blank>  [ \t]+ | \\\n )
  | (?P<comment>\#[^\n]* )
  | (?P<newline>\n )
  | (?P<name>   [A-Za-z_][A-Za-z0-9_]* )
  | (?P<number> 0[xX][0-9A-Fa-f]+ | (?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)? )
  | (?P<string> "(?:[^"\\\n]|\\[^\n])*" )
  | (?P<slash>  / )
  | (?P<op>     \*\*=? | \|\| | \|&? | && | >>? (?!=) | [-+*%^=!<>]= | !~ | \+\+ | -- | [-+*%^!<>~?:,;$=(){}\[\]] )
    """,
    re.VERBOSE,
)
_STREAM = re.compile(r'>>?[ \t]*"/dev/std(?:err|out)"[ \t]*(?=[;}\n]|\Z)')
_ORDER = re.compile(r'PROCINFO\["sorted_in"\]')
_CALL = re.compile(r"[ \t]*\(")
_BEFORE_REGEX = frozenset("( , ; { } ! ~ !~ && || ? : = += -= *= %= ^= **= == != < <= > >=".split())


class _Prev(Enum):
    """What the previous token says about a slash."""

    START = auto()
    """A value comes next: the slash begins a regular expression."""
    VALUE = auto()
    """A value ended: the slash divides."""
    EITHER = auto()
    """Something ended after which programs disagree. A newline ends the doubt."""
    OPEN = auto()
    """Programs disagree, and a newline does not end the doubt."""


class _Left(Enum):
    """How much of a statement was read, to tell whether `/=` after it certainly assigns.

    If that is not certain, GNU awk reads the regular expression `/=/`: `1 x/=/system("id")/1` runs `id`.
    """

    NOTHING = auto()
    """A statement begins here."""
    DOLLAR = auto()
    """The `$` of a field."""
    VARIABLE = auto()
    """A variable, an element or a field, and nothing before it."""
    MORE = auto()


def awk_trouble(script: str) -> Trouble | None:
    """Return what keeps a program from running unasked, or None."""
    return settle(lambda text, brackets: _Awk(text, brackets).run(), script, Brackets.ESCAPED)


class _Awk:
    """Reads a program token by token. Stops at the first trouble."""

    def __init__(self, text: str, brackets: Brackets) -> None:
        self.text = text
        self.at = 0
        self.brackets = brackets
        self.prev = _Prev.START
        self.word = ""
        """The previous token, other than blanks and comments."""
        self.left = _Left.NOTHING
        self.stack: list[str] = []
        """Open brackets of every kind; `if (` for one of a statement, `x[` for a subscript that begins one."""
        self.parens = 0
        self.printing = False
        self.got_line = False
        self.bracketed = False
        self.defined: set[str] = set()
        self.called: dict[str, None] = {}

    def run(self) -> bool:
        """Read the whole program. Return whether a regular expression contained a bracket."""
        while self.at < len(self.text):
            found = _TOKEN.match(self.text, self.at)
            if found is None:
                raise self._no_token()
            kind, word = str(found.lastgroup), found.group()
            left = self._read_so_far(kind, word)
            if kind == "name":
                self._name(word)
            elif kind == "op":
                self._operator(word)
            elif kind == "slash":
                word = self._slash()
            else:
                self._plain(kind, word)
            self.at += len(word)
            if kind not in ("blank", "comment"):
                self.word, self.left = word, left
        if self.stack:
            raise Stop(self.stack[-1], "unknown: is not closed", broken=True)
        for name in self.called:
            if name not in self.defined:
                raise Stop(name, "unknown: is not a function signoff knows to be harmless")
        return self.bracketed

    def _read_so_far(self, kind: str, word: str) -> _Left:
        """Return how much of the statement is read after this token."""
        if kind == "newline":
            ended = self.left is _Left.NOTHING or (self.prev in (_Prev.VALUE, _Prev.EITHER) and not self.parens)
            return _Left.NOTHING if ended else _Left.MORE
        closed = self.stack[-1] if self.stack else ""
        if word in ("{", "}", ";", "else", "do") or (word == ")" and closed == "if ("):
            return _Left.NOTHING
        if word == "$" and self.left is _Left.NOTHING:
            return _Left.DOLLAR
        named = kind == "name" and word not in _KEYWORDS and word not in _FUNCTIONS
        if (named and self.left in (_Left.NOTHING, _Left.DOLLAR)) or (kind == "number" and self.left is _Left.DOLLAR):
            return _Left.VARIABLE
        return _Left.VARIABLE if word == "]" and closed == "x[" else _Left.MORE

    def _no_token(self) -> Stop:
        char = self.text[self.at]
        if char == '"':
            line = self.text[self.at :].split("\n", 1)[0]
            return Stop(line, "unknown: starts a string that does not end on its line", broken=not line.endswith("\\"))
        if char == "@":
            return Stop(char, "runs: loads code or calls a function by name")
        return Stop(char, "unknown: is not understood here")

    def _plain(self, kind: str, word: str) -> None:
        """Handle a token that is not a name, operator or slash."""
        if kind == "newline":
            self._newline()
        elif kind == "comment":
            if word.endswith("\\"):
                raise Stop(word, "unknown: is a comment that ends in a backslash")
        elif kind != "blank":
            if word.startswith(('"/inet', '"/dev/tcp', '"/dev/udp')):
                raise Stop(word, "sends: opens a network connection")
            self.prev = _Prev.VALUE

    def _newline(self) -> None:
        """A newline ends a statement, unless something is open or an operator comes before it."""
        if self.parens:
            self.prev = _Prev.OPEN
            return
        if self.prev in (_Prev.VALUE, _Prev.EITHER) or self.word in ("print", "printf"):
            self.printing = False
        if self.prev is not _Prev.OPEN:
            self.prev = _Prev.START

    def _name(self, word: str) -> None:
        end = self.at + len(word)
        if word in _SPECIAL and not _ORDER.match(self.text, self.at):
            raise Stop(word, _SPECIAL[word])
        if word in _KEYWORDS:
            self._keyword(word)
        elif word in _FUNCTIONS:
            self.prev = _Prev.EITHER
        else:
            self.prev = _Prev.VALUE
            if self.word in ("function", "func"):
                self.defined.add(word)
            elif _CALL.match(self.text, end):
                self.called[word] = None

    def _keyword(self, word: str) -> None:
        if word in ("print", "printf"):
            if self.parens or self.printing:
                raise Stop(word, "unknown: is not understood here")
            self.printing = True
        elif word == "getline":
            self.got_line = True
        if word in _BEFORE_VALUE:
            self.prev = _Prev.START
        else:
            self.prev = _Prev.OPEN if word == "in" or word in _CONTROL else _Prev.EITHER

    def _operator(self, word: str) -> None:
        if word[0] == "|" and word != "||":
            raise Stop(word, "runs: is a pipe to or from a command")
        if word == "<" and self.got_line:
            raise Stop(word, "discloses: reads another file")
        if word[0] == ">" and self.printing and not self.parens:
            self._redirect(word)
        elif word in ("(", "[", "{"):
            self._opens(word)
        elif word in (")", "]", "}"):
            self._closes(word)
        elif word == ";":
            if self.printing and self.parens:
                raise Stop(word, "unknown: is not understood inside parentheses")
            self.printing = False
            self.prev = _Prev.START
        elif word == ":" and self.text.startswith("::", self.at):
            raise Stop("::", "unknown: uses a namespace")
        elif word in _BEFORE_REGEX:
            self.prev = _Prev.START
        else:
            self.prev = _Prev.EITHER if word in ("++", "--") else _Prev.OPEN

    def _redirect(self, word: str) -> None:
        """Accept output to a stream that is open anyway, as the end of its statement; refuse any other redirect."""
        stream = _STREAM.match(self.text, self.at)
        if stream is None:
            line = self.text[self.at :].split("\n", 1)[0]
            raise Stop(line, "writes: after print or printf writes to a file")
        self.at = stream.end() - len(word)
        self.prev = _Prev.VALUE
        self.printing = False

    def _opens(self, word: str) -> None:
        if word == "{" and (self.parens or self.printing):
            raise Stop(word, "unknown: is not understood here")
        if word == "(":
            self.parens += 1
        if word == "(" and self.word in _CONTROL:
            word = "if ("
        elif word == "[" and self.left is _Left.VARIABLE and not self.word[0].isdigit():
            word = "x["
        self.stack.append(word)
        self.prev = _Prev.START

    def _closes(self, word: str) -> None:
        opened = self.stack.pop() if self.stack else ""
        if not opened or opened[-1] + word not in ("()", "[]", "{}"):
            raise Stop(word, "unknown: closes nothing", broken=True)
        if word == ")":
            self.parens -= 1
        if word == "}":
            self.printing = False
            self.prev = _Prev.START
        else:
            self.prev = _Prev.OPEN if opened == "if (" else _Prev.VALUE

    def _slash(self) -> str:
        """Return the token that a slash begins: a regular expression or an operator."""
        if self.prev is _Prev.VALUE:
            assign = self.text.startswith("/=", self.at)
            if assign and self.left is not _Left.VARIABLE:
                raise Stop("/=", "unknown: may be a division or a regular expression")
            self.prev = _Prev.START if assign else _Prev.OPEN
            return "/=" if assign else "/"
        if self.prev is not _Prev.START:
            raise Stop("/", "unknown: may be a division or a regular expression")
        end = regex_end(self.text, self.at + 1, "/", self.brackets)
        if end < 0:
            raise Stop("/", "unknown: starts a regular expression that does not end on its line", broken=True)
        word = self.text[self.at : end + 1]
        if "\n" in word:
            raise Stop(word, "unknown: starts a regular expression of several lines")
        self.bracketed = self.bracketed or "[" in word
        self.prev = _Prev.EITHER
        return word
