"""One tool call as policy and people see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from signoff.core.canonical import canonical, digest, digest_of, same_form
from signoff.core.values import cached
from signoff.errors import CannotCanonicalise

LABELS = frozenset({"fs.read", "fs.write", "proc.exec", "net.egress", "data.read", "data.write", "money"})
"""The capability labels signoff knows: what a call does, whatever its tool is named."""


FREE = frozenset("body caption comment content contents message new_text note subject text".split())
"""Names of arguments that hold what is written, not where or what for."""


class Veiled(str):
    """Stands for a secret in a call's arguments: tells it from others and says nothing about it. No rule judges it."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call with its final arguments, and where in which run it was made."""

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The arguments as JSON values, validated: what the tool would be given."""
    toolset: str | None = None
    worker: tuple[str, ...] = ()
    """The chain of workers, outermost first, that led to the call."""
    labels: frozenset[str] = frozenset()
    claimed: frozenset[str] = frozenset()
    """Labels that whoever offers the tool claims for it: they may make policy stricter, never more lenient."""
    deps: Any = field(default=None, compare=False, repr=False)
    """The run's own dependencies, for `deps` conditions."""
    start: str = ""
    """The directory that relative paths in the arguments start from; empty: wherever a policy's own start."""
    directory: str = ""
    """That directory as remembered answers name it: from the project's own directory, where it is inside."""
    roams: bool = field(default=False, compare=False)
    """Whether whoever makes the call also chooses `start`. Rules about commands are then about the policy's directory,
    and a command elsewhere is judged as if a `cd` had led there."""
    also: str = ""
    """Another directory that they may start from, where nobody said which: rules look at both."""
    resolved: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    """For arguments that are paths: the text as written -> where it leads once links are followed."""
    prefix: str = field(default="", compare=False)
    """For a command line: what may be remembered of it, with `*` for names that may vary, as `pytest -x *`."""
    sensitive: tuple[str, ...] = field(default=(), compare=False)
    """Names of arguments that are paths of files known to hold secrets or settings, or to be run by tools."""
    unreadable: tuple[str, ...] = ()
    """Arguments that have no JSON form, each with what it is. They make policy ask."""
    call_id: str = ""
    run_id: str = ""
    conversation_id: str = ""
    path: str = ""
    """Call ids from the outermost run down to this call, as `a-1/b-2`."""
    schema_hash: str = ""
    """Digest of the tool's argument schema when the call was made."""

    @classmethod
    def made(cls, fields: Mapping[str, Any]) -> Call:
        """A call from its fields, `args` and `resolved` among them: every judged call is made so, for speed."""
        call = object.__new__(cls)
        call.__dict__.update(fields)
        return call

    def changed(self, **fields: Any) -> Call:
        """A copy with other values in some fields: `dataclasses.replace`, several times faster."""
        call = object.__new__(Call)
        held = call.__dict__
        held.update(self.__dict__)
        for name in _DERIVED if "args" in fields or "tool" in fields else _FROM_PLACE:
            held.pop(name, None)
        held.update(fields)
        return call

    @cached
    def fingerprint(self) -> str:
        """Digest of tool and arguments: equal exactly when both are equal as JSON values."""
        return digest_of(f'{{"args":{self.args_text},"tool":{canonical(self.tool)}}}')

    @cached
    def args_text(self) -> str:
        """The canonical text of the arguments: worked out once, as much is made of it."""
        return canonical(self.args)

    @cached
    def args_digest(self) -> str:
        """Digest of the arguments alone: what an approval is bound to."""
        return digest_of(self.args_text)

    @cached
    def memory_key(self) -> str:
        """As `fingerprint`, but the Unicode form of texts does not matter. Remembered decisions are found by it."""
        if self.args_text.isascii() and self.tool.isascii():  # then there is but one form
            return self.fingerprint
        return digest(same_form({"args": self.args, "tool": self.tool}))

    @property
    def free(self) -> tuple[str, ...]:
        """Names of the arguments that hold what is written; the others say where, or what for."""
        return tuple(name for name, value in self.args.items() if is_free(name, value))

    @cached
    def target_key(self) -> str:
        """As `memory_key` for one tool in one directory, whatever is written: the arguments in `free` are left out."""
        free = self.free
        fixed = {name: value for name, value in self.args.items() if name not in free}
        # "folder" is part of keys that stores hold
        whose = {"toolset": self.toolset, "agent": self.agent, "folder": self.directory}
        return digest(same_form({"args": fixed, "tool": self.tool, **whose}))

    @property
    def likeness(self) -> tuple[str, str]:
        """By what calls of one tool are known to be like each other: `target_key` and `memory_key`.

        A call whose arguments have no canonical form is like no other.
        """
        try:
            return self.target_key, self.memory_key
        except CannotCanonicalise:
            return f"?{self.key}", f"?{self.key}"

    @cached
    def key(self) -> str:
        """What identifies this call among all calls: providers reuse call ids, so its run belongs to it."""
        return f"{self.run_id}:{self.path or self.call_id}"

    @property
    def agent(self) -> str:
        """The agent whose own tool it is; empty for the tool of a toolset, which has the same one for all agents."""
        return self.worker[-1] if self.toolset is None and self.worker else ""

    @property
    def chain(self) -> str:
        """The worker chain and the tool for people: `triage > analyzer > shell`."""
        return " > ".join((*self.worker, self.tool))


def is_free(name: str, value: object) -> bool:
    """Whether an argument holds what is written, so that it may be left open beside a fixed target."""
    return name.casefold() in FREE and isinstance(value, str)


_FROM_PLACE = ("key",)
_DERIVED = (*_FROM_PLACE, "fingerprint", "args_text", "args_digest", "memory_key", "target_key", "prefix", "sensitive")
