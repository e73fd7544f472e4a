"""How many answers a second one process takes, against how often the disk can commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.bench import Bench, Disk
from benchmarks.measure import Effort, Figure, Pairs, take_turns
from benchmarks.report import Report, Row, Table, Target

MOST_TIMES_DISK = 3.0
PROGRAM = Path(__file__).with_name("settle_player.py")
BARE = "a bare commit of one row"


@dataclass
class Answers:
    """So many answers, of which so many are under way at once; or bare commits, where that is 0."""

    disk: Disk
    place: str
    count: int
    at_once: int
    commits: list[float] = field(default_factory=list[float])

    def __call__(self) -> float:
        """Seconds for one of them."""
        answered = self.disk.player(PROGRAM).ask(place=self.place, count=self.count, at_once=self.at_once)
        self.commits.append(answered["commits"] / self.count)
        return answered["seconds"] / self.count


@dataclass(frozen=True)
class Result:
    title: str
    answers: dict[str, Answers]
    samples: dict[str, list[float]]

    @property
    def many(self) -> str:
        """The name of the variant with most at once."""
        return max(self.answers, key=lambda name: self.answers[name].at_once)

    def times_bare(self, name: str) -> Figure:
        return Pairs(self.samples[name], self.samples[BARE]).ratio


def measure(effort: Effort, bench: Bench) -> Report:
    results = list(_results(effort, bench))
    return Report(
        name="settle",
        title="Answers taken",
        about="`broker.answer()` in one process: the vote, the decision and two events of the record, durable when it "
        "returns. The disk's own rate is that of bare commits, one row each, on one connection, in the same run.",
        tables=tuple(map(_table, results)),
        targets=tuple(
            Target(
                f"{result.title}, {result.many}, times as long as {BARE}",
                result.times_bare(result.many).median,
                MOST_TIMES_DISK,
            )
            for result in results
        ),
        notes=bench.notes,
    )


def _results(effort: Effort, bench: Bench) -> Iterator[Result]:
    for disk in bench.disks:
        for kind, place in disk.places.items():
            bare, ours = place("commits"), place("answers")
            count = effort.answers
            few = max(1, count // 10)
            answers = {
                BARE: Answers(disk, bare, count, 0),
                "signoff, one at a time": Answers(disk, ours, few, 1),
                "signoff, 16 at once": Answers(disk, ours, count, 16),
                f"signoff, {count} at once": Answers(disk, ours, count, max(17, count)),
            }
            yield Result(f"{kind} {disk.name}", answers, take_turns(answers, effort))


def _table(result: Result) -> Table:
    rows = [
        Row(
            name,
            (
                Figure.of([1 / each for each in seconds]),
                result.times_bare(name) if name != BARE else None,
                Figure.of(result.answers[name].commits).median if name != BARE else None,
            ),
        )
        for name, seconds in result.samples.items()
    ]
    return Table(result.title, ("a second", "times as long as a bare commit", "commits each"), tuple(rows))
