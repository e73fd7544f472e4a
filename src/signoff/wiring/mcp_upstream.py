"""Connections of the MCP proxy to the servers behind it: opened on demand, and reconnected after they break."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from signoff.core.request_context import shortened
from signoff.core.safe_text import safe_beginning, safe_text
from signoff.core.visible_text import visible
from signoff.errors import MissingExtra
from signoff.outside.mcp_servers import UpstreamServer
from signoff.wiring.mcp_notices import LONGEST_URI, PASSED, ChangeNotice, LatestProgress, LogMessage, Notice, bounded
from signoff.wiring.strict_messages import id_of

if TYPE_CHECKING:
    import httpx2
    import mcp_types
    from mcp.client.client import Client
    from pydantic import ValidationError

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
LISTENING_AGAIN = 5.0
"""Seconds before a stream of changes that a server has ended is opened again."""
LONGEST_LINE = 65_536
LONGEST_ERROR = 16_000
"""Characters of a server's error that a client is told."""
Hears = Callable[[object], Awaitable[None]]
Reports = Callable[[float, float | None, str | None], Awaitable[None]]
"""Called with the progress of a call."""


class UpstreamGone(Exception):
    """A server behind the proxy cannot be reached, or broke off in the middle of a request."""


class UpstreamRefusal(Exception):
    """A server behind the proxy answered with a protocol error, so it did not do what was asked."""


