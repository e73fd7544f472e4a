"""Check that a sed script is harmless: the grammar of GNU sed, limited to what BSD and busybox read alike."""

from __future__ import annotations

import re

from signoff.policy.shell.languages.expr import Brackets, Stop, regex_end, settle
from signoff.policy.shell.languages.trouble import Trouble

_PLAIN = frozenset("=dDgGhHnNpPxzF")
_NUMBERED = frozenset("lqQ")
_TEXT = frozenset("aic")
_JUMPS = frozenset("btT")
_FILES = {
    "w": ("/dev/stdout", "/dev/stderr"),
    "W": ("/dev/stdout", "/dev/stderr"),
    "r": ("/dev/stdin",),
    "R": ("/dev/stdin",),
}
_FLAGS = re.compile(r"[gpiImM0-9]*")
_LABEL = re.compile(r"[A-Za-z0-9_.-]*")
_DIGITS = re.compile(r"[0-9]*")
_VERSION = re.compile(r"[0-9.]*")
_BLANKS = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"[ \t\n;]*")


def sed_trouble(script: str, *, separate: bool) -> Trouble | None:
    """Return what keeps a script from running unasked, or None. `separate`: it is one part of several."""
    return settle(lambda text, brackets: _Sed(text, brackets, separate).run(), script, Brackets.POSIX)


