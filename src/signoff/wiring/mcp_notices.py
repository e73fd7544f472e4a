"""What MCP servers say unasked: that a list or a resource changed, and log messages.

A change says only that a client may look again, so it is kept once, however often it is said. Of log messages the
latest are kept. So a server that never stops talking, or a client that never reads, does not fill the memory.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from signoff.core.redact import redact_text

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Levels of log messages, the least important first."""
PASSED = "info"
"""What a client gets that named no level: this one and above."""
MOST_WATCHED = 1_000
"""Maximum of resources that the clients of a proxy watch."""
LONGEST_URI = 4_096
MOST_LOGS = 100
"""Maximum of log messages that wait for a client. The oldest are left out first."""
LONGEST_LOG = 16_000
"""Characters of a log message that a client is told."""
PAUSE = 0.05
"""Seconds between two deliveries to a client: what is said meanwhile is told together."""


@dataclass(frozen=True, slots=True)
class ChangeNotice:
    """A list or a resource has changed."""

    what: Literal["tools", "resources", "prompts", "resource"]
    uri: str = ""
    """Of the resource."""


@dataclass(frozen=True, slots=True)
class LogMessage:
    """A log message of a server."""

    level: str
    data: Any
    logger: str | None = None


Notice = ChangeNotice | LogMessage


def bounded(message: LogMessage, secrets: Sequence[str]) -> LogMessage:
    """Return a log message that is not too long, with secrets masked. Most stay as they are."""
    data, logger = message.data, message.logger
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
    beginning = text[: 2 * LONGEST_LOG]  # a secret that is cut is not recognised: mask before the second cut
    hidden = redact_text(beginning, secrets=secrets)
    if len(text) > LONGEST_LOG:
        data = f"{hidden[:LONGEST_LOG]}… ({len(text):,} characters)"
    elif hidden != text:
        data = hidden
    return replace(message, data=data, logger=redact_text(logger[:200], secrets=secrets) if logger else None)


class NoticeQueue:
    """Delivers notices to one client, one after the other. Whoever puts one in never waits."""

    def __init__(self, send: Callable[[Notice], Awaitable[None]]) -> None:
        self._send = send
        self._changes: dict[ChangeNotice, None] = {}
        self._logs: deque[LogMessage] = deque(maxlen=MOST_LOGS)
        self._left_out = 0
        self._task: asyncio.Task[None] | None = None

    def put(self, notice: Notice, *, instead: ChangeNotice | None = None) -> None:
        """Deliver a notice soon. `instead` is told in its place if too many changes wait already."""
        if isinstance(notice, LogMessage):
            self._left_out += len(self._logs) == MOST_LOGS
            self._logs.append(notice)
        elif len(self._changes) < MOST_WATCHED or notice in self._changes:
            self._changes[notice] = None
        elif instead is not None:
            self._changes[instead] = None
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._deliver())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _deliver(self) -> None:
        while self._changes or self._logs:
            notices: list[Notice] = [*self._changes]
            if self._left_out:
                left_out = f"signoff: {self._left_out:,} log messages before this one were left out"
                notices.append(LogMessage("warning", left_out))
            notices += self._logs
            self._changes, self._left_out = {}, 0
            self._logs.clear()
            for notice in notices:
                with suppress(Exception):  # a client that is gone gets nothing
                    await self._send(notice)
            await asyncio.sleep(PAUSE)


class LatestProgress:
    """Passes on the progress of a call. While a client takes one report, only the latest of the others is kept."""

    def __init__(self, reports: Callable[[float, float | None, str | None], Awaitable[None]]) -> None:
        self._reports = reports
        self._next: tuple[float, float | None, str | None] | None = None
        self._is_busy = False

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self._next = progress, total, message
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._next is not None:
                latest, self._next = self._next, None
                await self._reports(*latest)
        finally:
            self._is_busy = False
