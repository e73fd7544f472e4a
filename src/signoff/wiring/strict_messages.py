"""Refuse messages of MCP clients that other programs read differently, or that the library leaves without an answer."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from signoff.core.strict_json import is_deeper, read_json
from signoff.large_work import done

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

REFUSED = "signoff/refused"
"""The method that takes the place of a refused request on a pipe, so that the answer has its id."""


_DEEP = "it is nested too deeply"
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
# A text without an end is one token, too: otherwise each quote in it would be read to the end again.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[{}\[\]:]|[-+.\w]++', re.DOTALL)
_LONGEST_ID = 1000


class RefusedMessage(NamedTuple):
    """What is wrong with a message, and the id of the request."""

    why: str
    id: int | str | None


def refusal(text: str, *, most: int) -> RefusedMessage | None:
    """Return what is wrong with a message; None if nothing is, or if it is no JSON at all, which the library says.

    `most`: longer ones are refused. Reading a long one takes a while: call it in a thread.
    """
    why = f"it is longer than {most:,} characters" if len(text) > most else _why_refused(text)
    return RefusedMessage(why, id_of(text)) if why else None


def _why_refused(text: str) -> str:
    try:
        value = read_json(text)
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError:
        return ""
    except RecursionError:
        return _DEEP
    except UnicodeEncodeError:
        return "it has half of a character"
    except ValueError as error:
        return str(error)
    return _DEEP if is_deeper(value) else ""


def id_of(text: str) -> int | str | None:
    """Find the id of a request by its outermost names alone, however the rest reads; None for other messages."""
    depth, name, before = 0, "", ""
    for token in _TOKEN.finditer(text):
        one = token[0]
        if depth == 1 and (name, before) == ('"id"', ":"):
            return _id(one)
        depth += (one in "{[") - (one in "}]")
        name, before = before, one
    return None


def _id(written: str) -> int | str | None:
    if len(written) > _LONGEST_ID:
        return None
    try:
        value = json.loads(written)
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return None
    return value if type(value) in (int, str) else None


class StrictLines:
    """Lines of a pipe, with refused requests as `REFUSED`. Other messages that are refused are left out."""

    def __init__(self, lines: AsyncIterator[str], *, most: int) -> None:
        """`most`: lines with more characters are refused."""
        self._lines = lines
        self._most = most

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            read = await done("reading a message of an MCP client", line, partial(self._read, line))
            if read is not None:
                yield read

    def _read(self, line: str) -> str | None:
        """What takes the place of a line. None: nothing."""
        if (refused := refusal(line, most=self._most)) is None:
            return line
        if refused.id is None:
            return None
        return json.dumps({"jsonrpc": "2.0", "id": refused.id, "method": REFUSED, "params": {"why": refused.why}})


@asynccontextmanager
async def strict_input(*, most: int) -> AsyncGenerator[StrictLines]:
    """Standard input for the library, which otherwise reads it itself. Programs started meanwhile find it empty."""
    from anyio import to_thread

    ours, nothing = os.dup(sys.stdin.fileno()), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    # Never closed: a thread may still wait for the next line.
    file = os.fdopen(ours, encoding="utf-8", errors="replace", newline="\n", closefd=False)

    async def lines() -> AsyncIterator[str]:
        while line := await to_thread.run_sync(file.readline, most + 1):
            rest = line
            while len(rest) > most and not rest.endswith("\n"):  # the rest of a line that is too long is not kept
                rest = await to_thread.run_sync(file.readline, most + 1)
            yield line

    yield StrictLines(lines(), most=most)


class StrictBodies:
    """ASGI middleware that answers refused messages itself."""

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        """`most`: longer bodies than that are left to the app, which refuses them."""
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        read: list[Message] = []
        body = bytearray()
        while len(body) <= self._most:
            read.append(await receive())
            body += read[-1].get("body", b"")
            if read[-1]["type"] != "http.request" or not read[-1].get("more_body"):
                break
        refused: RefusedMessage | None = None
        if len(body) <= self._most:
            text = body.decode(errors="replace")
            refused = await done("reading a message of an MCP client", text, partial(refusal, text, most=self._most))
        if refused is not None:
            from starlette.responses import JSONResponse

            error = {"code": -32600, "message": f"signoff: refused: {refused.why}"}
            await JSONResponse({"jsonrpc": "2.0", "id": refused.id, "error": error}, 400)(scope, receive, send)
            return

        async def again() -> Message:
            return read.pop(0) if read else await receive()

        await self._app(scope, again, send)
