"""How the web inbox looks: on a phone, in the dark, with ten thousand waiting, and to assistive technology."""

from __future__ import annotations

import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect
from tests.browser.conftest import Window
from tests.browser.shop import Shop
from tests.browser.test_inbox import mail
from tests.profiles import NIGHTLY

from signoff.core.call import Call
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Effect, Verdict

PHONE = {"width": 390, "height": 844}
SMALLEST = 44


def findings(page: Page) -> list[str]:
    """What axe finds serious or worse."""
    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@pytest.mark.nightly
def test_on_a_phone_everything_is_in_one_column_and_large_enough(shop: Shop, window: Window) -> None:
    [request_id] = shop.ask(mail(text="A long word: " + "x" * 300))
    page = window(viewport=PHONE, has_touch=True, is_mobile=True)
    expect(page.locator("#card")).to_be_hidden()
    page.locator(".row").tap()
    expect(page.locator("#card")).to_be_visible()
    expect(page.locator(".list")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    small = page.evaluate(
        """least => [...document.querySelectorAll('button, summary, .top a, input, textarea, .row, .back a')]
            .filter(one => one.offsetParent && one.getBoundingClientRect().height < least - 0.5)
            .map(one => one.outerHTML.slice(0, 120))""",
        SMALLEST,
    )
    assert small == []
    assert findings(page) == []
    page.get_by_role("button", name=re.compile("^Approve")).first.tap()
    expect(page.locator(".outcome")).to_be_visible()
    assert shop.request(request_id).state is State.APPROVED
    page.locator(".back a").tap()
    expect(page.locator(".list")).to_be_visible()


@pytest.mark.nightly
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(shop: Shop, window: Window, theme: str) -> None:
    first, *_ = shop.ask(
        mail(text="word " * 400), {"tool": "wipe", "args": {"disk": "a\u202eb"}}, {"tool": "pay", "args": {"amount": 3}}
    )
    page = window(color_scheme=theme)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(245, 246, 248)"
    assert dark is (theme == "dark")
    assert findings(page) == []
    page.keyboard.press("e")
    page.locator("[data-pick]").first.check()
    assert findings(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert findings(page) == []
    run = shop.request(first).run
    pages = ("/runs", f"/runs/{run}", "/history", "/insights", "/settings")
    for path in pages if theme == "light" or NIGHTLY else ("/insights",):
        page.goto(f"{shop.url}{path}")
        page.wait_for_selector("body[data-ready]")
        assert findings(page) == [], path
    if theme == "light":
        page.locator('[data-do="theme"]').click()
        page.reload()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.nightly
@pytest.mark.parametrize("count", [1_000, 10_000])
def test_thousands_waiting_are_listed_in_parts(shop: Shop, window: Window, count: int) -> None:
    def asked(number: int) -> ApprovalRequest:
        args = {"to": f"person{number}@example.com", "text": "Hello"}
        call = Call(tool="send_mail", args=args, run_id=f"r{number}", call_id="c", worker=("clerk",))
        verdict = Verdict(effect=Effect.ASK, rules=("mail",), reason="mail leaves the house")
        return ApprovalRequest(tool_call_id="c", tool_name="send_mail", args=args, call=call, verdict=verdict)

    for start in range(0, count, 1_000):
        shop.do(shop.broker.open([asked(number) for number in range(start, start + 1_000)]))
    page = window()
    expect(page).to_have_title(f"({count}) Inbox · teapot shop")
    expect(page.locator(".row")).to_have_count(100)
    page.locator('[data-do="more"]').click()
    expect(page.locator(".row")).to_have_count(200)
    page.keyboard.press("j")
    expect(page.locator("#card")).to_contain_text("person1@example.com")
