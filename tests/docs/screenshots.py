"""Pictures of the web inbox in `docs/img`, taken in a real browser: `./dev docs --write`, where there is one."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvicorn
from playwright.sync_api import sync_playwright
from starlette.requests import HTTPConnection
from tests.browser.conftest import executable
from tests.matches import varying
from tests.ready import ready

from signoff.broker import Broker
from signoff.config.settings import Person, Settings
from signoff.core.access import EVERYTHING
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.request_context import PastCall, RequestContext
from signoff.core.run import SavedRun
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.policy.engine import Policy
from signoff.server.app import application
from signoff.server.identity import Identity
from signoff.server.state import ServerState
from signoff.store.sqlite import SqliteStore
from signoff.testing import FakeClock
from signoff.wiring.program_inbox import project_inbox

IMAGES = Path(__file__).parents[2] / "docs" / "img"
NOON = datetime(2031, 5, 24, 12, 0, tzinfo=UTC)
DESK = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
ANA, BEN = Actor(name="ana", via="web"), Actor(name="ben", via="web")
DIFF = """\
--- a/shop/prices.py
+++ b/shop/prices.py
@@ -12,7 +12,8 @@
 def price(cart: Cart) -> Decimal:
     total = sum(item.price for item in cart)
-    if cart.coupon == "SPRING":
-        total *= Decimal("0.9")
+    # The summer sale
+    if cart.coupon in ("SPRING", "SUMMER"):
+        total *= Decimal("0.8")
     return total.quantize(Decimal("0.01"))
"""


def request(number: int, tool: str, args: Mapping[str, Any], why: str, rule: str, **more: Any) -> ApprovalRequest:
    """A question of the shop's agents."""
    run, worker = more.pop("run", "run-1"), more.pop("worker", ("shopkeeper",))
    call = Call(
        tool=tool, args=args, worker=worker, toolset=more.pop("toolset", None), run_id=run, call_id=f"c{number}"
    )
    requirement = more.pop("requirement", Requirement())
    return ApprovalRequest(
        tool_call_id=f"c{number}",
        tool_name=tool,
        args=args,
        call=call,
        may_vary=varying(call),
        run=run,
        requester="rosa",
        verdict=Verdict(effect=Effect.ASK, rules=(rule,), reason=why, requirement=requirement),
        **more,
    )


async def fill(broker: Broker, clock: FakeClock) -> None:
    """Three weeks of questions and answers, and what waits now."""
    number = 0
    for day in range(21):
        for part in range(2 + (day * 7) % 5):
            number += 1
            tool = ("send_mail", "run_tests", "refund")[number % 3]
            args = (
                {"to": "bo@example.com", "text": "Your teapot is on its way."}
                if tool == "send_mail"
                else {"order": number}
            )
            asked = request(number, tool, args, f"{tool} is looked at", tool.replace("_", "-"), run=f"old-{number}")
            [opened] = await broker.open([asked])
            clock.advance(20 + (number * 37) % 900)
            denied = tool == "refund" and number % 2 == 0
            await broker.answer(opened.id, ApprovalDecision(approved=not denied), by=ANA if part % 2 else BEN)
        clock.advance((NOON - timedelta(days=20 - day) - clock.now()).total_seconds() if day < 20 else 0)
    clock.advance(max(0, (NOON - timedelta(minutes=9) - clock.now()).total_seconds()))
    await broker.runs.begin(
        SavedRun(id="run-1", prompt="Get the summer sale ready.", requester="rosa", agent="shop:shopkeeper")
    )
    await broker.runs.begin(
        SavedRun(id="run-2", prompt="Answer the open tickets.", requester="rosa", agent="shop:support")
    )
    context = RequestContext(
        prompt="Get the summer sale ready.",
        words="The sale starts on Monday, so I add the coupon and make it 20 % off, as the campaign says.",
        recent=(PastCall(summary="Read shop/prices.py", outcome="success"),),
    )
    await broker.open(
        [
            request(
                900,
                "write_file",
                {"path": "shop/prices.py", "mode": "replace"},
                "prices are looked at by a person",
                "prices",
                toolset="project_files",
                context=context,
                metadata={"diff": DIFF, "summary": "Change shop/prices.py"},
                requirement=Requirement(timeout=timedelta(minutes=30)),
            ),
            request(
                901,
                "shell",
                {"command": "pytest -q tests/shop && rm -rf build"},
                "it does more than read",
                "shell",
                worker=("shopkeeper", "tester"),
                context=context,
            ),
        ]
    )
    clock.advance(360)
    await broker.open(
        [
            request(
                902,
                "refund",
                {"order": 4711, "amount": 40.0},
                "money leaves the house",
                "money",
                run="run-2",
                worker=("support",),
                requirement=Requirement(irreversible=True),
            ),
            request(
                903,
                "send_mail",
                {"to": "cy@example.com", "text": "We are sorry about the broken teapot."},
                "mail leaves the house",
                "mail",
                run="run-2",
                worker=("support",),
            ),
        ]
    )
    clock.advance(180)


