"""Who must agree, from the keys of an `ask` rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from signoff.core.verdict import OnTimeout, Requirement
from signoff.policy.operators import kind_of
from signoff.policy.phrases import shown
from signoff.policy.spot import ConfigValue

REQUIREMENT_KEYS = ("by", "quorum", "not_by", "timeout", "on_timeout", "escalate_to", "veto", "remind", "message")
LONGEST_TIMEOUT = timedelta(days=3660)

_EXCLUDED = ("requester", "owner")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"([1-9][0-9]{0,9})\s*([smhd])")


def read_requirement(entries: Mapping[str, ConfigValue]) -> Requirement:
    """The requirement that a rule's keys describe."""
    on_timeout = OnTimeout.DENY
    if "on_timeout" in entries:
        on_timeout = OnTimeout(entries["on_timeout"].choice(tuple(OnTimeout)))
    if on_timeout is OnTimeout.ESCALATE and "escalate_to" not in entries:
        raise entries["on_timeout"].wrong("nobody is named to escalate to", "add `escalate_to: ROLE`")
    if on_timeout is not OnTimeout.ESCALATE and "escalate_to" in entries:
        raise entries["escalate_to"].wrong_key("this has no effect here", "add `on_timeout: escalate`")
    timeout = read_duration(entries["timeout"]) if "timeout" in entries else None
    escalate_to, escalate_quorum = _escalation(entries)
    return Requirement(
        role=_line(entries, "by", "a role") or None,
        quorum=entries["quorum"].count() if "quorum" in entries else 1,
        not_by=frozenset(_excluded(entries["not_by"])) if "not_by" in entries else frozenset(),
        timeout=timeout,
        on_timeout=on_timeout,
        escalate_to=escalate_to,
        escalate_quorum=escalate_quorum,
        veto=_line(entries, "veto", "a role") or None,
        remind=_remind(entries["remind"], timeout) if "remind" in entries else None,
        message=_line(entries, "message", "a text"),
    )


def _escalation(entries: Mapping[str, ConfigValue]) -> tuple[str | None, int]:
    """`escalate_to: lead`, or `escalate_to: {role: lead, quorum: 2}`."""
    spot = entries.get("escalate_to")
    if spot is None or not isinstance(spot.value, dict):
        return _line(entries, "escalate_to", "a role") or None, 1
    inner = spot.entries(("role", "quorum"))
    if "role" not in inner:
        raise spot.wrong("nobody is named to escalate to", "write `escalate_to: {role: ROLE, quorum: 2}`")
    return _line(inner, "role", "a role") or None, inner["quorum"].count() if "quorum" in inner else 1


def read_duration(spot: ConfigValue) -> timedelta:
    """`30s`, `15m`, `2h`, `1d`, or a whole number of seconds."""
    value = spot.value
    fix = "write `30s`, `15m`, `2h`, `1d` or a whole number of seconds"
    if isinstance(value, int) and not isinstance(value, bool):
        seconds = value
    elif isinstance(value, str) and (found := _DURATION.fullmatch(value.strip())):
        seconds = int(timedelta(**{_UNITS[found[2]]: 1}).total_seconds()) * int(found[1])
    else:
        what = shown(value) if isinstance(value, str) else kind_of(value)
        raise spot.wrong(f"this should be a duration, not {what}", fix)
    if seconds < 1:
        raise spot.wrong("the time is over before it begins", fix)
    if seconds > LONGEST_TIMEOUT.total_seconds():
        raise spot.wrong("the time is longer than ten years", fix)
    return timedelta(seconds=seconds)


def _remind(spot: ConfigValue, timeout: timedelta | None) -> timedelta:
    if timeout is None:
        raise spot.wrong_key("there is no deadline to remind of", "add `timeout: 15m`")
    remind = read_duration(spot)
    if remind >= timeout:
        raise spot.wrong("the reminder would come before the question", "make it shorter than `timeout`")
    return remind


def _excluded(spot: ConfigValue) -> list[str]:
    return [item.choice(_EXCLUDED) for item in spot.one_or_more(f"a list of {', '.join(_EXCLUDED)}")]


def _line(entries: Mapping[str, ConfigValue], key: str, what: str) -> str:
    return entries[key].line(what) if key in entries else ""
