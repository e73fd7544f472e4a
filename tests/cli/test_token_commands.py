"""`signoff tokens` and `signoff people link`: keys for a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cli.desk import Desk

from signoff.core.access import AccessKey, AccessKind, digest_of
from signoff.wiring.serve_lease import take_store

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


def made(desk: Desk, *arguments: str) -> dict[str, Any]:
    said = desk.run("tokens", "create", *arguments, "--json")
    assert said.code == 0, said.err
    return said.data


def key_of(desk: Desk, secret: str, kind: AccessKind) -> AccessKey:
    key = desk.do(lambda broker: broker.access.find(kind, secret))
    assert key is not None
    return key


def test_a_token_is_made_listed_and_revoked(team: Desk) -> None:
    assert team.run("tokens").out.startswith("No tokens.\n")
    said = team.run("tokens", "create", "ben", "--permission", "read", "--permission", "answer", "--label", "laptop")
    secret = said.out.strip()
    assert secret.startswith("sot_"), "nothing else on standard output: it may go into a file"
    assert "token of ben: answer, read, until" in said.err
    key = key_of(team, secret, AccessKind.TOKEN)
    assert (key.holder, key.created_by, key.label, key.digest) == ("ben", "ana", "laptop", digest_of(secret))
    assert key.expires_at is not None
    assert timedelta(days=89) < key.expires_at - datetime.now(UTC) <= timedelta(days=90)
    listed = team.run("tokens", "list")
    assert listed.out.startswith(f"{key.id}  token of ben: answer, read, until")
    assert "laptop · made by ana" in listed.out
    assert secret not in listed.out and secret not in team.run("tokens", "list", "--json").out
    assert team.run("tokens", "revoke", key.id[:5]).out.startswith(f"revoked  {key.id}  token of ben")
    assert team.do(lambda broker: broker.access.find(AccessKind.TOKEN, secret)) is None
    assert team.run("tokens", "revoke", key.id).out.startswith("already revoked at ")
    assert team.run("tokens", "list", "--json").data == {"tokens": []}
    [over] = team.run("tokens", "list", "--all", "--json").data["tokens"]
    assert (over["id"], over["refusal"]) == (key.id, "this token was revoked")


def test_of_a_program(team: Desk) -> None:
    told = made(team, "deploy-bot", "--program", "--permission", "run", "--expires", "2h")
    assert (told["holder"], told["is_program"], told["permissions"]) == ("deploy-bot", True, ["run"])
    assert key_of(team, told["secret"], AccessKind.TOKEN).is_program
    said = team.run("tokens", "create", "Ben", "--program")
    assert (said.code, "is a person" in said.err) == (2, True)


def test_who_makes_keys_for_whom(team: Desk) -> None:
    for arguments in (("ana",), ("bot", "--program")):
        said = team.run("tokens", "create", *arguments, "--as", "ben")
        assert (said.code, "ben is not an admin" in said.err, "Admins are: ana" in said.err) == (2, True, True)
    assert team.run("tokens", "create", "ben", "--as", "ben").code == 0
    said = team.run("people", "link", "ana", "--as", "ben")
    assert (said.code, "ben is not an admin" in said.err) == (2, True)
    said = team.run("tokens", "create", "ben", "--permission", "admin")
    assert (said.code, "ben is not an admin, so their token cannot have admin rights" in said.err) == (2, True)
    assert team.run("tokens", "create", "mallory").code == 2
    assert team.run("people", "link", "mallory").code == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("create", "ben", "--expires", "yesterday"), "is not a time"),
        (("create", "ben", "--expires", "2001-01-01"), "is in the past"),
        (("create", "ben", "--permission", "everything"), "Invalid value"),
        (("create", " ", "--program"), "a program needs a name"),
        (("revoke", "nothing"), "there is no token nothing"),
        (("revoke", ""), "there is no token"),
    ],
)
def test_what_cannot_be_meant(team: Desk, arguments: tuple[str, ...], told: str) -> None:
    said = team.run("tokens", *arguments)
    assert said.code == (1 if arguments[0] == "revoke" else 2)
    assert told in said.err
    assert said.out == ""
    if "--expires" in arguments:
        assert not team.file.exists(), "what cannot be read makes no store"


def test_a_link_to_sign_in_with(team: Desk) -> None:
    said = team.run("people", "link", "ben")
    address = said.out.strip()
    assert address.startswith("https://signoff.example.com/sign-in?link=sol_")
    assert "Signs in as ben, once, until" in said.err
    key = key_of(team, address.partition("link=")[2], AccessKind.LINK)
    assert (key.holder, key.created_by) == ("ben", "ana")
    told = team.run("people", "link", "ben", "--url", "http://127.0.0.1:9000/", "--expires", "1h", "--json").data
    assert told["url"].startswith("http://127.0.0.1:9000/sign-in?link=sol_")
    assert team.run("tokens", "revoke", told["id"]).code == 0
    assert team.do(lambda broker: broker.access.find(AccessKind.LINK, told["url"].partition("link=")[2])) is None
    assert team.run("people", "link", "ben", "--url", "signoff.example.com").code == 2
    assert [one["kind"] for one in team.run("tokens", "list", "--sessions", "--json").data["tokens"]] == ["link"]
    assert "ben  ops" in team.run("people").out.replace("   ", "  "), "alone it lists people, as before"


def test_a_link_leads_to_the_server_that_runs(desk: Desk) -> None:
    (desk.directory / "signoff.yaml").write_text(PEOPLE.replace('server: {url: "https://signoff.example.com"}\n', ""))
    said = desk.run("people", "link", "ben")
    assert said.out.startswith("http://127.0.0.1:8420/sign-in?link=sol_")
    assert "No server runs now. This is for one that signoff serve starts at http://127.0.0.1:8420" in said.err
    assert said.err.splitlines()[0].endswith("; else use --url.")
    told = desk.run("aap", "instance", "create", "early").err
    assert "else the address that it prints, with /aap." in told and "--url" not in told, "it has no such option"
    desk.do(lambda broker: take_store(broker.ledger, "http://127.0.0.1:18320"))
    said = desk.run("people", "link", "ben")
    assert said.out.startswith("http://127.0.0.1:18320/sign-in?link=sol_") and "No server" not in said.err
    assert "http://127.0.0.1:18320/aap" in desk.run("aap", "instance", "create", "bot").err


def test_where_nobody_is_on_file_keys_are_for_whoever_works_here(desk: Desk) -> None:
    (desk.directory / "signoff.yaml").write_text('policy: [{ask: "*"}]\n')
    assert made(desk, "ANA", "--permission", "admin")["holder"] == "ana"
    assert desk.run("people", "link", "ana").out.startswith("http://127.0.0.1:8420/sign-in?link=sol_")
    said = desk.run("people", "link", "ben")
    assert (said.code, "admits only ana" in said.err) == (2, True)
