"""`DiscordApprovals(bot)`: asks for approvals through your own Discord bot."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from signoff.channels.headless import ELSEWHERE
from signoff.config import ChannelEntry, Settings
from signoff.config.channel_entries import NOTIFIED, TIMEOUTS, is_discord_id
from signoff.core.people import Actor, person_key
from signoff.core.safe_text import error_line, safe_text
from signoff.errors import WrongUse
from signoff.policy.engine import Policy
from signoff.policy.phrases import did_you_mean, listed, shown
from signoff.ports import Approver, Store
from signoff.wiring.channel_wiring import check_workers
from signoff.wiring.program_inbox import gate_inbox, project_inbox
from signoff.wiring.project import roles_of, settings_for
from signoff.wiring.project_people import Accounts, OnFile
from signoff.wiring.stores import store_for

if TYPE_CHECKING:
    import discord

    from signoff.broker import Broker
    from signoff.delivery import Reconciler
    from signoff.gate.capability import Signoff
    from signoff.gate.handover import DeferredToolRequests, DeferredToolResults, Handover, ToolDefinition
    from signoff.ports import Begin, Heard, Inbox
    from signoff.wiring.channel_runs import Running
    from signoff.wiring.program_runs import Resume

NAME = "discord"
_log = logging.getLogger("signoff.discord")


class DiscordApprovals:
    """Asks people on Discord through a bot of yours, and takes their answers.

    ```python
    class Bot(discord.Client):
        async def setup_hook(self) -> None:
            self.approvals = DiscordApprovals(self, signoff=gate)
            await self.approvals.start()
    ```

    It runs in the bot's event loop, from `start` to `stop`; `async with` does both. There is no global state: a process
    may have several, each with its own bot and name. The bot needs no intent beyond `guilds`.

    While it runs, runs of `signoff` that wait inline wait for the answers from there and ask nobody at the terminal,
    unless their capability names an approver.
    """

    approver: ClassVar[Approver] = ELSEWHERE
    """Approver for capabilities that are not passed as `signoff`: their runs wait for answers from anywhere."""

    def __init__(
        self,
        bot: discord.Client,
        *,
        signoff: Signoff | None = None,
        channel: str | int | None = None,
        people: Mapping[str, str | int] | None = None,
        store: Store | str | None = None,
        timeout: timedelta | Literal["default"] | None = "default",
        notify: Literal["approvers", "nobody"] | None = None,
        resume: Resume | None = None,
        name: str | None = None,
    ) -> None:
        """Arguments that are not given are taken from the project's `signoff.yaml`.

        `signoff`: the capability of your agents, whose requests are shown; without it, the requests in the project's
        store, or in `store`. `channel`: the text channel in which threads are created. `people`: who may answer, each
        with their Discord id; their roles are the capability's or the file's. People from the file are looked up there
        for each answer, so somebody removed from it can no longer answer. `timeout`: how long a request waits once it
        was shown, or since it was asked if it cannot be shown, if its rule does not say; None: no limit. `notify`: who
        is mentioned when a call is asked about: by default those who may answer it, unless the file says otherwise, or
        nobody. `resume`: resumes a run of your agents by its id, as `lambda run: resume(agent, run)`; called for runs
        that were answered while no process executed them, such as after a restart. Without it, people are told that
        nobody resumes the run. `name`: which channel of the file to use, if it has several; answers are recorded under
        this name.
        """
        if signoff is not None and store is not None:
            raise WrongUse("the Signoff capability has its own store: give DiscordApprovals signoff or store, not both")
        self._bot = bot
        # If all of these are given, no project file is needed, and an invalid one does not matter.
        is_told = signoff is not None and channel is not None and people is not None and name is None
        self._settings = settings_for(None) if not is_told else Settings(policy=Policy(rules=()), people={})
        entry = None if channel is not None and name is None else _entry(self._settings, name, needed=channel is None)
        self._entry = entry
        self.name = entry.name if entry is not None else name or NAME
        self._channel = str(channel) if channel is not None else entry.channel if entry is not None else ""
        self._people: Mapping[str, Actor] = _people(people, self._settings, self.name)
        self._on_file = OnFile(self._settings) if people is None else None
        if self._on_file is not None:
            self._people = Accounts(self._on_file, self.name)
        self._timeout = (entry.timeout if entry else TIMEOUTS["discord"]) if timeout == "default" else timeout
        if notify not in (None, *NOTIFIED):
            raise WrongUse(f"notify cannot be {shown(str(notify))}: {did_you_mean(str(notify), NOTIFIED)}")
        self._notifies = (notify or (entry.notify if entry else NOTIFIED[0])) != "nobody"
        self._resume = resume
        self._signoff = signoff
        self._store = store
        self._task: asyncio.Task[None] | None = None
        self._own: Broker | None = None

    async def start(self) -> None:
        """Start. Pending requests are shown as soon as the bot is connected. Await it in the bot's event loop.

        It returns at once, so it can be called from `setup_hook`.
        """
        if self._task is not None:
            raise WrongUse("these approvals were started already")
        from signoff.channels.discord.channel import DiscordChannel
        from signoff.delivery import Reconciler, Route
        from signoff.delivery.overdue import end_overdue
        from signoff.wiring.program_runs import Resumption

        workers = self._startable()
        begins: list[Begin] = []

        async def begin(heard: Heard) -> str:
            # The runner needs the reconciler, which needs the channel, which needs this callback.
            return await begins[0](heard)

        broker = self._broker()
        channel = DiscordChannel(
            self._bot,
            name=self.name,
            channel=self._channel,
            people=self._people,
            notifies=self._notifies,
            begin=begin if workers else None,
            workers=workers,
        )
        reconciler = Reconciler(
            broker, [Route(channel, timeout=self._timeout)], inbox=lambda name: self._inbox(broker, name)
        )
        beside: list[Coroutine[Any, Any, None]] = []
        if self._timeout is not None:
            beside.append(end_overdue(broker, self.name, self._timeout))
        if workers:
            running = self._running(broker, reconciler)
            begins.append(running.begin)
            beside.append(running.run())
        # Runs of workers are resumed by `Running`, which starts them.
        own = Resumption(broker, reconciler, self.name, self._resume, only=lambda run: not (workers and run.agent))
        self._task = asyncio.create_task(_running(reconciler, [own.run(), *beside]), name=f"signoff {self.name}")
        self._task.add_done_callback(partial(_report, "people are no longer asked"))
        if (signoff := self._signoff) is not None:
            signoff.reached_through(self.name)
            self._task.add_done_callback(lambda _: signoff.not_reached_through(self.name))

    async def request_approval(
        self,
        thread: discord.abc.Messageable,
        requests: DeferredToolRequests,
        *,
        tools: Mapping[str, ToolDefinition] | None = None,
        worker: Sequence[str] = (),
        requester: str = "",
    ) -> DeferredToolResults:
        """Ask in `thread` about the calls that a run deferred. Returns once each has an answer.

        ```python
        result = await agent.run(prompt)
        while isinstance(result.output, DeferredToolRequests):
            results = await approvals.request_approval(thread, result.output)
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=results)
        ```

        For agents without a gate. The result is what PydanticAI takes; each approval is returned once. The policy
        applies: calls that it denies are refused at once, and its rules say who has to answer and for how long. If it
        is called again with the same calls in the same thread, such as after a restart, it keeps waiting for the
        questions that are open there, or returns what was answered meanwhile. With `tools`, the definitions by name,
        people may edit the arguments. `worker` names the agent on the card. `requester` is the person it works for, for
        rules with `not_by`.
        """
        place = self._place_in(thread)
        return await self._handover().results(
            requests,
            conversation=f"{self.name}:{place.rstrip('/')}",
            places={self.name: place},
            worker=worker,
            tools=tools,
            requester=requester,
        )

    @asynccontextmanager
    async def in_thread(self, thread: discord.abc.Messageable) -> AsyncGenerator[None]:
        """Within the context, questions of gated runs are asked in `thread`, and nowhere else on Discord.

        ```python
        async with approvals.in_thread(thread):
            result = await agent.run(prompt)
        ```

        It applies to the runs that are started inside, and to agents that their tools run; other tasks have their own
        threads. The thread is saved with the run: after a restart, its questions, answers and result appear there.
        """
        place = self._place_in(thread)
        from signoff.gate.gated_calls import asked_at

        with asked_at(self.name, place):
            yield

    def _place_in(self, thread: object) -> str:
        """Return the address of a thread or text channel. Raises `WrongUse` for anything else, or if not started."""
        if self._task is None:
            raise WrongUse("these approvals are not started: call await approvals.start() first")
        if self._task.done():
            error = None if self._task.cancelled() else self._task.exception()
            why = f": {error}" if error is not None else ""
            raise WrongUse(
                f"these approvals have ended{why}\n  mend that, then: await approvals.stop(), and start() again"
            ) from error
        import discord

        if not isinstance(thread, discord.Thread | discord.TextChannel):
            what = "a direct message" if isinstance(thread, discord.DMChannel) else f"a {type(thread).__name__}"
            raise WrongUse(f"people can be asked only in a thread or text channel of a server, and this is {what}")
        own = self._bot.get_channel(int(self._channel))
        if isinstance(own, discord.TextChannel) and own.guild.id != thread.guild.id:
            raise WrongUse(
                f"thread {thread.id} is in another server than the channel {self.name}: use a thread of that server"
            )
        from signoff.channels.discord.threads import place

        return place(thread.id)

    def _handover(self) -> Handover:
        from signoff.gate.handover import Handover

        if self._signoff is not None:
            return Handover.under(self._signoff)
        assert self._own is not None, "it was started"
        return Handover.over(self._own, self._settings.layers)

    async def stop(self) -> None:
        """Stop. Messages on Discord stay, and are updated after the next start."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):  # its error was reported when it failed
                await task
        if self._own is not None:
            self._own.watch.close()
            if self._store is None or isinstance(self._store, str):  # a store that was passed in is closed by its owner
                self._own.store.close()
            self._own = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _startable(self) -> tuple[str, ...]:
        """Return the workers of the file that people may start by mentioning the bot.

        Empty if `signoff` or `store` was given: then the store is not the project's. Raises `WrongFile` for a worker
        that is missing or invalid.
        """
        entry = self._entry
        if entry is None or not entry.workers:
            return ()
        if self._signoff is not None or self._store is not None:
            _log.info(
                "%s: the workers of %s are not started here: this process uses another store",
                self.name,
                entry.spot.place,
            )
            return ()
        check_workers(entry, self._settings)
        return entry.workers

    def _running(self, broker: Broker, reconciler: Reconciler) -> Running:
        from signoff.wiring.caller import Caller
        from signoff.wiring.channel_runs import Running
        from signoff.wiring.job import RunOptions

        options = RunOptions(unattended="park", caller=Caller.here())
        return Running(
            reconciler,
            broker,
            self._settings,
            [self.name],
            options,
            observe=lambda line: _log.info("%s: %s", self.name, safe_text(line)),
            only=lambda run: bool(run.agent),
        )

    def _broker(self) -> Broker:
        if self._signoff is not None:
            return self._signoff.broker
        from signoff.broker import Broker

        given = self._store
        kept = store_for(given, self._settings) if given is None or isinstance(given, str) else given
        roles = roles_of(self._settings) or {one.name: one.roles for one in self._people.values()}
        self._own = Broker(kept, people=roles)
        if self._on_file is not None:
            self._own.people.follow(self._on_file.roles)
        return self._own

    def _inbox(self, broker: Broker, name: str) -> Inbox:
        if self._signoff is not None:
            return gate_inbox(self._signoff, name)
        return project_inbox(broker, self._settings, name)


