"""The table of fault points: made by playing every case, kept in docs/internals/fault-points.md.

    python -m tests.crash.table --write

makes it anew. The tests compare each row with what they see.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.crash.fork import AT_ONCE, ROOT, ForkServer
from tests.crash.nested_trips import NESTED
from tests.crash.nested_trips import SHOWN as NESTED_SHOWN
from tests.crash.trips import TRIPS

PAGE = ROOT / "docs" / "internals" / "fault-points.md"
BEGIN, END = "<!-- fault points: python -m tests.crash.table --write -->", "<!-- end of fault points -->"
COLUMNS = ("process", "killed at", "database", "killed there", "the restart found", "ran", "verdict")
DATABASES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
OK = "holds"
PATIENCE = 3
SHOWN = TRIPS | {name: NESTED[name] for name in NESTED_SHOWN}
"""The trips whose points are in the table."""


@dataclass(frozen=True, slots=True)
class Row:
    """One fault point, and what came of it."""

    trip: str
    process: str
    point: str
    database: str
    found: str
    ran: str
    verdict: str

    @property
    def cells(self) -> tuple[str, ...]:
        return self.process, self.point, self.database, "yes", self.found, self.ran, self.verdict


class Place:
    """Where the cases of a test are kept: a fresh file for each, or one schema for all of them."""

    def __init__(self, server: ForkServer, directory: Path, postgres: str = "") -> None:
        self._server, self._directory, self._postgres = server, directory, postgres
        self._count = 0
        self._ready = directory / "ready.db"
        server.call("tests.crash.stage:prepare", url=postgres or f"sqlite:{self._ready}")

    def crash_again(self, case: dict[str, Any], points: str) -> None:
        """Kill the restart as well, at each of its points whose name fits; nothing may break."""
        [once] = self.play([case])
        assert once["problems"] == []
        passed = dict.fromkeys(point for process, point in once["points"] if process == "restart")
        cases = [{**case, "again": point} for point in passed if re.search(points, point)]
        played = self.play(cases, alone=True)
        assert [problem for one in played for problem in one["problems"]] == []
        assert len(cases) > 3

    def case(self, **case: Any) -> dict[str, Any]:
        self._count += 1
        directory = self._directory / str(self._count)
        directory.mkdir()
        if not self._postgres:
            shutil.copy(self._ready, directory / "signoff.db")
        return {
            "id": f"{self._directory} {self._count}",
            "url": self._postgres or f"sqlite:{directory / 'signoff.db'}",
            "directory": str(directory),
            **case,
        }

    def play(self, cases: Sequence[dict[str, Any]], *, alone: bool = False) -> list[dict[str, Any]]:
        """Play cases, some at a time. In one schema they sweep up after each other, unless each is `alone`."""
        at_once = 1 if alone and self._postgres else AT_ONCE
        return self._server.map("tests.crash.drive:conduct", [self.case(**case) for case in cases], at_once=at_once)

    def points(self, trip: str, which: str = "") -> list[tuple[str, str]]:
        """The points that a trip passes when nobody dies, by process: those whose name fits."""
        [played] = self.play([{"trip": trip}])
        assert played["problems"] == []
        passed = dict.fromkeys((process, point) for process, point in played["points"] if process != "restart")
        return [one for one in passed if re.search(which, one[1])]

    def rows(self, trip: str, database: str, points: Sequence[tuple[str, str]]) -> list[Row]:
        """Kill a process at each of the points; what came of it."""
        # In one schema whoever signs the record signs what the others wrote too, and these then have nothing to sign.
        signs = [one for one in points if one[1].startswith("checkpoint")]
        found = self._killed(trip, [one for one in points if one not in signs], alone=False)
        found |= self._killed(trip, signs, alone=True)
        played = [found[one] for one in points]
        reached = sum(bool(one["killed"]) for one in played)
        assert 2 * reached >= len(played), f"of {len(played)} points only {reached} were reached"
        return [
            Row(trip, process, point, DATABASES[database], one["found"], _ran(one["ran"]), _verdict(one))
            for (process, point), one in zip(points, played, strict=True)
        ]

    def _killed(
        self, trip: str, points: Sequence[tuple[str, str]], *, alone: bool
    ) -> dict[tuple[str, str], dict[str, Any]]:
        cases = [{"trip": trip, "act": process, "point": point} for process, point in points]
        return dict(zip(points, self.play(cases, alone=alone) if cases else (), strict=True))


def _ran(ran: dict[str, int]) -> str:
    return ", ".join(f"{tool} {count}×" for tool, count in ran.items() if count) or "nothing"


def _verdict(played: dict[str, Any]) -> str:
    return "; ".join(played["problems"]) or OK


def merged(rows: Sequence[Row]) -> list[Row]:
    """Rows that differ in nothing but their database become one."""
    same: dict[Row, list[str]] = {}
    for row in rows:
        same.setdefault(replace(row, database=""), []).append(row.database)
    return [replace(row, database=", ".join(databases)) for row, databases in same.items()]


def text_of(rows: Sequence[Row]) -> str:
    """The rows of one trip, as Markdown."""
    lines = [COLUMNS, tuple("---" for _ in COLUMNS), *(row.cells for row in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def written_of(trip: str, database: str, which: str = "") -> list[Row]:
    """The rows of one trip that stand in the documentation, of points whose name fits."""
    mine = [row for row in written() if (row.trip, row.database) == (trip, DATABASES[database])]
    return [row for row in mine if re.search(which, row.point)]


def written() -> list[Row]:
    """The rows that stand in the documentation."""
    text = PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    rows: list[Row] = []
    trip = ""
    for line in text.splitlines():
        if line.startswith("## "):
            trip = next(name for name in SHOWN if line.casefold().startswith(f"## {name}:"))
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(COLUMNS) and cells[0] not in ("---", COLUMNS[0]):
            process, point, databases, _, found, ran, verdict = cells
            rows += [Row(trip, process, point, one, found, ran, verdict) for one in databases.split(", ")]
    return rows


def hold_against(committed: list[Row], rows: list[Row], place: Place, database: str) -> None:
    """Fails where the documentation says something else."""
    committed, rows = _by_process(committed), _by_process(rows)
    # What a process leaves behind is the same each time, unless the machine stood still for longer than it waits.
    for _ in range(PATIENCE):
        if rows == committed:
            break
        rows = [row if row in committed else _again(place, row, database) for row in rows]
    assert text_of(rows) == text_of(committed), (
        "the table in docs/internals/fault-points.md is out of date: python -m tests.crash.table --write"
    )


def _by_process(rows: list[Row]) -> list[Row]:
    """Each process passes its points in one order; which of two processes is ahead, the machine decides."""
    return sorted(rows, key=lambda row: row.process)


def _again(place: Place, row: Row, database: str) -> Row:
    [again] = place.rows(row.trip, database, [(row.process, row.point)])
    assert again.verdict == OK
    return again


def write(server: ForkServer, places: dict[str, Callable[[], Place]]) -> None:
    """Play everything, and put it into the documentation."""
    parts: list[str] = []
    for trip in SHOWN.values():
        rows: list[Row] = []
        for database, place in places.items():
            at = place()
            rows += at.rows(trip.name, database, at.points(trip.name, trip.shown))
        parts.append(f"## {trip.name.capitalize()}: {trip.title}\n\n{text_of(merged(rows))}\n")
        print(parts[-1])
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{''.join(parts)}{END}{rest.partition(END)[2]}", "utf-8")


def main(arguments: Sequence[str]) -> None:
    if list(arguments) != ["--write"]:
        sys.exit(f"usage: {__doc__}")
    from tests import postgres

    with ExitStack() as stack:
        server = ForkServer()
        stack.callback(server.close)
        url = stack.enter_context(postgres.server("faultpoints"))
        schema = stack.enter_context(postgres.fresh_schema(url))
        directories = _directories(stack)
        os.environ["XDG_STATE_HOME"] = str(next(directories))
        places = {
            "sqlite": lambda: Place(server, next(directories)),
            "postgres": lambda: Place(server, next(directories), schema),
        }
        write(server, places)


def _directories(stack: ExitStack) -> Iterator[Path]:
    while True:
        yield Path(stack.enter_context(tempfile.TemporaryDirectory()))


if __name__ == "__main__":
    main(sys.argv[1:])
