"""Verdicts and their texts do not depend on the order of sets, which differs from one start of Python to the next."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO

import pytest
from tests.policy.shell.programs.cases_a import CASES_A
from tests.policy.shell.programs.cases_git import CASES_GIT
from tests.profiles import NIGHTLY

LINES = [
    *(command for command, _ in (*CASES_A, *CASES_GIT)[:: 1 if NIGHTLY else 6]),
    "git cat-file -p HEAD:.ssh/id_rsa",
    "git show HEAD:.env HEAD:.npmrc",
    "git diff -- ':(icase).ENV' ':!.netrc'",
]
JUDGE = """
import sys
from signoff.core.call import Call
from signoff.policy.engine import Policy

policy = Policy.from_rules(
    [
        {"deny": {"command": ["rm *", "git push --force *", "npm publish *"]}},
        {"deny": {"path": ["**/.env", "**/*.pem"]}},
        {"allow": {"command": "read-only"}},
    ]
)
for line in sys.stdin.read().split("\\0"):
    print(policy.judge(Call(tool="shell", args={"command": line})))
"""


def judged(seed: str) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", JUDGE]
    done = subprocess.run(
        command, input="\0".join(LINES), env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("seed", ["1"])
def test_texts_are_the_same(seed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO("\0".join(LINES)))
    exec(JUDGE, {})  # with the seed of this process, which is a random one
    here = capsys.readouterr().out.splitlines()
    assert len(here) >= len(LINES)
    assert [pair for pair in zip(here, judged(seed), strict=True) if pair[0] != pair[1]] == []
