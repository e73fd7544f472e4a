"""A repository that makes git run programs is found out, without running git; an ordinary one is not suspected."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.toolsets.builtin.shell import git_config
from signoff.toolsets.builtin.shell.git_config import repository_runs

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="needs git")


def git(directory: Path, *words: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "protocol.file.allow=always")
    done = subprocess.run(
        [GIT or "git", *who, *words], cwd=directory, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository made by hand, as far as its configuration goes."""
    directory = tmp_path / "repository"
    (directory / ".git" / "objects").mkdir(parents=True)
    (directory / ".git" / "refs").mkdir()
    (directory / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    write(directory, "[core]\n\tbare = false\n")
    return directory


def write(repository: Path, text: str, name: str = "config") -> None:
    (repository / ".git" / name).write_text(text, newline="")


@needs_git
def test_an_ordinary_repository_is_not_suspected(tmp_path: Path) -> None:
    one, two, three = tmp_path / "one", tmp_path / "two", tmp_path / "three"
    one.mkdir()
    git(one, "init", "-q")
    git(one, "config", "user.name", "Ana")
    git(one, "config", "alias.st", "status")
    git(one, "config", "pull.rebase", "true")
    git(one, "config", "core.fsmonitor", "false")
    git(one, "commit", "-q", "--allow-empty", "-m", "first")
    git(tmp_path, "clone", "-q", str(one), str(two))
    git(two, "worktree", "add", "-q", str(three))
    git(two, "submodule", "--quiet", "add", str(one), "below/it")
    directories = (one, two, three, two / "below" / "it", two / ".git", tmp_path)
    assert [repository_runs(str(directory)) for directory in directories] == [""] * len(directories)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('[diff "x"]\n textconv = touch /tmp/x', "diff.x.textconv"),
        ('[diff "x"]\n command = evil', "diff.x.command"),
        ("[diff]\nexternal=evil", "diff.external"),
        ("[DIFF]\nExternal=evil", "diff.external"),
        ("[diff] external=evil", "diff.external"),
        ("[diff.x]\ntextconv=evil", "diff.x.textconv"),
        ('[filter "lfs"]\nclean=evil', "filter.lfs.clean"),
        ('[filter "lfs"]\nsmudge=evil', "filter.lfs.smudge"),
        ('[filter "a\\"b"]\nprocess=evil', 'filter.a"b.process'),
        ("[core]\nfsmonitor = .git/evil", "core.fsmonitor"),
        ('[core]\nfsmonitor = "true" .git/evil', "core.fsmonitor"),
        ("[core]\nhooksPath = hooks", "core.hookspath"),
        ("[core]\nsshCommand = evil", "core.sshcommand"),
        ("[core]\npager = evil", "core.pager"),
        ("[pager]\nlog = evil", "pager.log"),
        ("[core]\neditor = evil", "core.editor"),
        ("[core]\nattributesFile = x", "core.attributesfile"),
        ("[core]\nworktree = /etc", "core.worktree"),
        ("[core]\nalternateRefsCommand = x", "core.alternaterefscommand"),
        ("[gpg]\nprogram = evil", "gpg.program"),
        ('[gpg "ssh"]\nprogram = evil', "gpg.ssh.program"),
        ("[extensions]\npartialClone = origin", "extensions.partialclone"),
        ('[remote "origin"]\npromisor = true', "remote.origin.promisor"),
        ("[include]\npath = ../evil", "include.path"),
        ('[includeIf "gitdir:/"]\npath = ../evil', "includeif.gitdir:/.path"),
        ("[blame]\nignoreRevsFile = /etc/shadow", "blame.ignorerevsfile"),
        ("[blame]\nignoreRevsFile = ../x", "blame.ignorerevsfile"),
        ("[log]\nshowSignature = true", "log.showsignature"),
        ("[fsck]\nskipList = x", "fsck.skiplist"),
        ('[merge "x"]\ndriver = evil', "merge.x.driver"),
        ('[tar "x"]\ncommand = evil', "tar.x.command"),
        ("[pretty]\nx = %GG", "pretty.x"),
        ("[somethingnew]\nx = 1", "somethingnew.x"),
    ],
)
def test_what_worries_is_named(repository: Path, text: str, name: str) -> None:
    write(repository, f"[core]\n\tbare = false\n{text}\n")
    (repository / "deep" / "er").mkdir(parents=True)
    assert repository_runs(str(repository)) == name
    assert repository_runs(str(repository / "deep" / "er")) == name
    assert repository_runs(str(repository / ".git" / "objects")) == name


