"""A stored value of the wrong type is not believed: reading it says which table, row and field."""

from __future__ import annotations

import copy
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contracts import samples
from tests.core.test_codec import (
    CLAIMS,
    DECISIONS,
    DELEGATIONS,
    GRANTS,
    PROCESSES,
    RUNS,
    VOTES,
    changing,
    questions,
)
from tests.profiles import examples
from tests.steps import steps
from tests.store.test_rows import DOWNS, deliveries

from signoff.core import codec
from signoff.core.lease import Lease
from signoff.errors import SchemaError, StoreDamaged
from signoff.store import tables
from signoff.store.delivery_table import delivery_columns, delivery_of, lease_columns, lease_of
from signoff.store.request_table import request_of
from signoff.store.sqlite import SqliteStore
from signoff.store.tables import Row, column

OTHERS: list[Any] = [None, True, False, 0, 7, -1, 1.5, "", "false", "x", [], ["x"], [7], {}, {"x": 1}]
FREE = {"args", "metadata", "schema", "edited_args", "input", "value"}
"""Fields that hold any JSON: digests tell whether these were changed."""
PLACE = tuple[Any, ...]


def places(data: Any, at: PLACE = ()) -> Iterator[tuple[PLACE, Any]]:
    """Every value in a JSON value whose type matters, with its place."""
    yield at, data
    if isinstance(data, dict | list):
        data = cast("dict[str, Any] | list[Any]", data)
        inner: list[Any] = [*(data.items() if isinstance(data, dict) else enumerate(data))]
        for name, item in inner:
            if name in FREE:
                yield (*at, name), item
            else:
                yield from places(item, (*at, name))


def put(data: Any, at: PLACE, value: Any) -> Any:
    if not at:
        return value
    data = inner = copy.deepcopy(data)
    for name in at[:-1]:
        inner = inner[name]
    inner[at[-1]] = value
    return data


def outcome(read: Callable[[], Any]) -> Any:
    """What reading returns, or the error that it raises on purpose."""
    try:
        return read()
    except (SchemaError, StoreDamaged) as error:
        return error


KINDS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], str], Callable[[str], Any]]] = {
    "requests": (questions(), codec.dump_question, lambda text: codec.load_question(text, UNCHANGED)),
    "decisions": (DECISIONS, codec.DECISION.to_text, codec.DECISION.from_text),
    "votes": (VOTES, lambda vote: f"[{codec.VOTE.to_text(vote)}]", codec.load_votes),
    "claims": (CLAIMS, codec.CLAIM.to_text, codec.CLAIM.from_text),
    "grants": (GRANTS | st.just(samples.RICH_GRANT), codec.GRANT.to_text, codec.GRANT.from_text),
    "runs": (RUNS | st.just(samples.RICH_RUN), codec.RUN.to_text, codec.RUN.from_text),
    "processes": (PROCESSES, codec.PROCESS.to_text, codec.PROCESS.from_text),
    "delegations": (DELEGATIONS, codec.DELEGATION.to_text, codec.DELEGATION.from_text),
    "access_keys": (st.just(samples.RICH_KEY), codec.ACCESS_KEY.to_text, codec.ACCESS_KEY.from_text),
    "comments": (st.just(samples.RICH_COMMENT), codec.COMMENT.to_text, codec.COMMENT.from_text),
    "aap_requests": (st.just(samples.RICH_AAP_REQUEST), codec.AAP_REQUEST.to_text, codec.AAP_REQUEST.from_text),
    "aap_instances": (st.just(samples.RICH_AAP_INSTANCE), codec.AAP_INSTANCE.to_text, codec.AAP_INSTANCE.from_text),
}
UNCHANGED = changing(samples.request())


@pytest.mark.parametrize("table", KINDS)
@examples(500, daily=12)
@given(data=st.data())
def test_no_value_of_another_type_is_believed(table: str, data: st.DataObject) -> None:
    values, dump, load = KINDS[table]
    written = json.loads(dump(data.draw(values)))
    at, item = data.draw(st.sampled_from(list(places(written))))
    others = [one for one in OTHERS if type(one) is not type(item)]
    text = json.dumps(put(written, at, data.draw(st.sampled_from(others))))
    before = load(json.dumps(written))
    found = outcome(lambda: load(text))
    if isinstance(found, StoreDamaged):
        assert found.table == table
        assert found.field or not at
        assert "Nothing was decided from it" in str(found)
    else:
        assert found == before or "is kept with" in str(found) or at[-1:] == ("value",)  # of any type


