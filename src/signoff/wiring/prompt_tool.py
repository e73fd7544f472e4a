"""An MCP server with one tool, `approve`, which Claude Code asks in headless mode instead of its user.

Use: `claude -p … --permission-prompt-tool mcp__signoff__approve`. Everything but a clear yes denies the call.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from signoff.broker import new_id
from signoff.errors import MissingExtra
from signoff.outside.coding_agents import CLAUDE_CODE, said
from signoff.outside.git_repositories import looked_around
from signoff.wiring.outside_desk import OutsideDesk

if TYPE_CHECKING:
    from mcp.server import MCPServer


@dataclass(slots=True)
class PromptTool:
    """Answers the permission prompts of one Claude Code, which started this process."""

    project: str
    store: str | None = None
    patience: timedelta = timedelta(hours=1)
    session: str = field(default_factory=new_id)
    directory: str = field(default_factory=lambda: os.path.realpath(os.curdir))
    """Where Claude Code started this process. Relative paths start from there."""
    _desk: OutsideDesk = field(init=False)

    def __post_init__(self) -> None:
        self._desk = OutsideDesk(self.project)

    async def approve(self, tool_name: str, input: dict[str, Any], tool_use_id: str = "") -> str:
        """Whether a tool may run, as JSON in Claude Code's words."""
        try:
            gate = self._desk.gate(self.project, self.store, caller=os.getpid(), takes_edits=True)
            call = CLAUDE_CODE.call(
                tool_name,
                input,
                session=f"{CLAUDE_CODE.name}:{self.session}",
                call_id=tool_use_id or new_id(),
                where=self.directory,
            )
            call = looked_around(replace(call, shown_session=self.session), gate.root)
            permission = await gate.decide(call, until=gate.broker.clock.now() + self.patience)
        except Exception as error:
            return _no(f"signoff: refused, because it could not be checked: {type(error).__name__}: {error}")
        if not permission.allowed:
            return _no(said(permission))
        return json.dumps({"behavior": "allow", "updatedInput": dict(permission.args)})

    def close(self) -> None:
        """Close the store."""
        self._desk.close()


def _no(message: str) -> str:
    return json.dumps({"behavior": "deny", "message": message})


def prompt_server(tool: PromptTool) -> MCPServer[Any]:
    """Build the MCP server, to be served over stdio."""
    try:
        from mcp.server import MCPServer
    except ImportError as error:
        raise MissingExtra("the permission tool", "mcp") from error
    server: MCPServer[Any] = MCPServer("signoff", log_level="ERROR")
    server.tool(
        name="approve",
        description="Asks the people of this project whether a tool may run.",
        structured_output=False,
    )(tool.approve)
    return server
