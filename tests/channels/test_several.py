"""Several calls at once: listed, opened, decided one by one or together."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.channels.person import COLOUR, PROMPT, request, sitting_at

from signoff.core.decision import Ending

THREE = [
    request("write_file", {"path": "a.txt"}, metadata={"summary": "Write a"}),
    request("shell", {"command": "git push"}),
    request("deploy", {"content": "line\n" * 60}, metadata={"summary": "Deploy\x1b[2J all"}),
]


def test_the_list(tmp_path: Path) -> None:
    with sitting_at(tmp_path, THREE) as ana:
        shown = COLOUR.sub(b"", ana.sees(PROMPT).encode()).decode().replace("\r", "")
        ana.types("none")
        assert [decision.approved for decision in ana.decides()] == [False] * 3
    assert shown.split("\n") == [
        "╭─ 3 calls wait for an answer " + "─" * 50,
        "│ 1  write_file: Write a",
        '│ 2  shell(command="git push")',
        "│ 3  deploy: Deploy⟦ESC⟧[2J all",
        "╰" + "─" * 79,
        "1-3 open one · o one after the other · all approve all, once each was seen",
        "none deny all · Ctrl-C deny all that is open",
        "",
    ]


def test_one_by_one_in_any_order(tmp_path: Path) -> None:
    with sitting_at(tmp_path, THREE) as ana:
        ana.answers("2")
        assert "git push" in ana.sees(PROMPT)
        ana.types("a")
        ana.sees("you approve it once: shell")
        listed = ana.sees(PROMPT)
        assert "2 of 3 calls wait for an answer" in listed
        assert "approved" in listed.rsplit("git push", 1)[1].split("\n")[0]
        ana.types("2")
        ana.sees("2 is decided already.")
        ana.answers("1")
        ana.answers("b")
        assert "seen" in ana.sees(PROMPT)
        ana.types("3")
        ana.answers("d")
        ana.answers("1")
        ana.answers("r")
        ana.answers("not now", prompt="audit log > ")
        decisions = ana.decides()
    assert [decision.approved for decision in decisions] == [False, True, False]
    assert decisions[0].note == "not now"


def test_one_after_the_other(tmp_path: Path) -> None:
    with sitting_at(tmp_path, THREE) as ana:
        ana.answers("o")
        ana.answers("d")
        ana.answers("a")
        ana.answers("d")
        assert [decision.approved for decision in ana.decides()] == [False, True, False]


def test_all_are_approved_only_when_all_were_seen_whole(tmp_path: Path) -> None:
    with sitting_at(tmp_path, THREE) as ana:
        ana.answers("all")
        ana.sees("Not yet: 1, 2 and 3 are not fully shown yet.")
        for number in ("1", "2", "3"):
            ana.answers(number)
            ana.answers("b")
        assert "seen in part" in ana.sees(PROMPT)
        ana.types("all")
        ana.sees("Not yet: 3 is not fully shown yet.")
        ana.answers("3")
        ana.answers("m")
        ana.pages()
        ana.types("b")
        ana.answers("all")
        ana.sees("you approve it once: Write a")
        assert [decision.approved for decision in ana.decides()] == [True] * 3


def test_nothing_else_decides_anything(tmp_path: Path) -> None:
    with sitting_at(tmp_path, THREE[:2]) as ana:
        for typed in ("", "a", "A", "y", "yes", "0", "4", "-1", "1 2", "approve", "٣"):
            ana.answers(typed)
            ana.sees("Nothing is decided.")
        ana.answers("none")
        assert [decision.approved for decision in ana.decides()] == [False, False]


def test_enter_in_the_list_and_on_the_cards(tmp_path: Path) -> None:
    with sitting_at(tmp_path, THREE[:2]) as ana:
        for _ in range(3):
            ana.answers("")
        ana.answers("1")
        for _ in range(3):
            ana.answers("")
        ana.answers("b")
        ana.answers("none")
        assert [decision.approved for decision in ana.decides()] == [False, False]


def test_ctrl_c_on_a_card_denies_that_call(tmp_path: Path) -> None:
    with sitting_at(tmp_path, THREE[:2]) as ana:
        ana.answers("1")
        ana.sees(PROMPT)
        ana.presses("\x03")
        ana.answers("2")
        ana.answers("a")
        assert [decision.approved for decision in ana.decides()] == [False, True]


@pytest.mark.parametrize(
    ("key", "note"), [("\x03", "interrupted at the terminal"), ("\x04", "the terminal was closed")]
)
def test_stopping_at_the_list_denies_what_is_open(tmp_path: Path, key: str, note: str) -> None:
    with sitting_at(tmp_path, THREE) as ana:
        ana.answers("2")
        ana.answers("a")
        ana.sees(PROMPT)
        ana.presses(key)
        decisions = ana.decides()
    assert [decision.approved for decision in decisions] == [False, True, False]
    assert decisions[0].note == note


@pytest.mark.parametrize(
    ("key", "opened"),
    [
        ("\x03", True),
        ("\x04", False),
        pytest.param("\x03", False, marks=pytest.mark.nightly),
        pytest.param("\x04", True, marks=pytest.mark.nightly),
    ],
    ids=["Ctrl-C-opened", "end of input-list", "Ctrl-C-list", "end of input-opened"],
)
def test_where_the_run_can_be_stopped_what_was_decided_counts_and_the_rest_stays_open(
    tmp_path: Path, key: str, opened: bool
) -> None:
    with sitting_at(tmp_path, THREE, options={"can_stop": True}) as ana:
        assert "q stop the run (also Ctrl-C)" in ana.sees(PROMPT)
        ana.types("2")
        ana.answers("a")
        ana.sees(PROMPT)
        if opened:
            ana.types("1")
            ana.sees(PROMPT)
        ana.presses(key)
        decisions = ana.decides()
    assert [one.ending for one in decisions] == [Ending.CANCELLED, Ending.APPROVED, Ending.CANCELLED]


def test_a_list_longer_than_the_screen_is_a_page_at_a_time(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request(f"tool_{number}") for number in range(40)]) as ana:
        listed = ana.pages()
        assert all(f"tool_{number}(" in listed for number in range(40))
        ana.types("none")
        ana.decides()


def test_one_of_several_is_withdrawn(tmp_path: Path) -> None:
    with sitting_at(tmp_path, THREE, withdraws=["r-shell"]) as ana:
        ana.sees(PROMPT)
        tmp_path.joinpath("withdraw").write_text("bob denied it")
        ana.sees("withdrawn, bob denied it: shell")
        ana.answers("none")
        assert [decision.ending for decision in ana.decides()] == [Ending.DENIED, Ending.CANCELLED, Ending.DENIED]
