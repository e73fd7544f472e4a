"""Pins: accepted definitions of tools of MCP servers. A tool whose definition changes later is asked about."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from signoff.broker.ledger import Ledger
from signoff.core.canonical import digest_of
from signoff.core.codec import PIN
from signoff.core.record import EventDraft
from signoff.core.tool_definition import ToolDefinition, ToolPin
from signoff.ports import Transaction


class BrokerPins:
    """The part of the broker for pinned tool definitions."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def of(self, toolset: str, tools: Iterable[str]) -> dict[str, ToolPin]:
        """Return the pins of these tools, by name."""
        names = list(tools)

        def work(tx: Transaction) -> dict[str, ToolPin]:
            kept = ((name, tx.settings.get(_name(toolset, name))) for name in names)
            return {name: PIN.from_text(text) for name, text in kept if text is not None}

        return await self._ledger.store.read(work)

    async def put(self, definition: ToolDefinition, *, by: str, instead_of: ToolPin | None, request: str = "") -> bool:
        """Accept a definition from now on.

        Returns False, and changes nothing, if another one was accepted in the meantime. `instead_of` is the pin that
        the caller saw (compare and swap), `by` is who accepts it, and `request` is the approved request, if any.
        """
        name, journal = _name(definition.toolset, definition.tool), self._ledger.journal

        def work(tx: Transaction, now: datetime) -> bool:
            kept = tx.settings.get(name)
            before = PIN.from_text(kept).definition if kept is not None else None
            if before is not None and before.digest == definition.digest:
                return True
            if before != (instead_of.definition if instead_of is not None else None):
                return False
            tx.settings.put(name, PIN.to_text(ToolPin(definition=definition, by=by, at=now)))
            body = {
                "tool": journal.text(definition.tool),
                "toolset": journal.text(definition.toolset),
                "by": by,
                "schema": definition.digest,
                "description": journal.text(definition.description or ""),
                **({"before": before.digest} if before is not None else {}),
            }
            tx.record.append([EventDraft(kind="tool accepted", at=now, request=request, body=body)])
            return True

        return await self._ledger.write("pin", work)


def _name(toolset: str, tool: str) -> str:
    """The key of a pin among the settings of a store. Servers choose tool names, so the names are hashed."""
    return f"tool-definition:{digest_of(json.dumps([toolset, tool]))}"
