"""`McpAudience`: the clients of a proxy, and which of them is told what its servers say unasked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from signoff.core.visible_text import quoted, visible
from signoff.errors import WrongUse
from signoff.wiring.mcp_notices import (
    LEVELS,
    LONGEST_URI,
    MOST_WATCHED,
    PASSED,
    ChangeNotice,
    LogMessage,
    Notice,
    NoticeQueue,
)
from signoff.wiring.mcp_upstream import McpUpstream, UpstreamGone, UpstreamRefusal

if TYPE_CHECKING:
    import mcp_types
    from mcp.server.context import ServerRequestContext


@dataclass(slots=True, eq=False)
class _Listener:
    """Whoever is told: a client's connection, or all streams that clients of the newer protocol have opened."""

    queue: NoticeQueue
    logs: bool = True
    level: str = PASSED
    watched: set[str] = field(default_factory=set[str])

    def hear(self, notice: Notice) -> None:
        if isinstance(notice, LogMessage):
            if self.logs and LEVELS.index(notice.level) >= LEVELS.index(self.level):
                self.queue.put(notice)
        elif notice.what != "resource":
            self.queue.put(notice)
        elif (watched := self._watched_for(notice.uri)) is not None:
            self.queue.put(notice, instead=ChangeNotice("resource", watched))

    def _watched_for(self, uri: str) -> str | None:
        """Return the watched resource that a resource is or belongs to."""
        if uri in self.watched:
            return uri
        return next((one for one in self.watched if uri.startswith(f"{one.rstrip('/')}/")), None)


class McpAudience:
    """Who is told what. Watches a resource at its server for as long as a client watches it."""

    def __init__(self, upstreams: Sequence[McpUpstream]) -> None:
        from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

        self._upstreams = upstreams
        self._clients: dict[object, _Listener] = {}
        self._bus = InMemorySubscriptionBus()
        self._streams = _Listener(NoticeQueue(self._publish), logs=False)
        self._serve_stream = ListenHandler(self._bus)
        self._watched: dict[str, tuple[McpUpstream, set[object]]] = {}
        """By URI: the server that has the resource, and who watches it."""
        self._leaving = set[asyncio.Task[None]]()
        for upstream in upstreams:
            upstream.on_notice = self._heard

    # --- what clients ask ---

    def meet(self, ctx: ServerRequestContext[Any]) -> None:
        """Note a client, which is told from now on until its connection ends."""
        self._listener(ctx)

    async def subscribe(self, ctx: ServerRequestContext[Any], params: mcp_types.SubscribeRequestParams) -> Any:
        from mcp_types import EmptyResult

        if (listener := self._listener(ctx)) is not None:
            await self._watch(listener, str(params.uri))
            listener.watched.add(str(params.uri))
        return EmptyResult()

    async def unsubscribe(self, ctx: ServerRequestContext[Any], params: mcp_types.UnsubscribeRequestParams) -> Any:
        from mcp_types import EmptyResult

        if (listener := self._listener(ctx)) is not None:
            listener.watched.discard(str(params.uri))
            await self._unwatch(listener, [str(params.uri)])
        return EmptyResult()

    async def set_level(self, ctx: ServerRequestContext[Any], params: mcp_types.SetLevelRequestParams) -> Any:
        from mcp_types import EmptyResult

        if (listener := self._listener(ctx)) is not None:
            listener.level = params.level
            least = min((one.level for one in self._clients.values()), key=LEVELS.index)
            await asyncio.gather(*(upstream.set_level(least) for upstream in self._upstreams))
        return EmptyResult()

    async def listen(
        self, ctx: ServerRequestContext[Any], params: mcp_types.SubscriptionsListenRequestParams
    ) -> mcp_types.SubscriptionsListenResult:
        """Serve a stream of changes, as a client of the newer protocol opens it."""
        holder, uris = object(), [str(one) for one in params.notifications.resource_subscriptions or ()]
        try:
            for uri in uris:
                with suppress(UpstreamGone, UpstreamRefusal):  # what no server offers never changes
                    await self._watch(holder, uri)
            return await self._serve_stream(ctx, params)
        finally:
            self._release(holder, uris)

    # --- clients ---

    def _listener(self, ctx: ServerRequestContext[Any]) -> _Listener | None:
        """Return the connection that a request came by; None for a client of the newer protocol: it opens streams."""
        from mcp.server.connection import Connection
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        # The library has no public name for the connection of a request. Without one, nothing is passed on.
        connection: object = getattr(ctx.session, "_connection", None)
        if not isinstance(connection, Connection) or ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return None
        if (known := self._clients.get(connection)) is None:
            known = self._clients[connection] = _Listener(NoticeQueue(_sender(connection)))
            connection.exit_stack.callback(self._left, connection)
        return known

    def _left(self, connection: object) -> None:
        if (listener := self._clients.pop(connection, None)) is not None:
            listener.queue.close()
            self._release(listener, sorted(listener.watched))

    # --- resources ---

    async def _watch(self, holder: object, uri: str) -> None:
        """Watch a resource at the first server that lets it be watched. Raises why the last one does not."""
        if len(uri) > LONGEST_URI:
            raise WrongUse(f"the address of a resource has more than {LONGEST_URI:,} characters")
        if (known := self._watched.get(uri)) is not None:
            known[1].add(holder)
            return
        if len(self._watched) >= MOST_WATCHED:
            raise WrongUse(f"the clients of this proxy watch {MOST_WATCHED:,} resources, and no more are passed on")
        refusal: Exception = UpstreamRefusal(f"no server has {quoted(visible(uri))}")
        for upstream in self._upstreams:
            try:
                await upstream.watch(uri)
            except (UpstreamGone, UpstreamRefusal) as error:
                refusal = error
            else:
                self._watched.setdefault(uri, (upstream, set[object]()))[1].add(holder)
                self._streams.watched.add(uri)
                return
        raise refusal

    async def _unwatch(self, holder: object, uris: Sequence[str]) -> None:
        for uri in uris:
            upstream, holders = self._watched.get(uri, (None, set[object]()))
            holders.discard(holder)
            if upstream is not None and not holders:
                del self._watched[uri]
                self._streams.watched.discard(uri)
                with suppress(UpstreamGone, UpstreamRefusal):
                    await upstream.unwatch(uri, unless=lambda uri=uri: uri in self._watched)

    def _release(self, holder: object, uris: Sequence[str]) -> None:
        """End what a client that is gone has watched."""
        if uris:
            task = asyncio.ensure_future(self._unwatch(holder, uris))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    # --- telling ---

    def _heard(self, notice: Notice) -> None:
        for listener in (*self._clients.values(), self._streams):
            listener.hear(notice)

    async def _publish(self, notice: Notice) -> None:
        from mcp.server.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ToolsListChanged

        if isinstance(notice, ChangeNotice):
            made = {"tools": ToolsListChanged, "prompts": PromptsListChanged, "resources": ResourcesListChanged}
            kind = made.get(notice.what)
            await self._bus.publish(kind() if kind is not None else ResourceUpdated(notice.uri))


def _sender(connection: Any) -> Callable[[Notice], Awaitable[None]]:
    """Return what tells a client over its connection."""

    async def send(notice: Notice) -> None:
        if isinstance(notice, LogMessage):
            params = {"level": notice.level, "data": notice.data}
            await connection.notify(
                "notifications/message", {**params, "logger": notice.logger} if notice.logger else params
            )
        elif notice.what == "resource":
            await connection.notify("notifications/resources/updated", {"uri": notice.uri})
        else:
            await connection.notify(f"notifications/{notice.what}/list_changed", None)

    return send
