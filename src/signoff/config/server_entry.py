"""`server:` in the project file: the address of `signoff serve`, its trusted proxies, and how people sign in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

from signoff.policy.format import DURATION, MappingFormat, each, made, matching, text
from signoff.policy.placed_value import ConfigValue

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network
    from urllib.parse import SplitResult

SESSION = timedelta(hours=12)
"""How long a browser stays signed in by default."""
EMAIL = "email"
"""This claim is looked up among the email addresses of people; any other claim among their names."""
Network: TypeAlias = "IPv4Network | IPv6Network"

_VARIABLE = r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcEntry:
    """An OpenID provider, as in the file. The environment is read when somebody signs in."""

    issuer: str
    client_id: str
    client_secret: str = ""
    """The environment variable that holds the client secret, as written: `${NAME}`; empty for a public client."""
    claim: str = EMAIL
    """The claim that identifies the person."""
    spot: ConfigValue

    def secret(self) -> str:
        """The client secret, from the environment. Raises `WrongFile` that names the variable if it is not set."""
        name = self.client_secret[2:-1]
        value = os.environ.get(name, "").strip() if name else ""
        if name and not value:
            spot = self.spot.child("client_secret")
            raise spot.wrong(
                f"the environment has no {name}", "set it to the secret that the provider gave this client"
            )
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    """The server settings of the file."""

    url: str = ""
    """The public URL, as in `https://signoff.example.com`; empty: on this machine only."""
    trusted_proxy: tuple[Network, ...] = ()
    """Trusted reverse proxies: only their headers about the client are believed."""
    session: timedelta = SESSION
    oidc: OidcEntry | None = None
    spots: Mapping[str, ConfigValue] = field(default_factory=dict[str, ConfigValue])
    """The position of each key."""


def is_loopback(host: str) -> bool:
    """Whether a host name or an address can only be this machine (loopback). Names are not resolved."""
    from ipaddress import ip_address

    try:
        return ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return is_local_name(host) or host.lower() == "localhost"


def is_local_name(host: str) -> bool:
    """Whether it is a name below `localhost`: browsers resolve it to this machine, and treat it as a separate host."""
    name, dot, top = host.lower().rpartition(".")
    return bool(dot) and top == "localhost" and all(name.split("."))


def origin_of(url: str) -> str:
    """The origin (scheme, host and port) of a URL, as browsers write it. Raises `ValueError` if it is anything else."""
    if not url.isascii() or not url.isprintable() or any(char in url for char in " \\"):
        raise ValueError("write it as in https://signoff.example.com")
    parts = _parts(url)
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ValueError("write it as in https://signoff.example.com")
    if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None:
        raise ValueError("only a scheme, a host and a port: https://signoff.example.com")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = "" if parts.port in (None, _PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def _parts(url: str) -> SplitResult:
    from urllib.parse import urlsplit  # few commands need it

    return urlsplit(url)


def _public(url: str) -> str:
    origin = origin_of(url)
    _refuse_plain(url)
    return origin


def _issuer(url: str) -> str:
    parts = _parts(url)
    if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.fragment or not url.isascii():
        raise ValueError("write it as the provider does, as in https://accounts.example.com")
    _refuse_plain(url)
    return url


def _refuse_plain(url: str) -> None:
    parts = _parts(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise ValueError("use https: over http, others could read what is sent there")


def _network(address: str) -> Network:
    from ipaddress import ip_network

    try:
        return ip_network(address.strip())
    except ValueError as error:
        raise ValueError("write an address or a network: 127.0.0.1, 10.0.0.0/24, ::1") from error


def _read_oidc(spot: ConfigValue) -> OidcEntry:
    return OidcEntry(spot=spot, **OIDC.read(spot))


def _read_server(spot: ConfigValue) -> ServerEntry:
    entries = _SERVER.entries(spot)
    found = ServerEntry(spots=entries, **_SERVER.values(entries))
    if found.oidc is not None and not found.url:
        raise entries["oidc"].wrong(
            "`url` is missing: the provider needs an address to redirect people to",
            "add `url:`, as in https://signoff.example.com",
        )
    return found


OIDC = MappingFormat(
    {
        "issuer": made(_issuer, "an address", "the provider cannot be").about(
            "The issuer URL, exactly as the provider writes it."
        ),
        "client_id": text("the id of a client").about("The client id of this server at the provider."),
        "client_secret": matching(
            _VARIABLE,
            "a variable",
            "this is not a variable",  # the value is never shown: it may be the secret itself
            'secrets come from the environment: client_secret: "${OIDC_SECRET}"',
        ).about("The environment variable that holds the client secret. Leave it out only for a public client."),
        "claim": text("the name of a claim").about(
            "The claim that identifies a person. Default: email, which must be verified and match the `email` of a "
            "person here. Any other claim must match the name of a person here."
        ),
    },
    required={
        "issuer": ("`issuer` is missing", "add `issuer:`, as in https://accounts.example.com"),
        "client_id": ("`client_id` is missing", "add `client_id:`"),
    },
    what="a mapping with `issuer` and `client_id`",
    description="The OpenID provider for sign-in.",
)
_SERVER = MappingFormat(
    {
        "url": made(_public, "an address", "people cannot reach it at").about(
            "The public URL of the server, as in https://signoff.example.com. Default: this machine only."
        ),
        "trusted_proxy": each(
            made(_network, "an address", "this is not the address of a proxy:"), "a list of addresses"
        ).about("Trusted reverse proxies: signoff believes only their headers about the client."),
        "session": DURATION.about("How long a browser stays signed in. Default: 12h."),
        "oidc": OIDC.by(_read_oidc),
    },
    what="a mapping such as {url: https://signoff.example.com}",
    description="The address of signoff serve, and how people sign in.",
)
SERVER = _SERVER.by(_read_server)
