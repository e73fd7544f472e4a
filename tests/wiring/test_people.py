"""People are those of the project file as it stands now: who is taken off it while a program runs is out at once."""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.cli.desk import asks

from signoff.broker import Broker
from signoff.channel_kinds import built_in
from signoff.config import load_settings
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor, Delegation
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Requirement
from signoff.delivery.channel_inbox import StoreInbox
from signoff.errors import NotEntitled
from signoff.store.memory_store import MemoryStore
from signoff.testing import FakeClock
from signoff.wiring.program_inbox import project_inbox
from signoff.wiring.project import roles_of
from signoff.wiring.project_people import Accounts, OnFile

ANA, BEN = "102938475610293847", "564738291056473829"
BOTH = f'{{ana: {{roles: [ops], discord: "{ANA}"}}, ben: {{roles: [ops], discord: "{BEN}"}}}}'
ONLY_ANA = f'{{ana: {{roles: [ops], discord: "{ANA}"}}}}'


def write(directory: Path, people: str, policy: str = "[]") -> Path:
    file = directory / "signoff.yaml"
    file.write_text(f"policy: {policy}\npeople: {people}\n")
    return file


@pytest.fixture
async def inbox(tmp_path: Path) -> AsyncIterator[StoreInbox]:
    """As `signoff channels run` makes it."""
    settings = load_settings(write(tmp_path, BOTH))
    broker = Broker(MemoryStore(), FakeClock(), people=roles_of(settings))
    broker.people.follow(OnFile(settings).roles)
    yield project_inbox(broker, settings, "discord")
    broker.store.close()


async def yes(inbox: StoreInbox, request: ApprovalRequest, name: str) -> ApprovalRequest:
    by = Actor(name=name, roles=frozenset({"ops"}))
    return await inbox.answer(request.id, ApprovalDecision(approved=True, by=by))


@pytest.mark.parametrize("needs", [Requirement(), Requirement(role="ops"), Requirement(quorum=2)])
async def test_who_is_taken_off_the_file_is_refused_whatever_the_rule(
    inbox: StoreInbox, tmp_path: Path, needs: Requirement
) -> None:
    [request] = await inbox.broker.open([asks(needs=needs)])
    write(tmp_path, ONLY_ANA)
    with pytest.raises(NotEntitled, match=r"ben is not \(or no longer\) listed"):
        await yes(inbox, request, "ben")
    assert (await yes(inbox, request, "ana")).votes[-1].by.name == "ana"
    write(tmp_path, BOTH)
    [another] = await inbox.broker.open([asks(needs=needs)])
    await yes(inbox, another, "ben")


async def test_roles_are_those_of_the_file_now(inbox: StoreInbox, tmp_path: Path) -> None:
    [request] = await inbox.broker.open([asks(needs=Requirement(role="ops"))])
    write(tmp_path, "{ana: {roles: [dev]}, ben: {roles: [dev]}}")
    with pytest.raises(NotEntitled):
        await yes(inbox, request, "ana")
    write(tmp_path, "{ana: {roles: [dev, ops]}, ben: {}}")
    assert (await yes(inbox, request, "ana")).state is State.APPROVED


@pytest.mark.parametrize("people", ["{}", ""])
async def test_where_nobody_is_left_nobody_may_answer(inbox: StoreInbox, tmp_path: Path, people: str) -> None:
    """Not to be mistaken for a project that never named anybody, where anyone may."""
    [request] = await inbox.broker.open([asks()])
    if people:
        write(tmp_path, people)
    else:
        (tmp_path / "signoff.yaml").write_text("policy: []\n")
    with pytest.raises(NotEntitled, match="only listed people may answer"):
        await yes(inbox, request, "ana")