async def _running(reconciler: Reconciler, beside: Sequence[Coroutine[Any, Any, None]]) -> None:
    current = asyncio.current_task()
    name = current.get_name() if current is not None else ""
    tasks = [asyncio.create_task(one, name=name) for one in beside]
    for task in tasks:
        task.add_done_callback(partial(_report, "answered runs are no longer resumed"))
    try:
        await reconciler.run()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _report(what: str, task: asyncio.Task[None]) -> None:
    """Report at once that a background task failed. The caller that started it may not look at it for days."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("%s: %s: %s", task.get_name(), what, error_line(error), exc_info=error)


def _entry(settings: Settings, name: str | None, *, needed: bool) -> ChannelEntry | None:
    """Return the entry of the Discord channel in the project file. None if there is none and it is not needed."""
    found = {one.name: one for one in settings.channels.values() if one.use == "discord"}
    if name is not None and name in found:
        return found[name]
    if name is None and found:
        if len(found) == 1 or NAME in found:
            return found.get(NAME) or next(iter(found.values()))
        raise WrongUse(f"{settings.file} has several Discord channels: name one, of {listed(found)}")
    if needed:
        where = settings.file or "a signoff.yaml here or above"
        what = f"no Discord channel {shown(name)}" if name is not None else "no Discord channel"
        raise WrongUse(f'{where} has {what}: add it, or say where to ask: DiscordApprovals(bot, channel="ID", …)')
    return None


def _people(given: Mapping[str, str | int] | None, settings: Settings, channel: str) -> dict[str, Actor]:
    """Return who may answer, by Discord account."""
    known = {person_key(person.name): person for person in settings.people.values()}
    if given is None:
        given = {person.name: person.discord for person in settings.people.values() if person.discord}
    people: dict[str, Actor] = {}
    for name, account in ((name, str(account)) for name, account in given.items()):
        if not is_discord_id(account):
            raise WrongUse(
                f'{shown(account)} is not a Discord ID for {name}: write people={{"ana": "102938475610293847"}}'
            )
        if account in people:
            raise WrongUse(f"{name} and {people[account].name} have the same Discord account {account}")
        person = known.get(person_key(name))
        people[account] = Actor(name=name, roles=person.roles if person is not None else frozenset(), via=channel)
    if not people:
        raise WrongUse(
            f"nobody could answer on Discord: {settings.file or 'signoff.yaml'} lists nobody's Discord account\n"
            '  add `discord: "ID"` to people, or say DiscordApprovals(bot, people={"ana": "ID"})'
        )
    return people
