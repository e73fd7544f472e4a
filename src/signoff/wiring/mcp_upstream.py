"""Connections of the MCP proxy to the servers behind it: opened on demand, and reconnected after they break."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from signoff.core.safe_text import safe_beginning, safe_text
from signoff.errors import MissingExtra
from signoff.outside.mcp_servers import UpstreamServer

if TYPE_CHECKING:
    import httpx2
    import mcp_types
    from mcp.client.client import Client

T = TypeVar("T")
P = TypeVar("P")
PATIENCE = 60.0
"""Connect timeout in seconds. A server that has not answered by then counts as unreachable."""
LISTING = 20.0
"""Timeout in seconds for a connected server to list what it has, so that the other servers do not wait for it."""
LONGEST_CALL = 3_600.0
"""Timeout in seconds for a call to a server at a URL."""
CLOSING = 5.0
"""Timeout in seconds for a connection to close: once after asking it to, and once more after cancelling it."""
MOST_PAGES = 200
MOST_TOOLS = 2_000
"""A server with more tools than that offers none: each is compared with what was accepted, on every call."""
LONGEST_LINE = 65_536
LONGEST_ERROR = 16_000
"""Characters of a server's error that a client is told."""
Reports = Callable[[float, float | None, str | None], Awaitable[None]]
"""Called with the progress of a call."""


class UpstreamGone(Exception):
    """A server behind the proxy cannot be reached, or broke off in the middle of a request."""


class UpstreamRefusal(Exception):
    """A server behind the proxy answered with a protocol error, so it did not do what was asked."""


class _Silence(Exception):
    """A server takes too long to list what it has (timeout)."""


