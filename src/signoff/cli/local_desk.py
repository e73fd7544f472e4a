"""`ApprovalDesk` over a store that this machine can open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from signoff.cli.approval_desk import (
    VIA,
    CancelledRun,
    GivenAnswer,
    HandedOverRequest,
    PreparedAnswer,
    TypedAnswer,
)
from signoff.cli.known_people import named
from signoff.cli.terminal_text import iso, now, safe
from signoff.core.comment import CommentKind
from signoff.core.decision import ApprovalDecision
from signoff.core.inbox_row import has_approved
from signoff.core.people import Actor, Delegation, person_key
from signoff.core.request import ApprovalRequest, State
from signoff.core.safe_text import spelled_out
from signoff.errors import AlreadySettled, EditRefused, RequestError, UnknownRequest
from signoff.reports.grant_report import grant_data, grant_report, grants_report
from signoff.reports.request_sheet import TOLD, comment_data, request_sheet, sheet_of
from signoff.reports.run_report import RunsView, run_data, run_report, runs_report
from signoff.wiring import chosen_store, whoami
from signoff.wiring.project import requester_of

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.cli.request_report import Sheet
    from signoff.config import Settings
    from signoff.core.preview import Preview


class LocalDesk:
    """Implements `ApprovalDesk` over a broker."""

    def __init__(self, broker: Broker, settings: Settings, store: str | None, name: str | None) -> None:
        """`name` is the person who answers; None means the logged-in user."""
        self.broker = broker
        self.settings = settings
        self._store = store
        self._name = name

    @property
    def place(self) -> str:
        from signoff.cli.open_broker import looked_in

        return looked_in(chosen_store(self._store, self.settings))

    def who(self) -> Actor:
        """The person who answers. Raises `WrongUse` for a person that the project does not list."""
        return whoami(self._name, self.settings, via=VIA)

    # --- requests ---

    async def request(self, prefix: str) -> Sheet:
        return await request_sheet(self.broker, prefix, viewer=requester_of(None, self.settings))

    async def prepared(self, given: str, answer: TypedAnswer) -> PreparedAnswer:
        from signoff.cli.request_report import late_text, outcome_step

        broker, by = self.broker, self.who()
        await broker.sweep()
        try:
            request = await broker.find(given)
            if request.state is State.UNKNOWN:
                raise RequestError(f"request {request.id} was approved and started, and {outcome_step(request.id)}")
            if request.state is not State.PENDING:
                return PreparedAnswer(given=given, problems=(late_text(sheet_of(request, ())),))
            decision = await self._decision(request, answer)
            effect = await _effect(request, decision)
        except RequestError as error:
            return PreparedAnswer(
                given=given, problems=problems_of(error), is_unknown=isinstance(error, UnknownRequest)
            )

        async def give() -> GivenAnswer:
            try:
                voted = await broker.answer(request.id, decision, by=by)
            except AlreadySettled as error:  # another answer came first
                late = await broker.get(request.id)
                if late.state is State.PENDING:
                    raise
                raise RequestError(late_text(sheet_of(late, ()))) from error
            again = decision.approved and has_approved(request, by.name, voted.votes[-1].args_digest)
            return GivenAnswer(sheet=sheet_of(await broker.shown(voted), ()), again=again, effect=effect)

        remembered = spelled_out(request, decision) if decision.terms is not None else ""
        return PreparedAnswer(given=given, id=request.id, remembered=remembered, give=give)

    async def _decision(self, request: ApprovalRequest, answer: TypedAnswer) -> ApprovalDecision:
        """The decision about one request. Raises a `RequestError` if it cannot be given."""
        if answer.approved:
            from signoff.wiring.answer_checks import refuse_unseen

            refuse_unseen(request)
        decision = ApprovalDecision(approved=answer.approved, note=answer.note)
        if answer.arguments is not None:
            from signoff.wiring.answer_checks import checked_answer

            decision = replace(decision, edited_args=answer.arguments)
            decision = await checked_answer(self.broker, self.settings, request, decision)
        if answer.wish is not None:
            from signoff.broker.grants import check_terms

            decision = replace(decision, terms=answer.wish.terms(request, now()))
            check_terms(request, decision)
        return decision

    async def hand_over(self, prefix: str, to: str | None) -> HandedOverRequest:
        by, broker = self.who(), self.broker
        person = by.name if to is None else named(to, self.settings) if to else ""
        await broker.sweep()
        before = await broker.find(prefix)
        admin = any(one.admin and person_key(one.name) == by.key for one in self.settings.people.values())
        after = await broker.assign(before.id, person, by=by, admin=admin)
        may = not after.assigned or bool(await broker.people.entitled(after.id, [Actor(name=after.assigned)]))
        return HandedOverRequest(sheet=sheet_of(after, ()), before=before.assigned, may_answer=may)

    async def tell(self, prefix: str, *, happened: bool, note: str) -> Sheet:
        by, broker = self.who(), self.broker
        await broker.sweep()
        request = await broker.find(prefix)
        return sheet_of(await broker.tell(request.id, happened=happened, by=by, note=note), ())

    async def say(
        self, prefix: str, text: str, kind: CommentKind, question: str = "", *, asks_agent: bool = False
    ) -> tuple[Sheet, dict[str, Any]]:
        by, broker = self.who(), self.broker
        await broker.sweep()
        request = await broker.find(prefix)
        answers = await broker.comments.question_meant(request.id, question) if kind is CommentKind.ANSWER else ""
        said = await broker.comments.add(request.id, text, by=by, kind=kind, answers=answers)
        return sheet_of(request, ()), comment_data(said, request.secrets)

    # --- runs ---

    async def runs(self, view: RunsView) -> dict[str, Any]:
        found = await runs_report(self.broker, view)
        return {**found, "runs": [await self._with_resumer(one) for one in found["runs"]]}

    async def run(self, prefix: str) -> dict[str, Any]:
        return await self._with_resumer(await run_report(self.broker, prefix))

    async def _with_resumer(self, run: dict[str, Any]) -> dict[str, Any]:
        """Add which program resumes a run by itself, if that is what it waits for."""
        from signoff.wiring.resumers import who_resumes

        told, resumer = run[TOLD], ""
        if is_ready(run):
            with suppress(OSError):  # a recorded path that cannot be looked at: nobody resumes the run there either
                saved = await self.broker.runs.get(run["id"])
                resumer = await who_resumes(self.broker.ledger, saved, self.settings)
        return {**run, TOLD: {**told, "resumer": resumer}}

    async def going_on(self, run_id: str) -> str:
        from signoff.cli.request_report import going_on

        if await self.broker.runs.inside(run_id) is None:
            return ""  # a run that only the program that started it knows
        run = await self._with_resumer(run_data(await self.broker.runs.status(run_id)))
        return going_on(run) if is_resumable(run) else ""

    async def cancel(self, prefix: str, note: str) -> CancelledRun:
        by, broker = self.who(), self.broker
        before = await broker.runs.status((await broker.runs.get(prefix)).id)
        waiting = await broker.runs.waiting(before.run.id)
        done = await broker.runs.cancel(before.run.id, by=by.name, reason=note)
        withdrawn = sum(one.state is State.PENDING for one in waiting)
        return CancelledRun(id=done.id, withdrawn=withdrawn, alive=before.alive)

    # --- grants ---

    async def grants(self, *, everything: bool) -> Sequence[dict[str, Any]]:
        return (await grants_report(self.broker, everything=everything))["grants"]

    async def grant(self, prefix: str) -> dict[str, Any]:
        return await grant_report(self.broker, prefix)

    async def revoke(self, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
        by = self.who().name
        grant = await self.broker.grants.get(prefix)
        done = await self.broker.grants.revoke(grant.id, by=by)
        return grant_data(self.broker, grant), grant_data(self.broker, done)

    # --- people, and the switch ---

    async def people(self) -> dict[str, Any]:
        settings = self.settings
        away = await self.broker.store.read(lambda tx: tx.delegations.current(now()))
        where = f"{settings.file} names nobody" if settings.file else "There is no policy file here that lists people"
        return {
            "people": [{"name": one.name, "roles": sorted(one.roles)} for one in settings.people.values()],
            "delegations": [
                {
                    "absent": one.absent,
                    "deputy": one.deputy,
                    "until": iso(one.until),
                    "since": iso(one.since),
                    "by": one.by,
                }
                for one in away
            ],
            "nobody": f"{where}: anyone with access to this store may answer, by their own name.",
        }

    async def delegate(self, absent: str, deputy: str, until: datetime, since: datetime) -> tuple[str, str]:
        by = self.who()
        made = Delegation(
            absent=named(absent, self.settings),
            deputy=named(deputy, self.settings),
            until=until,
            since=since,
            by=by.name,
        )
        await self.broker.people.delegate(made)
        return made.absent, made.deputy

    async def end_delegation(self, absent: str, deputy: str) -> tuple[str, str]:
        ended = await self.broker.people.end_delegation(absent, deputy, by=self.who().name)
        return ended.absent, ended.deputy

    async def halt(self, why: str) -> str:
        # In an emergency anybody may halt, listed or not; the audit log says who did.
        return await self.broker.switch.halt(by=self._name or requester_of(None, self.settings), why=why)

    async def unhalt(self, why: str) -> bool:
        return await self.broker.switch.unhalt(by=self.who().name, why=why)


async def _effect(request: ApprovalRequest, decision: ApprovalDecision) -> Preview | None:
    """What a call would change with edited arguments: found out before the answer, which may change the file."""
    from signoff.core.card import effect_of_edit
    from signoff.wiring.edit_effect import with_edit_here

    args = decision.edited_args
    if args is None:
        return None
    return effect_of_edit(request, args, partial(with_edit_here, request))


def is_ready(run: Mapping[str, Any]) -> bool:
    """Whether nobody executes a run, as `run_data` returns it, although it has an answer or its process died."""
    return run["state"] in ("ready", "died") or bool(run[TOLD].get("died"))


def is_resumable(run: Mapping[str, Any]) -> bool:
    """Whether a run, as `run_data` returns it, has its answers and is executed by nobody."""
    return run["state"] in ("ready", "died") and not run["waiting"]


def problems_of(error: RequestError) -> tuple[str, ...]:
    """Why an answer was not accepted, one line for each problem."""
    return tuple(safe(one) for one in (error.problems if isinstance(error, EditRefused) else (str(error),)))
