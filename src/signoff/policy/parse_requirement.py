"""Parse the requirement of an `ask` rule: role, quorum, timeout, escalation, reminder."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from signoff.core.verdict import OnTimeout, Requirement
from signoff.policy.format import COUNT, DURATION, FLAG, MappingFormat, choice, each, line
from signoff.policy.placed_value import ConfigValue

_EXCLUDED = ("requester", "owner")
_ROLE = line("a role")
_ESCALATION = MappingFormat(
    {"role": _ROLE, "quorum": COUNT},
    short="role",
    required={"role": ("nobody is named to escalate to", "write `escalate_to: {role: ROLE, quorum: 2}`")},
)

REQUIREMENT = MappingFormat(
    {
        "by": _ROLE.about("The role that must agree."),
        "quorum": COUNT.about("How many people must agree."),
        "not_by": each(choice(_EXCLUDED), f"a list of {', '.join(_EXCLUDED)}")
        .into(frozenset)
        .about("Who may not answer: requester, owner."),
        "timeout": DURATION.about("How long to wait for an answer."),
        "on_timeout": choice(OnTimeout).about("What happens without an answer in time. Default: deny."),
        "escalate_to": _ESCALATION.about("The role to ask next. One person must agree, or as many as quorum says."),
        "veto": _ROLE.about("A role whose single denial settles the request."),
        "remind": DURATION.about("How long before the deadline to send a reminder."),
        "message": line().about("A message for the person who is asked."),
        "irreversible": FLAG.about(
            "Whether the call cannot be undone: in the web inbox, the button must be held down to approve."
        ),
    }
)
"""The keys that only an `ask` rule has."""


def read_requirement(entries: Mapping[str, ConfigValue]) -> Requirement:
    """Return the requirement that a rule's keys describe."""
    found = REQUIREMENT.values(entries)
    on_timeout = OnTimeout.DENY
    if "on_timeout" in found:
        on_timeout = OnTimeout(found["on_timeout"])
    if on_timeout is OnTimeout.ESCALATE and "escalate_to" not in found:
        raise entries["on_timeout"].wrong("nobody is named to escalate to", "add `escalate_to: ROLE`")
    if on_timeout is not OnTimeout.ESCALATE and "escalate_to" in found:
        raise entries["escalate_to"].wrong_key("this has no effect here", "add `on_timeout: escalate`")
    then = found.get("escalate_to", {})
    if "remind" in found:
        _check_remind(entries["remind"], found["remind"], found.get("timeout"))
    return Requirement(
        role=found.get("by"),
        quorum=found.get("quorum", 1),
        not_by=found.get("not_by", frozenset()),
        timeout=found.get("timeout"),
        on_timeout=on_timeout,
        escalate_to=then.get("role"),
        escalate_quorum=then.get("quorum", 1),
        veto=found.get("veto"),
        remind=found.get("remind"),
        message=found.get("message", ""),
        irreversible=found.get("irreversible", False),
    )


def _check_remind(spot: ConfigValue, remind: timedelta, timeout: timedelta | None) -> None:
    if timeout is None:
        raise spot.wrong_key("there is no deadline to remind of", "add `timeout: 15m`")
    if remind >= timeout:
        raise spot.wrong("the reminder would come before the question", "make it shorter than `timeout`")
