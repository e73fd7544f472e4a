"""What is found in the pieces of a long text is what is found in the whole of it."""

from __future__ import annotations

import re
import unicodedata
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.core import pieces
from signoff.core.credential import credentials_in, may_hide_own
from signoff.core.declared_secrets import declared
from signoff.core.hiding_places import hiding_places
from signoff.core.normal_form import NormalForm, normal_form
from signoff.core.pieces import PIECE, characters, matches
from signoff.core.redact import redact_text

WORD, NO_WORD = re.compile(r"(?<![a-z])[a-z]{3,}"), re.compile("[^a-z]")
TOKEN = "ghp_" + "a1B2" * 6
OWN = "sot_" + "a1B2" * 6
SECRET = "correct-horse-battery-staple"


@given(st.text("ab 1", max_size=60), st.integers(1, 9))
def test_matches_are_those_of_the_whole_text(text: str, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE", size)
        assert [one.span() for one in matches(WORD, text, NO_WORD)] == [one.span() for one in WORD.finditer(text)]
        assert characters(text) == set(text)


@given(
    st.text("a \u0301\u0316é\u212b\u1100\u1161", max_size=60),
    st.integers(1, 9),
    st.sampled_from(["NFC", "NFD", "NFKC"]),
)
def test_a_text_is_normalised_in_pieces_as_it_is_at_once(text: str, size: int, form: NormalForm) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE", size)
        assert normal_form(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("before", ["a ", "é ", "x", "%"])
@pytest.mark.parametrize("at", [*range(PIECE - 40, PIECE + 3, 3), 2 * PIECE - 1])
def test_a_credential_is_found_over_the_end_of_a_piece(before: str, at: int) -> None:
    text = (before * at)[: at - 1] + " "
    end = " a" * PIECE
    for token in (TOKEN, OWN):
        assert [one.start for one in credentials_in(text + TOKEN + end)] == [at]
        assert token not in redact_text(text + token + end)
    spelled = "".join(f"\\x{ord(char):02x}" for char in OWN)
    assert may_hide_own(text + spelled + end) and not may_hide_own(f"{'a ' * at} {end}")
    assert spelled not in redact_text(text + spelled + end)


@pytest.mark.parametrize("at", [*range(PIECE - 60, PIECE + 3, 5), PIECE * 3 // 4])
def test_a_declared_secret_is_found_in_base64_over_the_end_of_a_piece(at: int) -> None:
    packed = b64encode(f"xx {SECRET} yy".encode()).decode()
    text = ("ab " * at)[:at] + f" {packed}" + " cd" * PIECE
    clues = declared((SECRET,)).clues
    assert clues is not None
    found = hiding_places(text, clues)
    assert any(start <= text.index(packed) and end >= text.index(packed) + len(packed) for start, end in found)
    assert packed not in redact_text(text, secrets=(SECRET,))
