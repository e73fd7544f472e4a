"""`signoff grants list`, `revoke` and `explain`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.cli.desk import Desk, asks
from tests.cli.wording import MOMENT, Wording
from tests.matches import facts_of

from signoff.broker import Broker
from signoff.core.call import Call
from signoff.core.grant import Grant
from signoff.core.verdict import Requirement
from signoff.testing import FakeClock


def remember(desk: Desk, *how: str) -> str:
    """Approve a call and have it remembered; the grant's id."""
    [one] = desk.open(asks())
    said = desk.run("approve", one, "--yes", "--note", "fine", "--remember", *how)
    assert said.code == 0, said.err
    return listed(desk)[-1]["id"]


def listed(desk: Desk, *more: str) -> list[Any]:
    return desk.run("grants", "list", "--json", *more).data["grants"]


def spend(desk: Desk, amount: int) -> Grant | None:
    args = {"to": "ana", "amount": amount, "currency": "EUR"}
    call = Call(tool="pay", args=args, schema_hash="h", worker=("triage",))
    return desk.do(lambda broker: broker.grants.recall(facts_of(call), {}))


def test_nothing_is_remembered(desk: Desk, wording: Wording) -> None:
    assert desk.run("grants", "list").out == wording()
    assert desk.run("grants", "list", "--json").data == {"grants": [], "next": None}


def test_list(desk: Desk) -> None:
    one = remember(desk, "exact")
    two = remember(desk, "amount", "--budget", "amount 300/day", "--uses", "5")
    out = desk.run("grants", "list").out
    lines = out.splitlines()
    assert lines[0].startswith(f"{one}  always pay, exactly as in: pay(")
    assert lines[1].startswith("            by ana · ")
    assert lines[2].startswith(f'{two}  allow pay, with to "ana", amount from 0 to 250, currency "EUR"; anywhere in ')
    assert lines[3].endswith(" · 0 of 5 uses · amount 0 of 300 spent today")


def test_explain_says_how_much_is_used_and_why_it_sleeps(desk: Desk) -> None:
    one = remember(desk, "amount", "--budget", "amount 300", "--uses", "2")
    assert spend(desk, 120) is not None
    out = desk.run("grants", "explain", one[:6]).out
    assert "used      1 of 2 uses, amount 120 of 300 spent\n" in out
    assert "now       active\n" in out
    assert "signoff notices that at the next call" in out
    assert 'from      pay(to="ana", amount=250, currency="EUR")\n' in out
    assert "note      fine\n" in out
    assert spend(desk, 200) is None, "exceed its budget"
    assert spend(desk, 100) is not None
    out = desk.run("grants", "explain", one).out
    assert "now       inactive: used 2 times, its limit\n" in out
    assert listed(desk)[0]["asleep"] == "used 2 times, its limit"


def test_a_grant_that_has_ended(desk: Desk) -> None:
    one = remember(desk, "exact", "--until", "1h")
    [grant] = desk.do(lambda broker: broker.grants.list())

    async def age(broker: Broker) -> None:
        from dataclasses import replace

        old = replace(grant, until=datetime.now(UTC) - timedelta(days=1))
        await broker.store.write("age", lambda tx: tx.grants.put(old))

    desk.clock = FakeClock(datetime.now(UTC))
    desk.do(age)
    assert "inactive: ended at " in desk.run("grants", "explain", one).out
    assert "inactive: ended at " in desk.run("grants", "list").out


def test_revoke(desk: Desk, wording: Wording) -> None:
    one, two = remember(desk, "exact"), remember(desk, "amount", "--uses", "3")
    said = desk.run("grants", "revoke", one[:7], "nothing", two, "--as", "ben")
    assert said.code == 1
    assert [line.split()[:2] for line in said.out.splitlines()] == [["revoked", one], ["revoked", two]]
    assert said.err == wording()
    assert spend(desk, 250) is None
    assert listed(desk) == []
    assert [grant["revoked_by"] for grant in listed(desk, "--all")] == ["ben", "ben"]
    assert "inactive: revoked by ben" in desk.run("grants", "list", "--all").out
    again = desk.run("grants", "revoke", one)
    assert again.code == 0
    assert again.out == wording(grant=(one, two), time=MOMENT)


def test_ids(desk: Desk, wording: Wording) -> None:
    assert desk.run("grants", "explain", "zz").err == wording()
    assert desk.run("grants", "explain").code in (0, 2)
    assert desk.run("grants", "nonsense").code == 2


def test_explain_for_programs(desk: Desk) -> None:
    one = remember(desk, "amount", "--budget", "amount 300/day", "--until", "2d")
    told = desk.run("grants", "explain", one, "--json").data
    assert (told["id"], told["tool"], told["approved"], told["scope"]) == (one, "pay", True, "project")
    assert told["budget"] == {"arg": "amount", "limit": "300", "daily": True, "spent": "0"}
    assert (told["used"], told["asleep"], told["note"]) == (0, "", "fine")
    assert told["until"].endswith("Z")


def test_a_grant_of_a_role_sleeps_once_whoever_gave_it_has_the_role_no_longer(desk: Desk) -> None:
    [one] = desk.open(asks(needs=Requirement(role="ops")))
    assert desk.run("approve", one, "--yes", "--remember", "exact").code == 0
    [grant] = [row["id"] for row in listed(desk)]
    assert "now       active\n" in desk.run("grants", "explain", grant).out
    file = desk.directory / "signoff.yaml"
    file.write_text(file.read_text().replace("ana: {roles: [ops, dev]}", "ana: {roles: [dev]}"))
    why = "ana does not have the role ops now"
    assert f"now       inactive: {why}\n" in desk.run("grants", "explain", grant).out
    assert f"inactive: {why}" in desk.run("grants", "list").out
    assert [row["asleep"] for row in listed(desk)] == [why]
