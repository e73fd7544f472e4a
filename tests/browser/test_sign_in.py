"""Signing in with a real browser: it holds what it is given for the inbox alone, whoever else listens here."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.server.doors import Doors

from signoff.server.guard import Guard
from signoff.server.listener import bound, listener_for, stopped


@contextmanager
def serving(doors: Doors) -> Generator[tuple[str, str]]:
    """Where the server is reached, as `signoff serve` would listen, and a link for ana."""
    with bound("127.0.0.1", 0) as made:
        loop, ready, end = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
        told: list[str] = []

        async def serve() -> None:
            host = await doors.keys.local_host()
            told.extend((f"http://{host}:{made.getsockname()[1]}", await doors.link()))
            listener = listener_for(Guard(doors.app, local_host=host))
            task = asyncio.create_task(listener.serve(sockets=[made]))
            ready.set()
            await end.wait()
            await stopped(listener, task)

        thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
        thread.start()
        try:
            assert ready.wait(30)
            yield told[0], told[1]
        finally:
            loop.call_soon_threadsafe(end.set)
            thread.join()
            loop.close()


@contextmanager
def another_program() -> Generator[tuple[int, list[str]]]:
    """Somebody else's, at another port: the cookies that browsers send it."""
    heard: list[str] = []

    class Hears(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.extend(self.headers.get_all("cookie", []))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Hears) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port, heard
        server.shutdown()
        thread.join()


@pytest.mark.nightly
def test_what_a_browser_holds_is_sent_to_no_other_program(browser: Browser) -> None:
    doors = Doors()
    with serving(doors) as (url, link), another_program() as (port, heard), browser.new_context(locale="en") as window:
        page = window.new_page()
        here = f"http://127.0.0.1:{url.rpartition(':')[2]}"
        page.goto(f"{here}/sign-in?link={link}")  # as it may be written down somewhere
        page.get_by_role("button", name="Sign in as ana").click()
        page.wait_for_selector("body[data-ready]")
        assert page.url == f"{url}/"
        for name in ("127.0.0.1", "localhost", "signoff.localhost"):
            page.goto(f"http://{name}:{port}/")
        assert heard == []
        page.goto(url)
        page.wait_for_selector("body[data-ready]")
        page.goto(here)
        assert page.get_by_text("their own address").is_visible()
