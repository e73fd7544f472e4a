"""Conditions on URLs: host, scheme, port, path, method, and whether the host is private."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from signoff.policy.call_paths import Facts
from signoff.policy.commands import ARGUMENT
from signoff.policy.glob import Glob
from signoff.policy.match_result import YES, MatchResult, Truth
from signoff.policy.phrases import listed, shown
from signoff.policy.shell.line import Word
from signoff.policy.shell.simple_command import Concern, judge_words
from signoff.policy.url import PORTS, Url, read_url, urls_in

_KEYS = re.compile(
    r"(?:.*[_-])?(?:url|uri|urls|uris|endpoint|href|urls|endpoints|link|webhook|address|proxy)|.*(?:Url|Uri|URL|URI)",
    re.DOTALL,
)
_PATTERN = re.compile(r"(?:([a-z][a-z0-9+.-]*)://)?([^/:\s@]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?(/\S*)?", re.IGNORECASE)

_BARE = re.compile(
    r"""(?:[\w.+-]+@)?((?:localhost|\[[0-9a-f:.]+\]|(?:\d{1,3}\.){3}\d{1,3}|0x[0-9a-f.x]+|127(?:\.\d+)*|\d{8,}
        |[a-z0-9_-]+(?:\.[a-z0-9_-]+)*(?=:\d)|(?:[a-z0-9_-]+\.)+(?:internal|local|localhost|lan|intranet|svc))
        \.?(?::\d+)?(?:/.*)?)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""What a program such as `curl` reads as an address, and what is hardly a file."""
_NAME = re.compile(r"(?:[\w.+-]+@)?((?:[a-z0-9_-]+\.)+[a-z]{2,}\.?(?::\d+)?(?:/.*)?)", re.IGNORECASE | re.DOTALL)
"""What may as well be a file."""


class BadUrl(ValueError):
    """An unusable pattern; the message says why and what to write."""


@dataclass(frozen=True, slots=True)
class UrlPattern:
    """A pattern such as `https://api.example.com/v1/**`. Scheme, port and path are optional.

    `*.example.com` does not match `example.com`.
    """

    text: str
    scheme: str = field(init=False, compare=False)
    host: Glob = field(init=False, compare=False)
    port: int | None = field(init=False, compare=False)
    path: Glob | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Raises `BadUrl` or `BadGlob`."""
        found = _PATTERN.fullmatch(self.text)
        if found is None:
            raise BadUrl(
                "write a host, as in `api.example.com`, or a URL pattern, as in `https://api.example.com/v1/**`"
            )
        host = found[2].strip("[]").lower()
        if not host.isascii():
            host = read_url(f"https://{host}/").host
        if not host.replace(".", "").strip("*"):
            raise BadUrl("the host is all wildcards; leave `url` out to match every URL")
        object.__setattr__(self, "scheme", (found[1] or "").lower())
        object.__setattr__(self, "host", Glob(host, over_names=True))
        object.__setattr__(self, "port", int(found[3]) if found[3] else None)
        object.__setattr__(self, "path", Glob(found[4]) if found[4] else None)

    def fits(self, url: Url, *, sure: bool) -> bool:
        """Whether the URL matches. `sure` in allow rules: then an omitted scheme or port means only the usual ones."""
        if self.host.find(url.host) is not Truth.YES:
            return False
        if self.scheme and url.scheme != self.scheme:
            return False
        if sure and not self.scheme and url.scheme not in ("http", "https"):
            return False
        port = self.port if self.port is not None else PORTS.get(url.scheme) if sure else None
        if port is not None and url.port != port:
            return False
        return self.path is None or self.path.find(url.path) is Truth.YES or (not sure and self.path.pattern == "/**")


