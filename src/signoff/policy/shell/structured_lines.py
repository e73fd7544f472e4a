"""The strict parser for command lines with more than literal words: variables, substitutions, conditions and loops.

It reads what `literal_words` refuses, and like it accepts only what bash, zsh, mksh, dash and busybox read alike. What
a line assigns literally is put in place of the variable; of a word with any other expansion it is only known how many
words it may become. The result lists every command that may run, in every state that the line may be in: a loop over
literal words is unrolled, the body of any other loop is read twice, and both branches of a condition follow each other.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from signoff.policy.shell.line import CommandLine, Join, Pipeline, Redirect, Simple, Unknown, Word
from signoff.policy.shell.literal import HOLE
from signoff.policy.shell.literal_words import (
    COMMON,
    LONGEST,
    NETWORK,
    ONTO,
    Refused,
    as_glob,
    hidden,
    in_pattern,
    is_keyword,
    quoted,
)
from signoff.policy.shell.shell_variables import is_harmless, may_be_kept, may_be_printed, may_be_set

MOST_COMMANDS = 128
MOST_WORDS = 8_192
"""The most words of all commands, with those of loops once for each time."""
MOST_EXPANDED = 65_536
"""The most characters that values of variables are replaced by."""
DEEPEST = 8
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_ASSIGNS = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=", re.ASCII)
_BLANKS = re.compile(r"[ \t]*")
_PLAIN = re.compile(r"[\w./,:=@%+^#!-]+", re.ASCII)
_END = frozenset(" \t\n;|&<>)")
_KEYWORD = re.compile(r"(?:if|then|elif|else|fi|for|in|do|done|while|until|\{|\}|!)(?=[ \t\n;|&<>)]|\Z)")
_REDIRECT = re.compile(
    r"(?:(?:[12]?>>?|&>)[ \t]*/dev/null|[12]?>&[12])(?=[ \t\n;|&)]|\Z)|<<<|<<|<(?![<>&(])|[0-9]*[<>]|&>"
)
_UNSPLIT = re.compile(r"[\w./,:=@%+-]+", re.ASCII)
"""A value that stays one word, whatever shell expands it outside quotes."""
_BRACED = re.compile(
    r"\$\{(#?)([A-Za-z][A-Za-z0-9_]*|\?)((?::?[-+][\w./ :@%+,-]*)?|(?:##?|%%?)[\w./*?:@,-]*)\}", re.ASCII
)
_SIMPLE = re.compile(
    r"""\$(?:([A-Za-z][A-Za-z0-9_]*)(?![A-Za-z0-9_]|[^\0-\x7f])|([?$])|(\#)(?=[ \t\n"',.;|&)]|\Z))(?!\[)""", re.ASCII
)
"""`$#` only where nothing follows that could name a variable: zsh reads `$#x[y]` as the length of `x[y]`, and evaluates
the subscript. To zsh, letters of any script belong to a name."""
_MODIFIERS = re.compile(r"(?::(?![FWfgpsw])[A-Za-z][0-9]*)*(:[A-Za-z&])?", re.ASCII)
"""What zsh takes for changes to the variable before it; the last one may reach further, as `:s/a/b` does."""
_SAFE_DOLLAR = re.compile(r"""\$(?=[] \t\n"'\\/.,:;%|&<>)}])""")
_ESCAPED = re.compile(r"[\t\x20-\x7e]")
_DELIMITER = re.compile(
    r"(?:'([A-Za-z_][A-Za-z0-9_]*)'|\"([A-Za-z_][A-Za-z0-9_]*)\"|([A-Za-z_][A-Za-z0-9_]*))(?=[ \t\n;|&)])"
)
_OWN = frozenset("true false : echo printf test [ [[ cd pwd exit type".split())
"""Programs that are part of every shell, to which variables of the environment mean nothing."""
_MATCHES = re.compile(r"=~(?=[ \t])")
_MOVES = frozenset({"cd", "pushd", "popd"})
_TRUE = Word("true")


class _No(Exception):
    """The line is refused."""

    def __init__(self, why: str, word: str, at: int) -> None:
        super().__init__(why)
        self.refused = Refused(why, word, at)


class _Value(NamedTuple):
    """What a variable is known to hold: a text, or the name of any file that a pattern matches."""

    text: str
    glob: str = ""


class _Document(NamedTuple):
    """A here-document of which the text is still to come."""

    end: str
    raw: bool


def read_structured(text: str) -> CommandLine | Refused:
    """Return every command that may run in `text`, or why that is not known. Never raises."""
    if len(text) > LONGEST:
        return Refused(f"is longer than {LONGEST:,} characters", text[LONGEST : LONGEST + 20], LONGEST)
    if not (text.isascii() and text.isprintable()) and (found := hidden(text)):
        return found
    reader = _StructureReader(text)
    try:
        return reader.line()
    except _No as no:
        return no.refused
    except RecursionError:
        return Refused("is nested too deeply", "", 0)


class _CommandSoFar:
    """What was read of a simple command."""

    def __init__(self, *, fed: bool) -> None:
        self.before: list[Word] = []
        self.assigns: list[tuple[str, Word]] = []
        self.words: list[Word] = []
        self.redirects: list[Redirect] = []
        self.fed = fed
        self.documents = False
        """Whether its input stands in the line."""


class _WordSoFar:
    """What was read of a word."""

    def __init__(self, *, bare: bool) -> None:
        self.bare = bare
        """Whether what is outside quotes may become several words."""
        self.whole: list[str] = []
        self.pattern: list[str] = []
        self.active = self.inside = self.tilde = False
        self.odd = False
        """Whether brackets may hold a variable: only some shells read its value as a part of the pattern."""
        self.unknown = Unknown.NOT

    def add(self, text: str, pattern: str) -> None:
        self.whole.append(text)
        self.pattern.append(pattern)

    def literal(self, text: str) -> None:
        self.add(text, in_pattern(text, inside=self.inside))

    def expansion(self, value: _Value | None, *, bare: bool) -> None:
        """Put the value of a variable in its place, or a placeholder if it is not known."""
        self.odd = self.odd or self.inside
        if value is None or (bare and (value.glob or not _UNSPLIT.fullmatch(value.text) or value.text[0] in "=~")):
            self.add(HOLE, "*")
            self.unknown = Unknown.ANY if bare or self.unknown is Unknown.ANY else Unknown.ONE
            return
        self.add(value.text, value.glob or in_pattern(value.text, inside=self.inside))
        self.active = self.active or bool(value.glob)


class _StructureReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at: int = 0
        self.pipelines: list[Pipeline] = []
        self.count = self.words = self.expanded = 0
        self.values: dict[str, _Value | None] = {}
        """What the line has assigned so far; None if that is not known, or not known to happen."""
        self.assigned: set[str] = set()
        self.delicate = ""
        """The first variable that may only be set because the line runs no programs."""
        self.loose = False
        """Whether a command may run although the one before it failed, and after commands that are listed before it."""
        self.exact = True
        self.maybe = 0
        self.inside = 0
        self.looping = 0
        self.braces = 0
        self.documents: list[_Document] = []
        self.document_text = ""

    # --- the line ---

    def line(self) -> CommandLine:
        self.list("")
        if not self.pipelines:
            raise self.no("is empty", "")
        line = CommandLine(tuple(self.pipelines), "" if self.exact else "is more than literal commands")
        if self.delicate and any(command.words[0].text not in _OWN for command in line.commands):
            raise self.no(f"sets {quoted(self.delicate)} before it runs a program", self.delicate)
        return line

    def list(self, *ends: str) -> str:
        """Read commands until one of these keywords, `)` or the end of the text (""). Return which one it was."""
        some = False
        while True:
            self.space(lines=True)
            if (end := self.ending(ends)) is not None:
                if not some and end:
                    raise self.no(f"has no command before {quoted(end)}", end)
                return end
            self.and_or()
            some = True
            self.space()
            following = self.text[self.at : self.at + 1]
            if following in (";", "\n"):
                if self.text.startswith(";;", self.at):
                    raise self.no("cannot be read", ";;")
                self.at += following == ";"  # the line break ends the line, and what is left of it
                continue
            if following not in ("", ")"):
                raise self.no("cannot be read", self.text[self.at : self.at + 10])

    def ending(self, ends: tuple[str, ...]) -> str | None:
        if self.at >= len(self.text):
            if "" not in ends:
                raise self.no("ends where another command has to follow", self.text[-20:])
            if self.documents:
                raise self.no("has a here-document that does not end", self.text[-20:])
            return ""
        if self.text[self.at] == ")":
            if ")" not in ends:
                raise self.no("holds parentheses outside quotes", ")")
            self.at += 1
            return ")"
        keyword = self.keyword()
        if keyword and keyword in ends:
            self.at += len(keyword)
            return keyword
        return None

    def and_or(self) -> None:
        join, maybe = Join.ALWAYS, 0
        while True:
            self.pipeline(join)
            self.space()
            operator = self.text[self.at : self.at + 2]
            if operator not in ("&&", "||"):
                break
            self.at += 2
            self.space(lines=True)
            join = Join.AND if operator == "&&" else Join.OR
            maybe += 1
            self.maybe += 1
        self.maybe -= maybe

    def pipeline(self, join: Join) -> None:
        if self.keyword() == "!":
            self.at += 1
            self.space()
            self.loosen()
        stages: list[Simple] = []
        before, self.assigned = self.assigned, set()
        piped = False
        while True:
            made = self.command(fed=piped)
            if made is None:
                self.emit(stages, join)
                stages = []
            else:
                stages.append(made)
            self.space()
            bar = "|&" if self.text.startswith("|&", self.at) else "|"
            if not self.text.startswith(bar, self.at) or self.text.startswith("||", self.at):
                break
            if bar == "|&":
                if made is None:
                    raise self.no("cannot be read", bar)
                stages[-1] = made._replace(redirects=(*made.redirects, ONTO[2, 1]))
            self.at += len(bar)
            self.space(lines=True)
            piped = True
            self.forget(self.assigned)
        if piped:
            self.forget(self.assigned)
        self.assigned |= before
        self.emit(stages, join)

    def emit(self, stages: list[Simple], join: Join) -> None:
        if not stages:
            return
        self.count += len(stages)
        if self.count > MOST_COMMANDS:
            raise self.no("runs too many commands", "")
        self.pipelines.append(Pipeline(tuple(stages), Join.ALWAYS if self.loose else join))

    def loosen(self) -> None:
        self.loose, self.exact = True, False

    def forget(self, names: set[str]) -> None:
        self.values.update(dict.fromkeys(names))

    # --- one command ---

    def command(self, *, fed: bool) -> Simple | None:
        """Read one command. Return it unless it is made of others, which are then listed."""
        keyword = self.keyword()
        before, self.assigned = self.assigned, set()
        if self.text.startswith("(", self.at):
            if self.text.startswith("((", self.at):
                raise self.no("evaluates an expression: `((`", "((")
            self.at += 1
            with self.nested(moves=False):
                self.list(")")
        elif keyword == "{":
            self.at += 1
            self.braces += 1
            with self.nested():
                self.list("}")
            self.braces -= 1
        elif keyword == "if":
            self.condition()
        elif keyword in ("while", "until"):
            self.repeat(keyword)
        elif keyword == "for":
            self.each()
        else:
            self.assigned = before
            return self.simple(fed=fed)
        self.after_compound()
        self.assigned |= before
        return None

    def after_compound(self) -> None:
        """Read redirects of what was made of other commands."""
        redirects: list[Redirect] = []
        while True:
            self.space()
            if (found := _REDIRECT.match(self.text, self.at)) is None:
                break
            if found[0] in ("<<", "<<<"):
                raise self.no(f"has a redirect that is not understood: {quoted(found[0])}", found[0])
            self.redirect(found, redirects)
        if self.text[self.at : self.at + 1] not in ("", "\n", ";", "|", "&", ")"):
            raise self.no("cannot be read", self.text[self.at : self.at + 10])
        if redirects:
            self.emit([Simple((_TRUE,), tuple(redirects))], Join.ALWAYS)

    @contextmanager
    def nested(self, *, moves: bool = True) -> Generator[None]:
        """Read commands that are part of another one. Unless it `moves`, what they change ends with them.

        What they set is not known behind them either way: shells differ in what runs, and where.
        """
        self.loosen()
        self.inside += 1
        if self.inside > DEEPEST:
            raise self.no("is nested too deeply", "")
        if self.documents:
            raise self.no("has a here-document inside other commands", "<<")
        looping, before, self.assigned = self.looping, self.assigned, set()
        if not moves:
            self.looping = 0
        yield
        self.forget(self.assigned)  # whatever decides about it, it may not have run
        self.assigned |= before
        self.looping = looping
        self.inside -= 1
        if self.documents:
            raise self.no("has a here-document inside other commands", "<<")

    def condition(self) -> None:
        self.at += len("if")
        self.maybe += 1
        with self.nested():
            self.list("then")
            while True:
                end = self.list("elif", "else", "fi")
                if end == "elif":
                    self.list("then")
                    continue
                if end == "else":
                    self.list("fi")
                break
        self.maybe -= 1

    def repeat(self, keyword: str) -> None:
        self.at += len(keyword)
        start = self.at
        for _ in range(2):  # what the body sets may be used before it the next time
            self.at = start
            with self.nested(), self.loop():
                self.list("do")
                self.list("done")

    def each(self) -> None:
        self.at += len("for")
        self.space()
        name = _NAME.match(self.text, self.at)
        if name is None or not name[0].islower() or not may_be_set(name[0]):
            raise self.no("has a loop over a variable that may mean something else", name[0] if name else "for")
        self.at = name.end()
        self.space()
        if self.keyword() != "in":
            raise self.no("has a loop without words", "for")
        self.at += len("in")
        self.loosen()
        words: list[Word] = []
        while True:
            self.space()
            if self.text[self.at : self.at + 1] in (";", "\n"):
                self.at += 1
                break
            words.append(self.word())
        self.space(lines=True)
        if self.keyword() != "do" or not words:
            raise self.no("cannot be read", self.text[self.at : self.at + 10])
        self.at += len("do")
        start = self.at
        known = [
            None if word.unknown is not Unknown.NOT or word.tilde else _Value(word.text, word.glob) for word in words
        ]
        times = known if None not in known else [None, None]
        for value in times:
            self.at = start
            self.values[name[0]] = value
            self.assigned.add(name[0])
            with self.nested(), self.loop():
                self.list("done")
        self.values[name[0]] = None

    @contextmanager
    def loop(self) -> Generator[None]:
        self.maybe += 1
        self.looping += 1
        yield
        self.looping -= 1
        self.maybe -= 1

    def simple(self, *, fed: bool) -> Simple:
        """Read one simple command."""
        read, start = _CommandSoFar(fed=fed or self.inside > 0), self.at
        while self.more(read):
            pass
        if not read.words:
            return self.only_assigns(read, start)
        name = read.words[0].text
        if name == "export":
            return self.export(read)
        if name == "[[":
            self.ends_condition(read)
        if name == "read":
            return self.reads(read)
        if name in _MOVES and self.looping:
            raise self.no("changes the directory in a loop", name)
        for variable, value in read.assigns:
            if value.unknown is not Unknown.NOT or value.tilde or not is_harmless(variable, value.text):
                raise self.no(f"sets {quoted(variable)} for a program", variable)
            self.assign(variable, None)  # shells differ in whether it stays set
        return Simple(tuple(read.words), tuple(read.redirects), tuple(read.before), read.fed)

    def ends_condition(self, read: _CommandSoFar) -> None:
        """Refuse a `[[` that some shell reads further than to its end."""
        raw = [self.text[word.at : word.end] for word in read.words]
        if read.before or read.redirects or read.documents or raw.count("]]") != 1 or raw[-1] != "]]":
            raise self.no("holds a condition that is not understood", "[[")
        self.exact = False

    def more(self, read: _CommandSoFar) -> bool:
        """Read the next word or redirect of a simple command. Return whether there was one."""
        self.space()
        char = self.text[self.at : self.at + 1]
        if char in ("", "\n", ";", "|", ")", "#") or self.text.startswith("&&", self.at):
            return False
        if (found := _REDIRECT.match(self.text, self.at)) is not None:
            read.documents = self.redirect(found, read.redirects) or read.documents
            read.fed = read.documents or read.fed
            return True
        if char == "&":
            raise self.no("starts a background process (`&`)", char)
        assigning = _ASSIGNS.match(self.text, self.at)
        if assigning is not None and (not read.words or read.words[0].text == "export"):
            name, value = self.assignment(assigning)
            read.assigns.append((name, value))
            self.assign(name, None)  # shells differ in whether what follows in this command sees the new value
            (read.words or read.before).append(Word(f"{name}={value.text}", unknown=value.unknown))
            return True
        if read.words and read.words[0].text == "[[" and (found := _MATCHES.match(self.text, self.at)) is not None:
            word = Word("=~", at=self.at, end=found.end())
            self.at = found.end()
        else:
            word = self.word()
        if not read.words:
            self.program(word)
        read.words.append(word)
        return True

    def program(self, word: Word) -> None:
        """Refuse a first word that is not simply the name of a program."""
        raw = self.text[word.at : word.end]
        if is_keyword(raw) and raw not in ("export", "time", "[["):
            raise self.no(f"uses {quoted(raw)}, a keyword of the shell", raw)
        if word.text in ("export", "time", "read", "[[") and raw != word.text:
            raise self.no(f"uses {quoted(raw)}, a keyword of the shell", raw)
        if word.glob or word.unknown is not Unknown.NOT:
            raise self.no("names its program with a pattern or a variable", raw)
        keyword = is_keyword(word.text) and word.text not in ("export", "time", "[[")
        if not word.text or keyword or word.text.startswith(("%", "-", "+")):
            raise self.no("starts with a job or an option of the shell, not with a program", raw)

    # --- variables ---

    def assignment(self, found: re.Match[str]) -> tuple[str, Word]:
        self.at = found.end()
        if self.text[self.at : self.at + 1] in ("", "\n", ";", "|", ")", " ", "\t") or self.text.startswith(
            "&&", self.at
        ):
            return found[1], Word("")
        if self.text[self.at : self.at + 1] in ("(", "<", ">", "&", "#"):
            raise self.no("sets a list", found[0])
        return found[1], self.word(value=True)

    def only_assigns(self, read: _CommandSoFar, start: int) -> Simple:
        if not read.assigns or read.redirects:
            raise self.no("has no command here", self.text[start : self.at + 1])
        for name, value in read.assigns:
            self.sets(name, value)
            self.assign(name, value)
        return Simple((_TRUE,), (), tuple(read.before))

    def assign(self, name: str, value: Word | None) -> None:
        known = value is not None and value.unknown is Unknown.NOT and not value.tilde and not self.maybe
        self.values[name] = _Value(value.text) if value is not None and known else None
        self.assigned.add(name)

    def sets(self, name: str, value: Word) -> None:
        if not may_be_kept(name) or not _is_plain(name, value):
            raise self.no(f"sets {quoted(name)}, which means something to shells or programs", name)
        if not may_be_set(name):
            self.delicate = self.delicate or name

    def export(self, read: _CommandSoFar) -> Simple:
        if read.before or read.redirects or len(read.words) != len(read.assigns) + 1 or not read.assigns:
            raise self.no("uses `export` in a way that is not understood", "export")
        for name, value in read.assigns:
            harmless = value.unknown is Unknown.NOT and not value.tilde and is_harmless(name, value.text)
            if value.unknown is Unknown.ANY:
                raise self.no("exports what some shells split into several words", name)
            if not harmless and not (may_be_set(name) and _is_plain(name, value)):
                raise self.no(f"sets {quoted(name)}, which means something to shells or programs", name)
            if not harmless:
                self.delicate = self.delicate or name
            self.assign(name, value)
        self.exact = False
        return Simple((_TRUE,), (), tuple(read.words))

    def reads(self, read: _CommandSoFar) -> Simple:
        names = [word.text for word in read.words[1:] if word.text != "-r"]
        if read.before or not names or any(word.unknown is not Unknown.NOT or word.glob for word in read.words):
            raise self.no("uses `read` in a way that is not understood", "read")
        for name in names:
            if not name.islower() or not may_be_set(name):
                raise self.no(f"reads into {quoted(name)}, which may mean something else", name)
            self.assign(name, None)
        self.exact = False
        return Simple((_TRUE,), tuple(read.redirects), tuple(read.words))

    # --- words ---

    def word(self, *, value: bool = False) -> Word:
        """Read one word: of a command, or the value of a variable, which is neither split nor a pattern."""
        text, start = self.text, self.at
        self.words += 1
        if self.words > MOST_WORDS:
            raise self.no("runs commands with too many words", text[start : start + 10])
        made = _WordSoFar(bare=not value)
        while self.at < len(text) and text[self.at] not in _END:
            self.piece(made, start)
        raw = text[start : self.at]
        names_program = raw[:1] == "=" and raw[1:2] not in (("",) if value else ("", "="))  # in zsh
        if not raw or names_program or (raw[0] == "#" and not value) or (value and ":=" in raw):
            raise self.no("cannot be read", text[start : start + 10])
        if value and (":~" in raw or "=~" in raw):
            raise self.no("has `~` where it may mean a home directory", raw)
        glob = "" if value else as_glob("".join(made.pattern), active=made.active)
        if glob is None or made.odd or (made.inside and made.unknown is not Unknown.NOT):
            raise self.no("holds a pattern that shells read differently", raw)
        unknown = made.unknown
        if unknown is not Unknown.NOT:
            unknown, glob = (Unknown.ANY, "") if glob else (unknown, "")
            self.exact = False
        return Word("".join(made.whole), glob, made.tilde, start, self.at, unknown)

    def piece(self, made: _WordSoFar, start: int) -> None:
        """Read the next piece of a word that began at `start`."""
        text, char = self.text, self.text[self.at]
        if plain := _PLAIN.match(text, self.at):
            made.add(plain[0], plain[0])
            self.at = plain.end()
        elif char == "'":
            close = text.find("'", self.at + 1)
            if close < 0:
                raise self.no("has a quote that is not closed", text[self.at : self.at + 20])
            made.literal(text[self.at + 1 : close])
            self.at = close + 1
        elif char == '"':
            self.at += 1
            for piece in self.double():
                made.literal(piece) if isinstance(piece, str) else made.expansion(piece, bare=False)
        elif char == "$" and text[self.at + 1 : self.at + 2] not in (*_END, ""):
            made.expansion(self.dollar(), bare=made.bare)
        else:
            self.sign(made, char, start)

    def sign(self, made: _WordSoFar, char: str, start: int) -> None:
        """Read a character with a meaning outside quotes."""
        text, following = self.text, self.text[self.at + 1 : self.at + 2]
        self.at += 1
        if char == "\\" and _ESCAPED.match(following):
            made.literal(following)
            self.at += 1
        elif char == "$":
            made.literal("$")
        elif char in "*?[]":
            made.inside = made.inside or char == "["
            made.active = made.active or char in "*?"
            made.add(char, char)
        elif char == "~" and self.at - 1 == start and following in ("", "/", *_END):
            made.tilde = True
            made.add("~", "~")
        elif char == "{" and following == "}" and not self.braces:
            made.add("{}", "{}")
            self.at += 1
        else:
            raise self.no(_blame(char), text[self.at - 1 : self.at + 10])

    def double(self) -> Iterator[str | _Value | None]:
        """Yield what a text in double quotes is made of, after the first quote."""
        text = self.text
        while True:
            char = text[self.at : self.at + 1]
            if char == '"':
                self.at += 1
                return
            if char == "":
                raise self.no("has a quote that is not closed", text[-20:])
            if char == "\\":
                following = text[self.at + 1 : self.at + 2]
                if following in ("", "\n"):
                    raise self.no("continues on the next line after a backslash", char)
                yield following if following in '$`"\\' else char + following
                self.at += 2
            elif char == "`":
                raise self.no("holds a substitution in backquotes", char)
            elif char == "$":
                if _SAFE_DOLLAR.match(text, self.at):
                    yield "$"
                    self.at += 1
                else:
                    yield self.dollar(quoted_=True)
            else:
                end = re.compile(r'[^"\\$`]+').match(text, self.at)
                assert end is not None
                yield end[0]
                self.at = end.end()

    def dollar(self, *, quoted_: bool = False) -> _Value | None:
        """Read an expansion. Return what it is known to be, otherwise None."""
        text = self.text
        if text.startswith("$(", self.at):
            self.substitution()
            return None
        if braced := _BRACED.match(text, self.at):
            if braced[1] and braced[3]:
                raise self.no(f"depends on a variable: {quoted(braced[0])}", braced[0])
            self.at = braced.end()
            return self.variable(braced[2], plain=not (braced[1] or braced[3]))
        if found := _SIMPLE.match(text, self.at):
            self.at = found.end()
            modifiers = _MODIFIERS.match(text, self.at)
            assert modifiers is not None
            if modifiers[1] or (modifiers[0] and not found[1]):
                raise self.no("changes a variable in a way that some shells do not know", found[0] + modifiers[0])
            self.at = modifiers.end()
            return self.variable(found[1] or found[0][1:], plain=not modifiers[0])
        raise self.no(f"depends on a variable: {quoted(text[self.at : self.at + 20])}", text[self.at : self.at + 20])

    def variable(self, name: str, *, plain: bool) -> _Value | None:
        if name in ("?", "#", "$"):
            return None
        if name in self.values:
            value = self.values[name] if plain else None
            self.expanded += len(value.text) if value is not None else 0
            if self.expanded > MOST_EXPANDED:
                raise self.no("gets too long by its variables", f"${name}")
            return value
        if not may_be_printed(name):
            raise self.no(f"depends on a variable: {quoted('$' + name)}", name)
        return None

    def substitution(self) -> None:
        if self.text.startswith("$((", self.at):
            raise self.no("evaluates an expression: `$((`", "$((")
        self.at += 2
        braces, self.braces = self.braces, 0
        documents, self.documents = self.documents, []
        with self.nested(moves=False):
            self.maybe += 1
            self.list(")")
            self.maybe -= 1
        self.braces, self.documents = braces, documents

    # --- redirects and here-documents ---

    def redirect(self, found: re.Match[str], redirects: list[Redirect]) -> bool:
        """Read a redirect. Return whether it is a text that the command reads."""
        sign = found[0].replace(" ", "").replace("\t", "")
        if sign in COMMON:
            if sign.startswith("&"):
                raise self.no("has `&>`, which some shells take for the end of a command", sign)
            self.at = found.end()
            redirects += COMMON[sign]
            return False
        if sign == "<<<":
            self.at = found.end()
            self.space()
            self.word(value=True)
            self.exact = False
            return True
        if sign == "<<":
            self.at = found.end()
            self.space()
            end = _DELIMITER.match(self.text, self.at)
            if end is None or self.inside:
                raise self.no("holds a here-document (`<<`)", sign)
            self.at = end.end()
            self.documents.append(_Document(end[1] or end[2] or end[3], end[3] is None))
            self.exact = False
            return True
        if sign != "<":
            raise self.no(f"has a redirect that is not understood: {quoted(sign)}", sign)
        self.at = found.end()
        self.space()
        word = self.word()
        if word.glob or word.unknown is not Unknown.NOT or word.text.startswith(NETWORK):
            raise self.no("reads its input from a file that is not named", word.text)
        if self.text[self.at : self.at + 1] in ("<", ">"):
            raise self.no("cannot be read", sign)
        redirects.append(Redirect(0, word))
        return False

    def document(self) -> None:
        """Skip the texts of here-documents, after a line break."""
        for document in self.documents:
            while True:
                if self.at >= len(self.text):
                    raise self.no("has a here-document that does not end", document.end)
                end = self.text.find("\n", self.at)
                line = self.text[self.at : end if end >= 0 else len(self.text)]
                self.at = end + 1 if end >= 0 else len(self.text)
                if line == document.end:
                    break
                if not document.raw and any(char in line for char in "$`\\"):
                    raise self.no("has a here-document with an expansion", line[:20])
        self.documents = []

    # --- characters ---

    def space(self, *, lines: bool = False) -> None:
        """Skip blanks and a comment; with `lines` also line breaks."""
        while True:
            blanks = _BLANKS.match(self.text, self.at)
            assert blanks is not None
            before, self.at = self.at, blanks.end()
            if self.text.startswith("#", self.at) and (
                self.at > before or self.at == 0 or self.text[self.at - 1] in "\n;"
            ):
                if self.inside:
                    raise self.no("has a comment inside other commands", "#")
                end = self.text.find("\n", self.at)
                self.at = end if end >= 0 else len(self.text)
            if not lines or not self.text.startswith("\n", self.at):
                return
            self.at += 1
            if self.documents:
                self.document()

    def keyword(self) -> str:
        found = _KEYWORD.match(self.text, self.at)
        return found[0] if found else ""

    def no(self, why: str, word: str, at: int | None = None) -> _No:
        return _No(why, word, self.at if at is None else at)


def _is_plain(name: str, value: Word) -> bool:
    """Whether no shell runs anything in the value, also if the variable is a number to it and it evaluates the value.

    Those that are known to be numbers are in the table. They have names in capital letters.
    """
    return name.islower() or "[" not in value.text


def _blame(char: str) -> str:
    if char == "`":
        return "holds a substitution in backquotes"
    if char in "{}":
        return "holds braces that may expand to several words"
    if char in "()":
        return "holds parentheses outside quotes"
    return "holds a character that is not understood"
