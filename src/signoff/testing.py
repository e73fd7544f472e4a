"""A kit for tests and demos: a model that follows a script, an approver that answers from a list, a clock you turn.

Importing it does not import PydanticAI; `ScriptedModel` does, when it is first used.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.mode import ApprovalMode
from signoff.core.people import Answerer, AnswererKind
from signoff.core.request import ApprovalRequest
from signoff.errors import ScriptEnded, WrongUse

if TYPE_CHECKING:
    from signoff.workers.script import ScriptedModel as ScriptedModel

__all__ = ["FakeClock", "ScriptedModel", "ScriptedUI", "decision_from", "scripted_approver"]

WORDS = "approve, deny, deny:NOTE, edit:{JSON}, session, always"


def __getattr__(name: str) -> object:
    if name == "ScriptedModel":
        from signoff.workers.script import ScriptedModel

        return ScriptedModel
    raise AttributeError(f"module 'signoff.testing' has no attribute {name!r}")


def decision_from(word: str) -> ApprovalDecision:
    """A decision from one word: `approve`, `deny`, `deny:NOTE`, `edit:{JSON}`, `session`, `always`."""
    verb, _, rest = word.partition(":")
    match verb:
        case "approve":
            return ApprovalDecision(approved=True)
        case "deny":
            return ApprovalDecision(approved=False, note=rest)
        case "session" | "always":
            return ApprovalDecision(approved=True, remember=Remember(verb))
        case "edit" if rest:
            try:
                args = json.loads(rest)
            except ValueError as error:
                raise WrongUse(f"edit:… needs the whole arguments as a JSON object: {error}") from error
            return ApprovalDecision(approved=True, edited_args=args)
        case _:
            raise WrongUse(f"{word!r} is not an answer: say {WORDS}")


class ScriptedUI:
    """An approver that answers from a list, and remembers what it was asked.

    Answers are decisions, words as in `decision_from`, or functions of the request. It answers as a script unless
    `by` says who it stands in for; where a rule wants particular people, a script does not count.
    """

    def __init__(
        self,
        answers: Iterable[ApprovalDecision | str | Callable[[ApprovalRequest], ApprovalDecision]],
        *,
        by: Answerer | None = None,
    ) -> None:
        self._answers = list(answers)
        self._by = by or Answerer(name="script", kind=AnswererKind.SCRIPT, via="script")
        self.asked: list[ApprovalRequest] = []

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        self.asked.append(request)
        if len(self.asked) > len(self._answers):
            raise ScriptEnded(f"{len(self._answers)} answers were given, and {request.summary!r} is asked next")
        answer = self._answers[len(self.asked) - 1]
        if callable(answer):
            answer = answer(request)
        elif isinstance(answer, str):
            answer = decision_from(answer)
        return ApprovalDecision(
            approved=answer.approved,
            note=answer.note,
            edited_args=answer.edited_args,
            remember=answer.remember,
            by=answer.by or self._by,
        )


def scripted_approver(
    answers: Iterable[ApprovalDecision | str | Callable[[ApprovalRequest], ApprovalDecision]],
    *,
    by: Answerer | None = None,
) -> ScriptedUI:
    """An approver that answers from a list; the third of the ready-made ones, beside the terminal and headless."""
    return ScriptedUI(answers, by=by)


class FakeClock:
    """Time that moves when you say so."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)) -> None:
        self._now = start
        self._sleepers: list[tuple[datetime, asyncio.Event]] = []

    def now(self) -> datetime:
        return self._now

    async def sleep_until(self, moment: datetime) -> None:
        if moment > self._now:
            woken = asyncio.Event()
            self._sleepers.append((moment, woken))
            await woken.wait()

    def advance(self, by: timedelta | float) -> None:
        """Move time on and wake whoever slept until then."""
        self._now += by if isinstance(by, timedelta) else timedelta(seconds=by)
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= self._now]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > self._now]
        for _, woken in due:
            woken.set()
