"""A server of the Agent Approval Protocol in the test's own process, that answers as a test wants it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ID = "0b0f3c52-6f5e-4c0e-9d26-2f9d0a1b2c3d"
STEPS = {"POST ": "submit", "GET ": "look", "DELETE ": "cancel", "POST consume": "consume", "POST outcome": "report"}


class _Listener(ThreadingHTTPServer):
    request_queue_size = 128  # with 5, some of forty connections at once are reset


@dataclass
class Sent:
    """What a client sent."""

    step: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Answer:
    """What is sent back."""

    status: int = 200
    body: Any = None
    """JSON, or bytes as they are."""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    raw: Callable[[Any], None] | None = None
    """Writes to the socket instead."""


@dataclass
class Provider:
    """Answers honestly, about one call, except where a test has a word."""

    decides: str = "approved"
    """What becomes of a request."""
    looks: int = 0
    """How often it is found pending."""
    twist: Callable[[str, Answer], Answer | None] = lambda step, answer: answer
    """What is made of an honest answer to a step; None: the connection is closed."""
    sent: list[Sent] = field(default_factory=list[Sent])
    url: str = ""
    _call: dict[str, Any] = field(default_factory=dict[str, Any])
    _used: str = ""

    @property
    def steps(self) -> list[str]:
        return [one.step for one in self.sent]

    def answer(self, sent: Sent) -> Answer | None:
        self.sent.append(sent)
        if sent.step == "submit":
            is_same = self._call.get("key") == sent.headers["idempotency-key"]
            self._used = self._used if is_same else ""
            self._call = {"key": sent.headers["idempotency-key"], "body": sent.body}
        is_decided = self.steps.count("look") >= self.looks
        body = {**self._call.get("body", {}), "id": ID, "status": self.decides if is_decided else "pending"}
        if sent.step == "consume":
            self._used = self._used or sent.headers["idempotency-key"]
        if self._used:
            body["consumption"] = {"consumed_at": "2026-01-01T12:00:00.000000Z"}
        return self.twist(sent.step, Answer(201 if sent.step == "submit" else 200, body))

    @contextmanager
    def serving(self) -> Generator[Provider]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except OSError:
                    self.close_connection = True

            def _do(self) -> None:
                text = self.rfile.read(int(self.headers.get("content-length", 0)))
                end = self.path.rpartition("/")[2] if self.path.endswith(("/consume", "/outcome")) else ""
                headers = {name.lower(): value for name, value in self.headers.items()}
                step = STEPS[f"{self.command} {end}"]
                answer = provider.answer(Sent(step, self.path, headers, json.loads(text) if text else None))
                self.close_connection = True
                if answer is None:
                    return
                if answer.raw is not None:
                    answer.raw(self.connection)
                    return
                body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in {"Content-Length": str(len(body)), **answer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = _do

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = _Listener(("127.0.0.1", 0), Handler)
        server.daemon_threads, server.block_on_close = True, False
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