class _Unreadable(Exception):
    """A server sent an answer that the library cannot read, so nobody knows which request it answers."""


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
        self.on_notice: Callable[[Notice], None] = _unheard
        """Called for what the server says unasked. It must not wait."""
        self._watched = set[str]()
        self._watching = asyncio.Lock()
        self._level = ""
        self._listens = asyncio.Event()
        """Set when other resources are watched than those that the server was asked about."""
        self._heeded = asyncio.Event()
        """Set when the server knows which."""

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

        return await self._ask(lambda client: client.call_tool(tool, args, progress_callback=LatestProgress(reports)))

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

    async def watch(self, uri: str) -> None:
        """Have the server say when a resource changes, on every connection from now on."""

        async def begun(client: Client) -> None:
            resources = client.server_capabilities.resources
            if resources is None or not resources.subscribe:
                raise UpstreamRefusal(f"the MCP server {self.server.name} does not say when a resource changes")
            if not _is_modern(client):
                await client.session.send_request(_subscribe(uri), _empty())
            self._watched.add(uri)
            if _is_modern(client):
                await self._listen_anew()

        async with self._watching:
            try:
                await self._in_time(begun, f"whether it will say when {visible(uri)} changes")
            except BaseException:
                self._watched.discard(uri)
                raise

    async def unwatch(self, uri: str, *, unless: Callable[[], bool]) -> None:
        """Undo `watch`, `unless` somebody watches it again by now. A server that is not connected is not told."""

        async def ended(client: Client) -> None:
            if _is_modern(client):
                await self._listen_anew()
            else:
                await client.session.send_request(_unsubscribe(uri), _empty())

        async with self._watching:
            if unless():
                return
            self._watched.discard(uri)
            if self._link is not None:
                await self._in_time(ended, f"that it no longer watches {visible(uri)}")

    async def set_level(self, level: str) -> None:
        """Have the server send log messages of this level and above, on every connection from now on."""
        self._level = level
        if self._link is not None:
            with suppress(UpstreamGone, UpstreamRefusal):
                await self._in_time(self._tell_level, "which log messages it sends")

    async def _tell_level(self, client: Client) -> None:
        from mcp_types import SetLevelRequest, SetLevelRequestParams

        # The newer protocol has no level of a connection: there, `_client` says which messages it wants.
        if self._level and client.server_capabilities.logging is not None and not _is_modern(client):
            level: Any = self._level
            await client.session.send_request(SetLevelRequest(params=SetLevelRequestParams(level=level)), _empty())

    async def _tell_again(self, client: Client) -> None:
        """Tell a new connection what the one before it was told. What changed meanwhile is not known: look again."""
        with suppress(Exception):  # what it cannot do now, it could not do before
            async with asyncio.timeout(LISTING):
                await self._tell_level(client)
                for uri in () if _is_modern(client) else sorted(self._watched):
                    await client.session.send_request(_subscribe(uri), _empty())
        for uri in self._watched:
            self.on_notice(ChangeNotice("resource", uri))

    async def _in_time(self, work: Callable[[Client], Awaitable[None]], what: str) -> None:
        async def limited(client: Client) -> None:
            try:
                async with asyncio.timeout(LISTING):
                    await work(client)
            except TimeoutError as error:
                name = self.server.name
                raise UpstreamRefusal(
                    f"the MCP server {name} did not say within {LISTING:.0f} seconds {what}"
                ) from error

        await self._ask(limited)

    async def _listen_anew(self) -> None:
        """Have the stream of changes opened anew, with what is watched now, and wait until it is open."""
        self._heeded.clear()
        self._listens.set()
        await self._heeded.wait()

    async def _listen(self, client: Client) -> None:
        """Keep a stream of changes open, for a server of the newer protocol. An older one says them without."""
        while _is_modern(client):
            self._listens.clear()
            can = client.server_capabilities
            asked = {
                "tools_list_changed": can.tools is not None and bool(can.tools.list_changed),
                "prompts_list_changed": can.prompts is not None and bool(can.prompts.list_changed),
                "resources_list_changed": can.resources is not None and bool(can.resources.list_changed),
            }
            with suppress(Exception):  # it is opened again below
                if any(asked.values()) or self._watched:
                    async with client.listen(**asked, resource_subscriptions=sorted(self._watched)) as stream:
                        self._heeded.set()
                        await _first_of(_drained(stream), self._listens.wait())
            self._heeded.set()
            if not self._listens.is_set():
                async with _at_most(LISTENING_AGAIN):
                    await self._listens.wait()

    async def _hear(self, message: object) -> None:
        """Take what the server says unasked. It is called for each message, and must not wait."""
        import mcp_types as types

        match message:
            case types.ToolListChangedNotification():
                self.on_notice(ChangeNotice("tools"))
            case types.ResourceListChangedNotification():
                self.on_notice(ChangeNotice("resources"))
            case types.PromptListChangedNotification():
                self.on_notice(ChangeNotice("prompts"))
            case types.ResourceUpdatedNotification() if len(str(message.params.uri)) <= LONGEST_URI:
                self.on_notice(ChangeNotice("resource", str(message.params.uri)))
            case types.LoggingMessageNotification():
                told = LogMessage(message.params.level, message.params.data, message.params.logger)
                self.on_notice(bounded(told, self.server.secrets))
            case _:
                pass

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
        except (_Silence, UpstreamRefusal):
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
                link = _Link(self._client, hears=self._hear, beside=self._listen)
                try:
                    await link.open()
                    if self._level or self._watched:
                        await link.ask(self._tell_again)
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

    def _client(self, hears: Hears) -> Client:
        try:
            import httpx2
            from mcp.client.client import Client
            from mcp.client.sse import sse_client
            from mcp.client.stdio import StdioServerParameters, stdio_client
            from mcp.client.streamable_http import streamable_http_client
        except ImportError as error:
            raise MissingExtra("the proxy", "mcp") from error
        server, headers = self.server, dict(self.server.headers)
        handler: Any = hears
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
        return Client(source, mode="auto", cache=None, message_handler=handler, log_level=PASSED)

    def _hidden(self, text: str) -> str:
        return safe_beginning(text, longest=LONGEST_ERROR, secrets=self.server.secrets)

    def _broken(self, error: Exception) -> str:
        why = f"{self._hidden(_inner(error))}{self._log.told()}"
        if isinstance(error, _Unreadable):
            return f"the connection to the MCP server {self.server.name} was closed: {why}"
        return f"the MCP server {self.server.name} closed the connection: {why}"

    def _not_there(self, error: Exception) -> str:
        why = f"{self._hidden(_inner(error))}{self._log.told()}"
        if not self.server.command:
            return f"the MCP server {self.server.name} cannot be reached: {why}"
        command = self._hidden(shlex.join(self.server.command))
        return f"the MCP server {self.server.name} did not start: {why}; try its command yourself: {command}"


