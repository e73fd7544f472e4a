"""Sign in with OpenID Connect (OIDC): authorization code flow with PKCE, a nonce, and a state bound to the browser."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import ssl
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, cast
from urllib.parse import urlsplit

from signoff.config import OidcEntry, Person
from signoff.config.server_entry import EMAIL
from signoff.core.people import account_key
from signoff.core.safe_text import safe_beginning
from signoff.core.visible_text import visible
from signoff.errors import MissingExtra
from signoff.server.seal import Seal

CALLBACK = "/sign-in/oidc/callback"
METADATA_LASTS = timedelta(hours=1)
TIMEOUT = 10.0
"""Timeout in seconds for responses of the provider."""
_LEEWAY = 60
"""Allowed clock skew in seconds."""
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""Accepted signature algorithms: only asymmetric ones. No HMAC, which this server could forge itself, and not
`none`."""

_log = logging.getLogger("signoff.server")


class SignInRefused(Exception):
    """A refused sign-in, with the words for the page."""

    def __init__(self, text: str, status: int, *, wait: int = 0) -> None:
        super().__init__(text)
        self.status = status
        self.wait = wait
        """Seconds until a retry is allowed."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One sign-in at a provider, held by the browser in a cookie: a random seed, and the values derived from it."""

    text: str
    until: datetime
    goal: str
    """Where to redirect afterwards."""
    state: str
    nonce: str
    verifier: str

    @classmethod
    def begin(cls, seal: Seal, until: datetime, goal: str) -> Flow:
        body = {"seed": secrets.token_urlsafe(32), "until": int(until.timestamp()), "goal": goal}
        flow = cls.read(seal, urlsafe_b64encode(json.dumps(body).encode()).decode().rstrip("="))
        assert flow is not None, "it is read as it was written"
        return flow

    @classmethod
    def read(cls, seal: Seal, text: str) -> Flow | None:
        """Parse the text of a signed cookie; None if it is invalid."""
        try:
            body = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            seed, until, goal = str(body["seed"]), datetime.fromtimestamp(body["until"], UTC), str(body["goal"])
        except (ValueError, KeyError, TypeError, OverflowError):
            return None
        state, nonce, verifier = (seal.mark(f"oidc {one}", seed) for one in ("state", "nonce", "verifier"))
        return cls(text, until, goal, state, nonce, verifier)


