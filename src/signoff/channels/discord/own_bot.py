"""`DiscordApprovals(bot)`: asks for approvals through your own Discord bot.

It is imported for its name only: it runs a channel as programs do, which is assembled further up (`wiring`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, Literal

from signoff.channel_kinds import ChannelKind
from signoff.channels.discord.kind import DISCORD, NOTIFIED
from signoff.errors import WrongUse
from signoff.policy.phrases import did_you_mean, shown
from signoff.ports import Channel, Store
from signoff.wiring.program_channel import ProgramChannel

if TYPE_CHECKING:
    import discord

    from signoff.gate.capability import Signoff
    from signoff.gate.handover import DeferredToolRequests, DeferredToolResults, ToolDefinition
    from signoff.ports import Begin
    from signoff.wiring.program_runs import Resume


class DiscordApprovals(ProgramChannel):
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

    kind: ClassVar[ChannelKind] = DISCORD
    use: ClassVar[str] = "discord"

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
        super().__init__(
            signoff=signoff,
            place=str(channel) if channel is not None else None,
            people=people,
            store=store,
            timeout=timeout,
            resume=resume,
            name=name,
        )
        self._bot = bot
        if notify not in (None, *NOTIFIED):
            raise WrongUse(f"notify cannot be {shown(str(notify))}: {did_you_mean(str(notify), NOTIFIED)}")
        written = self.entry.config.get("notify") if self.entry is not None else None
        self._notifies = (notify or written) != "nobody"

    def channel(self, begin: Begin | None, workers: Sequence[str]) -> Channel:
        from signoff.channels.discord.channel import DiscordChannel

        return DiscordChannel(
            self._bot,
            name=self.name,
            channel=self.place,
            people=self.people,
            notifies=self._notifies,
            begin=begin,
            workers=workers,
        )

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
        return await self.ask_at(place, requests, tools=tools, worker=worker, requester=requester)

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
        async with self.at(self._place_in(thread)):
            yield

    def _place_in(self, thread: object) -> str:
        """Return the address of a thread or text channel. Raises `WrongUse` for anything else, or if not started."""
        self.check_started()
        import discord

        if not isinstance(thread, discord.Thread | discord.TextChannel):
            what = "a direct message" if isinstance(thread, discord.DMChannel) else f"a {type(thread).__name__}"
            raise WrongUse(f"people can be asked only in a thread or text channel of a server, and this is {what}")
        own = self._bot.get_channel(int(self.place))
        if isinstance(own, discord.TextChannel) and own.guild.id != thread.guild.id:
            raise WrongUse(
                f"thread {thread.id} is in another server than the channel {self.name}: use a thread of that server"
            )
        from signoff.channels.discord.threads import place

        return place(thread.id)
