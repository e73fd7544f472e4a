"""Assemble and run the agent of the demo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from signoff.config import load_policy
from signoff.core.event import CallEvent
from signoff.ports import ApproverLike
from signoff.store.approval_memory import ApprovalMemory

if TYPE_CHECKING:
    from signoff.workers.runtime import Finished


async def run_demo(
    root: Path,
    *,
    approver: ApproverLike,
    grants: Path,
    observe: Callable[[CallEvent], None],
) -> Finished:
    """Run the demo's agent on its files in `root`."""
    from signoff.gate.capability import Signoff
    from signoff.workers.demo.agent import POLICY, demo_agent, lay_out
    from signoff.workers.runtime import Runner

    lay_out(root)
    gate = Signoff(load_policy(POLICY, root=root), memory=ApprovalMemory(grants), observe=observe)
    runner = Runner(agent=demo_agent(root), gate=gate, approver=approver)
    return await runner.run("Get the release notes ready.")
