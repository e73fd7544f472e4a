"""The keys of `--json` are an interface: programs read them. What changes here is a line in the changelog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from syrupy.assertion import SnapshotAssertion
from tests.cli.desk import Desk, asks

from signoff.core.comment import CommentKind
from signoff.core.people import Actor

FREE = frozenset({"args", "args_schema"})
"""Keys whose values are those of a tool."""


def shape(value: Any, at: str = "") -> Iterator[str]:
    """Every key in a value with the kind of what it holds, in order; of a list, those of all its items together."""
    if isinstance(value, dict) and at.rpartition(".")[2] not in FREE:
        for name, one in cast("dict[str, Any]", value).items():
            yield from shape(one, f"{at}.{name}" if at else name)
    elif isinstance(value, list):
        found = [line for one in cast("list[Any]", value) for line in shape(one, f"{at}[]")]
        yield from dict.fromkeys(found) if found else [f"{at}[]"]
    else:
        yield f"{at}: {type(value).__name__}"


def test_what_programs_read(desk: Desk, snapshot: SnapshotAssertion) -> None:
    desk.begin("7kq2m4x8ab")
    [first, second, third] = desk.open(asks(run="7kq2m4x8ab"), asks(), asks())
    desk.do(lambda broker: broker.comments.add(first, "why?", by=Actor(name="ben"), kind=CommentKind.QUESTION))
    found = {
        "approve": ["approve", second, "--remember", "exact", "--yes", "--json"],
        "approve, refused": ["approve", "nothing", "--json"],
        "deny": ["deny", third, "--note", "no", "--json"],
        "show": ["show", first, "--json"],
        "show, settled": ["show", second, "--json"],
        "inbox": ["inbox", "--json"],
        "runs": ["runs", "--json"],
        "runs show": ["runs", "show", "7kq2", "--json"],
        "grants list": ["grants", "list", "--json"],
        "people": ["people", "--json"],
        "comment": ["comment", first, "a note", "--json"],
    }
    keys = {name: "\n".join(dict.fromkeys(shape(desk.run(*words).data))) for name, words in found.items()}
    assert keys == snapshot
