"""The real program, `signoff channels run discord`, as a process of its own; and people who talk to it on the stand-in.

A project has one worker for each story, each with a script of its own: whoever mentions the bot says which. Stories can
so be told side by side over one process, each in its own thread.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from tests import start
from tests.discord.house import plainly
from tests.discord.scripts import TOOLS, Turns
from tests.discord.service import Answered, Message, Person, Place, Service
from tests.discord.service.pointed import ENVIRONMENT

from signoff.ports import Transaction
from signoff.store.sqlite import SqliteStore

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
"""Seconds for what needs a process to start, on a machine that is busy."""
ROLES = {"ana": ("ops",), "ben": ("ops", "dev"), "dan": ()}
"""The people on file; anybody else is a stranger."""


class Done(NamedTuple):
    """What another process of the program came to."""

    code: int
    out: str


class Flow:
    """A project in a directory, the stand-in of Discord that it is asked on, and the bot, while it runs."""

    def __init__(self, directory: Path, service: Service) -> None:
        self.directory = directory
        self.service = service
        self.people = {name: service.person(name) for name in (*ROLES, "eve")}
        self.log = directory / "bot.log"
        self.program: subprocess.Popen[bytes] | None = None
        (directory / "desk").mkdir()
        (directory / "workers").mkdir()
        (directory / "toolsets.py").write_text(TOOLS)

    @property
    def ana(self) -> Person:
        return self.people["ana"]

    @property
    def ben(self) -> Person:
        return self.people["ben"]

    @property
    def dan(self) -> Person:
        """On file, without a role."""
        return self.people["dan"]

    @property
    def eve(self) -> Person:
        """Not on file."""
        return self.people["eve"]

    # --- the project ---

    def write(self, workers: Mapping[str, Turns], rules: Sequence[Mapping[str, Any]] = (), **more: Any) -> None:
        """Write the project: workers with their scripts, and rules before the one that asks about everything."""
        project: dict[str, Any] = {
            "people": {
                name: {"discord": str(self.people[name].id)} | ({"roles": list(roles)} if roles else {})
                for name, roles in ROLES.items()
            },
            "channels": {"discord": {"channel": str(self.service.channel.id), "workers": list(workers)}},
            "toolsets": {"files": {"use": "filesystem_rw", "config": {"root": "desk"}}},
            "store": f"sqlite:{self.directory / 'signoff.db'}",
            "policy": [*rules, {"ask": "*"}],
        }
        (self.directory / "signoff.yaml").write_text(json.dumps(project))  # which is YAML too, and soon written
        for name, turns in workers.items():
            worker = {"instructions": "Do it.", "model": f"script:{name}.turns", "toolsets": ["files", "bell"]}
            worker |= more.get(name, {})
            (self.directory / "workers" / f"{name}.yaml").write_text(json.dumps(worker))
            (self.directory / "workers" / f"{name}.turns").write_text(json.dumps(list(turns)))

    def file(self, name: str) -> str:
        """What a file on the inbox says; empty where there is none."""
        found = self.directory / "desk" / name
        return found.read_text() if found.exists() else ""

    def rung(self, name: str) -> int:
        """How often the bell of this name was rung."""
        found = self.directory / f"{name}.rung"
        return len(found.read_text().splitlines()) if found.exists() else 0

    # --- processes ---

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SIGNOFF_")}
        return {
            **kept,
            ENVIRONMENT: self.service.url,
            "DISCORD_TOKEN": self.service.token,
            "HOME": str(self.directory / "home"),
            "XDG_STATE_HOME": str(self.directory / "state"),
            "XDG_CONFIG_HOME": str(self.directory / "config"),
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "NO_COLOR": "1",
            "COLUMNS": "120",
        }

    async def start(self, *, is_real: bool = False) -> None:
        """Start the bot, and wait until it has connected. `is_real`: with an interpreter of its own, not forked."""
        before = self.service.gateway.identified
        self.program = self._launched(subprocess.Popen if is_real else start.Process)
        self._watcher = threading.Thread(target=self._watch, args=(self.program,), daemon=True)
        self._watcher.start()
        await self._wait(lambda: self.service.gateway.identified > before, lambda: "the bot did not connect")

    def _launched(self, launch: Callable[..., subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        assert self.program is None, "it runs already"
        with self.log.open("ab") as log:
            return launch(
                [sys.executable, "-m", "tests.discord.service.pointed", "channels", "run", "discord"],
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                **({"preexec_fn": start.default_signals} if launch is subprocess.Popen else {}),
            )

    def _watch(self, program: subprocess.Popen[bytes]) -> None:
        """Whoever waits for the bot looks again when it has ended."""
        program.wait()
        asyncio.run(self.service.do(self.service.state.touch))

    async def _wait(self, look: Callable[[], T | None], what: Callable[[], str]) -> T:
        """What `look` gives, as soon as it gives something; fails at once where the bot has ended by itself."""

        def looked() -> T | None:
            found = look()
            ended = self.program is not None and self.program.poll() is not None
            assert found or not ended, f"the bot has ended:\n{self.log.read_text()}"
            return found

        try:
            return await self.service.until(looked, timeout=PATIENCE)
        except AssertionError as late:
            raise AssertionError(f"{what()}\n{late}\nThe bot said:\n{self.log.read_text()}") from None

    def kill(self) -> None:
        """kill -9. Everything that it had in hand is lost but for what it wrote down."""
        self._end(kill=True)

    def stop(self) -> None:
        """Stop it as a person would; it has to end by itself."""
        assert self._end(kill=False) == 0, self.log.read_text()

    def _end(self, *, kill: bool) -> int:
        program, self.program = self.program, None
        assert program is not None, "it does not run"
        try:
            (program.kill if kill else program.terminate)()
            return program.wait(PATIENCE)
        finally:
            program.kill()
            self._watcher.join(PATIENCE)  # before the stand-in ends

    async def signoff(self, *arguments: str) -> Done:
        """The program once more, beside the bot, until it ends."""
        done = await asyncio.to_thread(
            start.run,
            [*start.SIGNOFF, *arguments],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        return Done(done.returncode, done.stdout)

    async def recorded(self, request_id: str, kind: str) -> None:
        """Wait until this is on record about the run that asked this."""
        store = SqliteStore(self.directory / "signoff.db")
        changed, loop = asyncio.Event(), asyncio.get_running_loop()

        def tick() -> None:
            loop.call_soon_threadsafe(changed.set)

        stop = store.watch(tick)

        def look(tx: Transaction) -> bool:
            request = tx.requests.get(request_id)
            assert request is not None
            return any(entry.kind == kind for entry in tx.record.entries() if entry.run == request.run)

        try:
            async with asyncio.timeout(PATIENCE):
                while not await store.read(look):
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            raise AssertionError(f"{kind!r} did not come on record about request {request_id}") from None
        finally:
            stop()
            store.close()

    # --- what people do and see ---

    async def mention(self, text: str, *, by: Person | None = None, place: Place | None = None) -> Place:
        """Say something to the bot in the channel, or in a thread; the thread it goes on in."""
        said = await (by or self.ana).say(place or self.service.channel, f"{self.service.bot.mention} {text}")
        if place is not None:
            return place
        return await self._wait(lambda: said.thread, lambda: f"no thread was made for {text!r}")

    async def sees(self, thread: Place, *parts: str, but: Sequence[Message] = ()) -> Message:
        """The first message of the bot in a thread that says all of this, as soon as it does."""

        def look() -> Message | None:
            said = (one for one in self.by_bot(thread) if one not in but)
            return next((one for one in said if all(part in one.text for part in parts)), None)

        def what() -> str:
            shown = "\n---\n".join(one.text for one in self.by_bot(thread)) or "(nothing)"
            return f"no message says {parts}; there are:\n{shown}"

        return await self._wait(look, what)

    async def asked(self, thread: Place, *parts: str) -> Message:
        """The message about a call that waits, and says all of this."""
        return await self.sees(thread, " run?", "Deny with reason…", *parts)

    async def asks(self, worker: str, *parts: str, by: Person | None = None, place: Place | None = None) -> Message:
        """Mention the bot, and have the worker ask; the message that asks."""
        return await self.asked(await self.mention(f"{worker}: go on", by=by, place=place), *parts)

    async def until(self, message: Message, *parts: str, buttons: Sequence[str] = ()) -> str:
        """Wait until a message says all of this and has exactly these buttons; what it says then."""

        def look() -> str | None:
            fits = all(part in message.text for part in parts) and message.buttons == list(buttons)
            return message.text if fits else None

        return await self._wait(look, lambda: f"not {parts} with buttons {buttons}, but:\n{message.text}")

    def by_bot(self, thread: Place) -> list[Message]:
        """Everything that the bot has said in a thread."""
        return [one for one in self.service.messages(thread) if one.author is self.service.bot]


def id_of(message: Message) -> str:
    """The id of the request that a message is about."""
    found = re.search(r"^request (\w+) · sha256", message.text, re.MULTILINE)
    assert found is not None, message.text
    return found[1]


async def run_of(flow: Flow, request_id: str) -> str:
    """The id of the run that asks this, as the program tells it."""
    shown = json.loads((await flow.signoff("show", request_id, "--json")).out)
    return str(shown["run"])


async def told(answered: Answered) -> str:
    """What somebody is told, and nobody else, as it reads."""
    reply = await answered.reply(timeout=PATIENCE)
    assert reply.is_private, f"everybody sees it: {reply.text}"
    return plainly(reply.text)


# --- for fixtures ---


@contextmanager
def project(directory: Path) -> Generator[Flow]:
    """A project to be written; the bot is started by whoever uses it, and ended here. So is the stand-in."""
    service = Service().start()
    flow = Flow(directory, service)
    try:
        yield flow
    finally:
        if flow.program is not None:
            flow.kill()
        service.stop()
    assert service.errors == []
    assert not flow.log.exists() or service.token not in flow.log.read_text(), "a secret was printed"


@contextmanager
def on_record(flow: Flow) -> Generator[None]:
    """After each test the record holds; what the bot printed meanwhile is printed, for whoever reads a failure."""
    began = len(flow.log.read_text()) if flow.log.exists() else 0
    yield
    if flow.log.exists():
        print(flow.log.read_text()[began:])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(flow.directory)
        for name, value in flow.environment.items():
            patch.setenv(name, value)
        assert _verified(patch) == 0, "the record does not hold"


def _verified(patch: pytest.MonkeyPatch) -> int:
    """`signoff audit verify`, in this process: its own would cost each test half a second more."""
    from signoff.cli.main import main

    patch.setattr(sys, "argv", ["signoff", "audit", "verify"])
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return 0


@asynccontextmanager
async def hanging(path: Path) -> AsyncGenerator[Callable[[], Awaitable[None]]]:
    """A tool hangs within; what is given waits until it does. `path` is where it says so."""
    os.mkfifo(path)
    os.mkfifo(path.with_suffix(".ended"))
    end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    wrote, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(end, wrote.set)

    async def written() -> None:
        try:
            await asyncio.wait_for(wrote.wait(), PATIENCE)
        except TimeoutError:
            raise AssertionError(f"no tool hung at {path.name}") from None
        loop.remove_reader(end)

    try:
        yield written
    finally:
        loop.remove_reader(end)
        os.close(end)
        os.unlink(path)
