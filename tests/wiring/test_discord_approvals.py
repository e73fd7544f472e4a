"""`DiscordApprovals`: approvals in a bot of one's own, over the real discord.py and a stand-in of the service."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import discord
import pytest
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models.test import TestModel
from tests.cli.desk import asks
from tests.discord.service import Message, Service
from tests.discord.service.pointed import point_at

from signoff import Signoff
from signoff.broker import Broker
from signoff.channels import DiscordApprovals
from signoff.config import load_settings
from signoff.core.request import ApprovalRequest, State
from signoff.core.subject import Subject
from signoff.delivery.delivery_status import place_of, running_channels
from signoff.engine.resumable_runs import ResumableRuns
from signoff.errors import MissingExtra, WrongUse
from signoff.ports import Transaction
from signoff.store.memory_store import MemoryStore
from signoff.store.store_factory import open_store
from signoff.wiring.channel_wiring import channel_for


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


@pytest.fixture
def directory(tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, service, f'{{discord: {{channel: "{service.channel.id}"}}}}')
    return tmp_path


def write(directory: Path, service: Service, channels: str) -> None:
    (directory / "signoff.yaml").write_text(
        f'people: {{ana: {{roles: [ops], discord: "{service.person("ana").id}"}}}}\n'
        f'policy: [{{ask: "*"}}]\nstore: sqlite:s.db\nchannels: {channels}\n'
    )


class Bot(discord.Client):
    """Somebody's own bot."""

    intents_of = discord.Intents(guilds=True)

    def __init__(self, **options: Any) -> None:
        super().__init__(intents=self.intents_of)
        self.options = options
        self.approvals: DiscordApprovals | None = None

    async def setup_hook(self) -> None:
        self.approvals = DiscordApprovals(self, **self.options)
        await self.approvals.start()


@asynccontextmanager
async def bot_of(service: Service, kind: type[Bot] = Bot, **options: Any) -> AsyncIterator[Bot]:
    async with kind(**options) as bot:
        task = asyncio.create_task(bot.start(service.token))
        try:
            await service.connected()
            yield bot
        finally:
            if bot.approvals is not None:
                await bot.approvals.stop()
            await bot.close()
            await asyncio.gather(task, return_exceptions=True)


def about(text: str) -> Any:
    return lambda message: text in message.text


def buttons(message: Message) -> list[Any]:
    return message.components


@pytest.mark.usefixtures("directory")
async def test_a_bot_alone_takes_everything_from_the_project(service: Service) -> None:
    store = open_store("sqlite:s.db")
    broker = Broker(store)
    [first] = await broker.open([asks()])
    async with bot_of(service) as bot:
        message = await service.message(about("`pay`"))
        assert bot.approvals is not None
        assert bot.approvals.name == "discord"
        ben = service.person("ben")
        assert str(ben.id) in (await (await ben.press(message, "Approve")).reply()).text, "so that he can be added"
        await service.person("ana").press(message, "Approve")
        settled = await broker.wait(first.id)
        assert settled.state is State.APPROVED
        assert settled.decision is not None
        assert settled.decision.by is not None
        assert (settled.decision.by.name, settled.decision.by.via) == ("ana", "discord")
        assert settled.deadline is not None, "five minutes, since its rule has no timeout"
        await service.message(lambda one: one.id == message.id and not buttons(one))
    broker.watch.close()
    store.close()


class Talkative(Bot):
    """One that answers whoever mentions it."""

    intents_of = discord.Intents(guilds=True, guild_messages=True)

    async def on_message(self, message: discord.Message) -> None:
        if self.user in message.mentions:
            await message.reply("Homar here.")


