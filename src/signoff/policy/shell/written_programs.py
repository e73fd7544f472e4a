"""Programs that a line writes and then runs: to the parser, their commands are only data.

This serves ask and deny rules. Where a program only comes from the disk, nothing here is in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from posixpath import basename, normpath

from signoff.policy.phrases import shown
from signoff.policy.places import runs_later
from signoff.policy.shell.line import Word
from signoff.policy.shell.simple_command import Concern, judge_words
from signoff.policy.shell.syntax_tree import Command, Tree
from signoff.policy.shell.table import PATH, program

_FROM_DISK = frozenset(
    """
    mkdir rmdir touch rm unlink shred truncate fallocate mkfifo chmod chown chgrp git hg svn tar gtar bsdtar cpio zip
    unzip gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd
""".split()
)
"""Programs that write, but nothing that the line says or that they download."""
_COPIERS = frozenset("cp gcp mv gmv ln gln link install ginstall rsync".split())
_STREAM = re.compile(r"-\Z|/dev/(?:stdin|fd/\d+)\Z|/proc/[^/]+/fd/\d+\Z")
_DATA = re.compile(r"(?i).*\.(?:txt|md|rst|log|json|jsonl|csv|tsv|xml|html?|ya?ml|out|err|diff|patch|png|jpg|svg|pdf)")
"""Names of files that a program which is given them as a further word reads as data."""
_CODE = re.compile(
    r"(?i).*\.(?:py|pyi|ipynb|[cm]?[jt]sx?|vue|svelte|sh|bash|zsh|rb|pl|pm|php|lua|go|rs|c|cc|cpp|cxx|h|hh|hpp|m|mm"
    r"|java|kt|scala|groovy|clj|ex|exs|erl|hs|ml|swift|cs|fs|r|jl|dart|zig|nim|sql|s|asm)"
)
"""Names of files that a build or a test run finds by itself."""
_FOLLOWED = re.compile(r"(?i)(?:\A|/)\.?(?:git|hg|svn|ssh|husky)")
"""Files that version control and ssh follow, whatever they are told to do."""
_PART = re.compile(r"[=:,@]+")
_CODE_PART = re.compile(r"[=:,@;\s'\"(){}<>|&]+")


def runs_written(tree: Tree) -> str:
    """Return why a line may run what it writes itself, for a person; "" if it does not."""
    targets = {normpath(target) for target in tree.writes if target not in ("/dev/null", "?")}
    found = {basename(target) for target in targets} - {""}
    found.update(name for command in tree.commands for name in _written(command))
    if not found:
        return ""
    for command in tree.commands:
        names = set(_names(command.words[1:]))
        if _name(command) in _COPIERS and names & found:
            found |= names
    wrappers = {via.partition(" ")[0] for command in tree.commands for via in command.via if via[-3:] != " -m"}
    runner = _Interpreter(found, next((one for one in sorted(targets | found) if runs_later(one)), ""))
    return next((why for command in tree.commands if (why := runner.why(command, _name(command) in wrappers))), "")


def _name(command: Command) -> str:
    return basename(command.words[0] or "") if command.words else ""


def _written(command: Command) -> Iterator[str]:
    """Yield the names of the files that a command may write with content from the line or the network."""
    name, words = _name(command), command.words[1:]
    if name in _COPIERS:
        if any(word is None or _STREAM.match(word) for word in words):
            yield from _names(words)
    elif name and name not in _FROM_DISK and program(name) is not None and _effect(command) in ("writes", "sends"):
        yield from _names(words, _CODE_PART)


def _names(words: Iterable[str | None], parts: re.Pattern[str] = _PART) -> Iterator[str]:
    """Yield the last step of all that may be a path in these words."""
    for word in words:
        for part in (word, *parts.split(word), word[2:] if word[:1] == "-" else "") if word else ():
            if (name := basename(part.rstrip("/"))) not in ("", ".", ".."):
                yield name


def _effect(command: Command) -> str:
    judged = judge_words([Word(word) for word in command.words if word is not None])
    return judged.effect if isinstance(judged, Concern) else ""


class _Interpreter:
    """Finds what runs the files of these names."""

    def __init__(self, found: Set[str], later: str) -> None:
        self.found = found
        self.modules = {name.rpartition(".")[0] for name in found if _CODE.fullmatch(name)}
        self.later = later
        """A written file that something runs by itself."""

    def why(self, command: Command, hands_on: bool) -> str:
        """Return why a command may run one of the files; "" if it does not."""
        first = command.words[0] if command.words else None
        if first is None:
            return ""
        directory, _, name = first.rpartition("/")
        if name in self.found and (directory not in ("", *PATH) or program(name) is None):
            return f"{shown(first)} runs what the line itself writes"
        if name in ("git", "hg", "svn", "ssh") and self.later and _FOLLOWED.search(self.later):
            return f"{shown(name)} may run what {shown(self.later)} names, which the line itself writes"
        effect = _effect(command)
        if hands_on or effect not in ("runs", "unknown") or name in _FROM_DISK or name in _COPIERS:
            return ""
        used = self._named(command.words[1:])
        if not used and (effect == "runs" or self.later or program(name) is not None):
            used = self.later or next((one for one in sorted(self.found) if _CODE.fullmatch(one)), "")
        return f"{shown(name)} may run {shown(used)}, which the line itself writes" if used else ""

    def _named(self, words: Sequence[str | None]) -> str:
        """Return the file that these words name to a program; "" if there is none, or only data."""
        operands = [word for word in words if word is not None and not word.startswith("-")]
        for word in words:
            for one in _names((word,)):
                script = operands[:1] == [word] or not _DATA.fullmatch(one)
                if (one in self.found and script) or one in self.modules:
                    return one
        return ""
