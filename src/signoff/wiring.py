"""The only place that assembles parts: from what a command was given to an agent that runs under a policy."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from signoff.config import load_policy
from signoff.core.event import CallEvent
from signoff.core.mode import ApprovalMode
from signoff.errors import WrongUse
from signoff.policy.engine import Policy
from signoff.ports import ApprovalUI

if TYPE_CHECKING:
    from signoff.workers.runtime import Finished

POLICY_FILE = "signoff.yaml"


def policy_for(file: str | os.PathLike[str] | None) -> str | os.PathLike[str] | Policy:
    """The given policy file, else `signoff.yaml` here, else a policy without rules: everything is asked about."""
    if file is not None:
        return file
    return POLICY_FILE if Path(POLICY_FILE).exists() else Policy(rules=())


async def run_agent(
    path: str,
    prompt: str,
    *,
    policy: str | os.PathLike[str] | None = None,
    model: str | None = None,
    mode: ApprovalMode = ApprovalMode.INTERACTIVE,
    unattended: Literal["deny", "park"] = "deny",
    observe: Callable[[CallEvent], None] | None = None,
) -> Finished:
    """Run the agent at `package.module:agent` under a policy, asking at the terminal."""
    from signoff.channels.terminal import TerminalApprover
    from signoff.gate.capability import Signoff
    from signoff.gate.suspended import signoff_of
    from signoff.workers.load import load_agent
    from signoff.workers.models import model_named
    from signoff.workers.runtime import run_once

    agent = load_agent(path)
    own = signoff_of(agent)
    if own is not None and (policy is not None or mode is not ApprovalMode.INTERACTIVE):
        raise WrongUse(
            f"{path} brings its own Signoff capability, which has its policy and mode.\n"
            "  Leave --policy and --mode out, or take the capability off the agent."
        )
    terminal = TerminalApprover(headless=unattended)
    return await run_once(
        agent,
        prompt,
        gate=own or Signoff(policy_for(policy), mode=mode, observe=observe),
        approver=terminal,
        model=model_named(model) if model is not None else None,
        may_pause=unattended == "park",
    )


async def run_demo(
    root: Path,
    *,
    approver: ApprovalUI,
    grants: Path,
    observe: Callable[[CallEvent], None],
) -> Finished:
    """Run the demo's agent on its files in `root`."""
    from signoff.gate.capability import Signoff
    from signoff.store.grants import ApprovalMemory
    from signoff.workers.demo.agent import POLICY, demo_agent, lay_out
    from signoff.workers.runtime import run_once

    lay_out(root)
    policy = replace(load_policy(POLICY), root=str(root.resolve()))
    gate = Signoff(policy, memory=ApprovalMemory(grants), observe=observe)
    return await run_once(demo_agent(root), "Get the release notes ready.", gate=gate, approver=approver)
