"""The question that is put to people about a call, with all that whoever answers has to know."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from signoff.core.card import safe_summary
from signoff.core.request import ApprovalRequest
from signoff.gate.gate import Gate
from signoff.gate.keeper import Keeper
from signoff.gate.passage import Passage


async def question(
    gate: Gate,
    outer: Keeper | None,
    passage: Passage,
    *,
    changed: tuple[str, ...] = (),
    said: Mapping[str, Any] | None = None,
) -> ApprovalRequest:
    """The question about a call. `said` is what the tool itself said when it asked."""
    request = await passage.request(gate.policy.revision, changed=changed, said=said)
    return request.changed_to(
        requester=(outer.run.requester if outer is not None else "") or str(gate.requester),
        owner="\n".join(gate.owners),
        run=outer.run.id if outer is not None else "",
        root=passage.call.start or gate.reader.root,
        secrets=_secrets_in(request, gate.secrets),
        title=safe_summary(request, secrets=gate.secrets),
    )


def _secrets_in(request: ApprovalRequest, secrets: Sequence[str]) -> tuple[str, ...]:
    """Which of the declared secrets occur in a request: whoever shows it elsewhere does not know them."""
    if not secrets:
        return ()
    why = request.verdict.reason if request.verdict is not None else ""
    texts = json.dumps([request.args, request.metadata, request.summary, why], ensure_ascii=False, default=str)
    return tuple(one for one in secrets if one and (one in texts or json.dumps(one)[1:-1] in texts))
