"""`ProjectRules`: answers what a project's policy says about a call, and which rules could be added.

The file is read again when it has changed, so answers are about the rules that the next run uses.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from signoff.config import load_settings
from signoff.config.files import from_here
from signoff.file_stamp import file_stamp
from signoff.links import followed
from signoff.policy.layers import Layers
from signoff.wiring.make_rule import drafts_of

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.channels.rule_drafts import RuleDrafts
    from signoff.config import Settings
    from signoff.core.call import Call
    from signoff.core.request import ApprovalRequest
    from signoff.policy.explain import Explanation


class ProjectRules:
    """Implements `signoff.server.state.Rules` for a project's file."""

    def __init__(self, broker: Broker, settings: Settings) -> None:
        self._broker = broker
        self._settings = settings
        self._file = os.path.abspath(settings.file) if settings.file else ""
        self._stamp = self._now()

    async def explain(self, call: Call) -> Explanation:
        """Explain what the policy decides about a call, and why."""
        return await asyncio.to_thread(self._explained, await self._current(), call)

    async def drafts(self, request: ApprovalRequest) -> RuleDrafts:
        """Draft rules from a call that was asked about. Raises `WrongUse` if none may be written."""
        return await drafts_of(self._broker, await self._current(), request)

    def _explained(self, settings: Settings, call: Call) -> Explanation:
        policy = settings.policy
        layers = Layers((policy, *settings.toolset_layers(call.toolset)))
        # Symlinks are followed as in a run, so that the answer matches what would happen there.
        found = call.changed(resolved=followed(policy.root, layers.paths_of(call))) if policy.root is not None else call
        return layers.explain(found)

    async def _current(self) -> Settings:
        stamp = self._now()
        if stamp != self._stamp:
            # An invalid file raises on each question until it is fixed.
            self._settings = await asyncio.to_thread(load_settings, from_here(self._file))
            self._stamp = stamp
        return self._settings

    def _now(self) -> tuple[object, ...]:
        return file_stamp(self._file or None)
