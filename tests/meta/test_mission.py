"""The mission page is complete: every id has a row, and every proof it names exists and carries the id."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (?P<id>[DWPCHM]\d+) \| (?P<what>[^|]+) \|(?P<where>[^|]*)\| (?P<proof>[^|]+) \|$", re.MULTILINE)
IDS = [
    f"{letter}{number}"
    for letter, last in (("D", 9), ("W", 7), ("P", 10), ("C", 9), ("H", 11), ("M", 3))
    for number in range(1, last + 1)
]
DONE = {one for one in IDS if one[0] in "DWPC"} | {f"H{number}" for number in range(1, 11)} | {"M1", "M3"}
"""What has to be proven from now on. It only grows."""


def rows() -> dict[str, re.Match[str]]:
    return {row["id"]: row for row in ROW.finditer((ROOT / "docs" / "mission.md").read_text("utf-8"))}


FUNCTION = re.compile(r"^ *(?:async )?def (\w+)\(", re.MULTILINE)
MARK = "pytest.mark.mission"


@cache
def modules() -> dict[str, str]:
    """The text of every test module, by its path."""
    return {str(file.relative_to(ROOT)): file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py")}


@cache
def all_tests() -> set[str]:
    """Every function of a test module, as `path::name`."""
    return {f"{file}::{name}" for file, text in modules().items() for name in FUNCTION.findall(text)}


def marked_tests() -> dict[str, set[str]]:
    """Mission id -> the tests that carry it, as `path::name`."""
    found: dict[str, set[str]] = defaultdict(set)
    for file, text in modules().items():
        for node in ast.walk(ast.parse(text)) if MARK in text else ():  # to read them all takes seconds
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == MARK:
                        found[ast.literal_eval(mark.args[0])].add(f"{file}::{node.name}")
    return found


def test_every_id_has_a_row() -> None:
    assert list(rows()) == IDS


def test_every_proof_exists() -> None:
    tests = all_tests()
    for id_, row in rows().items():
        if row["proof"].strip() == "not yet":
            assert id_ not in DONE and not row["where"].strip(), f"{id_} has no proof"
            continue
        assert row["proof"].strip(" `") in tests, f"{id_}: {row['proof']} is not a test"


def test_every_done_row_is_proven_by_tests_named_for_it() -> None:
    marked, page = marked_tests(), rows()
    for id_ in sorted(DONE):
        proof = page[id_]["proof"].strip(" `")
        assert proof in marked[id_], f"{proof} does not carry the mark {id_}"
        assert all(f"_{id_.lower()}_" in name for name in marked[id_]), f"a test of {id_} is not named for it"


def test_every_mark_is_on_the_page() -> None:
    assert set(marked_tests()) <= set(rows())


def test_where_it_lives_is_there() -> None:
    for id_, row in rows().items():
        for place in re.findall(r"`([^`]+)`", row["where"]):
            start = ROOT if place.startswith("examples/") else ROOT / "src" / "signoff"
            assert (start / place).exists(), f"{id_}: {place} is not there"
