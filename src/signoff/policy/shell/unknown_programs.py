"""What an unknown program may start: any of its words may begin another command.

This serves ask and deny rules. Programs whose ways to run others are modelled (wrappers) are skipped here: the
commands that they run are in the syntax tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from signoff.policy.shell.syntax_tree import parse_tree
from signoff.policy.shell.table import program
from signoff.policy.shell.wrappers import is_modelled

Words = tuple[str | None, ...]

_INSIDE = re.compile(r"[=:({\[\"'`|&;!,]")
"""What may come before a command in a text in the program's own syntax: `commands=rm x`, `start:execute(rm x)`."""
MOST_WORDS = 64
"""How many words are tried as the start of a command; a line with more is assumed to list things."""
_COPIES = frozenset(
    "cp gcp ln gln link install ginstall mv gmv dd gdd rsync scp ditto cat tee hash alias symlink".split()
)
"""Programs that give another file, or another name, to what their words name."""


def may_start(argv: Sequence[str | None]) -> Iterator[Words]:
    """Yield the commands that this one may run, as far as is known."""
    if not argv or argv[0] is None or not _may_run(argv[0].rpartition("/")[2]):
        return
    rest = tuple(argv[1 : MOST_WORDS + 1])
    for at, word in enumerate(rest):
        if word is None:
            continue
        yield rest[at:]
        value = word.partition("=")[2] if word.startswith("-") else word
        if value and (value != word or " " in value):
            yield from (command.words for command in parse_tree(value).commands)
            yield from (tuple(piece.split()) for piece in _INSIDE.split(value)[1 : MOST_WORDS + 1] if piece.strip())


def copied(argv: Sequence[str | None]) -> Iterator[str]:
    """Yield the files that this command copies or links to, which may be programs: later they run as another name."""
    if argv and argv[0] is not None and argv[0].rpartition("/")[2] in _COPIES:
        for word in argv[1:]:
            source = (word or "").rpartition("=")[2]
            if source and not source.startswith("-"):
                yield source


def fed(program: str | None, stdin: str, depth: int = 3) -> Iterator[Words]:
    """Yield the commands in the input of a program that signoff does not know: it may be a shell."""
    if not stdin or not depth or not (program is None or _may_run(program.rpartition("/")[2])):
        return
    for command in parse_tree(stdin).commands:
        yield command.words
        yield from may_start(command.words)
        yield from fed(command.words[0] if command.words else None, command.stdin, depth - 1)


def _may_run(name: str) -> bool:
    if is_modelled(name):
        return False
    known = program(name)
    if known is None:
        return True
    trouble = known.trouble or (known.needs_trouble if known.needs else "")
    return trouble != "" and not trouble.startswith(("writes", "waits"))
