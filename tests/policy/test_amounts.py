"""Amounts of money: exact, with their currency."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables import table

from signoff import Call, Policy
from signoff.errors import PolicyError
from signoff.policy.amounts import Amount, read_amount


@table(
    ("value", "number", "currency"),
    [
        (5, "5", ""), (0.1, "0.1", ""), ("1,000.50", "1000.50", ""), ("EUR 12", "12", "EUR"),
        ("12.00 €", "12.00", "EUR"), ("-3", "-3", ""), ("  7 gbp ", "7", "GBP"), (10**25, str(10**25), ""),
    ],
)  # fmt: skip
def test_amounts(value: Any, number: str, currency: str) -> None:
    assert read_amount(value) == Amount(Decimal(number), currency)


@table(
    "value",
    [
        "",
        "a lot",
        "1.000,50",
        "1,00",
        "1e5",
        "0x10",
        "١٢",
        "EUR 5 USD",
        "$5",
        True,
        None,
        [1],
        float("nan"),
        float("inf"),
        "1 000",
    ],
)
def test_what_is_no_amount(value: Any) -> None:
    assert isinstance(read_amount(value), str)


PAY = Policy.from_rules(
    [
        {"deny": {"tool": "pay", "amount": {">": 10000}}},
        {"allow": {"tool": "pay", "amount": {"<=": 100, "currency": "EUR"}}},
    ]
)


@table(
    ("args", "effect"),
    [
        ({"amount": 100, "currency": "EUR"}, "allow"),
        ({"amount": "100.00", "currency": "eur"}, "allow"),
        ({"amount": "€99.99"}, "allow"),
        ({"amount": 100.01, "currency": "EUR"}, "ask"),
        ({"amount": 1, "currency": "USD"}, "ask"),
        ({"amount": 1}, "ask"),
        ({"amount": "EUR 1", "currency": "USD"}, "ask"),
        ({"amount": "much", "currency": "EUR"}, "ask"),
        ({"amount": "10000.01"}, "deny"),
        ({"amount": "1,000,000", "currency": "EUR"}, "deny"),
        ({}, "ask"),
    ],
)
def test_conditions(args: dict[str, Any], effect: str) -> None:
    assert PAY.judge(Call(tool="pay", args=args)).effect == effect


def test_two_currencies_are_no_way_around_a_rule_that_denies() -> None:
    policy = Policy.from_rules([{"deny": {"tool": "pay", "amount": {">": 100, "currency": "EUR"}}}, {"allow": "pay"}])
    assert policy.judge(Call(tool="pay", args={"amount": "EUR 500"})).effect == "deny"
    assert policy.judge(Call(tool="pay", args={"amount": "EUR 500", "currency": "USD"})).effect == "ask"


def test_a_nested_amount_has_its_currency_beside_it() -> None:
    policy = Policy.from_rules([{"allow": {"amount": {"<": 5, "currency": "EUR", "arg": "order.total"}}}])
    order = {"total": 4, "currency": "EUR"}

    assert policy.judge(Call(tool="buy", args={"order": order})).effect == "allow"
    assert policy.judge(Call(tool="buy", args={"order": {"total": 4}, "currency": "EUR"})).effect == "ask"


@pytest.mark.parametrize(
    "condition",
    [
        {">": 5, "<": 5},
        {"currency": "EUR"},
        {">": "EUR 5"},
        {">": True},
        {"currency": "EURO", ">": 1},
        {"above": 1},
        {},
    ],
)
def test_a_wrong_condition_says_so(condition: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        Policy.from_rules([{"ask": {"amount": condition}}])


@given(st.decimals(min_value=-(10**9), max_value=10**9, allow_nan=False, places=2))
def test_the_text_of_a_number_is_the_number(number: Decimal) -> None:
    assert read_amount(f"{number:,}") == Amount(number)
    assert read_amount(str(number)) == Amount(number)