@pytest.mark.usefixtures("directory")
async def test_what_is_said_to_a_bot_is_its_owners_business(service: Service) -> None:
    store = open_store("sqlite:s.db")
    broker = Broker(store)
    async with bot_of(service, Talkative) as bot:
        await broker.open([asks()])
        message = await service.message(about("`pay`"))
        assert not bot._listeners.get("message"), "nothing of ours hears messages"
        for name in ("ana", "eve"):
            await service.person(name).say(service.channel, f"{service.bot.mention} please pay")
        await service.until(lambda: len(replies(service)) >= 2)
        await service.person("ana").press(message, "Approve")
        await service.message(lambda one: one.id == message.id and not buttons(one))
    assert [one.content for one in replies(service)] == ["Homar here."] * 2
    broker.watch.close()
    store.close()


AGENT = """
from pydantic_ai import Agent
from signoff.testing import ScriptedModel

homar = Agent(ScriptedModel([{"calls": [{"tool": "pay", "args": {"to": "ACME"}}]}, {"say": "{{last}}"}]), name="homar")


@homar.tool_plain
def pay(to: str) -> str:
    return f"paid {to}"
"""


@pytest.mark.mission("H12")
async def test_h12_where_workers_are_listed_a_mention_starts_them_in_a_bot_of_ones_own(
    directory: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "own_homar", raising=False)
    (directory / "own_homar.py").write_text(AGENT)
    write(directory, service, f'{{discord: {{channel: "{service.channel.id}", workers: ["own_homar:homar"]}}}}')
    with (directory / "signoff.yaml").open("a") as file:
        file.write("plugins: {allow: [own_homar]}\n")
    async with bot_of(service, Talkative):
        await service.asked("GET", "/applications/{}/guilds/{}/commands")  # it listens: before that it hears nothing
        await service.person("ana").say(service.channel, f"{service.bot.mention} please pay")
        message = await service.message(about("`pay`"))
        await service.person("ana").press(message, "Approve")
        answer = await service.message(lambda one: "paid ACME" in one.text and "**homar** answered" in one.text)
    assert answer.place is message.place
    gate = Signoff([{"ask": "*"}])
    assert DiscordApprovals(Bot(), signoff=gate)._startable() == (), "its store is another"


@pytest.mark.usefixtures("directory")
async def test_what_was_deleted_between_two_sessions_is_shown_again(service: Service) -> None:
    store = open_store("sqlite:s.db")
    broker = Broker(store)
    async with bot_of(service, Talkative):
        [first] = await broker.open([asks()])
        message = await service.message(about("`pay`"))
        while not await place_of(broker.ledger, "discord", Subject.parse(first.id)):
            await asyncio.sleep(0)
        await service.do(service.gateway.sessions.clear)  # nobody is told of anything
        await service.person("ana").delete(message)
        await service.invalidate()
        again = await service.message(lambda one: "`pay`" in one.text and one.id != message.id)
        await service.person("ana").press(again, "Approve")
        assert (await broker.wait(first.id)).state is State.APPROVED
    broker.watch.close()
    store.close()


def replies(service: Service) -> list[Message]:
    return [one for one in service.messages(service.channel) if one.reference and one.kind != 18]


@pytest.mark.usefixtures("directory")
async def test_with_a_gate_its_own_runs_wait_for_discord(service: Service) -> None:
    gate = Signoff([{"ask": "*"}])
    ran: list[str] = []
    agent = Agent(TestModel(call_tools=["pay"], custom_output_text="done"), capabilities=[gate])

    @agent.tool_plain
    def pay(to: str) -> str:
        ran.append(to)
        return "paid"

    people = {"ana": service.person("ana").id}
    async with bot_of(service, signoff=gate, channel=service.channel.id, people=people, timeout=None):
        running = asyncio.create_task(agent.run("Pay."))
        message = await service.message(about("`pay`"))
        assert ran == []
        await service.person("ana").press(message, "Approve")
        result = await running
    assert result.output == "done"
    assert len(ran) == 1
    [request] = await gate.broker.store.read(lambda tx: tx.past.recent(limit=5))
    assert request.deadline is None
    assert "denied" in (await agent.run("Pay.")).all_messages_json().decode(), "once it is stopped, nobody is reached"
    assert len(ran) == 1


