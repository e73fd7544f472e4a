"""A long text is read in every spelling only where a secret may stand: what a reading of all of it finds is found."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.core.test_unescaped import SPELLINGS, chains, plain, secrets, spelled, texts
from tests.profiles import examples
from tests.tables import table

from signoff.core import hiding_places
from signoff.core.declared_secrets import declared
from signoff.core.redact import Redactor
from signoff.core.unescaped import unescaped

FILLERS = (
    "", "plain words in a row and no end of them ", "it's Ana's ", "don't ", 'she said "no" ', "x = 'a' + \"b\"\n",
    "\\", "\\n", '{"a": "b\\n", "c": "\\u00e9\\""}, ', "%20and%2F", "a+b+", "&amp; &quot;", "é😀 ", "$'\\''", "'", '"',
    "''", "\t\n", "...x", "… ", "YWJjZGVmZ2hpamts\n", "YWJjZGVmZ2hpamtsbW5v", "\\x41", "%41", "&#65;", "a'b",
    "/usr/lib/x ", "--key=value\\\n",
)  # fmt: skip
fillers = st.builds(
    lambda piece, size: piece * (size // max(1, len(piece))), st.sampled_from(FILLERS), st.integers(0, 900)
)
around = st.lists(fillers, min_size=2, max_size=3).map("".join)


@pytest.fixture(autouse=True, scope="module")
def every_text_is_long() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hiding_places, "SHORT", 0)
        yield


def found_in_all_of_it(text: str, told: Sequence[str]) -> set[int]:
    """The slow way: every character of a declared secret in any reading of the whole text."""
    known = declared(tuple(told))
    spans = [span for one in unescaped(text, known.may_stand_in) for span in known.spans(one)]
    return {at for start, end in spans for at in range(start, end)}


def found(text: str, told: Sequence[str]) -> set[int]:
    spans = Redactor(told).found(text)
    return {at for one in spans for at in range(one.start, one.end)}


@examples(1_500, daily=60)
@given(secrets, texts, texts, chains, st.lists(plain, min_size=4, max_size=4), around, around)
@example("p4ss 'word", "", "", ["a shell word"], ["", "", "", ""], "it's " * 200, "don't " * 201)
@example("secret-word", "", "", ["base64", "JSON"], ["", "", "", ""], "a" * 801 + " ", " b" * 400)
def test_what_a_reading_of_the_whole_finds_is_found(
    secret: str, before: str, after: str, chain: list[str], beside: list[str], left: str, right: str
) -> None:
    text = left + spelled(f"{before}{secret}{after}", chain, beside) + right
    assert found_in_all_of_it(text, [secret]) <= found(text, [secret]), text


@examples(500, daily=60)
@given(
    secrets.filter(lambda one: len(one) > 8), st.integers(1, 23), st.sampled_from(["…", "..."]), chains, around, around
)
def test_what_is_left_of_a_cut_secret_is_found(
    secret: str, size: int, dots: str, chain: list[str], left: str, right: str
) -> None:
    for part in (f"{secret[:size]}{dots}", f"{dots}{secret[-size:]}"):
        text = left + spelled(part, chain, ["", "", "", ""]) + right
        assert found_in_all_of_it(text, [secret]) <= found(text, [secret]), text


@examples(1_000, daily=60)
@given(secrets, around, chains, around)
def test_a_long_text_without_the_secret_is_unchanged(secret: str, left: str, chain: list[str], right: str) -> None:
    told = left + spelled(right, chain, ["k: ", "", "", ""])
    assert Redactor([f"Ж{''.join(secret.split())}Ж"]).found(told) == Redactor().found(told)


INNER = ("JSON", "a shell word", "URL", "base64", "HTML, every character", "a shell word with backslashes")
DEEP = (
    "p4ss'w\"x\\y&%41+/é",
    "p4ssword" + "'\"/" * 20,  # one word, far from the other end
    "'\"/" * 20 + "p4ssword",
    "p4ss" + "éß/" * 20 + "word",
)


@table("name", sorted(SPELLINGS))
def test_a_secret_deep_in_a_long_text_is_found_in_each_spelling(name: str) -> None:
    """As in all of the text, though only a part of it is read, which may begin within quotes."""
    for secret in DEEP:
        for inner in INNER:
            here = spelled(secret, [inner, name], ["k:", "", "", ""])
            for quote_before in ("", "'"):
                text = f"{quote_before}{' x y' * 300}{here}{' x y' * 300}"
                first, last = text.index(here), text.index(here) + len(here)
                expected = {at for at in found_in_all_of_it(text, [secret]) if first <= at < last}
                assert expected <= found(text, [secret]), (quote_before, inner, here)
                assert expected or quote_before, (inner, here)


@table("name", sorted(SPELLINGS))
def test_a_secret_that_is_cut_deep_in_a_long_text_is_found(name: str) -> None:
    secret = "p4ss\"w'ord/and+more"
    whole = SPELLINGS[name][0](secret)
    some = 0
    for size in range(1, len(whole), 1 + len(whole) // 12):
        for cut in (f"{whole[:size]}…", f"...{whole[-size:]}"):
            text = f"{' x y' * 300}{cut}{' x y' * 300}"
            expected = found_in_all_of_it(text, [secret])
            assert expected <= found(text, [secret]), cut
            some += len(expected)
    assert some


def test_a_part_of_a_text_is_not_its_end() -> None:
    """Most of a secret is masked where a text ends, as it was cut; not where only what is read ends."""
    secret = "open-sesame-to-the-door-and-more"
    text = f"{'x ' * 300}{secret[:20]}{' x' * 300}%41{' x' * 300}"
    for before in range(0, 600, 7):
        assert not found(text[before:], [secret])


CODE = "def save(self, path: str) -> None:\n    self.write(path, 'w', encoding=\"utf-8\")  # it's kept\n"
LONG_TEXTS = {
    "prose": "It is kept as it was written, and the reader's patience is the only limit. ",
    "code": CODE,
    "JSON": json.dumps({"path": "src/one.py", "text": CODE}),
    "URL": quote(CODE),
    "base64": b64encode(CODE.encode()).decode() + "\n",
}


@table("name", sorted(LONG_TEXTS))
def test_little_of_a_long_text_is_read_in_every_spelling(name: str) -> None:
    told = ["hunter2hunter2", "p4ss'word", "postgresql://app:hunter2@db.example.com/app", "sk_test_ABCDEF0123456789"]
    text = LONG_TEXTS[name] * (100_000 // len(LONG_TEXTS[name]))
    clues = declared(tuple(told)).clues
    assert clues is not None
    places = hiding_places.hiding_places(text, clues)
    assert sum(end - start for start, end in places) < 3_000
