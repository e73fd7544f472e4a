"""Policies as text, to be kept with the questions they asked: whoever judges an edit elsewhere needs the same rules."""

from __future__ import annotations

import json

from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.policy.policy_source import parse_policy


def layers_of(policy: Policy | Layers) -> tuple[Policy, ...]:
    """The layers of a policy, outermost first."""
    return policy.policies if isinstance(policy, Layers) else (policy,)


def written(policy: Policy | Layers) -> str | None:
    """The rules as they were written, layer by layer; None where a layer was not read from anything written."""
    layers = layers_of(policy)
    if any(one.written is None for one in layers):
        return None
    return json.dumps(
        [{"name": one.name, "file": one.file, "root": one.root, "rules": one.written} for one in layers],
        ensure_ascii=False,
    )


def read_written(text: str) -> Layers:
    """The policy that `written` wrote."""
    return Layers(
        tuple(
            parse_policy(one["rules"], file=one["file"], name=one["name"], root=one["root"]) for one in json.loads(text)
        )
    )
