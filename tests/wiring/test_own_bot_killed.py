"""A bot of one's own is killed while a call waits: what is approved afterwards goes on, or people are told how."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import start
from tests.discord.service import Message, Service

from signoff.store.store_factory import open_store

PATIENCE = 60.0
COMMANDS = "/applications/{}/guilds/{}/commands"
"""What a bot asks for once it listens."""
ROOT = Path(__file__).parents[2]
BOT = """
import asyncio, pathlib, sys
from datetime import timedelta

import discord
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessagesTypeAdapter
from tests.discord.service.pointed import point_at

from signoff import Signoff, resume
from signoff.channels import DiscordApprovals
from signoff.testing import ScriptedModel
from signoff.wiring import program_runs

doing, url, token, channel, ana, thread = sys.argv[1:]
point_at(url)
program_runs.GRACE = timedelta(0)
gate = Signoff([{"ask": "deploy"}], store="sqlite:approvals.db", approver=DiscordApprovals.approver)
turns = [{"calls": [{"tool": "deploy", "args": {"version": "1.2"}}]}, {"say": "all of it: {{last}}"}]
agent = Agent(ScriptedModel(turns), name="shipper", capabilities=[gate])


@agent.tool_plain
def deploy(version: str) -> str:
    print(f"deploying {version}", flush=True)
    return f"deployed {version}"


async def go_on(run_id: str) -> object:
    result = await resume(agent, run_id)
    print(f"{run_id}: {result.output}", flush=True)
    return result


async def asks_in_thread(bot: discord.Client) -> None:
    # With a gate: whatever the run asks is asked in the thread.
    await bot.wait_until_ready()
    async with bot.approvals.in_thread(await bot.fetch_channel(int(thread))):
        await agent.run("Ship it")


plain = Agent(ScriptedModel(turns), name="plain", output_type=[str, DeferredToolRequests])


@plain.tool_plain(requires_approval=True, name="deploy")
def deploy_plainly(version: str) -> str:
    return deploy(version)


async def requests_approval(bot: discord.Client) -> None:
    # Without a gate: the program keeps what was said itself, and asks about the same call after a restart.
    await bot.wait_until_ready()
    talk, kept = await bot.fetch_channel(int(thread)), pathlib.Path("messages.json")
    if not kept.exists():
        kept.write_bytes((await plain.run("Ship it")).all_messages_json())
    messages = ModelMessagesTypeAdapter.validate_json(kept.read_bytes())
    waits = DeferredToolRequests(approvals=list(messages[-1].tool_calls))
    results = await bot.approvals.request_approval(talk, waits)
    result = await plain.run(message_history=messages, deferred_tool_results=results)
    await talk.send(result.output)


class Bot(discord.Client):
    async def setup_hook(self) -> None:
        given = {"resume": go_on} if doing == "resume" else {}
        self.approvals = DiscordApprovals(self, signoff=gate, channel=channel, people={"ana": ana}, **given)
        await self.approvals.start()
        if doing == "plain":
            self.run_task = asyncio.create_task(requests_approval(self))
        if doing == "thread":
            self.run_task = asyncio.create_task(asks_in_thread(self))
        if doing == "ask":
            self.run_task = asyncio.create_task(agent.run("Ship it"))


