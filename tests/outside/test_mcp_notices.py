"""What MCP servers say unasked, through the proxy: to whom, in both protocols, and never more than fits."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types
import pytest
from mcp import MCPError
from mcp.client.client import Client
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.subscriptions import ResourceUpdated, ToolsListChanged
from tests.outside.test_mcp_proxy import Desk, desk, text_of

from signoff.outside.mcp_servers import UpstreamServer
from signoff.testing.office import soon
from signoff.wiring import mcp_notices
from signoff.wiring.mcp_notices import (
    LONGEST_LOG,
    MOST_LOGS,
    ChangeNotice,
    LatestProgress,
    LogMessage,
    Notice,
    NoticeQueue,
)
from signoff.wiring.mcp_proxy import McpProxy, ProxyOptions
from signoff.wiring.mcp_upstream import McpUpstream
from signoff.wiring.proxy_server import proxy_server

__all__ = ["desk"]
MOTTO, OTHER = "desk://motto", "desk://other"

SERVER = """
import json, sys

def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")

def tell(method, **params):
    send(method=f"notifications/{method}", params=params)

CAN = {"tools": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True}, "logging": {}}
asked = []
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message:
        continue
    result = {}
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": CAN, "serverInfo": {"name": "desk", "version": "1"}}
    elif method == "tools/list":
        takes = {"type": "object", "properties": {"do": {}}}
        result = {"tools": [{"name": "do", "inputSchema": takes}]}
    elif method == "resources/list":
        result = {"resources": []}
    elif method in ("resources/subscribe", "resources/unsubscribe", "logging/setLevel"):
        asked.append([method, *params.values()])
    elif method == "tools/call":
        what = params["arguments"]["do"]
        if what == "die":
            sys.exit(3)
        if what == "change":
            tell("tools/list_changed")
            tell("resources/updated", uri="desk://motto")
            tell("resources/updated", uri="desk://other")
        if what == "log":
            tell("message", level="debug", data="too much")
            tell("message", level="error", logger="ink", data={"word": "hunter2", "left": 3})
            tell("message", level="error", data="x" * 1_000_000)
        if what == "flood":
            for number in range(400):
                tell("message", level="error", data=number)
                tell("tools/list_changed")
                tell("resources/updated", uri=f"desk://motto/{number}")
                tell("progress", progressToken=params["_meta"]["progressToken"], progress=number)
        result = {"content": [{"type": "text", "text": json.dumps(asked)}]}
    else:
        send(id=message["id"], error={"code": -32601, "message": "x" * 1_000_000})
        continue
    send(id=message["id"], result=result)
    sys.stdout.flush()
