"""Metrics of the server for Prometheus.

A label is never a person's name, a tool or a text: there would be too many of them (cardinality), and some would be
secret.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version

BOUNDS = (1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0)
"""Histogram buckets: seconds until a decision."""
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Histogram:
    """A histogram."""

    bounds: tuple[float, ...] = BOUNDS
    counts: list[int] = field(default_factory=list[int])
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str) -> Iterator[str]:
        """Yield the histogram in Prometheus format: buckets are cumulative."""
        count = 0
        for bound, here in zip((*(f"{one:g}" for one in self.bounds), "+Inf"), self.counts, strict=True):
            count += here
            yield f'{name}_bucket{{le="{bound}"}} {count}'
        yield f"{name}_sum {self.total:g}"
        yield f"{name}_count {count}"


@dataclass(slots=True, kw_only=True)
class Meters:
    """Counters since the server started."""

    streams: Callable[[], int] = lambda: 0
    """Clients that follow events now."""
    store_errors: int = 0
    decided: Counter[str] = field(default_factory=Counter[str])
    """By the final state of a request."""
    time_to_decision: Histogram = field(default_factory=Histogram)
    resumes: Counter[str] = field(default_factory=Counter[str])
    """`ok`: it continued to its end or to its next request. `failed`: it could not."""
    answers: Counter[str] = field(default_factory=Counter[str])
    """HTTP responses by the first digit of the status."""
    in_hand: Callable[[], int] = lambda: 0
    """Runs that are executed here now."""

    def text(self, waiting: Mapping[str, int]) -> str:
        """Return all metrics in Prometheus format; `waiting` are requests by state."""
        build = version("signoff").replace("\\", "").replace('"', "")
        parts = (
            _metric("signoff_build_info", "gauge", "The version of signoff.", [f'{{version="{build}"}} 1']),
            _metric("signoff_requests_waiting", "gauge", "Requests that wait for a person.", _by("state", waiting)),
            _metric("signoff_requests_decided_total", "counter", "Requests settled.", _by("state", self.decided)),
            _named(
                "signoff_decision_seconds",
                "histogram",
                "Seconds from the question to the decision.",
                self.time_to_decision.lines("signoff_decision_seconds"),
            ),
            _metric("signoff_runs_in_hand", "gauge", "Runs that this server executes now.", [f" {self.in_hand()}"]),
            _metric("signoff_resumes_total", "counter", "Runs that were resumed.", _by("result", self.resumes)),
            _metric("signoff_event_streams", "gauge", "Clients that follow events.", [f" {self.streams()}"]),
            _metric("signoff_store_errors_total", "counter", "Errors of the store.", [f" {self.store_errors}"]),
            _metric("signoff_http_responses_total", "counter", "HTTP responses.", _by("status", self.answers)),
        )
        return "".join(f"{line}\n" for part in parts for line in part)


def _by(label: str, counts: Mapping[str, int]) -> list[str]:
    return [f'{{{label}="{value}"}} {count}' for value, count in sorted(counts.items())]


def _metric(name: str, kind: str, about: str, values: Iterable[str]) -> Iterator[str]:
    return _named(name, kind, about, (f"{name}{value}" for value in values))


def _named(name: str, kind: str, about: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"
    yield from lines
