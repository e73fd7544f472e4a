"""Transports of the MCP proxy: stdio, or HTTP on localhost with a bearer token."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from signoff.core.strict_json import MOST_BYTES
from signoff.errors import MissingExtra, SignoffError, WrongUse
from signoff.large_work import share_the_process
from signoff.regular_file import open_regular
from signoff.wiring.mcp_audience import McpAudience
from signoff.wiring.mcp_proxy import McpProxy, ProxyCaller
from signoff.wiring.mcp_upstream import McpUpstream, UpstreamGone, UpstreamRefusal
from signoff.wiring.strict_messages import REFUSED, StrictBodies, strict_input

if TYPE_CHECKING:
    import mcp_types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

T = TypeVar("T")
PATH = "/mcp"
SHORTEST_TOKEN = 16
MOST_SENT = 8 * MOST_BYTES
"""The longest message, in bytes over HTTP, in characters on a pipe: in JSON a character may take six."""


def proxy_server(proxy: McpProxy) -> Server[Any]:
    """Build the MCP server that clients talk to."""
    try:
        from mcp.server.lowlevel import NotificationOptions, Server
        from mcp_types import RequestParams, SetLevelRequestParams
    except ImportError as error:
        raise MissingExtra("the proxy", "mcp") from error
    audience = McpAudience(proxy.upstreams)
    offered = _Offered(proxy, audience)
    made: Server[Any] = Server(
        "signoff",
        on_list_tools=offered.tools,
        on_call_tool=offered.call,
        on_list_resources=offered.resources,
        on_list_resource_templates=offered.templates,
        on_read_resource=offered.resource,
        on_list_prompts=offered.prompts,
        on_get_prompt=offered.prompt,
        on_completion=offered.completion,
        on_subscribe_resource=offered.subscribe,
        on_unsubscribe_resource=audience.unsubscribe,
        on_subscriptions_listen=offered.listen,
    )
    # Clients of today set it; the library calls it deprecated as the newer protocol has no level of a connection.
    made.add_request_handler("logging/setLevel", SetLevelRequestParams, audience.set_level)
    made.add_request_handler(REFUSED, RequestParams, offered.refused)
    changes = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    plain: Any = made
    plain.create_initialization_options = partial(made.create_initialization_options, changes)
    return made


class _Offered:
    """Handlers for protocol requests. Tools go through the gate; resources and prompts are passed on unchanged."""

    def __init__(self, proxy: McpProxy, audience: McpAudience) -> None:
        self._proxy = proxy
        self._audience = audience

    async def tools(self, ctx: ServerRequestContext[Any], params: object) -> mcp_types.ListToolsResult:
        from mcp_types import ListToolsResult

        self._audience.meet(ctx)
        return ListToolsResult(tools=await _told(self._proxy.tools()))

    async def call(
        self, ctx: ServerRequestContext[Any], params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        self._audience.meet(ctx)
        return await self._proxy.call(params.name, dict(params.arguments or {}), _caller(ctx))

    async def resources(self, ctx: ServerRequestContext[Any], params: object) -> mcp_types.ListResourcesResult:
        from mcp_types import ListResourcesResult

        self._audience.meet(ctx)
        return ListResourcesResult(resources=await self._all(lambda one: one.resources()))

    async def templates(self, ctx: ServerRequestContext[Any], params: object) -> mcp_types.ListResourceTemplatesResult:
        from mcp_types import ListResourceTemplatesResult

        return ListResourceTemplatesResult(resource_templates=await self._all(lambda one: one.templates()))

    async def resource(
        self, ctx: ServerRequestContext[Any], params: mcp_types.ReadResourceRequestParams
    ) -> mcp_types.ReadResourceResult:
        return await self._first(lambda one: one.resource(str(params.uri)))

    async def prompts(self, ctx: ServerRequestContext[Any], params: object) -> mcp_types.ListPromptsResult:
        from mcp_types import ListPromptsResult

        self._audience.meet(ctx)
        return ListPromptsResult(prompts=await self._all(lambda one: one.prompts()))

    async def prompt(
        self, ctx: ServerRequestContext[Any], params: mcp_types.GetPromptRequestParams
    ) -> mcp_types.GetPromptResult:
        return await self._first(lambda one: one.prompt(params.name, params.arguments))

    async def completion(
        self, ctx: ServerRequestContext[Any], params: mcp_types.CompleteRequestParams
    ) -> mcp_types.CompleteResult:
        told = params.context.arguments if params.context is not None else None
        argument = {"name": params.argument.name, "value": params.argument.value}
        return await self._first(lambda one: one.completion(params.ref, argument, told))

    async def subscribe(
        self, ctx: ServerRequestContext[Any], params: mcp_types.SubscribeRequestParams
    ) -> mcp_types.EmptyResult:
        return await _told(self._audience.subscribe(ctx, params))

    async def refused(self, ctx: ServerRequestContext[Any], params: object) -> Any:
        """Answer a request whose message was refused."""
        from mcp import MCPError
        from mcp_types import INVALID_REQUEST

        raise MCPError(code=INVALID_REQUEST, message=f"signoff: refused: {(ctx.params or {}).get('why', '')}")

    async def listen(
        self, ctx: ServerRequestContext[Any], params: mcp_types.SubscriptionsListenRequestParams
    ) -> mcp_types.SubscriptionsListenResult:
        return await _told(self._audience.listen(ctx, params))

    async def _all(self, asks: Callable[[McpUpstream], Awaitable[list[T]]]) -> list[T]:
        """Collect the items of all servers that can be reached."""
        found: list[T] = []
        for upstream in self._proxy.upstreams:
            try:
                found += await asks(upstream)
            except (UpstreamGone, UpstreamRefusal):
                if len(self._proxy.upstreams) == 1:
                    await _told(asks(upstream))  # raises with the reason
        return found

    async def _first(self, asks: Callable[[McpUpstream], Awaitable[T]]) -> T:
        """Return the answer of the first server that has one."""
        *others, last = self._proxy.upstreams
        for upstream in others:
            try:
                return await asks(upstream)
            except (UpstreamGone, UpstreamRefusal):
                continue
        return await _told(asks(last))


async def _told(work: Awaitable[T]) -> T:
    """Await some work, and convert errors behind the proxy to protocol errors (`MCPError`)."""
    from mcp import MCPError
    from mcp_types import INTERNAL_ERROR

    try:
        return await work
    except (UpstreamGone, UpstreamRefusal, SignoffError) as error:
        raise MCPError(code=INTERNAL_ERROR, message=f"signoff: {error}") from error


def _caller(ctx: ServerRequestContext[Any]) -> ProxyCaller:
    params = ctx.session.client_params
    info = params.client_info if params is not None else None
    headers: Any = getattr(ctx.request, "headers", None)
    return ProxyCaller(
        session=str(headers.get("mcp-session-id") or "") if headers is not None else "",
        claim=f"{info.name} {info.version}".strip() if info is not None else "",
        reports=ctx.session.report_progress,
    )


# --- transports ---


async def serve_stdio(proxy: McpProxy) -> None:
    """Serve the client that started this process over stdio, until it closes the connection."""
    server = proxy_server(proxy)
    _quiet()
    share_the_process()
    from mcp.server.stdio import stdio_server

    async def end() -> None:
        await proxy.close()
        os._exit(0)  # a thread waits for the client's next line, which may never come

    ends: list[asyncio.Future[None]] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, lambda: ends.append(asyncio.ensure_future(end())))
    try:
        async with strict_input(most=MOST_SENT) as lines, stdio_server(stdin=cast("Any", lines)) as (read, write):
            await server.run(read, write, server.create_initialization_options())
    finally:
        await proxy.close()


async def serve_http(proxy: McpProxy, made: socket.socket, token: str) -> None:
    """Serve clients over HTTP that know the token, until a signal ends it. DNS rebinding protection is on."""
    server = proxy_server(proxy)
    _quiet()
    share_the_process()
    from mcp.server.transport_security import TransportSecuritySettings

    from signoff.server.listener import listener_for

    names = [f"{host}:{made.getsockname()[1]}" for host in ("127.0.0.1", "localhost")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=names, allowed_origins=[f"http://{one}" for one in names]
    )
    app = server.streamable_http_app(streamable_http_path=PATH, transport_security=security)
    guarded = TokenGuard(BodyLimit(StrictBodies(app, most=MOST_SENT)), token)
    try:
        await listener_for(guarded, lifespan=True, signals=True).serve(sockets=[made])
    finally:
        await proxy.close()


class TokenGuard:
    """ASGI middleware that requires the bearer token. It answers 401 otherwise."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and self._knows(scope)):
            await self._app(scope, receive, send)
            return
        from starlette.responses import PlainTextResponse

        refusal = PlainTextResponse("signoff: send the token of this proxy: Authorization: Bearer …\n", 401)
        refusal.headers["WWW-Authenticate"] = "Bearer"
        await refusal(scope, receive, send)

    def _knows(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._expected)


