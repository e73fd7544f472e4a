"""`Caller`: what flags and environment variables add to the policy. They can only make it stricter."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from signoff.config.files import PROJECT_FILE, from_here, text_of
from signoff.config.stricter_layers import refuse_loosening
from signoff.core.run import RunSetup
from signoff.policy.composer import read_document
from signoff.policy.engine import Policy
from signoff.policy.parse import policy_in
from signoff.policy.phrases import shown
from signoff.policy.placed_value import ConfigValue
from signoff.policy.policy_source import read_policy

LAYER = "caller"
FILE_LAYER = "environment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The caller's layer: tools to ask about and to deny, by name or glob, and files with more rules."""

    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Absolute paths, because a run may be resumed from anywhere."""

    @classmethod
    def here(cls, ask: Iterable[str] = (), deny: Iterable[str] = ()) -> Caller:
        """Combine the flags with `SIGNOFF_ASK`, `SIGNOFF_DENY` and `SIGNOFF_POLICY`."""
        file = os.environ.get("SIGNOFF_POLICY")
        return cls(
            ask=(*ask, *_listed("SIGNOFF_ASK")),
            deny=(*deny, *_listed("SIGNOFF_DENY")),
            files=(os.path.abspath(file),) if file else (),
        )

    @classmethod
    def of(cls, setup: RunSetup) -> Caller:
        """Return what a saved run was started with. It applies until the run ends, wherever it is resumed."""
        return cls(ask=setup.ask, deny=setup.deny, files=setup.rules)

    def and_also(self, other: Caller) -> Caller:
        """Return the union of both."""
        return Caller(
            ask=_once(self.ask, other.ask), deny=_once(self.deny, other.deny), files=_once(self.files, other.files)
        )

    def layers(self, directory: str) -> tuple[Policy, ...]:
        """Return its layers. Relative paths in a file's rules start from `directory`, the project's."""
        rules = [
            {effect: {"tool": tool}, "reason": f"set when the run was started: --{effect} {tool}"}
            for effect, tools in (("deny", self.deny), ("ask", self.ask))
            for tool in tools
        ]
        own = (Policy.from_rules(rules, file="--ask and --deny", name=LAYER, root=directory),) if rules else ()
        return (*own, *(_rules_in(file, directory) for file in self.files))

    @property
    def told(self) -> str:
        """One line about it for people; empty if it adds nothing."""
        said = (("ask", self.ask), ("deny", self.deny), ("rules of", tuple(map(from_here, self.files))))
        return "; ".join(f"{what} {', '.join(values)}" for what, values in said if values)

    def __bool__(self) -> bool:
        return bool(self.ask or self.deny or self.files)


def _rules_in(file: str, directory: str) -> Policy:
    """Read a file that may hold only rules that make the policy stricter. Raises if it says anything else."""
    name = from_here(file)
    top = ConfigValue.top(read_document(text_of(name, fix="SIGNOFF_POLICY names a file that is not there"), file=name))
    entries = top.entries(("policy",), what="a mapping with `policy`") if top.value is not None else {}
    rules = policy_in(top, entries)
    return refuse_loosening(
        read_policy(rules, name=FILE_LAYER, root=directory),
        rules,
        whose="the rules that SIGNOFF_POLICY names",
        more="let more run",
        instead=f"take it out, or write it in {shown(PROJECT_FILE)}, under `policy`",
        file=PROJECT_FILE,
    )


def _listed(variable: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in os.environ.get(variable, "").split(",") if one.strip())


def _once(*lists: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for values in lists for one in values))
