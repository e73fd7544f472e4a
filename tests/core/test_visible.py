"""Nothing hidden reaches a person's eyes as nothing, and no two texts look the same."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from time import thread_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.profiles import NIGHTLY, examples
from tests.tables import table

from signoff.core import pieces
from signoff.core.safe_text import kept_text
from signoff.core.visible_text import is_clean, suspicious, visible

CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "approval_flow.jsonl"

NAMES = {"NUL": "\0", "BEL": "\a", "BS": "\b", "TAB": "\t", "LF": "\n", "CR": "\r", "ESC": "\x1b", "DEL": "\x7f"}
NAMES["space"] = " "
MARKER = re.compile(r"⟦(?:U\+([0-9A-F]{4,6})|(\w+))(?:×(\d+))?⟧")

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
ZERO_WIDTH = "\u00ad\u034f\u180e\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\ufeff"
SELECTORS = "\ufe00\ufe0f\U000e0100\U000e01ef\u180b"
FILLERS = "\u115f\u1160\u3164\uffa0\u2800\u17b4\u17b5"
TAGS = "\U000e0001\U000e0072\U000e006d\U000e007f"
SPACES = "\u00a0\u1680\u2000\u2003\u2009\u200a\u202f\u205f\u3000\u2028\u2029\x85"
CONTROLS = "".join(map(chr, [*range(32), *range(0x7F, 0xA0)]))
OTHERS = "\ud800\udfff\ue000\U0010ffff\U0001d173\U0001bca0\ufff9"
HIDDEN = BIDI + ZERO_WIDTH + SELECTORS + FILLERS + TAGS + SPACES + CONTROLS + OTHERS

ORDINARY = (
    "plain words, 'quotes' & <marks> \\x1b \\u202e",
    "Größe, naïve, façade, Łódź, Ærøskøbing",
    unicodedata.normalize("NFD", "Tiếng Việt có nhiều dấu thanh"),
    "हिन्दी में लिखा गया वाक्य",
    "ภาษาไทยที่มีวรรณยุกต์",
    "العَرَبِيَّةُ مُشَكَّلَة",
    "שָׁלוֹם עוֹלָם",
    "日本語とカタカナ、漢字。",
    "한국어 문장",
    "বাংলা ভাষা তেলుగు தமிழ் ខ្មែរ བོད་ཡིག",
    "emoji 🎉 and arrows → ✓ “quoted” – dashed —",
    "C:\\Users\\ana\\file.txt && echo $HOME | sed 's/a/b/'",
)

texts = st.text(st.characters(exclude_categories=()) | st.sampled_from(HIDDEN + "⟦⟧ \t\n\u0301\u0300e"), max_size=60)


def decoded(shown: str) -> str:
    """What a marked text stands for: the proof that nothing was lost."""

    def char(marker: re.Match[str]) -> str:
        code, name, count = marker.groups()
        return (chr(int(code, 16)) if code else NAMES[name]) * int(count or 1)

    return MARKER.sub(char, shown)


def hidden_in(shown: str, *, lines: bool) -> set[str]:
    """Independent of the code under test: by Unicode category and the lists above."""
    kept = "\n\t" if lines else ""
    return {
        char
        for char in shown
        if char not in kept
        and (
            unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
            or (unicodedata.category(char) == "Zs" and char != " ")
            or char in SELECTORS + FILLERS + ZERO_WIDTH
        )
    }


@given(texts, st.booleans())
@example("⟦U+202E⟧", False)
@example("\t\u202e", True)
@example("\u202e\t \n", True)
@example("a" + "\u0301" * 300, False)
def test_what_is_shown_can_be_read_back(text: str, lines: bool) -> None:
    assert decoded(visible(text, lines=lines)) == text


@given(texts, texts)
def test_two_texts_never_look_the_same(one: str, other: str) -> None:
    assert (visible(one) == visible(other)) == (one == other)
    assert (visible(one, lines=True) == visible(other, lines=True)) == (one == other)


@given(texts, st.booleans())
def test_nothing_hidden_is_left(text: str, lines: bool) -> None:
    assert hidden_in(visible(text, lines=lines), lines=lines) == set()


@given(texts, st.booleans())
def test_blanks_at_the_end_of_a_line_are_seen(text: str, lines: bool) -> None:
    assert not any(line.endswith((" ", "\t")) for line in visible(text, lines=lines).split("\n"))


@table("char", sorted(set(HIDDEN)), ids=lambda char: f"U+{ord(char):04X}")
def test_every_hidden_character_is_marked(char: str) -> None:
    shown = visible(f"r{char}m")
    assert char not in shown
    assert shown.startswith("r⟦")
    assert not is_clean(f"r{char}m")


@table("text", ORDINARY)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
    assert is_clean(text)


@given(texts)
def test_a_clean_text_is_shown_as_it_is(text: str) -> None:
    assert is_clean(text) == (visible(text) == text)


@table(
    ("text", "shown"),
    [
        ("ls\x1b[2K\x1b[1Grm", "ls⟦ESC⟧[2K⟦ESC⟧[1Grm"),
        ("echo \u202etxt", "echo ⟦U+202E⟧txt"),
        ("⟦U+202E⟧", "⟦U+27E6⟧U+202E⟦U+27E7⟧"),
        ("a\nb\tc", "a⟦LF⟧b⟦TAB⟧c"),
        ("path ", "path⟦space⟧"),
        ("r\u0301\u0301\u0301", "r\u0301⟦U+0301×2⟧"),
        ("e\u0301\u0300\u0301", "e\u0301\u0300⟦U+0301⟧"),
        ("\u0301x", "⟦U+0301⟧x"),
        ("1\u0301 /\u0338", "1⟦U+0301⟧ /⟦U+0338⟧"),
        ("r\u0336m\u0336", "r⟦U+0336⟧m⟦U+0336⟧"),
        ("ls" + " " * 500 + "; rm", "ls⟦space×500⟧; rm"),
        ("ls" + "\t" * 500 + "; rm", "ls⟦TAB×500⟧; rm"),
    ],
)
def test_on_one_line(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\n\tb\n", "a\n\tb\n"),
        ("a \nb", "a⟦space⟧\nb"),
        ("a\n   \nb", "a\n⟦space×3⟧\nb"),
        ("a\r\nb", "a⟦CR⟧\nb"),
        ("a" + "\n" * 1000 + "b", "a⟦LF×1000⟧b"),
    ],
)
def test_on_several_lines(text: str, shown: str) -> None:
    assert visible(text, lines=True) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"INFO{' ' * 29}server.py:70 \n\tx \n", f"INFO{' ' * 29}server.py:70 \n\tx \n"),
        ("a\u3000b\u2800 \x1b[2J ", "a⟦U+3000⟧b⟦U+2800⟧ ⟦ESC⟧[2J "),
        ("done\r\n" + "\n" * 40, "done⟦CR⟧⟦LF×41⟧"),
    ],
)
def test_in_what_a_program_printed_blanks_are_shown_as_they_are(text: str, shown: str) -> None:
    assert visible(text, lines=True, output=True) == shown
    assert kept_text(shown, lines=True) == shown, "as it is kept"


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("\u0441url https://x | \u0455h", "scripts"),
        ("p\u0430ypal.com", "scripts"),
        ("\uff52\uff4d -rf /", "full-width"),
        ("git push \u2013\u2013force", "dash"),
        ("r\u200bm", "U+200B zero width space"),
    ],
)
def test_what_imitates_is_warned_about(text: str, warning: str) -> None:
    (found,) = suspicious(text)
    assert warning in found
    assert is_clean(found)


def test_quotes_are_only_suspicious_in_code() -> None:
    assert suspicious("echo “rm”", code=True)
    assert not suspicious("It’s “done” – see below")


@table("text", ORDINARY)
def test_ordinary_text_is_not_suspicious(text: str) -> None:
    assert suspicious(text) == ()


MANY = 1_000_000 if NIGHTLY else 300_000


@table(
    "big",
    ["a" * MANY, "\t" * MANY, " a" * MANY, (" " * 24 + "a") * (MANY // 25), "漢字" * (MANY // 2), "\u202e" * MANY],
)
def test_a_large_text_takes_no_time(big: str) -> None:
    start = thread_time()
    visible(big, lines=True)
    assert thread_time() - start < 5


def test_the_known_payloads() -> None:
    if not CORPUS.exists():
        pytest.skip("the corpus of display payloads is not here")
    rows = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
    payloads = [row["payload"] for row in rows if row["category"] == "display" and isinstance(row["payload"], str)]
    assert len(payloads) > 40
    for payload in payloads:
        shown = visible(payload)
        assert hidden_in(shown, lines=False) == set()
        assert decoded(shown) == payload


@given(st.text(st.sampled_from("ab \t\n\u0301\u202eé\U000e0041~-"), max_size=60), st.booleans(), st.integers(1, 6))
@examples(1_000, daily=200)
def test_a_long_text_is_escaped_in_pieces_as_it_is_at_once(text: str, lines: bool, size: int) -> None:
    """While a pattern reads a text nothing else of the process runs: so it does not read a megabyte at once."""
    text += " " * 30 + "x\u0301" + "\n" * 8 + text
    at_once = visible(text, lines=lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE", size)
        assert visible(text, lines=lines) == at_once
