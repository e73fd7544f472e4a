"""`signoff serve` itself in a browser: from the link that it prints to what came of a decision."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.server.serving import Shop, until


@pytest.mark.nightly
def test_from_the_printed_link_to_what_the_tool_did(browser: Browser, tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop").write()
    run, request = shop.asks()
    with shop.serving(log="text") as served, browser.new_context(locale="en") as window:
        link = re.search(r"http://\S+/sign-in\?link=\S+", served.printed.until("/sign-in?link="))
        assert link is not None
        page = window.new_page()
        page.goto(link[0])
        page.get_by_role("button", name=re.compile("^Sign in")).click()
        page.wait_for_selector("body[data-live]")
        expect(page.locator(".row")).to_have_count(1)
        page.locator(".row").click()
        page.locator("#comment-box").fill("Why now?")
        page.get_by_role("button", name="Ask the agent").click()
        expect(page.locator(".comment.question")).to_contain_text("Why now?")
        expect(page.locator(".comment.answer .claim")).to_contain_text("Stamped:")
        expect(page.locator(".comment.answer")).to_contain_text("The model's claim")
        assert shop.lines() == [], "nothing has run meanwhile"
        page.wait_for_selector("#detail[data-steady]")
        page.get_by_role("button", name=re.compile("^Approve")).first.click()
        expect(page.locator(".outcome")).to_contain_text("ran")
        until(lambda: shop.run_word(run) == "done", "the run has ended")
    assert len(shop.lines()) == 1
    assert request
