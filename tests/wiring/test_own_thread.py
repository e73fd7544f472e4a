"""A bot of one's own asks in the thread of its conversation: as somebody would write it, over the real discord.py."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import discord
import pytest
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, RunContext
from pydantic_ai.tools import DeferredToolResults, ToolApproved, ToolDenied
from tests.discord.service import Message, Place, Service
from tests.discord.service.pointed import point_at

from signoff import Signoff, resume
from signoff.channels import DiscordApprovals
from signoff.channels.discord import presses
from signoff.errors import WrongUse
from signoff.testing import ScriptedModel

INTENTS = discord.Intents(guilds=True, guild_messages=True)
DEPLOY: list[Any] = [{"calls": [{"tool": "deploy", "args": {"version": "1.2"}}]}, {"say": "Homar says: {{last}}"}]
BOTH: list[Any] = [
    {
        "calls": [
            {"tool": "deploy", "args": {"version": "1.2"}},
            {"tool": "delete_file", "args": {"path": "important.txt"}},
        ]
    },
    {"say": "Homar says: {{last}}"},
]


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service().start()
    back = point_at(made.url)
    try:
        yield made
    finally:
        back()
        made.stop()
    assert made.errors == []


class Homar(discord.Client):
    """Somebody's bot: a thread for whoever mentions it, its own agent, its own answer."""

    def __init__(self, service: Service, run: Callable[[Homar, str, discord.Thread], Any], **options: Any) -> None:
        super().__init__(intents=INTENTS)
        people = {name: service.person(name).id for name in ("ana", "ben")}
        self.approvals = DiscordApprovals(self, channel=service.channel.id, people=people, **options)
        self._run = run
        self.failures: list[BaseException] = []

    async def setup_hook(self) -> None:
        await self.approvals.start()

    async def on_message(self, message: discord.Message) -> None:
        if self.user not in message.mentions or message.author.bot:
            return
        thread = await message.create_thread(name="Homar")
        try:
            await thread.send(await self._run(self, message.content, thread))
        except Exception as error:
            self.failures.append(error)


@asynccontextmanager
async def homar(
    service: Service, run: Callable[[Homar, str, discord.Thread], Any], **options: Any
) -> AsyncIterator[Homar]:
    async with Homar(service, run, **options) as bot:
        task = asyncio.create_task(bot.start(service.token))
        try:
            await service.connected()
            yield bot
        finally:
            await bot.approvals.stop()
            await bot.close()
            await asyncio.gather(task, return_exceptions=True)
        assert bot.failures == []


