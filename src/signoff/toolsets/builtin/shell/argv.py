"""Run a command line that was allowed without approval: the judged words as arguments, without a shell.

Pipes, `&&`, `||`, `;`, redirects, `~` and globs are done here as bash does them. If something is not as it was judged
(a glob that matches a secret, a symlink that leads to one), the run ends: see `CommandResult.doubt`.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import takewhile
from types import MappingProxyType
from typing import NamedTuple

from signoff.disk_steps import DiskSteps
from signoff.found_files import expand
from signoff.policy.secret import secret_place
from signoff.policy.shell.file_patterns import escaped
from signoff.policy.shell.line import CommandLine, Join, Pipeline, Redirect, Simple, Word
from signoff.policy.step_count import Unclear
from signoff.toolsets.builtin.shell.builtins import BUILTINS, BuiltinResult, Directories, run_builtin
from signoff.toolsets.builtin.shell.environment import (
    approved_environment,
    bare_environment,
    find_program,
    find_trusted,
    home_directory,
)
from signoff.toolsets.builtin.shell.sandbox import Sandbox
from signoff.toolsets.builtin.shell.subprocesses import (
    USUAL,
    CallProcesses,
    CommandResult,
    ProcessLimits,
    ended,
    in_thread,
)

_MOST_SAID = 60_000
"""Most bytes that a shell builtin may print. It is less than a pipe buffer, so that writing never blocks."""
_DEVICES = frozenset({(1, 3), (1, 5), (1, 8), (1, 9)})  # null, zero, random, urandom on Linux
_DEVICE_NAMES = frozenset({"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"})


class Step(NamedTuple):
    """How one command of a line is run, beyond its words."""

    environment: Mapping[str, str] = MappingProxyType({})
    adds: tuple[str, ...] = ()
    """Words to insert."""
    at: int = 1
    """The number of words before them."""
    trusted: bool = False
    """Whether a rule of the user allows the command. It is then found in the user's PATH and gets their environment."""
    directories: frozenset[str] = frozenset()
    """Real paths of the directories that it was judged in; empty for any."""


async def run_line(
    line: CommandLine,
    *,
    root: str,
    cwd: str = "",
    limits: ProcessLimits = USUAL,
    steps: Sequence[Step] = (),
    sandbox: Sandbox | None = None,
    programs: tuple[str, ...] = (),
    sealed: Sequence[str] = (),
) -> CommandResult:
    """Run a line in the directory `cwd`, by default `root`. `steps` belong to `line.commands`, in order.

    Trusted commands are looked up in `programs` before the user's own PATH. In a sandbox, nothing can write to the
    directories in `sealed`.
    """
    plan = tuple(steps) or (Step(),) * len(line.commands)
    if len(plan) != len(line.commands):
        raise ValueError(f"{len(line.commands)} commands, but {len(plan)} steps")

    def work(call: CallProcesses) -> tuple[int, str]:
        return _Runner(call, cwd or root, sandbox, programs, sealed).run(line, plan)

    def finish(call: CallProcesses, made: tuple[int, str]) -> CommandResult:
        return call.outcome(*made)

    return await in_thread(limits, work, finish)


def path_doubt(path: str, directory: str, start: str, *, written: bool = False) -> str:
    """Why a word must not be read without approval if it is a path: it leads to a secret. Empty if it may be read.

    A path that is `written` in the line has already been judged as text, so only its symlinks are checked. Paths below
    `start`, where the line begins, are judged relative to it: the path to `start` does not matter.
    """
    absolute = os.path.normpath(os.path.join(directory, path))
    if not written and (why := secret_place(_below(start, absolute))):
        return f"{path} {why}"
    try:
        leads = os.path.realpath(os.path.join(directory, path))  # `..` after a symlink leads elsewhere than written
    except (OSError, ValueError):
        return f"{path} cannot be followed"
    if leads != absolute and (why := secret_place(_below(os.path.realpath(start), leads))):
        return f"{path} leads to {leads}, which {why}"
    return ""


def _below(start: str, path: str) -> str:
    """A path as the list of secret places has it: relative to the start, to the home directory, or absolute."""
    for directory, short in ((start, ""), (home_directory(), "~/")):
        if directory != "/" and path.startswith(f"{directory}/"):
            return short + os.path.relpath(path, directory)
    return path


