"""A real OpenID provider on this machine, which insists on PKCE and on a nonce, and can be made to lie."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
import warnings
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import httpx
from joserfc import jwk, jwt
from werkzeug.serving import make_server

Claims = dict[str, Any]

PEOPLE: Mapping[str, Claims] = {
    "1": {"email": "ANA@example.com", "email_verified": True, "preferred_username": "ana"},
    "2": {"email": "ben@example.com", "email_verified": False, "preferred_username": "Ben"},
    "3": {"email": "mallory@example.com", "email_verified": True, "preferred_username": "mallory"},
    "4": {},
}
"""Who has an account there, by subject."""


@dataclass
class Provider:
    """The provider, and what it was asked."""

    issuer: str
    client_id: str = ""
    client_secret: str = ""
    lies: Callable[[Claims], str] | None = None
    """Makes another ID token of the claims; keys that it signs with are `own_key`."""
    own_key: jwk.RSAKey = field(default_factory=lambda: jwk.RSAKey.generate_key(2048, parameters={"kid": "own"}))
    metadata: Claims = field(default_factory=dict[str, Any])
    """What it says about itself instead."""
    odd: tuple[str, str] | None = None
    """The end of the path of what it answers oddly, and how: `endless`, `slow`, `packed`."""
    over: threading.Event = field(default_factory=threading.Event)
    """Ends what is slow."""
    verified: list[str] = field(default_factory=list[str])
    """Codes that were handed in with the verifier that belongs to them."""

    async def allows(self, address: str, subject: str, *, action: str = "allow") -> str:
        """Somebody signs in there and agrees; where their browser is sent next."""
        async with httpx.AsyncClient(trust_env=False, verify=False) as browser:
            form = await browser.get(address)
            assert form.status_code == 200, form.text
            answer = await browser.post(address, data={"sub": subject, "action": action})
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    def signed(self, claims: Claims, **header: str) -> str:
        return jwt.encode({"alg": "RS256", "kid": "own", **header}, claims, self.own_key)


@contextmanager
def _keys_are_read_once() -> Generator[None]:
    """The provider reads its own key for every token. Each time its primes are checked, which takes 0.2 s."""
    from joserfc._rfc7518.rsa_key import RSABinding

    read, known = RSABinding.import_private_key, dict[str, Any]()

    def read_once(key: Any) -> Any:
        if (secret := key["d"]) not in known:
            known[secret] = read(key)
        return known[secret]

    with patch.object(RSABinding, "import_private_key", read_once):
        yield


@contextmanager
def running(redirect: str) -> Generator[Provider]:
    """The provider while it runs, with one client that people are sent back to at `redirect`."""
    import authlib.deprecate  # noqa: F401  # it has its own warnings shown whenever it is imported

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the provider imports is deprecated
        import flask
        from oidc_provider_mock import User, app

        users = [User(sub=sub, claims=dict(claims)) for sub, claims in PEOPLE.items()]
        made = app(require_client_registration=True, require_nonce=True, user_claims=users)
    server = make_server("localhost", 0, made, threaded=True)
    provider = Provider(f"http://localhost:{server.server_port}")
    challenges: dict[str, str] = {}

    @made.before_request
    def check_verifier() -> Any:
        if flask.request.path != "/oauth2/token":
            return None
        code, verifier = flask.request.form["code"], flask.request.form.get("code_verifier", "")
        digest = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        if challenges.get(code) != digest:
            return {"error": "invalid_grant", "error_description": "the verifier is another one"}, 400
        provider.verified.append(code)
        return None

    @made.after_request
    def keep_challenge_or_lie(response: Any) -> Any:
        path, asked = flask.request.path, flask.request.args
        if provider.odd is not None and path.endswith(provider.odd[0]):
            return flask.Response(
                _odd(provider), headers=[("Content-Encoding", "gzip")] if "packed" in provider.odd else []
            )
        if path == "/oauth2/authorize" and response.status_code == 302 and "code" in response.location:
            assert asked["code_challenge_method"] == "S256"
            [code] = parse_qs(urlsplit(response.location).query)["code"]
            challenges[code] = asked["code_challenge"]
        elif path == "/oauth2/token" and response.status_code == 200 and provider.lies is not None:
            body = response.get_json()
            body["id_token"] = provider.lies(_claims_in(body["id_token"]))
            response.set_data(flask.json.dumps(body))
        elif path == "/jwks" and provider.lies is not None:
            response.set_data(flask.json.dumps({"keys": [provider.own_key.as_dict(private=False)]}))
        elif path.endswith("openid-configuration") and provider.metadata:
            response.set_data(flask.json.dumps({**response.get_json(), **provider.metadata}))
        return response

    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        with httpx.Client(trust_env=False, verify=False) as client:
            told = client.post(f"{provider.issuer}/oauth2/clients", json={"redirect_uris": [redirect]}).json()
        provider.client_id, provider.client_secret = told["client_id"], told["client_secret"]
        with _keys_are_read_once():
            yield provider
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def _odd(provider: Provider) -> Iterator[bytes]:
    assert provider.odd is not None
    if provider.odd[1] == "packed":
        yield gzip.compress(b" " * 100_000_000)
    while provider.odd[1] == "endless" and not provider.over.is_set():
        yield b" " * 65_536
    yield b" "
    if provider.odd[1] == "slow":
        provider.over.wait(60)


def _claims_in(token: str) -> Claims:
    body = token.split(".")[1]
    return json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
