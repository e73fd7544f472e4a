"""A browser for each module, a person's window for each test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.browser.shop import Shop

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOW = "no browser: install Chromium with the system's package manager, such as `apt-get install chromium`"

PATIENCE = 60_000
"""Milliseconds that a browser may take for something, on a machine that is busy."""
expect.set_options(timeout=PATIENCE)

Window = Callable[..., Page]


def executable() -> str | None:
    """The system's own browser."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    # For each module: while Playwright runs, no test of this process can run an event loop of its own.
    path = executable()
    if path is None:
        pytest.skip(HOW)
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"] if is_root else [])
        yield browser
        browser.close()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(tmp_path)
    yield shop
    shop.close()


@pytest.fixture
def window(browser: Browser, shop: Shop) -> Iterator[Window]:
    """Opens a window of somebody who is signed in; what went wrong in its script fails the test."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def open_window(
        who: str = "ana", path: str = "/", before: Callable[[Page], None] | None = None, **how: Any
    ) -> Page:
        context = browser.new_context(viewport=how.pop("viewport", {"width": 1280, "height": 800}), locale="en", **how)
        contexts.append(context)
        context.add_cookies([{"name": "who", "value": who, "url": shop.url}])
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda told: wrong.append(told.text) if "Content Security Policy" in told.text else None)
        if before is not None:
            before(page)
        page.goto(f"{shop.url}{path}")
        if not how.get("java_script_enabled", True):
            return page
        page.wait_for_selector("body[data-ready]")
        if path == "/" or path.startswith("/requests/"):
            page.wait_for_selector("body[data-live]")
        return page

    yield open_window
    for context in contexts:
        context.close()
    assert wrong == []