class _Shop:
    """The inbox, served from a thread."""

    def __init__(self, directory: Path) -> None:
        clock = FakeClock(NOON - timedelta(days=21))
        store = SqliteStore(ready(directory / "signoff.db"))
        people = {name: Person(name=name) for name in ("ana", "ben")}
        broker = Broker(store, clock)
        asyncio.run(fill(broker, clock))

        async def identify(connection: HTTPConnection) -> Identity | None:
            return Identity(actor=ANA, permissions=EVERYTHING)

        self.state = ServerState(
            broker=broker,
            inbox=project_inbox(broker, Settings(policy=Policy(rules=()), people=people), "web"),
            identify=identify,
            people=lambda: people,
            title="teapot shop",
        )
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = int(one.getsockname()[1])
        self.server = uvicorn.Server(
            uvicorn.Config(
                application(self.state), port=self.port, log_level="error", lifespan="off", timeout_graceful_shutdown=1
            )
        )
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()


def screenshots() -> dict[Path, bytes]:
    """Every picture, by its file; none where there is no browser."""
    path = executable()
    if path is None:
        return {}
    made: dict[Path, bytes] = {}
    with tempfile.TemporaryDirectory() as directory:
        shop = _Shop(Path(directory))
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"] if is_root else [])
            for name, where, size, theme in (
                ("inbox", "/", DESK, "light"),
                ("inbox-dark", "/", DESK, "dark"),
                ("inbox-phone", "/requests/", PHONE, "light"),
                ("insights", "/insights", {"width": 1280, "height": 1000}, "light"),
            ):
                context = browser.new_context(
                    viewport=size,  # pyright: ignore[reportArgumentType]
                    color_scheme=theme,  # pyright: ignore[reportArgumentType]
                    locale="en",
                    timezone_id="UTC",
                    reduced_motion="reduce",
                )
                context.set_default_timeout(120_000)
                page = context.new_page()
                page.clock.set_fixed_time(NOON)
                target = where
                if where == "/requests/":
                    target += first_request(page, shop.port)
                page.goto(f"http://127.0.0.1:{shop.port}{target}")
                page.wait_for_selector("body[data-ready]")
                made[IMAGES / f"{name}.png"] = page.screenshot()
                context.close()
            browser.close()
        shop.server.should_exit = True
        shop.thread.join(30)
        shop.state.broker.store.close()
    return made


def first_request(page: Any, port: int) -> str:
    """The id of the first request that waits."""
    page.goto(f"http://127.0.0.1:{port}/")
    return str(page.locator(".row").first.get_attribute("data-row"))


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    for file, picture in screenshots().items():
        print(file.name, len(picture))
        if "--write" in sys.argv:
            file.write_bytes(picture)


if __name__ == "__main__":
    main()