@needs_git
def test_a_list_of_revisions_is_no_worry_unless_it_holds_something_else(tmp_path: Path) -> None:
    repository = tmp_path / "one"
    repository.mkdir()
    git(repository, "init", "-q")
    (repository / "file").write_text("text\n")
    git(repository, "add", "file")
    git(repository, "commit", "-q", "-m", "first")
    git(repository, "config", "blame.ignoreRevsFile", ".git-blame-ignore-revs")
    assert repository_runs(str(repository)) == "", "git stops before it reads anything"
    listed = repository / ".git-blame-ignore-revs"
    listed.write_text(f"# format everything\n{git(repository, 'rev-parse', 'HEAD')}\n")
    assert "text" in git(repository, "blame", "file")
    assert repository_runs(str(repository)) == ""
    listed.write_text("KEY=hush-content\n")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        git(repository, "blame", "file")
    assert "hush-content" in failed.value.stderr, "git shows what is in there"
    assert repository_runs(str(repository)) == "blame.ignorerevsfile"
    listed.unlink()
    listed.symlink_to("file")
    assert repository_runs(str(repository)) == "blame.ignorerevsfile"
    (repository / ".env").write_text("KEY=hush-content\n")
    git(repository, "config", "blame.ignoreRevsFile", ".env")
    assert repository_runs(str(repository)) == "blame.ignorerevsfile"


@pytest.mark.parametrize(
    "text",
    [
        "# a comment that seems to go on \\\n[diff] external = evil",
        '[diff "x"]\n algorithm = a \\\n[branch "y"]\n command = evil',
        "[core",
        "key = before any section",
        "[core]\n= x",
        "[core]\nbare = false\0",
        '[branch "y"] [diff "x"] command = evil',
    ],
)
def test_what_is_not_understood_worries(repository: Path, text: str) -> None:
    write(repository, text)
    assert repository_runs(str(repository)) != ""


def test_a_file_that_is_too_large_or_no_file_worries(repository: Path) -> None:
    write(repository, "#" * (git_config.MOST_BYTES + 1))
    assert "too large" in repository_runs(str(repository))
    (repository / ".git" / "config").unlink()
    os.mkfifo(repository / ".git" / "config")
    assert "not a regular file" in repository_runs(str(repository)), "and nobody waits for a writer"


def test_a_git_file_is_followed(repository: Path, tmp_path: Path) -> None:
    write(repository, "[diff]\nexternal=evil")
    other = tmp_path / "other"
    other.mkdir()
    (other / ".git").write_text("gitdir: ../repository/.git\n")
    assert repository_runs(str(other)) == "diff.external"
    (other / ".git").write_text("something else\n")
    assert "does not name a directory" in repository_runs(str(other))


def test_the_configuration_of_a_worktree_and_of_what_it_belongs_to_count(repository: Path, tmp_path: Path) -> None:
    inner = repository / ".git" / "worktrees" / "w"
    inner.mkdir(parents=True)
    (inner / "commondir").write_text("../..\n")
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {inner}\n")
    assert repository_runs(str(tree)) == ""
    (inner / "config.worktree").write_text("[core]\nfsmonitor=evil\n")
    assert repository_runs(str(tree)) == "core.fsmonitor"
    (inner / "config.worktree").unlink()
    write(repository, "[diff]\nexternal=evil")
    assert repository_runs(str(tree)) == "diff.external"


def test_the_configuration_of_a_submodule_counts(repository: Path) -> None:
    module = repository / ".git" / "modules" / "a" / "b"
    module.mkdir(parents=True)
    (module / "HEAD").write_text("ref: refs/heads/main\n")
    (module / "config").write_text("[core]\nfsmonitor=evil\n")
    assert repository_runs(str(repository)).startswith("core.fsmonitor")


def test_links_in_a_circle_worry_or_end(repository: Path) -> None:
    (repository / ".git" / "commondir").write_text(".\n")
    assert repository_runs(str(repository)) == ""
    (repository / ".git" / "config").unlink()
    (repository / ".git" / "config").symlink_to("config")
    assert "cannot be read" in repository_runs(str(repository))


LINES = st.lists(
    st.sampled_from([
        *("[core]", "[Core]", '[diff "x"]', '[diff "x\\"y"]', "[diff.X]", "[branch]", "[a] b = c", "[a]", "key"),
        *("key=", "  key\t=  v # c", "; comment", "# comment \\", "key = a \\", 'key = "a # b"', 'key = "a\\nb"'),
        *("", " ", "\tk = v", "x-y = 1", "key ; c", "[a][b]", "k = [diff]", "= v", "1k = v", "key\r", "[a]\r"),
        *('k = \\"', "[a] # c", "key = a;b", "[a]key", "key= =", "key = a\\\\"),
    ]),
    max_size=6,
)  # fmt: skip


@needs_git
@examples(1_500, daily=50)
@given(LINES)
def test_what_is_understood_is_what_git_reads(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    text = "\n".join(["[core]", *lines])
    try:
        ours = [one.name for one in git_config.settings(text)]
    except git_config.Odd:
        return
    file = tmp_path_factory.getbasetemp() / "sample"
    file.write_text(text, newline="")
    try:
        theirs = git(file.parent, "config", "--file", str(file), "--name-only", "--null", "--list").split("\0")[:-1]
    except subprocess.CalledProcessError:
        return  # git refuses the file, and with it any command in such a repository
    assert [one.lower() for one in ours] == [one.lower() for one in theirs]