class BodyLimit:
    """ASGI middleware that answers 413 to a body of more than `MOST_SENT` bytes, and reads no more of it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        said = next((value for name, value in scope.get("headers", ()) if name == b"content-length"), b"0")
        if int(said) > MOST_SENT:
            from starlette.responses import PlainTextResponse

            refusal = PlainTextResponse(f"signoff: a message has at most {MOST_SENT:,} bytes\n", 413)
            await refusal(scope, receive, send)
            return
        left = MOST_SENT

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            return message if left >= 0 else {"type": "http.disconnect"}

        await self._app(scope, counted, send)


def token_in(file: str) -> str:
    """Return the token from a file that only its owner can read. Creates a missing file with a random token."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _kept_token(file)
    except OSError as error:
        raise WrongUse(f"{file} cannot be written: {error.strerror}") from error
    token = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w") as opened:
        opened.write(f"{token}\n")
    return token


def _kept_token(file: str) -> str:
    try:
        with open_regular(file) as opened:
            if os.fstat(opened.fileno()).st_mode & 0o077:
                raise WrongUse(f"others may read {file}, which holds a token: chmod 600 {file}")
            token = opened.read(10_000).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"the token cannot be read from {file}: {error}") from error
    if len(token) < SHORTEST_TOKEN or not token.isprintable() or " " in token:
        raise WrongUse(f"{file} should hold one token of {SHORTEST_TOKEN} characters or more, and nothing else")
    return token


def _quiet() -> None:
    """Silence the libraries: their logs would hold unescaped texts of servers and clients."""
    for name in ("mcp", "fastmcp", "httpx2", "httpx", "uvicorn"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
