"""The full parser for shell commands: finds every simple command, including those behind wrappers and in scripts.

Its result can only tighten. What it lists may be denied or shown; a harmless list is no reason to allow anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from signoff.policy.shell.grammar import (
    ends_as_shown,
    find_atoms,
    find_holes,
    find_targets,
    here_text,
    is_here_word,
    is_raw,
    last_command,
    oddity,
    parse_root,
    pitfalls,
    short,
    test_doubts,
)
from signoff.policy.shell.line import MOST_COMMANDS
from signoff.policy.shell.literal import HOLE, Arg, Certainty, read_word
from signoff.policy.shell.runners import Args
from signoff.policy.shell.shell_variables import changes_programs, is_harmless
from signoff.policy.shell.wrappers import hand_on

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 65_536
"""The longest text that is parsed, in characters."""
DEEPEST = 16
"""The maximum nesting depth of wrappers and scripts for other shells."""
MOST_WORDS = 32_768
"""The most words of all commands together. A wrapper's words count again for each command that it runs."""

_MOST_OPERATORS = 2_048  # unfinished pipes and braces take quadratic time: 64 kB of `a|` take 40 s
_MOST_REASONS = 40
_OPERATOR = re.compile(r"[|&;<>(){}\[\]$`]")
_WORD_END = re.compile(r"[\s;|&<>()`]|\\\n|\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[|\+?=)")
_RUNS_IN_HERE = re.compile(r"(?<!\\)(?:`|\$\[)")
_DESCRIPTOR = re.compile(r"\d+-?\Z|-\Z")

_LOOSE_WORDS = frozenset(("word", "concatenation", "string", "raw_string", "command_name"))
_INSIDE = {
    "command_substitution": "substitution", "process_substitution": "process substitution", "subshell": "subshell",
    "c_style_for_statement": "loop", "while_statement": "loop", "if_statement": "condition",
    "case_statement": "condition", "function_definition": "function", "heredoc_body": "here-document",
}  # fmt: skip


class Command(NamedTuple):
    """One simple command."""

    words: tuple[str | None, ...]
    """The program and its arguments; None for a word that contains an expansion."""
    via: tuple[str, ...] = ()
    """What runs it, outermost first: `("sudo", "bash -c")`."""
    inside: str = ""
    """Where it is: "" at the top, otherwise `substitution`, `loop`, `function` …"""
    at: int = 0
    """Where it starts in the text; for one found through a wrapper, where the wrapper starts."""
    stdin: str = ""
    """The text on its input, as far as it is in the line: a here-string, a here-document, or what `echo` writes."""


class Tree(NamedTuple):
    """What was found in a command line."""

    commands: tuple[Command, ...] = ()
    opaque: tuple[str, ...] = ()
    """What is not understood, and why. Empty if everything is."""
    writes: tuple[str, ...] = ()
    """Targets of output redirects; `?` if one is not literal."""
    reads: tuple[str, ...] = ()
    """Sources of input redirects; `?` if one is not literal."""


class _Job(NamedTuple):
    text: str
    via: tuple[str, ...] = ()
    inside: str = ""
    at: int | None = None
    """The position reported for everything found in the text; None: its own position."""


class _Extra(NamedTuple):
    """What belongs to a command but is elsewhere in the tree."""

    words: tuple[Node, ...] = ()
    stdin: Arg | None = None


