"""Every exception signoff raises on purpose.

```
Exception
└── SignoffError                 anything below; catch this to catch them all
    ├── WrongFile                a file or a mapping we were given is wrong; says where and what to do
    │   ├── PolicyError          a policy file or rule
    │   ├── ScriptError          a scripted model's turns
    │   └── GrantsError          a file of remembered decisions
    ├── WrongUse                 the program was called in a way that cannot work
    │   └── MissingExtra         an optional dependency is not installed; names the extra
    ├── LimitReached             a worker's run went as far as its limits let it; names the limit and its place
    ├── ChannelFailed            a channel could not show something; says whether to try again, and when
    ├── ServerFailed             a server that a command works through cannot be used; says why
    ├── NobodyHere               an approver has nobody to ask now; the request stays open (park)
    ├── ScriptEnded              a scripted model was asked for more turns than its script holds
    ├── CannotCanonicalise       a value has no canonical JSON form, so it cannot be bound to an approval
    ├── StoreError               the store cannot be used; says why and what to do
    │   ├── StoreUnavailable     it cannot be used now; nothing is over because of it, and another try may help
    │   │   └── SchemaError      the store was made by another version of signoff
    │   └── Stale                a compare-and-set came too late; tried again by the broker
    ├── RecordBroken             the record was changed, cut or put in another order; names the first bad event
    ├── Halted                   somebody halted the store (kill switch); nothing new runs until `signoff unhalt`
    ├── RunError                 about one kept run
    │   ├── UnknownRun           no run has that id
    │   ├── RunOver              the run has ended; there is nothing to resume or cancel
    │   ├── RunTaken             another process has the run in hand, or the conversation's last turn is not over
    │   ├── WaitsElsewhere       the run waits for results that only a program can hand in
    │   ├── AlreadyHeard         what was said was heard before; nothing begins with it
    │   └── HeardTooLate         something newer was heard first; nothing begins with it
    ├── RequestError             about one approval request
    │   ├── UnknownRequest       no request has that id
    │   ├── AlreadySettled       the request is no longer open; says who, when and what
    │   ├── NotEntitled          this answer does not count: wrong role, excluded, or not a person
    │   ├── AlreadySpent         the approval was used; an approval runs a call once
    │   └── EditRefused          edited arguments do not fit the tool or the policy
    └── ApprovalError            (also a PermissionError) a call was refused and the caller wants an exception
        ├── ApprovalDenied       a person said no, or nobody answered in time
        └── ApprovalBlocked      policy said no
```
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Self

__all__ = [
    "AlreadyHeard",
    "AlreadySettled",
    "AlreadySpent",
    "ApprovalBlocked",
    "ApprovalDenied",
    "ApprovalError",
    "CannotCanonicalise",
    "ChannelFailed",
    "EditRefused",
    "GrantsError",
    "Halted",
    "HeardTooLate",
    "LimitReached",
    "MissingExtra",
    "NobodyHere",
    "NotEntitled",
    "Place",
    "PolicyError",
    "RecordBroken",
    "RequestError",
    "RunError",
    "RunOver",
    "RunTaken",
    "SchemaError",
    "ScriptEnded",
    "ScriptError",
    "ServerFailed",
    "SignoffError",
    "Stale",
    "StoreError",
    "StoreUnavailable",
    "UnknownRequest",
    "UnknownRun",
    "WaitsElsewhere",
    "WrongFile",
    "WrongUse",
]


class SignoffError(Exception):
    """Base of everything signoff raises on purpose."""

    moment: datetime | None = None
    """The moment that the text names, in UTC, if it names one: a screen may tell it by the clock on the wall."""

    def with_moment(self, moment: datetime | None) -> Self:
        """This error, about that moment."""
        self.moment = moment
        return self


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a file something stands. Lines and columns count from 1; 0 means unknown."""

    file: str
    line: int = 0
    column: int = 0
    key: str = ""

    def __str__(self) -> str:
        spot = self.file
        if self.line:
            spot += f":{self.line}"
            if self.column:
                spot += f":{self.column}"
        return f"{spot}: {self.key}" if self.key else spot


class WrongFile(SignoffError):
    """A file we were given is wrong. The message holds file, line, column and key, what is wrong and what to do.

    Fix: edit the file.
    """

    def __init__(self, what: str, *, place: Place | None = None, fix: str = "") -> None:
        self.what = what
        self.place = place
        self.fix = fix
        text = f"{place}: {what}" if place else what
        super().__init__(f"{text}\n  {fix}" if fix else text)


class PolicyError(WrongFile):
    """A policy file or a rule is wrong: broken YAML, unknown key, wrong type, an example that does not hold.

    Fix: edit the rule; `signoff policy check` says whether it holds now.
    """


class ScriptError(WrongFile):
    """A script for the scripted model is wrong.

    Fix: edit the script.
    """


class GrantsError(WrongFile):
    """The file of remembered decisions is damaged, or of a version this program does not know.

    Fix: move it away; what it remembered is asked about again.
    """


class WrongUse(SignoffError):
    """The program or a function was called in a way that cannot work. The message says what to do instead.

    Fix: as the message says.
    """


