"""Make policies from values, and from lists of rules inside files."""

from __future__ import annotations

from signoff.policy.engine import Policy
from signoff.policy.parse import parse_rules, read_rules
from signoff.policy.placed_value import ConfigValue


def parse_policy(value: object, *, file: str = "<rules>", name: str = "", root: str | None = None) -> Policy:
    """Make a policy from a list of rules, from a mapping or a `Document` with `policy`, or from YAML text.

    `root` is the absolute directory that relative paths start from. Raises `PolicyError` with the place and the fix.
    """
    return Policy(name=name, root=root, **parse_rules(value, file=file, name=name, root=root)._asdict())


def read_policy(spot: ConfigValue, *, name: str = "", root: str | None = None) -> Policy:
    """Read a policy from a list of rules anywhere in a file."""
    return Policy(name=name, root=root, **read_rules(spot, name=name, root=root)._asdict())
