"""What an unknown program may start: any of its words may begin another command.

This serves ask and deny rules. Programs whose ways to run others are modelled (wrappers) are skipped here: the
commands that they run are in the syntax tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from signoff.policy.shell.file_patterns import is_wild
from signoff.policy.shell.line import Word
from signoff.policy.shell.literal import Arg
from signoff.policy.shell.simple_command import Concern, ReadOnlyCommand, judge_words
from signoff.policy.shell.syntax_tree import Tree, parse_tree
from signoff.policy.shell.table import is_own_file, program
from signoff.policy.shell.wrappers import hand_on, has_settings, is_modelled

Words = tuple[str | None, ...]

_INSIDE = re.compile(r"[=:({\[\"'`|&;!,]")
"""What may come before a command in a text in the program's own syntax: `commands=rm x`, `start:execute(rm x)`."""
MOST_WORDS = 64
"""How many words are tried as the start of a command; a line with more is assumed to list things."""
_COPIES = frozenset(
    """
    cp gcp ln gln link install ginstall mv gmv dd gdd rsync scp ditto cat tee hash alias symlink tar
    gtar bsdtar cpio pax zip 7z
    """.split()
)
"""Programs that give another file, or another name, to what their words name."""
_BRACES = re.compile(r"[{},]")
_PROGRAMS = re.compile(r"(?:\A|/)(?:s?bin|libexec|git-core)\Z")


def may_start(argv: Sequence[str | None]) -> Iterator[Words]:
    """Yield the commands that this one may run, as far as is known."""
    if not argv or argv[0] is None:
        return
    name, rest = argv[0].rpartition("/")[2], tuple(argv[1 : MOST_WORDS + 1])
    if has_settings(name):
        for word in rest:
            yield from (command.words for command in parse_tree((word or "").partition("=")[2]).commands)
    if not _may_run(argv[0], argv):
        return
    for at, word in enumerate(rest):
        if word is None:
            continue
        yield rest[at:]
        value = word.partition("=")[2] if word.startswith("-") else word
        if value and (value != word or " " in value):
            yield from (command.words for command in parse_tree(value).commands)
        if value:
            yield from (tuple(piece.split()) for piece in _INSIDE.split(value)[1 : MOST_WORDS + 1] if piece.strip())
            yield from [tuple(filter(None, value.split(",")))] if "," in value.strip(",") else []


def copied(argv: Sequence[str | None]) -> Iterator[str]:
    """Yield the files that this command copies or links to, which may be programs: later they run as another name.

    What else reads a program writes it somewhere, too: `head -c 9999999 /bin/rm > x`.
    """
    if not argv or argv[0] is None or hand_on(tuple(map(Arg, argv))).inner:
        return
    copies = argv[0].rpartition("/")[2] in _COPIES
    judged = None if copies else judge_words([Word(word) for word in argv if word is not None])
    for word in judged.paths if isinstance(judged, ReadOnlyCommand) else argv[1:]:
        source = (word or "").rpartition("=")[2]
        if source and (_is_program(source) or (copies and not source.startswith("-") and not is_wild(source))):
            yield source
            yield from filter(None, _BRACES.split(source.rpartition("/")[2]) if "{" in source else ())


def read_programs(tree: Tree) -> Iterator[str]:
    """Yield the programs that are the input of a command."""
    yield from (source for source in tree.reads if _is_program(source))


def _is_program(path: str) -> bool:
    """Whether a file, or what a pattern stands for, is in a directory of programs."""
    return _PROGRAMS.search(path.rpartition("/")[0]) is not None


def fed(program: str | None, stdin: str, depth: int = 3) -> Iterator[Words]:
    """Yield the commands in the input of a program that signoff does not know: it may be a shell."""
    if not stdin or not depth or not (program is None or _may_run(program)):
        return
    for command in parse_tree(stdin).commands:
        yield command.words
        yield from may_start(command.words)
        yield from fed(command.words[0] if command.words else None, command.stdin, depth - 1)


def _may_run(path: str, argv: Sequence[str | None] = ()) -> bool:
    if is_modelled(path):
        return False
    known = program(path.rpartition("/")[2]) if not is_own_file(path) else None
    if known is None:
        return True
    trouble = known.trouble or (known.needs_trouble if known.needs else "")
    if not trouble and argv:  # an option that is not known may name a program
        judged = judge_words([Word(word) for word in argv if word is not None])
        trouble = judged.effect if isinstance(judged, Concern) else ""
    return trouble != "" and not trouble.startswith(("writes", "waits"))
