"""A declared secret is found however it is quoted, escaped, encoded or cut, in work that grows with the text alone."""

from __future__ import annotations

import html
import json
import re
import shlex
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.steps import grows_linearly
from tests.tables import table

from signoff.core.declared_secrets import declared, in_headers
from signoff.core.redact import Redactor, redact_text
from signoff.core.safe_text import safe_beginning, safe_text

SECRET = "p4ss\"w\\'ord/with space é+x\nand a second line of it"
PIECES = ("p4ss", "space", "second line", "cDRz", "with%20", "u00e9", "xe9")
SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "an error": lambda one: repr(KeyError(one)),
    "an error as text": lambda one: str(KeyError(one)),
    "in a list": lambda one: repr([one]),
    "beside both quotes": lambda one: repr(f"{one}'\""),
    "ascii": ascii,
    "bytes": lambda one: repr(one.encode()),
    "JSON": json.dumps,
    "JSON, as written": lambda one: json.dumps(one, ensure_ascii=False),
    "a shell word": lambda one: shlex.join(["run", one]),
    "URL": lambda one: quote(one, safe=""),
    "URL, slashes kept": quote,
    "URL, lower case": lambda one: re.sub("%..", lambda code: code[0].lower(), quote(one, safe="")),
    "a form": quote_plus,
    "escapes": lambda one: one.encode("unicode_escape").decode(),
    "HTML": html.escape,
    "base64": lambda one: b64encode(one.encode()).decode(),
    "base64 for URLs": lambda one: urlsafe_b64encode(one.encode()).decode(),
    "basic authorization": lambda one: b64encode(f"ana:{one}".encode()).decode(),
    "base64 in the middle": lambda one: b64encode(f"a{one}zz".encode()).decode(),
    "one line of it": lambda one: one.splitlines()[1],
    "cut": lambda one: f"{one[:20]}…",
    "cut with dots": lambda one: f"{one[:20]}...",
    "its end": lambda one: f"…{one[-20:]}",
    "its end after dots": lambda one: f"...{one[-12:]}",
    "cut and quoted": lambda one: f"{one[:20]!r}"[:-1] + "…",
}


@table("spelling", SPELLINGS)
def test_a_secret_is_found_in_every_spelling(spelling: str) -> None:
    told = SPELLINGS[spelling](SECRET)
    masked = redact_text(f"it was {told}, they say", secrets=[SECRET])
    assert "declared secret⟧" in masked
    assert not [piece for piece in PIECES if piece in masked], masked
    assert masked.startswith("it was ") and masked.endswith("they say")


@given(st.text(min_size=12, max_size=40).filter(str.strip), st.integers(9, 40), st.sampled_from(["…", "..."]))
@examples(200)
def test_what_is_left_of_a_cut_secret_is_masked(secret: str, size: int, dots: str) -> None:
    if "://" in secret or ":" in secret[:9]:
        return  # the scheme of a URL is no secret
    masked = redact_text(f"({secret[:size]}{dots}|{dots}{secret[-size:]})", secrets=[secret])
    assert masked.count("declared secret") >= 1
    assert secret[:9] not in masked.replace("masked", "") or secret[:9] in "(declared secret⟧…"


def test_a_short_secret_is_masked_alone_and_in_quotes() -> None:
    assert "abc" not in redact_text("abc", secrets=["abc"])
    assert "abc" not in redact_text("invalid value 'abc'", secrets=["abc"])
    assert "abc" not in redact_text('{\\"key\\": \\"abc\\"}', secrets=["abc"])
    assert redact_text("abcdef", secrets=["abc"]) == "abcdef"


def test_the_credentials_in_headers_are_secrets_without_their_scheme() -> None:
    assert in_headers({"Authorization": "Bearer XYZ-123", "X-Key": "k"}) == ("Bearer XYZ-123", "XYZ-123", "k")


HOSTILE = (
    "…", "...", ".", "a…", "…a", SECRET[:8], SECRET[-8:], f"{SECRET[:9]}…", f"…{SECRET[-9:]}", SECRET, "⟦masked 1: x⟧",
    "⟦masked ", "⟦", "password: b12345678 ", "cookie: a=b; ", "-u a:b ", "sot_" + "aB3-" * 10 + " ", "\u0301", "аa ",
)  # fmt: skip


@table("piece", HOSTILE)
def test_the_work_grows_with_the_text_alone(piece: str) -> None:
    grows_linearly(lambda size: piece * (size // len(piece)), lambda text: safe_text(text, secrets=[SECRET]), 1_500)


def test_a_text_with_ever_longer_marks_is_read_once() -> None:
    """To choose its placeholder a mask looks for marks that the text has already."""
    text = "".join(f"⟦masked{chr(39) * size} " for size in range(300)) + SECRET
    redactor = Redactor([SECRET], avoid=text)
    assert f"⟦masked{chr(39) * 300} 1: declared secret⟧" in redactor.text(text)


def test_what_cannot_be_masked_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redactor, "found", lambda *_: 1 / 0)
    assert safe_beginning("hush", longest=100) == "(a text of 4 characters that could not be masked: ZeroDivisionError)"


@given(st.text(max_size=60), st.integers(1, 50))
def test_the_beginning_of_a_text_is_the_text_or_says_that_it_is_not(text: str, longest: int) -> None:
    shown = safe_beginning(text, longest=longest)
    assert shown == safe_text(text) or shown.endswith(f"… ({len(text):,} characters)")


def test_a_secret_at_the_end_of_what_is_read_is_masked() -> None:
    for before in range(24_000 - 60, 24_000):
        assert "plain-words" not in safe_beginning(
            "x" * before + "plain-words-that-are-long", longest=24_000, secrets=["plain-words-that-are-long"]
        )
    assert declared(("a",)) is declared(("a",))
