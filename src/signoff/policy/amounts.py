"""Conditions on amounts of money: exact decimal numbers and their currency."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from signoff.core.call import Veiled
from signoff.policy.call_paths import Facts
from signoff.policy.keypath import ABSENT, KeyPath
from signoff.policy.match_result import YES, MatchResult
from signoff.policy.operators import SIGNS, kind_of

_SYMBOLS = {"€": "EUR", "£": "GBP"}
"""Only signs that mean one currency: `$` and `¥` each mean several."""
LONGEST = 64
_MOST = 10**30
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}\.[0-9]{3}")
"""`1.000` is a thousand in one country and one in another."""
_AMOUNT = re.compile(
    r"(?P<before>[A-Za-z]{3}|[€£])?\s*(?P<number>[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,30})(?:\.[0-9]{1,18})?)"
    r"\s*(?P<after>[A-Za-z]{3}|[€£])?"
)


KEY = KeyPath("amount", ("amount",))
"""The default key of the amount."""


class Amount(NamedTuple):
    """A number, and its currency if that is given."""

    number: Decimal
    currency: str = ""


@dataclass(frozen=True, slots=True)
class AmountCondition:
    """The amount in an argument is within bounds, in a given currency."""

    bounds: tuple[tuple[str, Decimal], ...]
    currency: str = ""
    key: KeyPath = KEY
    every: bool = False
    """Set in allow rules: a negative amount is in doubt unless a lower bound is given."""
    text: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        words = " and ".join(f"{'' if sign == 'equals' else sign + ' '}{bound}" for sign, bound in self.bounds)
        object.__setattr__(self, "text", f"where the amount is {words}{self.currency and ' ' + self.currency}")

    def find(self, facts: Facts) -> MatchResult:
        value = self.key.in_args(facts.call.args)
        if value is ABSENT:
            return MatchResult.no(f"`{self.key.text}` is not given")
        amount = read_amount(value)
        if isinstance(amount, str):
            return MatchResult.unknown(f"`{self.key.text}` {amount}")
        if self.every and amount.number < 0 and not any(sign in (">", ">=", "equals") for sign, _ in self.bounds):
            return MatchResult.unknown(f"`{self.key.text}` is negative")
        if self.currency:
            beside = KeyPath("currency", (*self.key.steps[:-1], "currency")).in_args(facts.call.args)
            said = {one for one in (amount.currency, _currency(beside)) if one}
            if not said or len(said) > 1 or "?" in said:
                return MatchResult.unknown(f"`{self.key.text}` does not say its currency clearly")
            if said != {self.currency}:
                return MatchResult.no(f"the amount is in {said.pop()}, not in {self.currency}")
        if all(SIGNS[sign](amount.number, bound) for sign, bound in self.bounds):
            return YES
        return MatchResult.no(f"the amount {amount.number} is not {self.text.removeprefix('where the amount is ')}")


def read_amount(value: object) -> Amount | str:
    """Return the amount in a value, or why it is unclear: `1,000.50`, `EUR 12`, `12.00 €`, 12.5."""
    if isinstance(value, (bool, Veiled)):
        return "is not an amount"
    if isinstance(value, int):
        return Amount(Decimal(value)) if abs(value) < _MOST else "is too large for an amount"
    if isinstance(value, float):
        number = Decimal(repr(value))
        return Amount(number) if number.is_finite() else "is not a number"
    if not isinstance(value, str):
        return f"is {kind_of(value)}, not an amount"
    found = _AMOUNT.fullmatch(value.strip()) if len(value) <= LONGEST else None
    if found is not None and _THOUSANDS.fullmatch(found["number"]):
        return "may mean thousands or decimals; write it without the separator, or with two decimal places"
    if found is None or (found["before"] and found["after"]):
        return "cannot be read as an amount, such as `1000.50` or `EUR 12`"
    try:
        number = Decimal(found["number"].replace(",", ""))
    except InvalidOperation:
        return "is not an amount"
    return Amount(number, _currency(found["before"] or found["after"]))


def _currency(value: Any) -> str:
    """Return the currency code; "" if none is given, `?` if it is not a code."""
    if value is ABSENT or value is None:
        return ""
    if not isinstance(value, str):
        return "?"
    code = _SYMBOLS.get(value.strip(), value.strip().upper())
    return code if re.fullmatch("[A-Z]{3}", code) else "?"
