"""A program whose agent runs in workflows of DBOS: `DIRECTORY begin|die|answer|wait`.

It begins the workflow, or finds the one that a process before it left; it ends at once, inside the tool, or with what
the workflow came to.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from dbos import DBOS, SetWorkflowID
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability

from signoff import Actor, ApprovalDecision, Signoff
from signoff.testing import ScriptedModel
from signoff.testing.office import soon

place, act = Path(sys.argv[1]), sys.argv[2]
DBOS(config={"name": "trial", "system_database_url": f"sqlite:///{place}/dbos.sqlite", "log_level": "ERROR"})
signoff = Signoff([{"ask": "pay"}], store=f"sqlite:{place}/approvals.db", wait="inline")
agent = Agent(
    ScriptedModel([{"calls": [{"tool": "pay", "args": {"amount": 3}, "id": "c1"}]}, {"say": "done"}]),
    name="shop",
    capabilities=[DBOSDurability(), signoff],
)


@agent.tool_plain
async def pay(amount: int) -> str:
    with (place / "paid.txt").open("a") as file:
        file.write(f"{amount}\n")
    if act == "die":
        os._exit(9)
    return "paid"


@DBOS.workflow()
async def work(prompt: str) -> str:
    return (await agent.run(prompt)).output


async def is_asked() -> bool:
    return bool(await signoff.pending())


async def main() -> None:
    DBOS.launch()
    if act in ("begin", "die"):
        with SetWorkflowID("w1"):
            handle = await DBOS.start_workflow_async(work, "pay")
    else:
        handle = await DBOS.retrieve_workflow_async("w1")
    if act != "wait":
        await soon(is_asked, "nothing was asked about", patience=110)
        waiting = await signoff.pending()
        print(*(one.id for one in waiting), flush=True)
        if act == "begin":
            os._exit(9)
        for one in waiting:
            await signoff.answer(one.id, ApprovalDecision(approved=True), by=Actor(name="ana"))
    print(await handle.get_result(), flush=True)
    os._exit(0)


asyncio.run(main())
