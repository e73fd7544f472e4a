"""What a model says, as it stands on a terminal: nothing hidden, nothing forged, the same however it came."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.cli.markdown import Markdown
from signoff.cli.progress import BAR
from signoff.cli.terminal_text import cells

SGR = re.compile(r"\x1b\[[\d;]+m")
ANSWER = """\
# Shopping

You have **three** things, and `milk_2` is *old*:

- milk, see [the shop](https://shop.example/milk)
- eggs
  1. brown

| what | how many |
|---|---|
| milk | 2 |

```python
print("**not bold**")

```
> as you said
"""


def rendered(*pieces: str, width: int = 40, styled: bool = True) -> str:
    words = Markdown(width, styled=styled, bar=BAR)
    return "".join([*map(words.feed, pieces), words.end()])


def plain(text: str) -> list[str]:
    return [line.removeprefix(BAR).rstrip() for line in SGR.sub("", text).splitlines()]


def test_an_answer_as_people_read_it() -> None:
    assert plain(rendered(ANSWER)) == [
        "Shopping",
        "",
        "You have three things, and milk_2 is",
        "old:",
        "",
        " • milk, see the shop",
        "   (https://shop.example/milk)",
        " • eggs",
        "    1 brown",
        "",
        " what  how many",
        " ──────────────",
        " milk  2",
        "",
        "```python",
        'print("**not bold**")',
        "",
        "```",
        "▌ as you said",
    ]
    assert "\x1b[1mthree\x1b[0m" in rendered(ANSWER)


def test_without_styles_it_is_left_as_it_is() -> None:
    assert plain(rendered(ANSWER, width=0, styled=False)) == ANSWER.splitlines()


def test_a_paragraph_is_written_when_it_is_complete() -> None:
    words = Markdown(40, styled=True, bar=BAR)
    assert (words.feed("I am wri"), words.pending) == ("", "I am wri")
    assert (words.feed("ting\na **bold"), words.pending) == ("", "I am writing a **bold")
    assert plain(words.feed(" word** now\n\nAnd")) == ["I am writing a bold word now"]
    assert words.pending == "And"
    assert plain(words.end()) == ["", "And"]


TEXTS = st.text(st.sampled_from(list('ab 12*_`[]()#->|.\\\n\t\r\x1b\u202e┃│漢é\u0301<!&;:"')), max_size=120)


@given(TEXTS, st.lists(st.integers(0, 120), max_size=8), st.integers(0, 60), st.booleans())
@example("a\r\nb\r", [2, 5], 30, True)
@examples(2_000, 100)
def test_it_is_the_same_however_it_was_cut(text: str, cuts: list[int], width: int, styled: bool) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(places)]
    assert rendered(*pieces, width=width, styled=styled) == rendered(text, width=width, styled=styled)


@given(TEXTS, st.integers(24, 60))
@example("[a](b (c))", 40)
@example("[a]: /b", 40)
@example("7. a\n9. b", 40)
@example("| a12345678901234567890 | b12345678901234567890 |\n|---|---|\n| c | d |", 24)
@examples(2_000, 100)
def test_every_row_is_marked_and_fits_and_nothing_steers_or_is_hidden(text: str, width: int) -> None:
    written = rendered(text, width=width)
    bare = SGR.sub("", written)
    assert not {"\x1b", "\r", "\u202e", "\t"} & set(bare)
    assert bare == "" or bare.endswith("\n")
    for row in bare.splitlines():
        assert row.startswith(BAR)
        assert cells(row) <= width
    shown = iter(char for char in bare if char.isalnum())
    assert all(char in shown for char in text if char.isalnum()), "letters in their order, and none left out"


@pytest.mark.parametrize(
    "text",
    [
        "╭─ may write_file run? ──\n│ a\n╰─ request abcdefghjk\nyour answer > ",
        "  allowed       shell(command=\"rm -rf /\")",
        "you > yes",
    ],
)  # fmt: skip
def test_no_words_pass_for_a_question_or_a_line_of_progress(text: str) -> None:
    for row in SGR.sub("", rendered(text, width=80)).splitlines():
        assert row.startswith(BAR)


def test_a_link_shows_where_it_leads() -> None:
    assert plain(rendered("[https://bank.example](https://evil.example)", width=80)) == [
        "https://bank.example (https://evil.example)"
    ]
    assert plain(rendered("![](https://evil.example/pixel?x=1)", width=80)) == ["! (https://evil.example/pixel?x=1)"]


def test_comments_and_other_html_are_shown() -> None:
    assert plain(rendered("a <!-- run this --> b", width=80)) == ["a <!-- run this --> b"]
    assert plain(rendered("<!-- run this -->", width=80)) == ["<!-- run this -->"]
