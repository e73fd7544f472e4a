"""Find the command lines that a project's own files run as tests and checks: scripts of package.json, environments of
tox, recipes of make, and steps of workflows.

Each simple command of such a line is a pattern of exactly its words. What changes more than reports is left out.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml

from signoff.policy.shell.command_facts import read_shell
from signoff.policy.shell.further_words import uncovered
from signoff.policy.shell.line import Simple, Unknown, Word
from signoff.policy.shell.patterns import BadCommand, CommandPattern
from signoff.policy.shell.simple_command import Concern, ReadOnlyCommand, judge_words
from signoff.policy.shell.table import named_programs
from signoff.policy.shell.working_directories import is_cd

_LONGEST = 200
_MOST_FILES = 30
_MOST_LINES = 1_000
_LARGEST_WORKFLOW = 100_000
_RUNNERS = frozenset({("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("pipenv", "run"), ("bundle", "exec")})
"""They run a program of the project's environment."""
_ANYTHING = frozenset(
    """node nodejs bash sh zsh dash ksh fish python python3 python2 ruby perl php deno npx bunx uvx pipx env sudo eval
    exec source xargs time nice timeout ts-node tsx babel-node make grunt gulp webpack rollup esbuild busybox script
    unshare setsid watch entr parallel flock chroot signoff claude codex gemini aider opencode copilot""".split()
)
"""They run whatever they are given, a file, code, a build, or decide about calls."""
_PROGRAM = re.compile(r"[A-Za-z][\w.@+-]*", re.ASCII)
_NOT_TEXT = frozenset("y n yes no on off true false null".split())
"""What YAML takes for something else."""
_INSTALLS = re.compile(r"\binstall|\bnpm (?:i|ci)\b|--pre\b|\bup(?:load|date|grade)")
_POSARGS = re.compile(r"\{posargs(?::([^{}]*))?\}")
_FACTOR = re.compile(r"[\w,!.-]+:\s+")
_RULE = re.compile(r"([A-Za-z0-9][\w.-]*(?:[ \t]+[A-Za-z0-9][\w.-]*)*)[ \t]*::?(?!=)", re.ASCII)


class Named(NamedTuple):
    """What a script, an environment or a target runs."""

    name: str
    lines: Sequence[str]


class KnownChecks(NamedTuple):
    """What is known to test or check without changing files."""

    begins: frozenset[tuple[str, ...]]
    """The first words of such commands."""
    changes: re.Pattern[str]
    """What stands in a line that does more."""
    is_check: Callable[[str], bool]
    """Whether a script of this name is there, and is one."""

    def only(self, lines: Iterable[str]) -> bool:
        """Whether there are lines, and each of their commands only reads or is known to be a check."""
        found = [command for line in lines for command in self._commands(line) or [None]]
        return bool(found) and all(
            command is not None and (not command or self._is_known(command, trusted=True)) for command in found
        )

    def among(self, lines: Sequence[str], *, trusted: bool) -> Iterator[str]:
        """Yield the checks in these lines, as patterns.

        Are they `trusted` to test or check, as a whole, a check may have any options, and a line that is the only one
        and a single command may be any. Otherwise a check has those that a final `*` covers.
        """
        programs = frozenset(begin[0] for begin in self.begins)
        for line in islice(lines, _MOST_LINES):
            commands = self._commands(line)
            alone = trusted and len(lines) == 1 and len(commands) == 1
            for words in commands:
                if not words or not (pattern := _pattern(words)):
                    continue
                if self._is_known(words, trusted=trusted) or (alone and _runs_tests(words, programs)):
                    yield pattern

    def _commands(self, line: str) -> list[Sequence[str] | None]:
        """Return the words of each command, empty for one that only reads, None if they are not all known. Nothing at
        all if the line changes more than reports, or the directory.
        """
        facts = read_shell(line)
        if facts.line is None or self.changes.search(line) or _INSTALLS.search(line):
            return []
        if any(map(is_cd, facts.line.commands)):
            return []
        found = zip(facts.line.commands, facts.judged, strict=True)
        return [() if isinstance(judged, ReadOnlyCommand) else _literal(simple) for simple, judged in found]

    def _is_known(self, words: Sequence[str], *, trusted: bool) -> bool:
        if not trusted and words[0] == "cross-env":
            return False
        words = _run(words)
        if len(words) == 3 and words[0] in ("npm", "yarn", "pnpm") and words[1] == "run":
            return self.is_check(words[2])
        found = (len(begin) for begin in self.begins if tuple(words[: len(begin)]) == begin)
        return any(trusted or not uncovered(words, fixed) for fixed in found)


