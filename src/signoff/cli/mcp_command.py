"""`signoff mcp`: sign-off for whatever speaks MCP."""

from __future__ import annotations

import os

import click

from signoff.cli import shared_options


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
    from signoff.cli.durations import read_duration
    from signoff.wiring.prompt_tool import PromptTool, prompt_server

    tool = PromptTool(project=os.path.realpath(project or os.curdir), store=store, patience=read_duration(wait))
    try:
        prompt_server(tool).run()
    finally:
        tool.close()