class _Link:
    """A connection. It lives in its own task, because the task that opened it has to close it."""

    def __init__(
        self, client: Callable[[Hears], Client], *, hears: Hears, beside: Callable[[Client], Awaitable[None]]
    ) -> None:
        """`hears` is called for each message of the server. `beside` runs for as long as the connection is open."""
        self._client = client(self._hear)
        self._hears = hears
        self._beside = beside
        self._ready = asyncio.Event()
        self._over = asyncio.Event()
        self._error: Exception | None = None
        self._task: asyncio.Task[None] | None = None

    async def _hear(self, message: object) -> None:
        """Pass a message on. An answer that cannot be read ends the connection for all who wait for one."""
        from pydantic import ValidationError

        if isinstance(message, ValidationError) and _is_answer(message):
            self._error = _Unreadable("its answer cannot be read")
            self._over.set()
        else:
            await self._hears(message)

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
            if self._error is not None:
                raise self._error from (asking.exception() if asking.done() else None)
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
            beside = asyncio.ensure_future(self._beside(client))
            try:
                await self._over.wait()
            finally:
                beside.cancel()
                await asyncio.wait([beside], timeout=1)


@asynccontextmanager
async def _with(web: httpx2.AsyncClient, transport: AbstractAsyncContextManager[T]) -> AsyncGenerator[T]:
    """Open a transport together with its HTTP client."""
    async with web, transport as streams:
        yield streams


def _unheard(notice: Notice) -> None:
    """Discard what a server says unasked, where nobody is told."""


def _is_answer(error: ValidationError) -> bool:
    """Whether what cannot be read was meant as an answer, and is no line that a program prints by the way."""
    sent: object = error.errors(include_url=False)[0]["input"]
    text = sent if isinstance(sent, str) else sent.decode(errors="replace") if isinstance(sent, bytes) else ""
    if isinstance(sent, dict):
        return "jsonrpc" in sent and "id" in sent and "method" not in sent
    return '"jsonrpc"' in text and '"method"' not in text and id_of(text) is not None


def _is_modern(client: Client) -> bool:
    """Return whether a server speaks the protocol in which changes come on a stream that the client opens."""
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    return client.protocol_version in MODERN_PROTOCOL_VERSIONS


def _subscribe(uri: str) -> Any:
    from mcp_types import SubscribeRequest, SubscribeRequestParams

    return SubscribeRequest(params=SubscribeRequestParams(uri=uri))


def _unsubscribe(uri: str) -> Any:
    from mcp_types import UnsubscribeRequest, UnsubscribeRequestParams

    return UnsubscribeRequest(params=UnsubscribeRequestParams(uri=uri))


def _empty() -> Any:
    from mcp_types import EmptyResult

    return EmptyResult


async def _drained(stream: Any) -> None:
    """Read a stream of changes to its end. Each change also comes as a message, which is how it is passed on."""
    async for _ in stream:
        pass


async def _first_of(*works: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of them is done, and end the others."""
    tasks = [asyncio.ensure_future(one) for one in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def _at_most(seconds: float) -> AsyncGenerator[None]:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            yield


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
                text = line.decode(errors="replace").rstrip("\n")
                text = safe_text(text, secrets=self._server.secrets, lines=True, output=True)
                if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                    text = f"{text[: LONGEST_LINE // 2]}…"  # a secret cut at the end would not be recognised and masked
                    while (rest := lines.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                        pass
                if text.strip():
                    self._last = shortened(" ".join(text.split()), 300)
                with suppress(OSError, ValueError):
                    sys.stderr.write(f"[{self._server.name}] {text}\n")
                    sys.stderr.flush()
