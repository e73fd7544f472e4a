"""A toolset with one tool, `shell`. Commands known to only read run at once; all others need an approval."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic_ai import ApprovalRequired, RunContext

from signoff.attached.marks import is_answered, let_through
from signoff.core.verdict import Effect, Verdict
from signoff.errors import WrongUse
from signoff.policy.builtin import builtin_policy
from signoff.policy.shell.command_facts import read_shell
from signoff.policy.shell.simple_command import ReadOnlyCommand
from signoff.policy.shell.working_directories import Directories
from signoff.toolsets.builtin.named_programs import program_directories
from signoff.toolsets.builtin.shell.approved_command import run_approved
from signoff.toolsets.builtin.shell.argv import Step, run_line
from signoff.toolsets.builtin.shell.command_plan import CommandPlan, plan, reading_doubt
from signoff.toolsets.builtin.shell.environment import home_directory
from signoff.toolsets.builtin.shell.program_directories import changes_programs
from signoff.toolsets.builtin.shell.sandbox import Mode, open_sandbox
from signoff.toolsets.builtin.shell.subprocesses import CommandResult, ProcessLimits
from signoff.toolsets.own_policy import AttachedToolset

Kind = Literal["shell_readonly", "shell_file_ops"]


class ShellToolset(AttachedToolset):
    """A toolset with one tool that runs commands, with a description of what each of them will do."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        kind: Kind = "shell_readonly",
        id: str = "",
        timeout: float = 60.0,
        max_output: int = 100_000,
        sandbox: Mode = "auto",
        network: bool = False,
        keep: Iterable[str] = (),
        programs: Iterable[str | os.PathLike[str]] = (),
    ) -> None:
        """A shell that starts in the directory `root`. See `signoff.toolsets` for the options; raises `WrongUse`."""
        self.root = os.path.realpath(root)
        if not os.path.isdir(self.root):
            raise WrongUse(f"the shell has no directory to start in: {self.root} is not one")
        if timeout <= 0 or max_output <= 0:
            raise WrongUse("timeout and max_output of a shell must be above 0")
        policy = builtin_policy(kind, self.root)
        if policy is None:
            raise WrongUse(f"there is no shell of kind {kind!r}; write shell_readonly or shell_file_ops")
        self.policy = policy
        self.limits = ProcessLimits(seconds=timeout, output=max_output)
        self.sandbox = open_sandbox(sandbox, self.root, network=network)
        self.keep = tuple(keep)
        self.programs = program_directories(programs, self.root)
        self.guarded = self.programs
        """Program directories of this shell and of others. Commands that may write there are always asked about."""
        super().__init__([self.shell], id=id or kind)

    def plan(self, command: str) -> CommandPlan:
        """How the command is run without approval, or why it is not."""
        return plan(command, self.root)

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Verdict:
        verdict = super().needs_approval(name, args, ctx)
        command = str(args["command"])
        if verdict.effect is Effect.ALLOW and (why := self.plan(command).why):
            return Verdict(effect=Effect.ASK, rules=(self.policy.name,), reason=why, errors=(why,))
        if verdict.yields and (why := self._insists(command)):
            return Verdict(effect=Effect.ASK, rules=(self.policy.name,), reason=why, exactly=True)
        return verdict

    def _insists(self, command: str) -> str:
        """Why a command is asked about whatever rules allow; empty if the rules decide."""
        return changes_programs(command, self.guarded, self.root) or reading_doubt(command, self.root)

    def describe_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Mapping[str, Any]:
        command = str(args["command"])
        return self._described(command, self.plan(command).why)

    def capability_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> frozenset[str]:
        return self.plan(str(args["command"])).labels

    async def shell(self, ctx: RunContext[Any], command: str) -> str:
        """Run a bash command in the workspace directory and return what it prints, and its exit code unless that is 0.

        Each call starts in that directory anew, with no input and no terminal, and ends with everything it started.
        Commands that only read run at once; others wait for a person.
        """
        return (await self._run(ctx, command)).text

    async def _run(self, ctx: RunContext[Any], command: str) -> CommandResult:
        args = {"command": command}
        passing = let_through(ctx, "shell", args)
        if is_answered(ctx, "shell", args):
            return await self._as_shown(command)
        found = self.plan(command)
        if found.line is not None:
            return await self._words(command, found)
        doubt = reading_doubt(command, self.root)
        if passing is None or read_shell(command).read_only or doubt:  # something changed since: ask again
            raise ApprovalRequired(metadata=self._described(command, doubt or found.why))
        trusted = self._trusted(command)  # a rule of the user allows it
        return await self._words(command, trusted) if trusted is not None else await self._as_shown(command)

    async def _as_shown(self, command: str) -> CommandResult:
        return await run_approved(
            command,
            root=self.root,
            limits=self.limits,
            sandbox=self.sandbox,
            keep=self.keep,
            programs=self.programs,
        )

    async def _words(self, command: str, found: CommandPlan) -> CommandResult:
        assert found.line is not None
        outcome = await run_line(
            found.line,
            root=self.root,
            limits=self.limits,
            steps=found.steps,
            sandbox=self.sandbox,
            programs=self.programs,
            sealed=self.guarded,
        )
        if outcome.doubt:  # something changed since it was judged
            raise ApprovalRequired(metadata=self._described(command, outcome.doubt))
        return outcome

    def _trusted(self, command: str) -> CommandPlan | None:
        """The plan for a command that a rule of the user allows; None if only a shell can run it."""
        facts = read_shell(command)
        if facts.line is None or facts.line.inexact:
            return None
        steps = [
            Step(one.program.environment, one.program.adds, one.at)
            if isinstance(one, ReadOnlyCommand)
            else Step(trusted=True, directories=self._real(directories))
            for one, directories in zip(facts.judged, facts.directories, strict=True)
        ]
        return CommandPlan(facts.line, tuple(steps), labels=facts.labels)

    def _real(self, directories: Directories) -> frozenset[str]:
        """The real paths of directories before the line runs; empty (any directory) if one of them is unknown."""
        told = [home_directory() + one[1:] if one.startswith("~") else one for one in directories if one is not None]
        found = frozenset(os.path.realpath(os.path.join(self.root, one)) for one in told)
        return found if len(told) == len(directories) else frozenset()

    def _described(self, command: str, why: str) -> dict[str, Any]:
        around = self.sandbox.text if self.sandbox is not None else "runs without a sandbox"
        return {"summary": f"Run: {command}", "note": around, **({"reason": why} if why else {})}
