"""The page of faults that were found names tests that exist."""

from __future__ import annotations

import re

from tests.meta.test_mission import ROOT, all_tests

PAGE = ROOT / "docs" / "internals" / "found.md"


def test_every_fault_names_a_test_that_exists() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ") and "---" not in line]
    named = {row: re.findall(r"`(tests/[^`]+::\w+)`", row) for row in rows if not row.startswith("| fault ")}
    assert len(named) > 50
    assert {row: tests for row, tests in named.items() if len(tests) != 1 or tests[0] not in all_tests()} == {}
