"""The ticket desk of `examples/mcp` as a server that only lists its tools: it imports no library, so it starts at once.

`tests/examples` starts the real one.
"""

from __future__ import annotations

import json
import sys
from typing import Any

READS, CHANGES, DESTROYS = (
    {"readOnlyHint": True},
    {"readOnlyHint": False, "destructiveHint": False},
    {"readOnlyHint": False, "destructiveHint": True},
)
TOOLS = {
    "list_tickets": ("List all tickets.", (), READS),
    "read_ticket": ("Read one ticket with its comments.", ("number",), READS),
    "comment": ("Add a comment to a ticket.", ("number", "text"), CHANGES),
    "close_ticket": ("Close a ticket.", ("number",), CHANGES),
    "delete_ticket": ("Delete a ticket for good.", ("number",), DESTROYS),
}


def tool(name: str) -> dict[str, Any]:
    says, takes, hints = TOOLS[name]
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in takes}, "required": list(takes)}
    return {"name": name, "description": says, "inputSchema": schema, "annotations": {**hints, "openWorldHint": False}}


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        told = {"name": "tickets", "version": "1"}
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": told}
    if asked["method"] == "tools/list":
        return {"tools": [tool(name) for name in TOOLS]}
    return {}


if __name__ == "__main__":
    for line in sys.stdin:
        if "id" in (asked := json.loads(line)):
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked)}), flush=True)