class _Sed:
    """Reads a script command by command. Stops at the first trouble."""

    def __init__(self, text: str, brackets: Brackets, separate: bool) -> None:
        self.text = text
        self.at = 0
        self.brackets = brackets
        self.separate = separate
        self.depth = 0
        self.start = 0
        self.bracketed = False
        self.glued = -1
        """The end of a line on which more follows a label: BSD reads the rest of that line as the label."""

    def run(self) -> bool:
        """Read the whole script. Return whether a regular expression contained a bracket."""
        while self._skip(_BETWEEN) and self.at < len(self.text):
            self.start = self.at
            self._command()
        if self.depth and not self.separate:
            raise Stop("{", "unknown: has no matching `}`")
        return self.bracketed

    def _command(self) -> None:
        addressed = self._addresses()
        name = self._next()
        if name in _PLAIN:
            self._end()
        elif name == "s":
            self._substitute()
        elif name == "{":
            self.depth += 1
        elif name in "}:#" and name:
            if addressed:
                raise self._unknown(f"has an address before `{name}`, which takes none")
            self._unaddressed(name)
        elif name in _NUMBERED or name == "v":
            self._blanks()
            self._skip(_DIGITS if name in _NUMBERED else _VERSION)
            self._end()
        elif name in _TEXT:
            self._text()
        elif name in _JUMPS:
            self._label()
        else:
            self._other(name)

    def _unaddressed(self, name: str) -> None:
        if name == ":":
            self._label()
        elif name == "}":
            self.depth -= 1
            if self.depth < 0 and not self.separate:
                raise self._unknown("has `}` without `{`")
            self._end()
        else:
            self.at = self._line_end()
            if self.text[self.at - 1] == "\\":
                raise self._unknown("is a comment that ends in a backslash")

    def _other(self, name: str) -> None:
        if name == "y":
            delimiter = self._delimiter()
            for _ in range(2):
                self._until(delimiter, Brackets.UNSEEN)
            self._end()
        elif name == "e":
            raise self._stop("runs: runs a command (`e`)")
        elif name in _FILES:
            self._blanks()
            end = self._line_end()
            if self.text[self.at : end] not in _FILES[name]:
                what = "writes: writes to a file" if name in "wW" else "discloses: reads another file"
                raise self._stop(f"{what} (`{name}`)")
            self.at = end
        else:
            raise self._unknown(f"has an unknown command `{name}`" if name else "has an address without a command")

    def _addresses(self) -> bool:
        """Read addresses and `!`. Return whether there were any."""
        given = self._address(first=True)
        self._blanks()
        if given and self._peek() == ",":
            self.at += 1
            self._blanks()
            if not self._address(first=False):
                raise self._unknown("lacks an address")
            self._blanks()
        if self._peek() == "!":
            given = True
            self.at += 1
            self._blanks()
        return given

    def _address(self, *, first: bool) -> bool:
        char = self._peek()
        if char.isdecimal():
            self._number()
            self._blanks()
            if self._peek() == "~":
                self.at += 1
                self._blanks()
                self._number()
        elif char == "$":
            self.at += 1
        elif char in "+~" and char and not first:
            self.at += 1
            self._blanks()
            self._number()
        elif char in "/\\" and char:
            self.at += char == "\\"
            self._until(self._delimiter(), self.brackets)
            self._blanks()
            while self._peek() in ("I", "M"):
                self.at += 1
                self._blanks()
        else:
            return False
        return True

    def _number(self) -> None:
        at = self.at
        self._skip(_DIGITS)
        if at == self.at:
            raise self._unknown("lacks a number")

    def _substitute(self) -> None:
        delimiter = self._delimiter()
        self._until(delimiter, self.brackets)
        self._until(delimiter, Brackets.UNSEEN)
        self._skip(_FLAGS)
        blanks = self._blanks()
        flag = self._peek()
        if flag == "w":
            self.at += 1
            self._blanks()
            end = self._line_end()
            if blanks or self.text[self.at : end] not in _FILES["w"]:
                raise self._stop("writes: writes to a file (`s///w`)")
            self.at = end
        elif flag == "e":
            raise self._stop("runs: runs the result as a command (`s///e`)")
        elif flag and flag not in "}#;\n":
            broken = not _FLAGS.fullmatch(flag)
            raise Stop(self._piece(), f"unknown: has `{flag}` after the flags of `s`", broken=broken)
        else:
            self._end()

    def _delimiter(self) -> str:
        char = self._next()
        if not "!" <= char <= "~" or char in "\\[]":
            raise self._unknown("has an unusual delimiter" if char else "lacks a delimiter")
        return char

    def _until(self, delimiter: str, brackets: Brackets) -> None:
        end = regex_end(self.text, self.at, delimiter, brackets)
        if end < 0:
            raise Stop(self._piece(), f"unknown: lacks a closing `{delimiter}`", broken=True)
        self.bracketed = self.bracketed or "[" in self.text[self.at : end]
        self._take(end + 1)

    def _text(self) -> None:
        """Read the text of `a`, `i` or `c`: to the end of the line, and on if that is a backslash."""
        self._blanks()
        size = len(self.text)
        at = self.at
        if self._peek() in ("", "\n"):
            raise self._unknown("lacks its text")
        if self._peek() == "\\":
            after = _BLANKS.match(self.text, at + 1)
            begin = after.end() if after else at + 1
            if self.text.startswith("\n", begin):
                if begin > at + 1 or begin + 1 == size:
                    raise self._unknown("has only spaces or nothing after `\\`")
                at = begin + 1
            elif self.text.startswith("\\", begin):
                raise self._unknown("has two backslashes before its text")
        while at < size and self.text[at] != "\n":
            at += 2 if self.text[at] == "\\" else 1
        if at > size and self.separate:
            raise self._unknown("has text that continues in the next part")
        self._take(min(at, size))

    def _label(self) -> None:
        """Read a label. It ends at `;` or `}` for GNU, with the line for BSD: the same if each line stands alone."""
        self._blanks()
        self._skip(_LABEL)
        self._blanks()
        if self._peek() not in ("", "\n") and self.glued < self.at:
            self.glued = self._line_end()
        self._end()

    def _end(self) -> None:
        """Require that only blanks follow, up to a separator, a brace or a comment."""
        self._blanks()
        char = self._peek()
        if char and char in "\n;":
            self.at += 1
        elif char and char not in "}#":
            raise self._unknown(f"has `{char}` after a command")

    def _take(self, end: int) -> None:
        if self.at <= self.glued < end:
            raise self._unknown("has a label and then a command of several lines")
        self.at = end

    def _skip(self, what: re.Pattern[str]) -> bool:
        if found := what.match(self.text, self.at):
            self.at = found.end()
        return True

    def _blanks(self) -> bool:
        at = self.at
        self._skip(_BLANKS)
        return self.at > at

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _next(self) -> str:
        self.at += 1
        return self.text[self.at - 1 : self.at]

    def _line_end(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def _piece(self) -> str:
        return self.text[self.start :].split("\n", 1)[0]

    def _stop(self, why: str) -> Stop:
        return Stop(self._piece(), why)

    def _unknown(self, why: str) -> Stop:
        return self._stop(f"unknown: {why}")
