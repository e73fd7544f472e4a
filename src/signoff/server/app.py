"""The ASGI application: routes for the API endpoints, sign-in, the Agent Approval Protocol and the pages."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route, Router

from signoff.server import (
    api_access,
    api_comments,
    api_events,
    api_grants,
    api_halt,
    api_people,
    api_policy,
    api_record,
    api_requests,
    api_runs,
    api_votes,
)
from signoff.server.aap_api import ROOT as AAP
from signoff.server.aap_api import AapApi, aap_problem
from signoff.server.aap_wire import AapProblem
from signoff.server.endpoint import Dispatch, Endpoint, problem_response
from signoff.server.guard import origin_of
from signoff.server.health import operations
from signoff.server.openapi import ROOT, openapi_endpoint
from signoff.server.pages import no_such_page, page_routes
from signoff.server.problem import ProblemRaised
from signoff.server.security_headers import SecurityHeaders
from signoff.server.sign_in import SignIn
from signoff.server.state import ServerState

_TABLE: Sequence[Endpoint] = (
    *api_requests.ENDPOINTS,
    *api_votes.ENDPOINTS,
    *api_comments.ENDPOINTS,
    *api_runs.ENDPOINTS,
    *api_grants.ENDPOINTS,
    *api_record.ENDPOINTS,
    *api_people.ENDPOINTS,
    *api_policy.ENDPOINTS,
    *api_halt.ENDPOINTS,
    *api_events.ENDPOINTS,
    *api_access.ENDPOINTS,
)
ENDPOINTS: Sequence[Endpoint] = (*_TABLE, openapi_endpoint(_TABLE))
"""All endpoints of the API."""


def api_routes(dispatch: Dispatch) -> list[BaseRoute]:
    """Return a route for each endpoint."""

    def route(endpoint: Endpoint) -> Route:
        async def answer(request: Request) -> Response:
            return await dispatch.answer(endpoint, request)

        return Route(endpoint.path, answer, methods=[endpoint.method], name=endpoint.name)

    # A mounting application signs people in itself and has no use for our tokens.
    return [route(one) for one in ENDPOINTS if not (dispatch.state.is_mounted and one.path.startswith("/tokens"))]


def application(state: ServerState, sign_in: SignIn | None = None) -> Starlette:
    """Build the application for any ASGI server. `sign_in` is None if a mounting application signs people in."""
    dispatch = Dispatch(state, origins=_own_origin)
    routes: list[BaseRoute] = [] if sign_in is None else [*operations(state), *sign_in.routes]
    if sign_in is not None and state.gates is not None:  # its keys are stored here, too
        # No redirects for trailing slashes: the protocol does not define them.
        routes.append(Mount(AAP, Router(AapApi(state, state.gates).routes(), redirect_slashes=False)))
    return Starlette(
        routes=[*routes, Mount(ROOT, routes=api_routes(dispatch)), *page_routes(dispatch)],
        exception_handlers={HTTPException: _not_routed},
        middleware=[Middleware(SecurityHeaders)] if sign_in is None else [],
    )


async def _not_routed(request: Request, error: Exception) -> Response:
    """Answer a path that does not exist, or a method that it does not have."""
    assert isinstance(error, HTTPException), "it is registered for these"
    if request.scope["path"].startswith("/aap/"):
        code = "not_found" if error.status_code == 404 else "method_not_allowed"
        return aap_problem(request, AapProblem(error.status_code, code, "the protocol has no such operation here"))
    if error.status_code == 404 and f"{ROOT}/" not in request.url.path:
        return no_such_page(request)
    word = {404: "not-found", 405: "no-such-method"}.get(error.status_code, "refused")
    headers = dict(error.headers) if error.headers is not None else None
    return problem_response(ProblemRaised(error.status_code, word, error.detail, headers=headers))


def _own_origin(request: Request) -> Sequence[str]:
    return (origin_of(request.url.scheme, request.headers.get("host", "")),)
