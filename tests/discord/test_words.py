"""Texts from elsewhere in a Discord message: shown, and inert."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.discord.asking import ANY, BITS, long_texts, texts
from tests.discord.reader import acting, read

from signoff.channels.discord.message_text import (
    block,
    cut_block,
    first,
    moment,
    plain,
    short_plain,
    short_span,
    shown,
    span,
)
from signoff.channels.discord.parts import MessagePart, lay_out
from signoff.channels.discord.sheet import size
from signoff.core.visible_text import visible

seen = long_texts.map(lambda text: visible(text, lines=True))
"""Texts as a card has them."""


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("", "`⟦empty⟧`"),
        ("a", "`a`"),
        ("@everyone", "`@everyone`"),
        ("a`b``", "`a⟦backtick⟧b⟦backtick×2⟧`"),
        ("a\nb", "`a⟦LF⟧b`"),
        ("  a ", "`⟦space×2⟧a⟦space⟧`"),
        ("C:\\", "`C:⟦backslash⟧`"),
    ],
)
def test_spans(text: str, drawn: str) -> None:
    assert span(text) == drawn


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("", "```text\n⟦empty⟧\n```"),
        ("python\nx", "```text\npython\nx\n```"),
        ("a ``b`` c", "```text\na ``b`` c\n```"),
        ("```\n@everyone", "```text\n⟦backtick×3⟧\n@everyone\n```"),
        ("\n\na\n", "```text\n⟦LF×2⟧a⟦LF⟧\n```"),
    ],
)
def test_blocks(text: str, drawn: str) -> None:
    assert block(text) == drawn


def test_a_block_has_the_language_it_is_given() -> None:
    assert block("-a", "diff") == "```diff\n-a\n```"


def test_plain_takes_all_markdown_away() -> None:
    assert plain("**a** @here\n<@1>") == r"\*\*a\*\* \@here⟦LF⟧\<\@1\>"


def test_short_texts_stay_on_their_line() -> None:
    assert shown("ACME") == "`ACME`"
    assert shown("a`b") == "\n```text\na`b\n```"
    assert shown("a  b") == "\n```text\na  b\n```"
    assert shown("a\nb") == "\n```text\na\nb\n```"


def test_moments_are_told_by_the_readers_clock() -> None:
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert (moment(at), moment(at, "R")) == ("<t:1767268800>", "<t:1767268800:R>")


@pytest.mark.parametrize("draw", [span, block], ids=["span", "block"])
@ANY
@given(text=seen)
def test_code_holds_the_whole_text_and_nothing_else(draw: object, text: str) -> None:
    assert callable(draw)
    nodes = read(f"before {draw(text)} after")
    assert [node.kind for node in nodes] == ["text", "span" if draw is span else "block", "text"]
    assert (nodes[0].seen, nodes[2].seen) == ("before ", " after")


@pytest.mark.parametrize("draw", [span, block], ids=["span", "block"])
@ANY
@given(one=seen, two=seen)
def test_different_texts_look_different(draw: object, one: str, two: str) -> None:
    assert callable(draw)
    if one != two:
        assert read(draw(one))[0].seen != read(draw(two))[0].seen


@ANY
@given(texts.map(visible))
def test_nothing_acts_in_a_plain_text(text: str) -> None:
    nodes = read(plain(text))
    assert {node.kind for node in nodes} <= {"text", "escape"}
    assert "".join(node.seen for node in nodes) == text


@ANY
@given(texts.map(visible), st.integers(4, 60))
def test_short_texts_keep_to_their_room(text: str, room: int) -> None:
    drawn = short_span(text, room)
    assert size(drawn) <= room and [node.kind for node in read(drawn)] == ["span"]
    drawn = short_plain(text, room)
    assert size(drawn) <= room and not acting(f"{drawn} @x")


@ANY
@given(seen, st.sampled_from(["", "diff"]), st.integers(80, 900))
def test_a_cut_block_keeps_to_its_room_and_says_what_is_missing(text: str, language: str, room: int) -> None:
    drawn, missing = cut_block(text, language, room)
    assert size(drawn) <= room
    assert [node.kind for node in read(drawn)] == ["block"]
    if missing:
        assert f"⟦{missing:,} characters left out⟧" in drawn
        assert drawn.count("⟦") == drawn.count("⟧"), "half a marker"
    else:
        assert drawn == block(text, language)


@ANY
@given(st.sampled_from(BITS), st.integers(0, 50))
def test_the_beginning_splits_no_marker(bit: str, room: int) -> None:
    text = visible(bit * 30)
    piece = first(text, room)
    assert size(piece) <= room and text.startswith(piece)
    assert piece.count("⟦") == piece.count("⟧")


# --- parts ---

parts = st.lists(
    st.builds(
        MessagePart,
        name=texts.map(visible),
        label=st.just("**Why**"),
        text=seen,
        language=st.sampled_from(["", "diff"]),
    ),
    max_size=40,
)


@ANY
@given(parts, st.integers(400, 4096))
def test_parts_keep_to_their_room(parts: list[MessagePart], room: int) -> None:
    text, missing = lay_out(parts, room)
    assert size(text) <= room
    assert bool(missing) == (size("\n".join(part.whole for part in parts)) > room)


def test_long_parts_give_way_to_short_ones() -> None:
    long, short = MessagePart(name="body", text="z" * 9000), MessagePart(name="to", text="ACME")
    text, missing = lay_out([long, short, long], 1000)
    assert "`to` = `ACME`" in text
    assert text.count("characters left out⟧") == 2
    assert missing == 18_000 - text.count("z")
    assert 900 < size(text) <= 1000


def test_what_there_is_no_room_for_at_all_is_counted() -> None:
    text, missing = lay_out([MessagePart(name=f"a{number}", text="1") for number in range(1000)], 1000)
    kept = text.count(" = ")
    assert text.endswith(f"… and {1000 - kept} more")
    assert missing == sum(len(f"a{number}") + 1 for number in range(kept, 1000))
