"""What a model says at a terminal: secrets are masked, however the text is cut, and nothing else is changed."""

from __future__ import annotations

import html
import json
import shlex
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.cli.masked_stream import MaskedStream
from signoff.core.redact import Redactor

TOKEN = "ghp_" + "a1B2" * 9
KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEAx0y2zQ7m\n" * 4 + "-----END RSA PRIVATE KEY-----"
TEXTS = [
    f"I found {TOKEN}, and use it.",
    f"{TOKEN}",
    f"password: hunter2hunter2\nthen `{TOKEN}`\n\n{TOKEN}",
    f"The key:\n{KEY}\nis mine. -----BEGIN is a word.",
    "It is open sesame now, open the door, open sesame",
    "Nothing of the kind.\n\n- one\n- two  \n",
]


def streamed(text: str, cuts: list[int]) -> list[str]:
    stream, at, pieces = MaskedStream(["open sesame"]), 0, list[str]()
    for cut in sorted(cuts):
        pieces.append(stream.feed(text[at:cut]))
        at = max(at, cut)
    return [*pieces, stream.feed(text[at:]), stream.end()]


@given(st.sampled_from(TEXTS), st.data())
def test_however_a_text_is_cut_the_same_is_masked_in_it(text: str, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(text))))
    shown = "".join(streamed(text, cuts))
    assert shown == Redactor(["open sesame"]).text(text)
    assert not any(secret in shown for secret in (TOKEN, "hunter2", "MIIEow", "open sesame"))


@pytest.mark.parametrize("text", TEXTS)
def test_letter_by_letter_too(text: str) -> None:
    assert "".join(streamed(text, list(range(len(text))))) == Redactor(["open sesame"]).text(text)


@pytest.mark.parametrize("spell", [json.dumps, repr, html.escape, shlex.quote])
def test_a_spelled_secret_of_several_words_is_held_to_its_end(spell: Callable[[str], str]) -> None:
    secret = 'open "the" \\ door\'s <lock> now'
    stream = MaskedStream([secret])
    shown = [stream.feed(letter) for letter in f"I say {spell(secret)} and open the door."] + [stream.end()]
    assert "declared secret⟧" in "".join(shown) and "lock" not in "".join(shown)
    assert "".join(shown).endswith(" and open the door.") and "and " in shown


def test_words_are_shown_as_they_come() -> None:
    stream = MaskedStream()
    assert stream.feed("I look ") == "I look "
    assert stream.feed("at i") == "at "
    assert stream.feed("t.") == ""
    assert stream.end() == "it."


@pytest.mark.nightly
@pytest.mark.parametrize(
    "piece",
    [
        pytest.param("abcd", id="one word"),
        pytest.param("ab d", id="short words"),
        pytest.param("word ", id="prose", marks=pytest.mark.nightly),  # whatever takes long with it does with those
    ],
)
def test_time_grows_with_what_is_said_and_no_faster(piece: str) -> None:
    """Of several tries the fastest counts: whatever else runs here only ever adds to it."""

    def effort(pieces: int) -> float:
        stream, begun = MaskedStream(["open sesame"]), time.thread_time()
        for _ in range(pieces):
            stream.feed(piece)
        stream.end()
        return time.thread_time() - begun

    few = max(min(effort(500) for _ in range(3)), 1e-3)
    assert any(effort(4_000) <= 24 * few for _ in range(3))