def _run(words: Sequence[str]) -> Sequence[str]:
    """Return the words of the command that is run in the project's environment, or with other variables."""
    if tuple(words[:2]) in _RUNNERS:
        return words[2:]
    if words[:1] == ["cross-env"]:
        return words[next((at for at, word in enumerate(words) if at and "=" not in word), len(words)) :]
    return words


def _runs_tests(words: Sequence[str], checks: frozenset[str]) -> bool:
    """Whether a command may be one that tests: it runs one of `checks`, or a program of which nothing else is known, by
    its name, and not a file, code in its words, or what it downloads first.
    """
    words = _run(words)
    if not words or words[0].startswith("-") or "/" in words[0] or "dlx" in words[1:2]:
        return False
    judged = judge_words([Word(word) for word in words])
    if not isinstance(judged, Concern) or judged.effect not in ("runs", "unknown"):
        return False
    if words[0].startswith("python"):
        return "-m" in words and "-c" not in words
    return words[0] not in _ANYTHING and (words[0] in checks or words[0] not in named_programs())


def _literal(simple: Simple) -> Sequence[str] | None:
    """Return the words of a command; None if they are not all known."""
    if any(word.glob or word.tilde or word.unknown is not Unknown.NOT for word in simple.words):
        return None
    return [word.text for word in simple.words]


def _pattern(words: Sequence[str]) -> str:
    """Return the pattern of exactly these words; "" if there is none, or none that is easily read."""
    text = shlex.join(words)
    if len(text) > _LONGEST or any(odd in text for odd in ('"', ", ", "$", "{")):
        return ""
    if not (text.isascii() and text.isprintable()) or not _PROGRAM.fullmatch(words[0]) or text.lower() in _NOT_TEXT:
        return ""
    try:
        pattern = CommandPattern(text)
    except (BadCommand, ValueError):
        return ""
    return text if not pattern.open and [one.literal for one in pattern.words] == list(words) else ""


def recipes(text: str) -> Iterator[Named]:
    """Yield what the targets of a Makefile run. A recipe with a variable of make counts as unknown."""
    names: Sequence[str] = ()
    lines: list[str] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("\t"):
            lines.append("$" if "$" in line else line.strip().lstrip("@-+ "))
        elif rule := _RULE.match(line):
            yield from (Named(name, lines) for name in names)
            names, lines = rule[1].split(), []
    yield from (Named(name, lines) for name in names)


def tox_commands(text: str) -> list[str]:
    """Return the commands of an environment in tox.ini as they run without further words."""
    lines = text.replace("\\\n", " ").splitlines()
    filled = (_POSARGS.sub(lambda found: found[1] or "", line.strip()) for line in lines)
    return [_FACTOR.sub("", line, count=1).lstrip("-! ").strip() for line in filled if line and line[0] not in "#;"]


def tox_words(commands: object) -> list[str]:
    """Return the commands of an environment in a TOML file of tox as they run without further words."""
    found: list[str] = []
    for command in cast("list[object]", commands) if isinstance(commands, list) else ():
        words = cast("list[object]", command) if isinstance(command, list) else ["$"]
        found.append(shlex.join(str(word) for word in words if _get(word, "replace") != "posargs"))
    return found


def workflow_lines(directory: Path, read: Callable[[Path], str]) -> Iterator[str]:
    """Yield the lines that the steps of workflows run, but for those that are filled in there."""
    files = sorted((directory / ".github" / "workflows").glob("*.y*ml"))[:_MOST_FILES]
    for file in files:
        text = read(file)
        try:
            known: Any = yaml.safe_load(text) if len(text) <= _LARGEST_WORKFLOW else None
        except (yaml.YAMLError, ValueError, RecursionError):
            continue
        for step in _steps(known):
            yield from (line.strip() for line in step.replace("\\\n", " ").splitlines() if "${{" not in line)


def _steps(known: object) -> Iterator[str]:
    for job in _values(_get(known, "jobs")):
        steps = _get(job, "steps")
        for step in cast("list[object]", steps) if isinstance(steps, list) else ():
            if isinstance(run := _get(step, "run"), str):
                yield run


def _get(table: object, key: str) -> object:
    return cast("Mapping[str, object]", table).get(key) if isinstance(table, dict) else None


def _values(table: object) -> Iterable[object]:
    return cast("Mapping[str, object]", table).values() if isinstance(table, dict) else ()
