"""Which calls run on an approval of a server: so that it is told what came of them, and is asked about no other."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

from signoff.core.canonical import digest
from signoff.outside.outside_call import OutsideCall

MOST = 500
"""Calls of which no outcome was told; the oldest are forgotten, and are *unknown* on the server."""


@dataclass(frozen=True, slots=True)
class ConsumedCalls:
    """Keeps an empty file for each call, whose name says all there is to know."""

    directory: str
    """Empty: there is no place for them, and no outcome is told."""
    server: str

    def add(self, outside: OutsideCall, request: str) -> None:
        """Note that a call is about to run. Where that fails it runs all the same, and its outcome is unknown."""
        with suppress(OSError):
            if self.directory:
                os.makedirs(self.directory, 0o700, exist_ok=True)
                os.close(os.open(os.path.join(self.directory, self._name(outside, request)), os.O_CREAT, 0o600))
                for name in self._newest_first()[MOST:]:
                    os.unlink(os.path.join(self.directory, name))

    def find(self, outside: OutsideCall) -> str:
        """The file of a call; empty where there is none. A call without an id is found by what it is."""
        beginning = self._name(outside, "") if outside.call_id else self._alike(outside)
        return next((name for name in self._newest_first() if name.startswith(beginning)), "")

    def take(self, outside: OutsideCall) -> str:
        """The request of a call, once; empty where there is none."""
        name = self.find(outside)
        try:
            os.unlink(os.path.join(self.directory, name))
        except OSError:
            return ""
        return name.rpartition(".")[2]

    def _name(self, outside: OutsideCall, request: str) -> str:
        return f"{self._alike(outside)}{digest(outside.call_id)[:16]}.{request}"

    def _alike(self, outside: OutsideCall) -> str:
        return f"{digest([self.server, outside.session, outside.tool, dict(outside.args)])}."

    def _newest_first(self) -> list[str]:
        found: list[tuple[int, str]] = []
        with suppress(OSError), os.scandir(self.directory or os.devnull) as entries:
            for one in entries:
                with suppress(OSError):  # another hook has taken it meanwhile
                    found.append((one.stat().st_mtime_ns, one.name))
        return [name for _, name in sorted(found, reverse=True)]
