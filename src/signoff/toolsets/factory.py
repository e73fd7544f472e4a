"""Toolsets made from what a catalog holds: an instance, a class, a function or a `Registration`, all in one way."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

from signoff.attached.attached_policies import Labels, Rules, ToolsetLayer, layer_for
from signoff.attached.marks import mark
from signoff.errors import MissingExtra, SignoffError
from signoff.policy.phrases import shown
from signoff.toolsets.config_check import Shape, ToolsetValues, checked, shape_of


@dataclass(frozen=True, kw_only=True)
class Registration:
    """A toolset and what goes with it, for `TOOLSETS` in a project's toolsets.py, or for an entry point."""

    toolset: AbstractToolset[Any] | Callable[..., Any]
    """A toolset, or a class or function that creates one."""
    policy: Rules = None
    labels: Labels = field(default_factory=dict[str, "Iterable[str] | str"])
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Its configuration, unless the project's file says otherwise."""

    def made(self, *, name: str | None = None, context: Any = None) -> AbstractToolset[Any]:
        """The toolset with its policy, for an agent that is not described in a file."""
        made = create(self, ToolsetValues(owner=name or "a registered toolset", values={}), context, name)
        return mark(made.toolset, *made.registered(name))


@dataclass(frozen=True, slots=True)
class Made:
    """A toolset, and what is registered with it and not attached yet, outermost first."""

    toolset: AbstractToolset[Any]
    registrations: tuple[Registration, ...] = ()

    def registered(self, name: str | None, *, by_catalog: bool = False) -> list[ToolsetLayer]:
        """The policies of the registrations, as layers for the toolset."""
        return [
            layer_for(self.toolset, one.policy, name=name, labels=one.labels, by_catalog=by_catalog)
            for one in self.registrations
        ]


def create(target: object, given: ToolsetValues, context: Any, name: str | None, *, apart: bool = False) -> Made:
    """The toolset. Raises, with the place, where config does not fit or what comes out is no toolset.

    A parameter `config` gets the config as a whole, `context` the context; any other is filled by the key of that
    name. `id` is the catalog's name, where config does not say otherwise. With `apart`, what was made already is put
    into a wrapper of PydanticAI's that does nothing, to be marked in its place.
    """
    if isinstance(target, Registration):
        values = given.with_values({**target.config, **given.values})
        made = create(target.toolset, values, context, name, apart=apart)
        return replace(made, registrations=(target, *made.registrations))
    if isinstance(target, AbstractToolset):
        if given.values:
            key = next(iter(given.values))
            what = f"{shown(given.owner)} is a finished toolset and takes no config"
            raise given.wrong(what, at=(key,), fix="remove the config, or put a function into TOOLSETS", key=True)
        instance = cast("AbstractToolset[Any]", target)
        return Made(WrapperToolset(instance) if apart else instance)
    return _called(target, given, context, name, apart=apart)


def _called(target: object, given: ToolsetValues, context: Any, name: str | None, *, apart: bool) -> Made:
    if not callable(target) or (inspect.isclass(target) and not issubclass(target, AbstractToolset)):
        raise given.wrong_use(f"{described(target)} is not a toolset", NO_TOOLSET)
    make = cast("Callable[..., Any]", target)
    shape = shape_of(make)
    positional, keywords = _arguments(shape, given, context, name)
    try:
        made: Any = make(*positional, **keywords)
    except MissingExtra:
        raise
    except SignoffError as error:
        raise given.wrong(str(error)) from None
    except Exception as error:  # whatever a plugin does wrong; the cause may hold secrets
        raise _failed(given, error) from (None if given.secrets else error)
    if isinstance(made, Registration):
        return create(made, given.with_values({}), context, name, apart=apart)
    if not isinstance(made, AbstractToolset):
        if inspect.iscoroutine(made):
            made.close()
        raise given.wrong_use(f"{described(make)} made {_a(type(made).__name__)}, which is not a toolset", NO_TOOLSET)
    return Made(cast("AbstractToolset[Any]", made))


def instance_in(target: object) -> AbstractToolset[Any] | None:
    """The toolset that something stands for as it is; None where it has to be made."""
    while isinstance(target, Registration):
        target = target.toolset
    return cast("AbstractToolset[Any]", target) if isinstance(target, AbstractToolset) else None


def _failed(given: ToolsetValues, error: Exception) -> SignoffError:
    if isinstance(error, OSError) and error.strerror and "root" in given.values:
        fix = "relative directories start from the project's"
        return given.wrong(f"this directory cannot be used: {error.strerror}", at=("root",), fix=fix)
    return given.wrong(f"creating it failed with {type(error).__name__}: {error}")


NO_TOOLSET = "a toolset is a pydantic_ai.toolsets.AbstractToolset, or a class or function that makes one"


def _arguments(shape: Shape, given: ToolsetValues, context: Any, name: str | None) -> tuple[list[Any], dict[str, Any]]:
    absent = shape.spare and not given.values
    value = None if absent else checked(shape, given)
    named: dict[str, Any] = {}
    if shape.config is not None:
        named[shape.config] = value
    elif isinstance(value, dict):
        named.update(cast("dict[str, Any]", value))
    elif given.values or shape.keywords.keys() - {"id"}:
        named.update({key: getattr(value, key) for key in shape.keywords if hasattr(value, key)})
    if shape.context is not None:
        named[shape.context] = context
    if "id" in shape.keywords and "id" not in named and name is not None:
        named["id"] = name
    first = [key for key, one in shape.parameters.items() if one.kind is one.POSITIONAL_ONLY and key in named]
    return [named.pop(key) for key in first], named


def described(target: object) -> str:
    """A class or function for people: `package.module:Class`."""
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    if isinstance(module, str) and isinstance(name, str):
        return shown(f"{module}:{name}")
    return _a(type(target).__name__)


def _a(kind: str) -> str:
    return f"an {kind}" if kind[:1].lower() in "aeiou" else f"a {kind}"
