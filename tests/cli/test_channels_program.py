"""`signoff channels test` and `run` as programs of their own, with discord.py and a stand-in of the service."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests import start
from tests.cli.desk import asks
from tests.cli.wording import Wording
from tests.discord.service import Message, Service
from tests.discord.service.pointed import ENVIRONMENT

from signoff.broker import Broker
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Requirement
from signoff.store.sqlite import SqliteStore
from signoff.testing import FakeClock

ROOT = Path(__file__).parents[2]
PATIENCE = 60
SECRET = "MTA1.very.secret"


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service().start()
    try:
        yield made
    finally:
        made.stop()
    assert made.errors == []


@dataclass
class Running:
    """The program, while it runs."""

    process: start.Process
    printed: start.Lines

    async def line(self, part: str) -> str:
        """Wait until it prints a line that holds this; lines that it printed before count."""
        return (await asyncio.to_thread(self.printed.until, part, PATIENCE)).rstrip("\n")

    async def ended(self) -> int:
        """Its exit code, once it has printed everything."""
        await asyncio.to_thread(self.printed.rest, PATIENCE)
        return await asyncio.to_thread(self.process.wait, PATIENCE)

    @property
    def text(self) -> str:
        return self.printed.text

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


@dataclass
class Project:
    """A project that asks on Discord."""

    directory: Path
    service: Service
    token: str = SECRET

    @property
    def file(self) -> Path:
        return self.directory / "approvals.db"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            ENVIRONMENT: self.service.url,
            "DISCORD_TOKEN": self.token,
            "SIGNOFF_STORE": f"sqlite:{self.file}",
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "NO_COLOR": "1",
        }

    @asynccontextmanager
    async def signoff(self, *arguments: str) -> AsyncIterator[Running]:
        """The program with these arguments; killed in the end, if it has not ended."""
        process = start.Process(
            [sys.executable, "-m", "tests.discord.service.pointed", "channels", *arguments],
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        with process:
            running = Running(process, start.Lines(process))
            try:
                yield running
            finally:
                process.kill()
        assert self.token not in running.text, "a secret was printed"


async def opened(project: Project, *requests: ApprovalRequest) -> list[str]:
    store = SqliteStore(project.file)
    try:
        return [one.id for one in await Broker(store).open(list(requests))]
    finally:
        store.close()


async def stored(project: Project, request_id: str) -> ApprovalRequest:
    store = SqliteStore(project.file)
    try:
        return await Broker(store).get(request_id)
    finally:
        store.close()


@pytest.fixture
def project(tmp_path: Path, service: Service) -> Project:
    ana = service.person("ana")
    (tmp_path / "signoff.yaml").write_text(
        f'people: {{ana: {{roles: [ops], discord: "{ana.id}"}}}}\n'
        f'policy: [{{ask: "*"}}]\nchannels: {{discord: {{channel: "{service.channel.id}"}}}}\n'
    )
    service.state.token = SECRET
    return Project(tmp_path, service)


def asked(message: Message) -> bool:
    return "signoff_test" in message.text and "Approve" in message.text


def about(tool: str) -> Any:
    return lambda message: tool in message.text


# --- test ---


@pytest.mark.mission("H10")
@pytest.mark.parametrize(("button", "word"), [("Approve", "approved"), ("Deny", "denied")])
async def test_h10_a_harmless_request_goes_there_and_back(
    project: Project, button: str, word: str, wording: Wording
) -> None:
    service = project.service
    async with project.signoff("test", "discord") as program:
        message = await service.message(asked)
        assert "nothing runs" in message.text
        await program.line("waiting 2 min for anyone in `people`")
        await service.person("ana").press(message, button)
        assert await program.ended() == 0
    assert not [line for line in program.lines if line.startswith("failed")]
    assert f"ok      {word} by ana" in program.lines
    assert program.text == wording()
    stands = service.find(message.id)
    assert "ana" in stands.text
    assert stands.components == []
    assert not project.file.exists(), "the project's approvals are left alone"


@pytest.mark.mission("H10")
async def test_h10_nobody_answers(project: Project) -> None:
    async with project.signoff("test", "discord", "--wait", "1s", "--json") as program:
        message = await project.service.message(asked)
        assert await program.ended() == 3
    *steps, result = map(json.loads, program.lines)
    assert all(step["ok"] for step in steps)
    assert (result["exit"], result["ok"]) == (3, False)
    assert result["result"].startswith("Nobody answered in time")
    assert project.service.find(message.id).components == []


@pytest.mark.mission("H10")
async def test_h10_without_an_answer_the_question_is_taken_back(project: Project) -> None:
    async with project.signoff("test", "discord", "--no-answer") as program:
        assert await program.ended() == 0
    message = await project.service.message(about("`signoff_test`"))
    assert message.components == []
    assert "the test is over" in message.text


async def test_a_bot_that_may_add_no_commands_is_told_so_and_works(project: Project) -> None:
    route = "GET /applications/*/guilds/*/commands"
    project.service.fail(route, 403, times=5, code=50001, message="Missing Access")
    async with project.signoff("test", "discord", "--no-answer") as program:
        assert await program.ended() == 0
    [failed] = [line for line in program.lines if line.startswith("failed")]
    assert "commands" in failed and "applications.commands" in failed


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
async def test_a_test_that_is_stopped_leaves_no_question_behind(project: Project, stop: signal.Signals) -> None:
    async with project.signoff("test", "discord") as program:
        message = await project.service.message(asked)
        await program.line("waiting")
        program.process.send_signal(stop)
        assert await program.ended() == 1
    assert program.lines[-1] == "Stopped."
    assert project.service.find(message.id).components == []


async def failing_test(project: Project) -> Running:
    async with project.signoff("test", "discord") as program:
        assert await program.ended() == 1
    assert not [one for one in project.service.messages() if "signoff_test" in one.text]
    return program


async def test_a_token_that_discord_does_not_know(project: Project, wording: Wording) -> None:
    project.service.state.token = "another"
    program = await failing_test(project)
    assert program.text == wording()


async def test_a_channel_that_the_bot_does_not_see(project: Project, wording: Wording) -> None:
    text = (project.directory / "signoff.yaml").read_text()
    (project.directory / "signoff.yaml").write_text(text.replace(str(project.service.channel.id), "112233445566778899"))
    program = await failing_test(project)
    assert program.text == wording()


async def test_permissions_that_are_missing(project: Project, wording: Wording) -> None:
    await project.service.deny(project.service.channel, "attach_files", "create_public_threads")
    program = await failing_test(project)
    assert [line.split()[:3] for line in program.lines if line.startswith("failed  may")] == [
        ["failed", "may", "Create"],
        ["failed", "may", "Attach"],
    ]
    assert program.text == wording()


# --- run ---


async def test_what_waits_is_shown_and_answered(project: Project) -> None:
    service = project.service
    [first] = await opened(project, asks())
    async with project.signoff("run", "discord") as program:
        message = await service.message(about("`pay`"))
        await program.line(f"discord: {first}  asked  pay(")
        assert program.lines[0].startswith("discord: connected")
        assert program.lines[1] == "discord: 1 request waits"
        await service.person("ana").press(message, "Approve")
        line = await program.line(f"discord: {first}  approved by ana  pay(")
        assert "250" in line
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == 0
    assert program.lines[-1].startswith("Stopped.")
    assert "Traceback" not in program.text
    request = await stored(project, first)
    assert request.state is State.APPROVED
    assert request.decision is not None
    assert request.decision.by is not None
    assert (request.decision.by.name, request.decision.by.via) == ("ana", "discord")


async def test_what_people_begin_there_goes_on_there(project: Project) -> None:
    """Somebody mentions the bot, a worker begins, asks, is allowed to or not, and its answer is posted."""
    service, ana = project.service, project.service.person("ana")
    (project.directory / "notes").mkdir()
    (project.directory / "workers").mkdir()
    (project.directory / "workers" / "talker.yaml").write_text(
        "instructions: Talk.\nmodel: script:talker.turns\ntoolsets: [files]\n"
    )
    (project.directory / "workers" / "talker.turns").write_text(
        "- calls: [{tool: write_file, args: {path: a.txt, content: eggs}}]\n- say: The eggs are noted.\n"
    )
    file = project.directory / "signoff.yaml"
    text = file.read_text().replace("{channel:", "{workers: [talker], channel:")
    file.write_text(text + "toolsets: {files: {use: filesystem_rw, config: {root: notes}}}\n")
    async with project.signoff("run", "discord") as program:
        await program.line("discord: 0 requests wait")
        await ana.say(service.channel, f"{service.bot.mention} note the eggs")
        message = await service.message(lambda one: "write_file" in one.text and "Approve" in one.text)
        await program.line("talker starts for ana")
        assert not (project.directory / "notes" / "a.txt").exists()
        await ana.press(message, "Approve")
        answer = await service.message(about("The eggs are noted."))
        await program.line("  ran  ")
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == 0
    assert (project.directory / "notes" / "a.txt").read_text() == "eggs"
    assert answer.place.id == message.place.id, "in the thread it was asked in"
    assert "Traceback" not in program.text


async def test_a_tool_that_hangs_does_not_keep_the_program_from_leaving(project: Project) -> None:
    service, ana = project.service, project.service.person("ana")
    (project.directory / "workers").mkdir()
    (project.directory / "workers" / "talker.yaml").write_text(
        "instructions: Talk.\nmodel: script:talker.turns\ntoolsets: [stuck]\n"
    )
    (project.directory / "workers" / "talker.turns").write_text("- calls: [{tool: hang, args: {}}]\n- say: Never.\n")
    (project.directory / "stuckkit.py").write_text(
        "import threading\n"
        "from pydantic_ai.toolsets import FunctionToolset\n"
        "def kit():\n"
        "    return FunctionToolset([hang])\n"
        "def hang() -> str:\n"
        "    print('it hangs', flush=True)\n"
        "    threading.Event().wait()\n"
    )
    file = project.directory / "signoff.yaml"
    text = file.read_text().replace("{channel:", "{workers: [talker], channel:")
    file.write_text(text + "plugins: {allow: [stuckkit]}\ntoolsets: {stuck: {use: 'stuckkit:kit'}}\n")
    async with project.signoff("run", "discord") as program:
        await program.line("discord: 0 requests wait")
        await ana.say(service.channel, f"{service.bot.mention} go")
        await ana.press(await service.message(lambda one: "hang" in one.text and "Approve" in one.text), "Approve")
        await program.line("it hangs")
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == 0
    assert program.lines[-1].startswith("Stopped.")
    store = SqliteStore(project.file)
    try:
        [status] = await Broker(store).runs.list()
    finally:
        store.close()
    assert status.run.holder == "", "it was put down"
    assert [one.state for one in status.waiting] == [State.UNKNOWN]


async def test_one_runs_at_a_time_and_the_next_goes_on(project: Project) -> None:
    async with project.signoff("run", "discord", "--no-resume", "--json") as program:
        await program.line('"event": "connected"')
        async with project.signoff("run", "discord") as second:
            assert await second.ended() == 2
        assert f"channel 'discord' is run by process {program.process.pid} on" in second.text
        async with project.signoff("test", "discord") as test:
            assert await test.ended() == 2
        assert f"discord is already run by process {program.process.pid}" in test.text
        program.process.send_signal(signal.SIGINT)
        assert await program.ended() == 0
    [first] = await opened(project, asks())
    async with project.signoff("run", "discord", "--no-resume", "--json") as program:
        shown = json.loads(await program.line('"event": "shown"'))
    assert (shown["channel"], shown["request"], shown["state"], shown["by"]) == ("discord", first, "pending", None)
    assert json.loads(program.lines[1])["waiting"] == 1


@pytest.mark.parametrize(
    ("status", "said"),
    [(403, "Discord does not let the bot show it"), (200, "the channel is broken: KeyError")],
    ids=["refused", "broken"],
)
async def test_what_cannot_be_shown_is_told_with_its_request(project: Project, status: int, said: str) -> None:
    service = project.service
    service.fail("POST /channels/*/threads", status, times=1000, code=50013)  # 200: nothing that a thread could be
    async with project.signoff("run", "discord", "--no-resume") as program:
        [first] = await opened(project, asks())
        line = await program.line(f"discord: {first}  {said}")
        assert line.endswith("; retrying, but somebody has to fix it first")
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == 0
    assert "Traceback" not in program.text


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
async def test_a_reminder_that_is_refused_is_told_with_its_request(project: Project, as_json: bool) -> None:
    needs = Requirement(timeout=timedelta(days=1), remind=timedelta(hours=12))
    async with project.signoff("run", "discord", "--no-resume") as program:
        [first] = await opened(project, asks(needs=needs))
        await program.line(f"{first}  asked")
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == 0
    store = SqliteStore(project.file)
    await Broker(store, FakeClock(datetime.now(UTC) + timedelta(hours=13))).sweep()
    store.close()
    project.service.fail("POST /channels/*/messages", 403, times=1000, code=50013)
    async with project.signoff("run", "discord", "--no-resume", *["--json"] * as_json) as program:
        if as_json:
            assert json.loads(await program.line('"event": "problem"'))["request"] == first
        else:
            await program.line(f"discord: {first}  Discord does not let the bot remind people")


async def test_an_outage_and_its_end_are_told_once(project: Project) -> None:
    service = project.service
    async with project.signoff("run", "discord", "--no-resume") as program:
        await program.line("discord: 0 requests wait")
        await service.down()
        [first] = await opened(project, asks())
        await program.line("; retrying until it works")
        await service.up()
        await program.line(f"{first}  asked")
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == 0
    assert len([line for line in program.lines if "; retrying until" in line]) == 1
    assert len([line for line in program.lines if line == "discord: works again"]) == 1
    assert "Traceback" not in program.text


async def test_running_with_a_token_that_discord_does_not_know(project: Project, wording: Wording) -> None:
    project.service.state.token = "another"
    async with project.signoff("run", "discord") as program:
        assert await program.ended() == 2
    assert program.text == wording()
    assert "Traceback" not in program.text


AGENT = """
from pydantic_ai import Agent
from signoff.testing import ScriptedModel

