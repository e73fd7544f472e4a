"""A worker that can be run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models import Model
from pydantic_ai.usage import UsageLimits

from signoff.config import Limits, WorkerFile
from signoff.gate.capability import Signoff
from signoff.workers.account import Account
from signoff.workers.build import WorkerPlan
from signoff.workers.limits import WorkerDeps
from signoff.workers.worker_prompt import Prompt, checked_input, prompt_of


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A worker that can be run: `agent.run(worker.prompt(…), **worker.run_options(…))`."""

    name: str
    file: WorkerFile
    agent: Agent[WorkerDeps, Any]
    gate: Signoff
    plan: WorkerPlan = field(repr=False)
    model: Model | None = field(default=None, repr=False)

    @property
    def limits(self) -> Limits:
        return self.file.limits

    def prompt(
        self,
        text: str,
        input: Mapping[str, Any] | None = None,
        attachments: Sequence[str | os.PathLike[str]] = (),
        *,
        within: str = "",
    ) -> Prompt:
        """Return the prompt for one run: the text, the input fields that the instructions do not name, and files.

        `within` is a directory that no attachment may lead out of.
        """
        given = checked_input(self.file, self.plan.input, input)
        filled = self.plan.instructions.fields
        return prompt_of(self.file, text, given, filled=filled, attachments=attachments, within=within)

    def run_options(
        self,
        input: Mapping[str, Any] | None = None,
        *,
        caller: Account | None = None,
        path: str = "",
        attachments: Sequence[str | os.PathLike[str]] = (),
    ) -> dict[str, Any]:
        """Return what `agent.run` needs besides the prompt, when a run begins and when it is resumed.

        `caller` is the run that this one is charged to, and `path` the call in it. `attachments` are those of the
        prompt, for toolsets that look at them. Raises `WrongUse` if the input does not fit.
        """
        given = checked_input(self.file, self.plan.input, input)
        files = tuple(os.path.abspath(os.fspath(one)) for one in attachments)
        return {
            "deps": WorkerDeps(input=given, caller=caller, path=path, files=files),
            # The worker's meter enforces the limits, and knows whose they are; PydanticAI's default would be 50.
            "usage_limits": UsageLimits(request_limit=None),
        }
