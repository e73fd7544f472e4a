"""A gate that is made inside an event loop touches the disk in a thread, when its first run begins."""

from __future__ import annotations

import builtins
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.gate.agents import Till, agent_with, pays

from signoff import ApprovalDecision, ApprovalMemory, Signoff, resume
from signoff.errors import PolicyError, WrongFile
from signoff.testing import ScriptedApprover

OF_OS = ("getcwd", "stat", "lstat", "readlink", "open", "mkdir", "listdir", "scandir")


@pytest.fixture
def touched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What this thread did on the disk, for signoff, from now on."""
    found: list[str] = []
    loop = threading.get_ident()

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def watch(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == loop and args != (":memory:",):  # a database without a file
                found.append(f"{name}{args}")
            return function(*args, **kwargs)

        return watch

    for name in OF_OS:
        monkeypatch.setattr(os, name, watched(name, getattr(os, name)))
    monkeypatch.setattr(builtins, "open", watched("open", open))
    monkeypatch.setattr(sqlite3, "connect", watched("connect", sqlite3.connect))
    return found


async def test_rules_are_judged_without_the_disk(touched: list[str]) -> None:
    till = Till()
    ui = ScriptedApprover(["approve"])
    signoff = Signoff([{"allow": "look"}, {"ask": "pay"}], approver=ui, memory=ApprovalMemory(file=None))
    await agent_with(signoff, pays(1), till).run("go")
    assert (till.paid, touched) == ([(1, "shop")], [])


async def test_a_policy_file_is_read_and_a_store_is_opened_in_a_thread(tmp_path: Path, touched: list[str]) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text("policy:\n  - allow: pay\n")
    touched.clear()
    signoff = Signoff(file, store=f"sqlite:{tmp_path}/approvals.db")
    await signoff.ready()
    assert touched == []
    assert signoff.broker.store.is_durable
    till = Till()
    await agent_with(signoff, pays(1), till).run("go")
    assert till.paid == [(1, "shop")]


async def test_asking_answering_and_resuming_touch_the_store_alone(tmp_path: Path, touched: list[str]) -> None:
    """The key that signs the audit log is read in a thread, too; an SQLite file is read in place."""
    touched.clear()
    signoff = Signoff([{"ask": "pay"}], store=f"sqlite:{tmp_path}/approvals.db", wait="suspend")
    till = Till()
    agent = agent_with(signoff, pays(1), till, suspends=True)
    result = await agent.run("go")
    [request] = await signoff.pending()
    await signoff.answer(request.id, ApprovalDecision(approved=True), by="ana")
    await resume(agent, result)
    await signoff.broker.signing.sign_if_due()
    assert till.paid == [(1, "shop")]
    assert [one for one in touched if "approvals.db" not in one and one != "getcwd()"] == []


async def test_a_wrong_file_is_an_error_when_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text("policy:\n  - alow: pay\n")
    signoff, till = Signoff(file), Till()
    with pytest.raises(WrongFile):
        await signoff.ready()
    with pytest.raises(WrongFile):
        await agent_with(signoff, pays(1), till).run("go")
    assert till.paid == []


async def test_wrong_rules_are_an_error_at_once() -> None:
    with pytest.raises(PolicyError):
        Signoff([{"alow": "pay"}])


def test_outside_a_loop_a_wrong_file_is_an_error_at_once(tmp_path: Path) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text("policy:\n  - alow: pay\n")
    with pytest.raises(WrongFile):
        Signoff(file)


async def test_a_gate_can_be_looked_at_before_its_first_run(tmp_path: Path) -> None:
    signoff = Signoff([{"allow": "pay"}], store=f"sqlite:{tmp_path}/approvals.db")
    assert await signoff.pending() == []
    assert signoff.policies[0].root is not None
