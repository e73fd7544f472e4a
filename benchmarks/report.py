"""Results: tables of figures and the targets they are held against, as text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.measure import Figure

Cell = Figure | float | None


@dataclass(frozen=True, slots=True)
class Row:
    """One variant. A cell is None where there is nothing to compare."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    columns: tuple[str, ...]
    """What the cells hold, with their units."""
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A number that should stay at or below a limit, or `least` at or above it."""

    text: str
    value: float
    limit: float
    least: bool = False

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.least else self.value <= self.limit

    def __str__(self) -> str:
        bound = f"at {'least' if self.least else 'most'} {number(self.limit)}"
        return f"{'holds' if self.holds else 'MISSED'}: {self.text}: {number(self.value)}, {bound}"


@dataclass(frozen=True, slots=True)
class Report:
    name: str
    title: str
    about: str
    tables: tuple[Table, ...]
    targets: tuple[Target, ...] = ()
    notes: tuple[str, ...] = field(default=())
    """What was left out, and why."""

    def as_json(self) -> dict[str, Any]:
        targets = [{**asdict(target), "holds": target.holds} for target in self.targets]
        return {**asdict(self), "targets": targets}


def number(value: float) -> str:
    """Three digits or so: enough to compare, no more than was measured."""
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, Figure):
        return f"{number(value.median)} ({number(value.low)} to {number(value.high)})"
    return number(value)


def as_text(report: Report) -> str:
    return "\n".join(_text(report))


def as_markdown(report: Report) -> str:
    return "\n".join(_markdown(report))


def _text(report: Report) -> Iterator[str]:
    yield f"== {report.name}: {report.title}"
    yield report.about
    for table in report.tables:
        yield ""
        yield from _aligned([(table.title, *table.columns), *_lines(table)])
    yield ""
    yield from report.notes
    yield from map(str, report.targets)


def _markdown(report: Report) -> Iterator[str]:
    yield f"### {report.title}"
    yield ""
    yield report.about
    for table in report.tables:
        yield ""
        yield f"| {' | '.join((table.title, *table.columns))} |"
        yield f"|---|{'---:|' * len(table.columns)}"
        for line in _lines(table):
            yield f"| {' | '.join(line)} |"
    for lines in (report.notes, report.targets):
        if lines:
            yield ""
            yield from (f"- {line}" for line in lines)


def _lines(table: Table) -> Iterator[tuple[str, ...]]:
    for row in table.rows:
        yield row.name, *map(cell, row.cells)


def _aligned(lines: Sequence[Iterable[str]]) -> Iterator[str]:
    columns = list(zip(*lines, strict=True))
    widths = [max(map(len, column)) for column in columns]
    for line in lines:
        first, *others = (text for text in line)
        padded = [f"{text:>{width}}" for text, width in zip(others, widths[1:], strict=True)]
        yield f"{first:<{widths[0]}}  {'  '.join(padded)}"
