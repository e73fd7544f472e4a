"""Never silently in the wrong store: what is not there is not taken for empty, and the switch hits what runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.program import signoff

POLICY = "policy: [{ask: '*'}]\npeople: {ana: {}}\n"


@pytest.fixture
def directories(tmp_path: Path) -> tuple[Path, Path, dict[str, str]]:
    """A directory, a project in it, and an environment of their own."""
    project = tmp_path / "above" / "project"
    project.mkdir(parents=True)
    (project / "signoff.yaml").write_text(POLICY)
    return project.parent, project, {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}


@pytest.mark.parametrize(
    "command",
    [
        ["inbox"], ["runs"], ["audit", "verify"], ["audit", "log"], ["grants", "list"], ["halt"], ["unhalt"],
        ["people"], ["show", "abc"], ["approve", "abc"], ["resume", "--all"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_store_that_is_named_and_not_there_is_an_error(
    directories: tuple[Path, Path, dict[str, str]], command: list[str]
) -> None:
    _, project, environment = directories
    done = signoff(*command, "--store", "sqlite:typo.db", cwd=project, SIGNOFF_AS="ana", **environment)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "there is no store at " in done.stderr
    assert "typo.db" in done.stderr
    assert not (project / "typo.db").exists()


def test_the_switch_is_not_pulled_where_nothing_runs(directories: tuple[Path, Path, dict[str, str]]) -> None:
    above, project, environment = directories
    done = signoff("halt", cwd=above, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no signoff.yaml here or above" in done.stderr
    assert not (Path(environment["XDG_STATE_HOME"]) / "signoff").exists(), "nothing is left behind"

    done = signoff("halt", "--note", "stop", cwd=project, SIGNOFF_AS="root", **environment)
    assert (done.returncode, done.stderr) == (0, ""), "whoever is there may stop it"
    assert "Nothing new runs: halted by root" in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ["approve", "abc"], ["deny", "abc"], ["show", "abc"], ["outcome", "abc", "happened"], ["take", "abc"],
        ["release", "abc"], ["assign", "abc", "ana"], ["cancel", "abc"], ["resume", "abc"],
        ["grants", "explain", "abc"], ["grants", "revoke", "abc"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_an_id_that_is_not_found_says_where_it_was_looked_for(
    directories: tuple[Path, Path, dict[str, str]], command: list[str]
) -> None:
    above, _, environment = directories
    done = signoff(*command, cwd=above, SIGNOFF_AS="ana", **environment)
    assert done.returncode in (1, 2), (done.stdout, done.stderr)
    assert f"no project (there is no signoff.yaml here or above), the store of {above}" in done.stderr
    assert "signoff stores" in done.stderr


def test_a_worker_outside_of_a_project_is_looked_for_in_none(directories: tuple[Path, Path, dict[str, str]]) -> None:
    above, _, environment = directories
    done = signoff("run", "clerk", "Go", cwd=above, **environment)
    assert done.returncode == 2
    assert "there is no signoff.yaml here or above" in done.stderr


def test_the_switch_says_that_nothing_has_run_with_a_store_that_it_made(
    directories: tuple[Path, Path, dict[str, str]],
) -> None:
    _, project, environment = directories
    unused = "Nothing has run with this store yet"
    for store in ({"SIGNOFF_STORE": "sqlite:typo.db"}, {}):
        known = {**environment, **store}
        assert unused in signoff("halt", cwd=project, SIGNOFF_AS="ana", **known).stdout
        assert unused not in signoff("halt", cwd=project, SIGNOFF_AS="ana", **known).stdout
