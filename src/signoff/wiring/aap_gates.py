"""`ProjectGates`: gates for agents elsewhere (Agent Approval Protocol), with the policy of the served project."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from signoff.config.files import find_project, user_file
from signoff.file_stamp import file_stamp
from signoff.policy.layers import Layers
from signoff.wiring.project import settings_for

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.outside.client_gate import ClientGate
    from signoff.wiring.served_projects import ServedProjects


class ProjectGates:
    """Implements `signoff.server.state.CallGates` for the first project. Files that changed are read again."""

    def __init__(self, broker: Broker, projects: ServedProjects) -> None:
        self._broker = broker
        self._directory = projects.first.directory
        self._settings = projects.first.settings
        self._stamps = self._now()

    @property
    def directory(self) -> str:
        """Where relative paths in their calls start."""
        return self._directory

    async def gate(self, requester: str) -> ClientGate:
        """Return the gate with the current policy."""
        from signoff.outside.client_gate import ClientGate

        settings = await self._current()
        return ClientGate(broker=self._broker, policy=Layers(settings.layers), requester=requester, takes_edits=False)

    async def _current(self) -> Settings:
        stamps = self._now()
        if stamps != self._stamps:
            # An invalid file raises for each call until it is fixed: no call is decided meanwhile.
            self._settings = await asyncio.to_thread(settings_for, None, directory=self._directory)
            self._stamps = stamps
        return self._settings

    def _now(self) -> tuple[object, ...]:
        return tuple(file_stamp(file) for file in (find_project(self._directory), user_file()))
