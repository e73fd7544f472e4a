"""What a model says, as it stands on a terminal: nothing hidden, nothing forged, the same however it came."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.cli.markdown import BAR, Markdown
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
    words = Markdown(width, styled=styled)
    return "".join([*map(words.feed, pieces), words.end()])


def plain(text: str) -> list[str]:
    return [line.removeprefix(BAR) for line in SGR.sub("", text).splitlines()]


def test_an_answer_as_people_read_it() -> None:
    assert plain(rendered(ANSWER)) == [
        "Shopping",
        "",
        "You have three things, and milk_2 is",
        "old:",
        "",
        "• milk, see the shop",
        "  (https://shop.example/milk)",
        "• eggs",
        "  1. brown",
        "",
        "what  how many  ",
        "----  --------",
        "milk  2         ",
        "",
        "```python",
        'print("**not bold**")',
        "```",
        "> as you said",
    ]
    assert "\x1b[1mthree\x1b[0m" in rendered(ANSWER)


def test_without_styles_it_is_left_as_it_is() -> None:
    assert plain(rendered(ANSWER, width=0, styled=False)) == ANSWER.splitlines()


def test_words_are_written_as_they_come() -> None:
    words = Markdown(40)
    assert plain(words.feed("I am wri")) == ["I am"]
    assert words.feed("ting a **bold") == " writing a"
    assert words.feed(" word** now") == " \x1b[1mbold\x1b[0m \x1b[1mword\x1b[0m"
    assert words.end() == " now\n"


TEXTS = st.text(st.sampled_from(list("ab 12*_`[]()#->|.\\\n\t\r\x1b\u202e┃│漢é\u0301")), max_size=120)


@given(TEXTS, st.lists(st.integers(0, 120), max_size=8), st.integers(0, 60), st.booleans())
@example("**a _b** c_ `", [1, 2, 3, 4, 5], 30, True)
@example("bé_┃a_)>| \\\n", [3, 8, 10], 0, True)  # what stands before a mark was written already
@example(">é2_b\t#é\n_", [2, 5, 6], 30, True)
@example("漢\t\r)#*é\r*\r`-a┃ \u0301``", [19], 24, True)  # a mark that ends the text may go on
@example("\u202e\\`*> \x1b*│漢\\*`\t", [8, 10, 11], 30, True)
@examples(2_000, 200)
def test_it_is_the_same_however_it_was_cut(text: str, cuts: list[int], width: int, styled: bool) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(places)]
    assert rendered(*pieces, width=width, styled=styled) == rendered(text, width=width, styled=styled)


@given(TEXTS, st.integers(24, 60))
@examples(2_000, 200)
def test_every_row_is_marked_and_fits_and_nothing_steers(text: str, width: int) -> None:
    written = rendered(text, width=width)
    bare = SGR.sub("", written)
    assert not {"\x1b", "\r", "\u202e", "\t"} & set(bare)
    assert bare == "" or bare.endswith("\n")
    for row in bare.splitlines():
        assert row.startswith(BAR)
        assert cells(row) <= width


@given(TEXTS, st.integers(24, 60))
@examples(2_000, 200)
def test_no_letter_is_hidden(text: str, width: int) -> None:
    letters = [char for char in text if char.isalnum()]
    shown = iter(char for char in SGR.sub("", rendered(text, width=width)) if char.isalnum())
    assert all(char in shown for char in letters), "in their order, and none left out"


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
    assert plain(rendered("![](https://evil.example/pixel?x=1)", width=80)) == ["link (https://evil.example/pixel?x=1)"]


def test_comments_and_other_html_are_shown() -> None:
    assert plain(rendered("a <!-- run this --> b", width=80)) == ["a <!-- run this --> b"]