class Expander:
    """Expands the words of a command into the arguments of its program."""

    def __init__(
        self,
        directory: str,
        start: str,
        *,
        most: int = 10_000,
        stop: Callable[[], bool] = lambda: False,
        count: DiskSteps | None = None,
    ) -> None:
        self._directory = directory
        self._start = start
        self._most = most
        self._stop = stop
        self._count = count or DiskSteps()

    def argv(self, words: Sequence[Word]) -> list[str]:
        """Expand all words. Raises `Unclear` if one of them becomes something that was not judged."""
        if words[0].glob or words[0].tilde:
            raise Unclear(f"`{words[0].text}` is not a plain program name")
        found = [words[0].text]
        for word in words[1:]:
            found.extend(self.word(word))
            if len(found) > self._most + len(words):
                raise Unclear(f"`{word.text}` matches more than {self._most:,} files")
        return found

    def word(self, word: Word) -> list[str]:
        """Expand one word: itself, or the files that its glob matches."""
        home = home_directory() if word.tilde else ""
        text = home + word.text[1:] if word.tilde else word.text
        if not word.glob:
            self._check(word, text, written=True)
            return [text]
        pattern = escaped(home) + word.glob[1:] if word.tilde else word.glob
        try:
            files = expand(pattern, self._directory, most=self._most, stop=self._stop, count=self._count)
        except Unclear as unclear:
            raise Unclear(f"`{word.text}` {unclear}") from None
        for file in files:
            if file.startswith("-"):
                raise Unclear(f"`{word.text}` matches {file!r}, which a program takes for an option")
            self._check(word, file, written=False)
        return files or [text]

    def _check(self, word: Word, text: str, *, written: bool) -> None:
        options = text.startswith("-") and "=" in text
        path = text.partition("=")[2] if options else text
        if why := path_doubt(path, self._directory, self._start, written=written):
            raise Unclear(f"`{word.text}`: {why}")


