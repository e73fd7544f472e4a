"""What is remembered, in memory and in a file that survives processes, crashes and each other."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.store.children import ended, started

from signoff import ApprovalMemory
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.grant import Grant
from signoff.core.terms import Scope
from signoff.errors import GrantsError, StoreUnavailable, WrongUse


def call(amount: object = 5, schema: str = "") -> Call:
    return Call(tool="pay", args={"amount": amount}, schema_hash=schema)


def grant(scope: str = "project", amount: object = 5, schema: str = "") -> Grant:
    return Grant(
        tool="pay",
        memory_key=call(amount).memory_key,
        approved=True,
        scope=Scope(scope),
        schema_hash=schema,
        by="ana",
        at=datetime(2026, 1, 1, tzinfo=UTC),
        note="fine",
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".signoff" / "grants.db"


def test_always_survives_and_session_does_not(file: Path) -> None:
    memory = ApprovalMemory(file)
    memory.remember(grant("project", 1))
    memory.remember(grant("session", 2))
    assert memory.lookup(call(1)) == grant("project", 1)
    assert memory.lookup(call(2)) is not None
    again = ApprovalMemory(file)
    assert again.lookup(call(1)) == grant("project", 1)
    assert again.lookup(call(2)) is None


def test_another_process_is_seen_without_a_restart(file: Path) -> None:
    one, other = ApprovalMemory(file), ApprovalMemory(file)
    assert one.lookup(call()) is None
    other.remember(grant())
    assert one.lookup(call()) is not None


def test_a_grant_sleeps_when_the_tool_changed(file: Path) -> None:
    memory = ApprovalMemory(file)
    memory.remember(grant(schema="old"))
    assert memory.lookup(call(schema="old")) is not None
    assert memory.lookup(call(schema="new")) is None


def test_nothing_is_written_before_something_is_remembered(file: Path) -> None:
    assert ApprovalMemory(file).lookup(call()) is None
    assert not file.parent.exists()


def test_without_a_file_always_is_refused_and_not_offered() -> None:
    memory = ApprovalMemory(None)
    assert not memory.keeps_always
    with pytest.raises(WrongUse, match="file="):
        memory.remember(grant())


def test_a_damaged_file_is_refused_with_its_name_and_what_to_do(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("{" * 5_000)
    for act in (lambda: ApprovalMemory(file).lookup(call()), lambda: ApprovalMemory(file).remember(grant())):
        with pytest.raises(StoreUnavailable, match=r"is not a database.*move it away to start over") as raised:
            act()
        assert str(file) in str(raised.value)
    assert file.read_text() == "{" * 5_000, "what cannot be read is not overwritten"


def test_a_later_yes_replaces_an_earlier_no_and_the_same_answer_is_kept_once(file: Path) -> None:
    for scope in ("session", "project"):
        memory = ApprovalMemory(file if scope == "project" else None)
        for approved in (True, False, False, True, True):
            memory.remember(replace(grant(scope), approved=approved))
            found = memory.lookup(call())
            assert found is not None and found.approved is approved
        assert [one.approved for one in memory.grants()] == [True]


REMEMBERS_MANY = """
import sys
from pathlib import Path
from tests.store.test_grants import ApprovalMemory, grant
memory = ApprovalMemory(Path(sys.argv[1]))
for amount in range(int(sys.argv[2]), int(sys.argv[2]) + 20):
    memory.remember(grant("project", amount))
"""


def test_two_processes_lose_nothing_of_each_other(file: Path) -> None:
    processes = [started(REMEMBERS_MANY, file, first) for first in (0, 100, 200)]
    for process in processes:
        ended(process)
    assert len(ApprovalMemory(file).grants()) == 60
    assert sorted(one.name for one in file.parent.iterdir()) == ["grants.db"]


def test_what_has_no_canonical_form_is_never_remembered(file: Path) -> None:
    assert ApprovalMemory(file).lookup(Call(tool="pay", args={"x": "\ud800"})) is None


def test_a_file_somebody_else_could_have_written_is_not_believed(file: Path, tmp_path: Path) -> None:
    ApprovalMemory(file).remember(grant())
    file.chmod(0o666)
    with pytest.raises(GrantsError, match="another user"):
        ApprovalMemory(file).lookup(call())
    file.chmod(0o600)
    file.rename(tmp_path / "elsewhere.db")
    file.symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(GrantsError, match="another user"):
        ApprovalMemory(file).lookup(call())


def test_the_default_file_is_outside_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    memory = ApprovalMemory()
    memory.remember(grant())
    [kept] = (tmp_path / "home" / ".local" / "state" / "signoff").rglob("grants.db")
    assert kept.parent.stat().st_mode & 0o777 == 0o700 and not (tmp_path / "relative").exists()
    monkeypatch.setenv("HOME", "")
    assert not ApprovalMemory().keeps_always, "without a home directory there is no place for always"


def test_each_unicode_form_is_remembered_on_its_own(tmp_path: Path) -> None:
    memory = ApprovalMemory(tmp_path / "grants.db")
    composed, apart = Call(tool="read", args={"path": "café"}), Call(tool="read", args={"path": "cafe\u0301"})
    memory.remember(Grant.of(composed, ApprovalDecision(approved=True, remember=Remember.ALWAYS)))
    again = ApprovalMemory(tmp_path / "grants.db")
    assert again.lookup(composed) is not None
    assert again.lookup(apart) is None
    memory.remember(Grant.of(apart, ApprovalDecision(approved=True, remember=Remember.ALWAYS)))
    assert all(again.lookup(one) is not None for one in (composed, apart))
    memory.remember(Grant.of(composed, ApprovalDecision(approved=False, remember=Remember.ALWAYS)))
    found = again.lookup(apart)
    assert found is not None and not found.approved, "a no is for all forms"
