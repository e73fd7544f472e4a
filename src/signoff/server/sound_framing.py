"""`SoundFraming`: ASGI middleware that refuses requests whose end two programs may see at different places."""

from __future__ import annotations

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from signoff.server.security_headers import add_security

REFUSAL = "this request says in two ways where it ends, or in a way that HTTP/1.0 does not have\n"


class SoundFraming:
    """Refuses a request with both Content-Length and Transfer-Encoding, and closes its connection (RFC 9112, 6.1).

    A proxy in front may have gone by the one, and what is read here as the next request may be somebody else's body
    (request smuggling). The same goes for Transfer-Encoding in HTTP/1.0.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or _is_sound(scope):
            await self._app(scope, receive, send)
            return
        refusal = PlainTextResponse(REFUSAL, 400, headers={"Connection": "close"})
        add_security(refusal.headers)
        await refusal(scope, receive, send)


def _is_sound(scope: Scope) -> bool:
    names = [name.lower() for name, _ in scope["headers"]]
    if b"transfer-encoding" not in names:
        return True
    return b"content-length" not in names and scope["http_version"] != "1.0" and names.count(b"transfer-encoding") == 1
