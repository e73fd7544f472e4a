"""The capability that enforces a worker's usage limits: requests, tokens, cost and time."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, CombinedCapability
from pydantic_ai.exceptions import ApprovalRequired, UserError
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import AbstractModel, ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.usage import RequestUsage

from signoff.config.entries import WorkerFile
from signoff.errors import WrongFile, WrongUse
from signoff.ports import Clock
from signoff.toolset_wrappers import steps_of
from signoff.workers.account import Account, place_of


class Delegating(AbstractToolset[Any]):
    """A toolset with a tool that hands over to another worker, which counts its time itself."""

    delegates_by: ClassVar[str]
    """The name of that tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerDeps:
    """The dependencies of a worker's run: its input, and on whose behalf it runs."""

    input: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Its fields fill the templates of the instructions."""
    caller: Account | None = field(default=None, repr=False)
    """The run that called this one; None for a run that a person started."""
    path: str = ""
    """The call that started it."""
    files: tuple[str, ...] = ()
    """Absolute paths of the files attached to the run, besides those its file names."""


@dataclass
class Meter(AbstractCapability[Any]):
    """Counts what every run of a worker uses, and ends the run when a limit is reached."""

    file: WorkerFile
    clock: Clock
    account: Account | None = None
    """The account of the current run."""

    @classmethod
    def get_serialization_name(cls) -> str | None:
        return None

    async def for_run(self, ctx: RunContext[Any]) -> Meter:
        given = ctx.deps if isinstance(ctx.deps, WorkerDeps) else WorkerDeps()
        fresh = copy.copy(self)
        fresh.account = Account(file=self.file, clock=self.clock, parent=given.caller, path=given.path)
        fresh.account.take_up(ctx.usage)
        return fresh

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        account = self._account()
        for one in account.line:
            check_price(one.file, ctx.model, for_worker=account.worker)
        try:
            result = await handler()
        except ApprovalRequired:  # it pauses with the call that started it
            raise
        except BaseException:
            account.close()
            raise
        if not isinstance(result.output, DeferredToolRequests):
            account.close()
        return result

    async def wrap_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,
        handler: Callable[[ModelRequestContext], Awaitable[ModelResponse]],
    ) -> ModelResponse:
        account = self._account()
        account.begin_request()
        with account.working():
            response = await account.in_time(lambda: handler(request_context))
            account.charge(response)
        return response

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Count a tool's time. A tool is not cancelled half-way: it runs to its end, and the run ends after it."""
        if _delegates(ctx, tool_def):
            return await handler(args)
        account = self._account()
        with account.working():
            return await handler(args)

    def _account(self) -> Account:
        if self.account is None:
            raise WrongUse("a worker's limits hold only inside its runs")
        return self.account


def _delegates(ctx: RunContext[Any], tool_def: ToolDefinition) -> bool:
    """Return whether the call is handed to another worker. Metadata about a tool is no proof."""
    tools = ctx.tool_manager.tools if ctx.tool_manager is not None else None
    tool = tools.get(tool_def.name) if tools else None
    toolset, name = steps_of(tool)[-1] if tool is not None else (None, "")
    return isinstance(toolset, Delegating) and name == toolset.delegates_by


def account_of(ctx: RunContext[Any]) -> Account:
    """Return the account of the run that a tool was called in."""
    if (account := account_in(ctx)) is None:
        raise WrongUse("this tool works only in runs of a worker: build the agent with Workers(…).worker(NAME)")
    return account


def account_in(ctx: RunContext[Any]) -> Account | None:
    """Return the account of a run, or None if it is not one of a worker."""
    root = ctx.root_capability
    chain = root.capabilities if isinstance(root, CombinedCapability) else [root]
    return next((one.account for one in chain if isinstance(one, Meter) and one.account is not None), None)


def check_price(file: WorkerFile, model: AbstractModel | None, *, for_worker: str = "") -> None:
    """Refuse a cost limit that cannot be enforced, because the model's price is unknown."""
    if file.limits.cost is None or model is None or has_price(model):
        return
    name = f"{model.system}:{model.model_name}"
    who = f", which {for_worker} uses for it" if for_worker not in ("", file.name) else ""
    raise WrongFile(
        f"no price is known for the model {name}{who}, so a limit on cost cannot be checked",
        place=place_of(file, "cost"),
        fix="limit requests or tokens instead, or use a model with a published price",
    )


def has_price(model: AbstractModel) -> bool:
    """Return whether the model's price is known."""
    try:
        url = model.base_url
    except (AttributeError, UserError):  # a model without a URL
        url = None
    usage = RequestUsage(input_tokens=1, output_tokens=1)
    probe = ModelResponse(
        parts=[], usage=usage, model_name=model.model_name, provider_name=model.system, provider_url=url
    )
    try:
        probe.cost()
    except (LookupError, ValueError):
        return False
    return True
