"""Read and write messages of the Agent Approval Protocol: strict parsing, and echoing what was submitted verbatim."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, cast

from signoff.core.aap import LONGEST_NAME, AapInstance, AapRequest, name_problem
from signoff.core.access import AccessKey
from signoff.core.moment import parse_duration
from signoff.core.request_context import LONGEST_SESSION
from signoff.core.strict_json import MOST_LEVELS, TooManyParts, is_deeper, read_object
from signoff.core.visible_text import visible

LONGEST_TOOL = 200
LONGEST_SERVER = 200
LONGEST_REASONING = 16_000
LONGEST_CONTEXT = 64_000
LONGEST_NOTE = 4_000
LONGEST_TIMEOUT = timedelta(days=30)
LONGEST_WAIT = timedelta(seconds=30)
"""A longer wait is cut to this, as the protocol says."""
_KEY = re.compile(r"[\x20-\x7e]{1,255}")
_TYPES = {401: "authentication", 403: "authorization", 404: "not_found", 409: "conflict", 429: "rate_limit"}


class AapProblem(Exception):
    """An error response of the protocol."""

    def __init__(
        self, status: int, code: str, message: str, *, param: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.headers = dict(headers or {})

    def data(self, request_id: str) -> dict[str, Any]:
        """The response body."""
        kind = _TYPES.get(self.status, "invalid_request")
        if self.status >= 500:
            kind = "dependency" if self.status == 503 else "internal"
        told = {"type": kind, "code": self.code, "message": self.message, "request_id": request_id}
        return {"error": {**told, "param": self.param} if self.param else told}


@dataclass(frozen=True, slots=True, kw_only=True)
class AapSubmission:
    """A call as an agent submitted it."""

    tool: str
    arguments: Mapping[str, Any]
    timeout: timedelta
    server: str
    reasoning: str
    context: Mapping[str, Any]
    text: str
    """Verbatim."""
    digest: str

    @property
    def session(self) -> str:
        """The session that the agent says it is in, as hooks of coding agents do."""
        return self._told("session")

    @property
    def directory(self) -> str:
        """The directory that the agent says it is in."""
        return self._told("directory") if self.session else ""

    @property
    def task(self) -> str:
        """The prompt that the agent says it got."""
        return self._told("task") if self.session else ""

    def _told(self, name: str) -> str:
        return found if isinstance(found := self.context.get(name), str) else ""

    @property
    def claims(self) -> dict[str, Any]:
        """What the agent claims besides the call, by labels for people. What has a line of its own is left out."""
        lines = {"session": self.session, "directory": self.directory, "task": self.task}
        whole = {name for name, text in lines.items() if 0 < len(text) <= LONGEST_SESSION}
        context = {name: value for name, value in self.context.items() if name not in whole}
        told = {"server, as the agent says": self.server, "context, as the agent says": context}
        return {name: value for name, value in told.items() if value}


def read_submission(raw: bytes) -> AapSubmission:
    """Parse a submitted call; raises `AapProblem`."""
    found = read_fields(raw, required=("tool", "arguments", "timeout"), others=("server", "agent_reasoning", "context"))
    context = _object(found, "context")
    if len(json.dumps(context)) > LONGEST_CONTEXT:
        raise _invalid("context", f"more than {LONGEST_CONTEXT:,} characters")
    timeout = duration(text_of(found, "timeout", 20), "timeout")
    if timeout > LONGEST_TIMEOUT:
        raise _invalid("timeout", f"at most {LONGEST_TIMEOUT.days * 24}h")
    return AapSubmission(
        tool=text_of(found, "tool", LONGEST_TOOL),
        arguments=_object(found, "arguments"),
        timeout=timeout,
        server=text_of(found, "server", LONGEST_SERVER) if "server" in found else "",
        reasoning=text_of(found, "agent_reasoning", LONGEST_REASONING, least=0) if "agent_reasoning" in found else "",
        context=context,
        text=raw.decode().strip(),
        digest=digest_of_fields(found),
    )


def submission_of(row: AapRequest) -> AapSubmission:
    """Parse the stored body of a request again."""
    return read_submission(row.body.encode())


def read_fields(
    raw: bytes, *, required: Sequence[str] = (), others: Sequence[str] = (), nullable: Sequence[str] = ()
) -> dict[str, Any]:
    """Parse a JSON body; raises `AapProblem` for missing, unknown or null fields, and for deep nesting."""
    try:
        found = read_object(raw, what="the body", exact=True, bounded=True)
    except TooManyParts as error:
        raise AapProblem(413, "request_too_large", f"the body has {error}") from error
    except ValueError as error:
        raise AapProblem(400, "invalid_json", visible(str(error))) from error
    if is_deeper(found):
        raise AapProblem(400, "invalid_json", f"the body is nested more than {MOST_LEVELS} levels deep")
    for name, value in found.items():
        if name not in required and name not in others:
            raise AapProblem(400, "unknown_field", "unknown field", param=visible(name[:LONGEST_NAME]))
        if value is None and name not in nullable:
            raise _invalid(name, "it is null" if name in required else "it is null; leave it out instead")
    if missing := next((name for name in required if name not in found), ""):
        raise AapProblem(400, "missing_field", f"{missing} is missing", param=missing)
    return found


def digest_of_fields(found: Mapping[str, Any]) -> str:
    """Hash the fields, independent of their order and whitespace."""
    return sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


def text_of(found: Mapping[str, Any], name: str, longest: int, *, least: int = 1) -> str:
    value = found[name]
    if not isinstance(value, str) or not least <= len(value) <= longest:
        raise _invalid(name, f"a text of {least} to {longest:,} characters")
    return value


def name_of(found: Mapping[str, Any]) -> str:
    """Return the requested name of an instance; empty if there is none."""
    if "instance_name" not in found:
        return ""
    name = text_of(found, "instance_name", LONGEST_NAME)
    if problem := name_problem(name):
        raise _invalid("instance_name", problem)
    return name


def duration(text: str, param: str) -> timedelta:
    """Parse a whole number of seconds, minutes or hours, as `30m`."""
    length = parse_duration(text) if text.isalnum() and text[0] != "0" and text[-1] in "smh" else None
    if not length:
        raise _invalid(param, "a whole number with its unit, as 30s, 30m or 24h")
    return length


def checked_key(sent: Sequence[str]) -> str:
    """Return the idempotency key of a request; raises `AapProblem` if it is missing or invalid."""
    if not sent:
        raise AapProblem(400, "missing_idempotency_key", "send an Idempotency-Key", param="Idempotency-Key")
    if len(sent) > 1 or not _KEY.fullmatch(sent[0]):
        what = "one key of 1 to 255 ASCII characters"
        raise AapProblem(400, "invalid_idempotency_key", what, param="Idempotency-Key")
    return sent[0]


def request_text(row: AapRequest) -> str:
    """Serialise a request: the submitted body verbatim, and its current status."""
    own: dict[str, Any] = {
        "id": row.id,
        "status": str(row.status),
        "created_at": stamp(row.created_at),
        "deadline_at": stamp(row.deadline),
    }
    if (decision := row.decision) is not None:
        own["decision"] = {"status": str(decision.status), "decided_at": stamp(decision.at)}
        if decision.note:
            own["decision"]["note"] = decision.note
        if decision.expires_at is not None:
            own["decision"]["expires_at"] = stamp(decision.expires_at)
    if row.consumed_at is not None:
        consumption: dict[str, Any] = {"consumed_at": stamp(row.consumed_at)}
        if (told := row.outcome) is not None:
            outcome = {"status": "succeeded" if told.succeeded else "failed", "reported_at": stamp(told.at)}
            consumption["outcome"] = {**outcome, "note": told.note} if told.note else outcome
        own["consumption"] = consumption
    # Drop the closing bracket and append our fields; the submitted object is not empty and has none of these names.
    return f"{row.body.rstrip()[:-1]}, {json.dumps(own)[1:]}"


def instance_data(instance: AapInstance) -> dict[str, Any]:
    """Serialise an instance."""
    return {"id": instance.id, "name": instance.name}


def credential_data(key: AccessKey, secret: str) -> dict[str, Any]:
    """Serialise the credential of an instance, which is sent only to its maker."""
    told: dict[str, Any] = {"token": secret}
    return {**told, "expires_at": stamp(key.expires_at)} if key.expires_at is not None else told


def stamp(at: datetime) -> str:
    """Format a time as the protocol wants it."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _object(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = found.get(name, {})
    if not isinstance(value, dict):
        raise _invalid(name, "an object")
    return cast("dict[str, Any]", value)


def _invalid(name: str, what: str) -> AapProblem:
    return AapProblem(400, "invalid_field", f"{name}: {what}", param=name)
