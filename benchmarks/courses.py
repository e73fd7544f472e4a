"""Where durable trips lead: a database on a disk, and the processes that go there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from benchmarks.bench import POSTGRES, SQLITE, Bench, Disk
from benchmarks.player import Player
from benchmarks.syncs import Syncs

OWN = Path(__file__).with_name("trips_player.py")
LANGGRAPH = Path(__file__).with_name("langgraph_peer.py")
NO_LANGGRAPH = "LangGraph is left out: it is not installed (requirements/bench.txt has it)"

MEMORY = "PydanticAI, in memory"
ROW = "PydanticAI and a row by hand, suspended"
ROW_IN_PLACE = "PydanticAI and a row by hand, in place"
SUSPENDED = "signoff, suspended and resumed"
ELSEWHERE = "signoff, resumed by another process"
UNSEEN = "the same, of a history not kept before"
IN_PLACE = "signoff, waits in place"
AGENT_ALONE = "an agent, one level"
AGENT_INSIDE = "the same inside another's call, by call_agent"
WORKER_ALONE = "a worker, one level"
WORKER_INSIDE = "the same inside another's call, by worker_call"
OWN_WAYS = {
    MEMORY: "memory",
    ROW: "row, suspended",
    ROW_IN_PLACE: "row, in place",
    SUSPENDED: "suspended",
    ELSEWHERE: "elsewhere",
    UNSEEN: "unseen",
    IN_PLACE: "in place",
    AGENT_ALONE: "agent alone",
    AGENT_INSIDE: "agent inside",
    WORKER_ALONE: "worker alone",
    WORKER_INSIDE: "worker inside",
}
SAVERS = {SQLITE: ("SqliteSaver", "AsyncSqliteSaver"), POSTGRES: ("PostgresSaver", "AsyncPostgresSaver")}


@dataclass
class Course:
    """One kind of database on one disk, with the processes that go there."""

    kind: str
    disk: Disk
    own: Player
    peer: Player
    place: Callable[[str], str]
    """An empty database by name: an address as after `store:`."""
    syncs: Syncs | None
    _places: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def title(self) -> str:
        return f"{self.kind} {self.disk.name}"

    @cached_property
    def ways(self) -> Mapping[str, tuple[Player, str]]:
        """Who plays a way, and what it is called there."""
        found = {name: (self.own, variant) for name, variant in OWN_WAYS.items()}
        if self.peer.there:
            plain, concurrent = SAVERS[self.kind]
            for variant in (plain, concurrent, f"{concurrent}, exit"):
                found[langgraph(variant)] = (self.peer, variant)
        return found

    def at(self, name: str) -> str:
        """The database that belongs to a way."""
        if name not in self._places:
            self._places[name] = self.place(re.sub("[^a-z0-9]+", "_", name.lower()).strip("_"))
        return self._places[name]


def langgraph(saver: str) -> str:
    """A saver's name in the report; `exit` keeps nothing between the answer and the end of the run."""
    kind, _, durability = saver.partition(", ")
    return f"LangGraph, {kind}" + (f", durability={durability!r}" if durability else "")


@dataclass
class Leg:
    """One way on one course, with so many at once. Counts what it takes besides time."""

    course: Course
    name: str
    at_once: int = 1
    each: int = 1
    messages: int = 0
    """Before the run begins."""
    commits: list[float] = field(default_factory=list[float])
    syncs: list[float] = field(default_factory=list[float])
    work: list[float] = field(default_factory=list[float])
    """Seconds of the processor."""

    def __call__(self) -> float:
        """Seconds a trip."""
        player, variant = self.course.ways[self.name]
        syncs, count = self.course.syncs, self.at_once * self.each
        before = syncs.count if syncs else 0
        place = self.course.at(f"{self.name} {self.messages}")
        asked = {"variant": variant, "place": place, "messages": self.messages}
        played = player.ask(**asked, at_once=self.at_once, each=self.each)
        self.work.append(played["work"] / count)
        if "commits" in played:
            self.commits.append(played["commits"] / count)
        if syncs:
            self.syncs.append((syncs.count - before) / count)
        return played["seconds"] / count


def files(bench: Bench, disk: Disk | None = None) -> Course:
    """SQLite on a disk; by default on this machine's own."""
    disk = disk or bench.disk
    return _course(bench, disk, SQLITE, disk.file, disk.syncs)


def courses(bench: Bench) -> Iterator[Course]:
    """Every kind of database on every disk there is."""
    for disk in bench.disks:
        for kind, place in disk.places.items():
            yield _course(bench, disk, kind, place, disk.syncs_of(kind))


def _course(bench: Bench, disk: Disk, kind: str, place: Callable[[str], str], syncs: Syncs | None) -> Course:
    return Course(kind, disk, disk.player(OWN), disk.player(LANGGRAPH, bench.peer.python), place, syncs)
