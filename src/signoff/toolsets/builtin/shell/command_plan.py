"""Plan a command: run its words without approval, or ask.

It is judged by its text, and by the files and symlinks around it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from signoff.disk_steps import DiskSteps
from signoff.policy.match_result import in_one_line
from signoff.policy.shell.command_facts import read_shell
from signoff.policy.shell.common_files import KnownFiles
from signoff.policy.shell.line import CommandLine, Join, Pipeline, Simple, Word
from signoff.policy.shell.simple_command import Concern, ReadOnlyCommand, Where, judge_words
from signoff.policy.step_count import Unclear
from signoff.toolsets.builtin.shell.argv import Expander, Step, unwrapped
from signoff.toolsets.builtin.shell.builtins import Directories, run_builtin
from signoff.toolsets.builtin.shell.git_config import repository_runs
from signoff.toolsets.builtin.shell.secret_files import leads_to, secret_below

_MOST_DIRECTORIES = 8
_UNKNOWN = frozenset({"proc.exec"})


class CommandPlan(NamedTuple):
    """How a command is run."""

    line: CommandLine | None
    """The line that runs without approval; None if a person is asked."""
    steps: tuple[Step, ...] = ()
    why: str = ""
    """Why a person is asked, with the command and the word that decided."""
    labels: frozenset[str] = _UNKNOWN


def plan(command: str, root: str) -> CommandPlan:
    """Plan a command in the directory `root`, which is a real path. Never raises: doubt asks."""
    try:
        facts = read_shell(command)
        if facts.read_only and facts.paths:
            facts = read_shell(command, KnownFiles({path: leads_to(path, root) for path in facts.paths}))
        if facts.line is not None and facts.line.inexact and facts.read_only:
            return CommandPlan(None, why=f"the command {facts.line.inexact}", labels=facts.labels | _UNKNOWN)
        readings = [one for one in facts.judged if isinstance(one, ReadOnlyCommand)]
        if not facts.read_only or facts.line is None or len(readings) != len(facts.line.commands):
            return CommandPlan(None, why=facts.why or "the command is not known to only read", labels=facts.labels)
        if why := world_doubt(facts.line, readings, root):
            return CommandPlan(None, why=why, labels=facts.labels | _UNKNOWN)
        steps = tuple(Step(one.program.environment, one.program.adds, one.at) for one in readings)
        return CommandPlan(facts.line, steps, labels=facts.labels)
    except Exception as error:  # a mistake of ours asks
        return CommandPlan(None, why=f"the command could not be checked: {in_one_line(error)}")


def reading_doubt(command: str, root: str) -> str:
    """Why a line that does more than read is asked about whatever rules allow: because of what it reads. Never raises.

    A command that would be asked about alone is asked about beside others, too.
    """
    try:
        facts = read_shell(command)
        if facts.line is None or facts.line.inexact or facts.read_only:
            return ""
        return world_doubt(facts.line, facts.judged, root)
    except Exception as error:  # a mistake of ours asks
        return f"the command could not be checked: {in_one_line(error)}"


def world_doubt(line: CommandLine, judged: Sequence[ReadOnlyCommand | Concern], root: str) -> str:
    """Why the reading commands of a line do more than read, given the files around them; empty if they do not.

    Commands that are known to do more are left to rules.
    """
    directories: list[str] = [root]
    count = DiskSteps()
    known = iter(judged)
    try:
        for pipeline in line.pipelines:
            for stage in pipeline.stages:
                for directory in directories if isinstance(next(known), ReadOnlyCommand) else ():
                    if why := _stage_doubt(stage, directory, root, count):
                        return why
            reached = list(_after(pipeline, directories, root, count))  # each `cd` is followed once from each directory
            directories.extend(one for one in reached if one not in directories)
            if len(directories) > _MOST_DIRECTORIES:
                return "too many `cd` make it unclear where the line runs"
        deep = (one for one in _settled(line, judged, root, count) if isinstance(one, ReadOnlyCommand))
        return next((why for reading in deep if (why := secret_below(reading, root, count))), "")
    except Unclear as unclear:
        return str(unclear)


def _settled(
    line: CommandLine, wide: Sequence[ReadOnlyCommand | Concern], root: str, count: DiskSteps
) -> Sequence[ReadOnlyCommand | Concern]:
    """Judge the commands after a leading `cd` again, from the directory it leads to, because only that is read."""
    at, directory = 0, root
    for pipeline in line.pipelines:
        if pipeline.join is Join.OR or not (reached := list(_after(pipeline, [directory], root, count))):
            break
        if reached[0] == directory:
            return wide  # the `cd` failed, so what follows may not run
        at, directory = at + 1, reached[0]
    rest = line.commands[at:]
    if not at or any(command.words[0].text == "cd" for command in rest):
        return wide
    where = Where((os.path.relpath(directory, root) if directory.startswith(f"{root}/") else directory,))
    judged = [judge_words(command.words, where) for command in rest]
    return [one if isinstance(one, ReadOnlyCommand) else before for one, before in zip(judged, wide[at:], strict=True)]


def _stage_doubt(stage: Simple, directory: str, root: str, count: DiskSteps) -> str:
    expander = Expander(directory, root, count=count)
    argv = unwrapped(expander.argv(stage.words))
    for redirect in stage.redirects:
        if redirect.source is not None:
            expander.word(redirect.source)
    if os.path.basename(argv[0]) != "git":
        return ""
    for place in _repositories(argv, directory):
        if why := repository_runs(place):
            return f"`git` in a repository whose own configuration sets {why}, which may run programs"
    return ""


def _repositories(argv: Sequence[str], directory: str) -> Iterator[str]:
    """The directories from which git may look for its repository. `-C` can be given more than once."""
    yield directory
    for option, value in pairwise(argv):
        if option == "-C":
            directory = os.path.join(directory, value)
            yield directory


def _after(pipeline: Pipeline, directories: Sequence[str], root: str, count: DiskSteps) -> Iterator[str]:
    """Where a `cd` leads to, if it succeeds."""
    words: Sequence[Word] = pipeline.stages[0].words
    if len(pipeline.stages) > 1 or words[0].text != "cd":
        return
    for directory in directories:
        reached = Directories(directory, root)
        run_builtin(Expander(directory, root, count=count).argv(words), reached)
        yield reached.now
