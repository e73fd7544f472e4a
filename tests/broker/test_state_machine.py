"""Broker and store against a simple model: whatever people, processes and time do, in any order.

Hypothesis chooses, and makes what fails as small as it can be; days at random are much longer and say their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random, SystemRandom

import pytest
from hypothesis import HealthCheck
from hypothesis.stateful import run_state_machine_as_test
from tests.broker.machine import MACHINES, STEPS, questions
from tests.broker.model import number, same
from tests.profiles import NIGHTLY, examples

LARGE = [HealthCheck.data_too_large, HealthCheck.filter_too_much]
STEPS_AT_MOST = 80 if NIGHTLY else 40


@pytest.mark.parametrize(("store", "daily"), [("memory", 10), ("sqlite", 4)])
@pytest.mark.parametrize("part", range(4) if NIGHTLY else [0])  # so that workers share it
def test_whatever_happens_in_whatever_order_the_laws_hold(store: str, daily: int, part: int) -> None:
    run_state_machine_as_test(
        MACHINES[store], settings=examples(400, daily, suppress=LARGE, stateful_step_count=STEPS_AT_MOST)
    )


def a_day(store: str, seed: int, steps: int) -> None:
    """Steps at random. A failure names the last of them; the same number leads to the same steps."""
    machine, die = MACHINES[store](), Random(seed)
    said: list[str] = []
    try:
        machine.at_first([questions.rolled(die) for _ in range(3)])
        for _ in range(steps):
            name = die.choice(list(STEPS))
            chosen = {one: choice.rolled(die) for one, choice in STEPS[name].items()}
            said.append(f"{name}({', '.join(f'{one}={value!r}' for one, value in chosen.items())})")
            getattr(machine, name)(**chosen)
            machine.the_store_holds_what_the_model_says()
    except BaseException as error:
        error.add_note(f"on day {seed} in {store}, after {len(said)} steps, the last of which were:")
        error.add_note("\n".join(said[-12:]))
        raise
    finally:
        machine.teardown()


@pytest.mark.parametrize("seed", range(6 if NIGHTLY else 2))
@pytest.mark.parametrize(("store", "days"), [("memory", 7 if NIGHTLY else 1), ("sqlite", 2 if NIGHTLY else 1)])
def test_days_at_random(store: str, days: int, seed: int) -> None:
    for day in range(days):
        a_day(store, seed * days + day, 150)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_many_other_days_at_random(store: str, part: int) -> None:
    for seed in seeds(125):
        a_day(store, seed, 250)


def seeds(count: int) -> Sequence[int]:
    return [SystemRandom().randrange(2**32) for _ in range(count)]


def test_the_model_knows_one_amount_from_another() -> None:
    assert number(0.1) == Fraction(1, 10) and number(True) is None and number(-1) is None and number("5") is None
    assert same({"a": 1}, {"a": 1.0}) and not same({"a": 1}, {"a": True})
