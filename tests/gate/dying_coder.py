"""Code mode in a process that dies while a person is asked about the second of three calls in the code.

Started again with an answer, it gives that answer and resumes the run.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_harness import CodeMode

from signoff import ApprovalDecision, Signoff, resume

ANSWERS = {
    "approve": ApprovalDecision(approved=True),
    "deny": ApprovalDecision(approved=False, note="never"),
    "edit": ApprovalDecision(approved=True, edited_args={"amount": 99}),
}
IN_TURN = """
said = []
for amount in (1, 2, 3):
    try:
        said.append(await pay(amount=amount))
    except Exception as error:
        said.append("denied: never" if "never" in str(error) else str(error))
said
"""
AT_ONCE = "import asyncio\nawait asyncio.gather(pay(amount=1), pay(amount=2), pay(amount=3))\n"


def answer(code: str, messages: list[ModelMessage]) -> ModelResponse:
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(str(last.content))])
    return ModelResponse(parts=[ToolCallPart("run_code", {"code": code}, tool_call_id="c1")])


async def main(directory: Path, code: str, decision: str) -> None:
    async def approver(request: Any) -> bool:
        if request.args["amount"] == 2 and not decision:
            while len((directory / "asked").read_text().split()) < (3 if code == AT_ONCE else 2):
                await asyncio.sleep(0)
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    def asked(event: Any) -> None:
        if event.what == "asked":
            with (directory / "asked").open("a") as file:
                file.write(f"{event.call.args['amount']}\n")

    signoff = Signoff(
        [{"allow": "run_code"}, {"ask": "pay"}],
        store=f"sqlite:{directory}/signoff.db",
        approver=approver,
        observe=asked,
    )
    agent: Agent[Any, Any] = Agent(
        FunctionModel(lambda messages, info: answer(code, messages)),
        output_type=[str, DeferredToolRequests],
        capabilities=[CodeMode(), signoff],
    )

    @agent.tool_plain
    async def pay(amount: int) -> str:
        with (directory / "paid").open("a") as file:
            file.write(f"{amount}\n")
        return f"paid {amount}"

    if not decision:
        await agent.run("go")
    for request in await signoff.pending():
        if request.args["amount"] == 2:
            await signoff.answer(request.id, ANSWERS[decision], by="ana")
    [run] = await signoff.broker.runs.list()
    print((await resume(agent, run.run.id)).output)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), AT_ONCE if sys.argv[2] == "at once" else IN_TURN, sys.argv[3]))
