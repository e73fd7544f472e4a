"""Build the events of the audit log. Secrets are masked here, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, cast

from signoff.core.call import Call
from signoff.core.grant import Grant
from signoff.core.loosening import Loosened
from signoff.core.people import Actor, Delegation
from signoff.core.quorum import who
from signoff.core.record import EventDraft
from signoff.core.redact import Redactor, read_ahead, redact_text, without_half_a_mask
from signoff.core.request import ApprovalRequest
from signoff.core.result_text import exit_text, without_exit
from signoff.core.run import SavedRun
from signoff.core.safe_text import safe_beginning
from signoff.core.verdict import Verdict
from signoff.core.visible_text import CLOSE, OPEN, visible

LONGEST_RESULT = 200
"""Characters of the result of a call that nobody was asked about."""
LONGEST = 4_000
"""Characters of a text in an event. A longer text is cut and says so; digests are over the whole."""


@dataclass(frozen=True, slots=True)
class Journal:
    """Builds the events of the audit log."""

    secrets: tuple[str, ...] = ()
    """Values that are masked wherever they occur, besides what looks like a secret."""
    is_kept: bool = True
    """Whether the events are kept. If not, an event only names its subject."""

    def passed(
        self,
        kind: str,
        call: Call,
        verdict: Verdict | None,
        at: datetime,
        *,
        run: str = "",
        by: str = "",
        text: str = "",
        result: str = "",
        grant: str = "",
        secrets: Sequence[str] = (),
    ) -> EventDraft:
        """A step of a call that nobody was asked about: `allowed`, `denied`, `remembered`, `ran` …"""
        if not self.is_kept:
            return EventDraft(kind=kind, at=at, run=run)
        body = {**self._call(call, secrets), **self._verdict(verdict, secrets)}
        if by:
            body["by"] = by
        if text:
            body["why"] = self.text(text, secrets=secrets)
        if result:
            body["preview"] = self.result(result, secrets=secrets)
        if grant:
            body["grant"] = grant
        return EventDraft(kind=kind, at=at, run=run, body=body)

    def call_of(self, request: ApprovalRequest) -> Mapping[str, Any]:
        """Return what is kept of the call of a request. It takes long for a large one: do it before a transaction."""
        if not self.is_kept or request.call is None:
            return {}
        return self._call(request.call, request.secrets)

    def asked(self, request: ApprovalRequest, at: datetime, call: Mapping[str, Any], *, short: str = "") -> EventDraft:
        """`call` is what `call_of` returned."""
        if not self.is_kept:
            return self.about(request, "asked", at)
        body: dict[str, Any] = {
            "title": request.title,
            "args_digest": request.args_digest,
            "needs": who(request.requirement),
            "policy": request.policy_revision,
            **self._verdict(request.verdict, request.secrets),
            **self._loosened(request.context.loosened),
        }
        if request.call is not None:
            body |= {
                **call,
                "call": request.call.key,
                "schema": request.call.schema_hash,
            }
        if request.deadline is not None:
            body["deadline"] = request.deadline.isoformat()
        if short:
            body["short"] = short
        if request.changed:
            body["changed"] = [self.text(one) for one in request.changed]
        for name in ("requester", "owner"):
            if value := getattr(request, name):
                body[name] = value
        return self.about(request, "asked", at, body)

    def voted(self, request: ApprovalRequest, at: datetime) -> EventDraft:
        if not self.is_kept:
            return self.about(request, "voted", at)
        vote = request.votes[-1]
        body = {"approved": vote.decision.approved, **_actor(vote.by), "args_digest": vote.args_digest}
        if vote.stands_for is not None:
            body["stands_for"] = vote.stands_for.name
        if vote.decision.note:
            body["note"] = self.text(vote.decision.note, secrets=request.secrets)
        if vote.decision.edited_args is not None:
            body["edited_args"] = self.args(vote.decision.edited_args, secrets=request.secrets)
        return self.about(request, "voted", at, body)

    def settled(self, request: ApprovalRequest, at: datetime) -> EventDraft:
        if not self.is_kept:
            return self.about(request, "settled", at)
        decision = request.decision
        body: dict[str, Any] = {"state": str(request.state)}
        if decision is not None:
            body["ending"] = str(decision.ending)
            if decision.by is not None:
                body |= _actor(decision.by)
            if decision.note:
                body["note"] = self.text(decision.note, secrets=request.secrets)
        return self.about(request, "settled", at, body)

    def step(self, request: ApprovalRequest, kind: str, at: datetime, **body: Any) -> EventDraft:
        """Any other step of a request: `assigned`, `reminded`, `escalated`, `claimed`, `ran`, `failed`, `unknown` …"""
        if not self.is_kept:
            return self.about(request, kind, at)
        told = {
            name: self.text(value, secrets=request.secrets) if isinstance(value, str) else value
            for name, value in body.items()
        }
        return self.about(request, kind, at, told)

    def granted(self, grant: Grant, kind: str, at: datetime, *, by: str) -> EventDraft:
        from signoff.policy.grant_text import grant_text  # most calls meet no grant

        return EventDraft(
            kind=kind, at=at, body={"grant": grant.id, "text": grant_text(grant, secrets=self.secrets), "by": by}
        )

    def delegated(self, delegation: Delegation, at: datetime, *, ended_by: str = "") -> EventDraft:
        """The start of a delegation, or with `ended_by` its end."""
        body = {"absent": delegation.absent, "deputy": delegation.deputy, "by": ended_by or delegation.by}
        if ended_by:
            return EventDraft(kind="delegation ended", at=at, body=body)
        span = {"since": delegation.since.isoformat(), "until": delegation.until.isoformat()}
        return EventDraft(kind="delegated", at=at, body={**body, **span})

    def run(self, run: SavedRun, kind: str, at: datetime, **body: Any) -> EventDraft:
        told = {name: self.text(value) if isinstance(value, str) else value for name, value in body.items()}
        return EventDraft(kind=kind, at=at, run=run.id, body={**told, **self._loosened(run.setup.loosened)})

    def _loosened(self, loosened: Loosened) -> dict[str, Any]:
        return {"loosened": [self.text(one) for one in loosened.texts]} if loosened else {}

    def switched(self, kind: str, at: datetime, *, by: str, why: str) -> EventDraft:
        return EventDraft(kind=kind, at=at, body={"by": by, "why": self.text(why)})

    def text(self, text: str, *, longest: int = LONGEST, secrets: Sequence[str] = (), lines: bool = False) -> str:
        """Return a text as it may be kept: masked first, then cut, because half a secret would not be recognised."""
        return safe_beginning(text, longest=longest, secrets=(*self.secrets, *secrets), lines=lines)

    def result(self, text: str, *, longest: int = LONGEST_RESULT, secrets: Sequence[str] = ()) -> str:
        """Return the beginning of what a call returned as it may be kept; of a command that failed its end, too."""
        hidden, ended = (*self.secrets, *secrets), exit_text(text)
        kept = safe_beginning(text, longest=longest, secrets=hidden, lines=True, output=True)
        if not ended or exit_text(kept):
            return kept
        last = without_exit(text).rstrip().rpartition("\n")[2]
        told = (safe_beginning(one, longest=LONGEST_RESULT, secrets=hidden, output=True) for one in (last, ended))
        return "{}\n{}\n[{}]".format(kept, *told)

    def args(self, args: Mapping[str, Any], *, secrets: Sequence[str] = ()) -> Mapping[str, Any]:
        """Return arguments as they may be kept.

        Mask brackets in them are escaped, so that only a mask looks like one.
        """
        read = _beginnings(args)
        redactor = Redactor((*self.secrets, *secrets), avoid=read)
        return _bounded(redactor.mapping(read), args, redactor)

    def _verdict(self, verdict: Verdict | None, secrets: Sequence[str] = ()) -> dict[str, Any]:
        if verdict is None:
            return {}
        reason = self.text(verdict.reason, secrets=secrets)
        return {"verdict": str(verdict.effect), "rules": list(verdict.rules), "reason": reason}

    def _call(self, call: Call, secrets: Sequence[str] = ()) -> dict[str, Any]:
        name = redact_text(call.tool, secrets=(*self.secrets, *secrets))
        body: dict[str, Any] = {"tool": name, "args": self.args(call.args, secrets=secrets)}
        if call.worker:
            body["worker"] = list(call.worker)
        if call.toolset:
            body["toolset"] = call.toolset
        if call.conversation_id:
            body["conversation"] = call.conversation_id
        return body

    def about(
        self, request: ApprovalRequest, kind: str, at: datetime, body: Mapping[str, Any] = MappingProxyType({})
    ) -> EventDraft:
        """A step of a request; the texts in `body` are masked already."""
        if kind in _RUNS and request.title and self.is_kept:  # that of `asked` is of the call as it was made
            body = {**body, "title": self.text(request.title, secrets=request.secrets)}
        return EventDraft(kind=kind, at=at, request=request.id, run=request.run, body=body)


_RUNS = frozenset({"ran", "failed", "unknown", "handed over", "late outcome"})
"""The events that say what became of the call itself."""


def _actor(by: Actor) -> dict[str, Any]:
    body: dict[str, Any] = {"by": by.name, "kind": str(by.kind)}
    if by.via:
        body["via"] = by.via
    if by.roles:
        body["roles"] = sorted(by.roles)
    return body


_OPEN, _CLOSE = visible(OPEN), visible(CLOSE)


def _beginnings(value: Any) -> Any:
    """As much of each text as must be read to mask what is kept of it, without brackets of masks."""
    if isinstance(value, str):
        return _without_brackets(read_ahead(value, LONGEST))
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {_without_brackets(name): _beginnings(item) for name, item in items}
    if isinstance(value, list | tuple):
        return [_beginnings(item) for item in cast("Sequence[Any]", value)]
    return value


def _without_brackets(text: str) -> str:
    if CLOSE not in text and OPEN not in text:
        return text
    return _CLOSE.join(part.replace(OPEN, _OPEN) for part in text.split(CLOSE))


def _bounded(value: Any, whole: Any, redactor: Redactor) -> Any:
    """The beginnings of masked texts. `whole` is the value before it was masked."""
    if isinstance(value, str):
        size = len(whole) if isinstance(whole, str) else len(value)
        is_read = not isinstance(whole, str) or read_ahead(whole, LONGEST) is whole or value.endswith(CLOSE)
        if len(value) <= LONGEST and is_read:
            return value
        return f"{without_half_a_mask(value[:LONGEST], redactor.stem)}… ({size:,} characters)"
    if isinstance(value, Mapping):
        pairs = zip(cast("Mapping[str, Any]", value).items(), whole.values(), strict=False)
        return {name: _bounded(item, then, redactor) for (name, item), then in pairs}
    if isinstance(value, list | tuple):
        pairs = zip(cast("Sequence[Any]", value), whole, strict=False)
        return [_bounded(item, then, redactor) for item, then in pairs]
    return value
