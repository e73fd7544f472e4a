"""The OpenAPI 3.1 document of the API, generated from the endpoint table and its models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, TypeAdapter
from starlette.requests import Request

from signoff.server.endpoint import CSRF_HEADER, KEY_HEADER, Endpoint, Nothing, ProblemView, Visit
from signoff.server.key_identity import COOKIE
from signoff.server.problem import MEDIA_TYPE

ROOT = "/api/v1"
"""The path of the API below the application."""
_PARAMETER = re.compile(r"\{(\w+)\}")
_REF = "#/components/schemas/{model}"
_PARAMETERS = {
    "request_id": "The id of a request; its beginning is enough.",
    "run_id": "The id of a run; its beginning is enough.",
    "grant_id": "The id of a grant; its beginning is enough.",
    "token_id": "The id of a key.",
}
_EVENT: dict[str, Any] = {
    "type": "object",
    "description": "A server-sent event. One without a name is in the audit log, and its id is its number there.",
    "properties": {
        "id": {"type": "string", "pattern": "^[0-9]+$"},
        "event": {"enum": ["message", "begin", "reset", "presence", "closed"], "default": "message"},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["data"],
}
_Mode: TypeAlias = Literal["validation", "serialization"]
_Shape: TypeAlias = tuple[type[Any], _Mode]

ABOUT = f"""Read and answer approval requests of AI agents from programs.

