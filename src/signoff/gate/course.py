"""The course of a tool call through the gate, as tables: facts in, one step out. Nothing here waits or writes.

```
policy   on record                      besides                                          step
------   ----------------------------   ----------------------------------------------   -----------------------
deny                                                                                     refuse
         arguments without JSON form                                                     refuse
         not read yet                                                                    look it up
         open                                                                            pause
         its result, in a resumed run                                                    replay
         refused                                                                         refuse
         approved, and spent                                                             refuse
         withdrawn                                                                       ask again
         approved                       what was approved has changed                    ask again
ask      approved                       by now other people have to agree                ask again
         approved                                                                        claim it, and run
allow    nothing                                                                         run
ask      nothing                        remembered: *never* (*)                          refuse
ask      nothing                        remembered: *always* (*)                         run
ask      nothing                        let through before, and paused inside (*)        run
ask      nothing                        the mode approves (+)                            run
ask      nothing                        another capability approved, and may (+)         run
ask      nothing                        the mode asks nobody                             refuse
ask      nothing                        PydanticAI says it was approved                  ask, and say so
ask      nothing                                                                         ask

(+) only where the rule names nobody in particular, and nothing about the call is in doubt
(*) also where the rule names a role and nothing more, and somebody with that role said it
```
The first row that matches decides. So a denial beats everything. A call runs only if policy allows it or an unused
approval exists, except on a person's earlier answer, in a mode that somebody chose, or on the word of a reviewer
capability that may answer.

A call that another capability turned into a different one passes the gate a second time, below that capability
(`BELOW`). `CLOSINGS` says what is recorded when a claimed call has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from functools import cache
from typing import NamedTuple, TypeAlias, TypeVar

from signoff.core.event import CallStep
from signoff.core.mode import ApprovalMode
from signoff.core.verdict import Effect, Wanted

F = TypeVar("F")

# --- facts ---


class OnRecord(IntEnum):
    """What is on record about a call."""

    UNREAD = auto()
    NOTHING = auto()
    OPEN = auto()
    """A question without an answer, or a call whose outcome is unknown."""
    APPROVED = auto()
    """An approval that nobody has used."""
    REFUSED = auto()
    WITHDRAWN = auto()
    SPENT = auto()
    """An approval that was used."""
    RESULT = auto()
    """The result of the call from when it ran before, in a run that is resumed."""


class Fit(IntEnum):
    """Whether an approval still fits the call it was given for."""

    HOLDS = auto()
    CHANGED = auto()
    """The arguments, the tool, the policy, the targets of paths, or what the preview was made from have changed."""
    OTHERS = auto()
    """Policy now requires other people to agree than those who did."""


class Recalled(IntEnum):
    """What people said earlier about calls like this one."""

    UNREAD = auto()
    NOTHING = auto()
    ALWAYS = auto()
    NEVER = auto()


class CallFacts(NamedTuple):
    """The facts that decide about one pass of a call."""

    effect: Effect
    mode: ApprovalMode = ApprovalMode.INTERACTIVE
    wanted: Wanted = Wanted.ANYONE
    """Whose answer the rule wants."""
    in_doubt: bool = False
    """Whether a rule could not be evaluated, or part of the call cannot be shown."""
    has_json: bool = True
    """Whether the arguments have a JSON form that an approval can be bound to."""
    claimed: bool = False
    """Whether PydanticAI says that the call was approved. The gate never trusts that."""
    resumed: bool = False
    """Whether PydanticAI says so of every call, because the run was resumed."""
    record: OnRecord = OnRecord.UNREAD
    fit: Fit = Fit.HOLDS
    entered: bool | None = None
    """Whether this call was let through before and paused with a nested run; None before that is read."""
    recalled: Recalled = Recalled.UNREAD
    reviewed: bool = False
    """Whether another capability approved it in this run, and may do so."""

    @property
    def open_to_others(self) -> bool:
        """Whether a mode or another capability may let it run."""
        return self.wanted is Wanted.ANYONE and not self.in_doubt

    @property
    def open_to_memory(self) -> bool:
        """Whether a grant may let it run or refuse it."""
        return self.wanted is not Wanted.PEOPLE and not self.in_doubt

    @property
    def may_enter_again(self) -> bool:
        """Whether it may be a call that was let through before and paused with a nested run."""
        return self.claimed and self.open_to_memory and self.mode is not ApprovalMode.AUTO_DENY


class SecondFacts(NamedTuple):
    """The facts about a call that was let through above another capability's toolset and now arrives below it."""

    effect: Effect
    particular: bool = False
    in_doubt: bool = False
    approved: bool = False
    """Whether a person approved the call above."""
    answered: bool = False
    """Whether policy asked about the call above, and it was let through."""
    same_call: bool = True
    """Whether this is the call that was approved, or the one it was announced to lead to."""
    same_arguments: bool = True
    used: bool = False
    """Whether the approval already let a call through below."""
    agreed: bool = True
    """Whether those who approved are those whom policy wants for the call below."""

    @property
    def open_to_others(self) -> bool:
        """As in `CallFacts`."""
        return not (self.particular or self.in_doubt)


