"""`./dev test --changed` leaves out no test that a change can reach, and does leave out others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import grimp
import pytest
from tests.changed import Graph, change

ROOT = Path(__file__).parents[2]

PROJECT = {
    "pyproject.toml": "",
    "README.md": "",
    "NOTES.md": "",
    "docs/guide.md": "",
    "docs/pictures/one.svg": "",
    "src/signoff/__init__.py": """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from signoff.core import Call as Call
    from signoff.gate import Gate as Gate
HOME = {"Call": "core", "Gate": "gate"}
class Own: ...
def __getattr__(name):
    return getattr(import_module(f"signoff.{HOME[name]}"), name)
""",
    "src/signoff/core.py": "",
    "src/signoff/gate.py": "def later():\n    from signoff.store import (  # (one)\n        rows,\n    )\n",
    "src/signoff/lonely.py": "",
    "src/signoff/store/__init__.py": "from signoff.store.queries import first\n",
    "src/signoff/store/queries.py": "",
    "src/signoff/store/rows.py": "",
    "src/signoff/store/sql/first.sql": "",
    "src/signoff/cli/main.py": 'COMMANDS = {"inbox": "signoff.cli.inbox_command:inbox"}\n',
    "src/signoff/cli/inbox_command.py": "",
    "tests/__init__.py": "",
    "tests/conftest.py": "",
    "tests/helper.py": "def help():\n    import signoff.gate\n",
    "tests/alone/test_core.py": "from signoff import Call\n",
    "tests/alone/test_own.py": "from signoff import Own\n",
    "tests/alone/test_door.py": "import signoff\n",
    "tests/alone/test_nothing.py": 'made = tmp_path / "docs" / "guide.md"\n',
    "tests/helped/conftest.py": "from tests import helper\n",
    "tests/helped/test_helped.py": "",
    "tests/helped/deep/test_deeper.py": "",
    "tests/started/asked.py": "import signoff.core\n",
    "tests/started/test_script.py": 'run([sys.executable, Path(__file__).with_name("asked.py")])\n',
    "tests/started/test_code.py": 'run([sys.executable, "-c", "import os\\nfrom signoff.cli.main import main"])\n',
    "tests/started/test_module.py": 'run("python -m tests.helper")\n',
    "tests/started/test_program.py": 'run([Path(sys.executable).with_name("signoff"), "inbox"])\n',
    "tests/read/test_pages.py": 'PAGES = (Path(__file__).parents[2] / "docs").glob("*.md")\n',
    "tests/read/test_page.py": 'PAGE = ROOT / "docs" / "guide.md"\nREADME = ROOT / "README.md"\n',
    "tests/read/test_sources.py": 'FILES = (ROOT / "src" / "signoff").rglob("*.py")\n',
    "tests/read/test_every_file.py": 'run(["git", "ls-files"])\n',
}
ALWAYS = {"read/test_every_file"}
SOURCE = ALWAYS | {"read/test_sources", "alone/test_door"}


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    write(root, PROJECT)
    return root


@pytest.mark.parametrize(
    ("changed", "reached"),
    [
        ("tests/alone/test_own.py", ALWAYS | {"alone/test_own"}),
        ("tests/new/test_new.py", ALWAYS),
        ("src/signoff/lonely.py", SOURCE),
        (
            "src/signoff/core.py",
            SOURCE | {"alone/test_core", "started/test_script"},
        ),
        (
            "src/signoff/store/rows.py",
            SOURCE | {"helped/test_helped", "helped/deep/test_deeper", "started/test_module"},
        ),
        (
            "src/signoff/store/queries.py",
            SOURCE | {"helped/test_helped", "helped/deep/test_deeper", "started/test_module"},
        ),
        (
            "src/signoff/store/sql/first.sql",
            SOURCE | {"helped/test_helped", "helped/deep/test_deeper", "started/test_module"},
        ),
        ("src/signoff/cli/inbox_command.py", SOURCE | {"started/test_code", "started/test_program"}),
        (
            "src/signoff/__init__.py",
            SOURCE
            | {"alone/test_core", "alone/test_own", "helped/test_helped", "helped/deep/test_deeper"}
            | {"started/test_script", "started/test_code", "started/test_module", "started/test_program"},
        ),
        ("tests/helper.py", ALWAYS | {"helped/test_helped", "helped/deep/test_deeper", "started/test_module"}),
        ("tests/helped/conftest.py", ALWAYS | {"helped/test_helped", "helped/deep/test_deeper"}),
        ("tests/started/asked.py", ALWAYS | {"started/test_script"}),
        ("docs/guide.md", ALWAYS | {"read/test_pages", "read/test_page"}),
        ("docs/pictures/one.svg", ALWAYS | {"read/test_pages"}),
        ("README.md", ALWAYS | {"read/test_page"}),
    ],
)
def test_a_file_reaches_its_users_and_nobody_else(project: Path, changed: str, reached: set[str]) -> None:
    assert set(Graph(project).reached([changed])) == {f"tests/{name}.py" for name in reached}


@pytest.mark.parametrize(
    "changed", ["pyproject.toml", "dev", ".ci/run", "tests/conftest.py", "NOTES.md", "src/other.py"]
)
def test_what_concerns_all_or_nobody_reaches_the_whole_suite(project: Path, changed: str) -> None:
    assert Graph(project).reached(["docs/guide.md", changed]) == {"tests": [changed, "tests"]}


def test_a_deleted_module_reaches_whoever_still_names_it(tmp_path: Path) -> None:
    write(
        tmp_path, {"tests/test_a.py": "from signoff.gone import x\n", "tests/test_b.py": 'run("-m signoff.old.one")\n'}
    )
    gone = ["src/signoff/gone.py", "src/signoff/old/one.py"]
    assert list(Graph(tmp_path, gone).reached(gone)) == ["tests/test_a.py", "tests/test_b.py"]


def test_the_way_is_the_shortest(project: Path) -> None:
    ways = Graph(project).reached(["src/signoff/store/sql/first.sql", "tests/helper.py"])
    assert ways["tests/helped/test_helped.py"] == [
        "tests/helper.py",
        "tests/helped/conftest.py",
        "tests/helped/test_helped.py",
    ]
    assert ways["tests/alone/test_door.py"] == [
        "src/signoff/store/sql/first.sql",
        "src/signoff/store/__init__.py",
        "src/signoff/__init__.py:__getattr__",
        "tests/alone/test_door.py",
    ]


# --- what a change is ---


def git(root: Path, *arguments: str) -> None:
    who = ["-c", "user.name=ana", "-c", "user.email=ana@example.com", "-c", "init.defaultBranch=main"]
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *who, *arguments], cwd=root, env=environment, check=True, capture_output=True)


def commit(root: Path, **files: str) -> None:
    write(root, files)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "more")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits on main."""
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, old="", gone="", moved="many\nlines\n", **{".gitignore": "ignored\n"})
    commit(tmp_path, last="")
    return tmp_path


