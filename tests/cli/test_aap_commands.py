"""`signoff aap instance`: credentials of agents elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from tests.cli.desk import Desk

from signoff.broker import Broker
from signoff.core.access import AccessKind, Permission, digest_of

PEOPLE = """\
people:
  ana: {roles: [ops], admin: true}
  ben: {roles: [ops]}
server: {url: "https://signoff.example.com"}
policy: [{ask: "*"}]
"""


@pytest.fixture
def team(desk: Desk) -> Desk:
    (desk.directory / "signoff.yaml").write_text(PEOPLE)
    return desk


def test_an_instance_is_made_listed_and_revoked(team: Desk) -> None:
    assert team.run("aap", "instance").out.startswith("No instances.\n")
    said = team.run("aap", "instance", "create", "support-bot", "--expires", "7d")
    secret = said.out.strip()
    assert secret.startswith("soi_"), "nothing else on standard output: it may go into a file"
    assert "support-bot: until" in said.err
    assert "https://signoff.example.com/aap" in said.err
    key = team.do(lambda broker: broker.access.find(AccessKind.INSTANCE, secret))
    assert key is not None and key.digest == digest_of(secret)
    assert key.permissions == {Permission.REQUEST} and key.is_program
    assert key.expires_at is not None and key.expires_at - datetime.now(UTC) <= timedelta(days=7)
    assert team.do(lambda broker: broker.access.find(AccessKind.TOKEN, secret)) is None
    listed = team.run("aap", "instance", "list")
    assert listed.out.startswith(f"{key.holder}  support-bot: until")
    assert "made by ana" in listed.out and "ana answers for it" in listed.out and "never used" not in listed.out
    [found] = team.run("aap", "instance", "list", "--json").data["instances"]
    UUID(found["id"])
    assert (found["worker"], found["owner"]) == (f"aap:support-bot:{found['id'][:8]}", "ana")
    assert secret not in listed.out
    assert team.run("aap", "instance", "revoke", key.holder[:6]).out == f"revoked  {key.holder}  support-bot\n"
    assert team.do(lambda broker: broker.access.find(AccessKind.INSTANCE, secret)) is None
    assert team.run("aap", "instance", "revoke", key.holder).out.startswith("already revoked at ")
    assert team.run("aap", "instance", "list", "--json").data == {"instances": []}
    [over] = team.run("aap", "instance", "list", "--all", "--json").data["instances"]
    assert over["refusal"] == "revoked"


def test_what_expired_is_not_said_to_be_revoked(team: Desk) -> None:
    async def expired(broker: Broker) -> int:
        a_second = timedelta(seconds=1)
        await broker.aap.provision(str(UUID(int=1)), "bot", "soi_x", owner="ana", by="ana", lasts=a_second)
        team.clock.advance(a_second)
        return await broker.aap.sweep()

    assert team.do(expired) == 1, "the server ends it"
    listed = team.run("aap", "instance", "list", "--all")
    assert "bot: its credential has expired" in listed.out and "revoked" not in listed.out
    [over] = team.run("aap", "instance", "list", "--all", "--json").data["instances"]
    assert over["refusal"] == "its credential has expired" and over["revoked_at"]


def test_whether_it_runs_on_the_servers_machine_is_for_its_maker_to_say(team: Desk) -> None:
    for more in ((), ("--here",)):
        assert team.run("aap", "instance", "create", "bot", *more, "--json").data["here"] is bool(more)
    assert team.run("aap", "instance", "list").out.count("runs here") == 1
    assert [one.is_here for one, _ in team.do(lambda broker: broker.aap.instances())] == [False, True]


def test_what_cannot_be_made_or_revoked_is_said(team: Desk) -> None:
    said = team.run("aap", "instance", "create", "a > b")
    assert (said.code, said.out) == (2, "")
    assert "an instance needs a name without" in said.err
    said = team.run("aap", "instance", "create", "bot", "--as", "ben")
    assert said.code == 2 and "ben is not an admin" in said.err
    said = team.run("aap", "instance", "revoke", "nothing")
    assert said.code == 1 and "there is no instance nothing" in said.err
    said = team.run("aap", "instance", "create", "bot", "--json")
    assert said.data["url"] == "https://signoff.example.com/aap" and said.data["secret"].startswith("soi_")


def test_only_programs_are_given_leave_to_make_instances(team: Desk) -> None:
    said = team.run("tokens", "create", "ana", "--permission", "provision")
    assert said.code == 2 and "only programs can create instances" in said.err
    said = team.run("tokens", "create", "platform", "--program", "--permission", "provision")
    assert said.code == 0 and "program of platform: provision" in said.err
    assert team.run("tokens", "create", "bot", "--program", "--permission", "request").code == 2
