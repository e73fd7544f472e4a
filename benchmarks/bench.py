"""What benchmarks are run with: a peer, disks and databases. Each is made when it is first asked for."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType

from benchmarks.measure import sync_sampler
from benchmarks.peer import LangChain
from benchmarks.player import Player
from benchmarks.server import NoServer, Server
from benchmarks.syncs import CannotBuild, Syncs, build

SHARED_MEMORY = Path("/dev/shm")
SQLITE, POSTGRES = "SQLite", "PostgreSQL"
SLOW = 1_000
"""Microseconds that a sync takes on the disk that has neither good nor bad days."""


@dataclass(frozen=True, slots=True)
class Database:
    """A PostgreSQL server, and what is known about its syncs."""

    server: Server
    syncs: Syncs | None


@dataclass
class Disk:
    """Where files are put, and how long a sync takes there."""

    name: str
    root: Path
    """A directory on it that everybody may enter."""
    directory: Path
    """A directory on it for this run alone."""
    stack: ExitStack
    library: Path | None = None
    microseconds: int = 0
    """What a sync takes; 0 where that is the disk's affair."""
    notes: list[str] = field(default_factory=list[str])
    _players: dict[Path, Player] = field(default_factory=dict[Path, Player])

    @cached_property
    def syncs(self) -> Syncs | None:
        """Those of the players on it."""
        return self._syncs("players")

    def player(self, program: Path, python: str = sys.executable) -> Player:
        """A process whose syncs are those of this disk; one for each program."""
        if program not in self._players:
            environment = self.syncs.environment if self.syncs else {}
            self._players[program] = Player(program, python, environment)
        return self._players[program]

    def dismiss(self) -> None:
        """End the players, while what they are connected to is still there."""
        while self._players:
            self._players.popitem()[1].close()

    @property
    def peers(self) -> dict[str, Player]:
        """Players that are somebody else's, by name."""
        found = {program.stem: player for program, player in self._players.items()}
        return {name.removesuffix("_peer"): player for name, player in found.items() if name.endswith("_peer")}

    @cached_property
    def postgres(self) -> Database | None:
        """A server whose syncs are those of this disk."""
        syncs = self._syncs("server")
        try:
            server = Server(self.root, syncs.environment if syncs else {})
            self.stack.callback(server.close)
            if syncs is not None and not self._counts(server, syncs):
                raise NoServer(f"PostgreSQL {self.name} is left out: the server's syncs cannot be counted")
        except NoServer as why:
            self.notes.append(str(why))
            return None
        return Database(server, syncs)

    @cached_property
    def places(self) -> dict[str, Callable[[str], str]]:
        """By kind of database, how to get an empty one: its address, as after `store:`."""
        found: dict[str, Callable[[str], str]] = {SQLITE: self.file}
        if self.postgres is not None:
            found[POSTGRES] = self.postgres.server.fresh
        return found

    def file(self, name: str) -> str:
        """The address of an SQLite file that is not there yet."""
        return f"sqlite:{self.directory / name}.db"

    def sync(self) -> float:
        """Seconds that a sync of 4 KB takes right now."""
        with tempfile.TemporaryFile(dir=self.directory) as file:
            file.write(bytes(4096))
            file.flush()
            return sync_sampler(partial(os.fdatasync, file.fileno()))()

    def syncs_of(self, kind: str) -> Syncs | None:
        """Where the syncs of a kind of database are made: by the server, or by whoever uses the file."""
        return self.postgres.syncs if kind == POSTGRES and self.postgres is not None else self.syncs

    def _counts(self, server: Server, syncs: Syncs) -> bool:
        before = syncs.count
        server.fresh("probe")
        return syncs.count > before

    def _syncs(self, name: str) -> Syncs | None:
        if self.library is None:
            return None
        syncs = Syncs(self.library, self.library.with_name(f"{self.directory.name}-{name}"))
        syncs.take(self.microseconds)
        return syncs


class Bench:
    """Closes whatever was started when it is left."""

    def __init__(self, python: str = sys.executable) -> None:
        """`python` is the one that has the peers."""
        self._stack = ExitStack()
        self.peer = self._stack.enter_context(LangChain(python))
        self._notes: list[str] = []

    @cached_property
    def disk(self) -> Disk:
        """This machine's own."""
        return self._disk("on the disk", Path(tempfile.gettempdir()), 0)

    @cached_property
    def slow_disk(self) -> Disk | None:
        """One whose every sync takes the same time, where it can be had."""
        if self._library is None:
            return None
        if not SHARED_MEMORY.is_dir():
            self._notes.append(f"a disk with 1 ms a sync is left out: there is no {SHARED_MEMORY}")
            return None
        return self._disk("with 1 ms a sync", SHARED_MEMORY, SLOW)

    @property
    def disks(self) -> tuple[Disk, ...]:
        return (self.disk, self.slow_disk) if self.slow_disk is not None else (self.disk,)

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be had, and why."""
        return tuple(dict.fromkeys([*self._notes, *(note for disk in self._made for note in disk.notes)]))

    @property
    def versions(self) -> dict[str, str]:
        """Of what was started."""
        players = {"langchain": self.peer, **{name: one for disk in self._made for name, one in disk.peers.items()}}
        found = {name: player.version or "not installed" for name, player in players.items()}
        for disk in self._made:
            if isinstance(database := disk.__dict__.get("postgres"), Database):
                found[POSTGRES] = database.server.version
        return found

    @property
    def _made(self) -> list[Disk]:
        """Those that were asked for."""
        return [value for name in ("disk", "slow_disk") if isinstance(value := self.__dict__.get(name), Disk)]

    def _disk(self, name: str, root: Path, microseconds: int) -> Disk:
        return Disk(name, root, self._directory(root), self._stack, self._library, microseconds)

    @cached_property
    def _library(self) -> Path | None:
        """What counts and slows syncs."""
        try:
            library = build(self._directory(Path(tempfile.gettempdir())))
            if not Syncs(library, library.with_name("probe")).reach():
                raise CannotBuild("what counts and slows syncs was built, and does not reach this Python")
        except CannotBuild as why:
            self._notes.append(f"{why}: syncs are not counted, and a disk with 1 ms a sync is left out")
            return None
        return library

    def _directory(self, root: Path) -> Path:
        directory = Path(tempfile.mkdtemp(prefix="signoff-bench-", dir=root))
        directory.chmod(0o755)  # a PostgreSQL server runs as somebody else
        clear: Callable[[Path, bool], None] = shutil.rmtree
        self._stack.callback(clear, directory, True)
        return directory

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for disk in self._made:
            disk.dismiss()
        self._stack.close()
