"""Recognise credentials (secrets): by the names of keys, and by the shapes of well-known tokens.

Every pattern starts at the start of a word and consumes the word, so that searching a large text stays linear. None
matches a blank, a quote or a separator of shell commands, so that masking cannot hide a command.
"""

from __future__ import annotations

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from signoff.core.pieces import PIECE, matches, parts


@dataclass(frozen=True, slots=True)
class Credential:
    """A span of a text that is a credential, and its kind."""

    start: int
    end: int
    kind: str


# --- names ---

_SECRET_WORDS = frozenset(
    "password passwd pwd passphrase passcode secret token authorization auth cookie credential credentials apikey "
    "accesskey secretkey privatekey authtoken accesstoken refreshtoken clientsecret bearer jwt otp cvv cvc".split()
)
_SECRET_PLURALS = frozenset({"passwords", "secrets", "tokens", "cookies"})
_SECRET_KEYS = frozenset(
    "api access secret private signing encryption auth master account service license ssh gpg".split()
)
# Words after the name of a secret that still mean the secret: `token_value`, `password2`, `secret_base64`.
_STILL = frozenset("value string text data raw plain plaintext base b header hash confirmation confirm new".split())
_COUNTED = frozenset("max min total input output prompt completion new cached reasoning num n used".split())
_TARGET_WORDS = frozenset(
    "path file filename filepath dir directory folder cwd root workdir destination dest source src target url uri "
    "endpoint link href host hostname domain server address addr ip port to cc bcc from sender recipient receiver "
    "email mail payee payer beneficiary iban account phone channel amount price total sum quantity qty cost fee "
    "currency limit count branch repo repository remote bucket table database schema region user username login".split()
)
# Every name of a secret contains one of these, in lower case. Words that contain another one are left out.
_NAMING = _SECRET_WORDS | _SECRET_PLURALS | {"key"}
_NAME_WORDS = tuple(word for word in sorted(_NAMING) if not any(one != word and one in word for one in _NAMING))
_NAME_WORD = re.compile("|".join(map(re.escape, _NAME_WORDS)))
_SHORT = 500
"""Up to this many characters, one pattern for all words is faster than a search for each."""
_SEAM = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+|(?<=[A-Za-z])(?=\d+$)")


@lru_cache(maxsize=4096)
def secret_name(name: str) -> str:
    """The kind of secret that a name such as `clientSecret` or `X-Api-Key` means, or an empty text.

    The last word decides: `access_token` is a secret; `token_count` and `secret_name` are not.
    """
    words = _words(name)
    while len(words) > 1 and words[-1] in _STILL:
        words = _without_number(words[:-1])
    if not words:
        return ""
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in ("key", "keys") and before in _SECRET_KEYS:
        return "API key" if before == "api" else f"{before} key"
    if words[-3:] == ("access", "key", "id"):
        return "access key"
    if last in _SECRET_PLURALS:
        return "" if before in _COUNTED else last[:-1]
    return last if last in _SECRET_WORDS else ""


@lru_cache(maxsize=4096)
def target_name(name: str) -> bool:
    """Whether a name means a path, host, recipient or amount: what a person must see to decide."""
    last = _words(name)[-1:]
    return bool(last) and (last[0] in _TARGET_WORDS or (last[0].endswith("s") and last[0][:-1] in _TARGET_WORDS))


def _words(name: str) -> tuple[str, ...]:
    return _without_number(tuple(word.lower() for word in _SEAM.split(name[-200:]) if word))


