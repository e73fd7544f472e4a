"""Event loops of workflow engines that no thread can wake, such as Temporal's.

A workflow is code that the engine runs again after a crash, in a loop of its own: what waits there for a thread waits
for ever. PydanticAI's own errors end such a workflow; any other error makes the engine try again, without an end.
"""

from __future__ import annotations

import asyncio
import secrets
import sys

from pydantic_ai.exceptions import UserError

from signoff.errors import WrongUse


class UnusableHere(WrongUse, UserError):
    """The event loop, or the sandbox around a module, cannot do what is needed. It ends the workflow."""


def in_event_loop() -> bool:
    """Return whether an event loop is running in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def has_threads() -> bool:
    """Return whether a thread can wake the running event loop."""
    return loop_of_workflow() is None


def loop_of_workflow() -> asyncio.AbstractEventLoop | None:
    """Return the running event loop if no thread can wake it: one of a workflow, for each time its code is run."""
    loop = asyncio._get_running_loop()
    if loop is None or type(loop).call_soon_threadsafe is not asyncio.AbstractEventLoop.call_soon_threadsafe:
        return None
    return loop


def refuse_to_wait(what: str) -> None:
    """Raise `WrongUse` if `what` would wait for a thread in an event loop that no thread can wake."""
    if not has_threads():
        loop = type(asyncio.get_running_loop())
        raise UnusableHere(
            f"{what} needs threads, and the event loop of a workflow ({loop.__module__}) has none.\n"
            "  There a Signoff can allow and deny by its rules, leave questions for later, and ask an async function:\n"
            "  Signoff(rules, wait='suspend'), or Signoff(rules, approver=an_async_function), both without `store`"
        )


def refuse_import_in_sandbox() -> None:
    """Raise `WrongUse` if Temporal imports signoff anew for each workflow, into a sandbox."""
    if type(secrets).__module__.startswith("temporalio."):  # there a module is a stand-in that refuses what it can do
        raise UnusableHere(_SANDBOX)


def refuse_store_in_sandbox() -> None:
    """Raise `WrongUse` if the module that opens a store is imported anew for each workflow; signoff itself is not."""
    workflow = sys.modules.get("temporalio.workflow")
    if workflow is not None and workflow.unsafe.in_sandbox():
        raise UnusableHere(_SANDBOX)


_SANDBOX = (
    "Temporal imports modules anew for each workflow, into a sandbox where signoff can use no files and no threads.\n"
    "  Pass it through, and with it the module that makes the Signoff:\n"
    "  with workflow.unsafe.imports_passed_through(): around both imports, or\n"
    "  Worker(…, workflow_runner=SandboxedWorkflowRunner(restrictions=SandboxRestrictions.default"
    '.with_passthrough_modules("signoff", "MODULE")))'
)
