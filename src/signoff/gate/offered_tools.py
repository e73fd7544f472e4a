"""Tools that the model's provider executes (native tools).

Nobody sees their calls, so they cannot be judged one by one, or asked about: a tool is offered to the model only if the
policy allows it whatever its arguments are.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.agent import WrapperAgent
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.native_tools import AbstractNativeTool

from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.errors import WrongUse
from signoff.gate.gate import Gate, judged_by
from signoff.gate.gated_calls import running_call
from signoff.policy.phrases import listed
from signoff.policy.strictest_verdict import strictest

TOOLSET = "native"
"""The toolset of these tools in rules."""
SETTING = "openai_native_tools"
"""The model setting that offers tools besides those of the request."""
_KINDS = {"code_interpreter": "code_execution", "mcp": "mcp_server", "web_search_preview": "web_search"}
"""What PydanticAI calls the tools that OpenAI's types name, where the names differ."""


class Unseen(Mapping[str, Any]):
    """Arguments that nobody can see. Reading them raises `LookupError`, which puts a rule in doubt."""

    def __getitem__(self, key: str) -> Any:
        raise LookupError("the provider chooses the arguments, and nobody sees them")

    def __iter__(self) -> Iterator[str]:
        raise LookupError("the provider chooses the arguments, and nobody sees them")

    def __len__(self) -> int:
        return 1


async def allows(gate: Gate, ctx: RunContext[Any], kind: str, unique_id: str = "") -> bool:
    """Return whether a provider-executed tool may be offered to the model of this run."""
    worker = (ctx.agent.name,) if ctx.agent is not None and ctx.agent.name else ()
    call = Call(tool=kind, toolset=TOOLSET, worker=(*running_call().workers, *worker), deps=ctx.deps, args=Unseen())
    layers = [found] if (found := gate.policy.judge_layer(call)) is not None else []
    for judge in gate.judges:
        layers.extend(await judged_by(judge, call.changed(args={}), ctx))
    own = [one for name in {unique_id, kind} for one in gate.native.get(name, ())]
    layers.extend(one.judge_layer(call) or one.silence(call) for one in own)
    verdict = strictest(layers)
    return verdict is not None and verdict.effect is Effect.ALLOW


async def leave_allowed(gate: Gate, ctx: RunContext[Any], request: ModelRequestContext) -> ModelRequestContext:
    """Take out of a request what the policy does not allow to offer."""
    parameters = request.model_request_parameters
    if parameters.native_tools:
        offered = [tool for tool in parameters.native_tools if await allows(gate, ctx, tool.kind, tool.unique_id)]
        request.model_request_parameters = replace(parameters, native_tools=offered)
    if named := list(_named_in_settings(request)):
        kept = [tool for tool in named if await allows(gate, ctx, _kind_of(tool))]
        if len(kept) < len(named):
            # In the settings of the request it takes the place of the same setting of the model.
            request.model_settings = cast("Any", {**(request.model_settings or {}), SETTING: kept})
    return request


def _named_in_settings(request: ModelRequestContext) -> Iterator[object]:
    """Yield the tools that the settings of a request offer, or, if they offer none, those of its models."""
    asked = cast("Mapping[str, Any]", request.model_settings or {})
    layers = [asked] if SETTING in asked else _settings_of(request.model)
    for settings in layers:
        yield from cast("Sequence[object]", settings.get(SETTING) or ())


def _settings_of(model: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the settings that a model was made with, and those of the models it wraps or falls back to."""
    yield model.settings or {}
    for inner in (getattr(model, "wrapped", None), *getattr(model, "models", ())):
        if inner is not None:
            yield from _settings_of(inner)


def _kind_of(tool: object) -> str:
    """Return what rules call a tool that is written as OpenAI's API takes it."""
    name = str(cast("Mapping[str, Any]", tool).get("type", "")) if isinstance(tool, Mapping) else ""
    name = name.partition("_20")[0]  # a version: `web_search_2025_08_26`
    return _KINDS.get(name, name)


async def refuse_session(gate: Gate, ctx: RunContext[Any]) -> None:
    """Raise `WrongUse` if a realtime session would offer what the policy does not allow: no hook can take it out."""
    refused = [
        tool.kind async for tool in _offered_in_session(ctx) if not await allows(gate, ctx, tool.kind, tool.unique_id)
    ]
    if refused:
        raise WrongUse(
            f"this realtime session would offer {listed(sorted(set(refused)))}, which the model's provider executes, "
            "and the policy does not allow it. In a realtime session it cannot be taken out.\n"
            f"  Open it on an agent without that tool, or allow it: {{allow: {{tool: {refused[0]}, toolset: native}}}}"
        )


async def _offered_in_session(ctx: RunContext[Any]) -> AsyncIterator[AbstractNativeTool]:
    """Yield the provider-executed tools that capabilities or an override bring, if the session's model has them."""
    agent: Any = ctx.agent
    while isinstance(agent, WrapperAgent):
        agent = cast("Any", agent).wrapped
    overridden: Any = getattr(agent, "_override_native_tools", None)
    instead: Any = overridden.get() if overridden is not None else None
    capability = ctx.root_capability
    found: list[Any] = [*(capability.get_native_tools() if capability is not None else ())]
    found += instead.value if instead is not None else ()
    model: Any = ctx.model  # a `RealtimeModel`; importing its package takes long, and only a session has done it
    supported: tuple[type[AbstractNativeTool], ...] = tuple(model.profile.get("supported_native_tools", ()))
    for tool in found:
        made = tool(ctx) if callable(tool) else tool
        if inspect.isawaitable(made):
            made = await made
        if isinstance(made, supported):
            yield made
