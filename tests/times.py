"""Where the time of a test run goes: the slowest files and the totals by directory, at the end of a whole run.

What fails is named as soon as it does.

A run remembers in pytest's cache how long each file took, and the next one begins with the longest, so that no long
test is left for the end. Without that memory it begins with the directories that are known to take long.
"""

from __future__ import annotations

import json
import resource
from collections import defaultdict
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

MEMORY = "signoff/seconds"
LONG = ("crash", "nested", "examples", "docs", "cli", "toolsets", "meta", "channels", "contracts")
"""Directories of long tests, the longest first, for a run that remembers nothing."""
WHOLE = 1_000
"""Tests that make a run worth a summary."""


@dataclass
class Spent:
    """Tests, and what they took. CPU time is that of the test's process and of the children it waited for."""

    tests: int = 0
    wall: float = 0.0
    cpu: float = 0.0

    def add(self, other: Spent) -> None:
        self.tests += other.tests
        self.wall += other.wall
        self.cpu += other.cpu


def used() -> float:
    """CPU seconds of this process so far, with those of its children that have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


class Measuring:
    """In the process that runs tests: tells with every report how much CPU time went into it."""

    def __init__(self) -> None:
        self._before = used()

    def pytest_runtest_logstart(self) -> None:
        self._before = used()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report = yield
        now = used()
        report.cpu = now - self._before
        self._before = now
        return report


PASSED = "signoff: passed"


class Brief:
    """Between test workers and the process that a person looks at: what passed is told in one short text.

    Three reports a test, each with all keywords of the test, are most of what that process has to do.
    """

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_to_serializable(self, config: pytest.Config, report: Any) -> dict[str, Any] | None:
        is_plain = isinstance(report, pytest.TestReport) and report.passed and not hasattr(report, "wasxfail")
        if not is_plain or report.user_properties or {*"PA"} & {*config.getoption("reportchars")}:
            return None  # as pytest does it
        told = [report.nodeid, report.location, report.when, report.duration, report.start, report.stop]
        return {"$report_type": PASSED, "told": json.dumps([*told, getattr(report, "cpu", 0.0)])}

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_from_serializable(self, data: dict[str, Any]) -> pytest.TestReport | None:
        if data.get("$report_type") != PASSED:
            return None
        nodeid, location, when, duration, start, stop, cpu = json.loads(data["told"])
        where = tuple(location)
        return pytest.TestReport(
            nodeid, where, {}, "passed", None, when, duration=duration, start=start, stop=stop, cpu=cpu
        )


class Summary:
    """In the process that a person looks at: adds up what the reports tell."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._files: defaultdict[str, Spent] = defaultdict(Spent)

    def pytest_runtest_logreport(self, report: Any) -> None:
        file = report.nodeid.partition("::")[0]
        self._files[file].add(Spent(report.when == "call", report.duration, getattr(report, "cpu", 0.0)))
        if report.failed:
            self._tell_at_once(report)

    def _tell_at_once(self, report: Any) -> None:
        """Name what failed when it does: a night that is cut off says nothing at its end."""
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = str(crash.message).partition("\n")[0][:200] if crash is not None else ""
            terminal.write(f"\nfailed: {report.nodeid} ({report.when}) {why}\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if sum(spent.tests for spent in self._files.values()) < WHOLE:
            return
        self._remember()
        directories: defaultdict[str, Spent] = defaultdict(Spent)
        for file, spent in self._files.items():
            directories["/".join(file.split("/")[:2])].add(spent)
            directories["total"].add(spent)
        slowest = sorted(self._files.items(), key=_wall, reverse=True)[:10]
        for title, rows in (("slowest files", slowest), ("by directory", sorted(directories.items(), key=_wall))):
            terminalreporter.section(title)
            terminalreporter.line(f"{'tests':>7} {'wall s':>8} {'CPU s':>8}")
            for name, spent in rows:
                terminalreporter.line(f"{spent.tests:>7} {spent.wall:>8.1f} {spent.cpu:>8.1f}  {name}")

    def _remember(self) -> None:
        if getattr(self._config, "cache", None) is not None:
            known = dict(self._config.cache.get(MEMORY, {}))
            taken = {file: round(spent.wall, 1) for file, spent in self._files.items()}
            self._config.cache.set(MEMORY, known | taken)


def _wall(row: tuple[str, Spent]) -> float:
    return row[1].wall


def longest_first(items: list[pytest.Item], seconds: Mapping[str, float]) -> None:
    """Put the files that take longest in front; the tests of a file stay together and in their order."""
    counts: defaultdict[str, int] = defaultdict(int)
    for item in items:
        counts[_file(item)] += 1

    def rank(item: pytest.Item) -> tuple[float, int]:
        file = _file(item)
        directory = file.split("/")[1] if "/" in file else ""
        return -seconds.get(file, 0.0) / counts[file], LONG.index(directory) if directory in LONG else len(LONG)

    items.sort(key=rank)


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Measuring())
    config.pluginmanager.register(Brief())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Summary(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    longest_first(items, config.cache.get(MEMORY, {}) if getattr(config, "cache", None) else {})
