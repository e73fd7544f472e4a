"""An approver that answers from a list, for tests, demos and scripts. A script never counts as a particular person."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.mode import ApprovalMode
from signoff.core.people import Actor, ActorKind
from signoff.core.request import ApprovalRequest
from signoff.core.strict_json import read_json
from signoff.errors import ScriptEnded, WrongUse

Answer = ApprovalDecision | str | Callable[[ApprovalRequest], ApprovalDecision]
"""A decision, a word as in `decision_from`, or a function of the request."""

WORDS = "approve, deny, deny:NOTE, edit:{JSON}, session, always"


def decision_from(word: str) -> ApprovalDecision:
    """Parse a decision: `approve`, `deny`, `deny:NOTE`, `edit:{JSON}`, `session`, `always`. Raises `WrongUse`."""
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
                args = read_json(rest)
            except ValueError as error:
                raise WrongUse(f"edit:… needs all arguments as a JSON object: {error}") from error
            return ApprovalDecision(approved=True, edited_args=args)
        case _:
            raise WrongUse(f"{word!r} is not an answer: say {WORDS}")


class ScriptedApprover:
    """An approver that answers from a list and records the requests in `asked`.

    Answers are decisions, words as in `decision_from`, or functions of the request. It answers as a script unless `by`
    names an actor; if a rule requires particular people, a script does not count. Raises `ScriptEnded` after the last
    answer.
    """

    def __init__(
        self,
        answers: Iterable[Answer],
        *,
        by: Actor | None = None,
    ) -> None:
        if isinstance(answers, str):
            raise WrongUse(f"the answers of a script are a list: write [{answers!r}]")
        self._answers = list(answers)
        for answer in self._answers:
            if isinstance(answer, str):
                decision_from(answer)  # report a misspelled answer now, not when it is used
        self._by = by or Actor(name="script", kind=ActorKind.SCRIPT, via="script")
        self.asked: list[ApprovalRequest] = []

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        self.asked.append(request)
        if len(self.asked) > len(self._answers):
            raise ScriptEnded(f"the script has {len(self._answers)} answers, but {request.summary!r} is asked next")
        answer = self._answers[len(self.asked) - 1]
        if callable(answer):
            answer = answer(request)
        elif isinstance(answer, str):
            answer = decision_from(answer)
        return answer if answer.by is not None else replace(answer, by=self._by)
