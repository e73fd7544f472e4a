"""Create toolsets from what a catalog holds: an instance, a class, a function or a `Registration`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

from signoff.attached.attached_policies import Labels, Rules, ToolsetLayer, layer_for
from signoff.attached.marks import mark
from signoff.config.config_check import GivenConfig, an, described, made_by
from signoff.policy.phrases import shown
from signoff.toolsets.context import CONTEXTS


@dataclass(frozen=True, kw_only=True)
class Registration:
    """A toolset with its policy, labels and config, for `TOOLSETS` in a project's toolsets.py or for an entry point."""

    toolset: AbstractToolset[Any] | Callable[..., Any]
    """A toolset, or a class or function that creates one."""
    policy: Rules = None
    labels: Labels = field(default_factory=dict[str, "Iterable[str] | str"])
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Default config, which the project's file overrides."""

    def made(self, *, name: str | None = None, context: Any = None) -> AbstractToolset[Any]:
        """Create the toolset with its policy attached, for an agent that is not described in a file."""
        made = create(self, GivenConfig(owner=name or "a registered toolset", values={}), context, name)
        return mark(made.toolset, *made.registered(name))


@dataclass(frozen=True, slots=True)
class Made:
    """A toolset, and its registrations whose policies are not attached yet, outermost first."""

    toolset: AbstractToolset[Any]
    registrations: tuple[Registration, ...] = ()

    def registered(self, name: str | None, *, by_catalog: bool = False) -> list[ToolsetLayer]:
        """The policies of the registrations, as layers for the toolset."""
        return [
            layer_for(self.toolset, one.policy, name=name, labels=one.labels, by_catalog=by_catalog)
            for one in self.registrations
        ]


def create(target: object, given: GivenConfig, context: Any, name: str | None) -> Made:
    """Create a toolset. Raises, with the place in the file, if the config is invalid or the result is not a toolset.

    A parameter `config` gets the whole config and `context` the context; any other parameter is filled from the key of
    that name. `id` defaults to the name in the catalog. An existing instance is put into a plain `WrapperToolset`, to
    which the policy is attached: others may use the instance.
    """
    if isinstance(target, Registration):
        values = given.with_values({**target.config, **given.values})
        made = create(target.toolset, values, context, name)
        return replace(made, registrations=(target, *made.registrations))
    if isinstance(target, AbstractToolset):
        if given.values:
            key = next(iter(given.values))
            what = f"{shown(given.owner)} is a finished toolset and takes no config"
            raise given.wrong(what, at=(key,), fix="remove the config, or put a function into TOOLSETS", key=True)
        instance = cast("AbstractToolset[Any]", target)
        return Made(WrapperToolset(instance))
    return _called(target, given, context, name)


def _called(target: object, given: GivenConfig, context: Any, name: str | None) -> Made:
    if not callable(target) or (inspect.isclass(target) and not issubclass(target, AbstractToolset)):
        raise given.wrong_use(f"{described(target)} is not a toolset", NO_TOOLSET)
    make = cast("Callable[..., Any]", target)
    made: Any = made_by(make, given, context, contexts=CONTEXTS, name=name)
    if isinstance(made, Registration):
        return create(made, given.with_values({}), context, name)
    if not isinstance(made, AbstractToolset):
        if inspect.iscoroutine(made):
            made.close()
        raise given.wrong_use(f"{described(make)} made {an(type(made).__name__)}, which is not a toolset", NO_TOOLSET)
    return Made(cast("AbstractToolset[Any]", made))


NO_TOOLSET = "a toolset is a pydantic_ai.toolsets.AbstractToolset, or a class or function that makes one"
