"""A saved run: what it was started with, which process executes it, and its state. It outlives its process."""

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
"""Format of the saved state. 1 was one JSON text for a whole run; 2 stores messages in segments, each once."""


class RunState(StrEnum):
    """The state of a run. Whether it waits for people follows from its requests."""

    GOING = "going"
    """Not finished: a process executes it, or it can be resumed."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetup:
    """How a command or a channel started a run, so that its agent can be built again. Paths are absolute."""

    directory: str = ""
    project: str = ""
    """The directory of the project whose file was read."""
    project_id: str = ""
    policy: str = ""
    """The policy file."""
    other_policies: tuple[str, ...] = ()
    """Policy files that replaced the project's own, when it was started or resumed; see `Loosened`."""
    model: str = ""
    mode: ApprovalMode = ApprovalMode.INTERACTIVE
    ask: tuple[str, ...] = ()
    """Tools to ask about in addition to what the policy says, as given when the run was started."""
    deny: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    """Files with additional rules, as given when the run was started."""
    worker_file: str = ""
    """The file of a worker that is not one of the project's."""
    input: Mapping[str, Any] | None = None
    """The input of a worker with an `input` schema."""
    files: tuple[str, ...] = ()
    """Files that were attached to the prompt."""
    chat: bool = False
    """Whether it is one turn of a chat."""
    keeps: bool = False
    """Whether the messages are kept after its end, for another run to continue. Turns of a chat always keep them."""
    after: str = ""
    """Id of the previous turn."""

    @property
    def loosened(self) -> Loosened:
        """How the run was loosened when it was started or resumed."""
        return Loosened(auto_approve=self.mode is ApprovalMode.AUTO_APPROVE, policies=self.other_policies)


PLAIN_SETUP = RunSetup()


@dataclass(frozen=True, slots=True, kw_only=True)
class EnteredCall:
    """A call with inner runs: what must be the same when it is let through again."""

    tool: str
    args_digest: str
    schema_hash: str
    policy_revision: str
    granted: bool = False
    """Whether it was let through although policy asks."""


@dataclass(frozen=True, kw_only=True)
class SavedRun(Changeable):
    """One saved run. `epoch` is a fencing token: it counts the processes that executed it; only the last one may."""

    id: str
    parent: str = ""
    """Id of the outer run, if a tool of that run started this one."""
    conversation_id: str = ""
    agent: str = ""
    """Import path of the agent, as `package.module:agent`; empty if only the program that made it knows it."""
    name: str = ""
    """The name given as `Agent(name=…)` in a program; empty if the name was only guessed."""
    prompt: str = ""
    setup: RunSetup = PLAIN_SETUP
    entered: EnteredCall | None = None
    """Set if this is not a run, but stands for a call with inner runs."""
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where it was started: an address for each channel that can read it."""
    requester: str = ""
    behind: str | None = None
    """If a program started it with an access key: the person who made the key, who is a requester, too.

    Empty if that is not known. None if a person started it.
    """
    state: RunState = RunState.GOING
    epoch: int = 1
    holder: str = ""
    """Id of the process that executes it; empty if it is suspended."""
    started_at: datetime | None = None
    changed_at: datetime | None = None
    tip: str = ""
    """Id of the last `Segment` of its messages; empty if nothing was saved yet."""
    rest: str = ""
    """What else is needed to resume, as JSON in the gate's own format: usage, the requests that it waits for."""
    heard: tuple[str, ...] = ()
    """Ids of requests that were denied or expired, and after which the run has continued."""
    format: int = FORMAT
    detail: str = ""
    """How it ended, in one line: an error, or the start of the output."""


@dataclass(frozen=True, kw_only=True)
class DamagedRun(SavedRun):
    """Stands in a list for a run whose row cannot be read: only its id is sure, and nothing resumes it."""

    state: RunState = RunState.FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Messages of a conversation, in order, after those of `parent`. Immutable; a history is a chain of segments."""

    id: str
    """Digest of the parent's id and the body."""
    parent: str
    count: int
    """Number of messages in the body."""
    body: bytes
    """The messages as the gate writes them: `j` and JSON, or `z` and compressed JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that holds claims or runs. It sends heartbeats (`seen_at`)."""

    id: str
    host: str
    """The machine since its last boot, and its PID namespace; a process id is unique only within one."""
    pid: int
    born: str
    """Start time of the process, as the operating system reports it: process ids are reused."""
    seen_at: datetime

    @property
    def place(self) -> str:
        """Which process it is, for people: its number and its machine."""
        return f"process {self.pid} on {self.host.partition('/')[0]}"
