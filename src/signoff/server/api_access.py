"""API endpoints for the caller's identity and for access keys: one's own, those of programs, and, for admins, all.

Nobody can create a key for another person here, not even an admin, who could otherwise vote as two people.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from pydantic import Field

from signoff.core.access import AccessKey, AccessKind, Permission
from signoff.core.people import ActorKind, person_key
from signoff.core.safe_text import safe_text
from signoff.core.visible_text import visible
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit
from signoff.server.identity import Identity
from signoff.server.key_identity import permissions_of
from signoff.server.problem import ProblemRaised
from signoff.server.state import ServerState

LONGEST = 90 * 24 * 3600
"""Seconds that a token lasts at most. A longer one is made with `signoff tokens create`, where the store is."""


class MeView(ApiModel):
    """The identity of the caller."""

    name: str
    kind: ActorKind
    roles: list[str]
    permissions: list[Permission]
    expires_at: datetime | None = Field(description="When the key of this request expires.")
    csrf: str = Field(description="What pages send with every change in the header x-signoff-csrf; empty for a token.")


class TokenView(ApiModel):
    """A key, without its secret."""

    id: str
    kind: AccessKind
    holder: str
    is_program: bool
    label: str
    permissions: list[Permission]
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None
    refusal: str = Field(description="Why the key is no longer valid; empty if it is valid.")


class TokenList(ApiModel):
    """Keys, in the order they were created."""

    tokens: list[TokenView]


class TokenQuery(ApiModel):
    """Which keys."""

    kind: Literal["token", "session", "link"] = "token"
    holder: str = Field(
        default="", max_length=200, description="Whose keys to list. Only an admin sees those of others."
    )
    all: bool = Field(default=False, description="Include keys that are expired or revoked.")


class TokenBody(ApiModel):
    """A new token, for yourself or for a program."""

    program: str = Field(default="", max_length=100, description="The program the token is for; empty: yourself.")
    label: str = Field(default="", max_length=200)
    permissions: list[Permission] = Field(default=[Permission.READ], min_length=1)
    lasts: int = Field(default=LONGEST, ge=60, le=LONGEST, description="Seconds.")


class TokenMade(ApiModel):
    """A new token with its secret, which is shown only once."""

    token: TokenView
    secret: str | None = Field(description="Sent only once: null if the same request is repeated.")


async def me(visit: Visit[Nothing, Nothing]) -> MeView:
    identity = visit.identity
    return MeView(
        name=visible(identity.actor.name),
        kind=identity.actor.kind,
        roles=sorted(map(visible, identity.actor.roles)),
        permissions=sorted(identity.permissions),
        expires_at=identity.key.expires_at if identity.key is not None else None,
        csrf=identity.csrf,
    )


async def tokens(visit: Visit[TokenQuery, Nothing]) -> TokenList:
    state, query, identity = visit.state, visit.query, visit.identity
    now = state.broker.clock.now()
    keys = await state.broker.access.list(kind=AccessKind(query.kind))
    shown = [one for one in keys if _is_theirs(identity, one) and (query.all or not one.refusal(now))]
    whose = person_key(query.holder)
    return TokenList(tokens=[_view(state, one, now) for one in shown if not whose or person_key(one.holder) == whose])


async def make(visit: Visit[Nothing, TokenBody]) -> TokenMade:
    state, body, identity = visit.state, visit.body, visit.identity
    is_admin = Permission.ADMIN in identity.permissions
    program = body.program.strip()
    if program and not is_admin:
        raise ProblemRaised(403, "not-permitted", "only an admin can create tokens for programs")
    if identity.key is not None and identity.key.kind is AccessKind.TOKEN and not is_admin:
        # Otherwise a stolen token could renew itself for ever.
        raise ProblemRaised(
            403, "not-permitted", "sign in to create a token: a token cannot create tokens, unless it is an admin's"
        )
    if program and person_key(program) in map(person_key, state.people()):
        raise ProblemRaised(422, "name-taken", f"{visible(program)} is a person: give the program another name")
    wanted = frozenset(body.permissions)
    if missing := sorted(wanted - identity.permissions):
        raise ProblemRaised(403, "not-permitted", f"you do not have these permissions yourself: {', '.join(missing)}")
    key, secret = await state.broker.access.issue(
        AccessKind.TOKEN,
        program or identity.actor.name,
        by=identity.actor.name,
        lasts=timedelta(seconds=body.lasts),
        label=body.label,
        is_program=bool(program),
        permissions=wanted,
    )
    return TokenMade(token=_view(state, key, state.broker.clock.now()), secret=secret)


async def revoke(visit: Visit[Nothing, Nothing]) -> TokenView:
    state, identity = visit.state, visit.identity
    access = state.broker.access
    found = await access.get(visit.path["token_id"])
    if found is None or not _may_revoke(identity, found):
        raise ProblemRaised(404, "unknown-token", "there is no such token, or you may not revoke it")
    return _view(state, await access.revoke(found.id, by=identity.actor.name), state.broker.clock.now())


async def own_keys(state: ServerState, identity: Identity) -> list[TokenView]:
    """List the caller's own sessions and tokens, and the keys of programs that the caller made."""
    now, every = state.broker.clock.now(), await state.broker.access.list()
    mine = [one for one in every if _is_held(identity, one) or person_key(one.created_by) == identity.actor.key]
    return [_view(state, one, now) for one in mine if one.kind is not AccessKind.LINK and not one.refusal(now)]


