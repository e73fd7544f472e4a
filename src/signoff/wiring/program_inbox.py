"""Inboxes for channels and programs. Answers are checked by the rules of a project, or by a gate in this process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from signoff.broker import Broker
from signoff.config import load_settings, no_settings
from signoff.core.redact import redact, restore
from signoff.delivery.channel_inbox import StoreInbox
from signoff.desk.operations import Answers
from signoff.errors import WrongUse
from signoff.store.dropped_stores import close_with
from signoff.store.signing_key import Keys
from signoff.store.store_factory import open_store
from signoff.wiring.answer_checks import checked_answer
from signoff.wiring.edit_effect import with_edit_here
from signoff.wiring.project import roles_of

if TYPE_CHECKING:
    from signoff.config import Settings
    from signoff.core.decision import ApprovalDecision
    from signoff.core.people import Actor
    from signoff.core.request import ApprovalRequest
    from signoff.gate.capability import Signoff
    from signoff.ports import Store


def open_inbox(
    store: Store | str,
    *,
    project: str | os.PathLike[str] | None = None,
    people: Mapping[str, Iterable[str]] | None = None,
    channel: str = "api",
) -> StoreInbox:
    """Open the requests in a store for a program that lists and answers them: a web handler, a bot, a script.

    `project` is a `signoff.yaml` whose people may answer, and whose rules edited arguments must pass; `people` gives
    roles by name, in addition or instead. An answer says whose it is: `ApprovalDecision(approved=True, by=Actor(…))`.
    """
    settings = no_settings() if project is None else load_settings(project)
    roles = dict(roles_of(settings))
    if people is not None and not isinstance(people, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise WrongUse("open_inbox(people=…): it must be people's names and their roles, as in {'ana': ['ops']}")
    for name, given in (people or {}).items():
        roles[name] = roles.get(name, frozenset()) | frozenset([given] if isinstance(given, str) else given)
    opened = open_store(store) if isinstance(store, str) else store
    broker = Broker(opened, people=roles, signer=Keys() if opened.is_durable else None)
    if isinstance(store, str):
        close_with(broker.ledger, opened)
    return project_inbox(broker, settings, channel)


def project_inbox(broker: Broker, settings: Settings, channel: str) -> StoreInbox:
    """Return the inbox of a channel under a project's rules."""
    return project_answers(broker, settings).inbox(channel)


def project_answers(broker: Broker, settings: Settings) -> Answers:
    """Take answers under a project's rules."""
    return Answers(broker, partial(checked_answer, broker, settings), with_edit=with_edit_here)


def gate_inbox(signoff: Signoff, channel: str) -> StoreInbox:
    """Return the inbox of a channel for a gate in this process. It checks edited arguments as the tool itself would."""

    async def edited(request: ApprovalRequest, decision: ApprovalDecision) -> ApprovalDecision:
        if decision.edited_args is None:
            return decision
        masks = redact(request.args, secrets=request.secrets)
        whole = restore(decision.edited_args, request.args, masks)
        return replace(decision, edited_args=await signoff.gate.answers.checked(request, whole))

    async def submit(request: ApprovalRequest, decision: ApprovalDecision, by: Actor) -> ApprovalRequest:
        return await signoff.gate.answers.vote(request.id, decision, signoff.broker.people.signed_in(by))

    def with_edit(request: ApprovalRequest, args: Mapping[str, Any]) -> ApprovalRequest | None:
        by_tool = signoff.gate.answers.with_edits.get(request.id)
        return by_tool(args) if by_tool is not None else with_edit_here(request, args)

    return Answers(signoff.broker, edited, submit, with_edit).inbox(channel)
