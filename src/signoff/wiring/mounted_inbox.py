"""`inbox_app`: the web inbox as a part of your own application, with that application's login."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, TypeAlias

from signoff.config import Person
from signoff.core.access import EVERYTHING, Permission
from signoff.core.people import Actor
from signoff.errors import MissingExtra, WrongUse
from signoff.policy.layers import Layers
from signoff.wiring.program_inbox import gate_inbox

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import HTTPConnection

    from signoff.channels.rule_drafts import RuleDrafts
    from signoff.core.call import Call
    from signoff.core.request import ApprovalRequest
    from signoff.gate.capability import Signoff
    from signoff.policy.explain import Explanation
    from signoff.server.identity import Identity

CHANNEL = "web"
"""The channel name in the record for answers given here."""

Someone: TypeAlias = Actor | str | None
User: TypeAlias = "Callable[[HTTPConnection], Someone | Awaitable[Someone]]"
"""Returns who sent a request, by the application's own login; None for nobody."""
PermissionsOf: TypeAlias = "Callable[[Actor], Collection[str]]"


def inbox_app(
    signoff: Signoff,
    *,
    user: User,
    permissions: Collection[str] | PermissionsOf = (Permission.READ, Permission.ANSWER),
    title: str = "signoff",
    sign_in_url: str = "",
) -> Starlette:
    """An inbox for an agent's gate, to mount: `app.mount("/approvals", inbox_app(signoff, user=user))`.

    `user` takes a request and returns who is signed in, as an `Actor`, a name or None. It may be a coroutine function.
    `permissions` are what everybody who is signed in may do, or a function of the `Actor`: `read`, `answer`, `run`,
    `admin`. Whose answer counts is decided by the rules.

    People who are not signed in are redirected to `sign_in_url`, a path or URL of the application; without it, they
    see a message.

    Changes are accepted only from pages of the same origin, by `Origin` and `Sec-Fetch-Site`. signoff's own keys are
    neither created nor accepted here.
    """
    try:
        from signoff.server.app import application
        from signoff.server.identity import Identity
        from signoff.server.state import ServerState
    except ModuleNotFoundError as error:
        raise MissingExtra("an inbox in an application", "web") from error

    allowed = permissions if callable(permissions) else None
    fixed = frozenset[Permission]() if callable(permissions) else _known(permissions)

    async def identify(connection: HTTPConnection) -> Identity | None:
        found = user(connection)
        someone = await found if inspect.isawaitable(found) else found
        if someone is None or someone == "":
            return None
        actor = Actor(name=someone, via=CHANNEL) if isinstance(someone, str) else someone
        signoff.broker.people.signed_in(actor)
        return Identity(actor=actor, permissions=_known(allowed(actor)) if allowed is not None else fixed)

    def people() -> Mapping[str, Person]:
        return {name: Person(name=name, roles=roles) for name, roles in signoff.broker.people.on_file().items()}

    state = ServerState(
        broker=signoff.broker,
        inbox=gate_inbox(signoff, CHANNEL),
        identify=identify,
        people=people,
        rules=GateRules(signoff),
        title=title,
        is_mounted=True,
        sign_in_url=sign_in_url,
    )
    return application(state)


class GateRules:
    """Implements `signoff.server.state.Rules` for a gate. The application owns its rules, so none is written here."""

    def __init__(self, signoff: Signoff) -> None:
        self._layers = Layers(signoff.policies)

    async def explain(self, call: Call) -> Explanation:
        return self._layers.explain(call)

    async def drafts(self, request: ApprovalRequest) -> RuleDrafts:
        raise WrongUse("rules cannot be written here: change them in the code of the application")


def _known(permissions: Collection[str]) -> frozenset[Permission]:
    unknown = [one for one in permissions if one not in EVERYTHING]
    if isinstance(permissions, str) or unknown:
        what = ", ".join(repr(one) for one in Permission if one in EVERYTHING)
        raise WrongUse(f"inbox_app(permissions=…): it must be some of {what}, not {permissions!r}")
    return frozenset(map(Permission, permissions))
