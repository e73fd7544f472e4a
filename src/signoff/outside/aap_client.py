"""A server that a program here asks, by the Agent Approval Protocol: plain HTTP, with the credential of an instance."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, cast
from urllib.parse import quote, urlsplit

from signoff.config.server_entry import is_local_name, is_loopback
from signoff.core.visible import visible
from signoff.errors import ServerFailed, WrongUse
from signoff.outside.strict_json import read_object

PATIENCE = 10.0
"""Seconds that a server has for an answer, besides those that it is told to wait."""
LONGEST_POLL = 25
"""Seconds that a server is told to wait for people at once."""
_LARGEST = 4 * 1024 * 1024
_MARK = "soi_"


class AapClient:
    """Sends one thing at a time. Raises `ServerFailed` where the server cannot be reached, or refuses."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme not in ("http", "https") or not host or parts.username or parts.query or parts.fragment:
            raise WrongUse(f"{visible(url)} is not the address of a server, such as https://signoff.example.com")
        self._local = is_local_name(host)
        if parts.scheme == "http" and not (self._local or is_loopback(host)):
            raise WrongUse(f"{visible(url)} would send the credential unencrypted: use https")
        if not token.startswith(_MARK):
            raise WrongUse("a hook needs the credential of an instance: signoff aap instance create NAME")
        self._parts = parts
        self._token = token
        self.url = parts.geturl().rstrip("/")
        """As it may be shown."""

    def submit(self, key: str, body: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
        """Ask about a call; whether that is new, and how it stands. The same key gives the same request."""
        status, answer = self._answer("POST", "/requests", body, key=key)
        if answer.get("tool") != body["tool"] or answer.get("arguments") != body["arguments"]:
            raise self._strange("it answered about another call")
        return status == 201, answer

    def look(self, request: str, wait: int) -> dict[str, Any]:
        """How a request stands, once it is decided or so many seconds have passed."""
        return self._answer("GET", f"/requests/{quote(request, safe='')}?wait={wait}s", wait=wait)[1]

    def cancel(self, request: str) -> None:
        """Withdraw a request."""
        self._answer("DELETE", f"/requests/{quote(request, safe='')}")

    def consume(self, request: str, key: str) -> dict[str, Any]:
        """Spend an approval. Another key than the first one is refused."""
        return self._answer("POST", f"/requests/{quote(request, safe='')}/consume", key=key)[1]

    def report(self, request: str, *, failed: bool) -> None:
        """Say what came of a call."""
        told = {"status": "failed" if failed else "succeeded"}
        self._answer("POST", f"/requests/{quote(request, safe='')}/outcome", told)

    def _answer(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, key: str = "", wait: float = 0
    ) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", "User-Agent": "signoff"}
        if key:
            headers["Idempotency-Key"] = key
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        connection = self._connection(PATIENCE + wait)
        try:
            connection.request(method, f"{self._parts.path.rstrip('/')}/aap/v1{path}", content, headers)
            response = connection.getresponse()
            status, said = response.status, response.read(_LARGEST + 1)
        except (OSError, HTTPException) as error:
            told = error.strerror if isinstance(error, OSError) else None
            raise self._strange(
                f"it cannot be reached: {visible(told or str(error) or type(error).__name__)}"
            ) from error
        finally:
            connection.close()
        try:
            answer = read_object(said, what="its answer", most=_LARGEST)
        except ValueError as error:
            raise self._strange(f"its answer is not JSON (status {status}): is this the right address?") from error
        if status not in (200, 201):
            raise self._strange(_problem(status, answer))
        return status, answer

    def _connection(self, patience: float) -> HTTPConnection:
        host, port = "127.0.0.1" if self._local else self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return HTTPConnection(host, port, timeout=patience)
        import ssl

        return HTTPSConnection(host, port, timeout=patience, context=ssl.create_default_context())

    def _strange(self, what: str) -> ServerFailed:
        return ServerFailed(f"the server {self.url}: {what}")


def read_token(file: str) -> str:
    """The credential in a file that belongs to this user, and that nobody else can read."""
    try:
        with open(file, encoding="utf-8") as stream:
            found = os.fstat(stream.fileno())
            token = stream.read(10_000).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it is not text"
        told = f"the credential cannot be read from {visible(file)}: {why}"
        raise WrongUse(f"{told}\n  put what `signoff aap instance create NAME` prints into that file") from error
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise WrongUse(f"others can read {visible(file)}: chmod 600 {visible(file)}")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise WrongUse(f"{visible(file)} holds no credential")
    return token


def _problem(status: int, answer: Mapping[str, Any]) -> str:
    error: object = answer.get("error")
    told = cast("dict[str, Any]", error) if isinstance(error, dict) else dict[str, Any]()
    return visible(f"{told.get('code', status)}: {told.get('message', 'it refuses')}"[:500])