@pytest.mark.parametrize("table", KINDS)
@examples(200, daily=6)
@given(data=st.data())
def test_what_cannot_be_left_out_is_missed(table: str, data: st.DataObject) -> None:
    """The other fields have a default, which is what a missing field means."""
    values, dump, load = KINDS[table]
    written: Any = json.loads(dump(data.draw(values)))
    inner = [at for at, _ in places(written) if at and type(at[-1]) is str and not FREE & set(at[:-1])]
    *at, name = data.draw(st.sampled_from(inner))
    fewer: dict[str, Any] = written
    for one in at:
        fewer = fewer[one]
    del fewer[name]
    found = outcome(lambda: load(json.dumps(written)))
    if isinstance(found, StoreDamaged):
        assert found.table == table and found.field


@pytest.mark.parametrize("table", KINDS)
@pytest.mark.parametrize("text", ["", "{", "nonsense", "[" * 100_000, 7, None, b"\xff"], ids=str)
def test_what_is_no_json_is_told(table: str, text: Any) -> None:
    with pytest.raises(StoreDamaged, match=f"table {table}: it is not the JSON that signoff writes"):
        KINDS[table][2](text)


def written(table: str, at: PLACE, value: Any) -> str:
    rich = {
        "requests": codec.dump_question(samples.rich_request()),
        "decisions": codec.DECISION.to_text(samples.EDITED),
        "votes": f"[{codec.VOTE.to_text(samples.rich_life()[3].votes[0])}]",
        "grants": codec.GRANT.to_text(samples.RICH_GRANT),
        "runs": codec.RUN.to_text(samples.RICH_RUN),
        "access_keys": codec.ACCESS_KEY.to_text(samples.RICH_KEY),
    }
    return json.dumps(put(json.loads(rich[table]), at, value))


@pytest.mark.parametrize(
    ("table", "at", "value", "said"),
    [
        ("decisions", ("approved",), "false", "its field approved holds a text where signoff writes true or false"),
        ("decisions", ("approved",), 1, "its field approved holds a whole number where"),
        (
            "decisions",
            ("by",),
            {"name": "a", "roles": "boss"},
            "its field by.roles holds a text where signoff writes a list",
        ),
        (
            "decisions",
            ("by",),
            {"name": "a", "kind": "robot"},
            "its field by.kind holds a value that signoff does not write",
        ),
        ("decisions", ("terms", "match"), 7, "its field terms.match holds a whole number"),
        ("votes", (0, "at"), "soon", "its field 0.at holds a value that signoff does not write"),
        ("votes", (0, "decision", "approved"), None, "its field 0.decision.approved holds nothing where"),
        ("grants", ("approved",), "no", "row 'g-rich': its field approved holds a text"),
        ("grants", ("max_uses",), "3", "row 'g-rich': its field max_uses holds a text where signoff writes a whole"),
        ("grants", ("max_uses",), None, "row 'g-rich': its field max_uses holds nothing where"),
        ("grants", ("max_uses",), True, "row 'g-rich': its field max_uses holds true or false where"),
        ("grants", ("spent",), "NaN", "row 'g-rich': its field spent holds a value that"),
        ("grants", ("budget", "limit"), "Infinity", "row 'g-rich': its field budget.limit holds a value that"),
        ("grants", ("until",), 7, "row 'g-rich': its field until holds a whole number where signoff writes a text"),
        ("runs", ("setup", "deny"), "rm", "row 'run-rich': its field setup.deny holds a text where signoff writes a"),
        ("runs", ("setup", "deny", 1), 7, "row 'run-rich': its field setup.deny.1 holds a whole number"),
        ("runs", ("state",), "dancing", "row 'run-rich': its field state holds a value that signoff does not write"),
        ("access_keys", ("permissions", 0), "all", "row 'key-9': its field permissions holds a value that"),
        ("access_keys", ("is_program",), "no", "row 'key-9': its field is_program holds a text"),
        ("requests", ("verdict", "requirement", "quorum"), "2", "row 'rich': its field verdict.requirement.quorum"),
        ("requests", ("veiled",), "secret", "row 'rich': its field veiled holds a text"),
        ("requests", ("call", "args"), [], "row 'rich': its field call.veiled holds a value"),
        ("requests", ("call", "veiled"), {"secret": 1}, "row 'rich': its field call.veiled holds an object"),
        ("requests", ("same",), "yes", "row 'rich': its field same holds a value"),
    ],
)
def test_where_it_is_and_what_it_holds_is_told(table: str, at: PLACE, value: Any, said: str) -> None:
    with pytest.raises((StoreDamaged, SchemaError), match=said):
        KINDS[table][2](written(table, at, value))


