"""Whether somebody cancels what runs here, or it ended with `CancelledError` by itself."""

from __future__ import annotations

import asyncio


def is_cancelled() -> bool:
    """Return whether the current task was cancelled. An exception of that name may also come from what it awaits."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
