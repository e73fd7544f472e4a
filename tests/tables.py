"""A table of many small cases, gone through in one test.

    @table(("text", "reads"), [("ls", True), ("rm x", False)])
    def test_what_reads(text: str, reads: bool) -> None:

It is written as `pytest.mark.parametrize` and takes the same names, rows and ids. pytest spends more on a test of its
own than such a case takes. Every row is tried, and the failure names all rows that fail, each with its assertion; the
traceback is that of the first.

A row that needs a fixture of its own (`tmp_path`, `monkeypatch`), takes long or is marked stays a test of its own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

LONGEST = 2_000
"""Characters of what is told about one row. The first is shown in full, with its traceback."""
Ids = Sequence[object] | Callable[[Any], object] | None


def table(
    names: str | Sequence[str], rows: Iterable[Any], ids: Ids = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call the test with each row; of several tables on one test, with each combination of their rows."""
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    cases = [values_of(row, columns) for row in rows]
    if not cases:
        raise ValueError("a table without rows tests nothing")

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)
        if unknown := set(columns) - set(signature.parameters):
            raise TypeError(f"{test.__name__} has no argument {', '.join(sorted(unknown))}")
        if inspect.iscoroutinefunction(test):
            raise TypeError(f"{test.__name__} is async: nobody would await it")

        @functools.wraps(test)
        def every_row(*fixtures: Any, **others: Any) -> None:
            failed = dict[int, BaseException]()
            for number, values in enumerate(cases):
                try:
                    test(*fixtures, **others, **dict(zip(columns, values, strict=True)))
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as failure:
                    failed[number] = failure
            if failed:
                told = [f"{named(number, cases[number], ids)}\n    {said(why)}" for number, why in failed.items()]
                message = "\n\n".join([f"{len(failed)} of {len(cases)} rows fail", *told])
                raise AssertionError(message) from next(iter(failed.values()))

        left = [one for name, one in signature.parameters.items() if name not in columns]
        every_row.__signature__ = signature.replace(parameters=left)  # pytest takes the rest for fixtures
        return every_row

    return decorate


def values_of(row: Any, columns: Sequence[str]) -> tuple[Any, ...]:
    if isinstance(row, type(pytest.param())):
        raise TypeError(f"{row} may be marked, and what is marked is a test of its own")
    values = (row,) if len(columns) == 1 else tuple(row)
    if len(values) != len(columns):
        raise ValueError(f"{len(values)} values for {', '.join(columns)}: {row!r}")
    return values


def named(number: int, values: tuple[Any, ...], ids: Ids) -> str:
    """A row that fails, by its id or its values."""
    given = ids(*values) if callable(ids) and len(values) == 1 else None if callable(ids) or not ids else ids[number]
    return f"row {number}: {given or ', '.join(f'{value!r:.200}' for value in values)}"


def said(failure: BaseException) -> str:
    text = str(failure) if isinstance(failure, AssertionError) else f"{type(failure).__name__}: {failure}"
    return text[:LONGEST].replace("\n", "\n    ") + " …" * (len(text) > LONGEST)
