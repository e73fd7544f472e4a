"""`ProjectRules`: answers what a project's policy says about a call, and which rules could be added.

The file is read again when it has changed, so answers are about the rules that the next run uses.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from signoff.links import looked_up
from signoff.policy.layers import Layers
from signoff.wiring.followed_settings import FollowedSettings
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
        self._settings = FollowedSettings(settings)

    async def explain(self, call: Call) -> Explanation:
        """Explain what the policy decides about a call, and why."""
        return await asyncio.to_thread(self._explained, await self._settings.now(), call)

    async def drafts(self, request: ApprovalRequest) -> RuleDrafts:
        """Draft rules from a call that was asked about. Raises `WrongUse` if none may be written."""
        return await drafts_of(self._broker, await self._settings.now(), request)

    def _explained(self, settings: Settings, call: Call) -> Explanation:
        policy = settings.policy
        layers = Layers((policy, *settings.toolset_layers(call.toolset)))
        # Symlinks are followed as in a run, so that the answer matches what would happen there.
        found = looked_up(call, layers, policy.root) if policy.root is not None else call
        return layers.explain(found)