def _without_number(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[:-1] if len(words) > 1 and words[-1].isdigit() else words


# --- shapes ---


def own_credentials_in(text: str) -> Iterator[Credential]:
    """Find the credentials that signoff itself issues: tokens, keys of agents, sign-in links, sessions."""
    for match in _OWN.finditer(text):
        yield Credential(*match.span(), "signoff credential")


def may_hide_own(text: str) -> bool:
    """Whether such a credential may stand in a text in a spelling that hides it from `own_credentials_in`.

    JSON, URLs, HTML and shells spell it as it is, unless they are told to spell every character.
    """
    over = _LONGEST_HIDING
    return any(_MAY_HIDE.search(text, at, at + PIECE + over) is not None for at in range(0, len(text), PIECE))


def credentials_in(text: str) -> Iterator[Credential]:
    """Find every credential of a well-known shape in `text`. Some may overlap."""
    # In megabytes of text, searching for a word takes a hundredth of the time of trying a pattern at every position.
    for word in matches(_LONG_WORD, text, _NO_WORD):
        for match in _TOKEN.finditer(text, *word.span()):
            yield Credential(*match.span(), _TOKENS[(match.lastindex or 1) - 1][0])
    lower = text.lower() if text.isascii() else "".join(part.lower() for part in parts(text))
    if len(lower) != len(text):  # a few capital letters are two small ones
        lower = "".join(small if len(small := char.lower()) == 1 else char for char in text)
    for kind, word, before, shape in _IN_CONTEXT:
        end = 0
        for at in _places(lower, word):
            match = shape.match(text, at) if at >= end else None
            if before and match is None and at - before >= end:
                match = shape.match(text, at - before)
            if match is not None:
                yield Credential(*match.span(1), kind)
                end = match.end()
    yield from _private_keys(text)
    yield from _url_passwords(text)
    yield from _assignments(text, lower)


def _places(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def _naming_places(lower: str) -> Sequence[int]:
    """Where the words stand that a name of a secret has."""
    if len(lower) <= _SHORT:
        return [match.start() for match in _NAME_WORD.finditer(lower)]
    return sorted(at for word in _NAME_WORDS for at in _places(lower, word))  # much faster in a long text


_WITH_DIGIT = r"(?=[A-Za-z_-]{0,64}\d)"
_TOKENS = (
    ("Anthropic key", r"sk-ant-[A-Za-z0-9_-]{8,}"),
    ("API key", rf"(?:sk|xai|pplx|nvapi|tvly)-{_WITH_DIGIT}[A-Za-z0-9_-]{{16,}}|(?:gsk|r8)_[A-Za-z0-9]{{20,}}"),
    ("GitHub token", r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"),
    ("GitLab token", r"gl(?:pat|dt|rt|ptt|cbt|ft|soat|agent)-[A-Za-z0-9_.-]{16,}"),
    ("Slack token", r"(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}"),
    ("Discord token", r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}(?![\w-])"),
    ("Telegram token", r"(?:bot)?\d{8,10}:[A-Za-z0-9_-]{35}(?![\w-])"),
    ("AWS key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("Google key", r"AIza[A-Za-z0-9_-]{30,}"),
    ("Google token", r"(?:ya29\.|GOCSPX-)[A-Za-z0-9_-]{16,}"),
    ("Stripe key", r"(?:(?:sk|rk)_(?:live|test)_|whsec_)[A-Za-z0-9]{10,}"),
    ("package registry token", r"npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{40,}"),
    ("Hugging Face token", r"hf_[A-Za-z0-9]{20,}"),
    ("SendGrid key", r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("Shopify token", r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{20,}"),
    ("cloud token", r"(?:do[oprt]_v1_|dapi)[a-f0-9]{32,}"),
    ("Vault token", r"hv[sbr]\.[A-Za-z0-9_-]{20,}"),
    ("workspace token", r"(?:lin_api|ntn|secret)_[A-Za-z0-9]{30,}|(?:dckr_pat_|ATATT3)[\w=-]{20,}"),
    ("age key", r"AGE-SECRET-KEY-1[A-Z0-9]{30,}"),
    ("JWT", r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
)


def inside_base64(raw: bytes) -> Iterator[str]:
    """Yield what is the same in the base64 of every longer text with this in it: it may begin at three places."""
    for before in range(3):
        known = slice((before * 8 + 5) // 6, (before + len(raw)) * 8 // 6)
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(bytes(before) + raw).decode()[known]


# Its own are masked everywhere, also where other tokens are left visible because a person has to see a target.
_MARKS = ("sot_", "soi_", "sol_", "sos_")
_OWN = re.compile(
    rf"(?:{'|'.join(_MARKS)})(?:[A-Za-z0-9_-]{{20,}}|(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{{8,}}(?=…|\.\.\.|\Z))"
)
OWN_CLUE = re.compile(rf"so(?=[{''.join(mark[2] for mark in _MARKS)}](?:_|[%\\&]))")
OWN_PACKED = tuple(sorted({form for mark in _MARKS for form in inside_base64(mark.encode())}))
"""One stands in a text with such a credential in any spelling, unless a letter of it is escaped."""
_HEX = r"(?:2[dD]|3\d|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff])"
"""A letter, a digit, `-` or `_`."""
_LONGEST_HIDING = max(*map(len, OWN_PACKED), len("\\u0041"))
_MAY_HIDE = re.compile("|".join(OWN_PACKED) + rf"|%{_HEX}|\\(?:u00|x){_HEX}|\\1[0-7]{{2}}|\\[_-]|&#")
# No token is shorter than this or has other characters: most words are skipped without trying each pattern.
_LONG_WORD = re.compile(r"(?<![A-Za-z0-9_.:=-])[A-Za-z0-9_.:=-]{15,}")
_NO_WORD = re.compile(r"[^A-Za-z0-9_.:=-]")
_TOKEN = re.compile(
    r"(?:(?<![A-Za-z0-9_-])|(?<=%[0-9A-F]{2}))(?=[\w.:=-]{15})(?:"
    + "|".join(f"({shape})" for _, shape in _TOKENS)
    + ")"
)

_COOKIE = r"[\w.-]{1,64}=[^\s;\"'`|&<>()$]{1,4096}"
_IS = r"[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
# Kind, a word (in lower case) with which it begins, or this many characters before it, pattern.
_IN_CONTEXT = tuple(
    (kind, word, 1 if word == "-u" else 0, re.compile(shape))
    for kind, word, shape in (
        ("Slack webhook", "hooks", r"hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9_/-]{16,})"),
        (
            "Discord webhook",
            "discord",
            r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{1,20}/([A-Za-z0-9_-]{16,})",
        ),
        (
            "bearer token",
            "bearer",
            r"(?<![\w-])[Bb](?i:earer) {1,4}((?=[A-Za-z._~+/=-]{0,64}\d)[A-Za-z0-9][\w.~+/=-]{7,})",
        ),
        (
            "authorization",
            "author",
            rf"(?<!\w)[Aa](?i:uthorization){_IS}(?:(?i:bearer|basic|token|digest|apikey|negotiate)\s{{1,4}})?"
            r"([A-Za-z0-9][\w.~+/=:-]{3,})",
        ),
        ("cookie", "cook", rf"(?<!\w)[Cc](?i:ookie){_IS}({_COOKIE}(?:; ?{_COOKIE})*)"),
        (
            "password of a user",
            "-u",
            r"(?<!\S)(?:-u|--user)[ =][\"']?[^\s:\"'`;|&<>()/]{1,64}:((?!\d+(?:\s|$))[^\s\"'`;|&<>()]{1,256})",
        ),
    )
)

_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"[+-]?-----END [A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?-----")
# Only what the body of a key consists of: an `rm -rf` between the two lines stays visible.
_BREAK = r"(?:\s|\\[nr]){1,8}(?:[+-] ?)?"
_BODY = re.compile(
    rf"(?:{_BREAK}(?:(?:Proc-Type|DEK-Info|Version|Comment): [\w,.-]{{1,80}}|"
    rf"[A-Za-z0-9+/]{{24,}}={{0,2}}|[A-Za-z0-9+/]{{1,23}}={{1,2}}|=[A-Za-z0-9+/]{{4}}))*"
    rf"(?:{_BREAK}(?:[A-Za-z0-9+/]{{4}}){{1,6}}(?=\s|\\[nr]))?"
)
_GAP = re.compile(r"(?:\s|\\[nr]){0,8}")


def _private_keys(text: str) -> Iterator[Credential]:
    for begin in _BEGIN.finditer(text):
        body = _BODY.match(text, begin.end())
        stop = body.end() if body else begin.end()
        gap = _GAP.match(text, stop)
        end = _END.match(text, gap.end() if gap else stop)
        yield Credential(begin.start(), end.end() if end else stop, "private key")


_LEFT_OUT = "…"
_PASSWORD = re.compile(r"(?<=://)([^/?#@:]*):.*@", re.DOTALL)


def without_password(url: str) -> str:
    """A URL without its password. In a longer text nothing is sure to be left but what follows the last `@`."""
    return _PASSWORD.sub(rf"\1:{_LEFT_OUT}@", url)


_AUTHORITY = re.compile(r"://([^\s/?#\"'`<>\\]{1,512}+)")
_SEPARATOR = re.compile(r"[;|&()]")


def _url_passwords(text: str) -> Iterator[Credential]:
    for match in _AUTHORITY.finditer(text):
        userinfo, at, _host = match[1].rpartition("@")
        user, _colon, password = userinfo.partition(":")
        if not at or password in ("", _LEFT_OUT):  # none, or `without_password` left it out
            continue
        start = match.start(1) + len(user) + 1
        separator = _SEPARATOR.search(password)
        length = separator.start() if separator else len(password)
        if length:
            yield Credential(start, start + length, "password in a URL")


_LONGEST_NAME = 66
"""Characters of a name, with the two signs before it."""
_AROUND_SIGN = 20
"""Characters of what may stand between a name and its value."""
_NAMED = re.compile(
    r"(?<![A-Za-z0-9_.-])(?<!://)(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,63}+)(?:\\?[\"'])?\s{0,4}(?P<sign>=>|[:=])\s{0,4}(?:\\?[\"'])?"
)
_FLAG = re.compile(r"(?<!\S)--(?P<name>[A-Za-z][A-Za-z0-9-]{0,63}+)(?P<sign>[ =])[\"']?(?=[^\s-])")
_VALUE = re.compile(r"(?![/~.])[^\s\"'`$;|&<>()\\,{}\[\]]{4,}")
_VALUE_BEFORE_HOST = re.compile(r"(?![/~.])[^\s\"'`$;|&<>()\\,{}\[\]@]{4,}")
_NOTHING = frozenset({"none", "null", "true", "false", "bearer", "basic", "token", "digest", "undefined"})


def _assignments(text: str, lower: str) -> Iterator[Credential]:
    """Find `PASSWORD=…`, `--api-key …`, `"token": "…"`, `?access_token=…` inside a longer text."""
    places = _naming_places(lower)
    for names in (_NAMED, _FLAG) if places else ():
        at = 0
        for place in places:
            # Up to the place itself others may stand before it, as in `name: password: …`.
            while at <= place:
                name = names.search(text, max(at, place - _LONGEST_NAME), place + _LONGEST_NAME + _AROUND_SIGN)
                if name is None or name.start() > place:
                    break
                at = name.end()
                kind = secret_name(name["name"])
                shape = _VALUE_BEFORE_HOST if name["sign"] == ":" else _VALUE
                value = shape.match(text, at) if kind else None
                if value is not None and _is_secret_value(value[0], name["sign"]):
                    yield Credential(*value.span(), kind)
                    at = value.end()


def _is_secret_value(value: str, sign: str) -> bool:
    if value.lower() in _NOTHING:
        return False
    # Prose has colons: “the secret: patience”. A value has digits, or is long.
    return sign != ":" or len(value) >= 12 or any(char.isdigit() for char in value)
