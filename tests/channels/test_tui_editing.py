"""Changing the arguments on the full screen: in the editor there, through the same checks as at the terminal."""

from __future__ import annotations

from typing import Any

from tests.channels.person import request
from tests.channels.tui import Reader, outcome, reading
from textual.widgets import TextArea

from signoff.channels.tui_requests import WaitingRequest


def write(ana: Reader, old: str, new: str) -> None:
    """Replace a text in the editor, as a paste would."""
    area = ana.pilot.app.screen.query_one(TextArea)
    assert old in area.text, area.text
    area.text = area.text.replace(old, new)


def edited(entry: WaitingRequest) -> Any:
    decision = outcome(entry)
    assert decision is not None and decision.approved
    return decision.edited_args


async def test_edit_look_and_confirm() -> None:
    async with reading(request()) as (ana, [entry]):
        await ana.presses("e")
        await ana.sees("The arguments of triage > write_file. You will see the changes before anything runs.")
        # real keys: the cursor goes to the last line with an argument, behind its text, and types
        await ana.presses("down", "down", "end", "left")
        await ana.types(" world")
        await ana.presses("ctrl+s")
        await ana.sees("your changes: +1 -1")
        assert '-  "content": "hello"' in ana.screen
        assert '+  "content": "hello world"' in ana.screen
        await ana.presses("enter", "a", "n", "space")
        assert entry.is_open
        await ana.presses("y")
        assert edited(entry) == {"path": "notes.txt", "content": "hello world"}


async def test_broken_json_is_told_where_it_is_and_can_be_mended() -> None:
    async with reading(request()) as (ana, [entry]):
        await ana.presses("e")
        write(ana, '"hello"', '"bye" oops')
        await ana.presses("ctrl+s")
        await ana.sees("These arguments cannot be used: line 3, column 20: Expecting ',' delimiter.")
        assert ana.pilot.app.screen.query_one(TextArea).cursor_location == (2, 19)
        write(ana, " oops", "")
        await ana.presses("ctrl+s", "y")
        assert edited(entry) == {"path": "notes.txt", "content": "bye"}


async def test_what_is_no_object_of_arguments_is_refused() -> None:
    async with reading(request(args={"a": 1})) as (ana, [entry]):
        await ana.presses("e")
        for old, new, told in (
            ('{\n  "a": 1\n}', "[1]", "the arguments have to be one object"),
            ("[1]", '{"a": 1, "a": 2}', 'the key "a" is given twice'),
            ('{"a": 1, "a": 2}', '{"a": NaN}', "NaN is not a JSON number"),
            ('{"a": NaN}', '{"a": 1}', "The arguments are unchanged."),
        ):
            write(ana, old, new)
            await ana.presses("ctrl+s")
            await ana.sees(told)
        assert entry.is_open


async def test_changes_are_not_lost_by_one_key() -> None:
    async with reading(request()) as (ana, [entry]):
        await ana.presses("e")
        write(ana, "hello", "bye")
        await ana.presses("escape")
        await ana.sees("Your changes will be lost: press Escape again to discard them.")
        await ana.presses("escape")
        await ana.sees("Nothing is decided.")
        assert entry.is_open
        await ana.presses("a")
        assert edited(entry) is None


async def test_back_from_the_changes_the_text_is_still_there() -> None:
    async with reading(request()) as (ana, [entry]):
        await ana.presses("e")
        write(ana, "hello", "bye")
        await ana.presses("ctrl+s", "escape")
        write(ana, "bye", "good night")
        await ana.presses("ctrl+s", "y")
        assert edited(entry) == {"path": "notes.txt", "content": "good night"}


async def test_changes_longer_than_the_screen_must_be_seen() -> None:
    args = {"path": "notes.txt", "lines": [f"line {number}" for number in range(60)]}
    async with reading(request(args=args)) as (ana, [entry]):
        await ana.presses("e")
        write(ana, '"line ', '"row ')
        await ana.presses("ctrl+s", "y")
        await ana.sees("Not everything has been on the screen yet")
        assert entry.is_open
        await ana.presses(*["space"] * 12, "y")
        assert edited(entry) == {"path": "notes.txt", "lines": [f"row {number}" for number in range(60)]}


async def test_masked_secrets_are_not_shown_and_come_back() -> None:
    args = {"url": "https://u:pw99@old.example/x", "password": "hunter2", "note": "declared-1", "more": "declared-2"}
    asked = request(args=args, secrets=("declared-2",))
    async with reading(asked, secrets=["declared-1"], size=(110, 40)) as (ana, [entry]):
        shown = ana.screen
        await ana.presses("e")
        await ana.sees("to keep its masked value")
        shown += ana.pilot.app.screen.query_one(TextArea).text
        write(ana, "old.example", "new.example")
        await ana.presses("ctrl+s")
        shown += ana.screen
        await ana.presses("y")
        for secret in ("hunter2", "pw99", "declared-1", "declared-2"):
            assert secret not in shown
        assert edited(entry) == args | {"url": "https://u:pw99@new.example/x"}


async def test_a_moved_mask_is_refused() -> None:
    async with reading(request(args={"to": "ana", "password": "hunter2"})) as (ana, [entry]):
        await ana.presses("e")
        write(ana, '"to": "ana"', '"to": "⟦masked 1: password⟧"')
        await ana.presses("ctrl+s")
        await ana.sees("to: a mask was moved or copied here")
        assert entry.is_open


async def test_what_was_not_accepted_is_mended_from_there() -> None:
    asked = request(problem="content: at most 3 characters", metadata={"draft": {"path": "x", "content": "four"}})
    async with reading(asked) as (ana, [entry]):
        await ana.sees("(answer not accepted)")
        await ana.sees(
            "Your answer to write_file (request r-write_file) was not accepted: content: at most 3 characters"
        )
        assert "what the tool says" not in ana.flat and "four" not in ana.flat, "no tool says what ana wrote"
        [(told, _)] = ana.waiting.told
        assert told == "not accepted, write_file (request r-write_file): content: at most 3 characters"
        await ana.presses("e")
        await ana.sees("Not accepted before: content: at most 3 characters")
        write(ana, "four", "abc")
        await ana.presses("ctrl+s", "y")
        assert edited(entry) == {"path": "x", "content": "abc"}