class McpUpstream:
    """One server behind the proxy."""

    def __init__(self, server: UpstreamServer, directory: str, *, source: object = None) -> None:
        """`directory` is where its program is started. `source` is a server in this process, used instead."""
        self.server = server
        self.directory = os.path.join(directory, server.cwd) if server.cwd else directory
        self._source = source
        self._link: _Link | None = None
        self._lock = asyncio.Lock()
        self._log = ServerLog(server)

    async def tools(self) -> list[mcp_types.Tool]:
        """Return all its tools, as it defines them now."""

        async def listed(client: Client) -> list[mcp_types.Tool]:
            return await _all_pages(lambda at: client.list_tools(cursor=at), lambda page: page.tools)

        found = await self._read(listed, "tools")
        if len(found) > MOST_TOOLS:
            raise UpstreamRefusal(
                f"the MCP server {self.server.name} has {len(found):,} tools; at most {MOST_TOOLS:,} are passed on"
            )
        return found

    async def call(self, tool: str, args: dict[str, Any], reports: Reports) -> mcp_types.CallToolResult:
        """Make a call. Raises `UpstreamGone` if it is unknown whether it ran, `UpstreamRefusal` if it did not run."""

        async def reported(progress: float, total: float | None, message: str | None) -> None:
            await reports(progress, total, message)

        return await self._ask(lambda client: client.call_tool(tool, args, progress_callback=reported))

    async def resources(self) -> list[mcp_types.Resource]:
        async def listed(client: Client) -> list[mcp_types.Resource]:
            return await _all_pages(lambda at: client.list_resources(cursor=at), lambda page: page.resources)

        return await self._read(listed, "resources")

    async def templates(self) -> list[mcp_types.ResourceTemplate]:
        async def listed(client: Client) -> list[mcp_types.ResourceTemplate]:
            pages = client.list_resource_templates
            return await _all_pages(lambda at: pages(cursor=at), lambda page: page.resource_templates)

        return await self._read(listed, "resources")

    async def resource(self, uri: str) -> mcp_types.ReadResourceResult:
        return await self._ask(lambda client: client.read_resource(uri))

    async def prompts(self) -> list[mcp_types.Prompt]:
        async def listed(client: Client) -> list[mcp_types.Prompt]:
            return await _all_pages(lambda at: client.list_prompts(cursor=at), lambda page: page.prompts)

        return await self._read(listed, "prompts")

    async def prompt(self, name: str, arguments: dict[str, str] | None) -> mcp_types.GetPromptResult:
        return await self._ask(lambda client: client.get_prompt(name, arguments))

    async def completion(
        self,
        ref: mcp_types.ResourceTemplateReference | mcp_types.PromptReference,
        argument: dict[str, str],
        told: dict[str, str] | None,
    ) -> mcp_types.CompleteResult:
        """Return how an argument of a prompt or a resource may go on; `told` are the other arguments so far."""
        return await self._ask(lambda client: client.complete(ref, argument, told))

    async def close(self) -> None:
        """Close the connection, which ends the server's program if there is one."""
        async with self._lock:
            link, self._link = self._link, None
        if link is not None:
            await link.close()
        self._log.close()

    async def _read(self, work: Callable[[Client], Awaitable[list[T]]], needs: str) -> list[T]:
        """Like `_ask`, for requests that change nothing: if the connection had broken, retry once on a new one."""

        async def listed(client: Client) -> list[T]:
            if getattr(client.server_capabilities, needs) is None:
                return []
            try:
                async with asyncio.timeout(LISTING):
                    return await work(client)
            except TimeoutError as error:  # the connection stays: a call may be running on it
                raise _Silence from error

        was_connected = self._link is not None
        try:
            try:
                return await self._ask(listed)
            except UpstreamGone:
                if not was_connected:
                    raise
            return await self._ask(listed)
        except _Silence as error:
            why = f"the MCP server {self.server.name} did not say within {LISTING:.0f} seconds what {needs} it has"
            raise UpstreamGone(why) from error

    async def _ask(self, work: Callable[[Client], Awaitable[T]]) -> T:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        link = await self._connected()
        try:
            return await link.ask(work)
        except _Silence:
            raise
        except MCPError as error:
            if error.code not in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
                raise UpstreamRefusal(self._hidden(error.message)) from error
            await self._drop(link)
            raise UpstreamGone(self._broken(error)) from error
        except Exception as error:
            await self._drop(link)
            raise UpstreamGone(self._broken(error)) from error

    async def _connected(self) -> _Link:
        async with self._lock:
            if self._link is None:
                link = _Link(self._client())
                try:
                    await link.open()
                except Exception as error:
                    raise UpstreamGone(self._not_there(error)) from error
                self._link = link
            return self._link

    async def _drop(self, link: _Link) -> None:
        """Drop a broken connection. The next request opens a new one."""
        async with self._lock:
            if self._link is link:
                self._link = None
        await link.close()

    def _client(self) -> Client:
        try:
            import httpx2
            from mcp.client.client import Client
            from mcp.client.sse import sse_client
            from mcp.client.stdio import StdioServerParameters, stdio_client
            from mcp.client.streamable_http import streamable_http_client
        except ImportError as error:
            raise MissingExtra("the proxy", "mcp") from error
        server, headers = self.server, dict(self.server.headers)
        source: Any = self._source
        if source is None and server.command:
            program, *arguments = server.command
            log: Any = self._log
            given = StdioServerParameters(command=program, args=arguments, env=dict(server.env), cwd=self.directory)
            source = stdio_client(given, errlog=log)
        elif source is None and server.url.rstrip("/").endswith("/sse"):
            source = sse_client(server.url, headers=headers)
        elif source is None:
            web = httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(PATIENCE, read=LONGEST_CALL))
            source = _with(web, streamable_http_client(server.url, http_client=web))
        # It declares neither sampling nor elicitation nor roots, so requests from a server to the client are refused
        # here. It caches nothing, whatever lifetime the server announces: definitions are always the current ones.
        return Client(source, mode="auto", cache=None)

    def _hidden(self, text: str) -> str:
        return safe_beginning(text, longest=LONGEST_ERROR, secrets=self.server.secrets)

    def _broken(self, error: Exception) -> str:
        return (
            f"the MCP server {self.server.name} closed the connection: {self._hidden(_inner(error))}{self._log.told()}"
        )

    def _not_there(self, error: Exception) -> str:
        why = f"{self._hidden(_inner(error))}{self._log.told()}"
        if not self.server.command:
            return f"the MCP server {self.server.name} cannot be reached: {why}"
        command = self._hidden(shlex.join(self.server.command))
        return f"the MCP server {self.server.name} did not start: {why}; try its command yourself: {command}"


