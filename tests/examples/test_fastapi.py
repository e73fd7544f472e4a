"""The example of a web app: a real server on loopback, real HTTP, a worker in a third process, and kill -9."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests import start
from tests.examples.transcript import Session, steps

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "fastapi"
SECRET = "only-the-proxy-knows"


class Shop:
    """The example in a directory of its own, with the programs that were started there."""

    def __init__(self, directory: Path, **environment: str) -> None:
        shutil.copytree(EXAMPLE, directory, ignore=shutil.ignore_patterns("__pycache__", "*.db*", "refunds.txt"))
        self.directory = directory
        plain = {
            name: value for name, value in os.environ.items() if not name.startswith("SIGNOFF_") and name != "MODEL"
        }
        self.environment = {**plain, "PROXY_SECRET": SECRET, "PYTHONUNBUFFERED": "1", **environment}
        self.programs: list[start.Process] = []
        self.client = httpx.Client(timeout=30, trust_env=False)

    def begin(self, *arguments: str) -> tuple[start.Process, start.Lines]:
        program = start.Process(
            [sys.executable, *arguments],
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.programs.append(program)
        return program, start.Lines(program)

    def serve(self) -> start.Process:
        """The web app, once it listens."""
        program, lines = self.begin("-m", "uvicorn", "web:app", "--port", "0", "--no-access-log")
        found = re.search(r"running on (http://127\.0\.0\.1:\d+)", lines.until("running on"))
        assert found is not None
        self.client.base_url = found[1]
        return program

    def call(self, method: str, path: str, person: str, **options: Any) -> httpx.Response:
        login = {"X-Proxy-Secret": SECRET, "X-Forwarded-User": person}
        return self.client.request(method, path, headers=login, **options)

    def starts_a_run(self) -> tuple[str, str]:
        """Ana starts one: its id, and the id of what it asks."""
        reply = self.call("POST", "/runs", "ana", json={"prompt": "Refund order 7"})
        assert reply.status_code == 202, reply.text
        [waits] = reply.json()["waits"]
        return reply.json()["run"], waits["id"]

    def finishes(self, run: str, workers: int = 1) -> dict[str, Any]:
        """Start workers; how the run stands once one of them says what it came to."""
        reading, writing = os.pipe()
        for _ in range(workers):
            command, place = [sys.executable, "worker.py"], self.directory
            self.programs.append(
                start.Process(command, cwd=place, env=self.environment, stdout=writing, stderr=writing)
            )
        os.close(writing)
        with os.fdopen(reading) as lines:
            assert any(line.startswith(f"run {run}: ") for line in lines), "all of them ended"
        return self.call("GET", f"/runs/{run}", "ana").json()

    @property
    def refunds(self) -> list[str]:
        file = self.directory / "refunds.txt"
        return [line.rpartition(" ")[0] for line in file.read_text().splitlines()] if file.exists() else []

    def close(self) -> None:
        self.client.close()
        for program in self.programs:
            with program:
                program.kill()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path / "fastapi")
    yield made
    made.close()


def curled(shop: Shop, command: str) -> str:
    """What `curl` prints for a command of the README."""
    words: Sequence[str] = shlex.split(command)
    assert words[:2] == ["curl", "-s"]
    headers = dict(words[at + 1].split(": ") for at, word in enumerate(words) if word == "-H")
    path = words[2].removeprefix("localhost:8000")
    if "--json" not in words:
        return shop.client.get(path, headers=headers).text
    body = words[words.index("--json") + 1]
    return shop.client.post(path, headers={**headers, "Content-Type": "application/json"}, content=body).text


def test_the_readme_says_what_happens(shop: Shop) -> None:
    shop.serve()
    session = Session(shop.directory)  # it knows which ids of the README stand for which of today
    *before, last = steps((EXAMPLE / "README.md").read_text("utf-8"))
    for step in before:
        seen = curled(shop, session.today(step.command)) + "\n"
        assert session.is_as_printed(step.printed, seen), f"$ {step.command}\n{seen}"
    assert shop.refunds == [], "the app itself goes on with nothing"
    shop.finishes(session.today("vb9gvu9wqj"))
    assert session.is_as_printed(last.printed, curled(shop, session.today(last.command)) + "\n")
    assert shop.refunds == ["7 40.0"]


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.nightly)])
def test_every_process_may_be_killed_between_question_and_answer(
    shop: Shop, store: str, request: pytest.FixtureRequest
) -> None:
    if store == "postgres":
        shop.environment["SIGNOFF_STORE"] = request.getfixturevalue("postgres_url")
    web = shop.serve()
    run, asked = shop.starts_a_run()
    web.kill()
    web.wait()
    shop.serve()
    [waits] = shop.call("GET", "/requests", "ben").json()
    assert waits["id"] == asked and waits["card"]["title"] == "refund(order=7, amount=40.0)"
    worker, _ = shop.begin("worker.py")
    worker.kill()
    worker.wait()
    assert shop.call("POST", f"/requests/{asked}", "ben", json={"approve": True}).json() == {"state": "approved"}
    done = {"state": "done", "waits": [], "result": "refunded 40.0 EUR for order 7"}
    assert shop.finishes(run, workers=2) == done, "one of them goes on with it"
    assert shop.refunds == ["7 40.0"]


def test_who_answers_is_not_for_the_client_to_say(shop: Shop) -> None:
    shop.serve()
    run, request = shop.starts_a_run()
    path, yes = f"/requests/{request}", {"approve": True}
    forged = {"X-Forwarded-User": "ben"}
    assert shop.client.post(path, json=yes, headers=forged).status_code == 401
    assert shop.client.post(path, json=yes, headers={**forged, "X-Proxy-Secret": "guessed"}).status_code == 401
    form = {
        "content": '{"approve": true}',
        "headers": {**forged, "X-Proxy-Secret": SECRET, "Content-Type": "text/plain"},
    }
    assert shop.client.post(path, **form).status_code == 422, "what a form of another site can send"
    assert shop.call("POST", path, "mallory", json=yes).status_code == 403
    assert shop.call("POST", "/requests/nothing", "ben", json=yes).status_code == 404
    assert shop.call("POST", path, "ben", json={"approve": False, "note": "not yet"}).json() == {"state": "denied"}
    assert shop.call("POST", path, "cleo", json=yes).status_code == 409
    assert "not yet" in shop.finishes(run)["result"], "the model is told"
    assert shop.refunds == []


@pytest.mark.parametrize("module", ["fastapi/web.py", "mounted_inbox/app.py"])
def test_an_empty_secret_is_none(module: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / module)]
    done = start.run(command, cwd=tmp_path, env={**os.environ, "PROXY_SECRET": ""}, capture_output=True, text=True)
    assert done.returncode == 1
    assert "Set PROXY_SECRET" in done.stderr


def test_the_guide_quotes_the_example() -> None:
    guide = (ROOT / "docs" / "guides" / "web-app.md").read_text("utf-8").partition("## Behind AG-UI")[0]
    quoted = re.findall(r"^```py\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    whole = "\n".join(file.read_text("utf-8") for file in sorted(EXAMPLE.glob("*.py")))
    assert len(quoted) == 5 and [block for block in quoted if block not in whole] == []
