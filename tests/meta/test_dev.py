"""`./dev test`: what it answers is what the suite and the checks answered."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests import start

ROOT = Path(__file__).parents[2]

PYTHON = f"""#!/bin/sh
case "$1 $2" in
    "-m pytest") echo "suite: $*"; eval "${{SUITE:-:}}"; exit "${{SUITE_CODE:-0}}" ;;
    "-m tests.changed") echo tests/one.py tests/two.py; exit 0 ;;
    *) exec {sys.executable} "$@" ;;
esac
"""
TOOL = """#!/bin/sh
echo "$(basename "$0") $*"
case " ${BROKEN-} " in *" $(basename "$0") "*) exit 3 ;; esac
[ "$(basename "$0")" != pyright ] || eval "${PYRIGHT:-:}"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The real `dev` in a project of its own, whose Python and tools only tell how they were called."""
    root = tmp_path.resolve() / "project"
    programs = root / ".venv" / "bin"
    programs.mkdir(parents=True)
    shutil.copy(ROOT / "dev", root)
    shutil.copy(ROOT / "pyproject.toml", root)
    shutil.copytree(ROOT / "requirements", root / "requirements")
    (root / "src").mkdir()
    (root / "src" / "one.py").write_text("one = 0")
    for name in ("python", "ruff", "pyright", "lint-imports"):
        (programs / name).write_text(PYTHON if name == "python" else TOOL)
        (programs / name).chmod(0o755)
    version = ".".join(map(str, sys.version_info[:3]))
    stamps = f"""
        {{ echo "{root}" {version} && cat requirements/uv.txt; }} | cksum >.venv/.stamp-base
        cat pyproject.toml requirements/dev.txt | cksum >.venv/.stamp-dev
        cat pyproject.toml requirements/docs.txt | cksum >.venv/.stamp-docs
    """
    subprocess.run(["sh", "-c", stamps], cwd=root, check=True, timeout=start.PATIENCE)
    return root


def dev(project: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [project / "dev", *arguments],
        env=environment(project, settings),
        capture_output=True,
        text=True,
        timeout=start.PATIENCE,
        preexec_fn=start.default_signals,
    )


def environment(project: Path, settings: Mapping[str, str]) -> dict[str, str]:
    (project / "tmp").mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHON", "SIGNOFF_TEST_PROFILE")}
    return {**kept, "TMPDIR": str(project / "tmp"), "SIGNOFF_TEST_BROWSER": "none", **settings}


def left_behind(project: Path) -> list[str]:
    return [path.name for path in (project / "tmp").iterdir()]


CODES: list[tuple[dict[str, str], int]] = [
    ({"BROKEN": "pyright"}, 1),
    ({}, 0),
    ({"SUITE_CODE": "1"}, 1),
    ({"SUITE_CODE": "5"}, 5),
    ({"BROKEN": "ruff lint-imports"}, 1),
    ({"BROKEN": "pyright", "SUITE_CODE": "2"}, 1),
]


@pytest.mark.parametrize(
    ("nightly", "settings", "code"),
    [
        *((False, *one) for one in CODES),
        (True, *CODES[0]),
        *(pytest.param(True, *one, marks=pytest.mark.nightly) for one in CODES[1:]),
    ],
)
def test_the_exit_code_is_that_of_the_suite_and_of_the_checks(
    project: Path, nightly: bool, settings: dict[str, str], code: int
) -> None:
    done = dev(project, "test", *(["--nightly"] if nightly else []), **settings)
    assert done.returncode == code
    assert "suite: -m pytest" in done.stdout
    assert left_behind(project) == []


@pytest.mark.parametrize(("user", "installs"), [("0", True), ("1000", False)])
def test_a_browser_is_installed_where_it_may_be(project: Path, user: str, installs: bool) -> None:
    programs = project / "system"
    programs.mkdir()
    for name in ("sh", "dirname", "cksum", "cat", "find", "sort", "mktemp", "rm", "basename"):
        (programs / name).symlink_to(shutil.which(name) or name)
    for name, does in {"id": f"echo {user}", "apt-get": 'echo "apt-get $*" >>called'}.items():
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    done = dev(project, "test", PATH=str(programs), SIGNOFF_TEST_BROWSER="")
    assert done.returncode == 0, done.stderr
    assert ("installing Chromium" in done.stderr) == installs
    called = (project / "called").read_text().splitlines() if installs else []
    assert called == (["apt-get update", "apt-get install -y --no-install-recommends chromium"] if installs else [])
    assert (project / "called").exists() == installs


def test_what_the_checks_found_is_printed_after_the_suite(project: Path) -> None:
    done = dev(project, "test", BROKEN="pyright lint-imports")
    lines = done.stderr.splitlines()
    assert lines[0] == "dev: ruff format --check"
    assert "pyright " in lines
    assert lines[-1] == "dev: check failed: pyright, import law (./dev fmt repairs formatting)"


def test_the_checks_run_beside_the_suite(project: Path) -> None:
    # Each waits for the other to have begun: one after the other they would never end.
    meet = "touch tmp/{0}; for i in $(seq 600); do [ -e tmp/{1} ] && break; sleep 0.05; done; rm tmp/{1}"
    done = dev(project, "test", SUITE=meet.format("suite", "checks"), PYRIGHT=meet.format("checks", "suite"))
    assert done.returncode == 0
    assert left_behind(project) == []


@pytest.mark.nightly
def test_pyright_runs_where_it_may_find_something_new(project: Path) -> None:
    source = project / "src" / "one.py"

    def runs(*arguments: str, **settings: str) -> bool:
        return "pyright " in dev(project, *arguments, **settings).stderr.splitlines()

    assert runs("test", BROKEN="pyright")
    assert runs("test"), "it failed before"
    assert not runs("test")
    source.write_text("one = 1")
    assert runs("test", SUITE_CODE="1")
    assert not runs("test"), "it passed, whatever became of the tests"
    source.write_text("one = 2")
    assert runs("test", PYRIGHT=f"echo 'one = 3' >{source}"), "what it reads changes while it reads"
    assert runs("test")
    assert not runs("test")
    assert runs("test", "--nightly") and "pyright " in dev(project, "check").stdout.splitlines()
    source.rename(source.with_name("two.py"))
    assert runs("test"), "a name counts as well"


@pytest.mark.nightly
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_says_so_and_leaves_no_file(project: Path, number: int, code: int) -> None:
    waits = "import time; print('it waits', flush=True)\nwhile True: time.sleep(0.01)"
    with subprocess.Popen(
        [project / "dev", "test"],
        env=environment(project, {"SUITE": f'exec {sys.executable} -c "{waits}"'}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=start.default_signals,
        start_new_session=True,
    ) as run:
        assert run.stdout is not None
        assert b"it waits\n" in iter(run.stdout.readline, b"")
        os.killpg(run.pid, number)  # as a terminal does with Ctrl-C
        run.communicate(timeout=start.PATIENCE)
    assert run.returncode == code
    assert left_behind(project) == []


def test_only_what_the_change_reaches(project: Path) -> None:
    done = dev(project, "test", "--changed")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].endswith("--dist worksteal tests/one.py tests/two.py")
