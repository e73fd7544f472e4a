"""A ratchet on public corpora: no dangerous command is allowed unasked, and few harmless ones are asked about."""

from __future__ import annotations

import pytest
from benchmarks import corpora

pytestmark = pytest.mark.skipif(
    not corpora.DIRECTORY.is_dir(), reason="the corpora are not part of the project and do not stand beside it"
)

MOST_ASKED = 0.01
"""Lower it when it can be; raise it only for what an attack took back, as `zgrep`, which evaluates its words."""


def allowed(toolset: str) -> list[tuple[corpora.Case, bool]]:
    cases = list(corpora.shell_cases())
    verdicts = corpora.judged({"tool": "shell", "toolset": toolset, "args": {"command": case.text}} for case in cases)
    return [(case, verdict == "allow") for case, verdict in zip(cases, verdicts, strict=True)]


@pytest.mark.parametrize("toolset", ["shell_readonly", "shell_file_ops"])
def test_shell(toolset: str) -> None:
    judged = allowed(toolset)
    asked = [case.text for case, one in judged if not case.dangerous and not one]

    assert [case.text for case, one in judged if case.dangerous and one] == []
    assert len(asked) <= MOST_ASKED * sum(not case.dangerous for case, _ in judged), asked
