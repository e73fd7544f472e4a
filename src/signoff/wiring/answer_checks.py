"""Check answers of people who are not where the agent runs, before they reach the broker.

Edited arguments have to fit the tool's schema as it was when the call was made, and the policy that the call was asked
under must neither deny them nor require other people.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from signoff.broker.edits import fitting, judge_edit, refuse_veiled
from signoff.config import Settings, load_policy
from signoff.core.canonical import canonical
from signoff.core.redact import redact, restore
from signoff.core.request import ApprovalRequest
from signoff.errors import EditRefused, SignoffError
from signoff.large_work import in_thread
from signoff.wiring.run_location import setup_now

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.core.decision import ApprovalDecision
    from signoff.core.run import SavedRun
    from signoff.policy.engine import Policy
    from signoff.policy.layers import Layers


async def checked_answer(
    broker: Broker, settings: Settings, request: ApprovalRequest, decision: ApprovalDecision
) -> ApprovalDecision:
    """Return the decision with the complete arguments to run. Raises `EditRefused` if they cannot be used.

    Edited arguments come with masks for secrets. Masks that were not touched are replaced by the original values.
    """
    given = decision.edited_args
    if given is None:
        return decision
    run = await broker.store.read(lambda tx: tx.runs.get(request.run)) if request.run else None
    asked_under = await broker.policies.of(request, beside=settings.policy)
    check = partial(checked, request, given, settings, run, asked_under)
    edited = await in_thread(f"checking an edit of request {request.id}", check, about=(request.args, given))
    return replace(decision, edited_args=edited)


def checked(
    request: ApprovalRequest,
    given: Mapping[str, Any],
    settings: Settings,
    run: SavedRun | None = None,
    asked_under: Policy | Layers | None = None,
) -> Mapping[str, Any] | None:
    """Return the complete arguments to run; None if they equal the model's. Raises `EditRefused`.

    `asked_under` is the recorded policy, if the one here is still part of it.
    """
    refuse_veiled(request)
    args = fitting(request, restore(given, request.args, redact(request.args, secrets=request.secrets)))
    if canonical(args) == canonical(request.args):
        return None
    judge_edit(request, args, asked_under or _asked_under(request, settings, run))
    return args


def _asked_under(request: ApprovalRequest, settings: Settings, run: SavedRun | None) -> Policy:
    """Return the policy that the call was asked under: the one here, or the one its run was started with.

    Raises `EditRefused` if neither has the revision of the request.
    """
    if not request.policy_revision or settings.policy.revision == request.policy_revision:
        return settings.policy
    setup = setup_now(run.setup) if run is not None else None
    if setup is not None and setup.directory:
        file = os.path.join(setup.directory, setup.policy or "signoff.yaml")
        with suppress(SignoffError):
            policy = load_policy(file)
            if policy.revision == request.policy_revision:
                return policy
    here = f"{settings.file} is another one, or has changed" if settings.file else "there is no policy file here"
    raise EditRefused(
        (
            f"edited arguments must be checked against the policy of the request, but {here}: approve it "
            "unchanged or deny it, name the file with --policy, restart a server that began before the file changed, "
            "or answer where the program runs that has its policy in Python",
        )
    )
