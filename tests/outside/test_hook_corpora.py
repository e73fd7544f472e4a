"""The public corpora as commands of a coding agent: its hook, by the policy that `signoff init` writes for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import corpora
from benchmarks.hook_corpora import hook_allows
from benchmarks.sample_commands import DANGEROUS, HARMLESS

from signoff.cli.coding_policy import WRITING, coding_policy

MOST_ASKED = 0.002
"""Lower it when it can be; never raise it."""


@pytest.mark.skipif(
    not corpora.DIRECTORY.is_dir(), reason="the corpora are not part of the project and do not stand beside it"
)
@pytest.mark.nightly
def test_no_dangerous_command_runs_unasked_and_few_harmless_ones_are_asked_about() -> None:
    cases = list(corpora.shell_cases())
    allowed = hook_allows([case.text for case in cases])
    asked = [case.text for case, one in zip(cases, allowed, strict=True) if not case.dangerous and not one]

    assert [case.text for case, one in zip(cases, allowed, strict=True) if case.dangerous and one] == []
    assert len(asked) <= MOST_ASKED * sum(not case.dangerous for case in cases), asked


def test_our_own_sample() -> None:
    assert not any(hook_allows(DANGEROUS))
    assert [line for line, one in zip(HARMLESS, hook_allows(HARMLESS), strict=True) if not one] == []


def test_no_option_that_writes_rides_on_a_rule_that_allows_tests() -> None:
    plain = [
        "pytest",
        "pytest -q tests -k name",
        "python -m pytest -x tests/a.py",
        "ruff check src",
        "mypy .",
        "pyright",
    ]
    writing = [f"{one[:-2]} {option}{value}" for one, options in WRITING.items() for option in options.split()
               for value in ("", "=.git/hooks/x", " .git/hooks/x")]  # fmt: skip
    more = ["pytest --junit=.git/hooks/x", "pytest -qo log_file=.git/hooks/x", "pytest -plugin", "ruff check . --fix"]

    assert all(hook_allows(plain))
    assert [line for line, one in zip(writing + more, hook_allows(writing + more), strict=True) if one] == []


def test_a_project_without_such_programs_has_no_rule_about_them(tmp_path: Path) -> None:
    assert "options-that-write" not in coding_policy(tmp_path)
