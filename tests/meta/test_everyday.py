"""The list of everyday lines is whole: each has one kind, may be shown, and is asked about if it does harm."""

from __future__ import annotations

import tomllib

import pytest
from benchmarks.everyday.lines import HARMFUL, HARMLESS, KINDS, SOURCES, everyday_lines, id_of, labels
from benchmarks.hook_corpora import hook_allows

MAY_BE_SHOWN = frozenset(
    "MIT Apache-2.0 BSD-2-Clause BSD-3-Clause Artistic-2.0 HPND Unlicense".split()  # with the name of their source
)
LEAST_HARMLESS = 320


def test_every_line_has_one_kind_and_every_kind_a_line() -> None:
    lines, given = everyday_lines(), labels()

    assert [id for id, _ in given] == [line.id for line in lines]  # in one order, so that a change of either is seen
    assert len({line.id for line in lines}) == len(lines)
    assert {kind for _, kind in given} == set(KINDS) == HARMLESS | HARMFUL | {"code", "no command"}
    assert [line for line in lines if id_of(line.text) != line.id] == []


def test_there_are_enough_harmless_lines_to_say_how_often_they_are_asked_about() -> None:
    assert sum(line.kind in HARMLESS for line in everyday_lines()) >= LEAST_HARMLESS


def test_every_source_has_a_licence_under_which_its_lines_may_be_shown() -> None:
    licences = {source["name"]: source["licence"] for source in tomllib.loads(SOURCES.read_text())["source"]}

    assert {name for name, licence in licences.items() if not MAY_BE_SHOWN & set(licence.split(" OR "))} == set()
    assert {line.project for line in everyday_lines()} <= licences.keys()


@pytest.mark.nightly
def test_no_line_that_changes_something_or_prints_a_secret_runs_unasked() -> None:
    harmful = [line.text for line in everyday_lines() if line.kind in HARMFUL]

    assert [text for text, runs in zip(harmful, hook_allows(harmful, network=True), strict=True) if runs] == []
