"""The mission page is complete: every id has a row, and every proof it names exists and carries the id."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"^\| (?P<id>[DWPCHMEKTO]\d+) \| (?P<what>[^|]+) \|(?P<where>[^|]*)\| (?P<proof>[^|]+) \|$", re.MULTILINE
)
IDS = [
    f"{letter}{number}"
    for letter, last in (
        ("D", 11),
        ("W", 9),
        ("P", 13),
        ("C", 10),
        ("H", 12),
        ("M", 3),
        ("E", 4),
        ("K", 13),
        ("T", 7),
        ("O", 6),
    )
    for number in range(1, last + 1)
]
DONE = {id_ for id_ in IDS if id_[0] not in "EKTO"} - {"H11"} | {"K1"}
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


@cache
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


# --- what a proof may look at ---

PUBLIC = {
    "signoff",
    "signoff.channels",
    "signoff.compat.blocking_approval",
    "signoff.errors",
    "signoff.testing",
    "signoff.toolsets",
    "signoff.workers",
}
HARNESSES = {
    "tests.start": "starts programs",
    "tests.proofs.outside": "writes files and starts programs",
    "tests.discord.flow": "starts the bot, and reads its store to know when something has happened",
    "tests.discord.service": "the stand-in for Discord",
    "tests.cli.wording": "compares what was printed with what was kept",
}
"""What drives a program from outside; how it does so is its own affair."""
WRITTEN = re.compile(r"^\s*(?:from|import) (signoff[\w.]*)", re.MULTILINE)


@cache
def tree_of(module: str) -> ast.Module | None:
    """A module of the tests; None for a package."""
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    return ast.parse(path.read_text("utf-8")) if path.exists() else None


def defined_in(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """What each name at the top of a module stands for."""
    found: dict[str, list[ast.stmt]] = defaultdict(list)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[node.name].append(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for one in node.names:
                found[(one.asname or one.name).partition(".")[0]].append(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        found[name.id].append(node)
    return found


def looked_into(module: str, name: str, seen: set[tuple[str, str]] | None = None) -> set[str]:
    """The private modules of ours that something in a test module uses, through whatever it uses there."""
    seen = set() if seen is None else seen
    if (module, name) in seen or (tree := tree_of(module)) is None:
        return set()
    seen.add((module, name))
    found: set[str] = set()
    for node in defined_in(tree).get(name, ()):
        for one in ast.walk(node):
            if isinstance(one, ast.ImportFrom):
                found |= _imported(one, name if one is node else "", seen)
            elif isinstance(one, ast.Import):
                found |= {each.name for each in one.names if each.name.startswith("signoff.")} - PUBLIC
            elif isinstance(one, ast.Name | ast.arg):  # a fixture is named by an argument
                found |= looked_into(module, one.id if isinstance(one, ast.Name) else one.arg, seen)
            elif isinstance(one, ast.Constant) and isinstance(one.value, str):
                found |= set(WRITTEN.findall(one.value)) - PUBLIC - {"signoff.cli.main"}
    return found


def _imported(node: ast.ImportFrom, name: str, seen: set[tuple[str, str]]) -> set[str]:
    """What an import leads to: of all its names, or of one."""
    source = node.module or ""
    names = [one.name for one in node.names if name in ("", one.asname or one.name)]
    if source == "signoff" or source.startswith("signoff."):
        return set() if source in PUBLIC and _are_public(source, names) else {source}
    if not source.startswith("tests") or any(f"{source}.".startswith(f"{one}.") for one in HARNESSES):
        return set()
    return set[str]().union(*(looked_into(source, one, seen) for one in names))


def _are_public(source: str, names: list[str]) -> bool:
    public = getattr(import_module(source), "__all__", None)
    return public is None or set(names) <= set(public)


def proof_of(row: re.Match[str]) -> tuple[str, str]:
    path, _, name = row["proof"].strip(" `").partition("::")
    return path.removesuffix(".py").replace("/", "."), name


def fixtures_of(path: str, name: str) -> set[str]:
    """Private modules behind the fixtures that a test gets from a conftest beside it."""
    conftest = f"{path.rpartition('.')[0]}.conftest"
    tree = tree_of(path)
    assert tree is not None
    found: set[str] = set()
    for node in defined_in(tree).get(name, ()):
        for one in ast.walk(node):
            if isinstance(one, ast.arg):
                found |= looked_into(conftest, one.arg)
    return found


def test_a_proof_goes_through_the_command_the_public_names_or_files() -> None:
    inside: dict[str, list[str]] = {}
    for id_, row in rows().items():
        if row["proof"].strip() != "not yet":
            path, name = proof_of(row)
            if found := looked_into(path, name) | fixtures_of(path, name):
                inside[id_] = sorted(found)
    assert not inside, f"these proofs import private modules; write one from outside (tests/proofs): {inside}"


def test_what_looks_inside_is_found() -> None:
    assert "signoff.config" in looked_into("tests.workers.project", "project")
    assert (
        looked_into("tests.proofs.test_flags", "test_c9_ask_holds_a_call_that_the_policy_allows_until_a_person_answers")
        == set()
    )
