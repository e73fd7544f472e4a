"""Agents of other programs, found where the project's file says, whose runs can be resumed without those programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pydantic_ai import Agent

from signoff.broker.secret_key import secret_key
from signoff.config.agent_entries import AgentEntry
from signoff.config.import_path import importable
from signoff.errors import SignoffError, WrongUse
from signoff.gate.capability import Signoff
from signoff.gate.gated_agents import signoff_of
from signoff.policy.phrases import shown
from signoff.ports import Store
from signoff.workers.load import load_agent


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryAgent:
    """An agent with the gate that it was made with."""

    entry: AgentEntry
    agent: Agent[Any, Any]
    gate: Signoff
    make_deps: Any = None

    def dependencies(self, requester: str) -> Mapping[str, Any]:
        """Return the dependencies of its runs, as options of `agent.run`."""
        return {"deps": self.make_deps(requester)} if self.make_deps is not None else {}

    async def check_store(self, store: Store) -> None:
        """Raise unless its gate saves its runs in this store: both then have the same key."""
        own = self.gate.broker.store
        if not own.is_durable or await secret_key(own) != await secret_key(store):
            raise self.entry.spot.wrong(
                f"{shown(self.entry.agent)} keeps its runs in another store than the one here",
                "give both the same: Signoff(…, store=…) there, and `store:` in this file, SIGNOFF_STORE or --store",
            )


def library_agent(entry: AgentEntry, directory: str) -> LibraryAgent:
    """Load the agent of an entry. Raises if it is missing, or if its runs cannot be told from those of other agents."""
    try:
        agent = load_agent(entry.agent, directory)
    except WrongUse as error:
        raise _wrong(entry, str(error)) from error
    gate = signoff_of(agent)
    if gate is None:
        raise _wrong(entry, f"{shown(entry.agent)} has no Signoff capability, so its runs are not saved")
    if entry.name not in gate.gate.names:
        known = f"is called {shown(agent.name)}" if agent.name in gate.gate.names else "has no name of its own"
        raise entry.spot.wrong(
            f"{shown(entry.agent)} {known}: its runs are not those of {shown(entry.name)}",
            f"name it where it is made, Agent(…, name={entry.name!r}), or write its name here",
        )
    return LibraryAgent(entry=entry, agent=agent, gate=gate, make_deps=_maker(entry, directory))


def _maker(entry: AgentEntry, directory: str) -> Any:
    if not entry.deps:
        return None
    module, _, name = entry.deps.partition(":")
    try:
        with importable(directory):
            found = getattr(import_module(module), name, None)
    except Exception as error:  # whatever a program raises on import
        raise _wrong(entry, f"importing {shown(module)} failed with {type(error).__name__}: {error}") from error
    if not callable(found):
        raise _wrong(entry, f"{shown(entry.deps)} is not a function")
    return found


def _wrong(entry: AgentEntry, what: str) -> SignoffError:
    return entry.spot.wrong(what, "write where the agent is found, as package.module:agent")
