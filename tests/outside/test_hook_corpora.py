"""The public corpora as commands of a coding agent: its hook, by the policy that `signoff init` writes for it."""

from __future__ import annotations

import pytest
from benchmarks import corpora
from benchmarks.hook_corpora import hook_allows
from benchmarks.sample_commands import DANGEROUS, HARMLESS

from signoff.policy.shell.command_facts import read_shell
from signoff.policy.shell.typed_commands import typed_into

_PYTEST = (
    "-c --config-file -o --override-ini -p --confcutdir --basetemp --log-file --junitxml --junit-xml --debug "
    "--pastebin --cov-report --cov-config --html --report-log --json-report-file --benchmark-json --benchmark-storage"
)
WRITING = {
    "pytest": _PYTEST,
    "python -m pytest": _PYTEST,
    "ruff check": "--fix --fix-only --unsafe-fixes --add-noqa -o --output-file --config --cache-dir",
    "mypy": "--config-file --junit-xml --cache-dir --python-executable --install-types --any-exprs-report "
    "--cobertura-xml-report --html-report --linecount-report --linecoverage-report --lineprecision-report --txt-report "
    "--xml-report --xslt-html-report --xslt-txt-report",
    "pyright": "-p --project --pythonpath --venvpath --createstub --writebaseline --baselinefile",
}
"""Options that write or delete at a given path, or load other settings."""
MOST_ASKED = 0.002
"""Lower it when it can be; never raise it."""


@pytest.mark.skipif(
    not corpora.DIRECTORY.is_dir(), reason="the corpora are not part of the project and do not stand beside it"
)
@pytest.mark.nightly
@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_no_dangerous_command_runs_unasked_and_few_harmless_ones_are_asked_about(agent: str) -> None:
    cases = list(corpora.shell_cases())
    allowed = hook_allows([case.text for case in cases], agent)
    asked = [case.text for case, one in zip(cases, allowed, strict=True) if not case.dangerous and not one]

    assert [case.text for case, one in zip(cases, allowed, strict=True) if case.dangerous and one] == []
    assert len(asked) <= MOST_ASKED * sum(not case.dangerous for case in cases), asked


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_our_own_sample(agent: str) -> None:
    assert not any(hook_allows(DANGEROUS, agent))
    asked = [line for line, one in zip(HARMLESS, hook_allows(HARMLESS, agent), strict=True) if not one]
    assert [line for line in asked if agent != "codex" or not typed_into(read_shell(line))] == []
    assert len(asked) <= 0.02 * len(HARMLESS), asked


def test_no_option_that_writes_rides_on_a_rule_that_allows_tests() -> None:
    plain = [
        "pytest",
        "pytest -q tests -k name",
        "python -m pytest -x tests/a.py",
        "ruff check src",
        "mypy .",
        "pyright",
    ]
    writing = [f"{one} {option}{value}" for one, options in WRITING.items() for option in options.split()
               for value in ("", "=.git/hooks/x", " .git/hooks/x")]  # fmt: skip
    more = ["pytest --junit=.git/hooks/x", "pytest -qo log_file=.git/hooks/x", "pytest -plugin", "ruff check . --fix"]

    assert all(hook_allows(plain))
    assert [line for line, one in zip(writing + more, hook_allows(writing + more), strict=True) if one] == []
