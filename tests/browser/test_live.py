"""The web inbox while others work: what changes is seen where it stands, and nothing that somebody writes is lost."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Window
from tests.browser.shop import Shop
from tests.browser.test_inbox import mail, settled

from signoff.core.call import Call
from signoff.core.comment import CommentKind
from signoff.core.decision import ApprovalDecision
from signoff.core.lifecycle import Lost, advance
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Effect, Verdict
from signoff.ports import Transaction
from signoff.server import api_events

ANA, BEN = Actor(name="ana"), Actor(name="ben")


def many(shop: Shop, count: int, first: int = 0) -> list[str]:
    def asked(number: int) -> ApprovalRequest:
        args = {"to": f"person{number}@example.com", "text": "Hello"}
        call = Call(tool="send_mail", args=args, run_id=f"r{number}", call_id="c", worker=("clerk",))
        verdict = Verdict(effect=Effect.ASK, rules=("mail",), reason="mail leaves the house")
        return ApprovalRequest(tool_call_id="c", tool_name="send_mail", args=args, call=call, verdict=verdict)

    opened = shop.do(shop.broker.open([asked(number) for number in range(first, first + count)]))
    return [one.id for one in opened]


def says(shop: Shop, request_id: str, text: str) -> None:
    shop.do(shop.broker.comments.add(request_id, text, by=BEN, kind=CommentKind.QUESTION))


def approves(shop: Shop, request_id: str) -> None:
    shop.do(shop.broker.answer(request_id, ApprovalDecision(approved=True), by=BEN))


def focused(page: Page) -> str:
    return page.evaluate("`${document.activeElement.id} ${document.activeElement.selectionStart}`")


@pytest.mark.nightly
def test_whoever_writes_goes_on_writing_when_the_card_changes(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(mail())
    page = window()
    settled(page)
    page.keyboard.press("n")
    page.keyboard.type("a bad idea")
    page.keyboard.press("ArrowLeft")
    before = focused(page)
    says(shop, request_id, "Why Bo?")
    expect(page.locator(".comment.question")).to_contain_text("Why Bo?")
    assert focused(page) == before == "note 9"
    page.keyboard.type("d")
    expect(page.locator("#note")).to_have_value("a bad idead"[:9] + "d" + "a")
    assert shop.request(request_id).state is State.PENDING


@pytest.mark.nightly
def test_an_open_form_stays_as_it_is_when_the_card_changes(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(mail())
    page = window()
    page.get_by_role("button", name=re.compile("^Edit")).click()
    copies = page.get_by_label(re.compile("^copies"))
    copies.fill("7")
    says(shop, request_id, "Why Bo?")
    expect(page.locator(".comment.question")).to_contain_text("Why Bo?")
    expect(copies).to_have_value("7")
    expect(copies).to_be_focused()


@pytest.mark.nightly
def test_rows_say_what_is_true_and_questions_are_marked(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(mail())
    [deploy] = shop.ask({"tool": "deploy", "args": {"version": "2.0"}})
    page = window()
    row = page.locator(f'[data-row="{request_id}"]')
    shop.do(shop.broker.assign(request_id, "ben", by=BEN))
    expect(row).to_contain_text("taken by ben")
    says(shop, request_id, "Why Bo?")
    expect(row).to_contain_text("question")
    approves(shop, deploy)
    expect(page.locator(f'[data-row="{deploy}"]')).to_contain_text("1 of 2 approved")


@pytest.mark.nightly
def test_with_more_than_a_page_waiting_what_is_new_and_settled_is_known(shop: Shop, window: Window) -> None:
    ids = many(shop, 150)
    page = window()
    expect(page.locator(".row")).to_have_count(100)
    approves(shop, ids[3])
    expect(page.locator(".item.is-gone")).to_have_count(1)
    expect(page.locator('[data-do="new"]')).to_be_hidden()
    [new] = many(shop, 1, 500)
    expect(page.locator('[data-do="new"]')).to_have_text("1 new")
    page.locator('[data-do="more"]').click()
    expect(page.locator(".row")).to_have_count(151)
    expect(page.locator('[data-do="new"]')).to_be_hidden()
    expect(page.locator(f'[data-row="{new}"]')).to_have_count(1)
    [newer] = many(shop, 1, 501)
    expect(page.locator('[data-do="new"]')).to_have_text("1 new")
    page.keyboard.press(".")
    expect(page.locator(".row")).to_have_count(151)  # the new one came, the settled one went
    expect(page.locator(f'[data-row="{newer}"]')).to_have_count(1)
    expect(page).to_have_title("(151) Inbox · teapot shop")


@pytest.mark.nightly
def test_what_happens_before_the_page_listens_is_not_missed(shop: Shop, window: Window) -> None:
    [first] = shop.ask(mail())
    context: list[str] = []

    def late(page: Page) -> None:
        def held(route: object) -> None:
            if not context:
                context.extend(many(shop, 1))
            route.continue_()  # type: ignore[attr-defined]

        page.route("**/api/v1/events*", held)

    page = window(before=late)
    expect(page.locator('[data-do="new"]')).to_have_text("1 new")
    assert context
    assert first


@pytest.mark.nightly
def test_the_end_of_a_session_is_said_and_drafts_stay(
    shop: Shop, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_events, "TIMES", api_events.StreamTimes(allowed=0.05))
    [request_id] = shop.ask(mail())
    page = window()
    page.locator("#note").fill("half a")
    shop.signed_out.add("ana")
    expect(page.locator("#ended")).to_contain_text("Your session has ended.")
    expect(page.locator("#connection")).to_be_hidden()
    expect(page.locator("#note")).to_have_value("half a")
    with page.expect_request(re.compile("/sign-in[?]next=/$")):
        page.get_by_role("link", name="Sign in again").click()
    shop.signed_out.clear()
    page.goto(f"{shop.url}/requests/{request_id}")
    expect(page.locator("#note")).to_have_value("half a")


@pytest.mark.nightly
def test_drafts_stay_with_their_request_and_answers_with_their_question(shop: Shop, window: Window) -> None:
    first, second = shop.ask(mail("one@example.com"), mail("two@example.com"))
    says(shop, first, "Why?")
    page = window("ana", f"/requests/{first}")
    page.get_by_role("button", name="Answer", exact=True).click()
    expect(page.locator("#answering")).to_contain_text("Why?")
    page.keyboard.type("Because")
    page.locator(f'[data-row="{second}"]').click()
    expect(page.locator("#card")).to_have_attribute("data-id", second)
    expect(page.locator("#comment-box")).to_have_value("")
    expect(page.locator("#answering")).to_be_hidden()
    page.locator(f'[data-row="{first}"]').click()
    expect(page.locator("#comment-box")).to_have_value("Because")
    page.get_by_role("button", name="Send the answer").click()
    expect(page.locator(".comment.answer")).to_contain_text("Because")


@pytest.mark.nightly
def test_a_halt_is_seen_at_once(shop: Shop, window: Window) -> None:
    shop.ask(mail())
    page = window()
    expect(page.locator("[data-halt]")).to_be_hidden()
    shop.do(shop.broker.switch.halt(by="ben", why="fire"))
    expect(page.locator("[data-halt]")).to_contain_text("fire")
    expect(page.locator("#card")).to_contain_text("It does not run yet: everything is halted.")
    shop.do(shop.broker.switch.unhalt(by="ben"))
    expect(page.locator("[data-halt]")).to_be_hidden()


@pytest.mark.nightly
def test_a_card_behind_a_dialog_is_up_to_date_once_it_closes(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(mail())
    page = window()
    page.keyboard.press("?")
    approves(shop, request_id)
    expect(page.locator(".item.is-gone")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator(".outcome")).to_contain_text("ben")


@pytest.mark.nightly
def test_second_voter_approves_what_the_first_one_edited(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask({"tool": "deploy", "args": {"version": "2.0"}})
    ana, ben = window("ana"), window("ben")
    ana.get_by_role("button", name=re.compile("^Edit")).click()
    version = "2.1 " + "word " * 200
    ana.get_by_label(re.compile("^version")).fill(version)
    ana.get_by_role("button", name="Approve with these arguments").click()
    expect(ana.locator("#said")).to_contain_text("Your approval is counted.")
    expect(ben.locator(".votes")).to_contain_text("2.1")
    expect(ben.locator(".card-head")).to_contain_text("0 of 2 approved")
    these = ben.get_by_role("button", name="Approve these arguments")
    these.press("Enter")
    expect(ben.locator("#said")).to_contain_text("Enter never approves")
    these.click()
    expect(ben.locator("#said")).to_contain_text("Unfold the long parts first")
    ben.locator(".votes summary").click()
    these.click()
    expect(ben.locator(".outcome")).to_be_visible()
    assert shop.request(request_id).effective_args == {"version": version}


@pytest.mark.nightly
def test_the_selection_is_opened_by_a_key_and_messages_are_seen_in_the_dialog(shop: Shop, window: Window) -> None:
    first, second = shop.ask(mail("one@example.com"), {"tool": "wipe", "args": {"disk": "a"}})
    page = window()
    settled(page)
    page.keyboard.press("v")
    expect(page.locator("#said")).to_contain_text("Nothing is selected")
    page.keyboard.press("x")
    page.keyboard.press("j")
    expect(page.locator("#card")).to_have_attribute("data-id", second)
    page.keyboard.press("x")
    page.keyboard.press("v")
    dialog = page.locator("#bulk-dialog")
    dialog.locator('[data-do="bulk-deny"]').click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#said")).to_contain_text("2/2")
    assert {shop.request(one).state for one in (first, second)} == {State.DENIED}


@pytest.mark.nightly
def test_whoever_cannot_answer_what_they_are_handed_is_named(shop: Shop, window: Window) -> None:
    shop.ask({"tool": "deploy", "args": {"version": "2.0"}})
    page = window()
    page.keyboard.press("h")
    page.locator("#assign-to").fill("cleo")
    page.get_by_role("button", name="Hand over", exact=True).click()
    expect(page.locator("#said")).to_contain_text("cleo may not answer it")
    expect(page.locator(".card-head")).to_contain_text("taken by cleo")


@pytest.mark.nightly
def test_a_server_that_is_gone_is_said_to_be_and_the_card_stays(shop: Shop, window: Window) -> None:
    first, _ = shop.ask(mail("one@example.com"), mail("two@example.com"))
    page = window()
    page.route("**/fragments/**", lambda route: route.abort())
    page.keyboard.press("j")
    expect(page.locator("#said")).to_contain_text("The server does not respond.")
    expect(page.locator(f'[data-row="{first}"]')).to_have_attribute("aria-current", "true")
    expect(page.locator("#card")).to_have_attribute("data-id", first)


@pytest.mark.nightly
def test_what_waits_again_is_no_longer_crossed_out(shop: Shop, window: Window) -> None:
    first, _ = shop.ask(mail("one@example.com"), mail("two@example.com"))
    page = window()
    approves(shop, first)
    item = page.locator(f'.item[data-id="{first}"]')
    expect(item).to_have_class(re.compile("is-gone"))

    async def lose() -> None:
        broker = shop.broker
        claimed = await broker.claim(first)
        lost = advance(claimed, Lost(), broker.clock.now())

        def work(tx: Transaction) -> None:
            tx.requests.put(lost)
            tx.record.append([broker.ledger.journal.step(lost, "lost", broker.clock.now())])

        await broker.store.write("lose", work)

    shop.do(lose())
    expect(item).not_to_have_class(re.compile("is-gone"))
    expect(item).to_contain_text("outcome unknown")
    page.get_by_role("button", name="It happened").click()
    expect(page.locator(".outcome")).to_contain_text("ana says: it happened.")
    expect(page.locator("#said")).to_contain_text("Noted: it happened.")


@pytest.mark.nightly
def test_shortcuts_can_be_switched_off(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(mail())
    page = window("ana", "/settings")
    with page.expect_navigation():
        page.locator("#shortcuts").select_option("off")
    page.goto(shop.url)
    page.wait_for_selector("body[data-live]")
    settled(page)
    page.keyboard.press("a")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_hidden()
    assert shop.request(request_id).state is State.PENDING