class _Trouble(Exception):
    """A command cannot be started; the message goes to its standard error."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


class _Runner:
    """Runs one line."""

    def __init__(
        self,
        call: CallProcesses,
        directory: str,
        sandbox: Sandbox | None,
        programs: tuple[str, ...],
        sealed: Sequence[str],
    ) -> None:
        self._call = call
        self._start_directory = directory
        self._directories = Directories(directory, programs=programs)
        self._sandbox = sandbox
        self._sealed = sealed

    def run(self, line: CommandLine, steps: Sequence[Step]) -> tuple[int, str]:
        """Return the exit status, and why the rest was not run."""
        code, at = 0, 0
        for pipeline in line.pipelines:
            mine = steps[at : at + len(pipeline.stages)]
            at += len(pipeline.stages)
            if (pipeline.join is Join.AND and code) or (pipeline.join is Join.OR and not code):
                continue
            self._call.drain()
            if self._call.over():
                return 124, ""
            if len(pipeline.stages) == 1 and (said := pipeline.stages[0].argv)[0] == "exit":
                return (int(said[1]) & 255 if said[1:] else code), ""
            try:
                code = self._pipeline(pipeline, mine)
            except Unclear as unclear:
                return 126, str(unclear)
        return code, ""

    def _pipeline(self, pipeline: Pipeline, steps: Sequence[Step]) -> int:
        """Start all commands of a pipeline, each reading from the one before. Returns the exit status of the last."""
        limits, now = self._call.limits, self._directories.now
        expander = Expander(now, self._start_directory, most=limits.matches, stop=self._call.over)
        ready = [_argv(expander, stage, step) for stage, step in zip(pipeline.stages, steps, strict=True)]
        started: list[subprocess.Popen[bytes] | int] = []
        with ExitStack() as last_reader:
            reads: int | None = None
            for number, (stage, step) in enumerate(zip(pipeline.stages, steps, strict=True)):
                with ExitStack() as files:  # close our own ends at once, or a reader would never see the end of file
                    files.push(last_reader.pop_all())
                    stdin, stdout = reads, self._call.out
                    if number + 1 < len(pipeline.stages):
                        reads, stdout = os.pipe()
                        last_reader.callback(os.close, reads)
                        files.callback(os.close, stdout)
                    streams = {0: _opened(os.devnull, files) if stdin is None else stdin, 1: stdout, 2: self._call.err}
                    try:
                        self._redirect(streams, stage.redirects, expander, files)
                        wrapped = [word.text for word in stage.before]
                        started.append(self._start(ready[number], wrapped, step, streams, alone=len(ready) == 1))
                    except _Trouble as trouble:  # reported on the command's own standard error
                        self._print(BuiltinResult(err=f"signoff: {trouble}\n"), streams)
                        started.append(trouble.code)
        if not self._call.wait([one for one in started if isinstance(one, subprocess.Popen)]):
            return 124
        last = started[-1]
        return last if isinstance(last, int) else ended(last) or 0

    def _redirect(
        self, streams: dict[int, int], redirects: Sequence[Redirect], expander: Expander, files: ExitStack
    ) -> None:
        """Apply the redirects of a command to its streams, in order."""
        for redirect in redirects:
            if redirect.onto is not None:
                if redirect.onto not in streams:
                    raise _Trouble(f"{redirect.onto}: Bad file descriptor")
                streams[redirect.fd] = streams[redirect.onto]
            elif redirect.source is None:
                streams[redirect.fd] = _opened(os.devnull, files, os.O_RDWR)
            else:
                found = expander.word(redirect.source)
                if len(found) != 1:
                    raise _Trouble(f"{redirect.source.text}: ambiguous redirect")
                streams[redirect.fd] = _opened(os.path.join(self._directories.now, found[0]), files)

    def _start(
        self, argv: list[str], wrapped: list[str], step: Step, streams: Mapping[int, int], *, alone: bool
    ) -> subprocess.Popen[bytes] | int:
        """Start a program, or run a shell builtin. `wrapped` stands before it: variables, and programs that run it."""
        argv = unwrapped(argv)
        variables = {name: value for name, _, value in (one.partition("=") for one in takewhile(_assigns, wrapped))}
        wrapped = wrapped[len(variables) :]
        if argv[0] in BUILTINS and not wrapped:
            said = run_builtin(argv, self._directories if alone else replace(self._directories))
            self._print(said, streams)
            return said.code
        directory, programs = self._directories.now, self._directories.programs
        if step.directories and (real := os.path.realpath(directory)) not in step.directories:
            raise Unclear(f"`{argv[0]}`: {directory} now leads to {real}")
        found = (
            find_trusted(argv[0], self._start_directory, directory, programs) if step.trusted else find_program(argv[0])
        )
        if not found.path:
            raise _Trouble(f"{argv[0]}: {found.why}", 127)
        if wrapped:
            wrapper = find_program(wrapped[0])
            if not wrapper.path:
                raise _Trouble(f"{wrapped[0]}: {wrapper.why}", 127)
            argv, found = [*wrapped, found.name if self._sandbox else found.path, *argv[1:]], wrapper
        sandbox = self._sandbox
        inside = sandbox is not None
        words = (
            argv
            if sandbox is None
            else [*sandbox.words(directory, writable=step.trusted, sealed=self._sealed), found.name, *argv[1:]]
        )
        try:
            return self._call.spawn(
                words,
                program="" if inside else found.path,
                directory=directory,
                environment={**_environment(step, directory, programs), **variables},
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
            )
        except OSError as error:
            raise _Trouble(f"{argv[0]}: {error.strerror}", 126) from None
        except ValueError as error:
            raise Unclear(f"`{argv[0]}`: {error}") from None

    def _print(self, said: BuiltinResult, streams: Mapping[int, int]) -> None:
        """Write the output of a builtin to its streams."""
        self._call.drain()
        for fd, text in ((1, said.out), (2, said.err)):
            data = os.fsencode(text)
            if len(data) > _MOST_SAID:
                raise Unclear("a command prints too much")
            if data:
                os.write(streams[fd], data)


def _environment(step: Step, directory: str, programs: tuple[str, ...]) -> dict[str, str]:
    if step.trusted:
        return {**approved_environment(os.environ, programs=programs), "PWD": directory}
    return bare_environment(step.environment, directory=directory)


def unwrapped(argv: Sequence[str]) -> list[str]:
    """The words of the command that `command NAME …` runs."""
    argv = list(argv)
    while argv[0] == "command" and len(argv) > 1 and not argv[1].startswith("-"):
        argv = argv[1:]
    return argv


def _assigns(word: str) -> bool:
    return word.partition("=")[0].isidentifier() and "=" in word


def _argv(expander: Expander, stage: Simple, step: Step) -> list[str]:
    argv = expander.argv(stage.words)
    if any(word.glob for word in stage.words[: step.at]):
        raise Unclear(f"`{stage.words[0].text}`: a pattern is in the place of its sub-command")
    return [*argv[: step.at], *step.adds, *argv[step.at :]]


def _opened(path: str, files: ExitStack, flags: int = os.O_RDONLY) -> int:
    """Open a regular file or a harmless device; never one that blocks its reader."""
    try:
        fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise _Trouble(f"{path}: {error.strerror if isinstance(error, OSError) else error}") from None
    files.callback(os.close, fd)
    found = os.fstat(fd)
    device = (os.major(found.st_rdev), os.minor(found.st_rdev)) in _DEVICES or os.path.realpath(path) in _DEVICE_NAMES
    if not (stat.S_ISREG(found.st_mode) or (stat.S_ISCHR(found.st_mode) and device)):
        raise _Trouble(f"{path}: not a plain file")
    os.set_blocking(fd, True)
    return fd
