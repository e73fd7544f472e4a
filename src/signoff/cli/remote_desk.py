"""`ApprovalDesk` over a server: the token identifies the person, and the server's rules say what they may do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from signoff.cli.approval_desk import (
    GivenAnswer,
    HandedOverRequest,
    PreparedAnswer,
    TypedAnswer,
)
from signoff.cli.request_report import going_on, late_text, outcome_step
from signoff.cli.server_client import ApprovalServer, named
from signoff.cli.terminal_text import iso, now, safe
from signoff.core.comment import CommentKind, question_called
from signoff.core.preview import Preview
from signoff.core.request import State
from signoff.desk.operations import NOT_REMEMBERED, CancelledRun, not_offered
from signoff.errors import AlreadySettled, EditRefused, RequestError, SignoffError, UnknownRequest, UnknownRun
from signoff.views.grant_view import GrantPage, GrantView
from signoff.views.inbox_view import MOST_LISTED
from signoff.views.people_view import PeopleView
from signoff.views.request_view import CommentView, RequestView
from signoff.views.run_view import LONGEST_TIMELINE, RunFilter, RunHistoryView, RunList


class RemoteDesk:
    """Implements `ApprovalDesk` over the HTTP API."""

    def __init__(self, server: ApprovalServer) -> None:
        self._server = server

    @property
    def place(self) -> str:
        return f"searched: the server {self._server.url}"

    # --- requests ---

    async def request(self, prefix: str) -> RequestView:
        return self._request(prefix)

    def _request(self, prefix: str) -> RequestView:
        return self._server.view(RequestView, f"/requests/{named(prefix)}")

    async def prepared(self, given: str, answer: TypedAnswer) -> PreparedAnswer:
        try:
            request = self._request(given)
            if request.state is State.UNKNOWN:
                raise RequestError(f"request {request.id} was approved and started, and {outcome_step(request.id)}")
            if request.state is not State.PENDING:
                return PreparedAnswer(given=given, problems=(late_text(request),))
            body, effect = self._body(request, answer)
            remembered = self._remembered(request, answer, body)
        except RequestError as error:
            return PreparedAnswer(given=given, problems=_problems(error), is_unknown=isinstance(error, UnknownRequest))

        async def give() -> GivenAnswer:
            return replace(self._given(request, body), effect=effect)

        return PreparedAnswer(given=given, id=request.id, remembered=remembered, give=give)

    def _body(self, request: RequestView, answer: TypedAnswer) -> tuple[dict[str, Any], Preview | None]:
        """Return the answer to send, and what the call changes with edited arguments, if it has any."""
        if answer.approved and request.problem:
            raise EditRefused((request.problem.replace("this call", "the call", 1),))
        body: dict[str, Any] = {
            "request": request.id,
            "decision": "approve" if answer.approved else "deny",
            "args_digest": request.args_digest,
            "note": answer.note,
        }
        effect = None
        if answer.arguments is not None:
            body["args"] = answer.arguments
            problems = self._server.post(f"/requests/{named(request.id)}/edit-check", {"args": answer.arguments})
            if problems["problems"]:
                raise EditRefused(tuple(problems["problems"]))
            effect = Preview(**problems["effect"]) if problems["effect"] is not None else None
        return body, effect

    def _remembered(self, request: RequestView, answer: TypedAnswer, body: dict[str, Any]) -> str:
        """What will be remembered. The same text is sent: the server remembers exactly that or nothing."""
        if answer.wish is None:
            return ""
        wish = answer.wish.remembering(now())
        limit, until = wish.budget, iso(wish.until) if wish.until is not None else None
        found = self._server.get(
            f"/requests/{named(request.id)}/offers",
            decision=body["decision"],
            scope=wish.scope,
            until=until,
            uses=wish.uses,
            budget_arg=limit.arg if limit is not None else None,
            budget=limit.limit if limit is not None else None,
            daily=limit.daily if limit is not None else None,
        )["offers"]
        if not found:
            raise RequestError(f"the answer to request {request.id} {NOT_REMEMBERED}")
        offer = next((one for one in found if wish.which in (str(one["number"]), one["name"])), None)
        if offer is None:
            raise not_offered(request.id, wish.which, [one["name"] for one in found])
        if offer["problem"]:
            raise RequestError(offer["problem"])
        body["remember"] = {
            "which": str(offer["number"]),
            "scope": wish.scope,
            "until": until,
            "uses": wish.uses,
            "budget": {"arg": limit.arg, "limit": str(limit.limit), "daily": limit.daily} if limit else None,
            "text": offer["text"],
        }
        return offer["text"]

    def _given(self, before: RequestView, body: Mapping[str, Any]) -> GivenAnswer:
        [result] = self._server.post("/votes", {"votes": [body]}, look=f"signoff show {before.id}")["results"]
        if result["ok"]:
            return GivenAnswer(request=self._after(before, result), again=result["again"])
        problem = result["problem"]
        if problem["type"] == "urn:signoff:already-settled":
            late = self._request(before.id)
            raise AlreadySettled(late_text(late) if late.state is not State.PENDING else problem["detail"])
        if problem["problems"]:
            raise EditRefused(tuple(problem["problems"]))
        raise RequestError(problem["detail"])

    def _after(self, before: RequestView, result: Mapping[str, Any]) -> RequestView:
        """The request after an accepted vote; if it cannot be read now, built from the answer to the vote."""
        try:
            return self._request(before.id)
        except SignoffError:
            others = before.approved_by[: max(0, result["approvals"] - 1)]
            return replace(before, state=State(result["state"]), approved_by=(*others, "you"), votes=())

    async def opened(self, request: RequestView) -> None:
        self._server.post(f"/requests/{named(request.id)}/read", {"args_digest": request.args_digest})

    async def hand_over(self, prefix: str, to: str | None) -> HandedOverRequest:
        before = self._request(prefix)
        path = f"/requests/{named(before.id)}"
        if to:
            done = self._server.post(f"{path}/assign", {"to": to})
        else:
            done = self._server.post(f"{path}/{'claim' if to is None else 'release'}")
        after = self._server.read(RequestView, done["request"])
        return HandedOverRequest(request=after, before=before.assigned, may_answer=not done["warning"])

    async def tell(self, prefix: str, *, happened: bool, note: str) -> RequestView:
        path = f"/requests/{named(self._request(prefix).id)}/outcome"
        return self._server.read(RequestView, self._server.post(path, {"happened": happened, "note": note}))

    async def say(
        self, prefix: str, text: str, kind: CommentKind, question: str = "", *, asks_agent: bool = False
    ) -> tuple[RequestView, CommentView]:
        request = self._request(prefix)
        answers = _question(request, question) if kind is CommentKind.ANSWER else ""
        body = {"text": text, "kind": str(kind), "answers": answers, "agent": asks_agent}
        path = f"/requests/{named(request.id)}/comments"
        said = self._server.post(path, body, look=f"signoff show {request.id}")
        return request, self._server.read(CommentView, said)

    # --- runs ---

    async def runs(self, chosen: RunFilter) -> RunList:
        found: RunList | None = None
        while found is None or (found.next and len(found.runs) < chosen.limit):
            known = found.runs if found is not None else ()
            page = self._server.view(
                RunList,
                "/runs",
                state=chosen.state,
                agent=chosen.agent,
                search=chosen.text,
                limit=min(chosen.limit - len(known), MOST_LISTED),
                cursor=(found.next if found is not None else None) or chosen.before,
            )
            found = replace(page, runs=(*known, *page.runs))
        return found

    async def run(self, prefix: str) -> RunHistoryView:
        return self._run(prefix)

    def _run(self, prefix: str) -> RunHistoryView:
        return self._server.view(RunHistoryView, f"/runs/{named(prefix)}", limit=LONGEST_TIMELINE)

    async def going_on(self, run_id: str) -> str:
        try:
            run = self._run(run_id).run
        except UnknownRun:
            return ""
        return going_on(run) if run.can_resume else ""

    async def cancel(self, prefix: str, note: str) -> CancelledRun:
        before = self._run(prefix).run
        self._server.post(f"/runs/{named(before.id)}/cancel", {"reason": note})
        withdrawn = sum(one.state is State.PENDING for one in before.waiting)
        return CancelledRun(id=before.id, withdrawn=withdrawn, alive=before.process is not None)

    async def resume(self, run_id: str) -> None:
        """Let the server resume a run."""
        self._server.post(f"/runs/{named(run_id)}/resume")

    # --- grants ---

    async def grants(self, *, everything: bool) -> GrantPage:
        found = self._server.view(GrantPage, "/grants", revoked=everything)
        while found.next:
            page = self._server.view(GrantPage, "/grants", revoked=everything, cursor=found.next)
            found = replace(page, grants=(*found.grants, *page.grants))
        return found

    async def grant(self, prefix: str) -> GrantView:
        return self._server.view(GrantView, f"/grants/{named(prefix)}")

    async def revoke(self, prefix: str) -> tuple[GrantView, GrantView]:
        before = await self.grant(prefix)
        done = self._server.post(f"/grants/{named(before.id)}/revoke")
        return before, self._server.read(GrantView, done)

    # --- people, and the switch ---

    async def people(self) -> tuple[PeopleView, str]:
        nobody = f"The project of {self._server.url} names nobody: anyone it admits may answer, by their own name."
        return self._server.view(PeopleView, "/people"), nobody

    async def delegate(self, absent: str, deputy: str, until: datetime, since: datetime) -> tuple[str, str]:
        body = {"absent": absent, "deputy": deputy, "until": until.isoformat()}
        made = self._server.post("/delegations", body)
        return made["absent"], made["deputy"]

    async def end_delegation(self, absent: str, deputy: str) -> tuple[str, str]:
        ended = self._server.delete(f"/delegations/{named(absent)}/{named(deputy)}")
        return ended["absent"], ended["deputy"]

    async def halt(self, why: str) -> str:
        return self._server.post("/halt", {"why": why})["text"]

    async def unhalt(self, why: str) -> bool:
        was: bool = self._server.get("/halt")["halted"]
        self._server.delete(f"/halt?{urlencode({'why': why})}" if why else "/halt")
        return was


def _question(request: RequestView, prefix: str) -> str:
    """The question that a reply answers: the one whose id begins with this prefix, or the only open one."""
    asked = [one.id for one in request.comments if one.kind is CommentKind.QUESTION]
    return question_called(request.id, asked, request.unanswered, prefix)


def _problems(error: RequestError) -> tuple[str, ...]:
    return tuple(safe(one) for one in (error.problems if isinstance(error, EditRefused) else (str(error),)))
