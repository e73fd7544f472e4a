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
    """The validated arguments as JSON values: what the tool would get."""
    toolset: str | None = None
    worker: tuple[str, ...] = ()
    """The chain of workers, outermost first, that led to the call."""
    labels: frozenset[str] = frozenset()
    claimed: frozenset[str] = frozenset()
    """Labels that the provider of the tool claims for it. They can make policy stricter, never more lenient."""
    deps: Any = field(default=None, compare=False, repr=False)
    """The run's own dependencies, for `deps` conditions."""
    start: str = ""
    """The directory that relative paths in the arguments start from; empty: the policy's own."""
    directory: str = ""
    """That directory as remembered answers name it: relative to the project's directory, if it is inside."""
    roams: bool = field(default=False, compare=False)
    """Whether the caller also chooses `start`. Rules about commands are then about the policy's directory,
    and a command elsewhere is judged as if a `cd` had led there."""
    also: str = ""
    """Another possible start directory, if the call does not say which one it is: rules check both."""
    resolved: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    """For arguments that are paths: the text as written -> the path after links are followed."""
    prefix: str = field(default="", compare=False)
    """For a command line: the part that may be remembered, with `*` for names that may vary, as in `pytest -x *`."""
    sensitive: tuple[str, ...] = field(default=(), compare=False)
    """Names of arguments that are paths of files known to hold secrets or settings, or to be run by tools."""
    unreadable: tuple[str, ...] = ()
    """Arguments without a JSON form, each with its type. They make policy ask."""
    call_id: str = ""
    run_id: str = ""
    conversation_id: str = ""
    path: str = ""
    """Call ids from the outermost run down to this call, as `a-1/b-2`."""
    schema_hash: str = ""
    """Digest of the tool's argument schema when the call was made."""

    @classmethod
    def made(cls, fields: Mapping[str, Any]) -> Call:
        """Create a call from its fields, including `args` and `resolved`. The gate uses it for speed."""
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
        """The canonical text of the arguments, computed once."""
        return canonical(self.args)

    @cached
    def args_digest(self) -> str:
        """Digest of the arguments alone: what an approval is bound to."""
        return digest_of(self.args_text)

    @cached
    def memory_key(self) -> str:
        """As `fingerprint`, but ignores the Unicode form of texts. Remembered answers are found by it."""
        if self.args_text.isascii() and self.tool.isascii():  # then there is but one form
            return self.fingerprint
        return digest(same_form({"args": self.args, "tool": self.tool}))

    @property
    def free(self) -> tuple[str, ...]:
        """Names of the arguments that hold content; the others say where it goes, or what for."""
        return tuple(name for name, value in self.args.items() if is_free(name, value))

    @cached
    def target_key(self) -> str:
        """As `memory_key` for one tool in one directory, without the arguments in `free`."""
        free = self.free
        fixed = {name: value for name, value in self.args.items() if name not in free}
        # "folder" is part of keys that stores hold
        whose = {"toolset": self.toolset, "agent": self.agent, "folder": self.directory}
        return digest(same_form({"args": fixed, "tool": self.tool, **whose}))

    @property
    def likeness(self) -> tuple[str, str]:
        """The keys that similar calls of one tool share: `target_key` and `memory_key`.

        A call whose arguments have no canonical form is similar to no other call.
        """
        try:
            return self.target_key, self.memory_key
        except CannotCanonicalise:
            return f"?{self.key}", f"?{self.key}"

    @cached
    def key(self) -> str:
        """Identifies this call among all calls. It contains the run, because providers reuse call ids."""
        return f"{self.run_id}:{self.path or self.call_id}"

    @property
    def agent(self) -> str:
        """The agent that the tool belongs to; empty for a tool of a toolset, which all agents share."""
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
