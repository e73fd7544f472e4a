"""The import law of pyproject.toml holds, it can fail, and the pure rooms are pure."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest
from tests.tables import table

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "signoff"

# Stdlib modules that compute and touch nothing: no clock, environment, file, network or chance.
HARMLESS = frozenset(
    """
    __future__ abc base64 binascii bisect collections contextlib copy dataclasses datetime decimal difflib enum
    fnmatch functools hashlib heapq hmac html ipaddress itertools json keyword math numbers operator posixpath re
    shlex string struct textwrap types typing typing_extensions unicodedata urllib.parse
    """.split()
)
# The pure rooms, and what each may import beyond that.
PURE_ROOMS = ("core", "policy", "gate/course.py", "ports.py", "errors.py")
_DATA = frozenset({"tomllib"})  # tables that are part of the package
EXTRA = {
    "policy/argument_schema.py": frozenset({"contextvars", "importlib"}),  # keywords of jsonschema are bare functions
    "policy/composer.py": frozenset({"yaml"}),
    "policy/linear_regex.py": frozenset(
        {"importlib", "warnings"}
    ),  # RE2, and the parser of `re`, which has no public name
    "policy/secret.py": _DATA,
    "policy/table_files.py": frozenset({"pathlib"}),  # the tables that are part of the package
    "policy/shell/network.py": _DATA,
    "policy/shell/patterns.py": _DATA,
    "policy/shell/listed_words.py": _DATA,
    "policy/shell/prefixes.py": _DATA,
    "policy/shell/table.py": _DATA,
    "policy/shell/shell_variables.py": _DATA,
    "policy/shell/typed_commands.py": _DATA,
    "policy/shell/wrappers.py": _DATA,
    "policy/shell/grammar.py": frozenset({"tree_sitter", "tree_sitter_bash"}),
    "policy/shell/syntax_tree.py": frozenset({"tree_sitter", "tree_sitter_bash"}),
    "policy/sql/cte_scopes.py": frozenset({"sqlglot"}),
    "policy/sql/names.py": _DATA,
    "policy/sql/statement_tree.py": frozenset(
        {"sqlglot", "logging", "contextvars"}
    ),  # its parser logs what it does not like
    "policy/sql/verbs.py": frozenset({"sqlglot"}),
    "policy/url.py": frozenset({"idna", "tomllib"}),
    "ports.py": frozenset({"contextvars"}),
}

# What harmless modules hold that is not harmless after all, and built-ins that reach outside.
IMPURE_NAMES = frozenset(
    """
    datetime.now datetime.utcnow datetime.today date.today
    posixpath.abspath posixpath.realpath posixpath.relpath posixpath.expanduser posixpath.expandvars
    posixpath.exists posixpath.lexists posixpath.isdir posixpath.isfile posixpath.islink posixpath.ismount
    posixpath.samefile posixpath.getsize posixpath.getmtime
    json.load json.dump hashlib.file_digest
    """.split()
)
IMPURE_BUILTINS = frozenset({"open", "input", "print", "breakpoint", "eval", "exec", "__import__"})


def lint_imports(project: Path) -> subprocess.CompletedProcess[str]:
    """Runs the contracts of a project directory on the `signoff` that is below it."""
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
    environment = os.environ | {"PYTHONPATH": str(project / "src"), "COLUMNS": "200"}
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the package and its law, to break."""
    shutil.copytree(PACKAGE, tmp_path / "src" / "signoff", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def write(project: Path, module: str, source: str) -> None:
    path = project / "src" / "signoff" / module
    path.parent.mkdir(exist_ok=True)
    (path.parent / "__init__.py").touch()
    path.write_text(source, encoding="utf-8")


def test_the_law_holds() -> None:
    outcome = lint_imports(ROOT)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


FORBIDDEN = {
    "core/up.py": "import signoff.policy\n",
    "policy/up.py": "def later() -> None:\n    import signoff.ports\n",
    "channels/across.py": "import signoff.store\n",
    "core/agent.py": "import pydantic_ai\n",
    "cli/agent.py": "def later() -> None:\n    from pydantic_ai.messages import ModelMessage\n",
}
"""Up, to a sibling, and an agent where none belongs; at once, and when a function is called."""
CIRCLE = {
    "core/hen.py": "import signoff.core.egg\n",
    "core/egg.py": "def later() -> None:\n    import signoff.core.hen\n",
}


NOWHERE = dict.fromkeys(("attic/__init__.py", "garret.py"), '"""Nobody said where this belongs."""\n')


def test_whatever_breaks_the_law_is_named(project: Path) -> None:
    """A forbidden import, a circle and a module without a place; a circle also where one of the two imports the other
    only when it is called."""
    for module, source in (FORBIDDEN | CIRCLE | NOWHERE).items():
        write(project, module, source)
    outcome = lint_imports(project)
    assert outcome.returncode == 1
    named = [module for module in FORBIDDEN if module.removesuffix(".py").replace("/", ".") in outcome.stdout]
    assert named == list(FORBIDDEN)
    assert ".hen -> .egg" in outcome.stdout or ".egg -> .hen" in outcome.stdout
    assert "attic" in outcome.stdout
    assert "garret" in outcome.stdout


def test_no_module_imports_itself_through_others(capsys: pytest.CaptureFixture[str]) -> None:
    """Packages and their own modules included, which the contract leaves out."""
    graph = grimp.build_graph("signoff")
    edges = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}
    while leaves := [one for one, below in edges.items() if not below & edges.keys()]:
        for one in leaves:
            del edges[one]
    with capsys.disabled():
        print(f"\n{len(graph.modules)} modules, {len(edges)} in circles")
    assert sorted(edges) == [], "these import each other, or what does"


