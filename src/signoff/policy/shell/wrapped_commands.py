"""Commands behind wrappers that change nothing about what they do, as in `timeout 5 ls`: only the command is judged.

Behind `xargs` it gets further words, which are not known: those of its input. Where that is what `find` prints, they
are files below the directories that `find` starts in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from signoff.policy.shell.languages.find import FindResult, read_find
from signoff.policy.shell.line import CommandLine, Simple, Unknown, Word
from signoff.policy.shell.literal import HOLE
from signoff.policy.shell.literal_words import is_keyword
from signoff.policy.shell.simple_command import TAKE_FILES
from signoff.policy.shell.table import PATH
from signoff.policy.shell.wrappers import changes_nothing

_OF_THE_SHELL = frozenset({"cd", "pushd", "popd", "exit"})
"""What only some shells do when it is wrapped: where `time` is a keyword."""
_FLAG = re.compile(
    r"-(?:[0rtx]+|[nLPs][0-9]{1,6})|--null|--no-run-if-empty|--verbose|--exit|--max-(?:args|procs)=[0-9]{1,6}"
)
"""Options of `xargs` that change nothing about what a word of its input may be."""
_VALUED = frozenset({"-n", "-L", "-P", "-s", "-d", "--max-args", "--max-procs", "--delimiter"})
_EACH = "is run for each item of an input"


def seen_through(line: CommandLine) -> CommandLine:
    """Return the line with such wrappers in `Simple.before`."""
    if not any(changes_nothing(command.argv) or _is_xargs(command) for command in line.commands):
        return line
    pipelines = tuple(one._replace(stages=tuple(_stages(one.stages))) for one in line.pipelines)
    each = any(command.typed for pipeline in pipelines for command in pipeline.stages)
    return line._replace(pipelines=pipelines, inexact=line.inexact or (_EACH if each else ""))


def _stages(stages: Sequence[Simple]) -> Iterator[Simple]:
    before: Simple | None = None
    for stage in stages:
        command = _unwrapped(stage)
        if _is_xargs(command) and (given := _given(command, before)) is not None:
            inner = _unwrapped(command._replace(words=given, before=()))
            command = inner._replace(before=(), typed=stage.whole.words)
        yield command
        before = stage


def _unwrapped(command: Simple) -> Simple:
    words = command.words
    while at := changes_nothing([word.text for word in words]):
        directory, slash, _ = words[0].text.rpartition("/")
        if (slash and directory not in PATH) or not all(map(_is_plain, words[: at + 1])) or not _is_run(words[at]):
            return command
        words = words[at:]
        command = command._replace(words=words, before=(*command.before, *command.words[:at]))
    return command


def _is_run(word: Word) -> bool:
    """Whether a word behind a wrapper is a program that is run, and nothing that only a shell knows."""
    text = word.text
    if text in _OF_THE_SHELL or is_keyword(text) or "=" in text or text.startswith(("-", "%", "+")):
        return False
    return bool(text) and _is_plain(word)


def _is_plain(word: Word) -> bool:
    return not (word.glob or word.tilde) and word.unknown is Unknown.NOT


def _is_xargs(command: Simple) -> bool:
    return command.words[0].text in ("xargs", "/usr/bin/xargs") and _is_plain(command.words[0])


def _given(command: Simple, before: Simple | None) -> tuple[Word, ...] | None:
    """Return the words that `xargs` runs, with those that its input gives; None if that is not understood."""
    words, at, place, null = command.words, 1, "", False
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        value = words[at + 1].text if at + 1 < len(words) else ""
        if not _is_plain(words[at]):
            return None
        if _FLAG.fullmatch(text):
            null = null or text in ("-0", "--null") or (text[1] != "-" and "0" in text and text[1] in "0rtx")
            at += 1
        elif text in _VALUED and value and not value.startswith("-") and _is_plain(words[at + 1]):
            null = null and text not in ("-d", "--delimiter")  # of both, the last one counts
            at += 2
        elif text == "-I" and re.fullmatch(r"\{\}|[%@_]|[A-Z]+", value) and _is_plain(words[at + 1]):
            place, at = value, at + 2
        elif text == "-I{}":
            place, at = "{}", at + 1
        else:
            return None
    rest = words[at:] or (Word("echo"),)
    if not _is_run(rest[0]) or (place and place in rest[0].text):
        return None
    if place:
        return tuple(_filled(word, place) for word in rest)
    only = null and not command.fed and not any(redirect.source for redirect in command.redirects)
    looks = _printed(before) if only else None
    if looks is not None and rest[0].text in TAKE_FILES and not any("{}" in word.text for word in rest):
        return (Word("find"), *looks, Word("-exec"), *rest, Word("{}"), Word("+"))
    return (*rest, Word(HOLE, unknown=Unknown.ANY))


def _filled(word: Word, place: str) -> Word:
    """Return a word of a command with something unknown in place of what `-I` names."""
    if place not in word.text:
        return word
    return Word(word.text.replace(place, HOLE), unknown=Unknown.ANY if word.glob or word.tilde else Unknown.ONE)


def _printed(before: Simple | None) -> tuple[Word, ...] | None:
    """Return how a `find` looks that prints what it finds, with a NUL behind each; None if it is no such command."""
    if before is None or before.words[0].text != "find" or before.words[-1].text != "-print0":
        return None
    others = before.words[1:-1]
    if any(word.text.startswith(("-print", "-exec", "-ls")) or word.unknown is not Unknown.NOT for word in others):
        return None
    if any(redirect.onto is not None for redirect in before.redirects):
        return None  # messages would be taken for names
    found = read_find(before.words[1:])
    return others if isinstance(found, FindResult) else None
