"""Signing in at an OpenID provider: authorization code with PKCE, a nonce, and a state bound to the browser."""

from __future__ import annotations

import json
import logging
import secrets
import ssl
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, cast
from urllib.parse import urlsplit

from signoff.config import OidcEntry, Person
from signoff.config.server_entry import EMAIL
from signoff.config.settings import email_key
from signoff.core.visible import visible
from signoff.errors import MissingExtra
from signoff.server.seal import Seal

CALLBACK = "/sign-in/oidc/callback"
METADATA_LASTS = timedelta(hours=1)
TIMEOUT = 10.0
"""Seconds that the provider has to answer."""
_LEEWAY = 60
"""Seconds that clocks may differ by."""
_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""Signatures with a key of the provider's. None that this server could have made itself, and not `none`."""

_log = logging.getLogger("signoff.server")


class SignInRefused(Exception):
    """Somebody is not let in. They are told a text of the pages, by its key, with values in it."""

    def __init__(self, text: str, status: int, *, wait: int = 0, **values: str) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        self.wait = wait
        """Seconds until it may be tried again."""
        self.values: Mapping[str, object] = {**values, **({"wait": wait} if wait else {})}


@dataclass(frozen=True, slots=True)
class Flow:
    """One sign-in at a provider, as the browser holds it meanwhile: a chance value, of which all others are made."""

    text: str
    until: datetime
    goal: str
    """Where to go afterwards."""
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
        """What a text stands for that was signed here."""
        try:
            body = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            seed, until, goal = str(body["seed"]), datetime.fromtimestamp(body["until"], UTC), str(body["goal"])
        except (ValueError, KeyError, TypeError, OverflowError):
            return None
        state, nonce, verifier = (seal.mark(f"oidc {one}", seed) for one in ("state", "nonce", "verifier"))
        return cls(text, until, goal, state, nonce, verifier)


class OidcProvider:
    """A provider, as this server is its client."""

    def __init__(self, entry: OidcEntry, url: str) -> None:
        """`url`: where people reach this server. Raises `MissingExtra` without the extra `oidc`."""
        try:
            from authlib.integrations.httpx_client import AsyncOAuth2Client
        except ImportError as error:
            raise MissingExtra("Signing in at an OpenID provider", "oidc") from error
        self._oauth: Any = AsyncOAuth2Client  # it has no types of its own
        self._entry = entry
        self._secret = entry.secret()
        self.home = url.rstrip("/")
        """Where people reach this server."""
        self._redirect = self.home + CALLBACK
        self._metadata: tuple[datetime, Mapping[str, Any]] | None = None

    @property
    def name(self) -> str:
        """What people know it by."""
        return urlsplit(self._entry.issuer).netloc

    async def address(self, flow: Flow, now: datetime) -> str:
        """Where the browser is to go."""
        metadata = await self._known(now)
        async with self._client(metadata) as client:
            made: tuple[str, str] = client.create_authorization_url(
                metadata["authorization_endpoint"], state=flow.state, code_verifier=flow.verifier, nonce=flow.nonce
            )
        return made[0]

    async def claims(self, flow: Flow, answer: Mapping[str, str], now: datetime) -> Mapping[str, Any]:
        """What the provider says about whoever it sent back; raises `SignInRefused`."""
        if error := answer.get("error"):
            raise SignInRefused("sign_in.denied", 403, provider=self.name, error=visible(error)[:100])
        # RFC 9207: an answer of another provider is none.
        if answer.get("iss", self._entry.issuer) != self._entry.issuer or not answer.get("code"):
            raise SignInRefused("sign_in.no_answer", 403)
        metadata = await self._known(now)
        try:
            async with self._client(metadata) as client:
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
        """Whom on file these claims are about; None where nobody is, or where it is not sure."""
        said = claims.get(self._entry.claim)
        if not isinstance(said, str) or not said.strip():
            return None
        if self._entry.claim != EMAIL:
            # Not by `person_key`, which takes letters of other scripts and widths for one: accounts of others.
            return next((one for one in people.values() if email_key(one.name) == email_key(said)), None)
        if claims.get("email_verified") not in (True, "true"):
            raise SignInRefused("sign_in.unverified", 403, provider=self.name)
        found = [one for one in people.values() if one.email and email_key(one.email) == email_key(said)]
        return found[0] if len(found) == 1 else None

    def _client(self, metadata: Mapping[str, Any]) -> Any:
        """One sign-in's client of the provider: it holds the access token meanwhile."""
        ways = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        way = "client_secret_basic" if "client_secret_basic" in ways else "client_secret_post"
        return self._oauth(
            client_id=self._entry.client_id,
            client_secret=self._secret or None,
            token_endpoint_auth_method=way if self._secret else "none",
            scope="openid email profile",
            redirect_uri=self._redirect,
            code_challenge_method="S256",
            timeout=TIMEOUT,
            verify=self._trusted,
        )

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        """The authorities that this machine trusts. To read them takes long enough that everybody would notice."""
        import httpx

        return httpx.create_ssl_context()

    async def _known(self, now: datetime) -> Mapping[str, Any]:
        """What the provider says about itself."""
        if self._metadata is not None and now - self._metadata[0] < METADATA_LASTS:
            return self._metadata[1]
        import httpx

        try:
            async with httpx.AsyncClient(timeout=TIMEOUT, verify=self._trusted) as client:
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
        """The claims of the ID token: of this provider, for this client, for this sign-in, and not over."""
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt
        from joserfc.jwk import KeySet

        known = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
        if not (algorithms := [one for one in _ALGORITHMS if one in known]):  # none named would be any to the library
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
        """What is told; what is wrong is for whoever reads the log, and holds no secret."""
        _log.warning("sign-in at %s failed: %s: %s", self.name, type(error).__name__, visible(str(error))[:300])
        return SignInRefused("sign_in.failed", 502, provider=self.name)


async def _more(client: Any, metadata: Mapping[str, Any], claims: Mapping[str, Any]) -> Mapping[str, Any]:
    """With what the provider tells only when it is asked."""
    response = await client.get(metadata["userinfo_endpoint"])
    response.raise_for_status()
    more = cast("Mapping[str, Any]", response.json())
    if more.get("sub") != claims["sub"]:
        raise ValueError("the userinfo endpoint answered about another user")
    return {**more, **claims}


def _check_address(address: object, issuer: str) -> None:
    """Raise `ValueError` for an address that is not as safe as the provider's own."""
    if not isinstance(address, str) or urlsplit(address).scheme not in ("https", urlsplit(issuer).scheme):
        raise ValueError("an address in the provider's metadata does not use HTTPS")
