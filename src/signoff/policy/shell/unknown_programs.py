"""What a program may start that is not known well enough to tell: any of its words may begin another command.

This serves rules that ask or deny. Programs whose ways of running others are modelled are not looked at here: what they
run is among the commands of the tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from signoff.policy.shell.syntax_tree import parse_tree
from signoff.policy.shell.table import program
from signoff.policy.shell.wrappers import is_modelled

Words = tuple[str | None, ...]

_INSIDE = re.compile(r"[=:({\[\"'`|&;!,]")
"""What may stand before a command in a text of the program's own: `commands=rm x`, `start:execute(rm x)`."""
MOST_WORDS = 64
"""How many words are taken for the start of a command; a line with more is taken to be one that lists things."""


def may_start(argv: Sequence[str | None]) -> Iterator[Words]:
    """The commands that this one may run, for all that is known about it."""
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


def _may_run(name: str) -> bool:
    if is_modelled(name):
        return False
    known = program(name)
    if known is None:
        return True
    trouble = known.trouble or (known.needs_trouble if known.needs else "")
    return trouble != "" and not trouble.startswith(("writes", "waits"))
