"""Call the approval methods that toolsets have, whatever their signature, and interpret their answers.

Toolsets written for other libraries take two, three or four arguments and answer with a bool, a mapping or an object
with a status. Any other answer makes the call ask.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

from signoff.core.verdict import Effect, Verdict
from signoff.policy.phrases import shown

Hook = Callable[..., Any]
"""A method such as those of `ports.DeclaresApproval`."""
NEEDS, DESCRIBE, OLD_DESCRIBE = "needs_approval", "describe_approval", "get_approval_description"
TOOLSET = "toolset"
"""The rule that a verdict names if a toolset's own method decided."""

_NAME, _ARGS, _CTX, _CONFIG = range(4)
_KNOWN = {
    **dict.fromkeys(("name", "tool_name"), _NAME),
    **dict.fromkeys(("args", "tool_args"), _ARGS),
    **dict.fromkeys(("ctx", "context", "run_context"), _CTX),
    **dict.fromkeys(("config", "approval_config"), _CONFIG),
}
ASKS = "the toolset's own check asks about this call"
_WORDS = {
    Effect.ALLOW: "the toolset's own check allows this call",
    Effect.ASK: ASKS,
    Effect.DENY: "the toolset's own check refuses this call",
}
_STATUS = {"blocked": Effect.DENY, "pre_approved": Effect.ALLOW, "needs_approval": Effect.ASK}
_FLAGS = {f"is_{status}": effect for status, effect in _STATUS.items()}
_ANSWERS = "True, False, allow, ask, deny, None, a mapping with `description`, a Verdict, or an object with a `status`"


class MethodArguments(NamedTuple):
    """The signature of a method: which of name, args, ctx and config it takes, in what order."""

    positional: tuple[int, ...] = (_NAME, _ARGS, _CTX)
    keyword: tuple[tuple[str, int], ...] = ()

    @property
    def config(self) -> bool:
        """Whether it takes the configuration."""
        return _CONFIG in self.positional or any(which == _CONFIG for _, which in self.keyword)

    def call(self, method: Hook, name: str, args: Mapping[str, Any], ctx: Any, config: Mapping[str, Any]) -> Any:
        """Call the method."""
        values = (name, args, ctx, config)
        return method(*(values[which] for which in self.positional), **{key: values[at] for key, at in self.keyword})


def takes(method: Hook) -> MethodArguments:
    """Return how to call a method. Raises `TypeError` if it cannot be called."""
    function = getattr(method, "__func__", None)
    return _takes_of_function(function) if function is not None else _takes(method, bound=False)


@lru_cache(maxsize=1_024)
def _takes_of_function(function: Hook) -> MethodArguments:
    return _takes(function, bound=True)


def _takes(function: Hook, *, bound: bool) -> MethodArguments:
    try:
        parameters = list(inspect.signature(function).parameters.values())[1 if bound else 0 :]
    except ValueError:  # a builtin without a signature
        return MethodArguments()
    positional: list[int] = []
    keyword: list[tuple[str, int]] = []
    for parameter in parameters:
        which = _KNOWN.get(parameter.name)
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += [one for one in (_NAME, _ARGS, _CTX)[len(positional) :] if one not in positional]
        elif parameter.kind is parameter.KEYWORD_ONLY and which is not None:
            keyword.append((parameter.name, which))
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) and len(positional) < 4:
            positional.append(which if which is not None else len(positional))
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
            raise TypeError(f"it requires {parameter.name}, but gets only name, args, ctx and config")
    given = {*positional, *(which for _, which in keyword)}
    if not {_NAME, _ARGS} <= given or len(given) < len(positional) + len(keyword):
        raise TypeError("it does not take name and args; write needs_approval(self, name, args, ctx)")
    return MethodArguments(tuple(positional), tuple(keyword))


async def answer_of(
    method: Hook, how: MethodArguments, name: str, args: Mapping[str, Any], ctx: Any, config: Mapping[str, Any]
) -> Verdict | None:
    """Return the answer of `needs_approval`, or None if it has none. `PermissionError` denies; other failures ask."""
    try:
        said = how.call(method, name, args, ctx, config)
        if inspect.isawaitable(said):
            said = await said
        return None if said is None else _understood(said)
    except PermissionError as error:
        reason = str(error) or "the toolset refuses this call"
        return Verdict(effect=Effect.DENY, rules=(TOOLSET,), reason=reason)
    except Exception as error:
        return in_doubt(f"the toolset's own check failed: {error!r}")


def in_doubt(problem: str) -> Verdict:
    """Return the verdict for a toolset's own check that cannot be understood."""
    return Verdict(effect=Effect.ASK, rules=(TOOLSET,), reason=problem, errors=(problem,))


def _understood(said: object) -> Verdict:
    if isinstance(said, Verdict):
        return said
    if isinstance(said, bool):
        return _answer(Effect.ASK if said else Effect.ALLOW)
    if isinstance(said, str):
        effect = Effect(said) if said in tuple(Effect) else _STATUS.get(said)
        return _answer(effect) if effect is not None else _none_of_these(said)
    if isinstance(said, Mapping):
        mapping = cast("Mapping[str, Any]", said)
        words = mapping.get("description")
        return _answer(Effect.ASK, words) if isinstance(words, str) else _none_of_these(mapping)
    return _by_status(said)


def _by_status(said: object) -> Verdict:
    """Interpret an object that says blocked, pre-approved or needs approval, by flags or by its status."""
    found: set[Effect | None] = set()
    for name, effect in _FLAGS.items():
        flag: object = getattr(said, name, False)
        if flag is not False:
            found.add(effect if flag is True else None)
    status: object = getattr(said, "status", None)
    if status is not None:
        found.add(_STATUS.get(str(getattr(status, "value", status))))
    if Effect.DENY in found:  # deny wins, whatever else it says
        return _answer(Effect.DENY, getattr(said, "block_reason", None))
    [effect] = found if len(found) == 1 else [None]
    return _answer(effect, getattr(said, "description", None)) if effect is not None else _none_of_these(said)


def _none_of_these(said: object) -> Verdict:
    what = shown(said) if isinstance(said, str) else f"a value of type {type(said).__name__}"
    return in_doubt(f"the toolset's own check returned {what}, not one of these: {_ANSWERS}")


def _answer(effect: Effect, words: object = None) -> Verdict:
    reason = words if isinstance(words, str) and words else _WORDS[effect]
    return Verdict(effect=effect, rules=(TOOLSET,), reason=reason)


async def words_of(method: Hook, name: str, args: Mapping[str, Any], ctx: Any) -> Mapping[str, Any]:
    """Return what a toolset says a call will do. A description that fails is reported, and stops no question."""
    try:
        said = takes(method).call(method, name, args, ctx, {})
        if inspect.isawaitable(said):
            said = await said
        if said is None:
            return {}
        return {"summary": said} if isinstance(said, str) else dict(said)
    except Exception as error:
        return {"description_error": repr(error)}


def describer(toolset: object) -> Hook | None:
    """Return the method with which a toolset describes its calls, under either name."""
    for name in (DESCRIBE, OLD_DESCRIBE):
        if callable(method := getattr(toolset, name, None)):
            return method
    return None
