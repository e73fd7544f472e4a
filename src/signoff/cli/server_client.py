"""HTTP client for commands that work through a server (`--server URL` or `SIGNOFF_SERVER`), with a bearer token."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from http.client import HTTPException
from time import sleep
from typing import Any, TypeVar, cast
from urllib.parse import quote, urlencode
from uuid import uuid4

import click

from signoff.cli.server_choice import OPTION, server_meant, server_options
from signoff.core.safe_text import kept_text
from signoff.core.strict_json import read_json
from signoff.core.visible_text import visible
from signoff.errors import EditRefused, RequestError, ServerFailed, SignoffError, UnknownRequest, WrongUse
from signoff.http_exchange import AnswerTooLarge, HttpAnswer, HttpExchange, server_address
from signoff.views.json_form import FORMAT, NotThisView, read

V = TypeVar("V")
TOKEN_OPTION, TOKEN_VARIABLE = "--token-file", "SIGNOFF_TOKEN"
ROOT = "/api/v1"
PATIENCE = 30.0
"""Timeout of a request in seconds, from the connection to the last byte of the response."""
PAUSES = (0.2, 0.8)
"""Seconds before each retry, with the same idempotency key, if it is unknown whether the server got the request."""
_PASSING = frozenset({502, 503, 504})
LARGEST = 64 * 1024 * 1024
"""Largest response, in bytes."""


def server_for(store: str | None = None, policy: str | None = None, name: str | None = None) -> ApprovalServer:
    """The server that a command uses. Raises `click.UsageError` if other options contradict it."""
    given, url = server_options(), server_meant(store)
    if not url:
        raise click.UsageError(f"{TOKEN_OPTION} is for {OPTION}")
    if store is not None:
        raise click.UsageError(f"--store and {OPTION} name two different places: give one of them")
    if policy is not None:
        raise click.UsageError(
            f"--policy is a local file, but {OPTION} uses the server's policy: leave out one of them"
        )
    if name is not None:
        raise click.UsageError("--as cannot be used with a server: your token says who you are")
    return ApprovalServer(url, _token(given.token_file))


def _token(file: str) -> str:
    if file:
        try:
            with open(file, encoding="utf-8") as stream:
                token = stream.read(10_000).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise WrongUse(f"{visible(file)} cannot be read as a token: {visible(str(error))}") from error
    else:
        token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token:
        raise WrongUse(
            f"a server needs a token that says who you are\n  Set {TOKEN_VARIABLE}, or give {TOKEN_OPTION} FILE"
        )
    if not (token.isascii() and token.isprintable() and " " not in token):
        raise WrongUse("this is not a token: it contains characters that no token has")
    return token


class ApprovalServer:
    """Sends one request at a time and returns the answer, or raises the error that the server reports."""

    def __init__(self, url: str, token: str) -> None:
        self._parts = server_address(url.strip())
        self._token = token
        self.url = self._parts.geturl().rstrip("/")
        """The URL as it may be shown."""

    def get(self, path: str, **query: Any) -> Any:
        """GET a path below the API root."""
        given = {name: _written(value) for name, value in query.items() if value is not None}
        return self._answer("GET", f"{path}?{urlencode(given)}" if given else path, None)

    def view(self, kind: type[V], path: str, **query: Any) -> V:
        """GET a view."""
        return self.read(kind, self.get(path, **query))

    def read(self, kind: type[V], answer: Any) -> V:
        """Read an answer as a view; raises `ServerFailed` if it is another one."""
        try:
            return read(kind, answer)
        except NotThisView as error:
            raise self.strange(f"{error}: is this the right address?") from error

    def post(self, path: str, body: Mapping[str, Any] | None = None, *, look: str = "") -> Any:
        """POST a change. It is made at most once, also if it is retried after a lost response.

        `look` is the command that shows whether it was made, for the error message.
        """
        return self._answer("POST", path, body if body is not None else {}, look)

    def delete(self, path: str) -> Any:
        return self._answer("DELETE", path, {})

    def strange(self, what: str) -> ServerFailed:
        """An error that says why this server cannot be used."""
        return ServerFailed(f"the server {self.url}: {what}")

    # --- one exchange ---

    def _answer(self, method: str, path: str, body: Mapping[str, Any] | None, look: str = "") -> Any:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json, application/problem+json",
            "User-Agent": "signoff",
        }
        content = None
        if body is not None:
            content = json.dumps(body).encode()
            headers |= {"Content-Type": "application/json", "Idempotency-Key": uuid4().hex}
        in_doubt = ""
        for pause in (*PAUSES, None):
            try:
                answer = self._exchanged(method, path, content, headers)
            except TimeoutError:
                in_doubt = f"no response within {PATIENCE:g} seconds"
                break
            except (ConnectionResetError, BrokenPipeError):
                # It is unknown whether the server got it. The idempotency key prevents a second change.
                in_doubt = "it closed the connection without a response"
            except ServerFailed:
                if not in_doubt:
                    raise
            else:
                if answer.status not in _PASSING or pause is None:
                    return self._read(answer, path)
            if pause is not None:
                sleep(pause)
        done = (
            f"; the change may have been made: {look or 'check before you send it again'}" if body is not None else ""
        )
        raise self.strange(f"{in_doubt}{done}")

    def _exchanged(self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]) -> HttpAnswer:
        try:
            exchange = HttpExchange(self._parts, seconds=PATIENCE, most=LARGEST)
            return exchange.answer(method, f"{self._parts.path.rstrip('/')}{ROOT}{path}", content, headers)
        except (TimeoutError, ConnectionResetError, BrokenPipeError):
            raise
        except OSError as error:
            raise self.strange(f"it cannot be reached: {visible(error.strerror or str(error))}") from error
        except HTTPException as error:
            raise self.strange("it sent an invalid HTTP response: is this the right address?") from error
        except AnswerTooLarge as error:
            raise self.strange(f"its response is larger than {LARGEST:,} bytes") from error

    def _read(self, given: HttpAnswer, path: str) -> Any:
        status = given.status
        if 300 <= status < 400:
            raise self.strange("it redirects elsewhere, and signoff does not forward the token: use the final address")
        try:
            answer: Any = read_json(given.body.decode())
        except (ValueError, RecursionError) as error:
            raise self.strange(
                f"it responded {status} without JSON: is this the right address, and the same version of signoff?"
            ) from error
        if status < 300:
            if not isinstance(answer, dict) or not given.format:
                raise self.strange("it is not a signoff server: is this the right address?")
            if given.format != str(FORMAT):
                raise self.strange(
                    f"it runs another version of signoff (its format is {visible(given.format)}, this program reads "
                    f"{FORMAT}): use the same version on both sides"
                )
            return _Answer(self, cast("dict[str, Any]", answer))
        raise self._problem(status, cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}, path)

    def _problem(self, status: int, said: Mapping[str, Any], path: str) -> SignoffError:
        """The problem as the same exception that a local command would raise."""
        word = str(said.get("type", "")).removeprefix("urn:signoff:")
        detail = kept_text(str(said.get("detail", "")), lines=True)
        if status == 401:
            return self.strange("it refuses this token: it is wrong, expired or revoked")
        if word in ("not-found", "no-such-method") or (status in (404, 405) and not word):
            return self.strange(f"it has no {path.partition('?')[0]}: it runs an older or newer version of signoff")
        problems = said.get("problems")
        listed = tuple(
            kept_text(str(one)) for one in cast("list[object]", problems if isinstance(problems, list) else [])
        )
        if word == "edit-refused":
            return EditRefused(listed or (detail,))
        if word == "unknown-grant":
            return UnknownRequest(detail)
        if (kind := _by_code(SignoffError).get(word)) is not None and kind is not SignoffError:
            return kind(detail)
        if 400 <= status < 500 and detail:
            return RequestError("\n  ".join((detail, *listed)))
        return self.strange(f"it answers {status}" + (f": {detail}" if detail else ""))


class _Answer(dict[str, Any]):
    """What a server answered. To look for what it left out raises `ServerFailed`: no server of ours does."""

    def __init__(self, server: ApprovalServer, answer: Mapping[str, Any]) -> None:
        super().__init__(answer)
        self._server = server

    def __missing__(self, name: str) -> Any:
        raise self._server.strange(f"its response has no {name!r}: is this the right address?")


def _by_code(kind: type[SignoffError]) -> Mapping[str, type[SignoffError]]:
    """The kinds of error below this one by the code that a server gives them."""
    below = {code: each for sub in kind.__subclasses__() for code, each in _by_code(sub).items()}
    return {kind.code: kind, **below} if "code" in vars(kind) else below


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def named(part: str) -> str:
    """Quote a name for use in a path."""
    return quote(part, safe="") or "%20"
