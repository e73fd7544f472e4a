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
The first row that fits decides. So a denial beats everything, and no call runs that is neither allowed nor approved and
unspent, except on a person's earlier word, in a mode that somebody chose, or by a reviewer who may.

A call that another capability turned into a different one meets the gate a second time, below that capability
(`BELOW`). What a claimed call came to is written down by `CLOSINGS`.
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
    """A question without an answer, or a call of which it is unknown whether it ran."""
    APPROVED = auto()
    """An approval that nobody has used."""
    REFUSED = auto()
    WITHDRAWN = auto()
    SPENT = auto()
    """An approval that was used."""
    RESULT = auto()
    """What the call returned when it ran before, in a run that is resumed."""


class Fit(IntEnum):
    """Whether an approval still fits the call it was given for."""

    HOLDS = auto()
    CHANGED = auto()
    """The arguments, the tool, the policy, or where paths lead are not what they were."""
    OTHERS = auto()
    """Policy by now wants other people to agree than those who did."""


class Recalled(IntEnum):
    """What people said earlier about calls like this one."""

    UNREAD = auto()
    NOTHING = auto()
    ALWAYS = auto()
    NEVER = auto()


class CallFacts(NamedTuple):
    """What decides about one pass of a call."""

    effect: Effect
    mode: ApprovalMode = ApprovalMode.INTERACTIVE
    wanted: Wanted = Wanted.ANYONE
    """Whose answer the rule wants."""
    in_doubt: bool = False
    """Whether a rule could not be evaluated, or part of the call cannot be shown."""
    has_json: bool = True
    """Whether an approval can be bound to the arguments."""
    claimed: bool = False
    """Whether PydanticAI says that the call was approved. Nobody believes that."""
    resumed: bool = False
    """Whether it says so of every call, because the run was resumed."""
    record: OnRecord = OnRecord.UNREAD
    fit: Fit = Fit.HOLDS
    entered: bool | None = None
    """Whether this call was let through before, and paused with a run inside it; None before that is read."""
    recalled: Recalled = Recalled.UNREAD
    reviewed: bool = False
    """Whether another capability approved it in this run, and may."""

    @property
    def open_to_others(self) -> bool:
        """Whether a mode or another capability may let it run."""
        return self.wanted is Wanted.ANYONE and not self.in_doubt

    @property
    def open_to_memory(self) -> bool:
        """Whether what people said earlier may let it run, or refuse it."""
        return self.wanted is not Wanted.PEOPLE and not self.in_doubt

    @property
    def may_enter_again(self) -> bool:
        """Whether it may be one that was let through before and paused with a run inside it."""
        return self.claimed and self.open_to_memory and self.mode is not ApprovalMode.AUTO_DENY


class SecondFacts(NamedTuple):
    """What decides about a call that was let through above another capability's toolset, and arrives below it."""

    effect: Effect
    particular: bool = False
    in_doubt: bool = False
    approved: bool = False
    """Whether a person approved the call above."""
    answered: bool = False
    """Whether policy asked about the call above, and it was let through."""
    same_call: bool = True
    """Whether this is what was approved, or what that was said to lead to."""
    same_arguments: bool = True
    used: bool = False
    """Whether the approval let a call through below already."""
    agreed: bool = True
    """Whether those who approved are those whom policy wants for the call below."""

    @property
    def open_to_others(self) -> bool:
        """As for a call above."""
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
    """An approval is claimed, and none is on record."""
    LEADS_TO = auto()
    """The call turned into another one."""


class Lookup(Enum):
    """No step yet: something has to be read first."""

    RECORD = auto()
    ENTRY = auto()
    """Whether the call was let through before and paused with a run inside it."""
    MEMORY = auto()
    """What is remembered. A use that counts is counted."""
    NEVER = auto()
    """Whether *never* is remembered. Nothing is counted."""


@dataclass(frozen=True, slots=True)
class Run:
    """Carry the call out."""

    why: CallStep


@dataclass(frozen=True, slots=True)
class Refuse:
    """Do not carry it out, and tell the model, or the caller, who says so and why."""

    why: Refusal


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask people. An approval on record that does not fit any longer is withdrawn."""

    why: Because


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for the answer right here."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Tell again what the call returned."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Leave the call open. PydanticAI collects those of one step, which are then waited for, or the run suspends."""


Step: TypeAlias = Run | Refuse | Ask | Wait | Replay | Pause | Lookup


# --- the tables ---

Row: TypeAlias = tuple[Callable[[F], bool], Step]
"""Where it fits, and the step."""

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
    # Below, nothing is on record.
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
"""One pass of a call."""

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
"""The second look at a call that passed above another capability's toolset, perhaps as another call."""


class Ended(Enum):
    """How a call that ran on an approval ended."""

    RETURNED = auto()
    HANDED_OUT = auto()
    """Its result is made elsewhere."""
    RAISED = auto()
    PAUSED = auto()
    """A run inside it waits for people."""
    ASKED = auto()
    """Its own body asks for approval."""
    CUT_OFF = auto()
    """It, or a run inside it, was stopped half-way."""


class Closing(Enum):
    """What is written down about the approval."""

    SUCCEED = auto()
    FAIL = auto()
    RELEASE = auto()
    """It holds, and is claimed anew when the call is made again."""
    ASK_AGAIN = auto()
    LOSE = auto()
    """It is unknown whether it ran."""


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
    """The next step of a call: the first row that fits. The same facts come again and again."""
    return _first(COURSE, facts)


def below(facts: SecondFacts) -> Step:
    """The step of a call that is looked at a second time."""
    return _first(BELOW, facts)


def asked(*, again: bool, suspends: bool, by_tool: bool) -> Wait | Pause:
    """Where the answer is waited for. PydanticAI resolves a step's questions once, all together.

    What is asked `again` in the same run comes after that, so it is waited for right here, unless the run suspends or
    the tool's own body asks.
    """
    return Wait() if again and not (suspends or by_tool) else Pause()


def _first(table: Sequence[Row[F]], facts: F) -> Step:
    for fits, step in table:
        if fits(facts):
            return step
    raise AssertionError("the last row of a table always fits")
