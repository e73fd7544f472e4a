"""A toolset with one tool, `shell`: what is known to only read runs at once, everything else waits for a person."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_ai import ApprovalRequired, RunContext
from pydantic_ai.toolsets import FunctionToolset

from signoff.errors import WrongUse
from signoff.toolsets.builtin.processes import Limits, Outcome
from signoff.toolsets.builtin.run_argv import run_line
from signoff.toolsets.builtin.run_shell import run_approved
from signoff.toolsets.builtin.sandbox import Mode, open_sandbox
from signoff.toolsets.builtin.shell_plan import Plan, plan


def shell(
    root: str | os.PathLike[str],
    *,
    id: str = "shell_readonly",
    timeout: float = 60.0,
    max_output: int = 100_000,
    sandbox: Mode = "auto",
    keep: Iterable[str] = (),
) -> ShellToolset:
    """A shell that starts in the folder `root`.

    `timeout` in seconds and `max_output` in bytes limit each call. `keep` names variables of the environment that
    approved commands get although they are named like secrets. Raises `WrongUse` where the folder or the sandbox
    cannot be had.
    """
    return ShellToolset(root, id=id, timeout=timeout, max_output=max_output, sandbox=sandbox, keep=keep)


def approved(ctx: RunContext[Any]) -> bool:
    """Whether a person has approved this very call."""
    return ctx.tool_call_approved


class ShellToolset(FunctionToolset[Any]):
    """One tool that runs commands, and says what each of them is about to do."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        id: str = "shell_readonly",
        timeout: float = 60.0,
        max_output: int = 100_000,
        sandbox: Mode = "auto",
        keep: Iterable[str] = (),
    ) -> None:
        self.root = os.path.realpath(root)
        if not os.path.isdir(self.root):
            raise WrongUse(f"the shell has no folder to start in: {self.root} is not one")
        if timeout <= 0 or max_output <= 0:
            raise WrongUse("timeout and max_output of a shell must be above 0")
        self.limits = Limits(seconds=timeout, output=max_output)
        self.sandbox = open_sandbox(sandbox, self.root)
        self.keep = tuple(keep)
        super().__init__([self.shell], id=id)

    def plan(self, command: str) -> Plan:
        """How the command is run: here the facts of the policy room come in."""
        return plan(command, self.root)

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> bool:
        return self.plan(str(args["command"])).line is None

    def describe_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Mapping[str, Any]:
        command = str(args["command"])
        return self._described(command, self.plan(command).why)

    def capability_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> frozenset[str]:
        return self.plan(str(args["command"])).labels

    async def shell(self, ctx: RunContext[Any], command: str) -> str:
        """Run a bash command in the workspace folder and return what it prints, and its exit code unless that is 0.

        Each call starts in that folder anew, with no input and no terminal, and ends with everything it started.
        Commands that only read run at once; others wait for a person.
        """
        return (await self._run(ctx, command)).text

    async def _run(self, ctx: RunContext[Any], command: str) -> Outcome:
        if approved(ctx):
            return await run_approved(command, root=self.root, limits=self.limits, sandbox=self.sandbox, keep=self.keep)
        found = self.plan(command)
        if found.line is None:
            raise ApprovalRequired(metadata=self._described(command, found.why))
        outcome = await run_line(
            found.line, root=self.root, limits=self.limits, steps=found.steps, sandbox=self.sandbox
        )
        if outcome.doubt:  # something changed since it was judged
            raise ApprovalRequired(metadata=self._described(command, outcome.doubt))
        return outcome

    def _described(self, command: str, why: str) -> dict[str, Any]:
        around = self.sandbox.text if self.sandbox is not None else "runs without a sandbox"
        return {"summary": f"Run: {command}", "reason": f"{why}; {around}" if why else around}
