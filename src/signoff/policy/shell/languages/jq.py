"""Check that a jq filter is harmless. Nearly all of jq only computes; the exceptions are environment and modules."""

from __future__ import annotations

import re

from signoff.policy.shell.languages.expr import Stop
from signoff.policy.shell.languages.trouble import Trouble

_SPECIAL = {
    "env": "discloses: reads the environment, which may hold secrets",
    "import": "runs: loads code from another file",
    "include": "runs: loads code from another file",
    "modulemeta": "discloses: reads another file",
    "get_search_list": "discloses: prints where jq looks for modules",
    "get_jq_origin": "discloses: prints where jq is installed",
    "get_prog_origin": "discloses: prints the path of the filter",
}
_WORDS = frozenset(
    """
    reduce foreach as if then elif else end and or not try catch label def break __loc__ true false null
    abs acos acosh add all any arrays ascii ascii_downcase ascii_upcase asin asinh atan atan2 atanh booleans bsearch
    builtins capture cbrt ceil combinations contains copysign cos cosh date dateadd datesub debug del delpaths drem
    empty endswith erf erfc error exp exp10 exp2 explode expm1 fabs fdim finites first flatten floor fma fmax fmin
    fmod format frexp from_entries fromdate fromdateiso8601 fromjson fromstream gamma getpath gmtime GROUP_BY group_by
    gsub halt halt_error has have_decnum have_literal_numbers hypot implode in IN INDEX index indices infinite input
    input_filename input_line_number inputs inside isempty isfinite isinfinite isnan isnormal isvalid iterables j0 j1
    jn join JOIN keys keys_unsorted last ldexp leaf_paths length lgamma lgamma_r limit localtime log log10 log1p log2
    logb ltrim ltrimstr map map_values match max max_by min min_by mktime modf nan nearbyint nextafter nexttoward
    normals now nth nulls numbers objects path paths pick pow pow10 range recurse recurse_down remainder repeat
    reverse rindex rint round rtrim rtrimstr scalars scalars_or_empty scalb scalbln scan select setpath significand
    sin sinh skip sort sort_by split splits sqrt startswith stderr strflocaltime strftime strings strptime sub tan
    tanh test tgamma to_entries toarray toboolean todate todateiso8601 tojson tonumber tostream tostring transpose
    trim trimstr trunc truncate_stream type unique unique_by UNIQUE_BY until utf8bytelength values walk while
    with_entries y0 y1 yn
""".split()
)
"""Keywords, and the functions of jq 1.5 to 1.8 that only compute, read their input or print."""

_TOKEN = re.compile(
    r"""
    (?P<blank>   [ \t\n]+ )
  | (?P<comment> \#[^\n]* )
  | (?P<field>   \.[A-Za-z_][A-Za-z0-9_]* )
  | (?P<number>  (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)? )
  | (?P<format>  @[A-Za-z0-9_]+ )
  | (?P<variable>\$[A-Za-z_][A-Za-z0-9_]* )
  | (?P<name>    [A-Za-z_][A-Za-z0-9_]* )
  | (?P<quote>   " )
  | (?P<open>    [(\[{] )
  | (?P<close>   [)\]}] )
  | (?P<op>      \.\. | [.?:;,|+\-*/%<>=!] )
    """,
    re.VERBOSE,
)
_PIECE = re.compile(r'(?:[^"\\]|\\[^(])*')
_AHEAD = re.compile(r"[ \t\n]*")
_PAIRS = {"(": ")", "[": "]", "{": "}", "{}": "}", "\\(": ")"}


def jq_trouble(script: str) -> Trouble | None:
    """Return what keeps a filter from running unasked, or None."""
    try:
        _Jq(script).run()
    except Stop as stop:
        return stop.trouble
    return None


class _Jq:
    """Reads a filter token by token. Stops at the first trouble."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at: int = 0
        self.word = ""
        """The previous token, other than blanks and comments."""
        self.stack: list[str] = []
        """What is open: `(`, `[`, `{`, a backslash and `(` inside a string, and `{}` for an object that so far contains
        only names, which are keys there even without a value."""
        self.defined: set[str] = set()
        self.parameters = False

    def run(self) -> None:
        while self.at < len(self.text):
            found = _TOKEN.match(self.text, self.at)
            if found is None:
                char = self.text[self.at]
                raise Stop(char, "unknown: is not understood here")
            kind, word = str(found.lastgroup), found.group()
            self.at = found.end()
            if kind == "blank":
                continue
            if kind == "comment":
                if word.endswith("\\"):
                    raise Stop(word, "unknown: is a comment that ends in a backslash")
                continue
            self._token(kind, word)
            self.word = word
        if self.stack:
            raise Stop(self.stack[-1][:1], "unknown: has a bracket or string that is not closed")

    def _token(self, kind: str, word: str) -> None:
        if kind == "name":
            self._name(word)
        elif kind == "variable":
            if word == "$ENV":
                raise Stop(word, "discloses: reads the environment, which may hold secrets")
            if word.startswith("$__") and word != "$__loc__":
                raise Stop(word, "unknown: is a variable of jq itself")
        elif kind == "close":
            self._close(word)
        else:
            if word != "," and self.stack and self.stack[-1] == "{}":
                self.stack[-1] = "{"
            if kind == "quote":
                self._string()
            elif kind == "open":
                self.stack.append("{}" if word == "{" else word)

    def _name(self, word: str) -> None:
        if self.text.startswith("::", self.at):
            raise Stop(word, "unknown: is a name from a module")
        if self._is_key(word):
            return
        if word in _SPECIAL:
            raise Stop(word, _SPECIAL[word])
        if self.word == "def":
            self.defined.add(word)
            ahead = _AHEAD.match(self.text, self.at)
            self.parameters = self.text.startswith("(", ahead.end() if ahead else self.at)
        elif self.parameters:
            self.defined.add(word)
        elif word not in _WORDS and word not in self.defined:
            raise Stop(word, "unknown: is not a function signoff knows to be harmless")

    def _is_key(self, word: str) -> bool:
        """Whether the name that was just read is the key of an object.

        `{a: 1, b}` has two keys. But a comma may also be inside a value (`if . then 1, env, 2 end`), so a name that
        matters counts as a key only if no value came before it, or if its own value follows.
        """
        top = self.stack[-1] if self.stack else ""
        if self.word not in ("{", ",") or top not in ("{", "{}"):
            return False
        ahead = _AHEAD.match(self.text, self.at)
        at = ahead.end() if ahead else self.at
        follows = self.text[at : at + 1]
        return follows == ":" or (follows in (",", "}") and (top == "{}" or word not in _SPECIAL))

    def _close(self, word: str) -> None:
        opened = self.stack.pop() if self.stack else ""
        if _PAIRS.get(opened) != word:
            raise Stop(word, "unknown: closes nothing")
        self.parameters = False
        if opened == "\\(":
            self._string()

    def _string(self) -> None:
        """Read a string from inside it, up to its end or to a `\\(` that leads back into the language."""
        found = _PIECE.match(self.text, self.at)
        end = found.end() if found else self.at
        if self.text.startswith("\\(", end):
            self.stack.append("\\(")
            self.at = end + 2
        elif self.text.startswith('"', end):
            self.at = end + 1
        else:
            raise Stop(self.text[self.at : end], "unknown: starts a string that does not end")
