"""`signoff show` of a call with long arguments: bounded, true about what is left out, and paged at a terminal."""

from __future__ import annotations

import re

from tests.cli.desk import Desk, Said, asks
from tests.cli.wording import Wording

from signoff.core.request import State

LINES = 2_000
LONG = "".join(f"line {number:06d}\n" for number in range(LINES)) + "the end"
SECRET = "s3cr3t-value-17"


def asked_about(desk: Desk, **more: object) -> str:
    [one] = desk.open(asks("write_file", {"path": "notes/a.md", "content": LONG, **more}))
    return one


def test_of_a_long_argument_the_ends_are_shown_and_how_much_is_between(desk: Desk) -> None:
    one = asked_about(desk)
    said = desk.run("show", one)
    rows = said.out.splitlines()
    assert len(rows) < 600
    shown = re.findall(r"line \d{6}|the end", said.out)
    [left] = [row for row in rows if "more lines" in row]
    assert f"… {LINES + 1 - len(shown):,} more lines (" in left
    assert "kB)" in left
    assert "the end" in said.out
    flat = " ".join(said.out.replace("│ ↳", "").split())
    assert f"`signoff show {one} --whole` prints everything, `--arg NAME` only one argument" in flat


def test_a_call_that_was_answered_is_not_asked_about_any_more(desk: Desk) -> None:
    [one] = desk.open(asks(metadata={"before": "a\n", "after": "b\n", "path": "x"}))
    open_card = desk.run("show", one).out
    assert "may pay run?" in open_card and "what would change" in open_card
    assert desk.run("deny", one, "--as", "ana").code == 0
    for words in ((), ("--whole",)):
        card = desk.run("show", one, *words).out
        assert "may pay run?" not in card and "would change" not in card and "the change in x: +1 -1" in card


def test_whole_shows_every_line(desk: Desk) -> None:
    said = desk.run("show", asked_about(desk), "--whole")
    assert said.out.count("line 0") == LINES
    assert "more lines" not in said.out


def test_one_long_line_counts_characters(desk: Desk) -> None:
    [one] = desk.open(asks("write_file", {"content": "x" * 100_000}))
    said = desk.run("show", one)
    left = re.search(r"… ([\d,]+) more characters", said.out)
    assert left is not None
    assert int(left[1].replace(",", "")) == 100_000 - len(re.findall("x", _without_words(said)))


def _without_words(said: Said) -> str:
    """Only the rows that hold the argument."""
    return "\n".join(row for row in said.out.splitlines() if re.fullmatch(r"│ +(content)? *(↳ )?x+", row))


def test_an_argument_alone_is_printed_as_it_is_but_for_secrets(desk: Desk) -> None:
    one = asked_about(desk, api_token=SECRET, numbers=[1, 2], odd="a\x1b[2J\u202eb")
    assert desk.run("show", one, "--arg", "content").out == LONG + "\n"
    assert desk.run("show", one, "--arg", "numbers").out == "[\n  1,\n  2\n]\n"
    assert desk.run("show", one, "--arg", "api_token").out == "⟦masked 1: token⟧\n"
    assert desk.run("show", one, "--arg", "odd").out == "a\x1b[2J\u202eb\n"


def test_an_argument_alone_does_nothing_to_a_terminal(desk: Desk) -> None:
    one = asked_about(desk, odd="a\x1b[2J\u202eb\nnext")
    program = desk.sits_down("show", one, "--arg", "odd")
    program.expect_exact("a⟦ESC⟧[2J⟦U+202E⟧b\r\nnext\r\n")


def test_an_argument_that_is_not_there(desk: Desk, wording: Wording) -> None:
    one = asked_about(desk)
    said = desk.run("show", one, "--arg", "contnet")
    assert (said.code, said.err) == (2, wording())
    said = desk.run("show", one, "--arg", "content", "--json")
    assert (said.code, said.err) == (2, wording())


def test_for_programs_nothing_is_cut(desk: Desk) -> None:
    assert desk.run("show", asked_about(desk), "--json").data["args"]["content"] == LONG


def test_at_a_terminal_what_does_not_fit_goes_through_the_pager(desk: Desk) -> None:
    one = asked_about(desk)
    pager = desk.directory / "pager"
    pager.write_text("#!/bin/sh\necho paged; grep -c 'line 0'; exit 0\n")
    pager.chmod(0o700)
    program = desk.sits_down("show", one, PAGER=str(pager))
    program.expect("paged\r\n4\\d\\d\r\n")
    program = desk.sits_down("show", one, "--whole", PAGER=str(pager))
    program.expect(f"paged\r\n{LINES}\r\n")
    program = desk.sits_down("show", one, "--no-pager", PAGER=str(pager))
    program.expect_exact("signoff approve")
    assert "paged" not in str(program.before)


def test_what_fits_the_screen_needs_no_pager(desk: Desk) -> None:
    [one] = desk.open(asks())
    program = desk.sits_down("show", one, PAGER="false", LINES="60")
    program.expect_exact("signoff approve")


def test_what_show_leaves_out_is_not_read(desk: Desk) -> None:
    long = asks("mail", {"to": "ana", "body": "\n".join(f"row {number}" for number in range(900))})
    [request] = desk.open(long)
    for seen, code in (
        (["show", request], 1),
        (["show", request, "--arg", "body"], 1),
        (["show", request, "--whole"], 0),
    ):
        assert desk.run(*seen).code == 0
        assert desk.run("approve", request).code == code, seen
    assert desk.request(request).state is State.APPROVED


def test_one_person_reads_for_themselves_only(desk: Desk) -> None:
    [request] = desk.open(asks("mail", {"to": "ana", "body": "word " * 2_000}))
    assert desk.run("show", request, "--as", "ben").code == 0
    said = desk.run("approve", request, "--as", "cleo")
    assert (said.code, "read all of it before you approve it" in said.err) == (1, True)
    assert desk.run("approve", request, "--as", "ben").code == 0
