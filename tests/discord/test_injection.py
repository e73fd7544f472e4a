"""Whatever a call brings along is inert and visible in a Discord message, for any call whatsoever."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.discord.asking import ANY, any_request, arguments, asked, check_sheet, long_texts, settled, texts
from tests.discord.reader import CODE, acting, outside, read
from tests.profiles import NIGHTLY, examples

from signoff.channels.discord.lists import history_sheet, pending_sheet, show_sheet
from signoff.channels.discord.message_text import span, spelled
from signoff.channels.discord.notice_message import sheet_for, shows_whole
from signoff.channels.discord.request_file import whole
from signoff.channels.discord.sheet import MessageSheet
from signoff.core.canonical import canonical
from signoff.core.card import AS_ASKED, card_for
from signoff.core.notice import Asked, RunResult, Together
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import RunState
from signoff.core.visible_text import is_clean, visible
from signoff.errors import CannotCanonicalise

CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "approval_flow.jsonl"
EVIL = "[docs](https://evil)\n```\n@everyone <@1> **Approved by ana**\n```diff\n+x"

# All that a message says in its own words, line by line; \0 stands for code.
_AT = r"<t:\d+(:[TR])?>"
_LABEL = (
    r"By|From|Session|Task|The model says|Before|What the tool says|"
    r"Why|Reason|Rule|Note|Comment|Message|Asked again:|Not evaluated:|Look twice:|Masked:|Needs|"
    r"Not accepted before:|Result|Error|What it would do|"
    r"What would change:|Nothing would change|Argument|No arguments|[\d,]+ arguments|\(no name\)"
)
OURS = re.compile(
    "|".join(
        (
            rf"\*\*(?:{_LABEL})\*\*(?: \+[\d,]+ -[\d,]+)?(?: \0)?",
            r"\0?(?: = \0)?",
            r"… and [\d,]+ more",
            rf"\*\*Until\*\* {_AT} \({_AT}\), then (?:it is denied|it runs|it stays open|the role \0 is asked)",
            r"\*\*Other arguments\*\* \(sha256 \w+\): (?:\+[\d,]+ -[\d,]+|only what is masked differs)",
            re.escape(AS_ASKED),
            r"\*\*Taken\*\* by \0",
            rf"\*\*Approved\*\*(?: other arguments \(sha256 \w+\))? by \0(?: in the place of \0)?, {_AT}",
            rf"\*\*(?:Approved|Denied)\*\* by \0(?: in the place of \0)?(?: via \0)? at {_AT}\.",
            rf"\*\*Approved\*\* at {_AT} by the rule: (?:nobody|too few people) answered in time\.",
            rf"\*\*Timed out\*\* at {_AT}: (?:nobody|too few people) answered in time\.",
            rf"\*\*Withdrawn\*\* at {_AT}\.",
            r"\*\*Edited:\*\* \+\d+ -\d+",
            r"\*\*Remembered\*\* for later calls, too\.",
            rf"\*\*Started\*\* at {_AT}, without an outcome yet\.",
            rf"\*\*It ran\*\*, and ended at {_AT}\.",
            rf"\*\*It happened\*\*, says \0 at {_AT}\.",
            rf"\*\*It failed\*\* at {_AT}\.",
            rf"\*\*It is unknown whether it ran\.\*\* It was started at {_AT}, "
            r"and its process died or stopped responding\.",
            r"Check, then say what happened: it is not run again automatically\. "
            r"If the process is only paused inside the tool, it may still happen\.",
            r"\*\*Not all of it fits here: [\d,]+ characters are left out\.\*\*"
            r"(?: Open it with \*Show whole\* first: you cannot approve it before\.)?"
            r"(?: (?:The file|\*Show whole\*|\0) has everything\.)?",
            r"\*\*This call cannot be shown, so it cannot be approved here\.\*\*",
            rf"\*\*\d+\*\* \0 .*|\0 \0 (?:[a-z, ]+)(?: by \0)?[a-z, ]*(?:,[a-z ]* {_AT})*",
            r"\*\*[\d,]+\*\* of them have to be opened first, with \*Show whole\*\.",
            r"There are too many to list, so approve them one by one\.",
            r"Not all of them fit into a line, so approve them one by one, where each stands whole\.",
        )
    )
)
TITLES = re.compile(
    r"(?:May \0 run\?|\0(?: was approved| was started| ran| failed| was denied|: nobody answered| was withdrawn)"
    r"|Did \0 happen\?)(?: \(\d+ of \d+\))?"
)


def check_inert(sheet: MessageSheet) -> None:
    assert acting(sheet.text) <= {"time"}, "something acts"
    for line in outside(sheet.text).split("\n"):
        assert OURS.fullmatch(line), f"not ours: {line!r}"
    check_visible(sheet.text)


def check_visible(text: str) -> None:
    """No character hides. Brackets of markers are ours: a text's own are spelled out."""
    hidden = [char for char in set(text) - set("⟦⟧ \n\t") if not is_clean(f"a{char}")]
    assert not hidden, f"something hides: {hidden!r}"


