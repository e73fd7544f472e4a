"""Dataclasses that are made quickly: `dataclass` as in the standard library, for modules that every start imports.

The standard library compiles up to seven functions for each class, when it is defined. Here `__init__` is compiled when
it is first needed, and the others are shared, so that a start pays only for the classes that it uses. Which options and
fields there are, and how instances behave, is the same; a class that inherits from a dataclass is made by the standard
library itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from operator import attrgetter
    from reprlib import recursive_repr

    def dataclass(cls=None, /, *, eq=True, frozen=False, slots=False, kw_only=False):
        """As `dataclasses.dataclass`."""

        def made(cls):
            if any("__dataclass_fields__" in vars(base) for base in cls.__mro__[1:]):
                return dataclasses.dataclass(cls, eq=eq, frozen=frozen, slots=slots, kw_only=kw_only)
            own = vars(cls).keys() - {"__doc__", "__module__", "__qualname__"}
            explicit_hash = vars(cls).get("__hash__", ...)
            if not cls.__doc__:
                cls.__doc__ = cls.__name__  # or the standard library reads it out of an `__init__` that is not there
            cls = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
            fields = dataclasses.fields(cls)
            params = cls.__dataclass_params__  # what classes that inherit from it, and those who look, go by
            params.init = params.repr = True
            params.eq, params.frozen = eq, frozen
            if "__init__" not in own:
                cls.__init__ = _Init(cls, frozen)
            if "__repr__" not in own:
                cls.__repr__ = _repr_of(tuple(one.name for one in fields if one.repr))
            if eq and "__eq__" not in own:
                cls.__eq__ = _eq_of(_values_of([one.name for one in fields if one.compare]))
            if eq and (explicit_hash is ... or (explicit_hash is None and "__eq__" in own)):
                hashed = [one.name for one in fields if (one.compare if one.hash is None else one.hash)]
                cls.__hash__ = _hash_of(_values_of(hashed)) if frozen else None
            if frozen:
                _freeze(cls, own, frozenset(one.name for one in fields))
                if slots and "__getstate__" not in own:
                    cls.__getstate__, cls.__setstate__ = _state, _set_state
            return cls

        return made if cls is None else made(cls)

    class _Init:
        """The `__init__` of a class, which is compiled when somebody first looks at it."""

        def __init__(self, cls, frozen):
            self._cls = cls
            self._frozen = frozen

        def __get__(self, instance, owner=None):
            if self._cls.__dict__.get("__init__") is self:
                self._cls.__init__ = _init_of(self._cls, self._frozen)
            return self._cls.__dict__["__init__"].__get__(instance, owner)

    def _init_of(cls, frozen):
        fields = list(dataclasses.fields(cls))
        first, named, body = [], [], []
        names = {"_set": object.__setattr__, "_absent": _ABSENT, "__name__": cls.__module__}
        for number, one in enumerate(fields):
            value = one.name
            if one.default_factory is not dataclasses.MISSING:
                names[f"_make{number}"] = one.default_factory
                value = f"_make{number}()"
                if one.init:
                    value = f"{value} if {one.name} is _absent else {one.name}"
                default = "=_absent"
            elif one.default is not dataclasses.MISSING:
                names[f"_default{number}"] = one.default
                value = one.name if one.init else f"_default{number}"
                default = f"=_default{number}"
            elif one.init:
                default = ""
            else:
                continue  # somebody else sets it
            if one.init:
                (named if one.kw_only else first).append(f"{one.name}{default}")
            body.append(f"_set({_SELF}, {one.name!r}, {value})" if frozen else f"{_SELF}.{one.name} = {value}")
        if hasattr(cls, "__post_init__"):
            body.append(f"{_SELF}.__post_init__()")
        words = ", ".join([_SELF, *first, *(["*"] if named else []), *named])
        exec(f"def __init__({words}):\n " + "\n ".join(body or ["pass"]), names)
        made = names["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        made.__annotations__ = {one.name: one.type for one in fields if one.init} | {"return": None}
        return made

    _SELF = "self"

    class _Absent:
        def __repr__(self):
            return "<factory>"

    _ABSENT = _Absent()

    def _values_of(names):
        """Reads the values of fields, as a tuple."""
        match names:
            case []:
                return lambda one: ()
            case [name]:
                return lambda one: (getattr(one, name),)
            case _:
                return attrgetter(*names)

    def _repr_of(names):
        @recursive_repr()
        def __repr__(self):
            return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

        return __repr__

    def _eq_of(values):
        def __eq__(self, other):
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        return __eq__

    def _hash_of(values):
        def __hash__(self):
            return hash(values(self))

        return __hash__

    def _freeze(cls, own, names):
        if clash := own & {"__setattr__", "__delattr__"}:
            raise TypeError(f"cannot overwrite attribute {min(clash)} in class {cls.__name__}")

        def __setattr__(self, name, value):
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
            super(cls, self).__setattr__(name, value)

        def __delattr__(self, name):
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
            super(cls, self).__delattr__(name)

        cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__

    def _state(self):
        return [getattr(self, one.name) for one in dataclasses.fields(self)]

    def _set_state(self, state):
        for one, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, one.name, value)
