"""Parse recipients: email addresses in texts and lists, as a mail system reads them.

Addresses are accepted only in forms that every parser reads alike: `ana@acme.com`, `Ana Berg <ana@acme.com>`,
`"Berg, Ana" <ana@acme.com>`, several separated by commas or semicolons. What two parsers may read differently is in
doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from signoff.core.call import Veiled
from signoff.core.normal_form import normal_form
from signoff.core.visible_text import visible
from signoff.policy.url import read_url

LONGEST = 16_384
_LOCAL = r"(?!-)[A-Za-z0-9#&'+=_~-]+(?:\.[A-Za-z0-9#&'+=_~-]+)*"
"""Without `%` and `!`, with which some systems forward mail to another domain, and without a leading `-`: an option."""
_DOMAIN = r"[^\s@,;:<>()\[\]\"\\/|%]+"
_ONE = re.compile(
    rf"""\s* (?: (?! [^<]*=\? ) (?: "[^"@\\\r\n]*"\s* | [^"@,;:<>()\[\]\\\r\n]* ) <(?P<inside>{_LOCAL}@{_DOMAIN})>
           | (?:mailto:)? (?P<bare>{_LOCAL}@{_DOMAIN}) ) \s*""",
    re.VERBOSE | re.IGNORECASE,
)
_ANY = re.compile(r"[^\s@,;:<>()\[\]\"'\\|]+@[^\s@,;:<>()\[\]\"'\\|/%?&]+")
_PLAIN_DOMAIN = re.compile(r"[\w.\u3002\uff0e\uff61-]+")
_AT = re.compile(r"@|%40|&\#0*64;|&\#x0*40;|&commat;|=\?", re.IGNORECASE)
"""Encodings of `@`, and what may hide one: some readers decode before they parse."""
_KEYS = ("email", "address", "mail", "addr", "email_address", "emailAddress", "value")
"""The keys for the address in a recipient that is a mapping."""


class Mailbox(NamedTuple):
    """One recipient. Compared without case: no mail system that matters distinguishes `Ana@` from `ana@`."""

    local: str
    domain: str
    """Lower case, ASCII, without a trailing dot."""

    @property
    def text(self) -> str:
        return f"{self.local}@{self.domain}"


class Recipients(NamedTuple):
    """The recipients in a value, and why there may be others."""

    found: tuple[Mailbox, ...] = ()
    doubt: str = ""


def read_recipients(value: object) -> Recipients:
    """Return every recipient in a text, a list, or a mapping with an address in it. Never raises."""
    found: list[Mailbox] = []
    doubts: list[str] = []
    for text in _texts(value, doubts):
        taken = _in_text(text)
        found += taken.found
        doubts += [taken.doubt] if taken.doubt else []
    return Recipients(tuple(dict.fromkeys(found)), doubts[0] if doubts else "")


def is_recipients(value: object) -> bool:
    """Whether a text, or each text in a list, holds only addresses, without doubt."""
    taken = read_recipients(value)
    return bool(taken.found) and not taken.doubt


def may_name_somebody(value: object) -> bool:
    """Whether a value contains an `@` anywhere, in plain or encoded form."""
    return any(map(_names_somebody, _texts(value, [])))


def _names_somebody(text: str) -> bool:
    return _AT.search(normal_form("NFKC", text)) is not None


def read_domain(written: str) -> str:
    """Return a domain as the network sees it; "" if it is not one."""
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
            yield from filter(_names_somebody, (str(key),))  # some services accept `{address: name}`
            if key in _KEYS:
                yield from _texts(entry, doubts)
            else:  # a name, or something else that the service may send to
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
