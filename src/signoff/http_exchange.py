"""One HTTP exchange with a server of ours: its address, its deadline and its size."""

from __future__ import annotations

from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from http.client import HTTPConnection, HTTPSConnection, IncompleteRead
from socket import SHUT_RDWR, socket
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, urlsplit

from signoff.config.server_entry import is_local_name, is_loopback
from signoff.core.visible_text import visible
from signoff.errors import WrongUse

if TYPE_CHECKING:
    from collections.abc import Mapping

_PORTS = {"http": 80, "https": 443}
EXCHANGE = "signoff-exchange"
"""Name of the threads that talk to a server."""


FORMAT_HEADER = "Signoff-Format"


class AnswerTooLarge(Exception):
    """A server sends more than it may, or something that would have to be unpacked first."""


class HttpAnswer(NamedTuple):
    """What a server answered."""

    status: int
    body: bytes
    retry_after: str
    """The header `Retry-After`; empty if there is none."""
    format: str
    """The format of its views, as it names it; empty if it names none."""


def server_address(url: str) -> SplitResult:
    """Read the address of a server to which a token is sent. Raises `WrongUse` if it is none, or not encrypted."""
    try:
        parts = urlsplit(url)
        is_odd = parts.scheme not in _PORTS or not parts.hostname or parts.port == 0 or "@" in parts.netloc
    except ValueError:
        parts, is_odd = urlsplit(""), True
    if is_odd or parts.query or parts.fragment or not (url.isascii() and url.isprintable()) or " " in url:
        raise WrongUse(f"{visible(_shown(url))} is not a server address\n  write it as in https://approvals.example")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise WrongUse(
            f"{visible(url)} is not encrypted, so anyone on the network could read your token: use https\n"
            "  http is only for this machine"
        )
    return parts


class HttpExchange:
    """One request to a server and its answer, within a time, however slowly the server speaks."""

    def __init__(self, address: SplitResult, *, seconds: float, most: int) -> None:
        """`seconds` count from the connection to the last byte of the answer, which has `most` bytes."""
        self._seconds = seconds
        self._most = most
        self._link: socket | None = None
        self._is_over = False
        host = address.hostname or ""
        if is_local_name(host):  # browsers know these names, but not every system does
            host = "127.0.0.1"
        port = address.port or _PORTS[address.scheme]  # without one, part of an IPv6 address would be the port
        if address.scheme == "http":
            self._connection = HTTPConnection(host, port, timeout=seconds)
        else:
            import ssl

            self._connection = HTTPSConnection(host, port, timeout=seconds, context=ssl.create_default_context())

    def answer(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> HttpAnswer:
        """Send the request and wait for the answer. Raises `OSError`, `HTTPException` or `AnswerTooLarge`."""
        try:
            return self.begin(method, path, body, headers).result(self._seconds)
        finally:
            self.give_up()

    def begin(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Future[HttpAnswer]:
        """Send the request in a thread of its own, which may hang: whoever waits has to `give_up` in the end."""
        future: Future[HttpAnswer] = Future()

        def run() -> None:
            with suppress(InvalidStateError):  # the caller gave up
                try:
                    future.set_result(self._exchanged(method, path, body, headers))
                except BaseException as error:
                    future.set_exception(error)

        Thread(target=run, name=EXCHANGE, daemon=True).start()
        return future

    def _exchanged(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> HttpAnswer:
        try:
            self._connection.connect()
            self._link = self._connection.sock
            if self._is_over:  # given up meanwhile: nothing is sent any more
                raise ConnectionAbortedError
            self._connection.request(method, path, body, dict(headers))
            with self._connection.getresponse() as response:
                said = response.read(self._most + 1)
                if len(said) > self._most:
                    raise AnswerTooLarge
                if response.length:
                    raise IncompleteRead(said)
                retry_after, form = response.getheader("Retry-After", ""), response.getheader(FORMAT_HEADER, "")
                return HttpAnswer(response.status, said, retry_after, form)
        finally:
            self._connection.close()

    def give_up(self) -> None:
        """Send nothing any more, and end a read that another thread may wait in."""
        self._is_over = True
        if self._link is not None:
            with suppress(OSError):
                self._link.shutdown(SHUT_RDWR)


def _shown(url: str) -> str:
    """An address without user name and password."""
    head, at, tail = url.rpartition("@")
    return f"{head.partition('//')[0]}//…@{tail}" if at else url
