"""Parse URLs: scheme, host as the network sees it, port, and whether the host is private (SSRF).

Host names are converted to ASCII (IDNA, punycode), addresses to their plain form however they are written (`0x7f.1`,
`2130706433`). What two parsers may read differently is in doubt.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from signoff.core.visible_text import visible
from signoff.policy.table_files import table_text

LONGEST = 8192
PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ftp": 21, "ssh": 22}
_ODD = re.compile(r"[\x00-\x20\x7f\\<>\"`{}|^]")
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
_EMBEDDED = tuple(
    map(IPv6Network, ("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "::ffff:0:0:0/96"))
)
"""IPv6 networks whose addresses embed an IPv4 address, which may be any."""
_SPECIAL = (
    *map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32")),
    *map(IPv6Network, ("100:0:0:1::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10")),
)
"""Networks for special purposes, whatever this version of Python knows of them; metadata services among them."""
_GLOBAL = IPv6Network("2000::/3")
_STEPS = re.compile(r"(^|/)(\.|%2e){1,2}(;|/|$)|%25|%2f|%5c|%00", re.IGNORECASE)
_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}:[/\\]{2}[^\s'\"<>`]+")


class Url(NamedTuple):
    """A parsed URL. With `doubt`, the other fields are a best guess."""

    scheme: str = ""
    host: str = ""
    """Lower case, ASCII, without a trailing dot; an address in its plain form."""
    port: int | None = None
    path: str = ""
    private: bool = False
    """Whether the host is this machine, its network, or a name that only has a meaning there."""
    doubt: str = ""
    """Why another parser may read it differently; "" if all agree."""


def read_url(text: str) -> Url:
    """Parse a URL. Never raises."""
    if len(text) > LONGEST:
        return Url(doubt="is too long to be a URL")
    doubt = "holds spaces, control characters or a backslash" if _ODD.search(text) or visible(text) != text else ""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        return Url(doubt=f"is not a URL: {error}")
    if not parts.scheme or not parts.netloc:
        return Url(path=text, doubt=doubt or "has no scheme or no host")
    return _with_host(parts, port, doubt)


def urls_in(text: str) -> list[str]:
    """Return everything in a text that looks like a URL with a scheme."""
    return _IN_TEXT.findall(text)


def _with_host(parts: SplitResult, port: int | None, doubt: str) -> Url:
    scheme = parts.scheme.lower()
    if "@" in parts.netloc:
        doubt = doubt or "has a user name before the host"
    host, private, odd = _host(parts.hostname or "")
    if "%" in parts.netloc:
        odd = odd or "has a `%` in its host"
    if _STEPS.search(parts.path):
        odd = odd or "has `.`, `..` or encoded slashes in its path"
    return Url(scheme, host, port if port is not None else PORTS.get(scheme), parts.path or "/", private, doubt or odd)


def _host(written: str) -> tuple[str, bool, str]:
    """Return the host in its plain form, whether it is private, and what is doubtful about it."""
    name = written.removesuffix(".").lower()
    if not written.isascii():
        name, odd = _ascii(written)
        if odd:
            return name, True, odd
    address = _address(name)
    if address is not None:
        return str(address), _is_private(address), ""
    if not _HOST.fullmatch(name) or len(name) > 253:
        return name, True, "has an invalid host name"
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        return name, True, "has a host that is neither a valid name nor an address"
    return name, _is_private_name(name), ""


def _is_private_name(name: str) -> bool:
    """Whether a name only has a meaning on some network, or is made to lead to the address that it contains."""
    public, mirrors = _domains()
    before, dot, last = name.rpartition(".")
    return not dot or last not in public or f"{before.rpartition('.')[2]}.{last}" in mirrors


@cache
def _domains() -> tuple[frozenset[str], frozenset[str]]:
    data: dict[str, str] = tomllib.loads(table_text("top_level.toml"))
    return frozenset(data["names"].split()), frozenset(data["mirrors"].split())


def _is_private(address: IPv4Address | IPv6Address) -> bool:
    """Whether it is not an ordinary address of the public network."""
    if isinstance(address, IPv6Address) and address not in _GLOBAL:
        return True
    special = any(address in network for network in (*_EMBEDDED, *_SPECIAL) if network.version == address.version)
    return special or not address.is_global or address.is_multicast


def _ascii(name: str) -> tuple[str, str]:
    import idna  # imports large tables, which few hosts need

    try:
        return idna.encode(name, uts46=True, std3_rules=True).decode().removesuffix(".").lower(), ""
    except (idna.IDNAError, UnicodeError) as error:
        return name, f"has an invalid host name: {error}"


def _address(name: str) -> IPv4Address | IPv6Address | None:
    if ":" in name:
        try:
            found = ip_address(name)
        except ValueError:
            return None
        inner = found.ipv4_mapped if isinstance(found, IPv6Address) else None
        return inner or found
    parts = name.split(".")
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    try:
        numbers = [_number(part) for part in parts]
        *bytes_, last = numbers
        if any(one > 255 for one in bytes_) or last >= 256 ** (5 - len(numbers)):
            return None
        return IPv4Address(sum(one << (24 - 8 * at) for at, one in enumerate(bytes_)) + last)
    except ValueError:
        return None


def _number(part: str) -> int:
    """Parse a number as `inet_aton` does: hexadecimal, octal with a leading zero, or decimal."""
    if len(part) > 12:
        raise ValueError(part)
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    return int(part, 8) if len(part) > 1 and part.startswith("0") else int(part)