FRONT_DOOR = re.compile(r"\bimport\b[^\n]*\bsignoff\b(?!\.)|\bfrom\s+signoff\s+import\b")
"""To parse every file takes seconds."""


def test_rooms_import_each_other_and_never_the_front_door() -> None:
    """`import signoff` is for users; inside it would hide which room is meant. Only the CLI may ask for the version."""
    guests = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in PACKAGE.rglob("*.py")
        if path.parent != PACKAGE / "cli" and FRONT_DOOR.search(text := path.read_text("utf-8"))
        for line, module in imported(ast.parse(text))
        if module == "signoff"
    ]
    assert not guests


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every module that is imported, anywhere in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or "."


def impurities(source: str, *, extra: frozenset[str] = frozenset(), awaits: bool = False) -> list[str]:
    """What in this source reaches outside: `line: what`."""
    tree = ast.parse(source)
    found = [(line, f"import {module}") for line, module in imported(tree) if not harmless(module, extra)]
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=attr):
                if f"{owner}.{attr}" in IMPURE_NAMES:
                    found.append((node.lineno, f"{owner}.{attr}"))
            case ast.ImportFrom(module=str(module)):
                names = (f"{module}.{alias.name}" for alias in node.names)
                found += [(node.lineno, name) for name in names if name in IMPURE_NAMES]
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_BUILTINS:
                found.append((node.lineno, f"{name}()"))
            case ast.AsyncFunctionDef() | ast.Await() if not awaits:
                found.append((node.lineno, "async"))
            case _:
                pass
    return [f"{line}: {what}" for line, what in sorted(found)]


def harmless(module: str, extra: frozenset[str]) -> bool:
    root = module.partition(".")[0]
    return root == "signoff" or not {module, root}.isdisjoint(HARMLESS | extra)


def pure_modules() -> list[str]:
    rooms = [PACKAGE / room for room in PURE_ROOMS]
    files = [file for room in rooms for file in (sorted(room.rglob("*.py")) if room.is_dir() else [room])]
    return [file.relative_to(PACKAGE).as_posix() for file in files]


@table("module", pure_modules())
def test_a_pure_room_touches_nothing(module: str) -> None:
    source = (PACKAGE / module).read_text("utf-8")
    assert not impurities(source, extra=EXTRA.get(module, frozenset()), awaits=module == "ports.py")


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "import time",
        "import secrets",
        "import urllib.request",
        "from pathlib import Path",
        "def f():\n    import sqlite3",
        "import yaml",
        "from datetime import datetime\nnow = datetime.now()",
        "import datetime\ntoday = datetime.date.today()",
        "from posixpath import realpath",
        "import posixpath\nwhere = posixpath.abspath('x')",
        "text = open('x').read()",
        "async def f(): ...",
    ],
)
def test_what_reaches_outside_is_found(source: str) -> None:
    assert impurities(source)


def test_what_stays_inside_is_let_be() -> None:
    source = """
import json
import re
from datetime import datetime
from urllib.parse import quote
from signoff.core.call import Call

def later(clock, call: Call):
    return clock.now, json.dumps(call.args), re.compile("x"), quote("x"), datetime.fromisoformat("2026-01-01")
"""
    assert impurities(source) == []
