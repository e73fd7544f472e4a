"""A toolset with its own policy: the gate asks it about its calls, and it answers by its rules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from signoff.core.call import Call
from signoff.core.verdict import Verdict
from signoff.links import followed
from signoff.policy.engine import Policy


class AttachedPolicy:
    """For toolsets to inherit: answers the gate's `needs_approval` by `policy`."""

    policy: Policy

    def call(self, name: str, args: Mapping[str, Any]) -> Call:
        """The call as the toolset's own policy sees it, with links followed from the toolset's folder."""
        made = Call(tool=name, args=args, toolset=self.policy.name)
        root = os.path.realpath(self.policy.root or os.curdir)
        return made.changed(resolved=followed(root, self.policy.paths_of(made)))

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Verdict:
        """What the toolset's rules say; where none speaks, an ask that gives way to the user's own rules."""
        return self.judged(self.call(name, args))

    def judged(self, call: Call) -> Verdict:
        """The verdict of the toolset's rules on a call."""
        return self.policy.judge_layer(call) or replace(self.policy.judge(call), yields=True)
