"""Fair scheduling of runs between projects, so that no project starves behind the runs of others."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from signoff.broker.run_status import RunStatus

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def fair_order(
    found: Iterable[RunStatus], going: Iterable[str], project_of: Callable[[RunStatus], str]
) -> Sequence[RunStatus]:
    """Sort runs: first the project with the fewest runs in progress; within a project, the oldest answer.

    `going` are the projects of the runs in progress, one entry for each run.
    """
    lines: defaultdict[str, deque[RunStatus]] = defaultdict(deque)
    for status in sorted(found, key=ready_since):
        lines[project_of(status)].append(status)
    busy, ordered = Counter(going), list[RunStatus]()
    while lines:
        name = min(lines, key=lambda one: (busy[one], ready_since(lines[one][0])))
        ordered.append(lines[name].popleft())
        busy[name] += 1
        if not lines[name]:
            del lines[name]
    return ordered


def ready_since(status: RunStatus) -> datetime:
    """Return when its first answer came; without answers, when the run last changed."""
    moments = [one.at for one in status.answered if one.at is not None]
    return min(moments, default=status.run.changed_at or _LONG_AGO)