def test_on_main_it_is_what_is_not_committed_or_else_the_last_commit(repository: Path) -> None:
    assert change(repository) == ["last"]
    assert change(repository, "HEAD") == []
    write(repository, {"old": "unstaged", "staged": "", "new/file": "", "ignored": ""})
    (repository / "gone").unlink()
    git(repository, "mv", "moved", "there")
    git(repository, "add", "staged")
    assert change(repository) == ["gone", "moved", "new/file", "old", "staged", "there"]


def test_the_first_commit_is_all_there_is(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, first="")
    assert change(tmp_path) == ["first"]


def test_on_a_branch_it_is_what_main_does_not_have(repository: Path) -> None:
    git(repository, "switch", "--quiet", "--create", "mine")
    assert change(repository) == []
    commit(repository, one="")
    commit(repository, two="")
    write(repository, {"three": ""})
    git(repository, "switch", "--quiet", "main")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "main moves on")
    git(repository, "switch", "--quiet", "mine")
    assert change(repository) == ["one", "three", "two"]
    assert change(repository, "HEAD~1") == ["three", "two"]


def test_an_upstream_goes_before_main(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    clone = tmp_path_factory.mktemp("clone")
    git(clone, "clone", "--quiet", str(repository), ".")
    assert change(clone) == ["last"]
    commit(clone, one="")
    commit(clone, two="")
    assert change(clone) == ["one", "two"]


def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-S", "-m", "tests.changed", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_command_prints_what_pytest_is_given(repository: Path) -> None:
    module, test = (
        {"src/signoff/core.py": ""},
        {"tests/test_core.py": "import signoff.core\n", "tests/test_other.py": ""},
    )
    commit(repository, **module, **test)
    assert ask("--root", str(repository)).stdout == "tests/test_core.py\ntests/test_other.py\n"
    (repository / "src/signoff/core.py").unlink()
    assert ask("--root", str(repository)).stdout == "tests/test_core.py\n"
    assert ask("--root", str(repository), "--why").stdout == "src/signoff/core.py -> tests/test_core.py\n"


def test_the_command_says_that_there_is_nothing_to_run(repository: Path) -> None:
    done = ask("--root", str(repository), "--base", "HEAD")
    assert (done.returncode, done.stdout) == (0, "")
    assert "0 changed files" in done.stderr


def test_the_command_says_what_it_does_not_know(repository: Path) -> None:
    git(repository, "branch", "--move", "trunk")
    done = ask("--root", str(repository))
    assert (done.returncode, done.stdout) == (2, "")
    assert "--base REF" in done.stderr
    assert "nowhere" in ask("--root", str(repository), "--base", "nowhere").stderr


# --- on this project ---


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph(ROOT)


def test_every_import_of_the_package_is_found(graph: Graph) -> None:
    """By the parser of the import law, which knows nothing of names in strings."""
    law = grimp.build_graph("signoff", cache_dir=None)
    pairs = [(one, other) for one in law.modules for other in law.find_modules_directly_imported_by(one)]
    assert len(pairs) > 1000
    paths = {name: {path, f"{path}:__getattr__"} for name, path in graph.modules.items()}
    users = {name: set[str]().union(*(graph.used_by[path] for path in paths[name])) for name in law.modules}
    assert [(one, other) for one, other in pairs if not paths[one] & users[other]] == []


def test_a_channel_does_not_reach_how_commands_are_read(graph: Graph) -> None:
    reached = graph.reached(["src/signoff/channels/discord/bot.py"])
    assert {"tests/discord/test_channel.py", "tests/cli/test_channels_program.py"} <= set(reached)
    through = [
        ways for path, ways in reached.items() if path.startswith(("tests/policy", "tests/core", "tests/broker"))
    ]
    starts = {"src/signoff/cli/main.py", "tests/forkserver.py", "src/signoff/channel_kinds.py"}
    assert [way for way in through if not starts & set(way)] == [], "but by the program, or a file that names channels"


def test_how_commands_are_read_reaches_its_tests_and_those_that_start_the_program(graph: Graph) -> None:
    reached = set(graph.reached(["src/signoff/policy/shell/literal_words.py"]))
    assert {"tests/policy/shell/test_words.py", "tests/policy/test_commands.py", "tests/cli/test_run.py"} <= reached
    assert not {"tests/policy/sql/test_sql_names.py", "tests/core/test_canonical.py"} & reached
    by_table = set(graph.reached(["src/signoff/policy/shell/programs/git.toml"]))
    assert {"tests/policy/shell/programs/test_programs.py", "tests/cli/test_run.py"} <= by_table


def test_a_page_reaches_the_tests_of_the_documentation(graph: Graph) -> None:
    reached = set(graph.reached(["docs/reference/policy.md"]))
    assert {
        "tests/docs/test_snippets.py",
        "tests/policy/test_docs_policy.py",
        "tests/meta/test_repository.py",
    } <= reached
    assert not {path for path in reached if path.startswith(("tests/crash", "tests/nested", "tests/broker"))}
