"""Who wrote a worker: a person, or another worker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from signoff.config.entries import WorkerFile
from signoff.policy.placed_value import ConfigValue

CREATED_BY = "created_by"
"""Key below `metadata` that holds the name of the worker that wrote the file."""


def creator_of(file: WorkerFile) -> str:
    """Return the worker that wrote this one; empty if a person did.

    Only the file itself counts: what it extends, and the project's defaults, were written by somebody else.
    """
    return writer_of(file.spot)


def writer_of(spot: ConfigValue) -> str:
    """Return the worker that wrote the file that contains a value; empty if a person did."""
    own: Any = spot.document.value
    metadata: Any = cast("Mapping[str, Any]", own).get("metadata") if isinstance(own, Mapping) else None
    name = cast("Mapping[str, Any]", metadata).get(CREATED_BY) if isinstance(metadata, Mapping) else None
    return name if isinstance(name, str) else ""
