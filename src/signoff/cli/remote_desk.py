"""`ApprovalDesk` over a server: the token identifies the person, and the server's rules say what they may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from signoff.cli.approval_desk import (
    GivenAnswer,
    HandedOverRequest,
    PreparedAnswer,
    TypedAnswer,
)
from signoff.cli.local_desk import is_resumable
from signoff.cli.request_report import Sheet, going_on, late_text, outcome_step
from signoff.cli.server_client import ApprovalServer, named
from signoff.cli.terminal_text import iso, now, safe
from signoff.core.comment import CommentKind, question_called
from signoff.core.preview import Preview
from signoff.desk.operations import NOT_REMEMBERED, CancelledRun, not_offered
from signoff.errors import AlreadySettled, EditRefused, RequestError, SignoffError, UnknownRequest, UnknownRun
from signoff.reports.request_sheet import MOST_LISTED, TOLD

if TYPE_CHECKING:
    from signoff.reports.run_report import RunsView


class RemoteDesk:
    """Implements `ApprovalDesk` over the HTTP API."""

    def __init__(self, server: ApprovalServer) -> None:
        self._server = server

    @property
    def place(self) -> str:
        return f"searched: the server {self._server.url}"

    # --- requests ---

    async def request(self, prefix: str) -> Sheet:
        return self._request(prefix)

    def _request(self, prefix: str) -> Sheet:
        return self._server.report(f"/requests/{named(prefix)}")

    async def prepared(self, given: str, answer: TypedAnswer) -> PreparedAnswer:
        try:
            sheet = self._request(given)
            request_id: str = sheet["id"]
            if sheet["state"] == "unknown":
                raise RequestError(f"request {request_id} was approved and started, and {outcome_step(request_id)}")
            if sheet["state"] != "pending":
                return PreparedAnswer(given=given, problems=(late_text(sheet),))
            body, effect = self._body(sheet, answer)
            remembered = self._remembered(sheet, answer, body)
        except RequestError as error:
            return PreparedAnswer(given=given, problems=_problems(error), is_unknown=isinstance(error, UnknownRequest))

        async def give() -> GivenAnswer:
            return replace(self._given(sheet, body), effect=effect)

        return PreparedAnswer(given=given, id=request_id, remembered=remembered, give=give)

    def _body(self, sheet: Sheet, answer: TypedAnswer) -> tuple[dict[str, Any], Preview | None]:
        """Return the answer to send, and what the call changes with edited arguments, if it has any."""
        if answer.approved and sheet["problem"]:
            raise EditRefused((str(sheet["problem"]).replace("this call", "the call", 1),))
        body: dict[str, Any] = {
            "request": sheet["id"],
            "decision": "approve" if answer.approved else "deny",
            "args_digest": sheet["args_digest"] or "",
            "note": answer.note,
        }
        effect = None
        if answer.arguments is not None:
            body["args"] = answer.arguments
            problems = self._server.post(f"/requests/{named(sheet['id'])}/edit-check", {"args": answer.arguments})
            if problems["problems"]:
                raise EditRefused(tuple(problems["problems"]))
            effect = Preview(**problems["effect"]) if problems["effect"] is not None else None
        return body, effect

    def _remembered(self, sheet: Sheet, answer: TypedAnswer, body: dict[str, Any]) -> str:
        """What will be remembered. The same text is sent: the server remembers exactly that or nothing."""
        if answer.wish is None:
            return ""
        wish = answer.wish.remembering(now())
        limit, until = wish.budget, iso(wish.until) if wish.until is not None else None
        found = self._server.get(
            f"/requests/{named(sheet['id'])}/offers",
            decision=body["decision"],
            scope=wish.scope,
            until=until,
            uses=wish.uses,
            budget_arg=limit.arg if limit is not None else None,
            budget=limit.limit if limit is not None else None,
            daily=limit.daily if limit is not None else None,
        )["offers"]
        if not found:
            raise RequestError(f"the answer to request {sheet['id']} {NOT_REMEMBERED}")
        offer = next((one for one in found if wish.which in (str(one["number"]), one["name"])), None)
        if offer is None:
            raise not_offered(sheet["id"], wish.which, [one["name"] for one in found])
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

    def _given(self, before: Sheet, body: Mapping[str, Any]) -> GivenAnswer:
        request_id: str = before["id"]
        [result] = self._server.post("/votes", {"votes": [body]}, look=f"signoff show {request_id}")["results"]
        if result["ok"]:
            return GivenAnswer(sheet=self._after(before, result), again=result["again"])
        problem = result["problem"]
        if problem["type"] == "urn:signoff:already-settled":
            sheet = self._request(request_id)
            raise AlreadySettled(late_text(sheet) if sheet["state"] != "pending" else problem["detail"])
        if problem["problems"]:
            raise EditRefused(tuple(problem["problems"]))
        raise RequestError(problem["detail"])

    def _after(self, before: Sheet, result: Mapping[str, Any]) -> Sheet:
        """The request after an accepted vote; if it cannot be read now, built from the answer to the vote."""
        try:
            return self._request(before["id"])
        except SignoffError:
            agreed = f"{result['approvals']} of {result['quorum']} have approved"
            told = {**before["told"], "agreed": agreed, "changes": [*before["told"]["changes"], None]}
            return {**before, "state": result["state"], "approvals": result["approvals"], "told": told}

    async def opened(self, sheet: Sheet) -> None:
        body = {"args_digest": sheet["args_digest"] or ""}
        self._server.post(f"/requests/{named(sheet['id'])}/read", body)

    async def hand_over(self, prefix: str, to: str | None) -> HandedOverRequest:
        before = self._request(prefix)
        path = f"/requests/{named(before['id'])}"
        if to:
            done = self._server.post(f"{path}/assign", {"to": to})
        else:
            done = self._server.post(f"{path}/{'claim' if to is None else 'release'}")
        sheet = self._request(before["id"])
        return HandedOverRequest(sheet=sheet, before=before["assigned"] or "", may_answer=not done["warning"])

    async def tell(self, prefix: str, *, happened: bool, note: str) -> Sheet:
        request_id = self._request(prefix)["id"]
        self._server.post(f"/requests/{named(request_id)}/outcome", {"happened": happened, "note": note})
        return self._request(request_id)

    async def say(
        self, prefix: str, text: str, kind: CommentKind, question: str = "", *, asks_agent: bool = False
    ) -> tuple[Sheet, dict[str, Any]]:
        sheet = self._request(prefix)
        path = f"/requests/{named(sheet['id'])}/comments"
        answers = _question(sheet, question) if kind is CommentKind.ANSWER else ""
        body = {"text": text, "kind": str(kind), "answers": answers, "agent": asks_agent}
        said = self._server.post(path, body, look=f"signoff show {sheet['id']}")
        after = self._request(sheet["id"])
        return after, next(one for one in after["comments"] if one["comment"] == said["id"])

    # --- runs ---

    async def runs(self, view: RunsView) -> dict[str, Any]:
        found, runs, before = dict[str, Any](), list[Any](), view.before
        while (not found or found["more"]) and (left := view.limit - len(runs)) > 0:
            chosen = {"state": view.state, "agent": view.agent, "search": view.text}
            found = self._server.report("/runs", **chosen, limit=min(left, MOST_LISTED), before=before)
            runs += found["runs"]
            before = found[TOLD]["last"]
        return {**found, "runs": runs}

    async def run(self, prefix: str) -> dict[str, Any]:
        return self._run(prefix)

    def _run(self, prefix: str) -> dict[str, Any]:
        return self._server.report(f"/runs/{named(prefix)}")

    async def going_on(self, run_id: str) -> str:
        try:
            run = self._run(run_id)
        except UnknownRun:
            return ""
        resumer = f"the server at {self._server.url}" if run[TOLD].get("resumes") else ""
        return going_on({**run, TOLD: {**run[TOLD], "resumer": resumer}}) if is_resumable(run) else ""

    async def cancel(self, prefix: str, note: str) -> CancelledRun:
        before = self._run(prefix)
        self._server.post(f"/runs/{named(before['id'])}/cancel", {"reason": note})
        withdrawn = sum(one["state"] == "pending" for one in before["waiting"])
        return CancelledRun(id=before["id"], withdrawn=withdrawn, alive=before["told"]["alive"])

    async def resume(self, run_id: str) -> None:
        """Let the server resume a run."""
        self._server.post(f"/runs/{named(run_id)}/resume")

    # --- grants ---

    async def grants(self, *, everything: bool) -> Sequence[dict[str, Any]]:
        return self._server.report("/grants", everything=everything)["grants"]

    async def grant(self, prefix: str) -> dict[str, Any]:
        return self._server.report(f"/grants/{named(prefix)}")

    async def revoke(self, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
        before = await self.grant(prefix)
        self._server.post(f"/grants/{named(before['id'])}/revoke")
        return before, await self.grant(before["id"])

    # --- people, and the switch ---

    async def people(self) -> dict[str, Any]:
        found = self._server.get("/people")
        for one in found["delegations"]:
            one |= {name: iso(datetime.fromisoformat(one[name])) for name in ("until", "since")}
        nobody = f"The project of {self._server.url} names nobody: anyone it admits may answer, by their own name."
        return {**found, "nobody": nobody}

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


def _question(sheet: Sheet, prefix: str) -> str:
    """The question that a reply answers: the one whose id begins with this prefix, or the only open one."""
    asked = [one["comment"] for one in sheet["comments"] if one["kind"] == "question"]
    return question_called(sheet["id"], asked, sheet["unanswered"], prefix)


def _problems(error: RequestError) -> tuple[str, ...]:
    return tuple(safe(one) for one in (error.problems if isinstance(error, EditRefused) else (str(error),)))
