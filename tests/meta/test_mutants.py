"""The table of mutants fits the code, and every mutant in it is found by its tests."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.meta.mutants import ROOT, is_test, mutants, run, why_not

MUTANTS = mutants()
FEWEST = 40


def test_there_are_enough_mutants_in_every_part() -> None:
    assert len(MUTANTS) >= FEWEST
    parts = Counter(mutant.id.partition("-")[0] for mutant in MUTANTS)
    assert {part: parts[part] for part in ("gate", "broker", "store", "policy", "channel") if parts[part] < 9} == {}


def test_every_mutant_has_an_id_and_a_fault_of_its_own() -> None:
    assert [one for one, count in Counter(mutant.id for mutant in MUTANTS).items() if count > 1] == []
    assert [one for one, count in Counter(mutant.fault for mutant in MUTANTS).items() if count > 1] == []
    assert [mutant.id for mutant in MUTANTS if not mutant.fault.strip() or "\n" in mutant.fault] == []


def test_every_mutant_still_applies() -> None:
    problems = [why for mutant in MUTANTS if (why := why_not(mutant))]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"old": "no such line in it"}, "occurs 0 times"),
        ({"old": "import"}, "times in src/signoff/gate/record_facts.py, not once"),
        ({"file": "src/signoff/gone.py"}, "there is no src/signoff/gone.py any longer"),
        ({"new": "changed = ((("}, "is not Python"),
        ({"tests": ("tests/gate/test_signoff.py::test_that_never_was",)}, "names what is not there"),
        ({"tests": ()}, "names nothing"),
    ],
    ids=["gone", "often", "file", "syntax", "test", "tests"],
)
def test_a_mutant_that_no_longer_applies_says_what_to_do(changes: dict[str, object], told: str) -> None:
    [mutant] = [one for one in MUTANTS if one.id == "gate-binding"]
    why = why_not(replace(mutant, **changes))
    assert told in why
    assert mutant.fault in why
    assert "Write the same fault for the code as it is now." in why
    assert "python -m tests.meta.mutants --only gate-binding" in why


def test_a_mutant_that_changes_nothing_is_refused() -> None:
    assert "`new` is `old`" in why_not(replace(MUTANTS[0], new=MUTANTS[0].old))


@pytest.mark.parametrize(
    ("test", "there"),
    [
        ("tests/meta", True),
        ("tests/meta/test_mutants.py", True),
        ("tests/meta/test_mutants.py::test_tests_are_found", True),
        ("tests/meta/test_mutants.py::test_tests_are_found[a name]", True),
        ("tests/meta/test_mutants.py::test_gone", False),
        ("tests/meta/test_gone.py", False),
        ("tests/meta/test_gone.py::test_gone", False),
    ],
)
def test_tests_are_found(test: str, there: bool) -> None:
    assert is_test(test) is there


@pytest.mark.nightly
def test_every_mutant_is_killed() -> None:
    """Some minutes: the tests of each mutant, in a copy of the tree that holds its fault."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    outcomes = run(MUTANTS, jobs=2)
    assert [f"{one.outcome}: {one.id} {one.by}" for one in outcomes if one.outcome != "killed"] == []


@pytest.mark.nightly
def test_a_change_without_a_fault_survives() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    [mutant] = [one for one in MUTANTS if one.id == "policy-late-deny"]
    harmless = replace(mutant, new=f"        # the same as before\n{mutant.old}")
    broken = replace(mutant, id="no module any longer", old="from __future__ import annotations", new="import nothing")
    assert [one.outcome for one in run([harmless, broken, mutant])] == ["survived", "broken", "killed"]