"""


class Heard:
    """What a client is told."""

    def __init__(self) -> None:
        self.told: list[mcp_types.ServerNotification] = []

    async def __call__(self, message: Any) -> None:
        self.told.append(message)

    @property
    def changes(self) -> list[str]:
        kinds = {"ToolListChangedNotification": "tools", "ResourceUpdatedNotification": "resource"}
        return [
            f"{kind} {one.params.uri}" if isinstance(one, mcp_types.ResourceUpdatedNotification) else kind
            for one in self.told
            if (kind := kinds.get(type(one).__name__)) is not None
        ]

    @property
    def logs(self) -> list[mcp_types.LoggingMessageNotificationParams]:
        return [one.params for one in self.told if isinstance(one, mcp_types.LoggingMessageNotification)]


def proxy_of(desk: Desk, **upstreams: Any) -> McpProxy:
    (desk.directory / "signoff.yaml").write_text("policy: [{allow: '*'}]\n")
    made = [
        McpUpstream(
            UpstreamServer(name=name, command=(sys.executable, "-c", SERVER), env={"WORD": "hunter2"}),
            str(desk.directory),
            source=source,
        )
        for name, source in (upstreams or {"desk": None}).items()
    ]
    return McpProxy(made, ProxyOptions(project=str(desk.directory), store=f"sqlite:{desk.directory}/store.db"))


@asynccontextmanager
async def clients(proxy: McpProxy, *heard: Heard) -> AsyncGenerator[list[Client]]:
    """Clients of one proxy, which have listed the tools."""
    server = proxy_server(proxy)
    made = [Client(server, mode="legacy", message_handler=one) for one in heard]
    try:
        for client in made:
            await client.__aenter__()
            await client.list_tools()
        yield made
    finally:
        for client in reversed(made):
            await client.__aexit__(None, None, None)
        await proxy.close()


async def subscribe(client: Client, uri: str) -> None:
    request = mcp_types.SubscribeRequest(params=mcp_types.SubscribeRequestParams(uri=uri))
    await client.session.send_request(request, mcp_types.EmptyResult)


async def unsubscribe(client: Client, uri: str) -> None:
    request = mcp_types.UnsubscribeRequest(params=mcp_types.UnsubscribeRequestParams(uri=uri))
    await client.session.send_request(request, mcp_types.EmptyResult)


async def do(client: Client, what: str, **options: Any) -> list[list[str]]:
    return json.loads(text_of(await client.call_tool("do", {"do": what}, **options)))


async def test_a_client_is_told_what_changed_and_of_what_it_watches(desk: Desk) -> None:
    one, other = Heard(), Heard()
    async with clients(proxy_of(desk), one, other) as (first, second):
        assert first.server_capabilities.resources is not None and first.server_capabilities.resources.subscribe
        await subscribe(first, MOTTO)
        await subscribe(second, MOTTO)
        await subscribe(second, OTHER)
        assert await do(first, "change") == [["resources/subscribe", MOTTO], ["resources/subscribe", OTHER]]
        await soon(lambda: len(other.changes) == 3 and len(one.changes) >= 2, "not both are told")
        assert sorted(one.changes) == [f"resource {MOTTO}", "tools"]
        await unsubscribe(first, MOTTO)
        await unsubscribe(second, OTHER)
        assert await do(first, "change") == [
            ["resources/subscribe", MOTTO],
            ["resources/subscribe", OTHER],
            ["resources/unsubscribe", OTHER],
        ]
        await soon(lambda: len(other.changes) == 5, "the second is not told again")
        assert one.changes.count(f"resource {MOTTO}") == 1 and other.changes.count(f"resource {OTHER}") == 1


async def test_whoever_leaves_watches_nothing_any_more(desk: Desk) -> None:
    heard = Heard()
    proxy = proxy_of(desk)
    server = proxy_server(proxy)
    async with Client(server, mode="legacy", message_handler=heard) as stays:
        async with Client(server, mode="legacy") as leaves:
            await subscribe(leaves, MOTTO)

        async def is_told() -> bool:
            return ["resources/unsubscribe", MOTTO] in await do(stays, "nothing")

        await soon(is_told, "the server still thinks that somebody watches")
    await proxy.close()


async def test_log_messages_come_from_the_level_on_that_a_client_names(desk: Desk) -> None:
    one, other = Heard(), Heard()
    async with clients(proxy_of(desk), one, other) as (first, second):
        level = mcp_types.SetLevelRequest(params=mcp_types.SetLevelRequestParams(level="debug"))
        await second.session.send_request(level, mcp_types.EmptyResult)
        assert await do(first, "log") == [["logging/setLevel", "debug"]]
        await soon(lambda: len(other.logs) == 3 and len(one.logs) >= 2, "not both are told")
        assert await do(first, "nothing")  # what the first is told comes before this answer
        assert [log.level for log in one.logs] == ["error", "error"], "of the first, nobody has asked for more"
    assert "hunter2" not in str(one.told) and "left" in str(one.logs[0].data) and one.logs[0].logger == "ink"
    assert len(one.logs[1].data) < LONGEST_LOG + 100


async def test_a_server_that_never_stops_talking_is_told_briefly(desk: Desk) -> None:
    one, progress = Heard(), list[float]()

    async def reported(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    async with clients(proxy_of(desk), one) as (client,):
        await subscribe(client, MOTTO)
        await do(client, "flood", progress_callback=reported)
        assert await do(client, "nothing")
        await soon(lambda: one.logs[-1:] != [] and one.logs[-1].data == 399, "the last log message is lost")
    assert one.changes.count("tools") < 100 and progress == sorted(progress)


async def test_a_server_that_is_started_anew_is_told_again(desk: Desk) -> None:
    one = Heard()
    async with clients(proxy_of(desk), one) as (client,):
        await subscribe(client, MOTTO)
        died = await client.call_tool("do", {"do": "die"})
        assert died.is_error and "It is unknown whether the call happened" in text_of(died)
        assert await do(client, "nothing") == [["resources/subscribe", MOTTO]]
        await soon(lambda: one.changes == [f"resource {MOTTO}"], "what changed meanwhile is not told")


async def test_what_no_server_offers_is_refused_in_few_words(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    deaf: MCPServer = MCPServer("deaf", log_level="CRITICAL", subscriptions=False)
    async with clients(proxy_of(desk, deaf=deaf), Heard()) as (client,):
        with pytest.raises(MCPError, match="does not say when a resource changes"):
            await subscribe(client, MOTTO)
    async with clients(proxy_of(desk), Heard()) as (client,):
        with pytest.raises(MCPError, match="more than 4,096 characters"):
            await subscribe(client, f"desk://{'x' * 5000}")
        with pytest.raises(MCPError) as told:  # the server answers with a megabyte
            await client.read_resource(MOTTO)
        assert len(str(told.value)) < 20_000


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_between_the_protocols(desk: Desk, mode: Any) -> None:
    """A server of the newer protocol says changes on a stream; so does the proxy to a client of that."""
    server: MCPServer = MCPServer("desk", log_level="CRITICAL")

    @server.tool()
    async def change(ctx: Context) -> str:
        await ctx.notify_tools_changed()
        await ctx.notify_resource_updated(MOTTO)
        await ctx.notify_resource_updated(OTHER)
        return "changed"

    heard, proxy = Heard(), proxy_of(desk, modern=server)
    async with Client(proxy_server(proxy), mode=mode, message_handler=heard) as client:
        await client.list_tools()
        if mode == "legacy":
            await subscribe(client, MOTTO)
            await client.call_tool("change", {})
            await soon(lambda: len(heard.changes) == 2, "nothing is told")
            assert sorted(heard.changes) == [f"resource {MOTTO}", "tools"]
        else:
            async with client.listen(tools_list_changed=True, resource_subscriptions=[MOTTO]) as stream:
                await client.call_tool("change", {})
                async with asyncio.timeout(20):
                    told = {await anext(stream), await anext(stream)}
            assert told == {ToolsListChanged(), ResourceUpdated(MOTTO)}
    await proxy.close()


async def test_a_client_that_never_reads_holds_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_notices, "MOST_WATCHED", 10)
    monkeypatch.setattr(mcp_notices, "PAUSE", 0)
    taken, reads = list[Notice](), asyncio.Event()

    async def send(notice: Notice) -> None:
        taken.append(notice)
        await reads.wait()

    box = NoticeQueue(send)
    box.put(ChangeNotice("tools"))
    await soon(lambda: taken != [], "nothing is sent")
    for number in range(5_000):
        box.put(LogMessage("error", number))
        box.put(ChangeNotice("resource", f"desk://motto/{number}"), instead=ChangeNotice("resource", MOTTO))
        box.put(ChangeNotice("tools"))
    reads.set()
    await soon(lambda: LogMessage("error", 4_999) in taken, "the last is not told")
    assert len(taken) == 1 + 10 + 1 + 1 + MOST_LOGS and ChangeNotice("resource", MOTTO) in taken
    assert LogMessage("warning", "signoff: 4,900 log messages before this one were left out") in taken


async def test_of_the_progress_of_a_call_a_slow_client_gets_the_latest() -> None:
    taken, reads = list[float](), asyncio.Event()

    async def reports(progress: float, total: float | None, message: str | None) -> None:
        taken.append(progress)
        await reads.wait()

    latest = LatestProgress(reports)
    first = asyncio.create_task(latest(1, None, None))
    await soon(lambda: taken == [1], "nothing is reported")
    for number in range(2, 1_000):
        await asyncio.wait_for(latest(number, None, None), 10)
    reads.set()
    await first
    assert taken == [1, 999]
