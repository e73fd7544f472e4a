"""Mask the values of variables in messages, however they are quoted, escaped or truncated there."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from signoff.store.store_urls import masked

HIDDEN = "‹hidden›"
_LONG = 8
"""Characters that a line of a secret, or the rest of a truncated one, must have to be recognised."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/{0,2}")


def hide(text: str, secrets: Iterable[str]) -> str:
    """Return the text with secrets masked."""
    forms = {form for secret in secrets for form in _forms(secret)}
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    for form in forms:
        text = _without_pieces(text, form)
    return text


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret as it is, and escaped as in Python code, JSON, a shell command or a URL."""
    for one in {secret, *(line for line in secret.splitlines() if len(line) >= _LONG)}:
        if not one:
            continue
        yield one
        yield repr(one.encode("utf-8", "surrogatepass"))[2:-1]
        for spelled in (repr, ascii):
            yield spelled(one)[1:-1]
            yield spelled(f"{one}'\"")[1:-4]  # if the text has quotes of both kinds, repr escapes them
        yield from (json.dumps(one)[1:-1], json.dumps(one, ensure_ascii=False)[1:-1])
        yield from (shlex.quote(one), one.encode("unicode_escape").decode("ascii"))
        yield quote(one, safe="", errors="surrogatepass")
        yield quote(one, errors="surrogatepass")
        yield masked(one)  # a URL without its password


def _without_pieces(text: str, form: str) -> str:
    """Mask what is left of a secret in a truncated message: its beginning before an ellipsis, its end after one."""
    scheme = _SCHEME.match(form)
    least = max(_LONG, (scheme.end() if scheme is not None else 0) + 1)  # the scheme of a URL is no secret
    if len(form) <= least:
        return text
    for dots in ("…", "..."):
        for at in _ends(text, dots):
            begun = next((size for size in _sizes(form, least) if text[:at].endswith(form[:size])), 0)
            if begun:
                return _without_pieces(f"{text[: at - begun]}{HIDDEN}{text[at:]}", form)
            after = at + len(dots)
            ended = next((size for size in _sizes(form, _LONG) if text.startswith(form[-size:], after)), 0)
            if ended:
                return _without_pieces(f"{text[:after]}{HIDDEN}{text[after + ended :]}", form)
    return text


def _ends(text: str, dots: str) -> list[int]:
    return [found.start() for found in re.finditer(re.escape(dots), text)]


def _sizes(form: str, least: int) -> range:
    return range(len(form) - 1, least - 1, -1)
