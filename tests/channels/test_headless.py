"""Where nobody can answer, nothing is asked and nothing is approved."""

from __future__ import annotations

import os
import pickle
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pexpect
import pytest
from rich.console import Console
from tests import start
from tests.channels.person import ROOT, request

from signoff.channels import headless_approver, terminal_approver
from signoff.channels.terminal import NobodyHere, TerminalApprover
from signoff.core.mode import ApprovalMode
from signoff.errors import WrongUse
from signoff.ports import Approver

MODES = list(ApprovalMode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [terminal_approver, lambda: terminal_approver(Console(file=StringIO()))])
def test_not_a_terminal(make: Any, mode: ApprovalMode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO("a\ny\nall\n"))
    for decision in (make().choose(request(), mode=mode), *make().choose_all([request(), request()], mode=mode)):
        assert not decision.approved
        assert decision.note == "no terminal to ask at"
        assert decision.by is None


def test_park(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO("a\n"))
    for approver in (terminal_approver(headless="park"), headless_approver("park")):
        with pytest.raises(NobodyHere):
            approver.choose(request(), mode=ApprovalMode.INTERACTIVE)
        with pytest.raises(NobodyHere):
            approver.choose_all([request()], mode=ApprovalMode.INTERACTIVE)


@pytest.mark.parametrize("mode", MODES)
def test_the_headless_approver_never_approves(mode: ApprovalMode) -> None:
    assert not headless_approver().choose(request(), mode=mode).approved
    assert isinstance(headless_approver(), Approver)
    assert isinstance(terminal_approver(), Approver)


def test_there_is_no_third_way() -> None:
    with pytest.raises(WrongUse, match="'deny' or 'park'"):
        TerminalApprover(headless="allow")  # type: ignore[arg-type]


def test_a_closed_or_missing_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = StringIO()
    closed.close()
    for stdin in (None, closed):
        monkeypatch.setattr(sys, "stdin", stdin)
        assert not terminal_approver().choose(request(), mode=ApprovalMode.INTERACTIVE).approved


def asked(directory: Path, **how: Any) -> list[str]:
    standard = {"waits": False, "withdraws": [], "in_main_thread": False, "options": {}}
    directory.joinpath("asked.pickle").write_bytes(pickle.dumps({"batches": [[request()]]} | standard | how))
    return [sys.executable, str(Path(__file__).with_name("asked.py")), str(directory)]


def test_piped_answers_are_not_read(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = start.run(asked(tmp_path), input="a\n", capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "the program goes on\n"
    assert done.stderr == ""
    ((decision,),) = pickle.loads(tmp_path.joinpath("decided.pickle").read_bytes())
    assert not decision.approved


def shell(directory: Path, line: str) -> pexpect.spawn[bytes]:
    environment = {"PATH": os.environ["PATH"], "TERM": "dumb", "PYTHONPATH": str(ROOT / "src"), "LANG": "C.UTF-8"}
    return start.terminal(["/bin/sh", "-c", line], cwd=directory, env=environment, timeout=30)


def test_output_may_go_elsewhere(tmp_path: Path) -> None:
    """As a user starts it: a shell, and a Python that loads everything itself. So do the two tests below."""
    program = shell(tmp_path, f"exec {' '.join(asked(tmp_path))} > out.txt")
    program.expect_exact("your answer > ")
    program.send("a\r")
    program.expect(pexpect.EOF)
    program.close()
    assert tmp_path.joinpath("out.txt").read_text() == "the program goes on\n"
    ((decision,),) = pickle.loads(tmp_path.joinpath("decided.pickle").read_bytes())
    assert decision.approved


@pytest.mark.nightly  # by day `test_not_a_terminal` asks whoever sees nothing, without a shell
def test_where_a_card_cannot_be_seen_nothing_is_asked(tmp_path: Path) -> None:
    program = shell(tmp_path, f"{' '.join(asked(tmp_path))} > out.txt 2>&1; echo done")
    program.expect_exact("done")
    program.close()
    ((decision,),) = pickle.loads(tmp_path.joinpath("decided.pickle").read_bytes())
    assert decision.note == "no terminal to ask at"


def test_in_the_background_nothing_is_asked(tmp_path: Path) -> None:
    """A program in the background that reads from the terminal would be stopped, and wait for ever."""
    program = shell(tmp_path, f"set -m; {' '.join(asked(tmp_path))} & wait; echo done")
    program.expect_exact("the program goes on")
    program.expect_exact("done")
    program.close()
    ((decision,),) = pickle.loads(tmp_path.joinpath("decided.pickle").read_bytes())
    assert decision.note == "no terminal to ask at"


def test_making_an_approver_loads_nothing_heavy_before_it_is_needed() -> None:
    code = """
import sys, signoff.channels
print("rich" in sys.modules, "pydantic_ai" in sys.modules)
signoff.channels.terminal_approver()
print("textual" in sys.modules)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    assert start.fresh(code, env=environment) == "False False\nFalse\n"
