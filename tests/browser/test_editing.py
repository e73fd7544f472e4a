"""Editing arguments in the web inbox: exactly what was written is sent, and what was left alone stays what it is."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Window
from tests.browser.shop import Shop
from tests.browser.test_inbox import mail

from signoff.core.request import State

LARGE = 2**60 + 1
SEND = "Approve with these arguments"


def book(**more: Any) -> dict[str, Any]:
    return {"tool": "book", "args": {"number": LARGE, "rate": 1.0, **more}}


def edit(page: Page) -> None:
    page.get_by_role("button", name=re.compile("^Edit")).click()


def sent(shop: Shop, request_id: str, page: Page) -> dict[str, Any]:
    """What is run instead."""
    page.get_by_role("button", name=SEND).click()
    expect(page.locator(".outcome")).to_be_visible()
    return dict(shop.request(request_id).effective_args)


@pytest.mark.nightly
def test_writing_into_a_field_has_it_sent_with_all_around_it(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(book(seats=None))
    page = window()
    edit(page)
    page.locator("[data-path='[\"seats\"]'] [data-value]").fill("4")
    expect(page.locator("[data-path='[\"seats\"]'] [data-null]")).not_to_be_checked()
    page.locator('[data-path=\'["guest", "door"]\'] [data-value]').fill("7")
    args = sent(shop, request_id, page)
    assert args["seats"] == 4
    assert args["guest"]["door"] == 7


@pytest.mark.nightly
def test_numbers_are_what_was_written_and_asked_for(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(book())
    page = window()
    edit(page)
    page.locator("[data-path='[\"rate\"]'] [data-value]").fill("2.50")
    args = sent(shop, request_id, page)
    assert args["number"] == LARGE
    assert args["rate"] == 2.5


@pytest.mark.nightly
@pytest.mark.parametrize("closed", [False, True])
def test_json_keeps_numbers_and_goes_back_into_the_fields(shop: Shop, window: Window, *, closed: bool) -> None:
    [request_id] = shop.ask(book())
    page = window()
    edit(page)
    page.locator("details.raw summary").click()
    raw = page.locator("#raw-json")
    expect(raw).to_have_value(re.compile(str(LARGE)))
    raw.fill(json.dumps({"number": LARGE + 1, "rate": 3.5, "guest": {"name": "Bo"}}))
    if closed:
        page.locator("details.raw summary").click()
        expect(page.locator("[data-path='[\"number\"]'] [data-value]")).to_have_value(str(LARGE + 1))
        expect(page.locator("[data-path='[\"guest\"]'] > .given [data-given]")).to_be_checked()
    args = sent(shop, request_id, page)
    assert (args["number"], args["rate"], args["guest"]["name"]) == (LARGE + 1, 3.5, "Bo")


@pytest.mark.nightly
def test_a_number_that_is_none_is_refused_and_nothing_edited_is_said_to_be_so(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(book())
    page = window()
    edit(page)
    page.get_by_role("button", name=SEND).click()
    expect(page.locator("#said")).to_contain_text("The arguments are unchanged")
    page.locator("details.raw summary").click()
    expect(page.locator("#raw-json")).to_have_value(re.compile("rate"))
    page.locator("#said").evaluate("one => { one.textContent = ''; }")
    page.get_by_role("button", name=SEND).click()
    expect(page.locator("#said")).to_contain_text("The arguments are unchanged")
    page.locator("details.raw summary").click()
    page.locator("[data-path='[\"rate\"]'] [data-value]").fill("1e400")
    page.get_by_role("button", name=SEND).click()
    expect(page.locator("[data-problems]")).to_be_visible()
    assert shop.request(request_id).state is State.PENDING


@pytest.mark.nightly
def test_hidden_characters_of_others_stay_in_an_edit(shop: Shop, window: Window) -> None:
    text = "one\r\ntwo\x1b[1m"
    [request_id] = shop.ask(mail(text=text))
    page = window()
    edit(page)
    page.get_by_label(re.compile("^copies")).fill("2")
    assert sent(shop, request_id, page)["text"] == text
