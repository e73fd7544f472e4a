"""Who a message goes to: mail addresses out of texts and lists, as the mail system will read them.

An address is taken only in forms that every reader reads alike: `ana@acme.com`, `Ana Berg <ana@acme.com>`,
`"Berg, Ana" <ana@acme.com>`, several with commas or semicolons between. What two readers may read differently is in
doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast
from unicodedata import normalize

from signoff.core.call import Veiled
from signoff.core.visible_text import visible
from signoff.policy.url import read_url

LONGEST = 16_384
_LOCAL = r"(?!-)[A-Za-z0-9#&'+=_~-]+(?:\.[A-Za-z0-9#&'+=_~-]+)*"
"""Without `%` and `!`, by which some systems pass mail on to another domain, and no `-` in front, as options have."""
_DOMAIN = r"[^\s@,;:<>()\[\]\"\\/|%]+"
_ONE = re.compile(
    rf"""\s* (?: (?! [^<]*=\? ) (?: "[^"@\\\r\n]*"\s* | [^"@,;:<>()\[\]\\\r\n]* ) <(?P<inside>{_LOCAL}@{_DOMAIN})>
           | (?:mailto:)? (?P<bare>{_LOCAL}@{_DOMAIN}) ) \s*""",
    re.VERBOSE | re.IGNORECASE,
)
_ANY = re.compile(r"[^\s@,;:<>()\[\]\"'\\|]+@[^\s@,;:<>()\[\]\"'\\|/%?&]+")
_PLAIN_DOMAIN = re.compile(r"[\w.\u3002\uff0e\uff61-]+")
_AT = re.compile(r"@|%40|&\#0*64;|&\#x0*40;|&commat;|=\?", re.IGNORECASE)
"""What an `@` may be written as, or hidden in: some readers decode before they read."""
_KEYS = ("email", "address", "mail", "addr", "email_address", "emailAddress", "value")
"""Where the address stands in a recipient that is a mapping."""


class Mailbox(NamedTuple):
    """One recipient. Compared without regard to case: no mail system that matters tells `Ana@` from `ana@`."""

    local: str
    domain: str
    """In lower case, in its ASCII form, without a last dot."""

    @property
    def text(self) -> str:
        return f"{self.local}@{self.domain}"


class Recipients(NamedTuple):
    """The recipients in a value, and why there may be others."""

    found: tuple[Mailbox, ...] = ()
    doubt: str = ""


def read_recipients(value: object) -> Recipients:
    """Everybody in a text, a list, or a mapping with an address in it. Never raises."""
    found: list[Mailbox] = []
    doubts: list[str] = []
    for text in _texts(value, doubts):
        taken = _in_text(text)
        found += taken.found
        doubts += [taken.doubt] if taken.doubt else []
    return Recipients(tuple(dict.fromkeys(found)), doubts[0] if doubts else "")


def is_recipients(value: object) -> bool:
    """Whether a text, or each text in a list, is nothing but addresses, in no doubt."""
    taken = read_recipients(value)
    return bool(taken.found) and not taken.doubt


def may_name_somebody(value: object) -> bool:
    """Whether a value holds an `@` anywhere, also one that is written in another way."""
    return any(map(_names_somebody, _texts(value, [])))


def _names_somebody(text: str) -> bool:
    return _AT.search(normalize("NFKC", text)) is not None


def read_domain(written: str) -> str:
    """A domain as the network sees it; empty where it is none."""
    if _PLAIN_DOMAIN.fullmatch(written) is None:
        return ""
    host = read_url(f"https://{written.removesuffix('.')}/")
    return host.host if not host.doubt and "." in host.host else ""


def _texts(value: object, doubts: list[str]) -> Iterator[str]:
    if isinstance(value, Veiled):
        doubts.append("is a secret")
    elif isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        entries = cast("Mapping[str, Any]", value)
        if entries.keys().isdisjoint(_KEYS):
            doubts.append("is a mapping without a key for the address")
        for key, entry in entries.items():
            yield from filter(_names_somebody, (str(key),))  # some services take `{address: name}`
            if key in _KEYS:
                yield from _texts(entry, doubts)
            else:  # a name, or what else the service may send to
                yield from filter(_names_somebody, _texts(entry, []))
    elif isinstance(value, (list, tuple)):
        for item in cast("Sequence[object]", value):
            yield from _texts(item, doubts)
    elif value is not None:
        doubts.append("is neither a text nor a list of texts")


def _in_text(text: str) -> Recipients:
    if len(text) > LONGEST:
        return Recipients(doubt="is too long to be a list of recipients")
    text = text.strip()
    sure: list[Mailbox] = []
    at, doubt = 0, "" if visible(text) == text else "holds invisible characters"
    while at < len(text) and not doubt:
        one = _ONE.match(text, at)
        if one is None or (one.end() < len(text) and text[one.end()] not in ",;"):
            doubt = "holds something that mail programs may read as another address"
            break
        local, _, domain = (one["inside"] or one["bare"]).rpartition("@")
        known = read_domain(domain)
        if known:
            sure.append(Mailbox(local.lower(), known))
        else:
            doubt = f"goes to `{domain}`, which mail programs may read as another domain"
        at = one.end() + 1
    if not doubt:
        return Recipients(tuple(sure))
    guessed = (found.group().rpartition("@") for found in _ANY.finditer(text))
    return Recipients(
        (*sure, *(Mailbox(local.lower(), read_domain(domain) or domain.lower()) for local, _, domain in guessed)), doubt
    )
