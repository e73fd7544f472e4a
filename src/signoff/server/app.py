"""The application: the API's table as routes, and what stands beside it."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route

from signoff.server import api_access, api_requests
from signoff.server.endpoint import Dispatch, Endpoint
from signoff.server.pages import page_routes
from signoff.server.sign_in import SignIn
from signoff.server.state import ServerState

ENDPOINTS: Sequence[Endpoint] = (*api_requests.ENDPOINTS, *api_access.ENDPOINTS)
"""The whole API."""


def api_routes(dispatch: Dispatch) -> list[BaseRoute]:
    """A route for each row of the table."""

    def route(endpoint: Endpoint) -> Route:
        async def answer(request: Request) -> Response:
            return await dispatch.answer(endpoint, request)

        return Route(endpoint.path, answer, methods=[endpoint.method], name=endpoint.name)

    return [route(one) for one in ENDPOINTS]


def application(state: ServerState, sign_in: SignIn | None = None) -> Starlette:
    """The server over a store, to be run by any ASGI server. `sign_in` is for keys of ours, not for those of an app."""
    dispatch = Dispatch(state, origins=_own_origin)
    routes = [] if sign_in is None else sign_in.routes
    return Starlette(routes=[*routes, Mount("/api/v1", routes=api_routes(dispatch)), *page_routes(dispatch)])


def _own_origin(request: Request) -> Sequence[str]:
    return (f"{request.url.scheme}://{request.headers.get('host', '')}",)
