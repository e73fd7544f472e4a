"""Validate the config of a plugin before anything runs, against its pydantic model, JSON schema or signature."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError

from signoff.config.llm_do_words import foreign_hint
from signoff.core.redact import redact_text
from signoff.errors import MissingExtra, Place, SignoffError, WrongFile, WrongUse
from signoff.policy.document import KeyTrail, key_text
from signoff.policy.phrases import did_you_mean, shown
from signoff.policy.placed_value import ConfigValue

HIDDEN = "‹hidden›"
"""Shown instead of a value that is a secret as a whole."""


@dataclass(frozen=True, kw_only=True)
class GivenConfig:
    """The config values of a plugin (a toolset, a channel), with their places in the file."""

    owner: str
    """Its name in the file, for messages."""
    values: Mapping[str, Any] = field(repr=False)
    spot: ConfigValue | None = None
    """Where its entry is written; None if it was not read from a file."""
    spots: Mapping[str, ConfigValue] = field(default_factory=dict[str, ConfigValue], repr=False)
    """Where each key is written, by key path."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values that must not be shown."""
    hint: str = ""
    """What to do if a value is missing."""
    what: str = "toolset"
    """What it configures, for messages."""
    under: str = "config"
    """The key of the entry that holds the values; empty if they are keys of the entry itself."""

    def with_values(self, values: Mapping[str, Any]) -> GivenConfig:
        return dataclasses.replace(self, values=values)

    def wrong(self, what: str, *, at: KeyTrail = (), fix: str = "", key: bool = False) -> SignoffError:
        """Create the error for the value at a key path, or for the config as a whole. Secrets are masked."""
        what = self.hidden(what)
        fix = self.hidden(fix or self.hint or f"`signoff toolsets show {self.owner}` says what it takes")
        if self.spot is None:
            where = f"{self.what} {shown(self.owner)}{f': {self.key(at)}' if at else ''}"
            return WrongUse(f"{where}: {what}\n  {fix}")
        return WrongFile(what, place=self._place(at, key=key), fix=fix)

    def key(self, at: KeyTrail) -> str:
        """The key path of a value in the entry."""
        return key_text((self.under, *at) if self.under else at)

    def wrong_use(self, what: str, fix: str) -> SignoffError:
        """Create the error for what `use` refers to."""
        if self.spot is None:
            return self.wrong(what, fix=fix)
        value: Any = self.spot.value
        spot = self.spot.child("use") if isinstance(value, dict) and "use" in value else self.spot
        return WrongFile(self.hidden(what), place=spot.place, fix=self.hidden(fix))

    def hidden(self, text: str) -> str:
        """The text with secrets masked."""
        return redact_text(text, secrets=self.secrets)

    def shown(self, value: str) -> str:
        """A value for messages, in backquotes. A value that contains a secret is hidden completely."""
        return shown(value) if self.hidden(value) == value else HIDDEN

    def _place(self, at: KeyTrail, *, key: bool) -> Place:
        assert self.spot is not None
        for length in range(len(at), 0, -1):
            found = self.spots.get(key_text(at[:length]))
            if found is not None:
                trail = (*found.trail, *at[length:])
                document = found.document
                return document.place_of_key(trail) if key and length == len(at) else document.place_of(trail)
        value: Any = self.spot.value
        has_config = isinstance(value, dict) and self.under in value
        trail = (*self.spot.trail, self.under) if has_config else self.spot.trail
        return self.spot.document.place_of(trail)


@dataclass(frozen=True)
class Shape:
    """What a plugin takes, read from the class or function that creates it."""

    target: Callable[..., Any]
    parameters: Mapping[str, inspect.Parameter]
    hints: Mapping[str, Any]
    model: Any = None
    """Its own pydantic model (or dataclass, or TypedDict) for config."""
    schema: Mapping[str, Any] | None = None
    """Its own JSON schema for config."""
    config: str | None = None
    """The parameter that takes the config as a whole."""
    context: str | None = None
    """The parameter that takes the context."""
    spare: bool = False
    """Whether the config parameter may be None. It is then None if no config is given."""

    @property
    def keywords(self) -> dict[str, inspect.Parameter]:
        """The parameters that are filled from single keys of the config."""
        return {
            name: one
            for name, one in self.parameters.items()
            if name not in (self.config, self.context)
            and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY)
        }

    @property
    def takes_any(self) -> bool:
        return any(one.kind is one.VAR_KEYWORD for one in self.parameters.values())


def shape_of(target: Callable[..., Any], contexts: Sequence[Any] = ()) -> Shape:
    """Inspect how a class or function is to be called. `contexts` are types by which its context is recognised."""
    try:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(target).parameters
    except (TypeError, ValueError):  # some callables written in C have no signature
        parameters = {}
    hints = _hints(target, parameters)
    context = _named(parameters, hints, "context", contexts)
    model = next((one for name in ("config_model", "Config") if is_model(one := getattr(target, name, None))), None)
    config = _named(parameters, hints, "config", (model,) if model is not None else ())
    found = _model_in(hints.get(config)) if config is not None else None
    model = model if model is not None else found
    schema = getattr(target, "config_schema", None)
    return Shape(
        target,
        parameters,
        hints,
        model,
        cast("Any", schema) if isinstance(schema, Mapping) else None,
        config,
        context,
        spare=config is not None and found is not None and found is not _bare(hints.get(config)),
    )


