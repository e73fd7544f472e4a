"""The tables of conversations in channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from signoff.core.conversation import ConversationLog
from signoff.store.tables import Table, put, told


class Conversations(Table):
    """Conversations in channels, by name."""

    def get(self, name: str) -> ConversationLog | None:
        rows = self._rows("select run, heard from {s}conversations where name = ?", name)
        if not rows:
            return None
        [(run, heard)] = rows
        messages = self._rows("select message from {s}messages where conversation = ? order by nr", name)
        turns = self._rows("select agent, run from {s}turns where conversation = ? order by agent", name)
        return ConversationLog(
            name=name,
            run=told(run),
            heard=told(heard),
            recent=tuple(told(message) for (message,) in messages),
            turns={told(agent): told(turn) for agent, turn in turns},
        )

    def put(self, log: ConversationLog) -> None:
        before = self.get(log.name) or ConversationLog(name=log.name)
        self._run(put("conversations", ("name", "run", "heard"), "name"), log.name, log.run, log.heard)
        if before.turns.keys() - log.turns.keys():
            self._run("delete from {s}turns where conversation = ?", log.name)
            before = replace(before, turns={})
        for agent, run in log.turns.items():
            if before.turns.get(agent) != run:
                self._run(put("turns", ("conversation", "agent", "run"), "conversation, agent"), log.name, agent, run)
        self._put_messages(log.name, before.recent, log.recent)

    def _put_messages(self, name: str, before: Sequence[str], recent: Sequence[str]) -> None:
        """Write only the difference: usually the oldest message is dropped and one is added."""
        stays = [one for one in before if one in recent]
        if list(recent[: len(stays)]) != stays:
            stays = []
        for message in before:
            if message not in stays:
                self._run("delete from {s}messages where conversation = ? and message = ?", name, message)
        for message in recent[len(stays) :]:
            self._run("insert into {s}messages (conversation, message) values (?, ?)", name, message)
