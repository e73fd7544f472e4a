"""Values that are copied with changes, and what is worked out once."""

from __future__ import annotations

from dataclasses import dataclass

from signoff.core.values import Changeable, cached


@dataclass(frozen=True, kw_only=True)
class Price(Changeable):
    amount: int
    currency: str = "EUR"


class Sum:
    def __init__(self) -> None:
        self.count = 0

    @cached
    def total(self) -> int:
        """All of it."""
        self.count += 1
        return 5


def test_a_copy_has_other_values_and_the_original_has_its_own() -> None:
    price = Price(amount=3)
    assert price.changed(currency="USD") == Price(amount=3, currency="USD")
    assert price == Price(amount=3)
    assert price.changed() == price


def test_what_is_cached_is_worked_out_once_for_each() -> None:
    one, other = Sum(), Sum()
    assert (one.total, one.total, other.total) == (5, 5, 5)
    assert (one.count, other.count) == (1, 1)
    assert Sum.total.__doc__ == "All of it."
