"""Policies as text, stored with the requests they caused: an edit judged elsewhere needs the same rules."""

from __future__ import annotations

import json

from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.policy.policy_source import parse_policy


def layers_of(policy: Policy | Layers) -> tuple[Policy, ...]:
    """Return the layers of a policy, outermost first."""
    return policy.policies if isinstance(policy, Layers) else (policy,)


def written(policy: Policy | Layers) -> str | None:
    """Return the rules as written, layer by layer, as JSON; None if a layer was not parsed from anything written."""
    layers = layers_of(policy)
    if any(one.written is None for one in layers):
        return None
    return json.dumps(
        [{"name": one.name, "file": one.file, "root": one.root, "rules": one.written} for one in layers],
        ensure_ascii=False,
    )


def read_written(text: str) -> Layers:
    """Parse the text that `written` returned."""
    return Layers(
        tuple(
            parse_policy(one["rules"], file=one["file"], name=one["name"], root=one["root"]) for one in json.loads(text)
        )
    )
