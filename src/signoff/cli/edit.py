"""`approve --args`: other arguments than the model's, checked here because the agent may be gone.

They have to fit the tool's schema as it was when the call was made, and the policy the call was asked under must
neither deny them nor want other people to agree.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signoff.broker.edits import fitting, judge_edit, refuse_veiled
from signoff.channels.editor import BrokenArgs, read_args
from signoff.core.canonical import canonical
from signoff.core.redact import redact, restore
from signoff.core.request import ApprovalRequest
from signoff.core.visible import visible
from signoff.errors import EditRefused, SignoffError, WrongUse

if TYPE_CHECKING:
    from signoff.config import Settings
    from signoff.core.run import KeptRun
    from signoff.policy.engine import Policy
    from signoff.policy.layers import Layers

LARGEST = 16_000_000


def given_args(text: str, flag: str = "--args") -> dict[str, Any]:
    """The object after a flag: as it stands, or in the file after an `@` (`@-`: standard input)."""
    source = flag
    if text.startswith("@"):
        source = text[1:] if text != "@-" else "standard input"
        text = _content(text[1:])
    try:
        return read_args(text)
    except BrokenArgs as error:
        hint = f'write it all as one object: {flag} \'{{"path": "a.txt"}}\', or {flag} @FILE'
        raise WrongUse(f"{visible(source)} is not JSON that can be used: {visible(str(error))}\n  {hint}") from error


def _content(name: str) -> str:
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise WrongUse(f"{visible(name)} is longer than {LARGEST:,} bytes")
        return content.decode("utf-8")
    except OSError as error:
        raise WrongUse(f"{visible(name)} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WrongUse(f"{visible(name)} is not UTF-8 text") from error


def checked(
    request: ApprovalRequest,
    given: Mapping[str, Any],
    settings: Settings,
    run: KeptRun | None = None,
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


def _asked_under(request: ApprovalRequest, settings: Settings, run: KeptRun | None) -> Policy:
    """The policy the call was asked under: the one here, or the one its run was started with."""
    if not request.policy_revision or settings.policy.revision == request.policy_revision:
        return settings.policy
    from signoff.config import load_policy

    folder = run.options.get("folder") if run is not None else None
    if run is not None and isinstance(folder, str):
        file = os.path.join(folder, str(run.options.get("policy") or "signoff.yaml"))
        with suppress(SignoffError):
            policy = load_policy(file)
            if policy.revision == request.policy_revision:
                return policy
    here = f"{settings.file} is another, or has changed since" if settings.file else "there is none here"
    raise EditRefused(
        (f"other arguments are judged by the policy the call was asked under, and {here}: name it with --policy",)
    )
