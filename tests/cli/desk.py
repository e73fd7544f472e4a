"""A project with a real store, and the program called in it as a person would."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

import pexpect
import pytest
from tests import start
from tests.matches import varying
from tests.ready import ready

from signoff.broker import Broker
from signoff.cli.main import main
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.run import SavedRun
from signoff.core.verdict import ANYONE, Effect, Requirement, Verdict
from signoff.store.sqlite import SqliteStore
from signoff.testing import FakeClock

T = TypeVar("T")

POLICY = """\
people:
  ana: {roles: [ops, dev]}
  ben: {roles: [ops]}
  cleo: {roles: [dev]}
policy:
  - {deny: {tool: pay, args: {to: mallory}}, reason: nothing goes to mallory}
  - {ask: {tool: pay, args: {amount: {">": 1000}}}, by: ops, quorum: 2}
  - {deny: {path: "**/.env"}, reason: secrets stay where they are}
  - {ask: "*"}
"""
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "amount": {"type": "number", "minimum": 0},
        "currency": {"type": "string", "default": "EUR"},
    },
    "required": ["to", "amount"],
}


def asks(
    tool: str = "pay",
    args: Mapping[str, Any] | None = None,
    *,
    needs: Requirement = ANYONE,
    call: Mapping[str, Any] | None = None,
    **fields: Any,
) -> ApprovalRequest:
    """A question about a call of its own."""
    args = {"to": "ana", "amount": 250, "currency": "EUR"} if args is None else args
    asks.number += 1  # type: ignore[attr-defined]
    made = Call(
        tool=tool,
        args=args,
        call_id=f"c{asks.number}",  # type: ignore[attr-defined]
        run_id="r",
        conversation_id="talk",
        worker=("triage",),
        schema_hash="h",
        **(call or {}),
    )
    verdict = Verdict(effect=Effect.ASK, rules=("rule-9",), reason="the policy asks about this tool", requirement=needs)
    known: dict[str, Any] = {"schema": SCHEMA, "verdict": verdict, "may_vary": varying(made), **fields}
    return ApprovalRequest(tool_call_id=made.call_id, tool_name=tool, args=args, call=made, **known)


asks.number = 0  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Said:
    """What the program printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The one JSON object it printed."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Desk:
    """Where a person sits: a directory with `signoff.yaml`, and a store in a file."""

    directory: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    clock: FakeClock = field(default_factory=lambda: FakeClock(datetime.now(UTC)))

    @property
    def file(self) -> Path:
        return self.directory / "approvals.db"

    @property
    def environment(self) -> dict[str, str]:
        plain = {"SIGNOFF_STORE": f"sqlite:{self.file}", "SIGNOFF_AS": "ana", "TERM": "dumb", "COLUMNS": "100"}
        return {**os.environ, **plain, "XDG_STATE_HOME": str(self.directory / "state"), "TZ": "UTC"}

    def do(self, work: Callable[[Broker], Awaitable[T]]) -> T:
        """Something that another process did before."""

        async def done() -> T:
            store = SqliteStore(ready(self.file))
            try:
                return await work(
                    Broker(store, self.clock, people={"ana": frozenset({"ops", "dev"}), "ben": frozenset({"ops"})})
                )
            finally:
                await store.flush()
                store.close()

        return asyncio.run(done())

    def open(self, *requests: ApprovalRequest) -> list[str]:
        """Ask; the ids of the questions."""
        return [one.id for one in self.do(lambda broker: broker.open(list(requests)))]

    def request(self, request_id: str) -> ApprovalRequest:
        return self.do(lambda broker: broker.get(request_id))

    def decide(self, request_id: str, *, approved: bool = True, note: str = "") -> None:
        answer = ApprovalDecision(approved=approved, note=note)
        self.do(lambda broker: broker.answer(request_id, answer, by=Actor(name="ana")))

    def start_and_die(self, request: ApprovalRequest) -> str:
        """A call that was approved, and whose process died while it ran: its outcome is unknown."""

        async def work(broker: Broker) -> str:
            [opened] = await broker.open([request])
            await broker.answer(opened.id, ApprovalDecision(approved=True), by=Actor(name="ana"))
            await broker.claim(opened.id)
            await broker.lose(opened.id)
            return opened.id

        return self.do(work)

    def begin(self, run_id: str, **fields: Any) -> str:
        """A run whose process is gone."""
        known: dict[str, Any] = {"agent": "shop:agent", "prompt": "Pay the bills", **fields}
        kept = SavedRun(id=run_id, **known)

        async def work(broker: Broker) -> str:
            begun = await broker.runs.begin(kept)
            await broker.runs.put_down(begun.id, begun.epoch)
            return begun.id

        return self.do(work)

    def run(self, *arguments: str) -> Said:
        """The program, in this process: the same `main`, without the wait for another Python."""
        self.capsys.readouterr()
        self.monkeypatch.setattr(sys, "argv", ["signoff", *arguments])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        said = self.capsys.readouterr()
        assert "Traceback" not in said.err
        return Said(code, said.out, said.err)

    def sits_down(self, *arguments: str, **environment: str) -> pexpect.spawn[str]:
        """The real program at a real terminal."""
        return start.terminal(
            [*start.SIGNOFF, *arguments],
            cwd=self.directory,
            env={**self.environment, "TERM": "xterm", **environment},
            encoding="utf-8",
        )

    def types(self, text: str) -> None:
        """What is piped into the program."""
        self.monkeypatch.setattr(sys, "stdin", StringIO(text))
