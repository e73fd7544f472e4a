"""Matches of remembered answers, as a rule says them, and what may vary in a call for which no disk is looked at."""

from __future__ import annotations

from typing import Any

from signoff.core.call import Call
from signoff.policy.call_paths import Facts
from signoff.policy.offer import Varying, may_vary

ANY = {"exists": True}


def match(**args: Any) -> dict[str, Any]:
    """These arguments, each as it is said, and no others."""
    return {"args": {**args, "*": {"exists": False}}}


def below(directory: str) -> dict[str, Any]:
    return {"matches": f"{directory}/**", "below": directory}


def up_to(amount: object) -> dict[str, Any]:
    return {">=": 0, "<=": amount}


def facts_of(call: Call) -> Facts:
    return Facts(call, call.start or None)


def varying(call: Call) -> tuple[Varying, ...]:
    return may_vary(facts_of(call))
