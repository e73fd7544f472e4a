"""Conditions on the recipients of a message: their domains and addresses, and how many there are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from signoff.policy.addresses import Mailbox, Recipients, is_recipients, may_name_somebody, read_domain, read_recipients
from signoff.policy.call_paths import Facts
from signoff.policy.glob import Glob
from signoff.policy.match_result import YES, MatchResult, Truth
from signoff.policy.operators import SIGNS
from signoff.policy.phrases import listed, shown

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")
_TOLD = frozenset("""
    to cc ccs bcc bccs recipient recipients rcpt mail mails email emails attendee attendees invitee invitees
    participants guests members
""".split())  # fmt: skip
"""Last words of argument names that hold the recipients of a message."""
_BEHIND = frozenset("list addr addrs address addresses".split())
"""Words that may follow them: `cc_list`, `BccAddresses`."""
_OTHERS = frozenset("from sender reply author organizer by subject title body text content".split())
"""Words in argument names whose addresses are those of a sender, or of somebody who is written about."""
_HEADERS = frozenset("header headers raw mime eml rfc".split())
_HEADER = re.compile(r"(?im)^[ \t]*(?:resent-)?b?(?:to|cc)[ \t]*:")


class BadAddress(ValueError):
    """An unusable pattern; the message says why and what to write."""


@dataclass(frozen=True, slots=True)
class AddressPattern:
    """`ana@acme.com`, `*@acme.com`, or `acme.com` for every address there; `*.acme.com` does not match `acme.com`."""

    text: str
    local: Glob = field(init=False, repr=False, compare=False)
    domain: Glob = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises `BadAddress` or `BadGlob`."""
        local, _, domain = self.text.rpartition("@")
        anywhere = domain == "*" and local.strip("*") != ""
        known = domain if anywhere else read_domain(domain.replace("*", "x") if domain.isascii() else domain)
        if not known or "?" in domain or "[" in domain:
            raise BadAddress("write a domain, as in `acme.com`, or an address, as in `*@acme.com`")
        if not anywhere and not domain.replace(".", "").strip("*"):
            raise BadAddress("the domain is all wildcards; leave `recipients` out to match every recipient")
        object.__setattr__(self, "local", Glob(local.lower() or "*", over_names=True))
        object.__setattr__(self, "domain", Glob(domain.lower() if domain.isascii() else known, over_names=True))

    def fits(self, address: Mailbox) -> bool:
        return self.domain.find(address.domain) is Truth.YES and self.local.find(address.local) is Truth.YES


@dataclass(frozen=True, slots=True)
class RecipientsCondition:
    """The recipients of a call. An allow rule must be sure of them; in ask and deny rules, doubt asks."""

    domains: tuple[AddressPattern, ...] = ()
    """In allow rules: all recipients are in these domains. Otherwise: one is."""
    outside: tuple[AddressPattern, ...] = ()
    """One recipient is in none of these."""
    all: tuple[AddressPattern, ...] = ()
    any: tuple[AddressPattern, ...] = ()
    none: tuple[AddressPattern, ...] = ()
    count: tuple[tuple[str, int], ...] = ()
    argument: str = ""
    every: bool = False
    text: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        named = {
            "all in" if self.every else "one in": self.domains,
            "one outside": self.outside,
            "all like": self.all,
            "one like": self.any,
            "none like": self.none,
        }
        words = [f"{how} {listed(one.text for one in patterns)}" for how, patterns in named.items() if patterns]
        words += [f"{'' if sign == 'equals' else sign + ' '}{bound} of them" for sign, bound in self.count]
        object.__setattr__(self, "text", f"with recipients: {', '.join(words)}")

    @property
    def stands_for(self) -> str:
        """The argument whose value a plain text in a rule's examples is."""
        return self.argument or "to"

    def find(self, facts: Facts) -> MatchResult:
        taken = self._taken(facts.call.args)
        if not taken.found and not taken.doubt:
            return MatchResult.no("the call names no recipient")
        holds = self._holds(taken.found)
        if taken.doubt and (self.every or not self._is_settled(taken.found, holds)):
            facts.note(taken.doubt)
            return MatchResult.no(taken.doubt) if self.every else MatchResult.unknown(taken.doubt)
        if holds:
            return YES
        told = listed([one.text for one in taken.found[:5]])
        why = f"it goes to {told}{' and others' if len(taken.found) > 5 else ''}"
        facts.note(why)
        return MatchResult.no(why)

    def _holds(self, found: tuple[Mailbox, ...]) -> bool:
        return bool(found) and all(self._parts(found))

    def _parts(self, found: tuple[Mailbox, ...]) -> Iterator[bool]:
        if self.domains:
            yield (all if self.every else any)(_in(self.domains, one) for one in found)
        if self.outside:
            yield any(not _in(self.outside, one) for one in found)
        if self.all:
            yield all(_in(self.all, one) for one in found)
        if self.any:
            yield any(_in(self.any, one) for one in found)
        if self.none:
            yield not any(_in(self.none, one) for one in found)
        for sign, bound in self.count:
            yield SIGNS[sign](len(found), bound)

    def _is_settled(self, found: tuple[Mailbox, ...], holds: bool) -> bool:
        """Whether it holds however the rest is read: one matching recipient is enough."""
        return holds and not (self.all or self.none or self.count) and bool(found)

    def _taken(self, args: Mapping[str, Any]) -> Recipients:
        found: list[Mailbox] = []
        doubt = ""
        for key, value in self._named(args):
            if not self.every and not may_name_somebody(value):
                continue  # `to: /tmp/x` of a tool that moves files
            taken = read_recipients(value)
            found += taken.found
            doubt = doubt or (f"{shown(key)} {taken.doubt}" if taken.doubt else "")
        return Recipients(tuple(dict.fromkeys(found)), doubt)

    def _named(self, args: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
        for key, value in args.items():
            if not self.argument and may_name_somebody(key):
                yield key, key  # some services accept `{address: name}`
            if self.argument:
                if key == self.argument:
                    yield key, value
            else:
                yield from self._below(key, value)

    def _below(self, key: str, value: object) -> Iterator[tuple[str, object]]:
        """Yield what an argument, or an entry below it, says about recipients."""
        words = [word.lower() for word in _WORDS.findall(key)]
        if _tells_recipients(words):
            yield key, value
        elif isinstance(value, Mapping):
            yield from self._named(cast("Mapping[str, Any]", value))
        elif is_recipients(value):  # under any name, unless the name says otherwise
            yield from [(key, value)] if not (self.every and _OTHERS.intersection(words)) else []
        elif isinstance(value, (list, tuple)):
            for item in cast("Sequence[object]", value):
                yield from self._below(key, item)
        elif isinstance(value, str) and _HEADERS.intersection(words) and _HEADER.search(value):
            yield key, value


def _tells_recipients(words: Sequence[str]) -> bool:
    """Whether an argument whose name has these words holds recipients."""
    last = next((word for word in reversed(words) if word not in _BEHIND), "")
    return last in _TOLD and "reply" not in words


def _in(patterns: tuple[AddressPattern, ...], address: Mailbox) -> bool:
    return any(pattern.fits(address) for pattern in patterns)
