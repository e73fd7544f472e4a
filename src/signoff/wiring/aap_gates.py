"""`ProjectGates`: gates for agents elsewhere (Agent Approval Protocol), with the policy of the served project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff.outside.client_gate import ClientGate
from signoff.policy.layers import Layers
from signoff.wiring.followed_settings import FollowedSettings

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.wiring.served_projects import ServedProjects


class ProjectGates:
    """Implements `signoff.server.state.CallGates` for the first project."""

    def __init__(self, broker: Broker, projects: ServedProjects) -> None:
        self._broker = broker
        self._directory = projects.first.directory
        self._settings = FollowedSettings(projects.first.settings)

    @property
    def directory(self) -> str:
        """Where relative paths in their calls start."""
        return self._directory

    async def gate(self, requester: str) -> ClientGate:
        """Return the gate with the current policy. Raises while that cannot be read."""
        settings = await self._settings.now()
        return ClientGate(broker=self._broker, policy=Layers(settings.layers), requester=requester, takes_edits=False)