@examples(600, 12, suppress=[HealthCheck.data_too_large])
@given(any_request(), st.integers(1, 2))
def test_any_request_is_drawn_within_all_limits_and_inert(request: ApprovalRequest, of: int) -> None:
    sheet = sheet_for(Asked(request=request, number=1, of=of))
    check_sheet(sheet)
    check_inert(sheet)
    assert TITLES.fullmatch(outside(sheet.title))
    for listed in (pending_sheet([request], {}), history_sheet([request, request]), show_sheet(request)):
        check_sheet(listed)
        check_inert(listed)
        assert not listed.rows


@examples(600, 8, suppress=[HealthCheck.data_too_large])
@given(st.lists(any_request(), min_size=2, max_size=4))
def test_any_requests_together_are_drawn_within_all_limits_and_inert(requests: list[ApprovalRequest]) -> None:
    sheet = sheet_for(Together(requests=tuple(requests)))
    check_sheet(sheet)
    check_inert(sheet)


@examples(600, 12, suppress=[HealthCheck.data_too_large])
@given(any_request())
def test_a_message_says_whether_it_is_whole(request: ApprovalRequest) -> None:
    if request.state is not State.PENDING:
        return
    sheet = sheet_for(Asked(request=request))
    labels = [button.label for row in sheet.rows if isinstance(row, tuple) for button in row]
    told = re.search(r"characters are left out\.\*\*|\*\*This call cannot be shown", outside(sheet.text))
    assert (told is None) == shows_whole(request)
    assert not ("Approve" in labels and not shows_whole(request))
    if shows_whole(request):
        assert "Show whole" not in labels
        code = [node.seen for node in read(sheet.text) if node.kind in CODE]
        for arg in card_for(request).args:
            assert {span(arg.text)[1:-1], spelled(arg.text)} & set(code)


@ANY
@given(arguments, arguments)
def test_different_arguments_never_look_the_same(one: dict[str, Any], two: dict[str, Any]) -> None:
    try:
        if canonical(one) == canonical(two):
            return
    except CannotCanonicalise:
        return
    first, second = asked(args=one), asked(args=two)
    if card_for(first).masked or card_for(second).masked:
        return  # masks hide what differs; the digest below tells them apart
    if shows_whole(first) and shows_whole(second):
        assert _seen(first) != _seen(second)
    papers = [re.sub(r"sha256.*:\n.*\n", "", whole(request).text) for request in (first, second)]
    assert papers[0] != papers[1]


def _seen(request: ApprovalRequest) -> list[str]:
    return [node.seen for node in read(sheet_for(Asked(request=request)).text)]


def test_two_secrets_are_told_apart_by_their_digest() -> None:
    one, two = (sheet_for(Asked(request=asked(args={"password": secret}))) for secret in ("hunter2", "hunter3"))
    assert one.text == two.text
    assert one.footer != two.footer


