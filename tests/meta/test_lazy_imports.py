"""Nothing is imported before it is needed: the front door and every command that runs no agent stay light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import signoff

HEAVY = ("pydantic_ai", "pydantic", "sqlglot", "tree_sitter", "starlette", "uvicorn", "psycopg", "textual", "discord")

PROBE = """
import sys
try:
    from signoff.cli.main import main
    main()
except SystemExit as end:
    code = end.code or 0
else:
    code = 0
print("LOADED", code, *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def loaded_by(code: str, *arguments: str, cwd: Path | None = None) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, cwd=cwd)
    return next(line for line in done.stderr.splitlines() if line.startswith("LOADED")).split()[1:]


def test_importing_signoff_loads_next_to_nothing() -> None:
    modules = loaded_by(
        "import sys; before = set(sys.modules); import signoff; print('LOADED', *sorted(set(sys.modules) - before), "
        "file=sys.stderr)"
    )
    ours = [name for name in modules if name.startswith("signoff")]
    assert ours == ["signoff"]
    assert not {"click", "rich", "yaml", *HEAVY} & {name.partition(".")[0] for name in modules}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["nonsense"],
        ["demo", "--help"],
        ["run", "--help"],
        ["init", "new"],
        ["policy", "--help"],
        ["policy", "check", "signoff.yaml"],
        ["policy", "explain", "signoff.yaml", "--tool", "pay", "--args", "{}"],
        ["policy", "judge", "signoff.yaml", "calls.jsonl"],
    ],
    ids=" ".join,
)
def test_a_command_that_runs_no_agent_stays_light(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "signoff.yaml").write_text("policy:\n  - allow: look\n")
    (tmp_path / "calls.jsonl").write_text('{"tool": "look", "args": {}}\n')
    code, *modules = loaded_by(PROBE, *arguments, cwd=tmp_path)
    assert code == ("2" if arguments == ["nonsense"] else "0")
    assert not set(HEAVY) & set(modules)
    if "--help" in arguments:
        assert not {"rich", "yaml", "asyncio"} & set(modules), "help needs nothing but the command table"


def test_the_front_door_is_counted() -> None:
    assert signoff.__all__ == sorted(
        """
        Answerer ApprovalBlocked ApprovalDecision ApprovalDenied ApprovalError ApprovalMemory ApprovalMode
        ApprovalRequest ApprovalUI Call Effect Policy Signoff SignoffError SuspendedRun Verdict
        build_approval_requests collect_approvals collect_approvals_sync load_policy resume
        run_with_approval run_with_approval_sync
        """.split()
    )
    for name in signoff.__all__:
        assert getattr(signoff, name) is not None
    assert set(signoff.__all__) <= set(dir(signoff))
    with pytest.raises(AttributeError, match="nothing"):
        signoff.nothing  # noqa: B018
