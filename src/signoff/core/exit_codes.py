"""Exit codes of the program `signoff`."""

from __future__ import annotations

FAILED = 1
"""The work failed: the agent raised, or a check found something."""
WRONG_USE = 2
"""The command line or a file is wrong."""
WAITING = 3
"""A run waits for people."""
DENIED = 4
"""Every call of the run was denied, or a denial was raised."""