# --- steps ---


class Refusal(Enum):
    """Why a call is refused."""

    POLICY = auto()
    NO_JSON = auto()
    ANSWER = auto()
    SPENT = auto()
    NEVER = auto()
    MODE = auto()
    OTHER_ARGUMENTS = auto()
    """It led to a call with other arguments than were shown."""
    OTHER_CALL = auto()
    """It led to a call that nobody approved."""


class Because(Enum):
    """Why people are asked."""

    POLICY = auto()
    """Policy asks, and there is no answer yet."""
    WITHDRAWN = auto()
    CHANGED = auto()
    OTHERS = auto()
    CLAIMED = auto()
    """PydanticAI claims an approval, and none is on record."""
    LEADS_TO = auto()
    """The call turned into another one."""


class Lookup(Enum):
    """No step yet: something has to be read first."""

    RECORD = auto()
    ENTRY = auto()
    """Whether the call was let through before and paused with a nested run."""
    MEMORY = auto()
    """What is remembered. The use of a grant with a use limit or a budget is counted."""
    NEVER = auto()
    """Whether *never* is remembered. Nothing is counted."""


@dataclass(frozen=True, slots=True)
class Run:
    """Execute the call."""

    why: CallStep


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do not execute it, and tell the model or the caller who refused and why."""

    why: Refusal


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask people. An approval on record that no longer fits is withdrawn."""

    why: Because


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for the answer in place."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Return the saved result of the call again."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Leave the call open. PydanticAI collects the open calls of a step; they are waited for, or the run suspends."""


Step: TypeAlias = Run | Refuse | Ask | Wait | Replay | Pause | Lookup


# --- the tables ---

Row: TypeAlias = tuple[Callable[[F], bool], Step]
"""A predicate over the facts, and the step to take where it holds."""

COURSE: Sequence[Row[CallFacts]] = (
    (lambda f: f.effect is Effect.DENY, Refuse(Refusal.POLICY)),
    (lambda f: not f.has_json, Refuse(Refusal.NO_JSON)),
    (lambda f: f.record is OnRecord.UNREAD, Lookup.RECORD),
    (lambda f: f.record is OnRecord.OPEN, Pause()),
    (lambda f: f.record is OnRecord.RESULT, Replay()),
    (lambda f: f.record is OnRecord.REFUSED, Refuse(Refusal.ANSWER)),
    (lambda f: f.record is OnRecord.SPENT, Refuse(Refusal.SPENT)),
    (lambda f: f.record is OnRecord.WITHDRAWN, Ask(Because.WITHDRAWN)),
    (lambda f: f.record is OnRecord.APPROVED and f.fit is Fit.CHANGED, Ask(Because.CHANGED)),
    (lambda f: f.record is OnRecord.APPROVED and f.fit is Fit.OTHERS and f.effect is Effect.ASK, Ask(Because.OTHERS)),
    (lambda f: f.record is OnRecord.APPROVED, Run(CallStep.APPROVED)),
    # In the rows below, nothing is on record.
    (lambda f: f.effect is Effect.ALLOW, Run(CallStep.ALLOWED)),
    (lambda f: f.may_enter_again and f.entered is None, Lookup.ENTRY),
    (lambda f: f.may_enter_again and f.entered is True and f.recalled is Recalled.UNREAD, Lookup.NEVER),
    (lambda f: f.open_to_memory and f.recalled is Recalled.UNREAD, Lookup.MEMORY),
    (lambda f: f.open_to_memory and f.recalled is Recalled.NEVER, Refuse(Refusal.NEVER)),
    (lambda f: f.open_to_memory and f.recalled is Recalled.ALWAYS, Run(CallStep.REMEMBERED)),
    (lambda f: f.may_enter_again and f.entered is True, Run(CallStep.REMEMBERED)),
    (lambda f: f.open_to_others and f.mode is ApprovalMode.AUTO_APPROVE, Run(CallStep.AUTO_APPROVED)),
    (lambda f: f.open_to_others and f.reviewed, Run(CallStep.REVIEWED)),
    (lambda f: f.mode is ApprovalMode.AUTO_DENY, Refuse(Refusal.MODE)),
    (lambda f: f.claimed and not f.resumed, Ask(Because.CLAIMED)),
    (lambda f: True, Ask(Because.POLICY)),
)
"""The table for one pass of a call."""

BELOW: Sequence[Row[SecondFacts]] = (
    (lambda f: f.effect is Effect.DENY, Refuse(Refusal.POLICY)),
    (lambda f: f.effect is Effect.ALLOW, Run(CallStep.ALLOWED)),
    (lambda f: f.answered and f.same_call and f.open_to_others and not f.approved, Run(CallStep.ALLOWED)),
    (lambda f: not f.same_arguments, Refuse(Refusal.OTHER_ARGUMENTS)),
    (lambda f: not f.approved, Ask(Because.LEADS_TO)),
    (lambda f: f.used, Refuse(Refusal.SPENT)),
    (lambda f: not (f.same_call and f.agreed), Refuse(Refusal.OTHER_CALL)),
    (lambda f: True, Run(CallStep.APPROVED)),
)
"""The table for the second check of a call that passed another capability's toolset, perhaps as another call."""


