"""Validate the options of a `Signoff` when they are given, and convert them to what the gate needs."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from pydantic_ai import RunContext

from signoff.channels.approver_shape import approver_problem
from signoff.config.settings import load_settings
from signoff.core.mode import ApprovalMode
from signoff.errors import WrongUse
from signoff.gate.workflow_loop import refuse_store_in_sandbox
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.policy.phrases import did_you_mean
from signoff.policy.tool_labels import label_problem, pattern_problem
from signoff.ports import Store
from signoff.store.memory_store import MemoryStore
from signoff.store.signing_key import Keys
from signoff.store.store_factory import open_store

Rules: TypeAlias = Policy | Layers | str | os.PathLike[str] | Sequence[Mapping[str, Any]]
"""A policy file, a policy, or the rules themselves."""
Who: TypeAlias = "str | Callable[[RunContext[Any]], str]"
"""Somebody's name, or a plain function that returns it from the run's context."""


def check_options(given: Mapping[str, Any]) -> None:
    """Raise `WrongUse` for the first option, by its name, that has a wrong type or value."""
    for name, check in _CHECKS.items():
        value = given[name]
        if (wrong := check(value)) is not None:
            shown = "…" if name == "secrets" else _short(value)
            raise WrongUse(f"Signoff({name}={shown}): {wrong}")


def check_names(given: Iterable[str]) -> None:
    """Raise `WrongUse` for an unknown option name."""
    for name in given:
        if name not in _CHECKS and name != "policy":
            raise WrongUse(f"Signoff({name}=…): there is no such option; {did_you_mean(name, _CHECKS)}")


def check_approver(value: object) -> None:
    """Raise `WrongUse` if the value is no approver."""
    if (wrong := _approver(value)) is not None:
        raise WrongUse(f"approver={_short(value)}: {wrong}")


def checked_mode(value: ApprovalMode | str) -> ApprovalMode:
    """Return a mode by its name. Raises `WrongUse` for any other text."""
    if (wrong := _mode(value)) is not None:
        raise WrongUse(f"mode={_short(value)}: {wrong}")
    return ApprovalMode(value)


def name_of(option: str, who: Who, ctx: RunContext[Any]) -> str:
    """Return the name that an option gives for a run. Raises `WrongUse` if its function fails or returns none."""
    if isinstance(who, str):
        return who
    try:
        name = cast("object", who(ctx))
    except Exception as error:
        raise WrongUse(f"Signoff({option}=…): the function failed with {type(error).__name__}: {error}") from error
    if not isinstance(name, str) or not name.strip():
        raise WrongUse(f"Signoff({option}=…): the function returned {_short(name)}; it must return a name, as text")
    return name


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _who(value: object) -> str | None:
    if isinstance(value, str):
        return None
    if inspect.iscoroutinefunction(value):
        return "it must be a plain function of the RunContext, not an async one"
    return None if callable(value) else "it must be a name, or a function of the RunContext that returns one"


def _one_of(*choices: str) -> Callable[[object], str | None]:
    def check(value: object) -> str | None:
        if isinstance(value, str) and value in choices:
            return None
        near = did_you_mean(value, choices) if isinstance(value, str) else ""
        return f"it must be one of {', '.join(map(repr, choices))}" + (f"; {near}" if near.startswith("did") else "")

    return check


def _mode(value: object) -> str | None:
    return None if isinstance(value, ApprovalMode) else _one_of(*(str(mode.value) for mode in ApprovalMode))(value)


def _wait(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float, timedelta)):
        return "it must be 'inline', 'suspend', a number of seconds, or a timedelta"
    return None


def _flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "it must be True or False"


def _function(value: object) -> str | None:
    return None if value is None or callable(value) else "it must be a function"


def _having(what: str, methods: str) -> Callable[[object], str | None]:
    def check(value: object) -> str | None:
        missing = [name for name in methods.split() if not callable(getattr(value, name, None))]
        if value is None or not missing:
            return None
        return f"it must be {what}; {_a(value)} has no {' and no '.join(f'`{name}`' for name in missing)}"

    return check


def _approver(value: object) -> str | None:
    return None if value is None else approver_problem(value)


def _a(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _store(value: object) -> str | None:
    return None if isinstance(value, str) else _having("the URL of a store, or a store", "read write later")(value)


def _texts(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        return "it must be a list of texts"
    items = cast("Iterable[object]", value)
    if iter(items) is items:
        return "it must be a list of texts, which can be read more than once"
    return None if all(isinstance(item, str) for item in items) else "it must be a list of texts"


def _by_name(of: Callable[[object], str | None], what: str) -> Callable[[object], str | None]:
    def check(value: object) -> str | None:
        if not isinstance(value, Mapping):
            return f"it must be a mapping of {what}"
        for key, item in cast("Mapping[object, object]", value).items():
            if not isinstance(key, str):
                return f"it must be a mapping of {what}; {_short(key)} is not a name"
            if (wrong := of(item)) is not None:
                return f"{key!r}: {wrong}"
        return None

    return check


def _roles(value: object) -> str | None:
    if isinstance(value, str):
        return f"the roles of a person are a list: [{value!r}]"
    return "the roles of a person are a list of texts" if value is None or _texts(value) else None


def _labels(value: object) -> str | None:
    labels = [value] if isinstance(value, str) else value
    if labels is None or _texts(labels):
        return "it must be a label, or a list of labels"
    return next(filter(None, map(label_problem, cast("Iterable[str]", labels))), None)


def _labels_by_tool(value: object) -> str | None:
    wrong = _by_name(_labels, "tool names to labels")(value)
    return wrong or next(filter(None, map(pattern_problem, cast("Mapping[str, object]", value))), None)


def _role(value: object) -> str | None:
    return None if value is None or (isinstance(value, str) and value) else "it must be the name of a role"


_CHECKS: Mapping[str, Callable[[Any], str | None]] = {
    "approver": _approver,
    "wait": _wait,
    "mode": _mode,
    "memory": _having("a memory of answers", "lookup remember"),
    "on_denied": lambda value: None if value is None else _one_of("tell", "raise")(value),
    "judge": _function,
    "reviewers": _flag,
    "labels": _labels_by_tool,
    "tools": _texts,
    "secrets": _texts,
    "people": _by_name(_roles, "people's names to their roles, as in {'ana': ['ops']}"),
    "owner": _who,
    "requester": _who,
    "nested": _flag,
    "by": _role,
    "native": _by_name(lambda value: None, "native tools to policies"),
    "observe": _function,
    "store": _store,
    "clock": _having("a clock", "now sleep_until"),
}


# --- converting to what the gate needs ---


def open_given(store: Store | str | None) -> Store:
    if store is None:
        return MemoryStore()
    if isinstance(store, str):
        refuse_store_in_sandbox()
        return open_store(store)
    return store


def signer(store: Store) -> Keys | None:
    return Keys() if store.is_durable else None


class GivenRules(NamedTuple):
    """What `Signoff(policy=…)` says: the rules, and with a file what else it says about every gate."""

    policy: Policy | Layers
    people: dict[str, frozenset[str]]
    on_denied: Literal["tell", "raise"] = "tell"
    names_store: bool = False


def read_rules(rules: Rules) -> GivenRules:
    if isinstance(rules, Policy | Layers):
        return GivenRules(rules, {})
    if isinstance(rules, str | os.PathLike):
        settings = load_settings(rules)
        people = {name: person.roles for name, person in settings.people.items()}
        return GivenRules(settings.policy, people, settings.on_denied, names_store=bool(settings.store))
    if not isinstance(rules, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise WrongUse(f"Signoff(policy={_short(rules)}): it must be the path of a file, a Policy, or a list of rules")
    return GivenRules(Policy.from_rules(rules), {})


def rooted(policy: Policy | Layers) -> Policy | Layers:
    """Return the policy with a real path as root: symlinks in arguments are resolved and compared with it."""
    root = os.path.realpath(policy.root or os.getcwd())
    if isinstance(policy, Policy):
        return replace(policy, root=root)
    return Layers(tuple(replace(one, root=os.path.realpath(one.root or root)) for one in policy.policies))


def as_wait(wait: str | float | timedelta) -> timedelta | None:
    if isinstance(wait, timedelta):
        return wait
    if isinstance(wait, str):
        if wait not in ("inline", "suspend"):
            near = did_you_mean(wait, ("inline", "suspend"))
            raise WrongUse(
                f"wait={wait!r}: say 'inline', 'suspend', or a number of seconds"
                + (f"; {near}" if near.startswith("did") else "")
            )
        return None if wait == "inline" else timedelta(0)
    if wait < 0:
        raise WrongUse(f"wait={wait!r}: a number of seconds cannot be negative")
    return timedelta(seconds=wait)
