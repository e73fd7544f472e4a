"""Definitions of other servers' tools that were accepted: a tool that is defined otherwise later is asked about."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from signoff.broker.ledger import Ledger
from signoff.core.canonical import digest_of
from signoff.core.record import EventDraft
from signoff.core.tool_definition import ToolDefinition, ToolPin
from signoff.ports import Transaction


class BrokerPins:
    """The broker's part about definitions of tools."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def of(self, toolset: str, tools: Iterable[str]) -> dict[str, ToolPin]:
        """What was accepted of these tools, by their names."""
        names = list(tools)

        def work(tx: Transaction) -> dict[str, ToolPin]:
            kept = ((name, tx.settings.get(_name(toolset, name))) for name in names)
            return {name: ToolPin.read(text) for name, text in kept if text is not None}

        return await self._ledger.store.read(work)

    async def put(self, definition: ToolDefinition, *, by: str, instead_of: ToolPin | None, request: str = "") -> bool:
        """Accept a definition from now on. False, and nothing changes, where another one was accepted meanwhile.

        `instead_of` is what was accepted when whoever says so looked, `by` whose word it is, `request` the request that
        was approved, if any.
        """
        name, journal = _name(definition.toolset, definition.tool), self._ledger.journal

        def work(tx: Transaction, now: datetime) -> bool:
            kept = tx.settings.get(name)
            before = ToolPin.read(kept).definition if kept is not None else None
            if before is not None and before.digest == definition.digest:
                return True
            if before != (instead_of.definition if instead_of is not None else None):
                return False
            tx.settings.put(name, ToolPin(definition=definition, by=by, at=now).text())
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
    """The name of a pin among the settings of a store: servers choose the names of tools, so those are digested."""
    return f"tool-definition:{digest_of(json.dumps([toolset, tool]))}"
