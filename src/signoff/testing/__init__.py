"""Test kit: a scripted model, an approver that answers from a list, a clock that you control, a channel contract.

`ChannelContract` has the checks that every channel must pass, for people who write their own.

Importing it does not import PydanticAI; `ScriptedModel` does, when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff.channels.approvers import scripted_approver
from signoff.channels.script_approver import ScriptedApprover, decision_from
from signoff.lazy_names import lazy_names
from signoff.testing.manual_clock import FakeClock

if TYPE_CHECKING:
    from signoff.testing.case import ChannelCase as ChannelCase
    from signoff.testing.case import Skill as Skill
    from signoff.testing.channel_contract import ChannelContract as ChannelContract
    from signoff.testing.office import ANA as ANA
    from signoff.testing.office import Office as Office
    from signoff.workers.scripted_model import ScriptedModel as ScriptedModel

__all__ = [
    "ANA",
    "ChannelCase",
    "ChannelContract",
    "FakeClock",
    "Office",
    "ScriptedApprover",
    "ScriptedModel",
    "Skill",
    "decision_from",
    "scripted_approver",
]

_HOMES = {
    "ANA": "testing.office",
    "ChannelCase": "testing.case",
    "ChannelContract": "testing.channel_contract",
    "Office": "testing.office",
    "ScriptedModel": "workers.scripted_model",
    "Skill": "testing.case",
}

_find = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> object:
    return _find(name)