class Tools:
    """The tools of a bot, and what they did."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def on(self, agent: Agent[None, Any]) -> None:
        @agent.tool_plain(requires_approval=True)
        def deploy(version: str) -> str:
            self.ran.append(f"deploy {version}")
            return f"deployed {version}"

        @agent.tool
        def delete_file(ctx: RunContext[None], path: str) -> str:
            if "important" in path and not ctx.tool_call_approved:
                raise ApprovalRequired(metadata={"reason": "important files cannot be brought back"})
            self.ran.append(f"delete {path}")
            return f"deleted {path}"


def plain_agent(tools: Tools, turns: list[Any]) -> Agent[None, Any]:
    agent = Agent(ScriptedModel(turns), name="homar", output_type=[str, DeferredToolRequests])
    tools.on(agent)
    return agent


def gated_agent(tools: Tools, turns: list[Any], gate: Signoff) -> Agent[None, Any]:
    agent = Agent(ScriptedModel(turns), name="homar", capabilities=[gate])
    tools.on(agent)
    return agent


def asking(make: Callable[[], Agent[None, Any]], **options: Any) -> Callable[[Homar, str, discord.Thread], Any]:
    """As the docs say it for an agent without a gate."""

    async def run(bot: Homar, prompt: str, thread: discord.Thread) -> str:
        agent = make()
        result = await agent.run(prompt)
        while isinstance(result.output, DeferredToolRequests):
            results = await bot.approvals.request_approval(thread, result.output, worker=["homar"], **options)
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=results)
        return result.output

    return run


def within(make: Callable[[], Agent[None, Any]]) -> Callable[[Homar, str, discord.Thread], Any]:
    """As the docs say it for an agent with a gate."""

    async def run(bot: Homar, prompt: str, thread: discord.Thread) -> str:
        async with bot.approvals.in_thread(thread):
            return (await make().run(prompt)).output

    return run


async def mentioned(service: Service, text: str = "please deploy", by: str = "ana") -> Message:
    return await service.person(by).say(service.channel, f"{service.bot.mention} {text}")


async def asked(service: Service, tool: str, place: int | None = None) -> Message:
    """The question about a tool, in a place or anywhere. A thread has the number of the message it begins with."""

    def fits(one: Message) -> bool:
        return f"May `{tool}` run?" in one.text and bool(one.buttons) and place in (None, one.place.id)

    return await service.message(fits)


def thread_of(service: Service, message: Message) -> Place:
    return service.place(message.id)


def by_bot(service: Service, place: Place) -> list[str]:
    return [one.text for one in service.messages(place) if one.author.id == service.bot.id]


@pytest.mark.mission("H12")
async def test_h12_a_bot_asks_in_the_thread_of_the_conversation_and_answers_there(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="signoff.discord")
    tools = Tools()
    store = f"sqlite:{tmp_path / 's.db'}"
    async with homar(service, asking(lambda: plain_agent(tools, BOTH)), store=store):
        said = await mentioned(service)
        first, second = await asked(service, "deploy"), await asked(service, "delete_file")
        thread = thread_of(service, said)
        assert first.place is thread and second.place is thread and service.threads() == [thread]
        assert "important files cannot be brought back" in second.text and "**By** `homar > deploy`" in first.text
        await service.message(lambda one: "2 calls wait" in one.text and one.place is thread)
        stranger = await (await service.person("eve").press(first, "Approve")).reply()
        assert "not listed" in stranger.text and tools.ran == []
        await service.person("ana").press(first, "Approve")
        form = await (await service.person("ben").press(second, "Deny with reason…")).modal()
        await form.submit(dict.fromkeys(form.values, "not that one"))
        answer = await service.message(lambda one: one.content.startswith("Homar says:"))
        await service.message(lambda one: one.id == first.id and "was approved" in one.text and "Handed" in one.text)
    assert answer.place is thread and tools.ran == ["deploy 1.2"] and "not that one" in answer.content
    assert sum("Homar says" in one for one in by_bot(service, thread)) == 1, "it is the bot that answers"
    log = "\n".join(record.getMessage() for record in caplog.records if record.levelno == logging.INFO)
    for part in (
        f"(deploy) asked; posted in thread {thread.id}",
        "(deploy) approved by ana",
        "(delete_file) denied by ben",
    ):
        assert part in log, log
    assert f"by Discord user {service.person('eve').id} in thread {thread.id}; not accepted: not listed" in log
    assert "important.txt" not in log, "what a call says is in no log"


@pytest.mark.mission("H12")
async def test_h12_runs_of_a_gated_agent_side_by_side_each_ask_in_their_own_thread(
    service: Service, tmp_path: Path
) -> None:
    tools = Tools()
    gate = Signoff([{"allow": "ask_helper"}, {"ask": "*"}], store=f"sqlite:{tmp_path / 's.db'}")
    helper = Agent(ScriptedModel(DEPLOY), name="helper", capabilities=[gate])
    tools.on(helper)

    def made() -> Agent[None, Any]:
        agent = Agent(
            ScriptedModel([{"calls": [{"tool": "ask_helper", "args": {}}]}, {"say": "Homar says: {{last}}"}]),
            name="homar",
            capabilities=[gate],
        )

        @agent.tool_plain
        async def ask_helper() -> str:
            return (await helper.run("deploy")).output

        return agent

    async def run(bot: Homar, prompt: str, thread: discord.Thread) -> str:
        make = made if "nested" in prompt else (lambda: gated_agent(tools, DEPLOY, gate))
        return await within(make)(bot, prompt, thread)

    async with homar(service, run, signoff=gate):
        one, two = await mentioned(service, "deploy it"), await mentioned(service, "nested, deploy it", by="ben")
        first = await asked(service, "deploy", one.id)
        second = await asked(service, "deploy", two.id)
        assert "**By** `homar > helper > deploy`" in second.text
        await service.person("ana").press(second, "Deny")
        await service.message(lambda m: m.content.startswith("Homar says:") and m.place is second.place)
        assert tools.ran == []
        await service.person("ana").press(first, "Approve")
        told = await service.message(lambda m: "deployed 1.2" in m.content and m.place is first.place)
        await service.message(lambda m: m.id == first.id and " ran" in m.text)
    assert tools.ran == ["deploy 1.2"] and told.content == "Homar says: deployed 1.2"
    assert len(service.threads()) == 2, "no thread of ours besides"
    assert not any("answered" in one for place in (first.place, second.place) for one in by_bot(service, place))


@pytest.mark.mission("H12")
async def test_h12_without_a_store_the_thread_is_the_same(service: Service) -> None:
    tools, gate = Tools(), Signoff([{"ask": "*"}])
    async with homar(service, within(lambda: gated_agent(tools, DEPLOY, gate)), signoff=gate):
        said = await mentioned(service)
        question = await asked(service, "deploy")
        assert question.place is thread_of(service, said)
        await service.person("ana").press(question, "Approve")
        await service.message(lambda one: one.content == "Homar says: deployed 1.2")


@pytest.mark.mission("H12")
async def test_h12_only_in_that_thread_and_only_by_the_right_people(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presses, "_SOMEBODY_ELSE", 0.0)  # nobody else is there
    tools = Tools()
    gate = Signoff(
        [{"ask": "deploy", "by": "ops", "quorum": 2}, {"deny": "delete_file", "reason": "never"}],
        people={"ana": ["ops"], "ben": ["ops"]},
    )
    async with homar(service, asking(lambda: plain_agent(tools, BOTH)), signoff=gate):
        await mentioned(service)
        question = await asked(service, "deploy")
        approve = question.child("Approve")
        assert approve is not None
        elsewhere = await service.person("ana").forge(service.channel, approve["custom_id"], question)
        assert "only where it was asked" in (await elsewhere.reply()).text
        assert "1 more is needed" in (await (await service.person("ana").press(question, "Approve")).reply()).text
        assert tools.ran == []
        await service.person("ben").press(question, "Approve")
        answer = await service.message(lambda one: one.content.startswith("Homar says:"))
    assert tools.ran == ["deploy 1.2"] and "never" in answer.content and '"by": "policy"' in answer.content


@pytest.mark.mission("H12")
async def test_h12_silence_is_no_and_a_late_press_is_told(service: Service) -> None:
    tools = Tools()
    rules = [{"ask": "deploy", "timeout": "1s"}]
    async with homar(service, asking(lambda: plain_agent(tools, DEPLOY)), signoff=Signoff(rules)):
        await mentioned(service)
        question = await asked(service, "deploy")
        approve = question.child("Approve")
        assert approve is not None
        answer = await service.message(lambda one: one.content.startswith("Homar says:"))
        assert "nobody answered in time" in answer.content and tools.ran == []
        await service.message(lambda one: one.id == question.id and not one.buttons)
        late = await service.person("ana").forge(question.place, approve["custom_id"], question)
        assert (await late.reply()).text.startswith("Too late:")


@pytest.mark.mission("H12")
async def test_h12_arguments_can_be_edited_where_the_tool_is_known(service: Service) -> None:
    tools = Tools()
    known = plain_agent(tools, DEPLOY)
    definitions = {name: tool.tool_def for one in known.toolsets for name, tool in getattr(one, "tools", {}).items()}
    gate = Signoff([{"deny": {"tool": "deploy", "args": {"version": "0"}}}])
    run = asking(lambda: plain_agent(tools, DEPLOY), tools=definitions)
    async with homar(service, run, signoff=gate):
        await mentioned(service)
        question = await asked(service, "deploy")
        for text, wrong in (('{"version": "0"}', "denies"), ('{"version": 7}', "not valid")):
            form = await (await service.person("ana").press(question, "Edit…")).modal()
            assert wrong in (await (await form.submit(dict.fromkeys(form.values, text))).reply()).text
        form = await (await service.person("ana").press(question, "Edit…")).modal()
        await form.submit(dict.fromkeys(form.values, json.dumps({"version": "2.0"})))
        await service.message(lambda one: one.content == "Homar says: deployed 2.0")
    assert tools.ran == ["deploy 2.0"]


async def deferred(tools: Tools, call_id: str) -> DeferredToolRequests:
    result = await plain_agent(tools, DEPLOY).run("deploy")
    assert isinstance(result.output, DeferredToolRequests)
    return DeferredToolRequests(approvals=[replace(one, tool_call_id=call_id) for one in result.output.approvals])


def only(results: DeferredToolResults) -> Any:
    [result] = results.approvals.values()
    return result


@pytest.mark.mission("H12")
async def test_h12_an_approval_is_handed_out_once_and_a_no_is_final(service: Service, tmp_path: Path) -> None:
    calls = [await deferred(Tools(), call_id) for call_id in ("call-1", "call-2")]
    ana = service.person("ana")
    store = f"sqlite:{tmp_path / 's.db'}"
    async with homar(service, asking(lambda: plain_agent(Tools(), DEPLOY)), store=store) as bot:
        await bot.wait_until_ready()
        place = await ana.start_thread(service.channel, "talk")
        thread = await bot.fetch_channel(place.id)
        given_up = asyncio.create_task(bot.approvals.request_approval(thread, calls[0]))
        question = await asked(service, "deploy")
        given_up.cancel()
        await asyncio.wait((given_up,))
        await ana.press(question, "Approve")
        await service.message(lambda one: one.id == question.id and not one.buttons)
        twice = [bot.approvals.request_approval(thread, calls[0]) for _ in range(2)]
        given = sorted(type(only(one)).__name__ for one in await asyncio.gather(*twice))
        assert given == ["ToolApproved", "ToolDenied"], "what was answered meanwhile is taken, by one"
        again = asyncio.create_task(bot.approvals.request_approval(thread, calls[0]))
        anew = await service.message(lambda one: "May `deploy` run?" in one.text and one.id != question.id)
        await ana.press(anew, "Deny")
        assert isinstance(only(await again), ToolDenied)
        await service.message(lambda one: one.id == anew.id and not one.buttons)
        assert isinstance(only(await bot.approvals.request_approval(thread, calls[0])), ToolDenied)
        assert isinstance(only(await _approved(bot, service, thread, calls[1])), ToolApproved)


async def _approved(bot: Homar, service: Service, thread: Any, calls: DeferredToolRequests) -> DeferredToolResults:
    """A call of another id with the same arguments is another call."""
    asking = asyncio.create_task(bot.approvals.request_approval(thread, calls))
    await service.person("ana").press(await asked(service, "deploy"), "Approve")
    return await asking


@pytest.mark.mission("H12")
async def test_h12_wrong_use_is_told(service: Service) -> None:
    gate = Signoff([{"ask": "*"}], wait="suspend")
    agent = Agent(ScriptedModel(DEPLOY), name="homar", output_type=[str, DeferredToolRequests], capabilities=[gate])
    Tools().on(agent)
    bot = Homar(service, within(lambda: agent), signoff=gate)
    thread: Any = object()
    with pytest.raises(WrongUse, match=r"these approvals are not started"):
        await bot.approvals.request_approval(thread, DeferredToolRequests())
    async with homar(service, within(lambda: agent), signoff=gate) as bot:
        await bot.wait_until_ready()
        with pytest.raises(WrongUse, match="a thread or text channel of a server, and this is a object"):
            async with bot.approvals.in_thread(thread):
                pass
        channel: Any = bot.get_channel(service.channel.id)
        result = await agent.run("deploy")
        with pytest.raises(WrongUse, match=r"async with approvals\.in_thread"):
            await bot.approvals.request_approval(channel, result.output)


@pytest.mark.mission("H12")
async def test_h12_a_run_that_suspends_is_answered_in_its_thread_and_goes_on(service: Service, tmp_path: Path) -> None:
    tools = Tools()
    gate = Signoff([{"ask": "*"}], wait="suspend", store=f"sqlite:{tmp_path / 's.db'}")
    agent = Agent(ScriptedModel(DEPLOY), name="homar", output_type=[str, DeferredToolRequests], capabilities=[gate])
    tools.on(agent)

    async def run(bot: Homar, prompt: str, thread: discord.Thread) -> str:
        async with bot.approvals.in_thread(thread):
            await agent.run(prompt)
        return "You will hear of it."

    async with homar(service, run, signoff=gate, resume=lambda run_id: resume(agent, run_id)):
        said = await mentioned(service)
        question = await asked(service, "deploy", said.id)
        await service.person("ana").press(question, "Approve")
        answer = await service.message(lambda one: "Homar says: deployed 1.2" in one.text)
    assert answer.place is question.place and "**homar** answered" in answer.text and tools.ran == ["deploy 1.2"]