@pytest.mark.parametrize("state", State)
def test_everything_evil_everywhere(state: State) -> None:
    request = asked(
        EVIL,
        {EVIL: EVIL, "deep": {"a": [EVIL, {EVIL: EVIL}]}, "empty": "", "none": None},
        metadata={"summary": EVIL, "reason": EVIL, "note": EVIL, "diff": f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+{EVIL}"},
        reason=EVIL,
        rules=(EVIL,),
        errors=(EVIL,),
        worker=(EVIL,),
        toolset=EVIL,
        problem=EVIL,
        changed=(EVIL,),
    )
    request = settled(request, state, note=EVIL, edited_args={"x": EVIL}, error=EVIL, preview=EVIL)
    sheet = sheet_for(Asked(request=request))
    check_sheet(sheet)
    check_inert(sheet)
    assert "https://evil" in sheet.text


def test_a_text_cannot_pass_for_ours() -> None:
    args = {"a": "x\n```\n**Approved** by `ana` at <t:1767268800>.\n```text\n"}
    sheet = sheet_for(Asked(request=asked(args=args)))
    assert "Approved" not in outside(sheet.text)
    assert "**Approved** by `ana` at <t:1767268800>." in sheet.text, "it is shown all the same"


def test_the_known_payloads_are_inert_and_visible() -> None:
    if not CORPUS.exists():
        pytest.skip("the corpus of display payloads is not here")
    rows = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
    payloads = [row["payload"] for row in rows if row["category"] == "display" and isinstance(row["payload"], str)]
    assert len(payloads) > 50
    for number, payload in enumerate(payloads):
        ways = (payload, f"```{payload}", f"`{payload}`\n")
        for text in ways if NIGHTLY else ways[number % 3 :][:1]:
            safe = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            request = asked("shell", {"command": safe}, metadata={"summary": safe, "preview": safe}, reason=safe)
            sheet = sheet_for(Asked(request=request))
            check_sheet(sheet)
            check_inert(sheet)
            check_visible(whole(request).text)
            check_said(safe)
    lone = asked("shell", {"command": "ls \ud800"})
    labels = [button.label for button in sheet_for(Asked(request=lone)).rows[0]]  # type: ignore[union-attr]
    assert labels == ["Deny", "Deny with reason…"], "what has no digest cannot be approved"


# --- what an agent says ---


def check_said(text: str, state: RunState = RunState.DONE, worker: str = "triage") -> MessageSheet:
    sheet = sheet_for(RunResult(run="r1", state=state, worker=worker, text=text))
    check_sheet(sheet)
    assert not acting(sheet.content) & {"mention", "time", "masked link", "spoiler"}
    assert not re.search(r"<(?:@|#|t:|a?:|/)", outside(sheet.content).replace("\\<", "")), "not even raw"
    check_visible(sheet.content + (sheet.paper.text if sheet.paper else ""))
    return sheet


@ANY
@given(long_texts, st.sampled_from(RunState), texts)
def test_any_answer_is_inert(text: str, state: RunState, worker: str) -> None:
    check_said(text, state, worker)


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("All **done**.\n- one\n- two", "All **done**.\n- one\n- two"),
        ("ask @everyone or <@1>", r"ask \@everyone or \<@1>"),
        ("see [docs](https://evil)", r"see \[docs](https://evil)"),
        ("see <https://docs.example.com>", "see https://docs.example.com"),
        ("**use `x` now**", "**use `x` now**"),
        ("*a `b*<@1>` **c**", r"\*a `b*<@1>` \*\*c\*\*"),
        (r"see \[docs](https://evil)", r"see \[docs](https://evil)"),
        (r"see \\[docs](https://evil)", r"see \\\[docs](https://evil)"),
        ("https://a.example/<@1>", r"https://a.example/ \<@1>"),
        ("https://a.example/`<@1>`", "https://a.example/ `<@1>`"),
        ("||hidden||", r"\||hidden\|\|"),
        ("run `rm <@1>` now", "run `rm <@1>` now"),
        ("```py\nx = '<@1>'\n```", "```py\nx = '<@1>'\n```"),
        ("```evil\n@here", "\\`\\`\\`evil\n\\@here"),
        ("one ` alone", r"one \` alone"),
        ("a\u202eb", "a⟦U+202E⟧b"),
        ("token ⟦masked 1: token⟧", "token ⟦masked 1: token⟧"),
    ],
)
def test_an_answer_keeps_its_markdown_and_nothing_acts(text: str, drawn: str) -> None:
    assert check_said(text).content == f"**triage** answered:\n{drawn}"


def test_a_long_answer_begins_here_and_is_whole_in_a_file() -> None:
    text = "Look:\n```python\n" + "print(1)\n" * 500 + "```\nDone."
    sheet = check_said(text)
    assert sheet.content.endswith("\n```\n… the rest is in the file **answer.md**")
    assert sheet.paper is not None
    assert (sheet.paper.name, sheet.paper.text) == ("answer.md", f"{visible(text, lines=True)}\n")
    assert len(sheet.content) > 1900
    plain = check_said("word " * 1000)
    assert len(plain.content) > 1900


@pytest.mark.parametrize(
    ("state", "text", "drawn"),
    [
        (RunState.DONE, "", "**triage** is done, without output."),
        (RunState.FAILED, "TypeError: <@1>", "**triage** failed:\n```text\nTypeError: <@1>\n```"),
        (RunState.FAILED, "", "**triage** failed."),
        (RunState.CANCELLED, "by ana", "**triage** was stopped:\nby ana"),
        (RunState.GOING, "it waits for ben", "**triage** has not finished:\nit waits for ben"),
    ],
)
def test_how_a_run_ended(state: RunState, text: str, drawn: str) -> None:
    assert check_said(text, state).content == drawn


def test_a_workers_name_is_a_name() -> None:
    sheet = check_said("hi", worker="**a**\n# b <@1>")
    assert sheet.content.startswith(r"**\*\*a\*\*⟦LF⟧\# b \<\@1\>** answered:")
