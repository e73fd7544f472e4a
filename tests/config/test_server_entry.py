"""`server:` in the project file."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path

import pytest

from signoff.config import Settings, load_settings
from signoff.config.server_entry import is_loopback, origin_of
from signoff.errors import WrongFile


def read(directory: Path, server: str) -> Settings:
    file = directory / "signoff.yaml"
    file.write_text(f"server: {server}\npolicy: []\n")
    return load_settings(file)


def test_all_of_it(tmp_path: Path) -> None:
    server = read(
        tmp_path,
        '{url: "https://Signoff.Example.com:443/", trusted_proxy: [127.0.0.1, "10.0.0.0/24", "fd00::/8"], session: 2h,'
        ' oidc: {issuer: "https://id.example.com/realms/a", client_id: x, client_secret: "${S}", claim: sub}}',
    ).server
    assert (server.url, server.session) == ("https://signoff.example.com", timedelta(hours=2))
    assert server.trusted_proxy == tuple(map(ip_network, ("127.0.0.1", "10.0.0.0/24", "fd00::/8")))
    assert server.oidc is not None
    assert (server.oidc.issuer, server.oidc.claim) == ("https://id.example.com/realms/a", "sub")


def test_none_of_it(tmp_path: Path) -> None:
    server = read(tmp_path, "{}").server
    assert (server.url, server.trusted_proxy, server.session, server.oidc) == ("", (), timedelta(hours=12), None)


def test_the_secret_is_looked_up_when_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("S", raising=False)
    oidc = '{issuer: "https://id.example.com", client_id: x, client_secret: "${S}"}'
    server = read(tmp_path, f"{{url: https://a.example.com, oidc: {oidc}}}").server
    assert server.oidc is not None
    with pytest.raises(WrongFile, match=r"server\.oidc\.client_secret: the environment has no S"):
        server.oidc.secret()
    monkeypatch.setenv("S", "secret\n")
    assert server.oidc.secret() == "secret"


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ("{url: signoff.example.com}", "people cannot reach it at"),
        ("{url: http://signoff.example.com}", "use https"),
        ("{url: https://signoff.example.com/inbox}", "only a scheme, a host and a port"),
        ("{url: https://ana@signoff.example.com}", "only a scheme, a host and a port"),
        ("{url: 'https://signoff.example.com:99999'}", "people cannot reach it at"),
        ("{trusted_proxy: proxy.example.com}", "this is not the address of a proxy"),
        ("{trusted_proxy: 10.0.0.1/24}", "this is not the address of a proxy"),
        ("{session: forever}", "a duration"),
        ("{oidc: {issuer: https://a.example.com, client_id: x}}", "redirect people to"),
        ("{url: https://a.example.com, oidc: {client_id: x}}", "`issuer` is missing"),
        ("{url: https://a.example.com, oidc: {issuer: https://a.example.com}}", "`client_id` is missing"),
        ("{url: https://a.example.com, oidc: {issuer: http://a.example.com, client_id: x}}", "use https"),
        ("{url: https://a.example.com, oidc: {issuer: a.example.com, client_id: x}}", "the provider cannot be"),
        ("{ulr: https://a.example.com}", "unknown key"),
    ],
)
def test_mistakes(tmp_path: Path, server: str, told: str) -> None:
    with pytest.raises(WrongFile) as wrong:
        read(tmp_path, server)
    assert told in str(wrong.value)
    assert "signoff.yaml:1" in str(wrong.value)


def test_a_secret_in_the_file_is_refused_and_not_repeated(tmp_path: Path) -> None:
    oidc = "{issuer: https://a.example.com, client_id: x, client_secret: hunter2}"
    with pytest.raises(WrongFile, match="this is not a variable") as wrong:
        read(tmp_path, f"{{url: https://a.example.com, oidc: {oidc}}}")
    assert "hunter2" not in str(wrong.value)


def test_people_who_share_an_address(tmp_path: Path) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text("people: {ana: {email: a@example.com}, ben: {email: A@Example.com}}\npolicy: []\n")
    with pytest.raises(WrongFile, match="`ana` has the same address"):
        load_settings(file)
    # Two letters that look alike, or that other programs fold into one, are two addresses.
    file.write_text("people: {ana: {email: k@example.com}, ben: {email: \u212a@example.com}}\npolicy: []\n")
    assert len(load_settings(file).people) == 2


def test_an_admin(tmp_path: Path) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text("people: {ana: {admin: true}, ben: {}}\npolicy: []\n")
    assert [one.admin for one in load_settings(file).people.values()] == [True, False]


@pytest.mark.parametrize(
    ("host", "here"),
    [
        *((one, True) for one in ("127.0.0.1", "localhost", "LOCALHOST", "::1", "[::1]", "127.9.9.9", "a.localhost")),
        *(
            (one, False)
            for one in (
                "",
                "0.0.0.0",
                "::",
                "localhost.example.com",
                ".localhost",
                "a..localhost",
                "127.0.0.1.example.com",
                "128.0.0.1",
            )
        ),
    ],
)
def test_what_is_this_machine(host: str, here: bool) -> None:
    assert is_loopback(host) is here


def test_addresses_as_browsers_spell_them() -> None:
    assert origin_of("http://LOCALHOST:80/") == "http://localhost"
    assert origin_of("https://[::1]:8443") == "https://[::1]:8443"
