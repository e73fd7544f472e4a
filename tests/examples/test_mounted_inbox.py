"""The example of an inbox inside an app: a real server on loopback, real HTTP, the app's own login."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests import start

EXAMPLE = Path(__file__).parents[2] / "examples" / "mounted_inbox"
SECRET = "only-the-proxy-knows"


class Shop:
    """The example in a directory of its own, served."""

    def __init__(self, directory: Path) -> None:
        shutil.copytree(EXAMPLE, directory, ignore=shutil.ignore_patterns("__pycache__", "*.db*"))
        plain = {
            name: value for name, value in os.environ.items() if not name.startswith("SIGNOFF_") and name != "MODEL"
        }
        self.program = start.Process(
            [sys.executable, "-m", "uvicorn", "app:app", "--port", "0", "--no-access-log"],
            cwd=directory,
            env={**plain, "PROXY_SECRET": SECRET, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        found = re.search(r"running on (http://127\.0\.0\.1:\d+)", start.Lines(self.program).until("running on"))
        assert found is not None
        self.client = httpx.Client(base_url=found[1], timeout=60, trust_env=False)

    def call(self, method: str, path: str, person: str, body: Any = None, **headers: str) -> httpx.Response:
        login = {"X-Proxy-Secret": SECRET, "X-Forwarded-User": person, **headers}
        return self.client.request(method, path, headers=login, json=body)

    def close(self) -> None:
        self.client.close()
        with self.program:
            self.program.kill()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path / "shop")
    yield made
    made.close()


def test_the_apps_own_people_answer_in_the_mounted_inbox(shop: Shop) -> None:
    api = "/approvals/api/v1"
    assert shop.client.get(f"{api}/requests").status_code == 401
    forged = {"X-Forwarded-User": "ben", "X-Proxy-Secret": "guessed"}
    assert shop.client.get(f"{api}/requests", headers=forged).status_code == 401
    started = shop.call("POST", "/tasks", "ana", {"prompt": "Refund order 7"}).json()
    [waits] = started["waits"]
    [row] = shop.call("GET", f"{api}/requests", "ben").json()["requests"]
    assert (row["id"], row["title"]) == (waits, "refund(order=7, amount=40.0)")
    shown = shop.call("GET", f"{api}/requests/{waits}", "ben").json()
    vote = {"decision": "approve", "args_digest": shown["args_digest"]}
    path = f"{api}/requests/{waits}/votes"
    assert shop.call("POST", path, "ana", vote).status_code == 403, "she has not the role"
    assert shop.call("POST", path, "ben", vote, Origin="https://evil.test").status_code == 403
    wrong = shop.call("POST", path, "ben", {**vote, "args": {"order": 7, "amount": 501.0}})
    assert wrong.status_code == 422 and "by the bank" in wrong.text
    assert shop.call("POST", f"{api}/halt", "ben", {}).status_code == 403, "nobody is an admin by default"
    settled = shop.call("POST", path, "ben", {**vote, "args": {"order": 7, "amount": 30.0}})
    assert (settled.status_code, settled.json()["state"], settled.json()["decided_by"]) == (200, "approved", "ben")
    done = shop.call("POST", f"/tasks/{started['run']}/resume", "ana").json()
    assert done["result"].endswith("refunded 30.0 EUR for order 7")
    described = shop.client.get(f"{api}/openapi.json").json()
    assert described["servers"] == [{"url": "/approvals/api/v1"}]
    events = shop.call("GET", f"{api}/events/poll?after=0&wait=0", "ana").json()["events"]
    assert {"asked", "voted", "settled", "ran"} <= {one["kind"] for one in events}
