"""`ApprovalDesk` over a store that this machine can open."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from signoff.broker.grants import check_terms
from signoff.cli.approval_desk import (
    VIA,
    GivenAnswer,
    HandedOverRequest,
    PreparedAnswer,
    TypedAnswer,
)
from signoff.cli.opened_store import looked_in
from signoff.cli.request_report import going_on, late_text, outcome_step
from signoff.cli.terminal_text import now, safe
from signoff.core.card import effect_of_edit
from signoff.core.comment import CommentKind
from signoff.core.decision import ApprovalDecision
from signoff.core.inbox_row import has_approved
from signoff.core.people import Actor, person_key
from signoff.core.request import ApprovalRequest, State
from signoff.desk import operations
from signoff.desk.operations import Acting, CancelledRun
from signoff.errors import AlreadySettled, EditRefused, RequestError, UnknownRequest
from signoff.policy.grant_text import spelled_out
from signoff.views.grant_view import GrantPage, GrantView
from signoff.views.people_view import PeopleView
from signoff.views.request_view import CommentView, RequestView, request_view
from signoff.views.run_view import RunFilter, RunHistoryView, RunList, RunView, run_history_view, run_list
from signoff.wiring.edit_effect import with_edit_here
from signoff.wiring.program_inbox import project_answers
from signoff.wiring.project import requester_of, whoami
from signoff.wiring.resumers import who_resumes
from signoff.wiring.stores import chosen_store

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.core.preview import Preview


class LocalDesk:
    """Implements `ApprovalDesk` over a broker."""

    def __init__(self, broker: Broker, settings: Settings, store: str | None, name: str | None) -> None:
        """`name` is the person who answers; None means the logged-in user."""
        self.broker = broker
        self.settings = settings
        self.answers = project_answers(broker, settings)
        self._store = store
        self._name = name

    @property
    def place(self) -> str:
        return looked_in(chosen_store(self._store, self.settings))

    @property
    def address(self) -> str:
        """The store, as a run that is built here is told."""
        return chosen_store(self._store, self.settings).address

    def who(self) -> Actor:
        """The person who answers. Raises `WrongUse` for a person that the project does not list."""
        return whoami(self._name, self.settings, via=VIA)

    def _acting(self) -> Acting:
        """The person who acts. Where the project lists no admin, whoever has the store is one."""
        by = self.who()
        admins = [one for one in self.settings.people.values() if one.admin]
        return Acting(by, not admins or by.key in [person_key(one.name) for one in admins])

    # --- requests ---

    async def request(self, prefix: str) -> RequestView:
        return await request_view(self.broker, prefix, viewer=requester_of(None, self.settings))

    async def prepared(self, given: str, answer: TypedAnswer) -> PreparedAnswer:
        broker, by = self.broker, self.who()
        await broker.sweep()
        try:
            request = await broker.find(given)
            if request.state is State.UNKNOWN:
                raise RequestError(f"request {request.id} was approved and started, and {outcome_step(request.id)}")
            if request.state is not State.PENDING:
                return PreparedAnswer(given=given, problems=(await self._late(request),))
            decision = ApprovalDecision(approved=answer.approved, note=answer.note, edited_args=answer.arguments)
            if answer.wish is not None:
                terms = operations.terms_of(broker, request, answer.wish.remembering(now()), by)
                decision = replace(decision, terms=terms)
                check_terms(request, decision, broker.clock.now())
            decision = await self.answers.checked(request, decision, by)
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
                raise RequestError(await self._late(late)) from error
            again = decision.approved and has_approved(request, by.name, voted.votes[-1].args_digest)
            return GivenAnswer(request=RequestView.of(await broker.shown(voted)), again=again, effect=effect)

        remembered = spelled_out(request, decision) if decision.terms is not None else ""
        return PreparedAnswer(given=given, id=request.id, remembered=remembered, give=give)

    async def _late(self, request: ApprovalRequest) -> str:
        return late_text(RequestView.of(request)) + await self.broker.asked_again(request)

    async def opened(self, request: RequestView) -> None:
        by = self.who()
        await self.answers.inbox(VIA).opened(request.id, by)

    async def hand_over(self, prefix: str, to: str | None) -> HandedOverRequest:
        acting = self._acting()
        done = await operations.assign(self.broker, prefix, acting.by.name if to is None else to, acting)
        return HandedOverRequest(request=RequestView.of(done.request), before=done.before, may_answer=done.may_answer)

    async def tell(self, prefix: str, *, happened: bool, note: str) -> RequestView:
        by, broker = self.who(), self.broker
        await broker.sweep()
        request = await broker.find(prefix)
        return RequestView.of(await self.answers.inbox(VIA).tell(request.id, happened=happened, by=by, note=note))

    async def say(
        self, prefix: str, text: str, kind: CommentKind, question: str = "", *, asks_agent: bool = False
    ) -> tuple[RequestView, CommentView]:
        acting, broker = self._acting(), self.broker
        await broker.sweep()
        request = await broker.find(prefix)
        said = await operations.comment(broker, request, text, kind, acting, question)
        return RequestView.of(request), CommentView.of(said, request.secrets)

    # --- runs ---

    async def runs(self, chosen: RunFilter) -> RunList:
        found = await run_list(self.broker, chosen)
        return replace(found, runs=tuple([await self._with_resumer(one) for one in found.runs]))

    async def run(self, prefix: str) -> RunHistoryView:
        found = await run_history_view(self.broker, prefix)
        return replace(found, run=await self._with_resumer(found.run))

    async def _with_resumer(self, run: RunView) -> RunView:
        """Add which program resumes a run by itself, if that is what it waits for."""
        if run.is_idle:
            with suppress(OSError):  # a recorded path that cannot be looked at: nobody resumes the run there either
                saved = await self.broker.runs.get(run.id)
                return replace(run, resumer=await who_resumes(self.broker.ledger, saved, self.settings))
        return run

    async def going_on(self, run_id: str) -> str:
        if await self.broker.runs.inside(run_id) is None:
            return ""  # a run that only the program that started it knows
        run = await self._with_resumer(RunView.of(await self.broker.runs.status(run_id)))
        return going_on(run) if run.can_resume else ""

    async def cancel(self, prefix: str, note: str) -> CancelledRun:
        return await operations.cancel_run(self.broker, prefix, note, self._acting())

    # --- grants ---

    async def grants(self, *, everything: bool) -> GrantPage:
        found = await self.broker.grants.list(revoked=everything)
        return GrantPage(grants=tuple(GrantView.of(one, self.broker) for one in found), next=None)

    async def grant(self, prefix: str) -> GrantView:
        return GrantView.of(await self.broker.grants.get(prefix), self.broker)

    async def revoke(self, prefix: str) -> tuple[GrantView, GrantView]:
        grant, done = await operations.revoke(self.broker, prefix, self._acting())
        return GrantView.of(grant, self.broker), GrantView.of(done, self.broker)

    # --- people, and the switch ---

    async def people(self) -> tuple[PeopleView, str]:
        settings = self.settings
        away = await self.broker.store.read(lambda tx: tx.delegations.current(now()))
        where = f"{settings.file} names nobody" if settings.file else "There is no policy file here that lists people"
        nobody = f"{where}: anyone with access to this store may answer, by their own name."
        return PeopleView.of(settings.people.values(), away), nobody

    async def delegate(self, absent: str, deputy: str, until: datetime, since: datetime) -> tuple[str, str]:
        made = await operations.delegate(self.broker, absent, deputy, until, since, self._acting())
        return made.absent, made.deputy

    async def end_delegation(self, absent: str, deputy: str) -> tuple[str, str]:
        ended = await operations.end_delegation(self.broker, absent, deputy, self._acting())
        return ended.absent, ended.deputy

    async def halt(self, why: str) -> str:
        # In an emergency anybody may halt, listed or not; the audit log says who did.
        return await self.broker.switch.halt(by=self._name or requester_of(None, self.settings), why=why)

    async def unhalt(self, why: str) -> bool:
        return await operations.unhalt(self.broker, why, self._acting())


async def _effect(request: ApprovalRequest, decision: ApprovalDecision) -> Preview | None:
    """What a call would change with edited arguments: found out before the answer, which may change the file."""
    args = decision.edited_args
    if args is None:
        return None
    return effect_of_edit(request, args, partial(with_edit_here, request))


def problems_of(error: RequestError) -> tuple[str, ...]:
    """Why an answer was not accepted, one line for each problem."""
    return tuple(safe(one) for one in (error.problems if isinstance(error, EditRefused) else (str(error),)))