class _Link:
    """A connection. It lives in its own task, because the task that opened it has to close it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._ready = asyncio.Event()
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._task = asyncio.create_task(self._hold())
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait([self._task, ready], timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            if not self._ready.is_set():
                if self._task.done():
                    self._task.result()
                raise TimeoutError(f"it did not answer within {PATIENCE:.0f} seconds")
        except BaseException:
            await self.close()
            raise
        finally:
            ready.cancel()

    async def ask(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Return the server's answer. Raises what the work raises, or the error that ended the connection."""
        assert self._task is not None, "it was opened"
        asking = asyncio.ensure_future(work(self._client))
        try:
            await asyncio.wait([asking, self._task], return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            self._task.result()
            raise ConnectionError("the connection ended")
        finally:
            if not asking.done():
                asking.cancel()
                with suppress(BaseException):
                    await asyncio.wait([asking], timeout=1)

    async def close(self) -> None:
        self._over.set()
        if self._task is None:
            return
        await asyncio.wait([self._task], timeout=CLOSING)
        self._task.cancel()
        await asyncio.wait([self._task], timeout=CLOSING)
        if self._task.done() and not self._task.cancelled():
            self._task.exception()  # retrieved so that asyncio does not warn: it was reported, or nobody asks

    async def _hold(self) -> None:
        async with self._client as client:
            # The client judges the result of a tool. A proxy that validates it would hide what is wrong.
            client.session.validate_tool_result = _unchecked
            self._ready.set()
            await self._over.wait()


@asynccontextmanager
async def _with(web: httpx2.AsyncClient, transport: AbstractAsyncContextManager[T]) -> AsyncGenerator[T]:
    """Open a transport together with its HTTP client."""
    async with web, transport as streams:
        yield streams


async def _unchecked(name: str, result: mcp_types.CallToolResult) -> None:
    """Skip validation: results are passed on as they are."""


async def _all_pages(ask: Callable[[str | None], Awaitable[P]], items: Callable[[P], list[T]]) -> list[T]:
    """Read all pages of a paginated list. Raises `ConnectionError` after `MOST_PAGES`."""
    found: list[T] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await ask(cursor)
        found += items(page)
        cursor = getattr(page, "next_cursor", None)
        if cursor is None:
            return found
    raise ConnectionError(f"a list has more than {MOST_PAGES} pages")


def _inner(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return f"{type(error).__name__}: {error}"  # pyright: ignore[reportUnknownArgumentType]


class ServerLog:
    """Passes a server program's stderr on to ours, escaped and with secrets masked, and keeps the last line."""

    def __init__(self, server: UpstreamServer) -> None:
        self._server = server
        self._pipe: int | None = None
        self._last = ""

    def fileno(self) -> int:
        """Return the file descriptor for the stderr of a program that is started now."""
        if self._pipe is None:
            reads, self._pipe = os.pipe()
            threading.Thread(target=self._pass_on, args=(reads,), daemon=True, name="server-log").start()
        return self._pipe

    def told(self) -> str:
        """Return the last line as the end of a sentence; empty if there was none."""
        return f"; it said: {self._last}" if self._last else ""

    def close(self) -> None:
        """Close our end. The reading thread ends when the last program ends."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None

    def _pass_on(self, reads: int) -> None:
        with os.fdopen(reads, "rb") as lines:
            while line := lines.readline(LONGEST_LINE):
                text = safe_text(line.decode(errors="replace").rstrip("\n"), secrets=self._server.secrets)
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    text = f"{text[: LONGEST_LINE // 2]}…"  # a secret cut at the end would not be recognised and masked
                    while (rest := lines.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                        pass
                if text.strip():
                    self._last = text[:300]
                with suppress(OSError, ValueError):
                    sys.stderr.write(f"[{self._server.name}] {text}\n")
                    sys.stderr.flush()
