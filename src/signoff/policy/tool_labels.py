"""Capability labels by tool name or glob: which of them a tool has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from signoff.core.call import LABELS
from signoff.policy.glob import BadGlob, Glob
from signoff.policy.match_result import Truth
from signoff.policy.phrases import did_you_mean, shown


@lru_cache(maxsize=4_096)
def tool_glob(pattern: str) -> Glob:
    """Return a pattern over names of tools. Raises `BadGlob`."""
    return Glob(pattern, over_names=True)


def labels_of(labels: Mapping[str, Iterable[str]], tool: str) -> frozenset[str]:
    """Return the labels that a tool certainly has."""
    return frozenset(label for pattern, given in labels.items() if _fits(pattern, tool, Truth.YES) for label in given)


def labels_in_doubt(labels: Mapping[str, Iterable[str]], tool: str) -> frozenset[str]:
    """Return the labels that a tool may have, because of characters in its name that no pattern can match for sure.

    They can only make a policy stricter.
    """
    if tool.isprintable():
        return frozenset()
    found = (given for pattern, given in labels.items() if _fits(pattern, tool, Truth.UNKNOWN))
    return frozenset(label for given in found for label in given)


def is_labelled(labelled: Iterable[str], tool: str) -> bool:
    """Return whether one of the names and patterns certainly matches a tool."""
    return any(_fits(pattern, tool, Truth.YES) for pattern in labelled)


def _fits(pattern: str, tool: str, wanted: Truth) -> bool:
    return tool_glob(pattern).find(tool) is wanted


def pattern_problem(pattern: str) -> str | None:
    """Return what is wrong with a name or pattern of tools, or None."""
    try:
        tool_glob(pattern)
    except BadGlob as error:
        return f"bad pattern {shown(pattern)}: {error}"
    return None


def label_problem(label: str) -> str | None:
    """Return what is wrong with a label, or None."""
    return None if label in LABELS else f"unknown label {shown(label)}; {did_you_mean(label, LABELS)}"
