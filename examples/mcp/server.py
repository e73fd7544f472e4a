"""A ticket desk as an MCP server: tickets in a JSON file, served over the program's pipes or over HTTP.

python server.py                  # stdio, as signoff starts it
python server.py --http 8765      # http://127.0.0.1:8765/mcp
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

FILE = Path(os.environ.get("TICKETS", "tickets.json"))
READS = ToolAnnotations(readOnlyHint=True, openWorldHint=False)
CHANGES = ToolAnnotations(readOnlyHint=False, destructiveHint=False, openWorldHint=False)
DESTROYS = ToolAnnotations(readOnlyHint=False, destructiveHint=True, openWorldHint=False)

desk = MCPServer("tickets", log_level="ERROR")


def load() -> dict[str, Any]:
    return json.loads(FILE.read_text("utf-8"))


def save(tickets: dict[str, Any]) -> None:
    FILE.write_text(json.dumps(tickets, indent=2) + "\n", "utf-8")


@desk.tool(annotations=READS)
def list_tickets() -> str:
    """List all tickets: number, state and title."""
    return "\n".join(f"{number} {ticket['state']}: {ticket['title']}" for number, ticket in load().items())


@desk.tool(annotations=READS)
def read_ticket(number: str) -> str:
    """Read one ticket with its comments."""
    ticket = load()[number]
    return "\n".join([f"{number} {ticket['state']}: {ticket['title']}", *ticket["comments"]])


@desk.tool(annotations=CHANGES)
def comment(number: str, text: str) -> str:
    """Add a comment to a ticket."""
    tickets = load()
    tickets[number]["comments"].append(text)
    save(tickets)
    return f"commented on {number}"


@desk.tool(annotations=CHANGES)
def close_ticket(number: str) -> str:
    """Close a ticket."""
    tickets = load()
    tickets[number]["state"] = "closed"
    save(tickets)
    return f"closed {number}"


@desk.tool(annotations=DESTROYS)
def delete_ticket(number: str) -> str:
    """Delete a ticket for good."""
    tickets = load()
    del tickets[number]
    save(tickets)
    return f"deleted {number}"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        desk.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        desk.run("stdio")
