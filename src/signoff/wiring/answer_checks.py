"""Answers as they come from people who are not where the agent is: checked before they reach the broker.

Other arguments than the model's have to fit the tool's schema as it was when the call was made, and the policy the call
was asked under must neither deny them nor want other people to agree. What cannot be shown cannot be approved.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from signoff.broker.edits import fitting, judge_edit, refuse_veiled
from signoff.core.canonical import canonical
from signoff.core.redact import redact, restore
from signoff.core.request import ApprovalRequest
from signoff.core.visible import visible
from signoff.errors import CannotCanonicalise, EditRefused, SignoffError
from signoff.wiring.began import setup_now

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.core.decision import ApprovalDecision
    from signoff.core.run import SavedRun
    from signoff.policy.engine import Policy
    from signoff.policy.layers import Layers


async def checked_answer(
    broker: Broker, settings: Settings, request: ApprovalRequest, decision: ApprovalDecision
) -> ApprovalDecision:
    """The decision with the arguments to run, whole. Edited ones come with their masks: what was not touched is put
    back. Raises `EditRefused` where they cannot be used."""
    given = decision.edited_args
    if given is None:
        return decision
    run = await broker.store.read(lambda tx: tx.runs.get(request.run)) if request.run else None
    asked_under = await broker.policies.of(request, beside=settings.policy)
    return replace(decision, edited_args=checked(request, given, settings, run, asked_under))


def refuse_unseen(request: ApprovalRequest) -> None:
    """Raise `EditRefused` for a call of which something cannot be shown."""
    from signoff.core.card import has_long_card

    if request.call is not None and request.call.unreadable:
        raise EditRefused(
            tuple(
                f"{visible(what)} cannot be shown, so the call cannot be approved" for what in request.call.unreadable
            )
        )
    try:
        has_long_card(request)  # raises as the card does
    except CannotCanonicalise as error:
        raise EditRefused((f"the call cannot be shown, so it cannot be approved: {visible(str(error))}",)) from error


def checked(
    request: ApprovalRequest,
    given: Mapping[str, Any],
    settings: Settings,
    run: SavedRun | None = None,
    asked_under: Policy | Layers | None = None,
) -> Mapping[str, Any] | None:
    """The arguments to run, whole; None where they are those the model asked for. Raises `EditRefused`.

    `asked_under` is the policy on record, where the one here is still part of it.
    """
    refuse_veiled(request)
    args = fitting(request, restore(given, request.args, redact(request.args, secrets=request.secrets)))
    if canonical(args) == canonical(request.args):
        return None
    judge_edit(request, args, asked_under or _asked_under(request, settings, run))
    return args


def _asked_under(request: ApprovalRequest, settings: Settings, run: SavedRun | None) -> Policy:
    """The policy the call was asked under: the one here, or the one its run was started with."""
    if not request.policy_revision or settings.policy.revision == request.policy_revision:
        return settings.policy
    from signoff.config import load_policy

    setup = setup_now(run.setup) if run is not None else None
    if setup is not None and setup.directory:
        file = os.path.join(setup.directory, setup.policy or "signoff.yaml")
        with suppress(SignoffError):
            policy = load_policy(file)
            if policy.revision == request.policy_revision:
                return policy
    here = f"{settings.file} is another one, or has changed" if settings.file else "there is no policy here"
    raise EditRefused(
        (f"edited arguments must be checked against the policy of the request, but {here}: name it with --policy",)
    )
