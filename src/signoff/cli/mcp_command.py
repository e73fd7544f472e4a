"""`signoff mcp`: sign-off for programs that speak MCP."""

from __future__ import annotations

import os
import secrets

import click

from signoff.cli import shared_options
from signoff.cli.durations import read_duration
from signoff.cli.loops import run
from signoff.outside.mcp_servers import read_upstream
from signoff.wiring.mcp_proxy import McpProxy, ProxyOptions
from signoff.wiring.mcp_upstream import McpUpstream
from signoff.wiring.prompt_tool import PromptTool, prompt_server
from signoff.wiring.proxy_server import PATH, serve_http, serve_stdio, token_in


@click.group()
def mcp() -> None:
    """Sign-off for programs that speak MCP."""


@mcp.command("approve-tool")
@click.option("--project", default="", metavar="DIR", help="Use the policy of this project. Default: the nearest one.")
@click.option("--wait", default="1h", show_default=True, metavar="TIME", help="How long a call waits for an answer.")
@click.option("--store", metavar="URL", help="Store for requests. Default: as for other commands.")
@shared_options.only_here
def approve_tool(project: str, wait: str, store: str | None) -> None:
    """Serve the MCP tool that a headless Claude Code asks instead of its user, on standard input and output.

    \b
    Example:
      claude -p "Fix the tests" --permission-prompt-tool mcp__signoff__approve \\
        --mcp-config '{"mcpServers": {"signoff": {"command": "signoff", "args": ["mcp", "approve-tool"]}}}'
    """
    tool = PromptTool(project=os.path.realpath(project or os.curdir), store=store, patience=read_duration(wait))
    try:
        prompt_server(tool).run()
    finally:
        tool.close()


@mcp.command("proxy")
@click.argument("upstream", nargs=-1, required=True, metavar="FILE|URL|-- COMMAND…", type=click.UNPROCESSED)
@click.option("--project", default="", metavar="DIR", help="Use the policy of this project. Default: the nearest one.")
@click.option("--client", default="", metavar="NAME", help="Name of the client: by it, later calls find their answers.")
@click.option("--name", default="", metavar="NAME", help="Name of the server, for a command or a URL. Default: mcp.")
@click.option("--wait", default="50s", show_default=True, metavar="TIME", help="How long a call waits for an answer.")
@click.option(
    "--http",
    metavar="PORT",
    type=click.IntRange(0, 65_535),
    help="Serve HTTP on 127.0.0.1, not standard input and output.",
)
@click.option("--token-file", metavar="FILE", help="File with the token for --http. Created if missing.")
@click.option("--store", metavar="URL", help="Store for requests. Default: as for other commands.")
@shared_options.only_here
def proxy(
    upstream: tuple[str, ...],
    project: str,
    client: str,
    name: str,
    wait: str,
    http: int | None,
    token_file: str | None,
    store: str | None,
) -> None:
    """Stand in front of MCP servers: every tool call is judged, asked about and recorded before it is passed on.

    FILE is a configuration with mcpServers, as MCP clients write it.

    \b
    Examples:
      signoff mcp proxy servers.json --client desktop
      signoff mcp proxy --name github -- npx -y @modelcontextprotocol/server-github
      signoff mcp proxy https://mcp.example/mcp --http 8427 --token-file ~/.config/proxy-token
    """
    if token_file is not None and http is None:
        raise click.UsageError("--token-file needs --http: standard input and output need no token.")
    directory = os.path.realpath(project or os.curdir)
    options = ProxyOptions(project=directory, store=store, client=client, patience=read_duration(wait))
    servers = read_upstream(upstream, name)
    token = token_in(os.path.expanduser(token_file)) if token_file is not None else secrets.token_urlsafe(32)

    async def stay() -> None:
        made = McpProxy([McpUpstream(server, directory) for server in servers], options)
        if http is None:
            await serve_stdio(made)
            return
        from signoff.server.listener import bound

        socket = bound("127.0.0.1", http)
        click.echo(f"signoff: http://127.0.0.1:{socket.getsockname()[1]}{PATH}", err=True)
        if token_file is None:
            click.echo(f"signoff: Authorization: Bearer {token}", err=True)
        await serve_http(made, socket, token)

    run(stay())
