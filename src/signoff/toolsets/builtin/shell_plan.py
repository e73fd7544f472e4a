"""What is to be done about a command: run its words unasked, or ask; judged by its facts and by the world around it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from signoff.policy.finding import in_one_line
from signoff.policy.shell.facts import ShellFacts, read_shell
from signoff.policy.shell.line import Line, Pipeline, Simple, Word
from signoff.policy.shell.programs import Reading
from signoff.toolsets.builtin.environment import home_folder
from signoff.toolsets.builtin.git_config import repository_runs
from signoff.toolsets.builtin.globs import Unclear
from signoff.toolsets.builtin.run_argv import Expander, Step, unwrapped
from signoff.toolsets.builtin.shell_builtins import Folders, run_builtin

_MOST_FOLDERS = 8
_UNKNOWN = frozenset({"proc.exec"})


class Plan(NamedTuple):
    """How a command is run."""

    line: Line | None
    """What runs unasked; None where a person is asked."""
    steps: tuple[Step, ...] = ()
    why: str = ""
    """Why a person is asked, naming the command and the word that decided."""
    labels: frozenset[str] = _UNKNOWN


def plan(command: str, root: str) -> Plan:
    """What to do about a command in the folder `root`, which is a real path. Never raises: doubt asks."""
    try:
        facts = read_shell(command)
        if facts.read_only and facts.paths:
            facts = read_shell(command, {path: _leads_to(path, root) for path in facts.paths})
        readings = [one for one in facts.judged if isinstance(one, Reading)]
        if not facts.read_only or facts.line is None or len(readings) != len(facts.line.commands):
            return Plan(None, why=facts.why or "the command is not known to only read", labels=_labels(facts))
        if why := world_doubt(facts.line, root):
            return Plan(None, why=why, labels=facts.labels | _UNKNOWN)
        steps = tuple(Step(one.program.environment, one.program.adds, one.at) for one in readings)
        return Plan(facts.line, steps, labels=facts.labels)
    except Exception as error:
        return Plan(None, why=f"the command could not be judged: {in_one_line(error)}")


def _labels(facts: ShellFacts) -> frozenset[str]:
    return facts.labels or _UNKNOWN


def _leads_to(path: str, root: str) -> str:
    home = home_folder()
    written = home + path[1:] if path == "~" or path.startswith("~/") else path
    real, home = os.path.realpath(os.path.join(root, written)), os.path.realpath(home)
    inside = real == home or real.startswith(f"{home.rstrip('/')}/")
    return f"~{real[len(home) :]}" if inside and home != "/" else real  # wherever a home is, its secrets are known


def world_doubt(line: Line, root: str) -> str:
    """What in the world around it makes a line that only reads do more than that; empty where nothing does."""
    folders: list[str] = [root]
    try:
        for pipeline in line.pipelines:
            for stage in pipeline.stages:
                for folder in folders:
                    if why := _stage_doubt(stage, folder, root):
                        return why
            folders.extend(one for one in _after(pipeline, folders, root) if one not in folders)
            if len(folders) > _MOST_FOLDERS:
                return "too many `cd` make it unclear where the line runs"
    except Unclear as unclear:
        return str(unclear)
    return ""


def _stage_doubt(stage: Simple, folder: str, root: str) -> str:
    expander = Expander(folder, root)
    argv = unwrapped(expander.argv(stage.words))
    for redirect in stage.redirects:
        if redirect.source is not None:
            expander.word(redirect.source)
    if os.path.basename(argv[0]) != "git":
        return ""
    for place in _repositories(argv, folder):
        if why := repository_runs(place):
            return f"`git` in a repository whose own configuration sets {why}, which may run programs"
    return ""


def _repositories(argv: Sequence[str], folder: str) -> Iterator[str]:
    """The folders from which git may look for its repository: `-C` is told more than once, too."""
    yield folder
    for option, value in pairwise(argv):
        if option == "-C":
            folder = os.path.join(folder, value)
            yield folder


def _after(pipeline: Pipeline, folders: Sequence[str], root: str) -> Iterator[str]:
    """Where a `cd` leads to, if it succeeds."""
    words: Sequence[Word] = pipeline.stages[0].words
    if len(pipeline.stages) > 1 or words[0].text != "cd":
        return
    for folder in folders:
        reached = Folders(folder, root)
        run_builtin(Expander(folder, root).argv(words), reached)
        yield reached.now
