"""A process whose clock is turned by hand: the program's own settings, channel, post and broker over discord.py."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.discord.flow import Flow
from tests.discord.house import ROLES, House
from tests.discord.scripts import says
from tests.discord.service import Message, Service

from signoff.broker import Broker
from signoff.config import load_settings
from signoff.core.request import ApprovalRequest
from signoff.delivery import Reconciler
from signoff.testing import FakeClock
from signoff.wiring.channel_wiring import routes_for


class Timed(House):
    """With the settings of a project file; `entry` is added to what it says about the channel."""

    def __init__(self, service: Service, directory: Path, entry: Mapping[str, Any] | None = None) -> None:
        super().__init__(service, directory)
        self.clock = FakeClock()
        self.broker = Broker(self.store, self.clock, people=ROLES)
        Flow(directory, service).write({"clerk": [says("done")]})
        file = directory / "signoff.yaml"
        project = json.loads(file.read_text())
        project["channels"]["discord"] |= entry or {}
        file.write_text(json.dumps(project))
        self.settings = load_settings(file)

    @asynccontextmanager
    async def posting(self) -> AsyncGenerator[Reconciler]:
        """What runs the channel: it does something when it is told to."""
        post = Reconciler(self.broker, routes_for(["discord"], self.settings), inbox=self.inbox)
        try:
            yield post
        finally:
            await post.stop()

    def about(self, request: ApprovalRequest) -> Message:
        """The message about a request, as it stands now."""
        [found] = [one for one in self.service.messages() if f"request {request.id}" in one.text]
        return found

    def others(self) -> list[Message]:
        """What else the bot has said in its threads, in order."""
        said = [one for thread in self.service.threads() for one in self.service.messages(thread)]
        return [one for one in said if one.author is self.service.bot and "request " not in one.text]