class Ended(Enum):
    """How a call that ran on an approval ended."""

    RETURNED = auto()
    HANDED_OUT = auto()
    """Its result is made elsewhere."""
    RAISED = auto()
    PAUSED = auto()
    """A nested run waits for people."""
    ASKED = auto()
    """Its own body asks for approval."""
    CUT_OFF = auto()
    """It, or a nested run, was stopped half-way."""


class Closing(Enum):
    """What is recorded about the approval."""

    SUCCEED = auto()
    FAIL = auto()
    RELEASE = auto()
    """The approval stays valid, and is claimed anew when the call is made again."""
    ASK_AGAIN = auto()
    LOSE = auto()
    """The outcome is unknown."""


CLOSINGS: Mapping[Ended, Closing] = {
    Ended.RETURNED: Closing.SUCCEED,
    Ended.HANDED_OUT: Closing.SUCCEED,
    Ended.RAISED: Closing.FAIL,
    Ended.PAUSED: Closing.RELEASE,
    Ended.ASKED: Closing.ASK_AGAIN,
    Ended.CUT_OFF: Closing.LOSE,
}


@cache
def course(facts: CallFacts) -> Step:
    """Return the next step of a call: the first row that matches. Cached, because the same facts occur often."""
    return _first(COURSE, facts)


def below(facts: SecondFacts) -> Step:
    """Return the step of a call that is checked a second time."""
    return _first(BELOW, facts)


def asked(*, again: bool, suspends: bool, by_tool: bool) -> Wait | Pause:
    """Decide whether to wait for the answer in place. PydanticAI resolves the questions of a step once, all together.

    A call that is asked about `again` in the same run comes after that, so its answer is waited for in place, unless
    the run suspends or the tool's own body asks.
    """
    return Wait() if again and not (suspends or by_tool) else Pause()


def _first(table: Sequence[Row[F]], facts: F) -> Step:
    for fits, step in table:
        if fits(facts):
            return step
    raise AssertionError("the last row of a table always fits")