class OidcProvider:
    """An OpenID provider, with this server as its client."""

    def __init__(self, entry: OidcEntry, url: str) -> None:
        """`url`: the public address of this server. Raises `MissingExtra` without the extra `oidc`."""
        try:
            from authlib.integrations.httpx_client import AsyncOAuth2Client
        except ImportError as error:
            raise MissingExtra("Signing in at an OpenID provider", "oidc") from error
        self._oauth: Any = AsyncOAuth2Client  # it has no type hints
        self._entry = entry
        self._secret = entry.secret()
        self.home = url.rstrip("/")
        """The public address of this server."""
        self._redirect = self.home + CALLBACK
        self._metadata: tuple[datetime, Mapping[str, Any]] | None = None

    @property
    def name(self) -> str:
        """The name for people: the provider's host."""
        return urlsplit(self._entry.issuer).netloc

    async def address(self, flow: Flow, now: datetime) -> str:
        """Return the authorization URL for the browser."""
        metadata = await self._known(now)
        async with self._client(metadata) as client:
            made: tuple[str, str] = client.create_authorization_url(
                metadata["authorization_endpoint"], state=flow.state, code_verifier=flow.verifier, nonce=flow.nonce
            )
        return made[0]

    async def claims(self, flow: Flow, answer: Mapping[str, str], now: datetime) -> Mapping[str, Any]:
        """Exchange the code and return the claims about the person; raises `SignInRefused`."""
        if error := answer.get("error"):
            raise SignInRefused(f"{self.name} refused the sign-in: {visible(error)[:100]}", 403)
        # RFC 9207: refuse a response of another provider (mix-up attack).
        if answer.get("iss", self._entry.issuer) != self._entry.issuer or not answer.get("code"):
            raise SignInRefused("This is not a valid response of the provider. Sign in again.", 403)
        metadata = await self._known(now)
        try:
            async with _in_time(), self._client(metadata) as client:
                token = cast(
                    "Mapping[str, Any]",
                    await client.fetch_token(
                        metadata["token_endpoint"],
                        grant_type="authorization_code",
                        code=answer["code"],
                        code_verifier=flow.verifier,
                    ),
                )
                claims = await self._checked(client, metadata, token, flow.nonce, now)
                if self._entry.claim not in claims and "userinfo_endpoint" in metadata:
                    claims = await _more(client, metadata, claims)
        except SignInRefused:
            raise
        except Exception as error:
            raise self._failed(error) from error
        return claims

    def person(self, claims: Mapping[str, Any], people: Mapping[str, Person]) -> Person | None:
        """Return the listed person of these claims; None if there is none or it is ambiguous.

        Raises `SignInRefused`.
        """
        said = claims.get(self._entry.claim)
        if not isinstance(said, str) or not said.strip():
            return None
        if self._entry.claim != EMAIL:
            # Not by `person_key`, which treats letters of other scripts and widths as equal: other accounts.
            return next((one for one in people.values() if account_key(one.name) == account_key(said.strip())), None)
        verified = claims.get("email_verified")
        if verified is not True and verified != "true":  # 1 == True, and no provider means it so
            raise SignInRefused(f"{self.name} has not verified your address, so it cannot identify you.", 403)
        address = account_key(said.strip())
        found = [one for one in people.values() if one.email and account_key(one.email.strip()) == address]
        return found[0] if len(found) == 1 else None

    def _client(self, metadata: Mapping[str, Any]) -> Any:
        """A client for one sign-in; it holds the access token meanwhile."""
        from signoff.server.bounded_answers import LIMITS

        ways: object = metadata.get("token_endpoint_auth_methods_supported")
        is_basic = not isinstance(ways, list) or not ways or "client_secret_basic" in ways
        way = "client_secret_basic" if is_basic else "client_secret_post"
        return self._oauth(
            client_id=self._entry.client_id,
            client_secret=self._secret or None,
            token_endpoint_auth_method=way if self._secret else "none",
            scope="openid email profile",
            redirect_uri=self._redirect,
            code_challenge_method="S256",
            timeout=TIMEOUT,
            verify=_trusted(),
            **LIMITS,
        )

    async def _known(self, now: datetime) -> Mapping[str, Any]:
        """Return the provider's metadata (discovery), cached for `METADATA_LASTS`."""
        if self._metadata is not None and now - self._metadata[0] < METADATA_LASTS:
            return self._metadata[1]
        import httpx

        from signoff.server.bounded_answers import LIMITS

        try:
            async with _in_time(), httpx.AsyncClient(timeout=TIMEOUT, verify=_trusted(), **LIMITS) as client:
                response = await client.get(f"{self._entry.issuer.rstrip('/')}/.well-known/openid-configuration")
                response.raise_for_status()
                metadata = cast("Mapping[str, Any]", response.json())
                for key in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
                    _check_address(metadata[key], self._entry.issuer)
            if metadata["issuer"] != self._entry.issuer:
                raise ValueError(
                    f"its metadata says issuer {metadata['issuer']!r}: server.oidc.issuer must be the same"
                )
        except Exception as error:
            raise self._failed(error) from error
        self._metadata = now, metadata
        return metadata

    async def _checked(
        self,
        client: Any,
        metadata: Mapping[str, Any],
        token: Mapping[str, Any],
        nonce: str,
        now: datetime,
    ) -> Mapping[str, Any]:
        """Return the claims of the ID token after validating signature, issuer, audience, nonce and expiry."""
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt
        from joserfc.jwk import KeySet

        known = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        # An empty list would mean any algorithm to the library.
        if not (algorithms := [one for one in _ALGORITHMS if one in known]):
            raise ValueError(f"it supports no signing algorithm that signoff accepts ({', '.join(_ALGORITHMS)})")
        response = await client.request("GET", metadata["jwks_uri"], withhold_token=True)
        response.raise_for_status()
        decoded = jwt.decode(
            token["id_token"],
            KeySet.import_key_set(response.json()),
            algorithms=algorithms,
        )
        options = {
            "iss": {"essential": True, "value": self._entry.issuer},
            "aud": {"essential": True, "value": self._entry.client_id},
            "nonce": {"essential": True, "value": nonce},
        }
        params = {"nonce": nonce, "client_id": self._entry.client_id, "access_token": token["access_token"]}
        claims: Any = CodeIDToken(decoded.claims, decoded.header, options, params)
        claims.validate(now=int(now.timestamp()), leeway=_LEEWAY)
        return decoded.claims

    def _failed(self, error: Exception) -> SignInRefused:
        """Log the error and return a general refusal; the log line holds no secret."""
        hidden = [self._secret] if self._secret else []
        _log.warning(
            "sign-in at %s failed: %s: %s",
            self.name,
            type(error).__name__,
            safe_beginning(str(error), longest=300, secrets=hidden),
        )
        return SignInRefused(f"Signing in at {self.name} failed; the server's log says why. Try again.", 502)


@asynccontextmanager
async def _in_time() -> AsyncGenerator[None]:
    """Within the context, whole answers have to come in time: the timeout of a client is between two bytes."""
    try:
        async with asyncio.timeout(TIMEOUT):
            yield
    except TimeoutError as error:
        raise TimeoutError(f"no whole answer within {TIMEOUT:g} seconds") from error


@cache
def _trusted() -> ssl.SSLContext:
    """The trusted certificate authorities. Loaded once for the process, because that is slow."""
    import httpx

    return httpx.create_ssl_context()


async def _more(client: Any, metadata: Mapping[str, Any], claims: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add claims of the userinfo endpoint."""
    response = await client.get(metadata["userinfo_endpoint"])
    response.raise_for_status()
    more = cast("Mapping[str, Any]", response.json())
    if more.get("sub") != claims["sub"]:
        raise ValueError("the userinfo endpoint answered about another user")
    return {**more, **claims}


def _check_address(address: object, issuer: str) -> None:
    """Raise `ValueError` for an endpoint that is less secure than the provider's own address."""
    if not isinstance(address, str) or urlsplit(address).scheme not in ("https", urlsplit(issuer).scheme):
        raise ValueError("an address in the provider's metadata does not use HTTPS")
