"""Coding agents and git: rules decide alone only in the project's own repository, if its settings name no programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from signoff.outside.git_repositories import git_doubt, looked_around
from signoff.outside.outside_call import OutsideCall

GIT = shutil.which("git") or ""
pytestmark = pytest.mark.skipif(not GIT, reason="needs git")


def git(directory: Path, *words: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "protocol.file.allow=always")
    done = subprocess.run([GIT, *who, *words], cwd=directory, env=environment, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    git(made, "init", "-q")
    git(made, "commit", "-q", "--allow-empty", "-m", "first")
    (made / "src").mkdir()
    return made


def planted(directory: Path, marker: Path) -> None:
    """A bare repository, as an agent can write it file by file, that runs a program of its own."""
    for part in ("objects", "refs"):
        (directory / part).mkdir(parents=True)
        (directory / part / "x").touch()
    (directory / "HEAD").write_text("ref: refs/heads/main\n")
    program = f"touch {marker}"
    (directory / "config").write_text(
        f'[core]\n\trepositoryformatversion = 0\n\tworktree = "."\n\tfsmonitor = "{program}"\n'
    )


LINES = [
    "git -C fixtures/repo status",
    "cd fixtures/repo && git status",
    "cd fixtures; cd repo; git diff",
    "git -C fixtures -C repo status | head",
    "cd fixtures && git -C ./repo status",
    "ls && git -C fixtures/repo/objects status",
    "/usr/bin/git -C fixtures/repo status",
    "g\\it -C fixtures/repo status",
    "'g'it -C fixtures/repo status",
    "cd fixtures/repo && gi''t status",
    '/usr/bin/"g"it -C fixtures/repo status',
    "timeout 5 git -C fixtures/repo status",
    "bash -c 'git -C fixtures/repo status'",
    "git --git-dir=fixtures/repo --work-tree=. status",
    "git --git-dir fixtures/repo status",
    "cd $(cat where) && git status",
    "cd fixtures/repo && timeout 5 git status",
    "bash -c 'cd fixtures/repo; git status'",
    "(cd fixtures/repo; git status)",
]


@pytest.mark.parametrize("line", LINES)
def test_a_repository_that_the_agent_made_is_in_doubt(project: Path, tmp_path: Path, line: str) -> None:
    planted(project / "fixtures" / "repo", tmp_path / "ran")
    assert "git would work in" in git_doubt(line, str(project), str(project))
    call = OutsideCall(
        agents=("claude",), session="s", call_id="c", tool="Bash", args={"command": line},
        directory=str(project), labels=frozenset({"proc.exec"}),
    )  # fmt: skip
    assert "git would work in" in looked_around(call, str(project)).doubt


def test_git_really_runs_what_such_a_repository_names(project: Path, tmp_path: Path) -> None:
    planted(project / "fixtures" / "repo", tmp_path / "ran")
    git(project, "-C", "fixtures/repo", "status")
    assert (tmp_path / "ran").exists(), "otherwise there is nothing to be in doubt about"


@pytest.mark.parametrize("line", ["git -C '~/r' status", "git -C ./~ -C r status", "git -C ~/r status"])
def test_a_directory_that_is_called_like_the_home_directory_is_looked_at(
    project: Path, tmp_path: Path, line: str
) -> None:
    planted(project / "~" / "r", tmp_path / "ran")
    assert "git would work in" in git_doubt(line, str(project), str(project))
    subprocess.run(["bash", "-c", line.replace("~", "'~'").replace("''", "")], cwd=project, capture_output=True)
    assert (tmp_path / "ran").exists(), "otherwise there is nothing to be in doubt about"


@pytest.mark.parametrize("line", ["git -C ~+/x status", "git -C ~nobody/x status", "cd ~- && git status"])
def test_a_tilde_that_stands_for_another_directory_is_in_doubt(project: Path, line: str) -> None:
    assert "git would work in" in git_doubt(line, str(project), str(project))


@pytest.mark.parametrize(
    "line", ["git -C fx/a status", "cd fx/a && git status", "cd fx/a; git diff", "git -C fx/a/s log"]
)
def test_a_repository_whose_parts_are_elsewhere_is_in_doubt(project: Path, tmp_path: Path, line: str) -> None:
    planted(project / "fx" / "b", tmp_path / "ran")
    (project / "fx" / "a" / "s").mkdir(parents=True)
    (project / "fx" / "b" / "HEAD").rename(project / "fx" / "a" / "HEAD")
    (project / "fx" / "a" / "commondir").write_text("../b\n")
    assert "git would work in" in git_doubt(line, str(project), str(project))


def test_git_really_finds_a_repository_whose_parts_are_elsewhere(project: Path, tmp_path: Path) -> None:
    other = project / "fx" / "b"
    planted(other, tmp_path / "ran")
    (project / "fx" / "a").mkdir()
    (other / "HEAD").rename(project / "fx" / "a" / "HEAD")
    (project / "fx" / "a" / "commondir").write_text("../b\n")
    settings = (other / "config").read_text().replace('"."', f'"{project / "src"}"')
    (project / "fx" / "a" / "config.worktree").write_text(settings)
    shared = "[core]\n\trepositoryformatversion = 1\n\tbare = false\n[extensions]\n\tworktreeConfig = true\n"
    (other / "config").write_text(shared)
    git(project, "-C", "fx/a", "status")
    assert (tmp_path / "ran").exists(), "otherwise there is nothing to be in doubt about"
    assert "git would work in" in git_doubt("git -C fx/a status", str(project), str(project))


PUSHES = [
    "git push ./fx/plain HEAD:refs/heads/a", "git push fx/plain HEAD:refs/heads/a", "git push plain HEAD:refs/heads/a",
    "git push -q fx/plain HEAD:refs/heads/a", "git push --repo=fx/plain", "cd fx && git push plain HEAD:refs/heads/b",
    "git -C src push fx/plain HEAD:refs/heads/a", "git push -- fx/plain HEAD:refs/heads/a",
    "git push short HEAD:refs/heads/a", "cd src && git push ./fx/plain HEAD:refs/heads/a",
]  # fmt: skip


@pytest.mark.parametrize("line", PUSHES)
def test_a_repository_that_git_pushes_to_is_looked_at(project: Path, tmp_path: Path, line: str) -> None:
    for directory in (project / "fx" / "plain", project / "plain", project / "short.git"):
        (directory / "objects" / "info").mkdir(parents=True)
        (directory / "refs").mkdir()
        (directory / "refs" / "x").touch()
        (directory / "HEAD").write_text("ref: refs/heads/main\n")
        (directory / "objects" / "info" / "alternates").write_text(f"{project / '.git' / 'objects'}\n")
        (directory / "config").write_text(
            f'[core]\n\tbare = true\n\talternateRefsCommand = "touch {tmp_path / "ran"}; :"\n'
        )
    assert "git would work in" in git_doubt(line, str(project), str(project))
    if "--repo" not in line:
        subprocess.run(["bash", "-c", line], cwd=project, capture_output=True)
        assert (tmp_path / "ran").exists(), "otherwise there is nothing to be in doubt about"


@pytest.mark.parametrize(
    "line", ["git push", "git push origin main", "git push -u origin src/x", "git push https://x.com/a.git main",
             "git push git@x.com:a/b.git main", "git push --repo=origin", "git push . HEAD:x"]
)  # fmt: skip
def test_a_push_to_a_remote_is_in_no_doubt(project: Path, line: str) -> None:
    assert git_doubt(line, str(project), str(project)) == ""


def test_the_same_from_a_directory_that_the_agent_works_in(project: Path, tmp_path: Path) -> None:
    planted(project / "fixtures" / "repo", tmp_path / "ran")
    assert "a bare repository" in git_doubt("git status", str(project), str(project / "fixtures" / "repo"))


def test_the_projects_own_repository_is_not_in_doubt(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "commit", "-q", "--allow-empty", "-m", "first")
    git(project, "submodule", "--quiet", "add", str(other), "below/it")
    git(project, "worktree", "add", "-q", str(tmp_path / "tree"))
    for line in ("git status", "git -C src log", "cd src && git diff", "git -C below/it status", "git -C ../tree log",
                 "ls", "cat git.txt", "git --version", "git -c a.b=c log | head"):  # fmt: skip
        assert git_doubt(line, str(project), str(project)) == "", line
    assert git_doubt("git status", str(project / "src"), str(project / "src")) == "", "the file may be below the top"
    assert git_doubt("git status", str(tmp_path / "tree"), str(project)) == ""
    assert "not this project's" in git_doubt(f"git -C {other} log", str(project), str(project))
    assert "not this project's" in git_doubt("git log", str(tmp_path), str(project)), "a project without any"


def test_settings_of_the_projects_own_repository_that_name_a_program_are_in_doubt(project: Path) -> None:
    git(project, "config", "core.fsmonitor", "./watch")
    assert "core.fsmonitor" in git_doubt("git status", str(project), str(project))
    git(project, "config", "core.fsmonitor", "true")
    assert git_doubt("git status", str(project), str(project)) == ""


def test_a_directory_of_hooks_is_in_doubt_only_if_one_of_them_runs_when_git_reads(project: Path) -> None:
    git(project, "config", "core.hooksPath", ".husky/_")
    assert "core.hookspath" in git_doubt("git status", str(project), str(project)), "it is not there"
    hooks = project / ".husky" / "_"
    hooks.mkdir(parents=True)
    (hooks / "pre-commit").write_text("#!/bin/sh\n")
    assert git_doubt("git status", str(project), str(project)) == ""
    (hooks / "post-index-change").write_text("#!/bin/sh\n")
    assert "core.hookspath" in git_doubt("git status", str(project), str(project))


def test_a_repository_that_cannot_be_read_is_in_doubt(project: Path) -> None:
    (project / "odd").mkdir()
    (project / "odd" / ".git").write_text("something else\n")
    assert "cannot be read" in git_doubt("git -C odd status", str(project), str(project))
    (project / "odd" / ".git").unlink()
    os.mkfifo(project / "odd" / ".git")
    assert "cannot be read" in git_doubt("git -C odd status", str(project), str(project)), "nobody waits for a writer"
