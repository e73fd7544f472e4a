"""A kit for tests and demos: a model that follows a script, an approver that answers from a list, a clock you turn.

And the contract that every channel keeps, for people who write their own: `ChannelContract`.

Importing it does not import PydanticAI; `ScriptedModel` does, when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from signoff.channels import scripted_approver
from signoff.channels.script_approver import ScriptedUI, decision_from
from signoff.testing.clock import FakeClock

if TYPE_CHECKING:
    from signoff.testing.case import ChannelCase as ChannelCase
    from signoff.testing.case import Skill as Skill
    from signoff.testing.channels import ChannelContract as ChannelContract
    from signoff.testing.office import Office as Office
    from signoff.workers.script import ScriptedModel as ScriptedModel

__all__ = [
    "ChannelCase",
    "ChannelContract",
    "FakeClock",
    "Office",
    "ScriptedModel",
    "ScriptedUI",
    "Skill",
    "decision_from",
    "scripted_approver",
]

_LATER = {
    "ChannelCase": "signoff.testing.case",
    "ChannelContract": "signoff.testing.channels",
    "Office": "signoff.testing.office",
    "ScriptedModel": "signoff.workers.script",
    "Skill": "signoff.testing.case",
}


def __getattr__(name: str) -> object:
    if (module := _LATER.get(name)) is not None:
        return getattr(import_module(module), name)
    raise AttributeError(f"module 'signoff.testing' has no attribute {name!r}")
