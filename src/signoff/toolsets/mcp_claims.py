"""Convert the tool annotations of an MCP server into claimed labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from signoff.policy.tool_labels import is_labelled


def labels_claimed(name: str, annotations: Mapping[str, Any] | None, labelled: Iterable[str]) -> frozenset[str]:
    """The labels that a server claims for a tool.

    `labelled` are names or globs of tools that the project labelled itself.
    """
    return frozenset(_claimed(name, annotations or {}, labelled))


def _claimed(name: str, said: Mapping[str, Any], labelled: Iterable[str]) -> Iterator[str]:
    reads = said.get("readOnlyHint")
    if reads is True:
        yield "data.read"
    # By the protocol, a tool without annotations may write. A label of the project takes precedence over that default.
    silent = reads is None and not is_labelled(labelled, name)
    if reads is False or said.get("destructiveHint") is True or silent:
        yield "data.write"
    if said.get("openWorldHint") is True:
        yield "net.egress"
