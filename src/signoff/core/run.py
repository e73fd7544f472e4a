"""A run that outlives its process: what it was started with, who has it in hand, and how far it came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from signoff.core.loosening import Loosened
from signoff.core.mode import ApprovalMode
from signoff.core.values import Changeable

FORMAT = 2
"""Of the saved state. 1 was one JSON text for a whole run; 2 keeps messages in segments, each stored once."""


class RunState(StrEnum):
    """How a run stands. Whether it waits for people follows from its requests."""

    GOING = "going"
    """Not over: some process has it in hand, or it can be resumed."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetup:
    """How a run was started by a command or a channel, to build its agent again. Paths are absolute."""

    directory: str = ""
    project: str = ""
    """Where the project was whose file was read."""
    project_id: str = ""
    policy: str = ""
    """The policy file."""
    other_policies: tuple[str, ...] = ()
    """Policy files that took the place of the project's own, when it began or when it was resumed; see `Loosened`."""
    model: str = ""
    mode: ApprovalMode = ApprovalMode.INTERACTIVE
    ask: tuple[str, ...] = ()
    """Tools that whoever started it wanted to be asked about, besides what the policy says."""
    deny: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    """Files with more rules of theirs."""
    worker_file: str = ""
    """Of a worker that is not one of the project's."""
    input: Mapping[str, Any] | None = None
    """For a worker with an `input` schema."""
    files: tuple[str, ...] = ()
    """What was attached to the prompt."""
    chat: bool = False
    """Whether it is one turn of several."""
    keeps: bool = False
    """Whether all that was said is kept at its end, for another run to follow. Turns of a chat always keep it."""
    after: str = ""
    """Id of the turn before."""

    @property
    def loosened(self) -> Loosened:
        """What whoever started or resumed it loosened."""
        return Loosened(auto_approve=self.mode is ApprovalMode.AUTO_APPROVE, policies=self.other_policies)


PLAIN_SETUP = RunSetup()


@dataclass(frozen=True, slots=True, kw_only=True)
class EnteredCall:
    """A call that runs are inside of: all that has to be the same when it is let through again."""

    tool: str
    args_digest: str
    schema_hash: str
    policy_revision: str
    granted: bool = False
    """Whether it was let through although policy asks."""


@dataclass(frozen=True, kw_only=True)
class SavedRun(Changeable):
    """One run. `epoch` counts the processes that had it in hand: whoever comes with an older one has lost it."""

    id: str
    parent: str = ""
    """Id of the run it is inside of: a run that a tool of another one started. Empty for runs of their own."""
    conversation_id: str = ""
    agent: str = ""
    """Where the agent is found, as `package.module:agent`; empty where only the program that made it knows."""
    name: str = ""
    """What its agent is called, where a program began it with `Agent(name=…)`; a name that was only guessed is none."""
    prompt: str = ""
    setup: RunSetup = PLAIN_SETUP
    entered: EnteredCall | None = None
    """Set where it is no run, but stands for a call that runs are inside of."""
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where it began: an address, by the channel that can read it."""
    requester: str = ""
    behind: str | None = None
    """Where a program began it with a key: who made that key, and so is a requester, too; empty: nobody who is known.
    None where a person began it."""
    state: RunState = RunState.GOING
    epoch: int = 1
    holder: str = ""
    """Id of the process that has it in hand; empty where it was put down."""
    started_at: datetime | None = None
    changed_at: datetime | None = None
    tip: str = ""
    """Id of the last `Segment` of its messages; empty where nothing was saved yet."""
    rest: str = ""
    """What else is needed to go on, as JSON in the gate's own format: usage, the requests waited for."""
    heard: tuple[str, ...] = ()
    """Ids of requests that were refused, or that nobody answered in time, and that the run has gone on with since."""
    format: int = FORMAT
    detail: str = ""
    """How it ended, in one line: an error, or the beginning of the output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Some messages of a conversation, in order, after those of `parent`. Never changed; a history is a chain."""

    id: str
    """Digest of the parent's id and the body."""
    parent: str
    count: int
    """How many messages the body holds."""
    body: bytes
    """The messages as the gate writes them: `j` and JSON, or `z` and JSON that is compressed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that holds claims or runs. It says that it lives every now and then."""

    id: str
    host: str
    """Which machine and process space; process numbers mean something within one only."""
    pid: int
    born: str
    """When the process began, as the system tells it: numbers are used again."""
    seen_at: datetime
