"""The forms and menus that buttons open, and what becomes of what was written into them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from tests.discord.asking import ANY, any_request, arguments, asked, check_form, check_sheet
from tests.discord.reader import acting

from signoff.broker.grants import check_terms
from signoff.channels.discord.custom_id import Press, Verb
from signoff.channels.discord.forms import deny_form, edit_form, read_edit
from signoff.channels.discord.remember_menu import choices, confirm_sheet, decision_for, remember_sheet
from signoff.channels.discord.sheet import Form, Menu
from signoff.core.call import Veiled
from signoff.core.canonical import canonical
from signoff.core.grant import Grant
from signoff.core.redact import redact, restore
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Scope
from signoff.core.verdict import Requirement
from signoff.errors import CannotCanonicalise, EditRefused
from signoff.policy.grant_text import grant_text

NOW = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)


def form_of(request: ApprovalRequest, draft: str | None = None) -> Form:
    form = edit_form(request, draft)
    assert isinstance(form, Form), form
    return form


def test_saying_why_not() -> None:
    request = asked()
    form = deny_form(request)
    check_form(form)
    assert form.title == "Deny pay_invoice"
    assert Press.of(form.id) == Press(verb=Verb.DENY_NOTE, request=request.id, digest=request.args_digest[:12])
    (reason,) = form.fields
    assert (reason.id, reason.required, reason.most) == ("reason", True, 1000)


def test_editing_the_arguments() -> None:
    form = form_of(asked())
    check_form(form)
    assert form.title == "Edit pay_invoice"
    assert form.fields[0].value == '{\n  "to": "ACME",\n  "amount": 250\n}'
    assert read_edit(asked(), {"args": '{"to": "ACME", "amount": 20}'}) == {"to": "ACME", "amount": 20}


def test_editing_goes_on_with_what_was_written_before() -> None:
    assert form_of(asked(), "{ not yet").fields[0].value == "{ not yet"
    again = asked(metadata={"draft": {"amount": 7}})
    assert json.loads(form_of(again).fields[0].value) == {"amount": 7}


def test_secrets_are_masked_in_the_form_and_come_back() -> None:
    args = {"password": "hunter2", "amount": 250}
    request = asked(args=args)
    text = form_of(request).fields[0].value
    assert "hunter2" not in text and "⟦masked 1: password⟧" in text
    written = read_edit(request, {"args": text.replace("250", "20")})
    assert restore(written, args, redact(args)) == {"password": "hunter2", "amount": 20}


@ANY
@given(arguments)
def test_what_is_not_touched_stays_what_it_was(args: dict[str, Any]) -> None:
    request = asked(args=args)
    form = edit_form(request)
    if isinstance(form, str):
        return
    check_form(form)
    written = read_edit(request, {"args": form.fields[0].value})
    assert canonical(restore(written, args, redact(args))) == canonical(args)


@ANY
@given(any_request())
def test_any_request_has_forms_within_all_limits(request: ApprovalRequest) -> None:
    check_form(deny_form(request))
    form = edit_form(request)
    if isinstance(form, Form):
        check_form(form)
    else:
        assert 0 < len(form) < 2000


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (asked(args={"content": "x" * 4000}), "too long for a Discord form"),
        (asked(unreadable=("a file",)), "cannot be shown"),
        (asked(args={"token": Veiled("<secret 1>")}), "a secret that only its agent knows"),
        (asked(schema=None), "not stored"),
        (asked(args={"deep": eval("[" * 150 + "]" * 150)}), "cannot be shown"),
    ],
    ids=["long", "unreadable", "veiled", "no schema", "deep"],
)
def test_what_cannot_be_edited_here_says_why(request_: ApprovalRequest, why: str) -> None:
    said = edit_form(request_)
    assert isinstance(said, str) and why in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the form was empty"),
        ("  ", "the form was empty"),
        ("{", "line 1, column 2"),
        ("[1]", "one object"),
        ('{"a": 1, "a": 2}', 'the key "a" is given twice'),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ("{“to”: “ACME”}", "curly quotes"),
        ("[" * 99_999, "not valid JSON"),
    ],
)
def test_what_is_not_json_says_where(text: str, why: str) -> None:
    with pytest.raises(EditRefused, match=why):
        read_edit(asked(), {"args": text})


# --- remembering ---


def texts_of(request: ApprovalRequest, now: datetime | None = NOW) -> list[tuple[str, str]]:
    assert request.call is not None
    return [
        (value, grant_text(Grant.of(request.call, decision, summary="pay ACME")))
        for value, decision in choices(request, now)
    ]


def test_what_may_be_remembered_about_a_payment() -> None:
    assert [(value, decision.terms and decision.terms.scope) for value, decision in choices(asked())] == [
        ("0-run", Scope.RUN),
        ("0-session", Scope.SESSION),
        ("0-project", Scope.PROJECT),
    ]
    hour, midnight = 1767272400, 1767312000
    assert [value for value, _ in choices(asked(), NOW)] == [
        *("0-run", "0-session", f"0-project-{hour}", f"0-project-{midnight}", "0-project"),
        *(f"1-project-{hour}", f"1-project-{midnight}"),
    ], "amounts only with a limit"


def test_the_broker_takes_every_choice() -> None:
    paths = asked("write_file", {"path": "notes/a.txt", "content": "x"})
    for request in (asked(), paths, paths.changed_to(run=""), asked(args={})):
        offered = choices(request, NOW)
        assert offered
        for value, decision in offered:
            check_terms(request, decision, NOW)
            assert decision_for(request, value, NOW) == decision
            assert decision.by is None and decision.approved


def test_late_in_the_evening_there_is_no_today() -> None:
    late = datetime(2026, 1, 1, 22, 30, tzinfo=UTC)
    assert [value for value, _ in choices(asked(), late)].count("0-project-1767310200") == 1
    assert len(choices(asked(), late)) == 5


@pytest.mark.parametrize(
    "value",
    [
        "",
        "exact",
        "9-project",
        "0-nowhere",
        "0-worker-x",
        "1-project",
        "1-run",
        "0-project-1767268800",
        f"0-project-{int((NOW + timedelta(days=3)).timestamp())}",
        "0-project-99999999999",
    ],
)
def test_what_is_not_on_offer_is_no_choice(value: str) -> None:
    assert decision_for(asked(), value, NOW) is None


def test_strict_answers_are_not_remembered() -> None:
    request = asked(requirement=Requirement(quorum=2))
    assert choices(request, NOW) == []
    assert decision_for(request, "0-project") is None
    assert remember_sheet(request, []).content == "The answer to this call cannot be remembered."


def test_the_menu_has_the_exact_texts() -> None:
    request = asked()
    sheet = remember_sheet(request, texts_of(request))
    check_sheet(sheet)
    (menu,) = sheet.rows
    assert isinstance(menu, Menu)
    assert [option.value for option in menu.options] == [value for value, _ in texts_of(request)]
    assert menu.options[2].label == "3: exactly these arguments, anywhere in this project, until 13:00 UTC"
    for _, text in texts_of(request):
        assert text in sheet.text
    assert Press.of(menu.id) == Press(verb=Verb.REMEMBER, request=request.id, digest=request.args_digest[:12])


def test_what_is_confirmed_is_spelled_out() -> None:
    request = asked()
    value, decision = choices(request, NOW)[2]
    assert request.call is not None
    text = grant_text(Grant.of(request.call, decision, summary="pay ACME"))
    sheet = confirm_sheet(request, value, text)
    check_sheet(sheet)
    assert text in sheet.text and "until 2026-01-01 13:00 UTC" in text
    (row,) = sheet.rows
    assert isinstance(row, tuple)
    press = Press.of(row[0].id)
    assert press is not None and (press.verb, press.rest) == (Verb.REMEMBER_YES, value)
    assert decision_for(request, press.rest, NOW + timedelta(minutes=10)) == decision, "the same end as was confirmed"


def test_a_grant_too_long_to_be_shown_is_not_confirmed_here() -> None:
    sheet = confirm_sheet(asked(), "0-project", "x" * 3000)
    check_sheet(sheet)
    assert not sheet.rows


@ANY
@given(any_request())
def test_any_request_is_remembered_within_all_limits(request: ApprovalRequest) -> None:
    try:
        texts = texts_of(request)
    except CannotCanonicalise:
        return
    sheet = remember_sheet(request, texts)
    check_sheet(sheet)
    assert not acting(sheet.text)
    for value, text in texts:
        confirm = confirm_sheet(request, value, text)
        check_sheet(confirm)
        assert not acting(confirm.text)
