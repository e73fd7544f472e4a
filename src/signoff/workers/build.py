"""Build a PydanticAI agent from a worker file. PydanticAI's own errors are reported with their place in the file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.agent.spec import AgentSpec
from pydantic_ai.capabilities import CAPABILITY_TYPES, AbstractCapability
from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset

from signoff.config.entries import WorkerFile
from signoff.policy.document import KeyStep
from signoff.policy.phrases import did_you_mean, nearest, shown
from signoff.policy.placed_value import ConfigValue
from signoff.toolsets.catalog import BuiltToolset, check_names
from signoff.toolsets.distinct_toolsets import together
from signoff.workers.limits import WorkerDeps
from signoff.workers.schemas import check_schema, output_type
from signoff.workers.worker_prompt import Instructions, read_instructions

_READ_HERE = frozenset({"instructions", "model", "name", "description", "deps_schema", "output_schema"})
"""Keys of the spec that are not left to PydanticAI."""
CAPABILITIES = (
    "Caching", "Citations", "IncludeToolReturnSchemas", "RaiseContentFilterError", "ReinjectSystemPrompt", "Thinking",
)  # fmt: skip
"""Capabilities a worker file may name. The others bring tools, servers or models, or set what rules trust of tools."""
SETTINGS = (
    "temperature", "top_p", "top_k", "max_tokens", "seed", "stop_sequences", "presence_penalty", "frequency_penalty",
    "logit_bias", "parallel_tool_calls", "tool_choice", "timeout", "request_timeout", "max_retries", "thinking",
    "citations", "cache", "service_tier",
)  # fmt: skip
"""Settings of every model that only change how it answers."""
_OF_A_PROVIDER = re.compile(
    r"(?!.*tools)[a-z]+_(reasoning_\w+|thinking_\w+|cache_\w+|prompt_cache_\w+|text_verbosity|service_tier|logprobs"
    r"|top_logprobs|safety_settings|disable_reasoning|clear_thinking|truncation|performance_configuration)"
)
"""The same for one provider's models. Other settings can carry a request body, and with it tools that no gate sees."""


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """A worker file, checked as far as possible without its model and its toolsets."""

    file: WorkerFile
    spec: AgentSpec
    instructions: Instructions
    input: Mapping[str, Any] | None
    """JSON schema of its input."""
    output: Any
    """Its output type, for PydanticAI."""


def plan_of(file: WorkerFile) -> WorkerPlan:
    """Check a worker file. Raises with the place of what is wrong."""
    given, answered = _schema(file, "input", "deps_schema"), _schema(file, "output", "output_schema")
    for one in (given, answered):
        if one is not None:
            check_schema(*one)
    schema = given[0] if given is not None else None
    return WorkerPlan(
        file=file,
        spec=_spec(file),
        instructions=read_instructions(file, schema),
        input=schema,
        output=output_type(*answered) if answered is not None else str,
    )


def build_agent(
    plan: WorkerPlan,
    *,
    model: Model | None,
    toolsets: Sequence[AbstractToolset[Any]],
    capabilities: Sequence[AbstractCapability[Any]],
) -> Agent[WorkerDeps, Any]:
    """Build the agent. It can always pause for an answer; `capabilities` come after those that the file names."""
    file = plan.file
    try:
        return Agent[WorkerDeps, Any].from_spec(
            plan.spec,
            deps_type=WorkerDeps,
            name=file.name,
            description=file.description or None,
            model=model,
            instructions=list(plan.instructions.parts),
            output_type=[plan.output, DeferredToolRequests],
            toolsets=together(toolsets),
            capabilities=list(capabilities),
            defer_model_check=True,
        )
    except Exception as error:  # each capability fails in its own way with wrong arguments
        if "capabilities" not in file.spots:
            raise
        raise file.spots["capabilities"].wrong(f"a capability cannot be made: {_one_line(error)}") from error


def check_tool_names(file: WorkerFile, built: Sequence[BuiltToolset]) -> None:
    """Refuse two tools with one name, as far as they are known before a run."""
    check_names(built, {one.name: file.spots.get(f"toolsets[{n}]", file.spot) for n, one in enumerate(built)})
    run_there: dict[str, str] = {}
    for number, one in enumerate(built):
        for tool in one.native:
            if (other := run_there.setdefault(tool.unique_id, one.name)) != one.name:
                # The provider is offered only one of the two, and it would be unclear whose rules apply to it.
                what = f"{shown(other)} and {shown(one.name)} are one tool to the provider, {shown(tool.unique_id)}"
                spot = file.spots.get(f"toolsets[{number}]", file.spot)
                raise spot.wrong(what, "leave one of the two out, or give each its own `id` where it takes one")


def _schema(file: WorkerFile, ours: str, theirs: str) -> tuple[Mapping[str, Any], ConfigValue] | None:
    """Return a schema under either of its two names, and its place."""
    own: Mapping[str, Any] | None = getattr(file, ours)
    if own is not None:
        return own, file.spots.get(ours, file.spot)
    other: Any = file.spec.get(theirs)
    return (other, file.spots.get(theirs, file.spot)) if other is not None else None


def _spec(file: WorkerFile) -> AgentSpec:
    values = {key: value for key, value in file.spec.items() if key not in _READ_HERE}
    for number, written in enumerate(cast("list[Any]", values.get("capabilities") or [])):
        named: Any = next(iter(cast("dict[str, Any]", written)), "") if isinstance(written, dict) else written
        if named not in CAPABILITIES:
            spot = _below(file.spots.get("capabilities", file.spot), (number,))
            if named not in CAPABILITY_TYPES:
                raise spot.wrong(f"unknown capability {shown(str(named))}", did_you_mean(str(named), CAPABILITIES))
            what = f"a worker file cannot name the capability {shown(named)}: it could give itself more rights with it"
            fix = "tools come from `toolsets`; one that the provider runs is an entry {use: native, config: {kind: …}}"
            raise spot.wrong(what, f"{fix} of the project's file")
    _check_settings(file)
    try:
        return AgentSpec.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key, *rest = first["loc"] or ("",)
        spot = _below(file.spots.get(str(key), file.spot), rest)
        raise spot.wrong(f"{shown(str(key))} is not right: {first['msg']}") from error


def _check_settings(file: WorkerFile) -> None:
    """Refuse settings that could give the model tools that no gate sees."""
    for key in cast("Mapping[str, Any]", file.spec.get("model_settings") or {}):
        if key not in SETTINGS and not _OF_A_PROVIDER.fullmatch(key):
            spot = _below(file.spots.get("model_settings", file.spot), (key,))
            near = did_you_mean(key, SETTINGS) if nearest(key, SETTINGS, cutoff=0.8) is not None else ""
            what = f"a worker file cannot set {shown(key)}: it could give the model tools that no rule checks"
            raise spot.wrong(
                what, near or "tools that the provider runs are entries {use: native} of the project's file"
            )


def _below(spot: ConfigValue, trail: Sequence[KeyStep]) -> ConfigValue:
    """Return the place at the end of a key path, or the last place on the way that exists."""
    for step in trail:
        value: Any = spot.value
        there = isinstance(value, dict) and step in value
        if not there and not (
            isinstance(value, list) and isinstance(step, int) and step < len(cast("list[Any]", value))
        ):
            break
        spot = spot.child(step)
    return spot


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
