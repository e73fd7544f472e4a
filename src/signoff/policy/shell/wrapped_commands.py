"""Commands behind wrappers that change nothing about what they do, as in `timeout 5 ls`: only the command is judged."""

from __future__ import annotations

from signoff.policy.shell.line import CommandLine, Simple, Unknown, Word
from signoff.policy.shell.literal_words import is_keyword
from signoff.policy.shell.simple_command import PATH
from signoff.policy.shell.wrappers import changes_nothing

_OF_THE_SHELL = frozenset({"cd", "pushd", "popd", "exit"})
"""What only some shells do when it is wrapped: where `time` is a keyword."""


def seen_through(line: CommandLine) -> CommandLine:
    """Return the line with such wrappers in `Simple.before`."""
    if not any(changes_nothing(command.argv) for command in line.commands):
        return line
    pipelines = tuple(one._replace(stages=tuple(map(_unwrapped, one.stages))) for one in line.pipelines)
    return line._replace(pipelines=pipelines)


def _unwrapped(command: Simple) -> Simple:
    words = command.words
    while at := changes_nothing([word.text for word in words]):
        directory, slash, _ = words[0].text.rpartition("/")
        first = words[at].text
        if (slash and directory not in PATH) or not all(map(_is_plain, words[: at + 1])) or first in _OF_THE_SHELL:
            return command
        if is_keyword(first) or "=" in first or first.startswith(("-", "%", "+")):
            return command
        words = words[at:]
        command = command._replace(words=words, before=(*command.before, *command.words[:at]))
    return command


def _is_plain(word: Word) -> bool:
    return not (word.glob or word.tilde) and word.unknown is Unknown.NOT
