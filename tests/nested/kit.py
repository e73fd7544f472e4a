"""Small worlds of nested agents over one store, each gate made as another process would make it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests
from tests.nested.cells import Log
from tests.nested.chain import OUTPUT, Listening
from tests.nested.checks import check_ended
from tests.ready import ready

from signoff import ApprovalDecision, Signoff, resume
from signoff.broker import Broker
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.run import SavedRun
from signoff.store.sqlite import SqliteStore

YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False, note="not today")
ANA = Actor(name="ana", via="test")
RULES: list[dict[str, Any]] = [{"allow": ["ask*", "look*"]}, {"ask": ["pay*", "send*"]}]


def calls(*made: Any, say: str = "{{last}}") -> list[dict[str, Any]]:
    """A script: one turn with these calls, each `(tool, args, id)`, then the end."""
    return [{"calls": [{"tool": tool, "args": args, "id": id_} for tool, args, id_ in made]}, {"say": say}]


class World:
    """A store, what tools did, and what models were told. `build` makes the outermost agent anew."""

    def __init__(self, directory: Path, build: Callable[[World], Agent[Any, Any]] | None = None) -> None:
        self.directory, self.build = directory, build
        self.told = Log(str(directory / "told"))
        self.did: list[str] = []
        self.defaults: dict[str, Any] = {}
        """For every gate."""
        self._stores: list[SqliteStore] = []
        self._eyes: SqliteStore | None = None

    # --- making ---

    def store(self) -> SqliteStore:
        self._stores.append(SqliteStore(ready(self.directory / "signoff.db")))
        return self._stores[-1]

    @property
    def eyes(self) -> SqliteStore:
        """What somebody beside the agents looks with: a store object like any other, and always the same."""
        if self._eyes is None:
            self._eyes = self.store()
        return self._eyes

    def gate(self, rules: Any = None, **options: Any) -> Signoff:
        given = {"wait": "suspend", **self.defaults, **options}
        store = given.pop("store", None) or self.store()
        return Signoff(RULES if rules is None else rules, store=store, **given)

    def agent(self, name: str, turns: list[dict[str, Any]], *tools: Any, **options: Any) -> Agent[Any, Any]:
        """An agent behind a gate of its own."""
        gate = options.pop("gate", None) or self.gate()
        options = {"output_type": OUTPUT, "capabilities": [*options.pop("beside", ()), gate], **options}
        return Agent(Listening(name, turns, self.told), name=name, tools=tools, **options)

    def payer(self, name: str, *amounts: int, **options: Any) -> Agent[Any, Any]:
        """An agent that looks, pays, and is asked about the latter."""
        made = [(f"pay_{name}", {"amount": one}, f"{name}-{one}") for one in amounts]
        turns = calls((f"look_{name}", {}, f"{name}-0"), *made, say=options.pop("say", f"{name}: {{{{last}}}}"))
        return self.agent(name, turns, *self.tools(name), **options)

    def tools(self, name: str) -> list[Any]:
        """Tools that write down what they did: `look_NAME` and `pay_NAME`."""

        def look() -> str:
            self.did.append(f"look {name}")
            return f"{name} looked"

        def pay(amount: int) -> str:
            self.did.append(f"pay {name} {amount}")
            return f"{name} paid {amount}"

        look.__name__, pay.__name__ = f"look_{name}", f"pay_{name}"
        return [look, pay]

    # --- running ---

    async def begin(self, **options: Any) -> Any:
        assert self.build is not None
        return (await self.build(self).run("go", **options)).output

    async def go_on(self, **options: Any) -> Any:
        """Resume the one run there is, with everything made anew."""
        assert self.build is not None
        return (await resume(self.build(self), (await self.run()).id, **options)).output

    async def run(self) -> SavedRun:
        await self.flush()
        [run] = await self.eyes.read(lambda tx: tx.runs.all())
        return run

    # --- looking and answering ---

    def broker(self) -> Broker:
        return Broker(self.store())

    async def flush(self) -> None:
        for store in self._stores:
            await store.flush()

    async def pending(self) -> dict[str, ApprovalRequest]:
        """By path."""
        await self.flush()
        return {one.call.path: one for one in await Broker(self.eyes).pending() if one.call}

    async def requests(self) -> list[ApprovalRequest]:
        run = await self.run()
        return list(await self.eyes.read(lambda tx: tx.requests.of(run=run.id)))

    async def answer(self, path: str | None = None, decision: ApprovalDecision = YES) -> ApprovalRequest:
        """Answer one question, as another process would: the one with this path, or the only one."""
        pending = await self.pending()
        [request] = [pending[path]] if path is not None else pending.values()
        return await Broker(self.eyes).answer(request.id, decision, by=ANA)

    async def ended(self) -> list[ApprovalRequest]:
        """All is over, and nothing is left; the requests there were."""
        await self.flush()
        return (await check_ended(self.eyes, self.directory))[1]

    async def kinds(self, request: str) -> list[str]:
        """What the record says about a request."""
        await self.flush()
        return [one.kind for one in await self.eyes.read(lambda tx: tx.record.entries(request=request))]

    def turns_of(self, agent: str) -> list[int]:
        """Which turns an agent's model was asked for."""
        return [one["turn"] for one in self.told.lines(agent=agent)]

    def heard(self, agent: str) -> str:
        """All that an agent's model was told."""
        return "\n".join(text for one in self.told.lines(agent=agent) for text in one["results"])

    def close(self) -> None:
        for store in self._stores:
            store.close()


def waits(output: Any) -> bool:
    return isinstance(output, DeferredToolRequests)
