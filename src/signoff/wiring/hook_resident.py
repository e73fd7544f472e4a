"""The resident helper (daemon) for hooks: it answers in milliseconds, because code, settings and stores stay loaded.

There is one for each user, behind a Unix socket that only that user can reach. The first hook that finds none starts
it. It ends after an idle timeout. What it cannot answer, the hook decides itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from signoff.large_work import share_the_process
from signoff.wiring import hook_launcher
from signoff.wiring.hook_answer import Gone, HookDesk, HookOptions

IDLE = 600.0
"""Idle timeout in seconds after which it ends."""
MOST_BYTES = 2 * hook_launcher.MOST_BYTES


class HookResident:
    """Listens on the socket and answers hooks."""

    def __init__(self, path: str, idle: float = IDLE) -> None:
        self._path = path
        self._idle = idle
        self._desk = HookDesk()
        self._stamp = hook_launcher.code_stamp()
        self._environment = hook_launcher.environment()
        self._busy = 0
        self._asked = 0
        self._over = asyncio.Event()

    async def serve(self) -> None:
        """Serve until idle, or until code or environment changed. Returns at once if another helper is there."""
        listening = _bound(self._path)
        if listening is None:
            return
        mine = os.lstat(self._path).st_ino
        server = await asyncio.start_unix_server(self._asked_by, sock=listening, limit=MOST_BYTES)
        try:
            while not self._over.is_set():
                before = self._asked
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._over.wait(), self._idle)
                if not self._busy and self._asked == before:
                    break
        finally:
            server.close()
            with suppress(OSError):
                if os.lstat(self._path).st_ino == mine:
                    os.unlink(self._path)
            self._desk.close()

    async def _asked_by(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._busy, self._asked = self._busy + 1, self._asked + 1
        try:
            if _peer(writer) != os.getuid():
                return
            head = json.loads(await _part(reader))
            text = await _part(reader)
            if head["stamp"] != self._stamp or head["environment"] != self._environment:
                self._over.set()  # other code or environment: this helper is outdated
                return
            # Anything that the hook sends now can only be the end of its connection, and of its process.
            answer = await self._answer(head, text, lambda: reader.read(1))
            writer.write(json.dumps(answer).encode())
            await writer.drain()
        except (OSError, ValueError, KeyError, asyncio.IncompleteReadError):
            pass  # no answer: the hook decides itself
        finally:
            self._busy -= 1
            writer.close()

    async def _answer(self, head: Mapping[str, Any], text: bytes, gone: Gone) -> dict[str, Any]:
        """Return the reply. An error becomes a refusal with the launcher's text."""
        try:
            reply = await self._desk.answer(text, HookOptions.given(head["given"]), head["projects"], gone)
            return {"out": reply.out, "err": reply.err, "code": reply.code}
        except Exception as error:
            return {"out": "", "err": hook_launcher.refusal_text(error), "code": hook_launcher.BLOCKED}


async def _part(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > MOST_BYTES:
        raise ValueError("too much")
    return await reader.readexactly(size)


def _peer(writer: asyncio.StreamWriter) -> int:
    """Return the user id of the client."""
    link: socket.socket = writer.get_extra_info("socket")
    if not hasattr(socket, "SO_PEERCRED"):
        return os.getuid()  # the permissions of the directory decide
    _, uid, _ = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return uid


def _bound(path: str) -> socket.socket | None:
    """Return a socket that listens at this path for this user only; None if another helper does, or it is unsafe."""
    directory = os.path.dirname(path)
    os.makedirs(os.path.dirname(directory), exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    above = os.lstat(directory)
    if above.st_uid != os.getuid() or above.st_mode & 0o077:
        return None
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as trial:
            trial.connect(path)
        link.close()
        return None
    except OSError:
        pass
    aside = f"{path}.{os.getpid()}"
    before = os.umask(0o177)
    try:
        link.bind(aside)
    finally:
        os.umask(before)
    link.listen(64)
    os.rename(aside, path)  # two that start at once: the later one is found, the other ends when idle
    return link


def main() -> None:
    """Serve this user's hooks."""
    path = hook_launcher.socket_path()
    if path:
        share_the_process()
        asyncio.run(HookResident(path).serve())


if __name__ == "__main__":
    main()
