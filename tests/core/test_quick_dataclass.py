"""`signoff.quick_dataclass` makes the classes that the standard library makes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from signoff import quick_dataclass
from signoff.lazy_pattern import lazy_pattern

Makes = Callable[..., Any]
OPTIONS = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"eq": False, "slots": True},
]


def plain(dataclass: Makes, options: dict[str, bool]) -> Any:
    @dataclass(**options)
    class Thing:
        """A thing."""

        name: str
        size: int = 3
        parts: list[int] = dataclasses.field(default_factory=list[int])
        hidden: str = dataclasses.field(default="h", repr=False, compare=False)
        made: str = dataclasses.field(init=False, default="later")

        def __post_init__(self) -> None:
            object.__setattr__(self, "made", f"{self.name}{self.size}")

    return Thing


def own(dataclass: Makes, options: dict[str, bool]) -> Any:
    @dataclass(**options)
    class Thing:
        """It says much itself."""

        name: str
        size: int = 0

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    return Thing


def told(work: Callable[[], object]) -> object:
    try:
        return work()
    except Exception as error:
        return type(error), str(error).replace("test_quick_dataclass.", "")


LOOKS: dict[str, Callable[[Any], object]] = {
    "repr": lambda made: repr(made(name="a")),
    "equal": lambda made: made(name="a") == made(name="a"),
    "unequal": lambda made: made(name="a") == made(name="b"),
    "other": lambda made: made(name="a") == 1,
    "uncompared": lambda made: made(name="a", hidden="x") == made(name="a"),
    "hash": lambda made: hash(dataclasses.replace(made(name="a"), parts=())) == hash(("a", 3, (), "a3")),
    "hash of its own": lambda made: hash(made(name="a")) == 7,
    "set": lambda made: setattr(made(name="a"), "name", "b"),
    "delete": lambda made: delattr(made(name="a"), "name"),
    "too few": lambda made: made(),
    "too many": lambda made: made(name="a", nobody=1),
    "by place": lambda made: made("a", 4).size,
    "signature": lambda made: [(one.name, one.kind) for one in inspect.signature(made).parameters.values()],
    "fields": lambda made: [(one.name, one.kw_only, one.init) for one in dataclasses.fields(made)],
    "dict": lambda made: dataclasses.asdict(made(name="a")),
    "replace": lambda made: dataclasses.replace(made(name="a"), size=9).made,
    "copy": lambda made: copy.copy(made(name="a")).name,
    "state": lambda made: copy.deepcopy(made(name="a", size=4)).made,
    "fresh": lambda made: made(name="a").parts is made(name="b").parts,
    "match": lambda made: made.__match_args__,
    "slots": lambda made: getattr(made, "__slots__", None),
    "doc": lambda made: made.__doc__,
    "init": lambda made: made.__init__.__qualname__,
    "types": lambda made: made.__init__.__annotations__,
    "inherits": lambda made: dataclasses.dataclass(type("Sub", (made,), {"__annotations__": {}}))(name="s").name,
    "inherits frozen": lambda made: dataclasses.dataclass(frozen=True)(type("S", (made,), {}))(name="s").name,
}


@pytest.mark.parametrize("make", [plain, own])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_is_what_the_standard_library_makes(
    make: Callable[[Makes, dict[str, bool]], Any], options: dict[str, bool]
) -> None:
    theirs, ours = make(dataclasses.dataclass, options), make(quick_dataclass.dataclass, options)
    seen = {name: told(lambda look=look: look(ours)) for name, look in LOOKS.items()}
    assert seen == {name: told(lambda look=look: look(theirs)) for name, look in LOOKS.items()}


@quick_dataclass.dataclass(frozen=True, slots=True)
class Kept:
    """Something that is pickled."""

    name: str
    inner: Kept | None = None


@quick_dataclass.dataclass(frozen=True)
class More(Kept):
    """Something that inherits."""

    size: int = 1


def test_it_is_pickled_and_inherited_from() -> None:
    one = Kept("a", Kept("b"))
    assert pickle.loads(pickle.dumps(one)) == one
    assert repr(More("a", None, 2)) == "More(name='a', inner=None, size=2)"
    assert More("a") != Kept("a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        More("a").size = 3  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def test_an_init_is_compiled_when_it_is_used() -> None:
    made = plain(quick_dataclass.dataclass, {"frozen": True, "slots": True})
    assert not inspect.isfunction(made.__dict__["__init__"])
    made(name="a")
    assert inspect.isfunction(made.__dict__["__init__"])


def test_a_pattern_is_compiled_when_it_is_used() -> None:
    bad, good = lazy_pattern("("), lazy_pattern("a+(b)")
    assert good.sub("x", "caab") == "cx"
    found = good.search("caab")
    assert found is not None
    assert found[1] == "b"
    with pytest.raises(Exception, match="unterminated subpattern"):
        bad.match("")
