"""A workflow of Temporal with a gated agent: `PLACE HOW MODULES`.

`main` starts Temporal's own development server on loopback and prints how the workflow, or its worker, ended. `MODULES`
pass through the sandbox of workflows. It is imported, not run: Temporal imports the module of a workflow anew.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.durable_exec.temporal import PydanticAIPlugin, PydanticAIWorkflow, TemporalDurability
from temporalio import workflow
from temporalio.client import WorkflowFailureError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from signoff import ApprovalDecision, Signoff
from signoff.testing import ScriptedModel

PLACE, HOW, MODULES = sys.argv[1:4]


def yes(request: object) -> ApprovalDecision:
    return ApprovalDecision(approved=True)


async def yes_later(request: object) -> ApprovalDecision:
    await asyncio.sleep(0)
    return ApprovalDecision(approved=True)


WAYS: dict[str, dict[str, Any]] = {
    "allowed": {"policy": [{"allow": "pay"}]},
    "denied": {"policy": [{"deny": "pay"}]},
    "left": {"policy": [{"ask": "pay"}], "wait": "suspend"},
    "async approver": {"policy": [{"ask": "pay"}], "approver": yes_later},
    "run again": {"policy": [{"ask": "pay"}], "approver": yes_later},
    "approver": {"policy": [{"ask": "pay"}], "approver": yes},
    "terminal": {"policy": [{"ask": "pay"}]},
    "store": {"policy": [{"allow": "pay"}], "store": f"sqlite:{PLACE}/approvals.db"},
}
agent = Agent(
    ScriptedModel([{"calls": [{"tool": "pay", "args": {"amount": 3}}]}, {"say": "{{last}}"}]),
    name="shop",
    output_type=[str, DeferredToolRequests],
    capabilities=[TemporalDurability(), Signoff(**WAYS[HOW])],
)


@agent.tool_plain
async def pay(amount: int) -> str:
    return f"paid {amount}"


@workflow.defn
class Shop(PydanticAIWorkflow):
    __pydantic_ai_agents__ = (agent,)

    @workflow.run
    async def run(self, prompt: str) -> str:
        result = await agent.run(prompt)
        return result.output if isinstance(result.output, str) else "left for later"


def innermost(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error)


async def main() -> None:
    server = await WorkflowEnvironment.start_local(
        ip="127.0.0.1", dev_server_existing_path=shutil.which("temporal"), plugins=[PydanticAIPlugin()]
    )
    modules = [name for name in MODULES.split(",") if name]
    restrictions = SandboxRestrictions.default.with_passthrough_modules(*modules)
    async with server:
        try:
            async with Worker(
                server.client,
                task_queue="shop",
                workflows=[Shop],
                max_cached_workflows=0 if HOW == "run again" else 10,
                workflow_runner=SandboxedWorkflowRunner(restrictions=restrictions),
            ):
                print(await server.client.execute_workflow(Shop.run, "pay", id="1", task_queue="shop"))
        except WorkflowFailureError as error:
            print("workflow failed:", innermost(error))
        except RuntimeError as error:
            print("no worker:", innermost(error))
