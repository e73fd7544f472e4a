"""Checks of `signoff doctor` on the hooks of coding agents."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from signoff.cli.doctor_findings import ERROR, NOTE, WARNING, Finding
from signoff.outside.hook_check import check_hooks

if TYPE_CHECKING:
    from signoff.config import Settings


def hooked_agents(settings: Settings) -> Sequence[str]:
    """The coding agents whose hook is installed, for the user or for this project."""
    found = check_hooks(os.path.expanduser("~"), settings.directory if settings.file else "")
    return list(dict.fromkeys(one.place.host.title for one in found if one.is_installed))


_RUNS = ("no hook runs", "would run", "lets the call run", "runs unjudged")
"""What problems say with which calls run that nobody allowed."""


def hook_findings(settings: Settings) -> Iterator[Finding]:
    """What prevents installed hooks from working, and agent settings that bypass them."""
    found = check_hooks(os.path.expanduser("~"), settings.directory if settings.file else "")
    hooked = {one.place.agent for one in found if one.is_installed}
    for told in dict.fromkeys(one.version.unknown for one in found if one.version.unknown):
        yield Finding(severity=NOTE, check="hook", what=told)
    for one in found:
        for problem in one.problems if one.place.agent in hooked else ():
            is_old = problem == one.version.problem
            off = is_old or any(words in problem for words in _RUNS)
            fix = f"{one.repair} repairs its entries" if one.repair and not is_old else ""
            yield Finding(severity=ERROR if off else WARNING, check="hook", what=problem, place=one.place.file, fix=fix)