def test_the_value_itself_is_not_told() -> None:
    """It may be a secret."""
    with pytest.raises(StoreDamaged) as told:
        KINDS["decisions"][2](written("decisions", ("note",), ["hunter2"]))
    assert "hunter2" not in str(told.value)


# --- columns: SQLite keeps a value of any type in any of them ---

REQUEST_ROW: Row = (
    "r1", 1, "pending", 0, None, 5, 0, "", "", None, None, None, codec.dump_question(samples.rich_request())
)  # fmt: skip
ROWS: list[tuple[st.SearchStrategy[Row], Callable[[Row], Any], str]] = [
    (st.just(REQUEST_ROW), request_of, "requests"),
    (deliveries().map(lambda one: list(map(column, delivery_columns(one)))), delivery_of, "deliveries"),
    (
        st.builds(Lease, channel=st.just("c"), process=st.just("p"), down=DOWNS).map(
            lambda one: list(map(column, lease_columns(one)))
        ),
        lease_of,
        "leases",
    ),
]
COLUMN_VALUES: list[Any] = [None, 0, 7, 2**80, 1.5, "", "false", "\x01json:[", "\x01json:[]", b"x"]


@pytest.mark.parametrize(("values", "read", "table"), ROWS, ids=[one[2] for one in ROWS])
@examples(1_000, daily=50)
@given(data=st.data())
def test_no_column_of_another_type_is_believed(
    values: st.SearchStrategy[Row], read: Callable[[Row], Any], table: str, data: st.DataObject
) -> None:
    row = list(data.draw(values))
    before = read(row)
    nr = data.draw(st.integers(0, len(row) - 1))
    value = data.draw(st.sampled_from([one for one in COLUMN_VALUES if type(one) is not type(row[nr])]))
    nullable = row[nr] is None or value is None
    row[nr] = value
    found = outcome(lambda: read(row))
    if isinstance(found, StoreDamaged):
        assert found.table in (table, "decisions", "votes", "claims")
        assert found.row == ("" if nr == 0 else row[0])
        assert found.field or found.table != table
    else:
        assert found == before or nullable


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        (2, "dancing", "table requests, row 'r1': its field state holds a value that signoff does not write"),
        (3, 2**80, "table requests, row 'r1': its field opened_at holds a value that signoff does not write"),
        (6, "false", "table requests, row 'r1': its field escalated holds a text where signoff writes a whole number"),
        (10, '{"approved":"false"}', "table decisions, row 'r1': its field approved holds a text"),
        (9, '[{"by":7}]', "table votes, row 'r1': its field 0.by holds a whole number"),
    ],
)
def test_a_request_says_what_is_wrong_with_it(column: int, value: Any, said: str) -> None:
    row = list(REQUEST_ROW)
    row[column] = value
    with pytest.raises(StoreDamaged, match=said):
        request_of(row)


async def test_an_approval_that_was_changed_in_the_file_is_used_by_nobody(tmp_path: Path) -> None:
    """The text `"false"` would be true in Python."""
    file = tmp_path / "signoff.db"
    asked = samples.request()
    with closing(SqliteStore(file)) as store:
        await store.write("add", lambda tx: tx.requests.add(asked))
        await store.write("put", lambda tx: tx.requests.put(samples.approved(asked)))
        with closing(sqlite3.connect(file)) as other, other:
            other.execute("update decisions set decision = replace(decision, ':true', ':\"false\"')")
        tables.forget()
        with pytest.raises(StoreDamaged, match=f"table decisions, row '{asked.id}': its field approved holds a text"):
            await store.read(lambda tx: tx.requests.get(asked.id))


# --- and it stays fast: reading a request is what every resumed call begins with ---


def test_reading_takes_few_steps() -> None:
    question = codec.dump_question(samples.request())
    run = codec.RUN.to_text(samples.run(1))
    for read in (lambda: codec.load_question(question, UNCHANGED), lambda: codec.RUN.from_text(run)):
        read()  # what has these types is known from now on
    assert steps(lambda: codec.load_question(question, UNCHANGED)) <= 160
    assert steps(lambda: codec.RUN.from_text(run)) <= 100
    request_of(REQUEST_ROW)
    assert steps(lambda: request_of(REQUEST_ROW)) <= 110
