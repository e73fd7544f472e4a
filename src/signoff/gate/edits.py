"""A person's changes to a call: validated before they are accepted, and told to the model."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from pydantic import ValidationError
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.messages import ToolReturn
from pydantic_ai.toolsets import ToolsetTool

from signoff.core.canonical import canonical
from signoff.errors import EditRefused


async def validated(
    ctx: RunContext[Any], tool: ToolsetTool[Any], args: Mapping[str, Any], *, by_person: bool = True
) -> dict[str, Any]:
    """The arguments as the tool would be given them; raises `EditRefused` with every problem found.

    A person's arguments are checked more closely than a model's, which PydanticAI has let pass already.
    """
    try:
        # As JSON, because that is how a model's arguments arrive: a date is a text, a tuple a list.
        values = tool.args_validator.validate_json(json.dumps(args), context=ctx.validation_context)
    except ValidationError as error:
        raise EditRefused(tuple(_problem(detail) for detail in error.errors(include_url=False))) from error
    except (TypeError, ValueError) as error:
        raise EditRefused((f"the arguments are not valid JSON: {error}",)) from error
    if not by_person:
        return values
    if problems := tuple(_misfits(tool, args)):
        raise EditRefused(problems)
    if tool.args_validator_func is not None:
        try:
            result = tool.args_validator_func(ctx, **values)
            if inspect.isawaitable(result):
                await result
        except (ModelRetry, ToolFailed) as error:
            raise EditRefused((error.message,)) from error
        except (ApprovalRequired, CallDeferred):
            pass  # the arguments are fine; the validator wants to be asked about, which is what happens
    return values


def with_notice(result: Any, args: Mapping[str, Any]) -> Any:
    """A tool's result with word for the model that a person changed the arguments."""
    notice = f"A person changed the arguments of this call before approving it. It ran with {canonical(args)}"
    if isinstance(result, ToolReturn):
        whole = cast("ToolReturn[Any]", result)
        return replace(whole, return_value=with_notice(whole.return_value, args))
    if isinstance(result, str):
        return f"[{notice}]\n{result}"
    return {"notice": notice, "result": result}


def _problem(detail: Any) -> str:
    where = ".".join(str(part) for part in detail["loc"])
    return f"{where}: {detail['msg']}" if where else str(detail["msg"])


def _misfits(tool: ToolsetTool[Any], args: Mapping[str, Any]) -> Iterator[str]:
    """What the tool's validator may let pass: Pydantic drops unknown names, and an MCP tool's checks nothing here."""
    schema = tool.tool_def.parameters_json_schema
    if not schema.get("additionalProperties", False):
        for name in sorted(set(args) - set(schema.get("properties", {}))):
            yield f"{name}: {tool.tool_def.name} takes no such argument"
    for name in sorted(set(schema.get("required", ())) - set(args)):
        yield f"{name}: {tool.tool_def.name} needs this argument"
