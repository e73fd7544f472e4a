"""A tool call, as policy and people see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from signoff.core.canonical import canonical, digest, digest_of, same_form
from signoff.core.values import cached
from signoff.errors import CannotCanonicalise

LABELS = frozenset({"fs.read", "fs.write", "proc.exec", "net.egress", "data.read", "data.write", "money"})
"""The capability labels that signoff knows: what a call does, whatever its tool is named."""


FREE = frozenset("body caption comment content contents message new_text note subject text".split())
"""Names of arguments that hold free text. The other arguments say where it goes, or what for."""


UNFOLLOWED = "\0"
"""Stands in `Call.resolved` for the place where the files of a pattern lead, if they cannot be looked at."""


class Veiled(str):
    """A placeholder for a secret in the arguments: secrets stay distinguishable, but unreadable. No rule judges it."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call with its final arguments, and where in which run it was made."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The arguments as JSON values, after validation: what the tool would get."""
    toolset: str | None = None
    worker: tuple[str, ...] = ()
    """The chain of workers that led to the call, outermost first."""
    labels: frozenset[str] = frozenset()
    claimed: frozenset[str] = frozenset()
    """Labels that the provider of the tool claims for it: they may make policy stricter, never more lenient."""
    deps: Any = field(default=None, compare=False, repr=False)
    """The run's dependencies, for `deps` conditions."""
    start: str = ""
    """The directory that relative paths in the arguments start from; empty: the policy's own directory."""
    directory: str = ""
    """The same directory as grants name it: relative to the project's directory, if it is inside."""
    roams: bool = field(default=False, compare=False)
    """Whether the caller also chooses `start`.

    Rules about commands are then about the policy's directory, and a command elsewhere is judged as if it began with a
    `cd` to there.
    """
    also: str = ""
    """Another directory that relative paths may start from, if it is not known which: rules check both."""
    resolved: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    """For arguments that are paths: the text as written -> the path after following symlinks.

    Also for files that patterns in a command stand for, if a rule may be about them.
    """
    named: frozenset[str] = field(default=frozenset(), compare=False)
    """Real paths among the arguments that settings of the project name, so that tools read settings from there, too."""
    unreadable: tuple[str, ...] = ()
    """Arguments without a JSON form, each with what it is. They make policy ask."""
    unseen: str = field(default="", compare=False)
    """Why not everything was looked at on the disk that rules want to know of the call. It makes policy ask."""
    call_id: str = ""
    run_id: str = ""
    conversation_id: str = ""
    path: str = ""
    """Call ids from the outermost run down to this call, as in `a-1/b-2`."""
    schema_hash: str = ""
    """Digest of the tool's argument schema when the call was made."""

    @classmethod
    def made(cls, fields: Mapping[str, Any]) -> Call:
        """Make a call from its fields, with `args` and `resolved`. Every judged call is made like this, for speed."""
        call = object.__new__(cls)
        call.__dict__.update(fields)
        return call

    def changed(self, **fields: Any) -> Call:
        """Copy with other values in some fields: `dataclasses.replace`, several times faster."""
        call = object.__new__(Call)
        held = call.__dict__
        held.update(self.__dict__)
        for name in _DERIVED if "args" in fields or "tool" in fields else _FROM_PLACE:
            held.pop(name, None)
        held.update(fields)
        return call

    @cached
    def fingerprint(self) -> str:
        """Digest of tool and arguments: equal exactly if both are equal as JSON values."""
        return digest_of(f'{{"args":{self.args_text},"tool":{canonical(self.tool)}}}')

    @cached
    def args_text(self) -> str:
        """The canonical JSON of the arguments; cached, because it is used often."""
        return canonical(self.args)

    @cached
    def args_digest(self) -> str:
        """Digest of the arguments alone: part of the binding of an approval."""
        return digest_of(self.args_text)

    @cached
    def memory_key(self) -> str:
        """As `fingerprint`, but after Unicode normalization (NFC). Grants are found by it."""
        if self.args_text.isascii() and self.tool.isascii():  # only one Unicode form
            return self.fingerprint
        return digest(same_form({"args": self.args, "tool": self.tool}))

    @property
    def free(self) -> tuple[str, ...]:
        """Names of the arguments that hold free text."""
        return tuple(name for name, value in self.args.items() if is_free(name, value))

    @cached
    def target_key(self) -> str:
        """As `memory_key` for one tool in one directory, but without the arguments in `free`."""
        free = self.free
        fixed = {name: value for name, value in self.args.items() if name not in free}
        # The word "folder" is part of keys that stores hold.
        whose = {"toolset": self.toolset, "agent": self.agent, "folder": self.directory}
        return digest(same_form({"args": fixed, "tool": self.tool, **whose}))

    @property
    def likeness(self) -> tuple[str, str]:
        """The keys that identify similar calls of a tool: `target_key` and `memory_key`.

        A call whose arguments have no canonical form is similar to no other.
        """
        try:
            return self.target_key, self.memory_key
        except CannotCanonicalise:
            return f"?{self.key}", f"?{self.key}"

    @cached
    def key(self) -> str:
        """Identifies this call among all calls. It includes the run, because providers reuse call ids."""
        return f"{self.run_id}:{self.path or self.call_id}"

    @property
    def agent(self) -> str:
        """The agent whose own tool it is; empty for a tool of a toolset, which is the same for all agents."""
        return self.worker[-1] if self.toolset is None and self.worker else ""

    @property
    def chain(self) -> str:
        """The chain of workers and the tool, for people: `triage > analyzer > shell`."""
        return " > ".join((*self.worker, self.tool))


def is_free(name: str, value: object) -> bool:
    """Whether an argument holds free text, so that a pattern may leave it open beside a fixed target."""
    return name.casefold() in FREE and isinstance(value, str)


_FROM_PLACE = ("key",)
_DERIVED = (*_FROM_PLACE, "fingerprint", "args_text", "args_digest", "memory_key", "target_key")
