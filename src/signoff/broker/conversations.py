"""Conversations in channels: one turn after the other, and no message is handled twice."""

from __future__ import annotations

from dataclasses import replace

from signoff.core.conversation import ConversationLog
from signoff.core.run import RunState, SavedRun
from signoff.errors import AlreadyHeard, HeardTooLate, RunError, WrongUse
from signoff.ports import Transaction

_RECENT = 50
"""How many message numbers are kept to recognise duplicates."""


def conversation_log(tx: Transaction, name: str) -> ConversationLog:
    """Return the log of the conversation of that name; an empty one if there is none."""
    return tx.conversations.get(name) or ConversationLog(name=name)


def not_news(log: ConversationLog, heard: str) -> RunError | None:
    """Return the error for a message that starts no turn: a duplicate, or older than one that was handled.

    Later messages have higher numbers. None for a new message, and for one without a number.
    Raises `WrongUse` for a number that is not decimal.
    """
    if not heard:
        return None
    if not heard.isdecimal():
        raise WrongUse(f"the ID of a message must be a number, not {heard!r}")
    if heard == log.heard or heard in log.recent:
        return AlreadyHeard(f"message {heard} was received before")
    if log.heard and int(heard) < int(log.heard):
        return HeardTooLate(f"message {heard} arrived after message {log.heard}, which is newer")
    return None


def note_heard(tx: Transaction, log: ConversationLog, heard: str) -> None:
    """Record a message that started no run."""
    tx.conversations.put(_with(log, heard))


def note_turn(tx: Transaction, log: ConversationLog, heard: str, run: SavedRun) -> None:
    """Record a run as the next turn."""
    turns = {**log.turns, run.agent: run.id}
    tx.conversations.put(replace(_with(log, heard), run=run.id, turns=turns))


def _with(log: ConversationLog, heard: str) -> ConversationLog:
    """Return the conversation after a message of that number, if it has one."""
    if not heard:
        return log
    recent = [*(one for one in log.recent if one != heard), heard][-_RECENT:]
    return replace(log, heard=max(log.heard or heard, heard, key=int), recent=tuple(recent))


def following(tx: Transaction, log: ConversationLog, run: SavedRun) -> SavedRun:
    """Return the run as the next turn of its agent's conversation here: after the last turn that was completed."""
    before = tx.runs.get(log.turns.get(run.agent, ""))
    while before is not None and not was_said(before):
        before = tx.runs.get(before.setup.after)
    if before is None:
        return run
    return run.changed(conversation_id=before.conversation_id, setup=replace(run.setup, after=before.id))


def was_said(run: SavedRun) -> bool:
    """Whether a run is done and its messages are kept, so that another turn can follow."""
    return run.state is RunState.DONE and bool(run.rest) and (run.setup.chat or run.setup.keeps)
