"""A server that listens to its store, then forks: the worker waits for an answer, then runs until it is halted."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from tests.attacks.kept import ANA, YES, Silent, gated, soon, turns

from signoff import Signoff
from signoff.broker import Broker
from signoff.errors import Halted
from signoff.store.store_factory import open_store


class Worker:
    """The forked process. It tells its parent, once each, that it waits for an answer and that it makes a step."""

    def __init__(self, signoff: Signoff, tell: Callable[[], Any]) -> None:
        self.signoff, self.tell = signoff, tell
        self.steps: list[int] = []
        self.looked = asyncio.Event()

    async def main(self) -> None:
        await self._answered()
        await self._halted()

    async def _answered(self) -> None:
        broker = self.signoff.broker
        real = broker._woken_or_due

        async def sleeps(*about: Any) -> None:
            broker._woken_or_due = real  # type: ignore[method-assign]
            self.tell()
            await real(*about)

        broker._woken_or_due = sleeps  # type: ignore[method-assign]
        agent = gated(self.signoff, turns(("pay", {"n": 1})), pay)
        say(f"worker: {(await soon(agent.run('go'))).output}")

    async def _halted(self) -> None:
        watch = self.signoff.broker.watch
        real = watch._look

        async def looks(ear: Any) -> None:
            await real(ear)
            self.looked.set()

        watch._look = looks  # type: ignore[method-assign]
        agent = gated(self.signoff, turns(*(("step", {"n": n}) for n in range(1, 4))), self.step)
        try:
            await agent.run("go")
        except Halted:
            say(f"worker: Halted after {self.steps}")

    async def step(self, n: int) -> str:
        self.steps.append(n)
        self.tell()
        while not self.signoff.broker.watch.halted:
            self.looked.clear()
            await soon(self.looked.wait())
        return "ok"


def pay(n: int) -> str:
    return f"paid {n}"


def say(text: str) -> None:
    """A line, whole, whoever else writes."""
    os.write(1, f"{text}\n".encode())


async def _answer(url: str) -> None:
    broker = Broker(open_store(url))
    for request in await broker.pending():
        say(f"parent: {(await broker.answer(request.id, YES, by=ANA)).state}")


async def _halt(url: str) -> None:
    await Broker(open_store(url)).switch.halt(by="ana")


def main(url: str) -> int:
    signoff = Signoff([{"ask": "pay"}, {"allow": "step"}, {"allow": "look"}], store=url, approver=_Nobody())
    asyncio.run(gated(signoff, turns(("look", {})), look).run("used once"))
    before = signoff.broker.process.id
    hears, tells = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads is what this is about
        worker = os.fork()
    if not worker:
        code = 1
        try:
            signal.alarm(90)
            if signoff.broker.process.id != before:
                say("worker: another process than its parent")
            asyncio.run(_worked(signoff, lambda: os.write(tells, b".")))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(tells)
    os.read(hears, 1)
    asyncio.run(_answer(url))
    os.read(hears, 1)
    say("parent: halts")
    asyncio.run(_halt(url))
    return os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])


async def _worked(signoff: Signoff, tell: Callable[[], Any]) -> None:
    await Worker(signoff, tell).main()


def look() -> str:
    return "seen"


class _Nobody:
    """Silent, in whichever event loop."""

    async def choose(self, request: Any, *, mode: Any) -> Any:
        return await Silent().choose(request, mode=mode)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
