"""`ConsumedCalls`: remembers calls that run on an approval of a server, so that their outcome is reported to it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from signoff.core.canonical import digest
from signoff.outside.outside_call import OutsideCall

MOST = 500
"""Maximum of calls without an outcome. The oldest are forgotten, and stay *unknown* on the server."""


@dataclass(frozen=True, slots=True)
class ConsumedCalls:
    """Keeps an empty file for each call. Its name holds the digests of the call and the request id."""

    directory: str
    """Empty: there is no directory for them, and no outcome is reported."""
    server: str

    def add(self, outside: OutsideCall, request: str) -> None:
        """Note that a call is about to run. If that fails, the call still runs, and its outcome is unknown."""
        with suppress(OSError):
            if self.directory:
                os.makedirs(self.directory, 0o700, exist_ok=True)
                os.close(os.open(os.path.join(self.directory, self._name(outside, request)), os.O_CREAT, 0o600))
                for name in self._newest_first()[MOST:]:
                    with suppress(OSError):
                        os.unlink(os.path.join(self.directory, name))

    def find(self, outside: OutsideCall) -> str:
        """Return the file name of a call; empty if there is none. A call without an id is found by its content."""
        beginning = self._name(outside, "") if outside.call_id else self._alike(outside)
        return next((name for name in self._newest_first() if name.startswith(beginning)), "")

    def take(self, outside: OutsideCall) -> str:
        """Return the request id of a call and forget the call; empty if there is none."""
        name = self.find(outside)
        if not name:
            return ""
        try:
            os.unlink(os.path.join(self.directory, name))
            return str(UUID(name.rpartition(".")[2]))
        except (OSError, ValueError):  # another hook took it, or it is not one of our files
            return ""

    def _name(self, outside: OutsideCall, request: str) -> str:
        return f"{self._alike(outside)}{digest(outside.call_id)[:16]}.{request}"

    def _alike(self, outside: OutsideCall) -> str:
        return f"{digest([self.server, outside.session, outside.tool, dict(outside.args)])}."

    def _newest_first(self) -> list[str]:
        found: list[tuple[int, str]] = []
        if not self.directory:
            return []
        with suppress(OSError), os.scandir(self.directory) as entries:
            for one in entries:
                with suppress(OSError):  # another hook has removed it meanwhile
                    found.append((one.stat().st_mtime_ns, one.name))
        return [name for _, name in sorted(found, reverse=True)]