class MissingExtra(WrongUse):
    """An optional dependency is not installed.

    Fix: `pip install 'signoff[EXTRA]'`.
    """

    def __init__(self, feature: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{feature} needs an extra that is not installed: pip install 'signoff[{extra}]'")


class LimitReached(SignoffError):
    """A worker's run has come as far as its limits let it. The message names the worker, the limit and its place.

    Fix: give it less to do, or raise the limit there.
    """

    def __init__(self, what: str, *, worker: str, limit: str, place: Place, fix: str = "") -> None:
        self.worker = worker
        """The worker whose limit it is: the one that ran, or one that called it."""
        self.limit = limit
        self.place = place
        super().__init__(f"{place}: {what}\n  {fix}" if fix else f"{place}: {what}")


class ChannelFailed(SignoffError):
    """A channel could not show a notice. It says whether another try may help, and when.

    No approval depends on it: it is tried again, or a backup takes over.

    Fix: nothing; `signoff inbox` and `signoff channels list` say what is wrong.
    """

    def __init__(
        self, problem: str, *, again: bool = True, whole: bool = False, after: float | None = None, at: str = ""
    ) -> None:
        self.again = again
        """Whether another try may help without anybody doing something first."""
        self.whole = whole
        """Whether nothing can be shown there now: it is not about this notice."""
        self.after = after
        """Seconds to wait before the next try, where the other side said so."""
        self.at = at
        """Where part of it stands already."""
        super().__init__(problem)


class ServerFailed(SignoffError):
    """A server that a command works through cannot be used: unreachable, of another version, or it refuses the token.

    Nothing was done, as far as is known; what was sent is done at most once.

    Fix: as the message says; `SIGNOFF_SERVER` and `--server` name the server, `SIGNOFF_TOKEN` and `--token-file` the
    token.
    """


class NobodyHere(SignoffError):
    """Raised by an approver that has nobody to ask now. The request stays open and the run suspends.

    Fix: answer it elsewhere, and resume.
    """


class ScriptEnded(SignoffError):
    """A scripted model or approver was asked for more than its script holds.

    Fix: add a turn or an answer.
    """


class CannotCanonicalise(SignoffError):
    """A value has no canonical JSON form: not a number, half a surrogate pair, a cycle, no JSON type.

    Fix: pass JSON values.
    """


class StoreError(SignoffError):
    """The store cannot be used: not there, not a database of ours, damaged, full, read-only, not reachable.

    The message says which, and why. Nothing half-written is left behind.

    Fix: as the message says.
    """


class StoreUnavailable(StoreError):
    """The store cannot be used now: not reachable, full, locked, damaged, moved away. Another try may help.

    A run that meets it is put down where it was saved last, and its approvals stay good: it can be resumed.

    Fix: as the message says; then `signoff resume`, which a server does by itself.
    """


class SchemaError(StoreUnavailable):
    """The store was made by another version of signoff. The message says which side to upgrade, and how.

    Fix: `signoff db upgrade`, or a newer program.
    """


class Stale(StoreError):
    """A change came too late because another was faster. The broker tries again: only a store of your own shows it."""


class RecordBroken(SignoffError):
    """The record was changed, cut or put in another order. `seq` is the first event that is wrong.

    Fix: find out who had access; restore the store from a backup.
    """

    def __init__(self, message: str, *, seq: int = 0) -> None:
        self.seq = seq
        super().__init__(message)


class Halted(SignoffError):
    """Somebody pulled the kill switch: nothing new runs, what is pending stays pending. Says who, when and why.

    Fix: `signoff unhalt`, then `signoff resume`.
    """


class RunError(SignoffError):
    """Something about one saved run."""


class UnknownRun(RunError):
    """No run has that id, or it was saved in a format this program does not know.

    Fix: `signoff runs --all` lists them.
    """


class RunOver(RunError):
    """The run has ended: done, failed or cancelled. The message says how.

    Fix: nothing.
    """


class RunTaken(RunError):
    """Another process executes the run, or took it over; or the conversation's last turn is not over.

    Fix: let that one go on.
    """


class WaitsElsewhere(RunError):
    """The run waits for results of calls that are done elsewhere (`CallDeferred`), and nobody has handed them in.

    Fix: `signoff.resume(agent, run_id, calls={call id: result})`, or `signoff cancel`.
    """


class AlreadyHeard(RunError):
    """A channel told again of a message that a run would begin with.

    Fix: nothing: it did its work.
    """


class HeardTooLate(RunError):
    """A channel told of a message after a newer one of the same place.

    Fix: say it again.
    """


class RequestError(SignoffError):
    """Something about one approval request, such as an event that does not fit its state."""


class UnknownRequest(RequestError):
    """No request has that id.

    Fix: `signoff inbox`, or `signoff.pending()`, lists them.
    """


class AlreadySettled(RequestError):
    """The request is no longer open: somebody was faster, or it ran out of time. Says who, when and how.

    Fix: nothing: that is the answer.
    """


class NotEntitled(RequestError):
    """This answer does not count: wrong role, excluded by the rule, or not a person.

    Fix: let the right person answer.
    """


class AlreadySpent(RequestError):
    """The approval was used already. An approval runs a call once.

    Fix: nothing.
    """


class EditRefused(RequestError):
    """Edited arguments do not fit the tool's schema, or policy denies the edited call. `problems` lists why.

    Fix: edit again.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


class ApprovalError(SignoffError, PermissionError):
    """A call was refused, and the caller wants an exception: only with `Signoff(on_denied="raise")`."""

    def __init__(self, message: str, *, tool: str = "", by: str = "") -> None:
        self.tool = tool
        self.by = by
        super().__init__(message)


class ApprovalDenied(ApprovalError):
    """A person said no, or nobody answered in time."""


class ApprovalBlocked(ApprovalError):
    """Policy said no."""
