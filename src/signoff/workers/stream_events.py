"""Stream what an agent says, and what its calls return, to a listener."""

from __future__ import annotations

from collections.abc import AsyncIterable, Collection
from dataclasses import dataclass
from typing import Any, Protocol, cast

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    AgentStreamEvent,
    BinaryContent,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
)
from pydantic_ai.models import Model, ModelRequestContext
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.tools import ToolDefinition, ToolDenied
from pydantic_core import PydanticSerializationError, to_json

LONGEST = 2_000
"""Characters of a result that are passed on."""


class Listener(Protocol):
    """Gets what the outermost agent says. What happens to its calls goes to `observe`."""

    is_live: bool
    """Whether the model's words are wanted as they stream; otherwise only whole answers are passed on."""

    def saying(self, text: str) -> None:
        """The next piece of the model's text. Empty if something else follows, such as a call."""
        ...

    def said(self, text: str, *, calls: bool) -> None:
        """The whole text of one answer; `calls` if it called tools too, or answered through one."""
        ...

    def returned(self, tool: str, result: str) -> None:
        """What a call returned, or the beginning of it."""
        ...

    def sent_back(self, tool: str, why: str) -> None:
        """A call that did not begin, because there is no such tool or it does not take these arguments."""
        ...


@dataclass
class Words(AbstractCapability[Any]):
    """Tells a listener each answer once it is complete. It changes nothing."""

    listener: Listener

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        last = request_context.messages[-1] if request_context.messages else None
        offered = {one.name for one in request_context.model_request_parameters.function_tools}
        for part in last.parts if isinstance(last, ModelRequest) else ():
            if isinstance(part, ToolReturnPart) and (why := _why_sent_back(part, offered)):
                self.listener.sent_back(part.tool_name, why)
        return request_context

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        self.listener.said(response.text or "", calls=bool(response.tool_calls))
        return response

    async def after_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any], result: Any
    ) -> Any:
        if not isinstance(result, ToolDenied):
            self.listener.returned(call.tool_name, _told(result))
        return result


@dataclass
class LiveWords(Words):
    """Also tells it while it streams. With this capability, PydanticAI requests a stream from the model."""

    async def wrap_run_event_stream(
        self, ctx: RunContext[Any], *, stream: AsyncIterable[AgentStreamEvent]
    ) -> AsyncIterable[AgentStreamEvent]:
        any_text = was_text = False
        async for event in stream:
            if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                # As in `ModelResponse.text`: adjacent text parts are one text, others are separated.
                self.listener.saying(("\n\n" if any_text and not was_text else "") + event.part.content)
                any_text = was_text = True
            elif isinstance(event, PartStartEvent):
                was_text = False
                self.listener.saying("")
            elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                self.listener.saying(event.delta.content_delta)
            yield event


def listening(listener: Listener, model: Model | str | None) -> Words:
    """Return the capability that tells `listener`: while it streams, if that is wanted and the model supports it."""
    return LiveWords(listener) if listener.is_live and _can_stream(model) else Words(listener)


def _can_stream(model: Model | str | None) -> bool:
    while isinstance(model, WrapperModel):
        model = model.wrapped
    if isinstance(model, FallbackModel):
        return all(_can_stream(one) for one in model.models)
    if isinstance(model, FunctionModel):
        return model.stream_function is not None
    return not isinstance(model, Model) or type(model).request_stream is not Model.request_stream


def _why_sent_back(part: ToolReturnPart[Any], offered: Collection[str]) -> str:
    """Why a call did not begin; empty if it did, because then its steps are told."""
    cause = part.retry.cause if part.retry is not None else ""
    if cause == "unknown_tool":
        return "there is no such tool"
    if cause != "validation_error" or part.tool_name not in offered or isinstance(part.content, str):
        return ""
    errors = cast("list[dict[str, Any]]", part.content)
    wrong = [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in errors]
    return f"it does not take these arguments: {'; '.join(wrong)}"[:LONGEST]


def _told(result: Any) -> str:
    value: Any = cast("ToolReturn[Any]", result).return_value if isinstance(result, ToolReturn) else result
    if isinstance(value, str):
        return value[:LONGEST]
    if isinstance(value, BinaryContent):
        return f"{value.media_type}, {len(value.data):,} bytes"
    try:
        return to_json(value)[: LONGEST * 4].decode("utf-8", "ignore")[:LONGEST]
    except (PydanticSerializationError, ValueError):
        return f"<{type(value).__qualname__}>"