turns = [
    {"calls": [{"tool": "deploy", "args": {"version": "1.2"}}]},
    {"say": "Homar says: {{last}}"},
    {"say": "You said it before."},
]
homar = Agent(ScriptedModel(turns), name="homar")


@homar.tool_plain(requires_approval=True)
def deploy(version: str) -> str:
    return f"deployed {version}"
"""


@pytest.mark.mission("H12")
async def test_h12_an_agent_in_python_is_started_by_a_mention(project: Project) -> None:
    service, ana = project.service, project.service.person("ana")
    (project.directory / "bot.py").write_text(AGENT)
    file = project.directory / "signoff.yaml"
    text = file.read_text().replace("{channel:", '{workers: ["bot:homar"], channel:')
    file.write_text(text + "plugins: {allow: [bot]}\n")
    async with project.signoff("run", "discord") as program:
        await program.line("discord: 0 requests wait")
        await ana.say(service.channel, f"{service.bot.mention} please deploy")
        message = await service.message(lambda one: "`deploy`" in one.text and "Approve" in one.text)
        assert "**By** `homar > deploy`" in message.text
        await program.line("homar starts for ana")
        await ana.press(message, "Approve")
        answer = await service.message(about("Homar says: deployed 1.2"))
        assert answer.place is message.place and "**homar** answered" in answer.text
        program.process.send_signal(signal.SIGTERM)
        assert await program.ended() == 0
    assert "Traceback" not in program.text