class _Found:
    """Collects the results of all texts."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.opaque: dict[str, None] = {}
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.jobs: list[_Job] = []
        self._words = 0

    @property
    def is_full(self) -> bool:
        """Whether there are more commands or words than are examined."""
        return len(self.commands) > MOST_COMMANDS or self._words > MOST_WORDS

    def doubt(self, reason: str) -> None:
        if len(self.opaque) < _MOST_REASONS:
            self.opaque.setdefault(reason)

    def add(self, args: Args, job: _Job, inside: str, at: int, stdin: Arg | None) -> None:
        """Add a command and every command that it runs. `stdin` is its input text, if known."""
        todo = [(args, job.via)]
        while todo:
            if self.is_full:
                self.doubt("runs too many commands")
                return
            args, via = todo.pop()
            self._words += len(args)
            words = tuple(arg.word for arg in args)
            if args[0].sure is None:
                self.doubt(
                    f"runs a program whose name is an expansion: `{short((args[0].text or '?').replace(HOLE, '$…'))}`"
                )
                words = (None, *words[1:])
            said = stdin.text if stdin is not None and stdin.text else ""
            self.commands.append(Command(words, via, inside, at, said))
            handed = hand_on(args, stdin)
            for reason in handed.opaque:
                self.doubt(reason)
            if handed.inner and len(via) >= DEEPEST:
                self.doubt(f"is nested too deeply at `{short(handed.inner[0].via)}`")
                continue
            for inner in reversed(handed.inner):
                if inner.script is not None:
                    self.jobs.append(_Job(inner.script, (*via, inner.via), inside, at))
                elif inner.args:
                    todo.append((inner.args, (*via, inner.via)))


def parse_tree(text: str) -> Tree:
    """Return everything found in a command line. Never raises; takes time linear in the text."""
    if len(text) > LONGEST:
        return Tree(opaque=("is too long",))
    found = _Found()
    found.jobs.append(_Job(text))
    budget = LONGEST * 4
    while found.jobs and not found.is_full:
        job = found.jobs.pop()
        budget -= len(job.text)
        if budget < 0:
            found.doubt("starts too many other shells")
            break
        _TreeWalk(job, found).run()
    commands = sorted(found.commands, key=lambda command: command.at)
    return Tree(tuple(commands), tuple(found.opaque), tuple(found.writes), tuple(found.reads))


class _TreeWalk:
    """Walks one text node by node, without recursion."""

    def __init__(self, job: _Job, found: _Found) -> None:
        self.job, self.found, self.text = job, found, job.text
        self.stack: list[tuple[Node, str]] = []
        self.extras: dict[int, _Extra] = {}
        self.handlers: dict[str, Callable[[Node, str], None]] = {
            "command": self._command,
            "redirected_statement": self._redirected,
            "pipeline": self._pipeline,
            "file_redirect": self._file_redirect,
            "heredoc_redirect": self._here,
            "test_command": self._test,
            "variable_assignment": self._assignment,
            "declaration_command": self._declaration,
            "unset_command": self._declaration,
            "function_definition": self._function,
            "for_statement": self._for,
            "ERROR": self._error,
        }

    def run(self) -> None:
        text, doubt = self.text, self.found.doubt
        for reason in pitfalls(text):
            doubt(reason)
        for count, match in enumerate(_OPERATOR.finditer(text)):
            if count == _MOST_OPERATORS:
                doubt("is too complex to parse")
                self.text = text = text[: match.start()]
                break
        root, whole = parse_root(text)
        if not whole:
            doubt("is too complex to parse")
        broken = root.has_error
        self.stack.append((root, self.job.inside))
        while self.stack:
            if self.found.is_full:
                doubt("runs too many commands")
                break
            node, inside = self.stack.pop()
            kind = node.type
            if broken and node.is_missing:
                doubt(f"cannot be parsed: `{short(kind)}` is missing")
            if reason := oddity(text, node, kind):
                doubt(reason)
            if handler := self.handlers.get(kind):
                handler(node, inside)
            elif node.child_count:
                self._push(node.children, self._inside(kind, inside))
        if broken and not any(reason.startswith("cannot be parsed") for reason in self.found.opaque):
            doubt("cannot be parsed completely")

    def _inside(self, kind: str, inside: str) -> str:
        if kind == "compound_statement":
            return inside or "group"
        return inside if inside == "here-document" else _INSIDE.get(kind, inside)

    def _push(self, nodes: Iterable[Node], inside: str) -> None:
        self.stack.extend((node, inside) for node in reversed(list(nodes)))

    def _source(self, node: Node) -> str:
        return self.text[node.start_byte : node.end_byte]

    def _add(self, args: Args, inside: str, at: int, stdin: Arg | None = None) -> None:
        if args:
            self.found.add(args, self.job, inside, at if self.job.at is None else self.job.at, stdin)

    def _words(self, nodes: Iterable[Node], inside: str) -> list[tuple[int, Arg]]:
        """Return the words of these nodes with their positions; substitutions inside them are walked later."""
        spans: list[tuple[int, int, list[tuple[int, int]]]] = []
        for node in sorted(nodes, key=lambda node: node.start_byte):
            holes = find_holes(node)
            self._push(holes, inside)
            ranges = [hole.byte_range for hole in holes]
            if spans and spans[-1][1] == node.start_byte:
                start, _, before = spans.pop()
                before.extend(ranges)
                spans.append((start, node.end_byte, before))
            elif node.end_byte > node.start_byte:
                spans.append((node.start_byte, node.end_byte, ranges))
        words: list[tuple[int, Arg]] = []
        for start, end, ranges in spans:
            arg, agreed = read_word(self.text, start, end, ranges)
            if not agreed or not _WORD_END.match(self.text, end):
                self.found.doubt(f"holds a word that signoff does not understand: `{short(self.text[start:end])}`")
            words.append((start, arg))
        return words

    def _args(self, nodes: Iterable[Node], inside: str) -> Args:
        return tuple(arg for _, arg in self._words(nodes, inside))

    def _command(self, node: Node, inside: str) -> None:
        extra = self.extras.pop(node.id, _Extra())
        stdin, words = extra.stdin, list(extra.words)
        for child in node.children:
            kind = child.type
            if kind == "herestring_redirect":
                stdin = self._here_string(child, inside)
            elif kind == "file_redirect":
                targets = find_targets(child)
                words += targets[1:]
                stdin = self._opened(child, stdin)
                self.stack.append((child, inside))
            elif kind in ("ERROR", "heredoc_redirect") or (
                kind == "variable_assignment" and self._is_assignment(child)
            ):
                self.stack.append((child, inside))
            else:
                words.append(child)
        self._add(self._args(words, inside), inside, node.start_byte, stdin)

    def _is_assignment(self, node: Node) -> bool:
        """Whether bash, too, reads it as an assignment: the parser accepts names that start with a digit."""
        return _NAME.match(self.text, node.start_byte) is not None

    def _opened(self, redirect: Node, stdin: Arg | None) -> Arg | None:
        return Arg(None) if any(child.type in ("<", "<&") for child in redirect.children) else stdin

    def _here_string(self, node: Node, inside: str) -> Arg | None:
        args = self._args([child for child in node.children if child.type not in ("<<<", "file_descriptor")], inside)
        return args[0] if args else None

    def _redirected(self, node: Node, inside: str) -> None:
        """Handle redirects after a command: the parser takes words after them for further targets, and the like."""
        words: list[Node] = []
        stdin: Arg | None = None
        body: Node | None = None
        for child in node.children:
            if child.type == "file_redirect":
                words += find_targets(child)[1:]
                stdin = self._opened(child, stdin)
            elif child.type == "heredoc_redirect":
                words += [part for part in child.children if is_here_word(part)]
                stdin = here_text(self.text, child)
            elif child.type == "herestring_redirect":
                stdin = self._here_string(child, inside)
            elif child.is_named and body is None:
                body = child
        last = last_command(body)
        if last is not None:
            before = self.extras.get(last.id, _Extra())
            self.extras[last.id] = _Extra((*before.words, *words), stdin or before.stdin)
        elif words:
            self.found.doubt(f"has a word after a redirect: `{short(self._source(words[0]))}`")
            self._add(self._args(words, inside), inside, words[0].start_byte)
        self._push((child for child in node.children if child.type != "herestring_redirect"), inside)

    def _pipeline(self, node: Node, inside: str) -> None:
        """Pass what a plain `echo` or `printf` writes to the next command as its input."""
        before: Node | None = None
        for child in node.named_children:
            if child.type == "command" and before is not None and before.type == "command":
                if (said := self._said(before)) is not None:
                    self.extras[child.id] = self.extras.get(child.id, _Extra())._replace(stdin=said)
            before = child
        self._push(node.children, inside)

    def _said(self, command: Node) -> Arg | None:
        first, *others = command.children
        if self._source(first) not in ("echo", "printf"):
            return None
        args = [
            read_word(self.text, *one.byte_range, [hole.byte_range for hole in find_holes(one)])[0]
            for one in others
            if self._source(one) not in ("-e", "-n")
        ]
        return Arg(" ".join(HOLE if arg.text is None else arg.text for arg in args), Certainty.PART)

    def _file_redirect(self, node: Node, inside: str) -> None:
        targets = find_targets(node)
        operator = "".join(child.type for child in node.children if not child.is_named)
        if not targets or operator.endswith("-"):
            return
        args = self._args(targets[:1], inside)
        text = args[0].sure if args else None
        if operator.endswith("&") and text is not None and _DESCRIPTOR.match(text):
            return
        if text is None:
            self.found.doubt(f"redirects to or from a file named by an expansion: `{short(self._source(targets[0]))}`")
        if ">" in operator or any(child.type == "ERROR" for child in node.children):
            self.found.writes.append("?" if text is None else text)
        if operator.startswith("<"):
            self.found.reads.append("?" if text is None else text)
        self._push((child for child in node.children if child.type == "ERROR"), inside)

    def _here(self, node: Node, inside: str) -> None:
        text = here_text(self.text, node)
        if not ends_as_shown(self.text, node):
            self.found.doubt("has a here-document whose end is unclear")
        for child in node.children:
            if child.type == "pipeline" and (first := next((c for c in child.children if c.type == "command"), None)):
                self.extras[first.id] = self.extras.get(first.id, _Extra())._replace(stdin=text and text.partly())
            if child.type == "ERROR" and ">" in self._source(child):
                self.found.writes.append("?")
            body = child.type == "heredoc_body"
            if body and not is_raw(self._source(node.children[1])) and _RUNS_IN_HERE.search(self._source(child)):
                self.found.doubt("holds backquotes inside a here-document, or `$[`")
            if not is_here_word(child):
                self._push([child], "here-document" if body else inside)

    def _test(self, node: Node, inside: str) -> None:
        """Handle tests: `[ … ]` is a command, though the parser splits it; in `[[ … ]]` only expansions run."""
        text = self._source(node)
        if text.startswith("[["):
            for reason in test_doubts(text):
                self.found.doubt(reason)
            self._push(node.children, inside)
        else:
            if "\n" in text:
                self.found.doubt("holds `[` over several lines")
            self._add(self._args(find_atoms(node), inside), inside, node.start_byte)

    def _assignment(self, node: Node, inside: str) -> None:
        if not self._is_assignment(node):
            self.found.doubt(f"holds what may or may not be an assignment: `{short(self._source(node))}`")
            self._add(self._args([node], inside), inside, node.start_byte)
            return
        name = re.split(r"[\[=+]", self._source(node), maxsplit=1)[0]
        if changes_programs(name) and not is_harmless(*self._source(node).split("=", 1)):
            self.found.doubt(f"sets `{short(name)}`")
        self._push(node.children, inside)

    def _declaration(self, node: Node, inside: str) -> None:
        self._add(self._args(find_atoms(node), inside), inside, node.start_byte)

    def _for(self, node: Node, _: str) -> None:
        variable = node.child_by_field_name("variable")
        if variable is not None and changes_programs(self._source(variable)):
            self.found.doubt(f"sets `{short(self._source(variable))}`")
        self._push(node.children, "loop")

    def _function(self, node: Node, _: str) -> None:
        name = node.child_by_field_name("name")
        self.found.doubt(f"defines the function `{short(self._source(name)) if name else '?'}`")
        self._push(node.children, "function")

    def _error(self, node: Node, inside: str) -> None:
        """Handle what the parser could not place; words in it are listed as a command, since they may be one."""
        self.found.doubt(f"cannot be parsed at `{short(self._source(node))}`")
        words = [child for child in node.children if child.type in _LOOSE_WORDS]
        self._add(self._args(words, inside), inside, node.start_byte)
        self._push((child for child in node.children if child.type not in _LOOSE_WORDS), inside)
