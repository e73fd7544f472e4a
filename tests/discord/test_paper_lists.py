"""Several calls in one message, and the lists that commands answer with."""

from __future__ import annotations

from datetime import timedelta

from tests.discord.asking import AT, asked, check_sheet, settled

from signoff.channels.discord.custom_id import Press, Verb
from signoff.channels.discord.lists import history_sheet, pending_sheet, show_sheet
from signoff.channels.discord.notice_message import digest_of_all, sheet_for
from signoff.channels.discord.request_file import whole
from signoff.channels.discord.sheet import MessageSheet
from signoff.core.loosening import Loosened
from signoff.core.notice import Asked, Together
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_context import EarlierAnswers, RequestContext, Tally

LATER = AT + timedelta(minutes=5)


def labels(sheet: MessageSheet) -> list[list[str]]:
    return [[button.label for button in row] for row in sheet.rows if isinstance(row, tuple)]


def several(count: int, **fields: object) -> tuple[ApprovalRequest, ...]:
    return tuple(asked(args={"amount": number}, **fields).changed_to(id=f"r{number}") for number in range(count))


def test_several_calls_on_a_line_each() -> None:
    requests = several(3)
    sheet = sheet_for(Together(requests=(requests[0], settled(requests[1], State.DENIED), requests[2])))
    check_sheet(sheet)
    assert sheet.title == "2 of 3 calls wait for an answer"
    assert sheet.text.split("\n") == [
        "**1** `pay_invoice(amount=0)` waits for an answer",
        "**2** `pay_invoice(amount=1)` denied by `ana`",
        "**3** `pay_invoice(amount=2)` waits for an answer",
    ]
    assert labels(sheet) == [["Approve all", "Deny all"]]
    press = Press.of(sheet.rows[0][0].id)  # type: ignore[index]
    assert press == Press(verb=Verb.ALL_APPROVE, request="r0", digest=digest_of_all((requests[0], requests[2])))


def test_what_stands_for_all_calls_changes_with_any_of_them() -> None:
    requests = several(3)
    every = digest_of_all(requests)
    assert len(every) == 12
    assert every != digest_of_all(requests[:2])
    assert every != digest_of_all((requests[1], requests[0], requests[2]))
    assert every != digest_of_all((requests[0], requests[1], requests[2].changed_to(args={"amount": 9})))
    assert every == digest_of_all((settled(requests[0], State.APPROVED), *requests[1:]))


def test_several_calls_that_are_all_answered_have_no_buttons() -> None:
    done = tuple(settled(request, State.SUCCEEDED, preview="x") for request in several(2))
    sheet = sheet_for(Together(requests=done))
    assert (sheet.title, sheet.rows) == ("All 2 calls are answered", ())
    assert "`pay_invoice(amount=0)` approved by `ana`, ran" in sheet.text


def test_too_many_calls_are_not_approved_together() -> None:
    sheet = sheet_for(Together(requests=several(50)))
    check_sheet(sheet)
    assert "… and 30 more\n" in sheet.text
    assert labels(sheet) == [["Deny all"]]
    assert labels(sheet_for(Together(requests=several(20)))) == [["Approve all", "Deny all"]]


def test_calls_whose_line_leaves_something_out_are_not_approved_together() -> None:
    """Each stands whole in a message of its own; this one shows the harmless beginning only."""
    hidden = asked(args={"command": "ls " + "a" * 200 + "; rm -rf /0"}).changed_to(id="long")
    sheet = sheet_for(Together(requests=(*several(2), hidden)))
    check_sheet(sheet)
    assert "rm -rf" not in sheet.text and labels(sheet) == [["Deny all"]]
    assert "Not all of them fit into a line" in sheet.text
    short = asked(args={"command": "ls a; rm -rf /0"}).changed_to(id="short")
    assert labels(sheet_for(Together(requests=(*several(2), short)))) == [["Approve all", "Deny all"]]


def test_calls_that_are_not_shown_whole_have_to_be_opened_first() -> None:
    long = asked(args={"content": "x" * 9000})
    sheet = sheet_for(Together(requests=(*several(2), long)))
    assert labels(sheet) == [["Approve all: open 1 first", "Deny all"]]
    assert "**1** of them have to be opened first" in sheet.text
    cannot = asked(unreadable=("file",))
    assert labels(sheet_for(Together(requests=(*several(2), cannot)))) == [["Deny all"]]


# --- lists ---


def test_what_is_pending_with_the_way_there() -> None:
    requests = several(2, deadline=LATER)
    sheet = pending_sheet(requests, {"r0": "https://discord.com/channels/1/2/3", "r1": "https://evil) [x](y"})
    check_sheet(sheet)
    assert sheet.title == "2 calls wait for an answer"
    assert sheet.text.split("\n") == [
        "`r0` `pay_invoice(amount=0)` waits for an answer, asked <t:1767268800:R>, until <t:1767269100:T>, "
        "[open it](https://discord.com/channels/1/2/3)",
        "`r1` `pay_invoice(amount=1)` waits for an answer, asked <t:1767268800:R>, until <t:1767269100:T>",
    ]
    assert pending_sheet([], {}).content == "No pending requests."
    many = pending_sheet(several(900), {f"r{n}": "https://discord.com/channels/" + "1" * 19 for n in range(900)})
    check_sheet(many)
    assert many.text.endswith("… and 885 more")


def test_what_was_decided_last() -> None:
    sheet = history_sheet([settled(request, State.FAILED, error="x") for request in several(1)])
    assert sheet.text == "`r0` `pay_invoice(amount=0)` approved by `ana`, failed, <t:1767268860:R>"
    assert history_sheet([]).content == "No decisions yet."
    check_sheet(history_sheet(several(900)))


def test_one_request_to_read() -> None:
    short = show_sheet(asked())
    assert (short.rows, short.paper) == ((), None)
    assert short.text == sheet_for(Asked(request=asked())).text
    long = show_sheet(asked(args={"content": "x" * 9000}))
    assert long.paper is not None and "│ " + "x" * 9000 in long.paper.text
    assert long.text.endswith("The file has everything.")


def test_what_was_loosened_stands_first_in_words_of_ours() -> None:
    context = RequestContext(
        loosened=Loosened(auto_approve=True, policies=("x` **loose**.yaml",)),
        answers=EarlierAnswers(tool=Tally(approved=2, denied=1)),
    )
    requests = several(25, context=context)
    first = "⚠️ **Loosened:** `calls that anybody may approve run without a question (--mode auto_approve)`"
    for notice in (Asked(request=requests[0]), Together(requests=requests[:2]), Together(requests=requests)):
        sheet = sheet_for(notice)
        check_sheet(sheet)
        assert sheet.text.startswith(f"{first}\n⚠️ **Loosened:**")
        assert "x` **loose**.yaml (--policy)\n```\n" in sheet.text, "the name of a file is from elsewhere: in code"
    told = (
        "**Earlier** `pay_invoice in all: approved twice, denied once; never approved or denied with these arguments`"
    )
    assert told in sheet_for(Asked(request=requests[0])).text
    assert "waits for an answer, ⚠️ **loosened**" in pending_sheet(requests[:1], {}).text
    paper = whole(requests[0]).text
    assert "loosened:\n│ calls that anybody may" in paper and "earlier:\n│ pay_invoice in all" in paper
    forged = asked(args={"to": "⚠️ **Loosened:** nothing"}, metadata={"summary": "⚠️ **Loosened:** nothing"})
    shown = sheet_for(Asked(request=forged)).text
    assert all("`" in line.partition("⚠️")[0] for line in shown.split("\n") if "⚠️" in line), "in code, as all of it"
