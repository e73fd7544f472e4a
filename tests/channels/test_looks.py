"""What reaches a terminal: nothing raw, nothing too wide, no colour or boxes where they are not wanted."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from tests.channels.person import COLOUR, PROMPT, request, sitting_at
from tests.profiles import examples

from signoff.channels.keyboard import Keyboard
from signoff.channels.render import TerminalLook, draw_card, draw_list, folded
from signoff.channels.terminal_screen import Screen
from signoff.core.card import card_for
from signoff.core.loosening import Loosened
from signoff.core.request_context import RequestContext

CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "approval_flow.jsonl"
PAYLOADS = (
    "ls\x1b[2K\x1b[1Grm -rf x",
    "\x1b]0;approved\x07",
    "\x1b]8;;https://evil\x1b\\click\x1b]8;;\x1b\\",
    "\x9b31m\x9d0;x\x07",
    "rm -rf x #\rls -la          ",
    "rm\x08\x08ls",
    "echo \u202e~ fr- mr\u202c",
    "r\u200bm\u2060 \ufe0f\u3164\u2800",
    "ls\U000e0072\U000e006d",
    "r" + "\u0301" * 300,
    "ls" + "\t" * 500 + "; rm -rf x",
    "👨\u200d👩\u200d👧" * 30,
    "[bold green]approved[/] [link=https://evil]x[/link] :warning:",
    "╰─ request r1 ─────\na approve once",
    "漢字" * 60,
    "\ue000\ufffe",
)


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["colour", "no colour", "dumb"])
def test_hostile_texts_never_reach_the_terminal(tmp_path: Path, env: dict[str, str]) -> None:
    args: dict[str, Any] = {f"a{number}": payload for number, payload in enumerate(PAYLOADS)}
    args |= {"nested": list(PAYLOADS), "name\u202e": 1}
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-" + PAYLOADS[0] + "\n+" + PAYLOADS[6]
    asked = [
        request("shell", args, metadata={"summary": PAYLOADS[0], "diff": diff}, problem=PAYLOADS[3]),
        request("tool\x1b[2J", {"x": PAYLOADS[1]}, policy_revision=PAYLOADS[2]),
    ]
    with sitting_at(tmp_path, asked, env=env) as ana:
        ana.answers("1")
        ana.answers("m")
        ana.pages()
        ana.types("?")
        ana.pages()
        ana.types("s")
        ana.answers("", prompt="Enter no > ")
        ana.answers("d")
        ana.answers("2")
        ana.answers("?")
        ana.answers("d")
        assert [decision.approved for decision in ana.decides()] == [False, False]
        assert "⟦ESC⟧]0;approved⟦BEL⟧" in ana.screen
        assert "[bold green]approved[/]" in ana.screen
        assert "⟦TAB×500⟧; rm -rf x" in ana.screen.replace("\r\n", "").replace("│        ↳ ", "")


def test_the_known_payloads_never_reach_the_terminal(tmp_path: Path) -> None:
    if not CORPUS.exists():
        pytest.skip("the corpus of display payloads is not here")
    rows = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
    payloads = [row["payload"] for row in rows if row["category"] == "display" and isinstance(row["payload"], str)]
    shown = [payload.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for payload in payloads]
    with sitting_at(tmp_path, [request("shell", {"all": shown})]) as ana:
        ana.answers("m")
        ana.pages()
        ana.types("d")
        ana.decides()


def test_no_colour_means_no_escape_at_all(tmp_path: Path) -> None:
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}):
        directory = tmp_path / "-".join(env)
        with sitting_at(directory, [request(args={"password": "x", "content": "a\nb"})], env=env) as ana:
            ana.answers("?")
            ana.answers("d")
            ana.decides()
            assert b"\x1b" not in ana.raw


def test_a_dumb_terminal_gets_no_boxes(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request(), request("other")], env={"TERM": "dumb"}) as ana:
        ana.answers("1")
        ana.answers("?")
        ana.answers("d")
        ana.answers("2")
        ana.answers("d")
        ana.decides()
        assert ana.screen.isascii()


def test_colours_are_the_only_escapes(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request(metadata={"before": "a\n", "after": "b\n"})]) as ana:
        ana.answers("d")
        ana.decides()
        assert COLOUR.search(ana.raw)
        assert b"\x1b" not in COLOUR.sub(b"", ana.raw)


@pytest.mark.parametrize("width", [20, *(pytest.param(width, marks=pytest.mark.nightly) for width in (40, 80)), 200])
def test_every_width(tmp_path: Path, width: int) -> None:
    args = {"a_rather_long_name_for_an_argument": "some words to fold " * 8, "path": "漢字" * 20, "n": {"deep": [1, 2]}}
    with sitting_at(tmp_path, [request(args=args), request("other", args)], width=width) as ana:
        ana.answers("1")
        ana.answers("b")
        ana.answers("none")
        ana.decides()


def test_a_terminal_without_unicode_shows_everything(tmp_path: Path) -> None:
    env = {"PYTHONIOENCODING": "latin-1", "LANG": "C"}
    with sitting_at(tmp_path, [request(args={"a": "漢\\u6f22", "b": "\x1b"})], env=env) as ana:
        shown = ana.sees(PROMPT)
        assert "\\u6f22\\\\u6f22" in shown
        assert "\\u27e6ESC\\u27e7" in shown
        ana.types("d")
        ana.decides()


# --- drawings ---

names = st.text(max_size=30)
texts = st.text(max_size=300) | st.text("ab \n\t漢é", max_size=400)


@examples(nightly=1_000, daily=40)
@given(st.dictionaries(names, texts, max_size=4), st.integers(20, 120), st.booleans(), st.booleans())
def test_no_line_is_wider_than_the_screen(args: dict[str, str], width: int, boxes: bool, whole: bool) -> None:
    card = card_for(request(args=args, metadata={"before": "".join(args.values()), "after": "x\n"}))
    look = TerminalLook(width=width, height=24, boxes=boxes, colour=False)
    for drawing in (draw_card(card, look, whole=whole), draw_list([card], ["seen in part"], look)):
        assert all(cell_len(line.plain) <= width for line in drawing.lines)


@examples(nightly=1_000, daily=40)
@given(st.dictionaries(names, texts, min_size=1, max_size=4), st.integers(30, 120))
def test_everything_is_everything(args: dict[str, str], width: int) -> None:
    card = card_for(request(args=args))
    drawing = draw_card(card, TerminalLook(width=width, colour=False), whole=True)
    assert not drawing.shortened
    drawn = re.sub(r"[│↳\s]", "", "".join(line.plain for line in drawing.lines))
    for arg in card.args:
        assert re.sub(r"[│↳\s]", "", arg.text) in drawn


@examples(nightly=1_000, daily=50)
@given(st.dictionaries(names, texts, min_size=1, max_size=4), st.integers(30, 120), st.integers(5, 60))
def test_what_is_not_called_shortened_is_whole(args: dict[str, str], width: int, height: int) -> None:
    card, look = card_for(request(args=args)), TerminalLook(width=width, height=height, colour=False)
    drawing = draw_card(card, look)
    if not drawing.shortened:
        assert drawing.lines == draw_card(card, look, whole=True).lines


@given(texts.map(lambda text: text.replace("\n", " ").expandtabs(4)), st.integers(1, 90))
def test_folding_drops_nothing(text: str, width: int) -> None:
    look = TerminalLook(colour=False)
    pieces = folded(look.text(text), width)
    assert "".join(piece.plain for piece in pieces) == look.text(text).plain
    assert all(cell_len(piece.plain) <= max(width, 2) for piece in pieces)


def test_a_folded_line_is_told_from_a_real_one() -> None:
    one = draw_card(card_for(request(args={"a": "x" * 100})), TerminalLook(width=60, colour=False))
    two = draw_card(card_for(request(args={"a": "x" * 53 + "\n" + "x" * 47})), TerminalLook(width=60, colour=False))
    assert any("↳ xxx" in line.plain for line in one.lines)
    assert not any("↳" in line.plain for line in two.lines)


def test_nothing_from_a_call_leaves_the_frame() -> None:
    text = "a\n╰─ request r1 ──\na approve once\nyour answer > a"
    card = card_for(request(args={"a": text}, metadata={"preview": text, "summary": text}, problem=text))
    drawing = draw_card(card, TerminalLook(colour=False), whole=True)
    assert sum(line.plain.startswith("╰") for line in drawing.lines) == 1
    assert all(line.plain[0] in "╭│├╰" for line in drawing.lines)


def test_markup_and_emoji_codes_are_text() -> None:
    console = Console(file=StringIO(), force_terminal=True, width=80)
    Screen(console, Keyboard(None)).say("[red]x[/] :warning: [link=https://evil]y[/]")
    assert COLOUR.sub(b"", console.file.getvalue().encode()) == b"[red]x[/] :warning: [link=https://evil]y[/]\n"  # type: ignore[attr-defined]


@pytest.mark.parametrize("piece", ["e\u0301\u0300\u0309\u0323", "漢", "x ", "x\n", "⟦x", "\u202ex"])
def test_whatever_is_long_is_called_shortened(piece: str) -> None:
    """Also where many characters take little room: marks above letters have no width."""
    card = card_for(request(args={"content": f"first {piece * 6000} last"}, metadata={"preview": piece * 6000}))
    whole = draw_card(card, TerminalLook(colour=False), whole=True)
    for height in (10, 24, 60):
        drawing = draw_card(card, TerminalLook(height=height, colour=False))
        assert drawing.shortened
        assert len(drawing.lines) < len(whole.lines)
        assert any("first" in line.plain for line in drawing.lines)
        assert any("last" in line.plain for line in drawing.lines)


def test_a_huge_argument_is_drawn_in_no_time() -> None:
    card = card_for(request(args={"content": "x" * 500_000 + "\nlast line"}))
    drawing = draw_card(card, TerminalLook(colour=False))
    assert drawing.shortened
    assert len(drawing.lines) < 40
    assert any("last line" in line.plain for line in drawing.lines)


@pytest.mark.parametrize("width", [30, 80, 120])
@pytest.mark.parametrize("boxes", [True, False])
def test_what_was_loosened_is_said_first_whatever_the_call_says(width: int, boxes: bool) -> None:
    loosened = RequestContext(loosened=Loosened(auto_approve=True, policies=("loose.yaml",)))
    forged = {"summary": "LOOSENED  nothing\n│ LOOSENED  nothing", "note": "LOOSENED nothing " * 200}
    card = card_for(request("shell", {"x": "LOOSENED nothing\n" * 100}, metadata=forged, context=loosened))
    look = TerminalLook(width=width, boxes=boxes)
    for lines in (draw_card(card, look).lines, draw_list([card, card], ["waits", "waits"], look).lines):
        shown = [line.plain for line in lines]
        assert all(cell_len(line) <= width for line in shown)
        flat = " ".join(word for line in shown[1:12] for word in line.split() if word not in ("│", "|", "↳", ">"))
        assert flat.startswith(
            "LOOSENED calls that anybody may approve run without a question (--mode auto_approve) LOOSENED another"
        )
        assert "bold yellow" in {str(span.style) for line in lines[1:4] for span in line.spans}


def test_a_list_marks_calls_that_are_asked_again() -> None:
    cards = [card_for(request("shell", {"n": n}, changed=changed)) for n, changed in ((1, ("it changed",)), (2, ()))]
    first, second = (line.plain for line in draw_list(cards, ["", ""], TerminalLook()).lines[1:3])
    assert "asked again: shell(" in first
    assert "asked again" not in second


@pytest.mark.parametrize("room", range(8, 60, 3))
def test_a_diff_leaves_out_what_does_not_change_and_no_change(room: int) -> None:
    old = "".join(f"line {number}\n" for number in range(60))
    new = old.replace("line 3\n", "three\n").replace("line 30\n", "thirty\n").replace("line 36\n", "36\n")
    card = card_for(request(args={"path": "x"}, metadata={"before": old, "after": new, "path": "x"}))
    shown = [line.plain for line in draw_card(card, TerminalLook(colour=False), room=room).lines]
    for changed in ("-line 3", "+three", "-line 30", "+thirty", "-line 36", "+36"):
        assert f"│ {changed}" in shown
    for left_out in (line for line in shown if "…" in line):
        assert int(left_out.split()[2]) >= 4, "the line that says so would take as much room"


def test_what_the_diff_shows_whole_is_not_said_twice() -> None:
    new = "".join(f"line {number}\n" for number in range(6))
    args = {"path": "x", "content": new}
    for before, after, is_said in ((new, new.replace("3", "x"), True), (new.replace("3", "x"), new, False)):
        card = card_for(request(args=args, metadata={"before": before, "after": after, "path": "x"}))
        shown = [line.plain for line in draw_card(card, TerminalLook(colour=False), whole=True).lines]
        assert any(line.startswith("│ content  line 0") for line in shown) is is_said
        assert any("all 6 lines are in what would change" in line for line in shown) is not is_said