def _hints(target: Callable[..., Any], parameters: Mapping[str, inspect.Parameter]) -> Mapping[str, Any]:
    """The type hints of the parameters, resolved one by one.

    So a name that only type checkers know affects its own parameter only.
    """
    function = _function(target)
    known: dict[str, Any] = getattr(function, "__globals__", {})
    own: Mapping[str, Any] = vars(target) if inspect.isclass(target) else {}
    found: dict[str, Any] = {}
    for name, one in parameters.items():
        if one.annotation is one.empty:
            continue
        alone = type(name, (), {"__annotations__": {name: one.annotation}})
        try:
            found[name] = get_type_hints(alone, known, dict(own), include_extras=True)[name]
        except Exception:  # values for this parameter are then not checked
            continue
    return found


def _function(target: Any) -> Any:
    """The function that runs when a class, a partial or an object with `__call__` is called."""
    while isinstance(target, functools.partial):
        target = cast("Any", target.func)
    if inspect.isclass(target):
        target = target.__init__
    elif not inspect.isroutine(target):
        target = type(target).__call__
    return inspect.unwrap(target)


def _bare(hint: Any) -> Any:
    """A type without its `Annotated` metadata."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _model_in(hint: Any) -> Any:
    """The model that a parameter is annotated with, also as `Model | None`; None if there is none."""
    bare = _bare(hint)
    arms = [_bare(one) for one in get_args(bare)] if get_origin(bare) in (Union, UnionType) else [bare]
    others = [one for one in arms if one is not NoneType]
    return others[0] if len(others) == 1 and is_model(others[0]) else None


def _named(
    parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any], name: str, types: Sequence[Any]
) -> str | None:
    if name in parameters:
        return name
    return next((one for one in parameters if any(hints.get(one) is kind for kind in types)), None)


def is_model(found: object) -> bool:
    """Whether pydantic can validate a mapping against this type."""
    if not inspect.isclass(found):
        return False
    typed = dict in found.__mro__ and hasattr(found, "__total__")  # of `typing`, or of `typing_extensions`
    return typed or issubclass(found, BaseModel) or dataclasses.is_dataclass(found)


def checked(shape: Shape, given: GivenConfig) -> Any:
    """Validate the config. Returns an instance of the plugin's model, or a mapping."""
    if shape.model is not None:
        return _by_model(shape.model, given)
    if shape.schema is not None:
        return _by_schema(shape.schema, given)
    if shape.config is not None:
        return dict(given.values)
    return _by_signature(shape, given)


# --- a pydantic model ---


def _by_model(model: Any, given: GivenConfig) -> Any:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(model)
    except PydanticUserError as error:
        what = f"pydantic cannot check config against {shown(model.__name__)}: {error.message}"
        raise given.wrong_use(what, "repair the package it is in") from error
    settings: Any = getattr(model, "model_config", None) or getattr(model, "__pydantic_config__", None) or {}
    try:
        extra = "forbid" if settings.get("extra") != "allow" else None
        return adapter.validate_python(dict(given.values), extra=extra)
    except ValidationError as error:
        raise _told(error, given, _fields(model)) from None  # the cause would show the values


def _fields(model: Any) -> list[str]:
    if issubclass(model, BaseModel):
        return [one.alias or name for name, one in model.model_fields.items()]
    return list(getattr(model, "__dataclass_fields__", None) or model.__annotations__)


def _told(error: ValidationError, given: GivenConfig, known: Sequence[str], under: KeyTrail = ()) -> SignoffError:
    """The error for the first problem. Unknown keys come first, because they often cause the others."""
    problems = error.errors(include_url=False, include_input=False, include_context=False)
    problem = next((one for one in problems if one["type"] in _EXTRA), problems[0])
    at = (*under, *_trail(problem["loc"], given))
    if problem["type"] in _EXTRA:
        fix = foreign_hint(str(at[-1])) or (did_you_mean(str(at[-1]), known) if len(at) == 1 else "remove it")
        return given.wrong(f"unknown key {shown(str(at[-1]))}", at=at, fix=fix, key=True)
    if problem["type"] == "missing":
        return _missing(given, at)
    return given.wrong(_worded(problem["msg"]), at=at)


_EXTRA = ("extra_forbidden", "unexpected_keyword_argument")


def _missing(given: GivenConfig, at: KeyTrail) -> SignoffError:
    return given.wrong(f"{shown(given.key(at))} is missing", at=at)