@pytest.mark.usefixtures("directory")
async def test_a_gate_that_names_an_approver_asks_there_as_well(service: Service) -> None:
    asked: list[ApprovalRequest] = []

    async def approver(request: ApprovalRequest) -> bool:
        asked.append(request)
        return await asyncio.get_running_loop().create_future()

    gate = Signoff([{"ask": "*"}], approver=approver)
    agent = Agent(TestModel(call_tools=["pay"], custom_output_text="done"), capabilities=[gate])

    @agent.tool_plain
    def pay(to: str) -> str:
        return "paid"

    people = {"ana": service.person("ana").id}
    async with bot_of(service, signoff=gate, channel=service.channel.id, people=people):
        running = asyncio.create_task(agent.run("Pay."))
        await service.person("ana").press(await service.message(about("`pay`")), "Approve")
        assert (await running).output == "done"
    assert len(asked) == 1


@pytest.mark.usefixtures("directory")
async def test_edited_arguments_are_checked_by_the_tool_itself(service: Service) -> None:
    gate = Signoff([{"deny": {"tool": "pay", "args": {"to": "mallory"}}}, {"ask": "*"}])
    ran: list[str] = []
    agent = Agent(TestModel(call_tools=["pay"]), capabilities=[gate])

    @agent.tool_plain
    def pay(to: str) -> str:
        ran.append(to)
        return "paid"

    people = {"ana": str(service.person("ana").id)}
    async with bot_of(service, signoff=gate, channel=service.channel.id, people=people):
        running = asyncio.create_task(agent.run("Pay."))
        message = await service.message(about("`pay`"))
        person = service.person("ana")
        form = await (await person.press(message, "Edit…")).modal()
        [field] = form.values
        refused = await (await form.submit({field: '{"to": "mallory"}'})).reply()
        assert "denies" in refused.text
        form = await (await person.press(message, "Edit…")).modal()
        await form.submit({field: '{"to": "ben"}'})
        await running
    assert ran == ["ben"]


@pytest.mark.usefixtures("directory")
async def test_it_can_be_stopped_and_started_and_leaves_nothing_behind(service: Service) -> None:
    store = open_store("sqlite:s.db")
    broker = Broker(store)
    async with bot_of(service, store=store) as bot:
        approvals = bot.approvals
        assert approvals is not None
        with pytest.raises(WrongUse, match="started already"):
            await approvals.start()
        [first] = await broker.open([asks()])
        message = await service.message(about("`pay`"))
        await approvals.stop()
        assert await running_channels(broker.ledger) == {}, "anybody may run it now"
        await broker.cancel(first.id, "no longer needed")
        async with approvals:
            await service.message(lambda one: one.id == message.id and not buttons(one))
        await approvals.stop()
    store.close()


class DamagedRuns(MemoryStore):
    """Nothing can be read of what looks through the runs."""

    async def read(self, work: Callable[[Transaction], Any], *, own: bool = True) -> Any:
        if ResumableRuns.__name__ in work.__qualname__:
            raise ValueError("a run cannot be read")
        return await super().read(work, own=own)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"channel": "112233445566778899"}, "people are no longer asked: the bot does not see a Discord channel"),
        ({"store": DamagedRuns()}, "answered runs are no longer resumed: a run cannot be read"),
    ],
    ids=["asking", "going on"],
)
@pytest.mark.usefixtures("directory")
async def test_what_goes_wrong_later_is_logged_at_once_and_told_to_whoever_asks(
    service: Service, options: dict[str, Any], said: str
) -> None:
    told: list[logging.LogRecord] = []
    heard = asyncio.Event()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record)
            heard.set()

    listener = Listener(logging.ERROR)
    logging.getLogger("signoff.discord").addHandler(listener)
    try:
        async with bot_of(service, **options) as bot:
            async with asyncio.timeout(10):
                await heard.wait()
            if "channel" in options:
                thread: Any = object()
                assert bot.approvals is not None
                with pytest.raises(WrongUse, match=r"have ended: the bot does not see a Discord channel.*\n.*start"):
                    await bot.approvals.request_approval(thread, DeferredToolRequests())
    finally:
        logging.getLogger("signoff.discord").removeHandler(listener)
    assert f"signoff discord: {said}" in told[0].getMessage() and len(told) == 1
    assert told[0].exc_info is not None


