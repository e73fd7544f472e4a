"""Where the server listens, and where it does not."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest

from signoff.config import ServerEntry
from signoff.errors import WrongUse
from signoff.server.listen_address import check_listening

URL = "https://signoff.example.com"
PROXY = (ip_network("10.0.0.2"),)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1", "LocalHost"])
def test_this_machine_is_always_good(host: str) -> None:
    check_listening(host, has_people=False, has_tls=False, server=ServerEntry())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.0.7", "signoff.example.com", "localhost.example.com"])
@pytest.mark.parametrize(
    ("has_people", "has_tls", "server", "missing"),
    [
        (False, False, {}, ["people:", "--tls-cert", "url:"]),
        (True, False, {}, ["--tls-cert", "url:"]),
        (True, False, {"url": URL}, ["--tls-cert"]),
        (False, True, {"url": URL}, ["people:"]),
        (False, False, {"url": URL, "trusted_proxy": PROXY}, ["people:"]),
        (True, True, {}, ["url:"]),
        (True, True, {"url": URL}, []),
        (True, False, {"url": URL, "trusted_proxy": PROXY}, []),
    ],
)
def test_beyond_it_only_where_people_are_known_and_nobody_listens_in(
    host: str, has_people: bool, has_tls: bool, server: dict[str, Any], missing: list[str]
) -> None:
    def check() -> None:
        check_listening(host, has_people=has_people, has_tls=has_tls, server=ServerEntry(**server))

    if not missing:
        check()
        return
    with pytest.raises(WrongUse) as refused:
        check()
    text = str(refused.value)
    assert [one for one in ("people:", "--tls-cert", "url:") if one in text] == missing, "it says what to do, no more"
    assert "--host 127.0.0.1" in text