@dataclass(frozen=True, slots=True)
class UrlCondition:
    """URLs of the call: in allow rules every one must match, without doubt; otherwise any one, in any argument."""

    patterns: tuple[UrlPattern, ...] = ()
    schemes: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()
    private: bool | None = None
    argument: str = ""
    every: bool = False
    text: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        words = [f"like {listed(one.text for one in self.patterns)}"] if self.patterns else []
        words += [f"by {' or '.join(sorted(self.schemes))}"] if self.schemes else []
        words += [f"with method {' or '.join(sorted(self.methods))}"] if self.methods else []
        words += [f"on a {'private' if self.private else 'public'} host"] if self.private is not None else []
        object.__setattr__(self, "text", f"to a URL {' '.join(words)}")

    @property
    def stands_for(self) -> str:
        """The argument whose value a plain text in a rule's examples is."""
        return self.argument or "url"

    def find(self, facts: Facts) -> MatchResult:
        method = self._method(facts.call.args) if self.methods else YES
        if method.truth is Truth.NO:
            return method
        found = self._every(facts) if self.every else self._some(facts)
        return method if found.truth is Truth.YES else found

    def _every(self, facts: Facts) -> MatchResult:
        if not any(True for _ in self._named(facts.call.args)):
            return MatchResult.no("no argument has the name of a URL")
        for text, _ in self._any(facts.call.args):  # a call to an allowed URL must not go to another one as well
            url = read_url(text)
            if url.doubt or not self._holds(url, sure=True):
                why = f"{shown(text[:120])} {url.doubt or self._not()}"
                facts.note(why)
                return MatchResult.no(why)
        return YES

    def _some(self, facts: Facts) -> MatchResult:
        doubt = ""
        for text, named in (*self._any(facts.call.args), *self._bare(facts)):
            url = read_url(text)
            if named and url.doubt and "://" not in text:
                url = read_url(f"https://{text}")
            if url.host and self._holds(url, sure=False):
                facts.note(f"the URL leads to {shown(url.host)}")
                return YES
            doubt = doubt or (f"{shown(text[:120])} {url.doubt}" if url.doubt else "")
        return (
            MatchResult.unknown(doubt)
            if doubt
            else MatchResult.no(f"no argument is a URL {self.text.removeprefix('to a URL ')}")
        )

    def _not(self) -> str:
        return f"is not a URL {self.text.removeprefix('to a URL ')}"

    def _holds(self, url: Url, *, sure: bool) -> bool:
        if self.private is not None and url.private is not self.private:
            return False
        if self.schemes and url.scheme not in self.schemes:
            return False
        return not self.patterns or any(pattern.fits(url, sure=sure) for pattern in self.patterns)

    def _method(self, args: Mapping[str, Any]) -> MatchResult:
        method = args.get("method")
        if not isinstance(method, str):
            return MatchResult.unknown("the call does not name its method")
        return YES if method.upper() in self.methods else MatchResult.no(f"the method is {shown(method)}")

    def _named(self, args: Mapping[str, Any]) -> Iterator[str]:
        for key, value in args.items():
            if key == self.argument if self.argument else _KEYS.fullmatch(key):
                yield from _texts(value)
            elif not self.argument and isinstance(value, Mapping):
                yield from self._named(cast("Mapping[str, Any]", value))

    def _any(self, args: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
        named = list(self._named(args))
        yield from ((text, True) for text in named)
        if not self.argument:
            for value in args.values():
                yield from ((url, False) for text in _texts(value) for url in urls_in(text) if url not in named)

    def _bare(self, facts: Facts) -> Iterator[tuple[str, bool]]:
        """Yield the addresses without a scheme in a shell command that connects to other machines: `curl localhost`."""
        command = facts.call.args.get(ARGUMENT)
        if not isinstance(command, str) or self.schemes or self.argument not in ("", ARGUMENT):
            return
        for argv in facts.shell(command).commands:
            judged = judge_words([Word(word) for word in argv if word is not None])
            if isinstance(judged, Concern) and judged.effect == "sends":
                for word in filter(None, argv[1:]):
                    if found := _BARE.fullmatch(word) or (_NAME.fullmatch(word) if self.private is None else None):
                        yield f"https://{found[1]}", False


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a value. A value that is not a text is yielded as `str`."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[str, Any]", value).values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in cast("Sequence[Any]", value):
            yield from _texts(item)
    elif value is not None:
        yield str(value)