def test_which_channel_is_meant(directory: Path, service: Service) -> None:
    bot: Any = object()
    two = '{a: {use: discord, channel: "112233445566778801"}, b: {use: discord, channel: "112233445566778802"}}'
    write(directory, service, two)
    with pytest.raises(WrongUse, match="several Discord channels: name one, of `a`, `b`"):
        DiscordApprovals(bot)
    assert DiscordApprovals(bot, name="b").name == "b"
    assert DiscordApprovals(bot, channel=112233445566778803).name == "discord"
    with pytest.raises(WrongUse, match="no Discord channel `c`"):
        DiscordApprovals(bot, name="c")
    write(directory, service, "{terminal: {}}")
    with pytest.raises(WrongUse, match=r"signoff.yaml has no Discord channel: add it, or say where to ask"):
        DiscordApprovals(bot)


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(("notify", "names"), [(None, ["ana"]), ("nobody", [])])
async def test_who_is_notified_can_be_said(service: Service, notify: Any, names: list[str]) -> None:
    store = open_store("sqlite:s.db")
    async with bot_of(service, store=store, notify=notify):
        await Broker(store).open([asks()])
        message = await service.message(about("`pay`"))
    assert [user.name for user in message.notified] == names
    store.close()


@pytest.mark.usefixtures("directory")
def test_who_is_notified_is_one_of_two() -> None:
    bot: Any = object()
    with pytest.raises(WrongUse, match=r"notify cannot be `approver`: did you mean `approvers`\?"):
        DiscordApprovals(bot, notify="approver")  # type: ignore[arg-type]


def test_discord_may_not_be_installed(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(directory / "signoff.yaml")
    monkeypatch.setenv("DISCORD_TOKEN", "MTA1.secret")
    channel_for(settings.channels["discord"], settings)
    monkeypatch.setitem(sys.modules, "discord", None)
    with pytest.raises(MissingExtra, match=r"The Discord channel needs .*signoff\[discord\]"):
        channel_for(settings.channels["discord"], settings)


def test_nobody_to_ask_and_two_stores(directory: Path) -> None:
    bot: Any = object()
    (directory / "signoff.yaml").write_text('policy: []\nchannels: {discord: {channel: "112233445566778801"}}\n')
    with pytest.raises(WrongUse, match="nobody could answer on Discord"):
        DiscordApprovals(bot)
    assert DiscordApprovals(bot, people={"ana": "112233445566778801"}).name == "discord"
    with pytest.raises(WrongUse, match="`ana` is not a Discord ID for 112233445566778801"):
        DiscordApprovals(bot, people={"112233445566778801": "ana"})
    with pytest.raises(WrongUse, match="ben and ana have the same Discord account"):
        DiscordApprovals(bot, people={"ana": 112233445566778801, "ben": 112233445566778801})
    with pytest.raises(WrongUse, match="signoff or store, not both"):
        DiscordApprovals(bot, signoff=Signoff([]), store="sqlite:x.db")


def test_whoever_says_everything_needs_no_file(directory: Path) -> None:
    bot: Any = object()
    (directory / "signoff.yaml").write_text("polcy: [\n")
    gate = Signoff([{"ask": "*"}])
    DiscordApprovals(bot, signoff=gate, channel=112233445566778801, people={"ana": 112233445566778802})
