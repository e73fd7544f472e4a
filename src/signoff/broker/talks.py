"""Talks: places where turns follow each other, such as a thread. One turn at a time, and nothing is heard twice."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from signoff.core.run import KeptRun, RunState
from signoff.errors import AlreadyHeard, HeardTooLate, RunError, WrongUse
from signoff.ports import Transaction

_NAME = "talk:"
"""Before a talk's name, in the name of the setting that holds it."""
_LATELY = 50
"""Messages by which one that is told of twice is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """How far a talk came."""

    run: str = ""
    """Id of the last turn's run."""
    heard: str = ""
    """Number of the last message that was heard."""
    lately: Sequence[str] = ()
    """Numbers of the messages that were heard lately, as they came."""
    turns: Mapping[str, str] = field(default_factory=dict[str, str])
    """The last turn of each agent: two that take turns do not read each other's."""


def talk_called(tx: Transaction, name: str) -> Talk:
    """The talk of that name; one in which nothing was said yet where there is none."""
    said = tx.settings.get(_NAME + name)
    return Talk(**cast("dict[str, Any]", json.loads(said))) if said else Talk()


def not_news(talk: Talk, heard: str) -> RunError | None:
    """Why nothing begins with a message: it was heard before, or a later one was. Those have higher numbers.

    None for news; without a number everything is.
    """
    if not heard:
        return None
    if not heard.isdecimal():
        raise WrongUse(f"a message is known by a number, and {heard!r} is none")
    if heard == talk.heard or heard in talk.lately:
        return AlreadyHeard(f"message {heard} was heard before")
    if talk.heard and int(heard) < int(talk.heard):
        return HeardTooLate(f"message {heard} came after message {talk.heard}, which is newer")
    return None


def note_heard(tx: Transaction, name: str, talk: Talk, heard: str) -> None:
    """A message was heard, and nothing began with it."""
    _put(tx, name, _with(talk, heard))


def note_turn(tx: Transaction, name: str, talk: Talk, heard: str, run: KeptRun) -> None:
    """A run is the next turn."""
    turns = {**talk.turns, run.agent: run.id}
    _put(tx, name, replace(_with(talk, heard), run=run.id, turns=turns))


def _with(talk: Talk, heard: str) -> Talk:
    """The talk after a message of that number, if it has one."""
    if not heard:
        return talk
    lately = [*(one for one in talk.lately if one != heard), heard][-_LATELY:]
    return replace(talk, heard=max(talk.heard or heard, heard, key=int), lately=lately)


def _put(tx: Transaction, name: str, talk: Talk) -> None:
    kept = {"run": talk.run, "heard": talk.heard, "lately": list(talk.lately), "turns": dict(talk.turns)}
    tx.settings.put(_NAME + name, json.dumps(kept))


def following(tx: Transaction, talk: Talk, run: KeptRun) -> KeptRun:
    """The run as the next turn of its agent's conversation here: after the last one that was brought to an end."""
    before = tx.runs.get(talk.turns.get(run.agent, ""))
    while before is not None and not was_said(before):
        before = tx.runs.get(str(before.options.get("after", "")))
    if before is None:
        return run
    return replace(run, conversation_id=before.conversation_id, options={**run.options, "after": before.id})


def was_said(run: KeptRun) -> bool:
    """Whether a run is a turn of a chat whose conversation is kept whole, for another turn to follow."""
    return run.state is RunState.DONE and bool(run.rest and run.options.get("chat"))
