"""Connections of an MCP proxy to the servers behind it: made when they are needed, and made anew when they break."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from signoff.core.safe import safe_text
from signoff.errors import MissingExtra
from signoff.outside.mcp_servers import UpstreamServer
from signoff.toolsets.variable_mask import hide

if TYPE_CHECKING:
    import mcp_types
    from fastmcp import Client

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds until a server that does not answer the first time counts as not there."""
Reports = Callable[[float, float | None, str | None], Awaitable[None]]
"""Told how far a call is."""


class UpstreamGone(Exception):
    """A server behind a proxy cannot be reached, or broke off in the middle. Whoever asked it tells the client."""


class UpstreamRefusal(Exception):
    """A server behind a proxy answered a request with an error of the protocol, so it did not do what was asked."""


class McpUpstream:
    """One server behind a proxy."""

    def __init__(self, server: UpstreamServer, directory: str, *, source: object = None) -> None:
        """`directory` is where its program is started. `source` is a server in this process, instead of another one."""
        self.server = server
        self.directory = os.path.join(directory, server.cwd) if server.cwd else directory
        self._source = source
        self._client: Client[Any] | None = None
        self._lock = asyncio.Lock()
        self._log = ServerLog(server)

    async def tools(self) -> list[mcp_types.Tool]:
        """All its tools, as it defines them now."""
        return await self._read(lambda client: client.list_tools())

    async def call(self, tool: str, args: dict[str, Any], reports: Reports) -> mcp_types.CallToolResult:
        """What a call gives. Raises `UpstreamGone` where nobody knows whether it ran, `UpstreamRefusal` where not."""
        return await self._ask(lambda client: client.call_tool_mcp(tool, args, progress_handler=reports))

    async def resources(self) -> list[mcp_types.Resource]:
        return await self._read(lambda client: client.list_resources(), "resources")

    async def templates(self) -> list[mcp_types.ResourceTemplate]:
        return await self._read(lambda client: client.list_resource_templates(), "resources")

    async def resource(self, uri: str) -> mcp_types.ReadResourceResult:
        return await self._ask(lambda client: client.read_resource_mcp(uri))

    async def prompts(self) -> list[mcp_types.Prompt]:
        return await self._read(lambda client: client.list_prompts(), "prompts")

    async def prompt(self, name: str, arguments: dict[str, str] | None) -> mcp_types.GetPromptResult:
        return await self._ask(lambda client: client.get_prompt_mcp(name, dict(arguments or {})))

    async def close(self) -> None:
        """End the program, or the connection."""
        async with self._lock:
            client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):
                await client.close()
        self._log.close()

    async def _read(self, work: Callable[[Client[Any]], Awaitable[list[T]]], needs: str = "") -> list[T]:
        """As `_ask`, for what changes nothing: where the connection had broken meanwhile, once more on a new one."""

        async def listed(client: Client[Any]) -> list[T]:
            can = client.server_capabilities
            return [] if needs and (can is None or getattr(can, needs) is None) else await work(client)

        was_connected = self._client is not None
        try:
            return await self._ask(listed)
        except UpstreamGone:
            if not was_connected:
                raise
        return await self._ask(listed)

    async def _ask(self, work: Callable[[Client[Any]], Awaitable[T]]) -> T:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        client = await self._connected()
        try:
            return await work(client)
        except MCPError as error:
            if error.error.code not in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
                raise UpstreamRefusal(self._hidden(error.message)) from error
            await self._drop(client)
            raise UpstreamGone(self._broken(error)) from error
        except Exception as error:
            await self._drop(client)
            raise UpstreamGone(self._broken(error)) from error

    async def _connected(self) -> Client[Any]:
        async with self._lock:
            if self._client is None:
                client = self._new()
                try:
                    await client.__aenter__()
                except Exception as error:
                    with suppress(Exception):
                        await client.close()
                    raise UpstreamGone(self._not_there(error)) from error
                self._client = client
            return self._client

    async def _drop(self, client: Client[Any]) -> None:
        """Let go of a connection that broke; whoever asks next makes a new one."""
        async with self._lock:
            if self._client is client:
                self._client = None
        with suppress(Exception):
            await client.close()

    def _new(self) -> Client[Any]:
        try:
            from fastmcp import Client
            from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport
        except ImportError as error:
            raise MissingExtra("the proxy", "mcp") from error
        server, headers = self.server, dict(self.server.headers)
        transport: Any = self._source
        if transport is not None:
            pass
        elif server.command:
            program, *arguments = server.command
            log: Any = self._log
            transport = StdioTransport(
                program, arguments, env=dict(server.env), cwd=self.directory, keep_alive=False, log_file=log
            )
        elif server.url.rstrip("/").endswith("/sse"):
            transport = SSETransport(server.url, headers=headers)
        else:
            transport = StreamableHttpTransport(server.url, headers=headers)
        # It declares neither sampling nor elicitation nor roots: whatever a server asks of a client is refused here.
        client: Client[Any] = Client(transport, name="signoff", init_timeout=PATIENCE, log_handler=_unheard)
        return client

    def _hidden(self, text: str) -> str:
        return safe_text(hide(text, self.server.secrets))

    def _broken(self, error: Exception) -> str:
        return f"the MCP server {self.server.name} broke off: {self._hidden(_inner(error))}{self._log.told()}"

    def _not_there(self, error: Exception) -> str:
        why = f"{self._hidden(_inner(error))}{self._log.told()}"
        if not self.server.command:
            return f"the MCP server {self.server.name} cannot be reached: {why}"
        command = self._hidden(shlex.join(self.server.command))
        return f"the MCP server {self.server.name} did not start: {why}; try its command yourself: {command}"


async def _unheard(message: object) -> None:
    """What servers log about themselves is for nobody here."""


def _inner(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return f"{type(error).__name__}: {error}"  # pyright: ignore[reportUnknownArgumentType]


class ServerLog:
    """What a server's program writes to standard error: passed on to ours, made harmless, and its last line kept."""

    def __init__(self, server: UpstreamServer) -> None:
        self._server = server
        self._pipe: int | None = None
        self._last = ""

    def fileno(self) -> int:
        """Where a program that is started now writes to."""
        if self._pipe is None:
            reads, self._pipe = os.pipe()
            threading.Thread(target=self._pass_on, args=(reads,), daemon=True, name="server-log").start()
        return self._pipe

    def told(self) -> str:
        """The last line, as the end of a sentence; empty where nothing was said."""
        return f"; it said: {self._last}" if self._last else ""

    def close(self) -> None:
        """Nothing more is started: the end of the last program is the end of it."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _pass_on(self, reads: int) -> None:
        with os.fdopen(reads, "rb") as lines:
            while line := lines.readline(4_096):
                text = safe_text(hide(line.decode(errors="replace").rstrip("\n"), self._server.secrets))
                if text.strip():
                    self._last = text[:300]
                with suppress(OSError, ValueError):
                    sys.stderr.write(f"[{self._server.name}] {text}\n")
                    sys.stderr.flush()