Bot(intents=discord.Intents(guilds=True)).run(token, log_handler=None)
"""


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service().start()
    yield made
    made.stop()
    assert made.errors == []


class OwnBot:
    """A program that somebody wrote, over one store."""

    def __init__(self, service: Service, directory: Path) -> None:
        self._service = service
        self._directory = directory
        self._process: start.Process | None = None
        self.listened = 0
        """How often a bot had begun to listen when the last one was killed."""

    def begin(self, doing: str, thread: int = 0) -> start.Lines:
        service = self._service
        places = [str(service.channel.id), str(service.person("ana").id), str(thread)]
        given = [doing, service.url, service.token, *places]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        self._process = start.Process(
            [sys.executable, "-c", BOT, *given],
            cwd=self._directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._lines = start.Lines(self._process)
        return self._lines

    async def noted(self) -> None:
        """Return once it is written down where the call stands: also where the thread was known before."""
        store = open_store(f"sqlite:{self._directory / 'approvals.db'}")
        changed, loop = asyncio.Event(), asyncio.get_running_loop()
        stop = store.watch(lambda: loop.call_soon_threadsafe(changed.set) and None)
        try:
            async with asyncio.timeout(PATIENCE):
                while not await store.read(lambda tx: [one for one in tx.deliveries.find(live=True) if one.shown >= 0]):
                    await changed.wait()
                    changed.clear()
        finally:
            stop()
            store.close()

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(PATIENCE)
            self._lines.rest(PATIENCE)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None


@pytest.fixture
def bot(service: Service, tmp_path: Path) -> Iterator[OwnBot]:
    made = OwnBot(service, tmp_path)
    yield made
    made.kill()


async def asked_and_killed(bot: OwnBot, service: Service, doing: str = "ask", thread: int = 0) -> Message:
    bot.begin(doing, thread)
    message = await service.message(lambda one: "`deploy`" in one.text and bool(one.buttons), PATIENCE)
    if not thread:  # else it is known before where it stands: what is pressed meanwhile counts as well
        await bot.noted()
    # Whatever it asks later than that would be taken for the second one's.
    await service.until(lambda: len(service.calls("GET", COMMANDS)) > bot.listened, "it does not listen", PATIENCE)
    bot.kill()
    bot.listened = len(service.calls("GET", COMMANDS))
    return message


async def approved_after_the_start(service: Service, message: Message, bot: OwnBot) -> None:
    """Approve once the second process listens: what is pressed before that is lost, as on Discord."""
    await service.until(lambda: len(service.calls("GET", COMMANDS)) > bot.listened, "it does not listen", PATIENCE)
    await service.person("ana").press(message, "Approve")


async def test_people_are_told_that_nobody_goes_on_and_how_it_would(service: Service, bot: OwnBot) -> None:
    message = await asked_and_killed(bot, service)
    bot.begin("show")
    await approved_after_the_start(service, message, bot)
    told = await service.message(lambda one: "has not finished" in one.text, PATIENCE)
    assert told.place is message.place and "was approved" in message.text
    assert "**shipper** has not finished:\nAnswered, but the program that asked is gone." in told.text
    assert "It continues when a program resumes run " in told.text and "`resume(agent, " in told.text


@pytest.mark.nightly  # by day it goes on in a thread of the conversation, as below
async def test_a_program_that_says_how_goes_on_after_a_restart(service: Service, bot: OwnBot) -> None:
    message = await asked_and_killed(bot, service)
    lines = bot.begin("resume")
    await approved_after_the_start(service, message, bot)
    ran = await service.message(lambda one: one.id == message.id and " ran" in one.text, PATIENCE)
    said = await service.message(lambda one: "all of it: deployed 1.2" in one.text, PATIENCE)
    assert said.place is ran.place and "answered" in said.text
    lines.until("deploying 1.2")
    assert "all of it: deployed 1.2" in lines.until("all of it")


@pytest.mark.mission("H12")
async def test_h12_a_restarted_bot_takes_up_what_it_asked_in_a_thread_of_the_conversation(
    service: Service, bot: OwnBot
) -> None:
    thread = await service.person("ana").start_thread(service.channel, "talk")
    message = await asked_and_killed(bot, service, "thread", thread.id)
    assert message.place is thread
    bot.begin("resume")
    await approved_after_the_start(service, message, bot)
    await service.message(lambda one: one.id == message.id and " ran" in one.text, PATIENCE)
    said = await service.message(lambda one: "all of it: deployed 1.2" in one.text, PATIENCE)
    assert said.place is thread and service.threads() == [thread]


@pytest.mark.mission("H12")
async def test_h12_a_restarted_bot_without_a_gate_finds_its_question_again(service: Service, bot: OwnBot) -> None:
    thread = await service.person("ana").start_thread(service.channel, "talk")
    message = await asked_and_killed(bot, service, "plain", thread.id)
    bot.begin("plain", thread.id)
    await approved_after_the_start(service, message, bot)
    said = await service.message(lambda one: one.content == "all of it: deployed 1.2", PATIENCE)
    asked = [one for one in service.messages(thread) if "deploy" in one.text and one is not said]
    assert said.place is thread and asked == [message], "it was asked once"
