"""Middleware around the whole application: Host header check, trusted proxies, security headers.

A page of another site can make a browser send requests to this machine under its own host name (DNS rebinding), so only
the intended host names are answered.

A browser sends the cookies of `127.0.0.1` and `localhost` to every port of the machine, whoever listens there. So no
cookie is accepted or set under those names: pages have their own, secret host name below `localhost`. Tokens work under
all names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from signoff.config.server_entry import Network, is_local_name, is_loopback
from signoff.core.visible_text import visible
from signoff.server.endpoint import problem_response
from signoff.server.problem import ProblemRaised
from signoff.server.security_headers import add_security

HSTS = "max-age=31536000"
PROBES = frozenset({"/healthz", "/readyz"})
"""Health checks, answered under any host name; they reveal nothing secret."""

PAGES = "signoff.pages"
"""Scope key of a request under a host name without cookies: the address of the pages instead."""
IS_SECRET = "signoff.pages-secret"
"""Scope key beside `PAGES`: whether only holders of a link may learn that address."""

_PORTS = {"http": "80", "ws": "80", "https": "443", "wss": "443"}
_FORWARDED = (b"forwarded", b"x-forwarded-", b"x-real-ip")


class Guard:
    """ASGI middleware."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        url: str = "",
        local_host: str = "",
        trusted_proxy: Sequence[Network] = (),
        checks_host: bool = True,
        probes: Collection[str] = PROBES,
    ) -> None:
        """`url` is the public address, as `origin_of` spells it; on this machine, loopback names work besides.

        `local_host` is the only loopback name under which a browser may hold cookies. Without `checks_host`, a mounting
        application is responsible for host names.
        """
        self._app = app
        self._url = url
        self._local_host = local_host
        self._trusted = tuple(trusted_proxy)
        self._checks_host = checks_host
        self._probes = probes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if self._checks_host:
            scope = self._without_cookies(self._seen(scope))
        has_tls = scope["scheme"] in ("https", "wss")

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                _add_headers(headers, has_tls)
                if PAGES in scope:
                    del headers["set-cookie"]
            await send(message)

        if self._checks_host and scope["path"] not in self._probes and (why := self._refusal(scope)):
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await problem_response(ProblemRaised(421, "wrong-host", why))(scope, receive, sent)
            return
        await self._app(scope, receive, sent)

    def _seen(self, scope: Scope) -> Scope:
        """Apply the forwarded headers of a trusted proxy, and remove those of others."""
        headers = [(name, value) for name, value in scope["headers"] if not name.lower().startswith(_FORWARDED)]
        seen = {**scope, "headers": headers}
        if not self._is_trusted(_peer(scope)):
            return seen
        said = Headers(scope=scope)
        if proto := _last(said.getlist("x-forwarded-proto")).lower():
            seen["scheme"] = proto if proto in _PORTS else scope["scheme"]
        if host := _last(said.getlist("x-forwarded-host")):
            others = [(name, value) for name, value in headers if name.lower() != b"host"]
            seen["headers"] = [(b"host", host.encode("latin-1")), *others]
        if client := self._client(said.getlist("x-forwarded-for")):
            seen["client"] = (client, 0)
        return seen

    def _without_cookies(self, scope: Scope) -> Scope:
        """Remove the cookies under loopback names, where programs on other ports of this machine receive them too."""
        host = Headers(scope=scope).get("host", "").lower()
        name, port = _split(host)
        is_shared = scope["scheme"] in ("http", "ws") and is_loopback(name) and name != self._local_host
        if not is_shared or f"http://{host}" == self._url:
            return scope
        kept = [(name, value) for name, value in scope["headers"] if name.lower() != b"cookie"]
        if self._url and self._url.startswith("http:"):  # a name of this machine, which the file states
            return {**scope, "headers": kept, PAGES: self._url, IS_SECRET: False}
        pages = f"http://{self._local_host}:{port}" if self._local_host else ""
        return {**scope, "headers": kept, PAGES: pages, IS_SECRET: True}

    def _client(self, said: Iterable[str]) -> str:
        """Return the client's address: the last address in X-Forwarded-For that is not a trusted proxy."""
        found = ""
        for one in reversed([part for line in said for part in line.split(",")]):
            try:
                found = str(ip_address(_without_port(one.strip())))
            except ValueError:
                break
            if not self._is_trusted(found):
                break
        return found

    def _is_trusted(self, address: str) -> bool:
        try:
            found = ip_address(address)
        except ValueError:
            return False
        found = getattr(found, "ipv4_mapped", None) or found
        return any(found in network for network in self._trusted)

    def _refusal(self, scope: Scope) -> str:
        """Why a request with this Host header is refused; empty if it is not."""
        hosts = Headers(scope=scope).getlist("host")
        if len(hosts) != 1:
            return "a request needs exactly one Host header"
        scheme, host = "https" if scope["scheme"] in ("https", "wss") else "http", hosts[0].lower()
        name, port = _split(host)
        origin = origin_of(scheme, host)
        if self._url and origin == self._url:
            return ""
        server = scope.get("server") or ("", None)
        is_ours = is_loopback(name) and (not is_local_name(name) or name == self._local_host)
        is_here = is_ours and (port or _PORTS[scheme]) == str(server[1])
        if is_here and is_loopback(_peer(scope)):
            return ""
        if self._url and origin.partition("://")[2] == self._url.partition("://")[2]:
            return (
                f"this request came over {scheme}, but the address of this server is {self._url}. Behind a proxy: have "
                "it send X-Forwarded-Proto, and name it in signoff.yaml under server.trusted_proxy"
            )
        known = self._url or f"http://127.0.0.1:{server[1]}"
        return (
            f"the address of this server is {known}, not {visible(host)}. To change it: server.url in signoff.yaml; "
            "behind a proxy, have it pass on the Host header"
        )


def _add_headers(headers: MutableHeaders, has_tls: bool) -> None:
    add_security(headers)
    if has_tls:
        headers["Strict-Transport-Security"] = HSTS


def _peer(scope: Scope) -> str:
    return (scope.get("client") or ("", 0))[0]


def _last(values: Sequence[str]) -> str:
    """The value that the nearest proxy added."""
    return values[-1].rpartition(",")[2].strip() if values else ""


def _without_port(address: str) -> str:
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def origin_of(scheme: str, host: str) -> str:
    """Return the origin of pages at an address, as browsers write it: in small letters, without the usual port."""
    name, port = _split(host.lower())
    return f"{scheme}://{name}" if port in ("", _PORTS.get(scheme)) else f"{scheme}://{name}:{port}"


def _split(host: str) -> tuple[str, str]:
    """Split into name and port, as written."""
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and port.isdecimal() else (host, "")