Every request needs a token, `Authorization: Bearer …`, or a browser session. With a session, every change also
needs the header `{CSRF_HEADER}`. A change with an `Idempotency-Key` is made once, however often it is sent.
Errors are problem details (RFC 9457): `type` is a code for programs, `detail` a sentence for people. Texts are safe to
show: secrets are masked, invisible characters are spelled out; only `args` are as they would run."""


class DocumentView(BaseModel):
    """The document itself."""

    model_config = ConfigDict(extra="allow")


def document(endpoints: Sequence[Endpoint], root: str = "") -> dict[str, Any]:
    """Return the whole document. `root` is where the application is mounted."""
    refs, parts = _schemas(endpoints)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, refs)
    return {
        "openapi": "3.1.0",
        "info": {"title": "signoff", "version": version("signoff"), "description": ABOUT},
        "servers": [{"url": f"{root}{ROOT}"}],
        "tags": [{"name": name} for name in dict.fromkeys(one.tag for one in endpoints)],
        "paths": paths,
        "components": {
            "schemas": parts,
            "responses": {"Problem": _content(MEDIA_TYPE, refs[ProblemView, "serialization"], "A problem.")},
            "parameters": {
                "IdempotencyKey": {
                    "name": KEY_HEADER.title(),
                    "in": "header",
                    "required": False,
                    "description": "A key for this change, 1 to 200 visible ASCII characters: the change is made once.",
                    "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
                }
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
            },
        },
    }


def openapi_endpoint(endpoints: Sequence[Endpoint]) -> Endpoint:
    """Return the endpoint that serves the document; `endpoints` are all others."""

    async def show(visit: Visit[Nothing, Nothing]) -> DocumentView:
        return DocumentView(**document((*endpoints, made), mounted_at(visit.request)))

    made = Endpoint(
        method="GET",
        path="/openapi.json",
        name="openapi",
        about="This document. It needs no key.",
        permission=None,
        handle=show,
        returns=DocumentView,
        tag="about",
    )
    return made


def mounted_at(request: Request) -> str:
    """Return where the application is mounted; empty if it is not mounted."""
    return str(request.scope.get("root_path", "")).removesuffix(ROOT).rstrip("/")


def statuses(endpoint: Endpoint) -> Iterator[int]:
    """Yield the error statuses that an endpoint may return."""
    if endpoint.permission is not None:
        yield from (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
        yield from (HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.SERVICE_UNAVAILABLE)
    if endpoint.writes:
        yield from (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    if endpoint.body is not Nothing:
        yield HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    if _PARAMETER.search(endpoint.path) or "request" in endpoint.query.model_fields or endpoint.writes:
        yield HTTPStatus.NOT_FOUND
    if endpoint.tag == "events":
        yield HTTPStatus.TOO_MANY_REQUESTS


def _operation(endpoint: Endpoint, refs: dict[_Shape, dict[str, Any]]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PARAMETERS.get(name, ""),
            "schema": {"type": "string", "minLength": 1, "maxLength": 200},
        }
        for name in _PARAMETER.findall(endpoint.path)
    ]
    parameters += _query(endpoint.query)
    if endpoint.writes:
        parameters.append({"$ref": "#/components/parameters/IdempotencyKey"})
    answer = {"description": HTTPStatus(endpoint.status).phrase}
    if endpoint.returns is not None:
        answer = _content(endpoint.media_type, refs[endpoint.returns, "serialization"], answer["description"])
    else:
        answer = _content(endpoint.media_type, _EVENT, answer["description"])
    made: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.about,
        "tags": [endpoint.tag],
        "parameters": parameters,
        "responses": {
            str(endpoint.status): answer,
            **{str(int(one)): {"$ref": "#/components/responses/Problem"} for one in sorted(set(statuses(endpoint)))},
        },
        "security": [{"token": []}, {"session": []}] if endpoint.permission is not None else [],
    }
    if endpoint.permission is not None:
        made["x-permission"] = str(endpoint.permission)
    if endpoint.body is not Nothing:
        schema = refs[endpoint.body, "validation"]
        made["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return made


def _content(media_type: str, schema: dict[str, Any], about: str) -> dict[str, Any]:
    return {"description": about, "content": {media_type: {"schema": schema}}}


def _query(model: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """Yield the parameters of a query, with references inlined because their values are simple."""
    schema = model.model_json_schema(mode="validation")
    parts: dict[str, Any] = schema.get("$defs", {})
    for name, about in schema.get("properties", {}).items():
        shape = {key: value for key, value in about.items() if key not in ("title", "description")}
        yield {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": about.get("description", ""),
            "schema": _inlined(shape, parts),
        }


def _inlined(value: Any, parts: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_inlined(one, parts) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return value
    known: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
    if "$ref" in known:
        rest = {key: one for key, one in known.items() if key != "$ref"}
        return {**parts[str(known["$ref"]).rpartition("/")[2]], **_inlined(rest, parts)}
    made = {key: _inlined(one, parts) for key, one in known.items()}
    if made.get("anyOf") and {"type": "null"} in made["anyOf"]:  # an omitted query parameter is not sent as null
        [*others] = [one for one in made["anyOf"] if one != {"type": "null"}]
        made = {key: one for key, one in made.items() if key not in ("anyOf", "default")}
        return {**others[0], **made} if len(others) == 1 else {**made, "anyOf": others}
    return made


def _schemas(endpoints: Sequence[Endpoint]) -> tuple[dict[_Shape, dict[str, Any]], dict[str, Any]]:
    """Return a reference for each model and view, and all schemas by name."""
    shapes: dict[_Shape, None] = {(ProblemView, "serialization"): None}
    for endpoint in endpoints:
        if endpoint.body is not Nothing:
            shapes[endpoint.body, "validation"] = None
        if endpoint.returns is not None:
            for kind in _with_bases(endpoint.returns):
                shapes[kind, "serialization"] = None
    adapters: list[tuple[type[Any], _Mode, TypeAdapter[Any]]] = [
        (kind, mode, TypeAdapter[Any](kind)) for kind, mode in shapes
    ]
    refs, whole = TypeAdapter.json_schemas(adapters, ref_template=_REF)
    parts: dict[str, Any] = whole.get("$defs", {})
    for kind, _ in shapes:
        for base in _with_bases(kind)[1:]:  # what a view inherits is described where it stands
            of_base = parts[base.__name__]["properties"]
            parts[kind.__name__]["properties"].update(of_base)
    return refs, parts


def _with_bases(kind: type[Any]) -> list[type[Any]]:
    """A view, and those that it extends."""
    return [kind, *(one for one in kind.__mro__[1:] if is_dataclass(one))]
