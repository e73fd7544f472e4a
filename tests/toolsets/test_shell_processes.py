"""Limits hold, and nothing that a call started is there when it returns."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

import pytest

from signoff.policy.shell.line import CommandLine, Pipeline, Simple, Word
from signoff.toolsets.builtin.shell.approved_command import run_approved
from signoff.toolsets.builtin.shell.argv import run_line
from signoff.toolsets.builtin.shell.subprocesses import Capture, CommandResult, ProcessLimits

linux = pytest.mark.skipif(sys.platform != "linux", reason="stragglers are looked for in /proc")


def piped(*stages: str) -> CommandLine:
    return CommandLine((Pipeline(tuple(Simple(tuple(Word(one) for one in stage.split(" "))) for stage in stages)),))


def alive(text: str) -> list[int]:
    """Processes with such a command line that have not ended."""
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if text in words:
                found.append(int(name))
    return found


async def test_a_command_that_never_ends_is_stopped(tmp_path: Path) -> None:
    for limits in (ProcessLimits(seconds=0.05), ProcessLimits(seconds=0.05, output=1000)):
        outcome = await run_line(piped("yes", "cat"), root=str(tmp_path), limits=limits)
        assert outcome.stopped == "it took longer than 0.05 seconds" and outcome.code == 124
        assert outcome.text.endswith("[stopped: it took longer than 0.05 seconds]")
    outcome = await run_approved(
        "echo begun; sleep 1000; echo never", root=str(tmp_path), limits=ProcessLimits(seconds=1)
    )
    assert outcome.stopped and outcome.out == "begun\n"


async def test_a_flood_is_kept_at_both_ends_and_counted(tmp_path: Path) -> None:
    outcome = await run_approved(
        "echo first; yes | head -c 50000000; echo last", root=str(tmp_path), limits=ProcessLimits(output=10_000)
    )
    assert outcome.code == 0 and len(outcome.out) < 10_000
    assert outcome.out.startswith("first\ny\n") and outcome.out.endswith("y\nlast\n")
    assert f"[… {50_000_000 + 11 - 7_500:,} bytes left out …]" in outcome.out


async def test_a_flood_of_errors_does_not_push_out_the_rest(tmp_path: Path) -> None:
    command = "echo here; yes | head -c 5000000 >&2; exit 3"
    outcome = await run_approved(command, root=str(tmp_path), limits=ProcessLimits(output=10_000))
    assert outcome.out == "here\n" and outcome.code == 3 and len(outcome.err) < 3_000
    assert outcome.text.startswith("here\n[stderr]\ny\n") and outcome.text.endswith("[exit code 3]")


@linux
@pytest.mark.parametrize(
    "command",
    [
        "sleep {} & echo done",
        "setsid sleep {} & echo done",
        "setsid -f sleep {}; echo done",
        "nohup setsid -f sh -c 'trap \"\" TERM HUP; sleep {}; sleep {}' >/dev/null 2>&1 </dev/null; echo done",
        "env -i /usr/bin/setsid -f /usr/bin/env -i sleep {} >/dev/null 2>&1; echo done",
        "(setsid sh -c 'while :; do setsid sleep {}; done' &) ; echo done",
    ],
    ids=["in the background", "own session", "daemon", "stubborn daemon", "without environment", "comes back"],
)
async def test_what_an_approved_command_leaves_behind_is_ended(tmp_path: Path, command: str) -> None:
    seconds = f"1000.{os.getpid()}{threading.get_ident() % 1000}"
    outcome = await run_approved(command.replace("{}", seconds), root=str(tmp_path), limits=ProcessLimits(seconds=30))
    assert outcome == CommandResult(0, "done\n")
    assert alive(f"sleep {seconds}") == []


@linux
async def test_a_cancelled_task_ends_its_processes_first(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "begun")
    seconds = f"2000.{os.getpid()}"
    command = f"setsid sleep {seconds} & sleep {seconds} & echo > begun; wait"
    task = asyncio.create_task(run_approved(command, root=str(tmp_path), limits=ProcessLimits(seconds=60)))
    await asyncio.to_thread((tmp_path / "begun").read_bytes)
    assert len(alive(f"sleep {seconds}")) >= 1
    began = asyncio.get_running_loop().time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.get_running_loop().time() - began < 30, "it did not wait for the time limit"
    assert alive(f"sleep {seconds}") == []


async def test_the_event_loop_goes_on_meanwhile(tmp_path: Path) -> None:
    """The command waits for something that the loop does while it runs."""
    os.mkfifo(tmp_path / "go")

    def answer() -> None:
        (tmp_path / "go").write_text("now\n")

    running = asyncio.create_task(run_approved("cat go", root=str(tmp_path), limits=ProcessLimits(seconds=30)))
    await asyncio.to_thread(answer)
    assert (await running).out == "now\n"


async def test_many_at_once_do_not_mix(tmp_path: Path) -> None:
    texts = [str(number) for number in range(20)]
    outcomes = await asyncio.gather(*(run_line(piped(f"echo {text}", "cat"), root=str(tmp_path)) for text in texts))
    assert [outcome.out for outcome in outcomes] == [f"{text}\n" for text in texts]


async def test_no_file_of_ours_is_left_open(tmp_path: Path) -> None:
    await run_line(piped("true"), root=str(tmp_path))
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        await run_line(piped("yes", "cat", "head -1"), root=str(tmp_path))
        await run_line(piped("no-such-program", "cat", "no-such-program"), root=str(tmp_path))
        await run_line(piped("cat", "cd -Q", "cat"), root=str(tmp_path))
        await run_line(piped("yes"), root=str(tmp_path), limits=ProcessLimits(seconds=0.01, output=10))
        await run_approved("setsid -f yes", root=str(tmp_path))
    assert len(os.listdir("/dev/fd")) == before


@linux
async def test_children_see_none_of_our_files(tmp_path: Path) -> None:
    ours = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(ours, True)
    try:
        outcome = await run_approved("ls -l /proc/self/fd", root="/")
    finally:
        os.close(ours)
    assert str(tmp_path) not in outcome.out and "/dev/null" in outcome.out


@linux
async def test_children_have_limits(tmp_path: Path) -> None:
    outcome = await run_approved(
        "ulimit -c; ulimit -f; umask", root=str(tmp_path), limits=ProcessLimits(file_size=1 << 20)
    )
    core, size, mask = outcome.out.split()
    assert core == "0" and 1 << 10 <= int(size) <= (1 << 10) + (1 << 14) and mask == "0022"
    command = "head -c 100000000 /dev/zero > big; echo $?"
    outcome = await run_approved(command, root=str(tmp_path), limits=ProcessLimits(file_size=1000))
    assert outcome.out != "0\n" and (tmp_path / "big").stat().st_size < 1 << 25


async def test_an_approved_command_is_run_as_it_was_shown(tmp_path: Path) -> None:
    outcome = await run_approved("x='a  b'; echo \"$x\" | tr a-z A-Z; (exit 7)", root=str(tmp_path))
    assert outcome == CommandResult(7, "A  B\n")
    assert (await run_approved("-c ls", root=str(tmp_path))).code == 127, "it is a command, not an option of the shell"
    assert (await run_approved("echo a\0b", root=str(tmp_path))).code == 126
    assert (await run_approved("true", root=str(tmp_path / "gone"))).code == 126


@pytest.mark.parametrize(
    ("data", "limit", "text"),
    [
        (b"", 10, ""),
        (b"0123456789", 10, "0123456789"),
        (b"0123456789a", 10, "01234\n[… 1 byte left out …]\n6789a"),
        ("ääääääää".encode(), 10, "ää\n[… 6 bytes left out …]\nää"),
        (b"a\0b\xff", 10, "a\ufffdb\ufffd"),
    ],
)
def test_what_is_kept_is_cut_between_characters(data: bytes, limit: int, text: str) -> None:
    for piece in (1, 3, 100):
        capture = Capture(limit)
        for at in range(0, len(data), piece):
            capture.add(data[at : at + piece])
        assert capture.text == text


def test_the_text_for_a_model() -> None:
    assert CommandResult(0).text == "[no output]"
    assert CommandResult(0, "a\n").text == "a"
    assert CommandResult(2, "a\n", "b\n").text == "a\n[stderr]\nb\n[exit code 2]"