def _may_revoke(identity: Identity, key: AccessKey) -> bool:
    """Whether the caller may revoke a key. A token can only revoke itself, unless it is an admin's."""
    is_token = identity.key is not None and identity.key.kind is AccessKind.TOKEN
    if is_token and Permission.ADMIN not in identity.permissions:
        return identity.key is not None and identity.key.id == key.id
    return _is_theirs(identity, key)


def _is_theirs(identity: Identity, key: AccessKey) -> bool:
    """Whether the caller may see a key."""
    if Permission.ADMIN in identity.permissions:
        return True
    return _is_held(identity, key)


def _is_held(identity: Identity, key: AccessKey) -> bool:
    is_program = identity.actor.kind is not ActorKind.PERSON
    return key.is_program is is_program and person_key(key.holder) == identity.actor.key


def _permitted(state: ServerState, key: AccessKey) -> frozenset[Permission]:
    """What a key permits now: a person's never permits more than the person may do."""
    if key.is_program or not (people := state.people()):
        return key.permissions
    person = next((one for one in people.values() if person_key(one.name) == person_key(key.holder)), None)
    return key.permissions & permissions_of(person) if person is not None else frozenset()


def _view(state: ServerState, key: AccessKey, now: datetime) -> TokenView:
    return TokenView(
        id=key.id,
        kind=key.kind,
        holder=visible(key.holder),
        is_program=key.is_program,
        label=safe_text(key.label),
        permissions=sorted(_permitted(state, key)),
        created_at=key.created_at,
        created_by=visible(key.created_by),
        expires_at=key.expires_at,
        used_at=key.used_at,
        revoked_at=key.revoked_at,
        refusal=key.refusal(now),
    )


ENDPOINTS: Sequence[Endpoint] = (
    Endpoint(
        method="GET",
        path="/me",
        name="me",
        about="Your identity and permissions.",
        permission=Permission.READ,
        handle=me,
        returns=MeView,
        tag="access",
    ),
    Endpoint(
        method="GET",
        path="/tokens",
        name="list_tokens",
        about="List your keys; an admin lists everybody's.",
        permission=Permission.READ,
        handle=tokens,
        query=TokenQuery,
        returns=TokenList,
        tag="access",
    ),
    Endpoint(
        method="POST",
        path="/tokens",
        name="make_token",
        about="Create a token for yourself; an admin can also create one for a program. It cannot have permissions "
        "that you lack.",
        permission=Permission.READ,
        people_only="create tokens",
        handle=make,
        body=TokenBody,
        returns=TokenMade,
        status=201,
        tag="access",
        told_once=("secret",),
    ),
    Endpoint(
        method="DELETE",
        path="/tokens/{token_id}",
        name="revoke_token",
        about="Revoke a token or session. A token can only revoke itself, unless it is an admin's.",
        permission=Permission.READ,
        handle=revoke,
        returns=TokenView,
        tag="access",
    ),
)