async def test_no_answer_is_taken_while_the_file_is_wrong(inbox: StoreInbox, tmp_path: Path) -> None:
    [request] = await inbox.broker.open([asks()])
    write(tmp_path, "{ana: {rolls: [ops]}}")
    with pytest.warns(RuntimeWarning, match="unknown key `rolls`"), pytest.raises(NotEntitled) as told:
        await yes(inbox, request, "ana")
    assert str(told.value) == "no answers are accepted while the file that lists people has an error"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        with pytest.raises(NotEntitled, match="while the file that lists people has an error"):
            await yes(inbox, request, "ana")
    os.remove(tmp_path / "signoff.yaml")
    with (
        pytest.warns(RuntimeWarning),
        pytest.raises(NotEntitled, match="while the file that lists people has an error"),
    ):
        await yes(inbox, request, "ana")
    write(tmp_path, BOTH)
    assert (await yes(inbox, request, "ana")).state is State.APPROVED


async def test_a_mistake_about_something_else_stops_nobody(inbox: StoreInbox, tmp_path: Path) -> None:
    [request] = await inbox.broker.open([asks()])
    write(tmp_path, BOTH, policy="[{nonsense: 1}]")
    assert (await yes(inbox, request, "ben")).state is State.APPROVED


async def test_nobody_stands_in_for_somebody_who_is_taken_off(inbox: StoreInbox, tmp_path: Path) -> None:
    now = inbox.broker.clock.now()
    write(tmp_path, "{ana: {roles: [cfo]}, ben: {}}")
    await inbox.broker.people.delegate(
        Delegation(absent="ana", deputy="ben", since=now, until=now + timedelta(days=1), by="ana")
    )
    [request] = await inbox.broker.open([asks(needs=Requirement(role="cfo"))])
    write(tmp_path, "{ben: {}}")
    with pytest.raises(NotEntitled):
        await yes(inbox, request, "ben")
    write(tmp_path, "{ana: {roles: [cfo]}, ben: {}}")
    assert (await yes(inbox, request, "ben")).state is State.APPROVED


async def test_a_project_without_people_is_open_until_it_names_some(tmp_path: Path) -> None:
    settings = load_settings(write(tmp_path, "{}"))
    broker = Broker(MemoryStore(), FakeClock(), people=roles_of(settings))
    broker.people.follow(OnFile(settings).roles)
    inbox = project_inbox(broker, settings, "terminal")
    first, second = await broker.open([asks(), asks("write_file", {"path": "a"})])
    await yes(inbox, first, "zoe")
    write(tmp_path, ONLY_ANA)
    with pytest.raises(NotEntitled, match=r"zoe is not \(or no longer\) listed"):
        await yes(inbox, second, "zoe")
    broker.store.close()


def test_accounts_are_those_of_the_file_now(tmp_path: Path) -> None:
    accounts = Accounts(OnFile(load_settings(write(tmp_path, BOTH))), built_in("discord"), "discord")
    assert dict(accounts) == {
        ANA: Actor(name="ana", roles=frozenset({"ops"}), via="discord"),
        BEN: Actor(name="ben", roles=frozenset({"ops"}), via="discord"),
    }
    write(tmp_path, ONLY_ANA)
    assert accounts.get(BEN) is None and len(accounts) == 1
    write(tmp_path, f'{{ana: {{discord: "{BEN}"}}}}')
    assert [(account, one.name, one.roles) for account, one in accounts.items()] == [(BEN, "ana", frozenset())]
    write(tmp_path, "[")
    with pytest.warns(RuntimeWarning):
        assert accounts[BEN].name == "ana", "whoever presses is told what is wrong, by the inbox"


def test_a_file_that_becomes_a_pipe_holds_up_nobody(tmp_path: Path) -> None:
    file = write(tmp_path, ONLY_ANA)
    on_file = OnFile(load_settings(file))
    file.unlink()
    os.mkfifo(file)
    with pytest.warns(RuntimeWarning, match="it is not a regular file"), pytest.raises(NotEntitled):
        on_file.roles()
    file.unlink()
    write(tmp_path, ONLY_ANA)
    assert set(on_file.roles()) == {"ana"}


def test_a_file_that_is_empty_for_a_moment_forgets_nobody(tmp_path: Path) -> None:
    file = write(tmp_path, ONLY_ANA)
    on_file = OnFile(load_settings(file))
    file.write_text("")
    with pytest.warns(RuntimeWarning, match="this file is empty"):
        assert set(on_file.people()) == {"ana"}
    with pytest.raises(NotEntitled, match="no answers are accepted"):
        on_file.roles()