def _trail(location: tuple[str | int, ...], given: GivenConfig) -> KeyTrail:
    """The part of pydantic's location that is a key path of the config. Unions add words of their own."""
    trail: list[str | int] = []
    value: Any = given.values
    for step in location:
        inside = isinstance(value, Mapping) and isinstance(step, str)
        if inside and step not in value and len(trail) + 1 < len(location):
            continue
        trail.append(step)
        try:
            value = cast("Any", value)[step]
        except (KeyError, IndexError, TypeError):
            value = None
    return tuple(trail)


def _worded(message: str) -> str:
    """Reword pydantic's message."""
    for start, ours in (("Input should be ", "this should be "), ("Value error, ", ""), ("Assertion failed, ", "")):
        if message.startswith(start):
            return f"{ours}{message.removeprefix(start)}"
    return message[:1].lower() + message[1:]


# --- a JSON schema ---


def _by_schema(schema: Mapping[str, Any], given: GivenConfig) -> dict[str, Any]:
    from jsonschema.validators import validator_for

    strict = {"additionalProperties": False, **schema} if "properties" in schema else dict(schema)
    properties: Mapping[str, Any] = schema.get("properties", {})
    if strict.get("additionalProperties") is False and not schema.get("patternProperties"):
        for key in given.values:
            if key not in properties:
                raise given.wrong(f"unknown key {shown(key)}", at=(key,), fix=did_you_mean(key, properties), key=True)
    validator: Any = validator_for(strict)(strict)
    for error in validator.iter_errors(dict(given.values)):
        at = tuple(cast("Sequence[str | int]", error.absolute_path))
        if error.validator == "required":
            missing = next(key for key in error.validator_value if key not in error.instance)
            raise _missing(given, (*at, missing))
        expected = {"type": "a value of type {}", "enum": "one of {}"}.get(error.validator)
        # Not the validator's own message: it quotes the value.
        what = expected.format(error.validator_value) if expected else f"{error.validator}: {error.validator_value}"
        raise given.wrong(f"this should be {what}", at=at)
    return dict(given.values)


# --- a signature ---


def _by_signature(shape: Shape, given: GivenConfig) -> dict[str, Any]:
    known = shape.keywords
    values: dict[str, Any] = {}
    for key, value in given.values.items():
        if key not in known and not shape.takes_any:
            fix = foreign_hint(key) or (did_you_mean(key, known) if known else "it takes no config")
            raise given.wrong(f"unknown key {shown(key)}", at=(key,), fix=fix, key=True)
        values[key] = _value(shape.hints.get(key, Any), key, value, given)
    for name, one in known.items():
        if one.default is one.empty and name not in values and name != "id":
            raise _missing(given, (name,))
    return values


def _value(kind: Any, key: str, value: Any, given: GivenConfig) -> Any:
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
    except (PydanticUserError, TypeError, NameError):  # a type pydantic does not know
        return value
    try:
        done = adapter.validate_python(value)
        if type(done).__name__ != "ValidatorIterator":
            return done
        if isinstance(value, str):  # a string is an iterable of strings, but a list was meant
            fix = f"write [{given.shown(value).strip('`')}]"
            raise given.wrong("this should be a list, not a text", at=(key,), fix=fix)
        return list(done)
    except ValidationError as error:
        raise _told(error, given, (), (key,)) from None


def keys_of(shape: Shape) -> list[str]:
    """The keys that a plugin takes, as far as it declares them."""
    if shape.model is not None:
        return _fields(shape.model)
    if shape.schema is not None:
        return list(shape.schema.get("properties", ()))
    return [] if shape.config is not None else list(shape.keywords)


# --- creating it ---


def made_by(
    make: Callable[..., Any],
    given: GivenConfig,
    context: Any,
    *,
    contexts: Sequence[Any] = (),
    name: str | None = None,
    shape: Shape | None = None,
) -> Any:
    """Call the class or function that creates a plugin. Raises, with the place in the file, if the config is invalid.

    A parameter `config` gets the whole config and `context` the context; any other parameter is filled from the key of
    that name. `id` defaults to `name`.
    """
    positional, keywords = _arguments(shape or shape_of(make, contexts), given, context, name)
    try:
        return make(*positional, **keywords)
    except MissingExtra:
        raise
    except SignoffError as error:
        raise given.wrong(str(error)) from None
    except Exception as error:  # a plugin may raise anything; the cause may hold secrets
        raise _failed(given, error) from (None if given.secrets else error)


def _failed(given: GivenConfig, error: Exception) -> SignoffError:
    if isinstance(error, OSError) and error.strerror and "root" in given.values:
        fix = "relative directories start from the project's"
        return given.wrong(f"this directory cannot be used: {error.strerror}", at=("root",), fix=fix)
    return given.wrong(f"creating it failed with {type(error).__name__}: {error}")


def _arguments(shape: Shape, given: GivenConfig, context: Any, name: str | None) -> tuple[list[Any], dict[str, Any]]:
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
    return an(type(target).__name__)


def an(kind: str) -> str:
    """A kind with its article."""
    return f"an {kind}" if kind[:1].lower() in "aeiou" else f"a {kind}"
