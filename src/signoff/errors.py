"""Every exception signoff raises on purpose.

```
Exception
└── SignoffError                 anything below; catch this to catch them all
    ├── WrongFile                a file or a mapping has an error; says where, and what to do
    │   ├── PolicyError          a policy file or rule
    │   ├── ScriptError          a scripted model's turns
    │   └── GrantsError          a file of remembered answers
    ├── WrongUse                 the program was called in a way that cannot work
    │   └── MissingExtra         an optional dependency is not installed; names the extra
    ├── LimitReached             a worker's run reached one of its limits; names the limit and its place
    ├── ChannelFailed            a channel could not show something; says whether to retry, and when
    ├── ServerFailed             the server of a command cannot be used; says why
    ├── NobodyHere               an approver has nobody to ask now; the request stays open (park)
    ├── ScriptEnded              a scripted model was asked for more turns than its script holds
    ├── PreviewChanged           what a preview was made from is another by now; the tool did nothing
    ├── CannotCanonicalise       a value has no canonical JSON form, so it cannot be bound to an approval
    ├── StoreError               the store cannot be used; says why and what to do
    │   ├── StoreUnavailable     it cannot be used now; no run ends because of it, and a retry may help
    │   │   ├── SchemaError      the store was made by another version of signoff
    │   │   └── StoreDamaged     a stored value is not what signoff writes; names table, row and field
    │   └── Stale                a compare-and-set came too late; the broker retries
    ├── RecordBroken             the audit log was changed, truncated or reordered; names the first bad event
    ├── Halted                   somebody halted the store (kill switch); nothing new runs until `signoff unhalt`
    ├── RunError                 about one saved run
    │   ├── UnknownRun           no run has that id
    │   ├── RunOver              the run has ended; there is nothing to resume or cancel
    │   ├── RunTaken             another process executes the run, or the conversation's last turn has not ended
    │   ├── WaitsElsewhere       the run waits for results that only a program can supply
    │   ├── AlreadyHeard         the message was received before; it starts no run
    │   └── HeardTooLate         a newer message was received first; it starts no run
    ├── RequestError             about one approval request
    │   ├── UnknownRequest       no request has that id
    │   ├── AlreadySettled       the request is no longer open; says who, when and what
    │   ├── NotEntitled          this answer does not count: wrong role, excluded, or not a person
    │   ├── NotRead              the approver was not shown all of a long call
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
from typing import ClassVar, Self

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
    "NotRead",
    "Place",
    "PolicyError",
    "PreviewChanged",
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
    "StoreDamaged",
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

    exit_code: ClassVar[int] = 2
    """What a command returns that ends with it, as in `signoff.core.exit_codes`."""
    status: ClassVar[int] = 500
    """The HTTP status of a server's answer; 500 tells a client only that there is something in the log."""
    code: ClassVar[str] = "error"
    """What a server calls it, for programs."""

    moment: datetime | None = None
    """The time that the text names, in UTC, if any: a screen may show it in local time."""

    def with_moment(self, moment: datetime | None) -> Self:
        """This error, about that moment."""
        self.moment = moment
        return self


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file. Lines and columns count from 1; 0 means unknown."""

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
    """A file has an error. The message names file, line, column and key, what is wrong and what to do.

    Fix: edit the file.
    """

    status = 422
    code = "wrong-file"

    def __init__(self, what: str, *, place: Place | None = None, fix: str = "") -> None:
        self.what = what
        self.place = place
        self.fix = fix
        text = f"{place}: {what}" if place else what
        super().__init__(f"{text}\n  {fix}" if fix else text)


class PolicyError(WrongFile):
    """A policy file or a rule has an error: invalid YAML, unknown key, wrong type, an example that fails.

    Fix: edit the rule; `signoff policy check` checks it.
    """


class ScriptError(WrongFile):
    """A script for the scripted model has an error.

    Fix: edit the script.
    """


class GrantsError(WrongFile):
    """Another user could have written the file of remembered answers.

    Fix: move it away; signoff asks again about what it remembered.
    """


class WrongUse(SignoffError):
    """The program or a function was called in a way that cannot work. The message says what to do instead.

    Fix: as the message says.
    """

    status = 422
    code = "wrong-use"


class MissingExtra(WrongUse):
    """An optional dependency is not installed.

    Fix: `pip install 'signoff[EXTRA]'`.
    """

    def __init__(self, feature: str, extra: str = "", *, install: str = "") -> None:
        """`install`: what to install, if it is no extra of signoff."""
        self.extra = extra
        what = install or f"signoff[{extra}]"
        super().__init__(f"{feature} needs an extra that is not installed: pip install '{what}'")


class LimitReached(SignoffError):
    """A worker's run reached one of its limits. The message names the worker, the limit and its place.

    Fix: give it less to do, or raise the limit there.
    """

    exit_code = 1

    def __init__(self, what: str, *, worker: str, limit: str, place: Place, fix: str = "") -> None:
        self.worker = worker
        """The worker whose limit it is: the one that ran, or one that called it."""
        self.limit = limit
        self.place = place
        super().__init__(f"{place}: {what}\n  {fix}" if fix else f"{place}: {what}")


class ChannelFailed(SignoffError):
    """A channel could not show a notice. The error says whether a retry may help, and when.

    No approval depends on it: signoff retries.

    Fix: nothing; `signoff inbox` and `signoff channels list` say what is wrong.
    """

    exit_code = 1

    def __init__(
        self, problem: str, *, again: bool = True, whole: bool = False, after: float | None = None, at: str = ""
    ) -> None:
        self.again = again
        """Whether a retry may help without anybody fixing something first."""
        self.whole = whole
        """Whether the whole channel fails, not only this notice."""
        self.after = after
        """Seconds to wait before the next attempt, if the service said so."""
        self.at = at
        """Where part of it is already shown."""
        super().__init__(problem)


class ServerFailed(SignoffError):
    """The server of a command cannot be used: it is unreachable, of another version, or refuses the token.

    As far as is known, nothing was done. A change that was sent takes effect at most once.

    Fix: as the message says; `SIGNOFF_SERVER` and `--server` name the server, `SIGNOFF_TOKEN` and `--token-file` the
    token.
    """

    exit_code = 1


class NobodyHere(SignoffError):
    """Raised by an approver that has nobody to ask now. The request stays open and the run suspends.

    Fix: answer it elsewhere, and resume.
    """

    exit_code = 3


class ScriptEnded(SignoffError):
    """A scripted model or approver was asked for more than its script holds.

    Fix: add a turn or an answer.
    """


class PreviewChanged(SignoffError):
    """Raised by a tool before it does anything: what its preview was made from is another by now. The text names it.

    Fix: nothing: the gate asks about the call again, with a new preview.
    """


class CannotCanonicalise(SignoffError):
    """A value has no canonical JSON form: not a number, half a surrogate pair, a cycle, no JSON type.

    Fix: pass JSON values.
    """


class StoreError(SignoffError):
    """The store cannot be used: missing, not a signoff database, damaged, full, read-only or unreachable.

    The message says which, and why. No partial write is left behind.

    Fix: as the message says.
    """

    exit_code = 1
    status = 503
    code = "store-unavailable"


class StoreUnavailable(StoreError):
    """The store cannot be used now: unreachable, full, locked, damaged or moved away. A retry may help.

    The run stops at its last saved state, and its approvals stay valid: it can be resumed.

    Fix: as the message says; then `signoff resume`, which a server does automatically.
    """


class SchemaError(StoreUnavailable):
    """The store was made by another version of signoff, which is not read or converted.

    Fix: use the version that made it, or name another store to start over.
    """


class StoreDamaged(StoreUnavailable):
    """A stored value is not what signoff writes: it was changed from outside, or the disk is faulty.

    `table`, `row` and `field` say which. Nothing is decided from the row.

    Fix: restore a backup, or put the value right.
    """

    def __init__(self, why: str, *, table: str = "", row: str = "", field: str = "") -> None:
        self.why = why
        self.table = table
        self.row = row
        self.field = field
        named = f", row {row[:200]!a}" if row else ""
        where = f"table {table}{named}" if table else "a row"
        self.place = f"field {field[:200]}" if field else "its row"
        """The field in words."""
        what = f"its {self.place} {why}" if field else f"it {why}"
        super().__init__(
            f"the store is damaged: {where}: {what}. Nothing was decided from it. It was changed from outside, or the "
            "disk is faulty: restore a backup, or put the value right"
        )

    def within(self, field: str = "", *, table: str = "", row: str = "") -> StoreDamaged:
        """This error for what holds the damaged value: a field of it, and where it is stored unless that is known."""
        path = ".".join(part for part in (field, self.field) if part)
        return StoreDamaged(self.why, table=self.table or table, row=self.row or row, field=path)


class Stale(StoreError):
    """A change came too late because another was faster. The broker retries: you see it only in your own store."""


class RecordBroken(SignoffError):
    """The audit log was changed, truncated or reordered. `seq` is the first wrong event.

    Fix: find out who had access; restore the store from a backup.
    """

    exit_code = 1

    def __init__(self, message: str, *, seq: int = 0) -> None:
        self.seq = seq
        super().__init__(message)


class Halted(SignoffError):
    """Somebody used the kill switch: no new call runs, pending requests stay pending. Says who, when and why.

    Fix: `signoff unhalt`, then `signoff resume`.
    """

    exit_code = 3
    status = 409
    code = "halted"


class RunError(SignoffError):
    """Something about one saved run."""

    exit_code = 1
    status = 409
    code = "run-refused"


class UnknownRun(RunError):
    """No run has that id, or it was saved in a format this program does not know.

    Fix: `signoff runs --all` lists them.
    """

    status = 404
    code = "unknown-run"


class RunOver(RunError):
    """The run has ended: done, failed or cancelled. The message says how.

    Fix: nothing.
    """

    code = "run-over"


class RunTaken(RunError):
    """Another process executes the run, or took it over; or the conversation's last turn has not ended.

    Fix: let that process continue.
    """

    code = "run-taken"


class WaitsElsewhere(RunError):
    """The run waits for results of external calls (`CallDeferred`) that nobody has supplied yet.

    Fix: `signoff.resume(agent, run_id, calls={call id: result})`, or `signoff cancel`.
    """


class AlreadyHeard(RunError):
    """A channel reported a message again that has already started a run.

    Fix: nothing: the first report counted.
    """


class HeardTooLate(RunError):
    """A channel reported a message after a newer one from the same place.

    Fix: send it again.
    """


class RequestError(SignoffError):
    """Something about one approval request, such as an event that does not fit its state."""

    exit_code = 1
    status = 422
    code = "refused"


class UnknownRequest(RequestError):
    """No request has that id.

    Fix: `signoff inbox`, or `Signoff.pending()`, lists them.
    """

    status = 404
    code = "unknown-request"


class AlreadySettled(RequestError):
    """The request is no longer open: somebody answered first, or it expired. Says who, when and how.

    Fix: nothing: that is the answer.
    """

    status = 409
    code = "already-settled"


class NotEntitled(RequestError):
    """This answer does not count: wrong role, excluded by the rule, or not a person.

    Fix: let the right person answer.
    """

    status = 403
    code = "not-entitled"


class NotRead(RequestError):
    """A long call was approved by somebody who was not shown all of it.

    Fix: read it, with `signoff show ID` or where it is asked; a program calls `Inbox.opened` when it has shown it.
    """

    status = 409
    code = "not-read"


class AlreadySpent(RequestError):
    """The approval was used already. An approval runs a call once.

    Fix: nothing.
    """

    status = 409
    code = "already-spent"


class EditRefused(RequestError):
    """Edited arguments do not fit the tool's schema, or policy denies the edited call. `problems` lists why.

    Fix: edit again.
    """

    code = "edit-refused"

    def __init__(self, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


class ApprovalError(SignoffError, PermissionError):
    """A call was refused, and the caller wants an exception: only with `Signoff(on_denied="raise")`."""

    exit_code = 4

    def __init__(self, message: str, *, tool: str = "", by: str = "") -> None:
        self.tool = tool
        self.by = by
        super().__init__(message)


class ApprovalDenied(ApprovalError):
    """A person said no, or nobody answered in time."""


class ApprovalBlocked(ApprovalError):
    """Policy said no."""
