"""The web inbox in a real browser, before a real server and a real store, with agents that really run."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Window
from tests.browser.shop import Shop

from signoff.core.request import State

Call = dict[str, Any]


def mail(to: str = "bo@example.com", text: str = "Lunch?", copies: int = 1) -> Call:
    return {"tool": "send_mail", "args": {"to": to, "text": text, "copies": copies}}


def settled(page: Page) -> None:
    """A card has to be there for a moment before a key decides about it."""
    page.wait_for_selector("#detail[data-steady]")


def test_a_first_decision_and_what_came_of_it(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(mail(), say="I think Bo is hungry.", prompt="Ask Bo for lunch.")
    page = window()
    card = page.locator("#card")
    for words in (
        "May send_mail run?",
        "bo@example.com",
        "clerk > send_mail",
        "Ask Bo for lunch. (for rosa)",
        "I think Bo is hungry.",
        "The model's claim, not verified.",
        "mail leaves the house",
        "It runs once, with exactly these arguments",
        "It does not run. The agent is told so",
        "No earlier decisions about this tool.",
    ):
        expect(card).to_contain_text(words)
    expect(page).to_have_title("(1) Inbox · teapot shop")
    assert page.locator('link[rel="icon"]').get_attribute("href") == "/favicon.svg?n=1"
    page.get_by_role("button", name="Approve", exact=False).first.click()
    expect(page.locator(".outcome")).to_contain_text("Approved, and not run yet.")
    expect(page.locator("#said")).to_have_text("Approved.")
    expect(page.locator(".item.is-gone .gone-word")).to_contain_text("approved")
    expect(page).to_have_title("Inbox · teapot shop")
    assert "sent to bo@example.com" in shop.resume(request_id)
    assert shop.mails == [("bo@example.com", "Lunch?", 1)]
    expect(page.locator(".outcome")).to_contain_text("Approved, and it ran.")  # by itself
    expect(page.locator(".outcome")).to_contain_text("sent to bo@example.com")
    assert shop.request(request_id).votes[0].by.name == "ana"


def test_while_the_form_is_open_no_key_decides(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(mail())
    page = window()
    settled(page)
    page.get_by_role("button", name=re.compile("^Edit")).click()
    page.locator("#edit-title").evaluate("one => { one.tabIndex = -1; one.focus(); }")
    for key in ("a", "d", "m"):
        page.keyboard.press(key)
        expect(page.locator("#said")).to_have_text("The form is open: send it or close it first.")
        page.locator("#said").evaluate("one => { one.textContent = ''; }")
    assert shop.request(request_id).state is State.PENDING
    assert not shop.request(request_id).votes


def test_editing_says_what_is_wrong_before_anything_is_sent(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(mail(copies=3))
    page = window()
    page.get_by_role("button", name=re.compile("^Edit")).click()
    copies = page.get_by_label(re.compile("^copies"))
    copies.fill("many")
    expect(page.locator("[data-problems]")).to_contain_text("copies")
    expect(copies).to_have_attribute("aria-invalid", "true")
    copies.press("Enter")  # neither sends nor approves
    page.get_by_role("button", name="Approve with these arguments").click()
    expect(page.locator("[data-problems]")).to_be_visible()
    assert shop.request(request_id).state is State.PENDING
    copies.fill("2")
    expect(page.locator("[data-problems]")).to_be_hidden()
    copies.press("Escape")
    expect(copies).to_be_hidden()
    page.keyboard.press("e")
    expect(copies).to_have_value("2")  # what was typed is kept
    page.get_by_role("button", name="Approve with these arguments").click()
    expect(page.locator(".outcome")).to_be_visible()
    expect(page.locator(".item.is-gone .row-title")).to_contain_text("copies=2")  # what runs, not what was asked
    shop.resume(request_id)
    assert shop.mails == [("bo@example.com", "Lunch?", 2)]


def test_a_no_with_its_note_reaches_the_model(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(mail())
    page = window()
    page.locator("#note").fill("Bo is on holiday <b>until May</b>")
    page.get_by_role("button", name=re.compile("^Deny")).click()
    expect(page.locator(".outcome")).to_contain_text("Bo is on holiday <b>until May</b>")
    assert "Bo is on holiday <b>until May</b>" in shop.resume(request_id)
    assert shop.mails == []


@pytest.mark.nightly
def test_asking_back_leaves_the_card_open_for_both(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(mail())
    ana, ben = window("ana"), window("ben", f"/requests/{request_id}")
    expect(ana.locator("[data-watchers]")).to_contain_text("ben")
    ana.keyboard.press("b")
    ana.keyboard.type("Why Bo?")
    ana.get_by_role("button", name=re.compile("^Ask back")).first.click()
    expect(ana.locator(".comment.question")).to_contain_text("Why Bo?")
    expect(ben.locator(".comment.question")).to_contain_text("not answered yet")  # by itself
    ben.get_by_role("button", name="Answer", exact=True).click()
    ben.keyboard.type("He likes tea.")
    ben.get_by_role("button", name="Send the answer").click()
    expect(ana.locator(".comment.answer")).to_contain_text("He likes tea.")
    assert shop.request(request_id).state is State.PENDING


def test_two_people_on_one_card_and_four_eyes(shop: Shop, window: Window) -> None:
    [first] = shop.ask(mail())
    [second] = shop.ask({"tool": "deploy", "args": {"version": "2.0"}})
    ana, ben = window("ana", f"/requests/{first}"), window("ben", f"/requests/{first}")
    ben.locator("#note").fill("half a word")
    ana.get_by_role("button", name=re.compile("^Approve")).first.click()
    expect(ben.locator(".outcome")).to_contain_text("ana")  # by itself: no late click is lost on an old card
    expect(ben.get_by_role("button", name=re.compile("^Approve"))).to_have_count(0)
    for page in (ana, ben):
        page.goto(f"{shop.url}/requests/{second}")
        page.wait_for_selector("body[data-live]")
    expect(ana.locator("#card")).to_contain_text("1 more person has to approve")
    ana.get_by_role("button", name=re.compile("^Approve")).first.click()
    expect(ana.locator("#said")).to_contain_text("It takes more than one")
    expect(ben.locator("#card")).to_contain_text("1 of 2 approved")
    ben.get_by_role("button", name=re.compile("^Approve")).first.click()
    expect(ana.locator(".outcome")).to_contain_text("Approved")
    assert "2.0 is out" in shop.resume(second)


@pytest.mark.nightly
def test_many_are_answered_without_a_mouse(shop: Shop, window: Window) -> None:
    ids = shop.ask(*(mail(f"person{number}@example.com") for number in range(6)))
    long_id = shop.ask(mail("long@example.com", text="word " * 400))[0]
    page = window()
    settled(page)
    page.keyboard.press("Enter")
    assert shop.request(ids[0]).state is State.PENDING  # Enter never approves
    page.keyboard.press("a")
    expect(page.locator(".outcome")).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator("#card")).to_have_attribute("data-id", ids[1])
    settled(page)
    page.keyboard.press("n")
    page.keyboard.type("not a d for deny")
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    expect(page.locator(".outcome")).to_contain_text("not a d for deny")
    for request_id in ids[2:4]:
        page.keyboard.press("j")
        expect(page.locator("#card")).to_have_attribute("data-id", request_id)
        page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("#card")).to_have_attribute("data-id", long_id)
    settled(page)
    page.keyboard.press("a")
    expect(page.locator("#said")).to_contain_text("you cannot approve what you have not read")
    page.keyboard.press("x")
    expect(page.locator("[data-bulk-count]")).to_have_text("3 selected:")
    page.locator('[data-do="bulk-read"]').press("Space")
    dialog = page.locator("#bulk-dialog")
    expect(dialog.locator("li[data-request]")).to_have_count(3)
    expect(dialog.locator('[data-do="bulk-approve"]')).to_have_attribute("aria-disabled", "true")
    dialog.locator("summary").press("Enter")
    expect(dialog.locator('[data-do="bulk-approve"]')).not_to_have_attribute("aria-disabled", "true")
    dialog.locator('[data-do="bulk-approve"]').press("Enter")
    assert shop.request(ids[2]).state is State.PENDING
    dialog.locator('[data-do="bulk-approve"]').press("Space")
    expect(dialog).to_be_hidden()
    states = [str(shop.request(one).state) for one in (*ids, long_id)]
    assert states == ["approved", "denied", "approved", "approved", "pending", "pending", "approved"]
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()


def test_what_arrives_does_not_move_the_list_and_survives_a_restart(shop: Shop, window: Window) -> None:
    shop.ask(mail("first@example.com"))
    page = window()
    row = page.locator(".row").first
    before = row.bounding_box()
    shop.ask(mail("second@example.com"), mail("third@example.com"))
    expect(page.locator('[data-do="new"]')).to_have_text("2 new")
    assert row.bounding_box() == before
    expect(page.locator(".row")).to_have_count(1)
    expect(page).to_have_title("(3) Inbox · teapot shop")
    page.keyboard.press(".")
    expect(page.locator(".row")).to_have_count(3)
    page.locator("#note").fill("a draft")
    shop.stop()
    expect(page.locator("#connection")).to_be_visible()
    [missed] = shop_asks_without_server(shop)
    shop.serve()
    expect(page.locator("#connection")).to_be_hidden()
    expect(page.locator('[data-do="new"]')).to_have_text("1 new")
    expect(page.locator("#note")).to_have_value("a draft")
    page.locator('[data-do="new"]').click()
    expect(page.locator(f'[data-row="{missed}"]')).to_be_visible()


def shop_asks_without_server(shop: Shop) -> list[str]:
    return shop.ask(mail("missed@example.com"))


@pytest.mark.nightly
def test_hold_to_approve_what_cannot_be_undone(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask({"tool": "wipe", "args": {"disk": "backup"}})
    page = window()
    button = page.get_by_role("button", name=re.compile("^Hold to approve"))
    button.click()
    expect(page.locator("#said")).to_contain_text("Hold it down for a second")
    settled(page)
    page.keyboard.press("a")
    expect(page.locator("#said")).to_contain_text("Hold it down for a second")
    assert shop.request(request_id).state is State.PENDING
    page.keyboard.down("a")
    expect(page.locator(".outcome")).to_be_visible()
    page.keyboard.up("a")
    assert shop.request(request_id).state is State.APPROVED


@pytest.mark.nightly
def test_remembering_claiming_and_making_a_rule(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(mail())
    page = window()
    settled(page)
    page.keyboard.press("c")
    expect(page.locator(".card-head")).to_contain_text("taken by ana")
    other = window("ben", f"/requests/{request_id}")
    expect(other.locator("#locked")).to_contain_text("Somebody else has taken it")
    expect(other.get_by_role("button", name=re.compile("^Approve")).first).to_have_attribute("aria-disabled", "true")
    page.keyboard.press("r")
    expect(page.locator("#rule-dialog .draft").first).to_contain_text("send_mail")
    before = shop.file.read_text(encoding="utf-8")
    page.locator("#rule-dialog .draft button").first.click()
    expect(page.locator("#rule-dialog")).to_be_hidden()
    assert shop.file.read_text(encoding="utf-8") != before
    page.keyboard.press("m")
    offer = page.locator("#remember-dialog .offer").first
    expect(offer).to_contain_text("send_mail")
    offer.locator("input").check()
    page.get_by_role("button", name="Approve and remember this").click()
    expect(page.locator(".outcome")).to_be_visible()
    assert len(shop.do(shop.broker.grants.list())) == 1


def titles(page: Page) -> list[str]:
    return page.locator(".row-title").all_inner_texts()


def test_for_me_and_a_search_hold_while_new_requests_come(shop: Shop, window: Window) -> None:
    deploy = {"tool": "deploy", "args": {"version": "1"}}
    shop.ask(mail("bo@example.com"), deploy)
    page = window()
    settled(page)
    page.keyboard.press("/")
    page.keyboard.type("deploy")
    page.keyboard.press("Enter")
    expect(page.locator(".row-title")).to_have_text(['deploy(version="1")'])
    expect(page.locator("#card-title")).to_contain_text("deploy")
    page.wait_for_selector("body[data-live]")
    shop.ask(mail("cy@example.com"))
    expect(page.locator("[data-total]")).to_have_text("3")  # of all that wait
    expect(page.locator('[data-do="new"]')).to_be_hidden()
    shop.ask({"tool": "deploy", "args": {"version": "2"}})
    expect(page.locator('[data-do="new"]')).to_have_text("1 new")
    page.keyboard.press("Escape")
    page.keyboard.press(".")
    expect(page.locator(".row-title")).to_have_count(2)
    page.locator(".row-title", has_text="2").click()
    expect(page).to_have_url(re.compile(r"/requests/[^?]+\?q=deploy$"))
    page.reload()
    expect(page.locator(".row-title")).to_have_count(2)
    settled(page)
    page.keyboard.press("a")
    expect(page.locator("#said")).to_contain_text("It takes more than one.")
    page.goto(f"{shop.url}/")
    page.get_by_role("link", name="For me").click()
    expect(page.locator(".row-title")).to_have_count(3)  # the one that ana has approved waits for ben


def test_lists_are_filtered_without_the_script(shop: Shop, window: Window) -> None:
    shop.ask(mail("bo@example.com"), {"tool": "deploy", "args": {"version": "1"}}, prompt="Release it.")
    shop.ask(mail("cy@example.com"), prompt="Write to Cy.")
    page = window(java_script_enabled=False)
    page.locator("#q").fill("deploy")
    page.get_by_role("button", name="Search").click()
    assert titles(page) == ['deploy(version="1")']
    page.locator(".row").click()
    expect(page.locator("#card-title")).to_contain_text("deploy")
    assert titles(page) == ['deploy(version="1")']
    page.get_by_role("link", name="All", exact=True).click()
    page.locator("#q").fill("")
    page.get_by_role("button", name="Search").click()
    assert len(titles(page)) == 3
    page.get_by_role("link", name="Runs").click()
    page.locator("#q").fill("cy")
    page.locator("#state").select_option("waiting")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("Write to Cy.")
    expect(page.locator("#state")).to_have_value("waiting")
