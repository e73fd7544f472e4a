"""A project whose workers are started from a channel, with a real store; and people who talk to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeVar

from tests.discord.house import opened

from signoff.broker import Broker
from signoff.config import load_settings
from signoff.core.decision import ApprovalDecision
from signoff.core.delivery import NEVER
from signoff.core.notice import Asked, Notice, RunResult
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.run import SavedRun
from signoff.delivery import Reconciler, Route
from signoff.ports import Heard, Inbox
from signoff.testing import FakeClock
from signoff.wiring.channel_runs import Running
from signoff.wiring.job import RunOptions
from signoff.wiring.program_inbox import project_inbox

T = TypeVar("T")
PATIENCE = 60
"""Seconds until a test that waits for something gives up."""
TIMEOUT = timedelta(minutes=5)
"""How long a question waits, once it was shown."""
PROJECT = """\
people:
  ana: {roles: [ops], discord: "112233445566778801"}
channels:
  discord: {channel: "112233445566778899", workers: [talker]}
toolsets: {files: {use: filesystem_rw, config: {root: notes}}}
policy: []
"""
TALKER = "instructions: Talk.\nmodel: script:talker.turns\ntoolsets: [files]\n"
TURNS = """\
- say: Hello. What shall I note?
- calls: [{tool: write_file, args: {path: a.txt, content: eggs}}]
- say: "You said: {{last}}"
- say: That was the third.
"""
ANA = Actor(name="ana", roles=frozenset({"ops"}), via="discord")


class Thread:
    """A channel that writes down what it is to show."""

    name = "discord"

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.told: asyncio.Queue[RunResult] = asyncio.Queue()
        """What runs came to, as it was shown."""
        self.asked: asyncio.Queue[Asked] = asyncio.Queue()
        """Questions, each when it was shown first."""
        self.stood: list[tuple[str, str]] = []
        """Subjects, each with what it was shown beside."""

    async def start(self, inbox: Inbox) -> None:
        self.started.set()

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        self.stood.append((notice.subject, at or beside))
        if isinstance(notice, RunResult):
            self.told.put_nowait(notice)
        elif isinstance(notice, Asked) and not at:
            self.asked.put_nowait(notice)
        return at or f"{(beside or '1/').partition('/')[0]}/{len(self.stood)}"

    async def stop(self) -> None:
        pass


class Town:
    """A project in a directory, and one process that runs its channels. `restarted` gives the next one."""

    def __init__(self, directory: Path, clock: FakeClock | None = None) -> None:
        self.directory = directory
        self.clock = clock or FakeClock(datetime.now(UTC))
        self.lines: asyncio.Queue[str] = asyncio.Queue()
        """What whoever looks on was told."""
        self.task: asyncio.Task[None]
        """What goes on with runs, while `working`."""
        self.at_once = 16
        self._heard = 0

    def write(self, project: str = PROJECT, **scripts: str) -> Town:
        """Write the project; `scripts` are turns by worker."""
        (self.directory / "workers").mkdir(exist_ok=True)
        (self.directory / "notes").mkdir(exist_ok=True)
        (self.directory / "signoff.yaml").write_text(dedent(project))
        for name, turns in (scripts or {"talker": TURNS}).items():
            (self.directory / "workers" / f"{name}.yaml").write_text(TALKER.replace("talker", name))
            (self.directory / "workers" / f"{name}.turns").write_text(dedent(turns))
        return self

    def open(self, **options: Any) -> None:
        """Start the process, as it were."""
        self.store = opened(self.directory / "signoff.db")
        self.settings = load_settings(self.directory / "signoff.yaml")
        self.broker = Broker(self.store, self.clock, people={"ana": frozenset({"ops"})})
        self.thread = Thread()
        self.post = Reconciler(
            self.broker,
            [Route(self.thread, timeout=TIMEOUT)],
            inbox=lambda name: project_inbox(self.broker, self.settings, name),
        )
        given = RunOptions(store=f"sqlite:{self.directory / 'signoff.db'}", **options)
        self.running = Running(
            self.post,
            self.broker,
            self.settings,
            self.settings.channels,
            given,
            observe=self.lines.put_nowait,
            at_once=self.at_once,
        )

    @contextmanager
    def at_work(self, **options: Any) -> Generator[Town]:
        """Within, the process lives; what it has in hand is in the loop that runs now."""
        self.open(**options)
        try:
            yield self
        finally:
            self.store.close()

    async def says(self, text: str, *, at: str = "77/", number: int | None = None) -> str:
        """Somebody mentions the bot; what is replied at once."""
        self._heard += 1
        heard = Heard("discord", at, str(number or 1_000 + self._heard), ANA, text)
        return await self.running.begin(heard)

    async def told(self) -> RunResult:
        """The next thing that is shown about what a run came to, once that is on record."""
        told = await asyncio.wait_for(self.thread.told.get(), PATIENCE)
        await self.until(lambda: self._stands(told))
        return told

    async def _stands(self, notice: Notice) -> bool | None:
        delivery = await self.store.read(lambda tx: tx.deliveries.get(self.thread.name, notice.key))
        return True if delivery is not None and delivery.shown != NEVER else None

    async def asked(self) -> ApprovalRequest:
        """The next question that is shown, once that is on record and its run was put down."""
        asked = await asyncio.wait_for(self.thread.asked.get(), PATIENCE)
        await self.until(lambda: self._stands(asked))

        async def waits() -> bool | None:
            run = await self.broker.runs.inside(asked.request.run)
            return True if run is not None and not run.holder else None

        await self.until(waits)
        return asked.request

    async def line(self, about: str) -> str:
        """The next line that whoever looks on is told, about something."""
        async with asyncio.timeout(PATIENCE):
            while about not in (line := await self.lines.get()):
                pass
        return line

    async def answer(
        self, request: ApprovalRequest | None = None, *, approved: bool = True, note: str = ""
    ) -> ApprovalRequest:
        """Answer a question where it is shown, or the next one."""
        asked = request or await self.asked()
        inbox = project_inbox(self.broker, self.settings, self.thread.name)
        return await inbox.answer(asked.id, ApprovalDecision(approved=approved, note=note, by=ANA))

    async def until(self, look: Callable[[], Awaitable[T | None]]) -> T:
        """What `look` gives, as soon as the store has it."""
        changed, loop = asyncio.Event(), asyncio.get_running_loop()
        stop = self.store.watch(lambda: loop.call_soon_threadsafe(changed.set))
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    changed.clear()
                    if (found := await look()) is not None:
                        return found
                    await changed.wait()
        finally:
            stop()

    async def runs(self) -> Sequence[SavedRun]:
        """All runs, oldest first."""
        return [one.run for one in reversed(await self.broker.runs.list())]

    def note(self, name: str = "a.txt") -> str:
        """What a note says; empty where there is none."""
        file = self.directory / "notes" / name
        return file.read_text() if file.exists() else ""


@asynccontextmanager
async def working(town: Town, **options: Any) -> AsyncGenerator[Town]:
    """Within, one process runs the channels; at the end it is stopped, as by Ctrl-C."""
    with town.at_work(**options):
        posting = asyncio.create_task(town.post.run())
        town.task = asyncio.create_task(town.running.run())
        try:
            await asyncio.wait_for(town.thread.started.wait(), PATIENCE)
            yield town
        finally:
            town.task.cancel()
            posting.cancel()
            ends = await asyncio.gather(town.task, posting, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in ends), ends


def several(*workers: str) -> Mapping[str, str]:
    """The project file for several workers, and a script for each that says who it is."""
    return {
        "project": PROJECT.replace("[talker]", f"[{', '.join(workers)}]"),
        **{name: f"- say: {name} one\n- say: {name} two\n- say: {name} three\n" for name in workers},
    }
