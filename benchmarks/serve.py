"""`signoff serve` under load: what a vote takes over HTTP, how soon watchers hear, whether its memory stays flat."""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from getpass import getuser
from importlib.util import find_spec
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.measure import Effort, Figure, Pairs, timed
from benchmarks.report import Report, Row, Table, Target
from benchmarks.serve_load import HttpClient, HttpFailed, Office, ServeProcess, Watcher, office, under_load
from signoff.core.request import ApprovalRequest

MOST_TIMES_BARE = 3.0
MOST_GROWTH = 1.1
"""How many times as much memory after the last of the decided requests as after the first fifth of them."""
BARE = Path(__file__).with_name("serve_bare.py")
VOTERS = 8
TOGETHER = 100
"""Requests that are asked and decided in one go, where only memory is looked at."""
BLOCKS = 10


def measure(effort: Effort, bench: Bench) -> Report:
    about = (
        f"A real server on SQLite, with {effort.serve_waiting} requests that wait and {effort.serve_watchers} clients "
        f"that follow its events, while {effort.serve_arriving} more arrive from another process and are decided over "
        "HTTP. That nothing is lost and nothing told twice is checked. A vote alone is compared with a Starlette route "
        "that writes one row to SQLite, each right after the other."
    )
    if missing := [name for name in ("starlette", "uvicorn", "jinja2") if find_spec(name) is None]:
        note = f"left out: {', '.join(missing)} is not installed; the extra web brings it"
        return Report("serve", "A server under load", about, (), notes=(*bench.notes, note))
    with asyncio.Runner() as runner:
        directory = bench.disk.directory / "serve"
        directory.mkdir()
        (directory / "signoff.yaml").write_text('policy: [{ask: "*"}]\n', encoding="utf-8")
        # Who is on file nowhere is whoever works here: the token is theirs.
        holder = os.environ.get("SIGNOFF_AS") or getuser()
        server = ServeProcess(directory, f"sqlite:{directory / 'approvals.db'}", environment={"SIGNOFF_AS": holder})
        runner.run(server.start())
        try:
            return runner.run(_measured(effort, bench, about, server, holder))
        finally:
            server.stop()


async def _measured(effort: Effort, bench: Bench, about: str, server: ServeProcess, holder: str) -> Report:
    async with office(server, holder) as made:
        watchers = await under_load(
            server,
            made,
            waiting=effort.serve_waiting,
            watchers=effort.serve_watchers,
            arriving=effort.serve_arriving,
            voters=VOTERS,
        )
        _check(watchers)
        votes, heard = list(made.votes), list(_heard(made, watchers))
        pairs, named = await _beside_bare(effort, made, server.directory)
        memory = [held async for held in _memory(effort, made, server)]
    rows = (
        Row("a vote, ms", _percentiles(votes)),
        Row("arrival to a watcher, ms", _percentiles(heard)),
    )
    alone = Table(
        "a vote with nothing else going on",
        ("ms", "times the bare route"),
        (
            Row("signoff", (Figure.of(pairs.values).times(1e3), pairs.ratio)),
            Row("signoff, with an Idempotency-Key", (Figure.of(named.values).times(1e3), named.ratio)),
            Row("a Starlette route with one write", (Figure.of(pairs.bases).times(1e3), None)),
        ),
    )
    held = Table("memory of the server, MB", ("MB",), tuple(Row(f"after {count:,}", (size,)) for count, size in memory))
    growth = memory[-1][1] / memory[max(0, len(memory) // 5 - 1)][1]
    return Report(
        name="serve",
        title="A server under load",
        about=about,
        tables=(Table("under load", ("median", "p99"), rows), alone, held),
        targets=(
            Target("a vote, times a bare Starlette route with one write", pairs.ratio.median, MOST_TIMES_BARE),
            Target(f"memory after {memory[-1][0]:,} decided, times that after a fifth", growth, MOST_GROWTH),
        ),
        notes=bench.notes,
    )


def _check(watchers: Sequence[Watcher]) -> None:
    for one in watchers:
        assert not one.gaps, f"events were lost, or told twice: {one.gaps[:5]}"
        assert not one.problems, one.problems


def _heard(made: Office, watchers: Sequence[Watcher]) -> Iterator[float]:
    """Seconds from the question, before it is written, until each watcher had it."""
    for one in watchers:
        for request, at in one.asked.items():
            if request in made.asked_at:
                yield at - made.asked_at[request]


def _percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    hundredths = statistics.quantiles(seconds, n=100, method="inclusive") if len(seconds) > 1 else [*seconds] * 99
    return hundredths[49] * 1e3, hundredths[98] * 1e3


async def _beside_bare(effort: Effort, made: Office, directory: Path) -> tuple[Pairs, Pairs]:
    """A vote, and a bare route's write right before or after it; the same for votes that have a name."""
    votes, writes, named = list[float](), list[float](), list[float]()
    with _bare(directory) as port:
        ours, bare = HttpClient(made.port, made.token), HttpClient(port, "none")
        await _answers(bare)
        count = 2 * (effort.warm_up + effort.rounds) * effort.serve_votes
        requests = iter(await made.ask(count))
        for number in range(effort.warm_up + effort.rounds):
            plain, others = ([next(requests) for _ in range(effort.serve_votes)] for _ in range(2))
            if number % 2:
                vote, write = await _votes(made, ours, plain, named=False), await _writes(bare, plain)
            else:
                write, vote = await _writes(bare, plain), await _votes(made, ours, plain, named=False)
            once = await _votes(made, ours, others, named=True)
            if number >= effort.warm_up:
                votes.append(vote / effort.serve_votes)
                writes.append(write / effort.serve_votes)
                named.append(once / effort.serve_votes)
        ours.close()
        bare.close()
    return Pairs(votes, writes), Pairs(named, writes)


async def _votes(made: Office, client: HttpClient, requests: Sequence[ApprovalRequest], *, named: bool) -> float:
    return sum([await made.vote(client, one, named=named) for one in requests])


async def _writes(client: HttpClient, requests: Sequence[ApprovalRequest]) -> float:
    total = 0.0
    for one in requests:
        body = {"decision": "approve", "args_digest": one.args_digest}
        total += await timed(lambda one=one, body=body: client.request("POST", f"/requests/{one.id}/votes", body))
    return total


@contextmanager
def _bare(directory: Path) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with subprocess.Popen([sys.executable, BARE, str(port), str(directory / "bare.db")]) as process:
        try:
            yield port
        finally:
            process.terminate()


async def _answers(client: HttpClient) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            await client.request("GET", "/readyz")
        except HttpFailed:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.05)
        else:
            return


async def _memory(effort: Effort, made: Office, server: ServeProcess) -> AsyncIterator[tuple[int, float]]:
    """What the server holds after each tenth of many decided requests."""
    client = HttpClient(made.port, made.token)
    each = max(1, effort.serve_decided // BLOCKS)
    for block in range(1, BLOCKS + 1):
        left = each
        while left > 0:
            requests = await made.ask(min(TOGETHER, left))
            left -= len(requests)
            votes = [{"request": one.id, "decision": "deny", "args_digest": one.args_digest} for one in requests]
            status, said = await client.request("POST", "/api/v1/votes", {"votes": votes})
            assert status == 200, said
            assert b'"ok":false' not in said, said
        yield block * each, server.megabytes
    client.close()
