"""What browsers are told about every answer of the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from starlette.datastructures import MutableHeaders

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
"""Content Security Policy: a page may load our own files only; no inline scripts, styles or pictures."""
SECURITY: Final[Mapping[str, str]] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
"""Sent with every response, of a server of ours as where an application mounts the inbox."""


def add_security(headers: MutableHeaders) -> None:
    """Add them to the headers of a response. It is not stored anywhere, unless it says otherwise itself."""
    headers.update(SECURITY)
    headers.setdefault("Cache-Control", "no-store")


class SecurityHeaders:
    """ASGI middleware around what an application mounts: there is no `Guard`, as the application has its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                add_security(MutableHeaders(scope=message))
            await send(message)

        await self._app(scope, receive, sent)
