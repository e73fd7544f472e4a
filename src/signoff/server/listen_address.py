"""Check where the server may listen: beyond loopback only with listed people, TLS or a trusted proxy, and a URL."""

from __future__ import annotations

from signoff.config import ServerEntry
from signoff.config.server_entry import is_loopback
from signoff.errors import WrongUse

UVICORN = {"proxy_headers": False, "server_header": False, "access_log": False}
"""Options for uvicorn: only `Guard` trusts proxies, and only named ones; no access log, because it would hold sign-in
links."""


def check_listening(host: str, *, has_people: bool, has_tls: bool, server: ServerEntry) -> None:
    """Raise `WrongUse` for an address that the server must not listen on with this configuration, saying what to do."""
    if is_loopback(host):
        return
    missing: list[str] = []
    if not has_people:
        missing.append("list who may sign in: people: {ana: {roles: [ops], admin: true}}")
    if not has_tls and not server.trusted_proxy:
        missing.append(
            "give a certificate: --tls-cert FILE --tls-key FILE; or name the proxy in front of it that has one: "
            "server: {trusted_proxy: 10.0.0.2}"
        )
    if not server.url:
        missing.append("set its public address: server: {url: https://signoff.example.com}")
    if missing:
        where = host or "every address of this machine"
        steps = "\n".join(f"  - {one}" for one in missing)
        raise WrongUse(
            f"signoff does not listen on {where} yet: other people could reach it.\n{steps}\n"
            "  Or listen on this machine only: --host 127.0.0.1"
        )
