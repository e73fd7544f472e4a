"""A table that is gone through in one test tries every row and names those that fail."""

from __future__ import annotations

import inspect

import pytest
from tests.tables import LONGEST, table


def test_every_row_is_tried() -> None:
    tried: list[tuple[int, str]] = []

    @table("number", [1, 2])
    @table(("letter",), ["a", "b"])
    def test(number: int, letter: str) -> None:
        tried.append((number, letter))

    test()
    assert tried == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]


def test_a_failure_names_every_row_that_fails_and_says_why() -> None:
    @table(("number", "square"), [(2, 4), (3, 10), (4, 16), (0, None), (5, "skip"), (6, "fail")])
    def test(number: int, square: object) -> None:
        if square == "skip":
            pytest.skip("no such row is left out in silence")
        if square == "fail":
            pytest.fail("by hand")
        assert number, "by assertion"
        if number**2 != square:
            raise ValueError(f"it is {number**2}")

    with pytest.raises(AssertionError) as failure:
        test()
    first, *rows = str(failure.value).split("\n\n")
    assert first == "4 of 6 rows fail"
    assert [row.split("\n")[0] for row in rows] == [
        "row 1: 3, 10",
        "row 3: 0, None",
        "row 4: 5, 'skip'",
        "row 5: 6, 'fail'",
    ]
    for row, why in zip(rows, ("ValueError: it is 9", "by assertion", "in silence", "Failed: by hand"), strict=True):
        assert why in row
    assert isinstance(failure.value.__cause__, ValueError), "the traceback of the first is shown"


@pytest.mark.parametrize(
    ("ids", "name"), [(["long", "short"], "row 1: short"), (len, "row 1: 1"), (None, "row 1: 'x'")]
)
def test_a_row_may_have_a_name(ids: object, name: str) -> None:
    @table("text", ["x" * 1_000, "x"], ids)  # type: ignore[arg-type]
    def test(text: str) -> None:
        assert len(text) > 1

    with pytest.raises(AssertionError, match=name):
        test()


def test_what_is_told_about_a_row_is_bounded() -> None:
    @table("text", ["x" * 10**6])
    def test(text: str) -> None:
        raise ValueError(text)

    with pytest.raises(AssertionError) as failure:
        test()
    assert LONGEST < len(str(failure.value)) < LONGEST + 500


def test_fixtures_are_left_to_pytest() -> None:
    @pytest.mark.nightly
    @table("number", [1])
    def test(number: int, directory: str) -> None:
        assert (number, directory) == (1, "here")

    assert list(inspect.signature(test).parameters) == ["directory"]
    test(directory="here")


def test_a_table_that_cannot_fail_is_refused() -> None:
    def test(number: int) -> None: ...

    async def later(number: int) -> None: ...

    with pytest.raises(ValueError, match="tests nothing"):
        table("number", [])(test)
    with pytest.raises(ValueError, match="3 values for number, letter"):
        table("number, letter", [(1, "a"), (2, "b", "c")])
    with pytest.raises(TypeError, match="no argument other"):
        table("other", [1])(test)
    with pytest.raises(TypeError, match="async"):
        table("number", [1])(later)
    with pytest.raises(TypeError, match="a test of its own"):
        table("number", [pytest.param(1, marks=pytest.mark.nightly)])
