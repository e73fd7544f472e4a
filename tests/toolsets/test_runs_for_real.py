"""What is allowed is also run for real, by the toolset's own runner: no file changes, inside its directory or out."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.profiles import NIGHTLY
from tests.toolsets.scratch import lay_out, seen_files

from signoff.toolsets.builtin.shell.argv import run_line
from signoff.toolsets.builtin.shell.command_plan import CommandPlan, plan
from signoff.toolsets.builtin.shell.subprocesses import CommandResult, ProcessLimits

CORPUS = Path(__file__).parents[3] / "shared" / "corpora" / "shell_benign_auto.jsonl"
QUICK = ProcessLimits(seconds=10, output=200_000)

FAR = re.compile(r"(?<![\w./'\"-])(?:~|/(?!dev/null\b))")
"""A path from the root or from home: what it says depends on the machine, and it may have all of it below."""
LONG = re.compile(r"\b(?:sleep|watch|vmstat|iostat|mpstat|top|apt|apt-cache|npm|pip3?|docker|podman|man|locate|yes)\b")
NEEDED = 60

SAME = (
    "cat file.txt",
    "cat -n file.txt other.txt",
    "cat 'a b.txt'",
    'cat "a b.txt"',
    "cat a\\ b.txt",
    "cat < file.txt",
    "cat link",
    "head -n 3 file.txt",
    "head -5 file.txt",
    "tail -n 2 file.txt",
    "tail -c 20 file.txt",
    "wc -l file.txt",
    "wc src/*.py",
    "wc -l < file.txt",
    "ls",
    "ls -1 src",
    "ls *.txt",
    "ls -a src | sort",
    "ls nothing",
    "ls -d */",
    "echo one two",
    "echo *.md",
    "echo 'a  b'  c",
    "printf '%s-%s\\n' a b",
    "pwd",
    "cd src && ls",
    "cd src; cat main.py",
    "cd nothing || echo no",
    "true && echo a",
    "false || echo b",
    "false && echo c; echo d",
    "true; false",
    "grep one file.txt",
    "grep -c three file.txt other.txt",
    "grep -rn TODO src",
    "grep -q nothing file.txt",
    "grep -E 'line (1|2) ' file.txt | head -n 2",
    "grep -v one table.csv",
    "egrep 'a|b' data.json",
    "sort -r table.csv",
    "sort -t, -k2 table.csv | uniq -c",
    "uniq file.txt | wc -l",
    "cut -d, -f2 table.csv",
    "tr a-z A-Z < table.csv",
    "paste -d: table.csv table.csv",
    "comm -12 file.txt file.txt | tail -1",
    "join -t, table.csv table.csv",
    "nl file.txt | tail -1",
    "tac table.csv",
    "rev table.csv",
    "fold -w 10 table.csv",
    "expand file.txt | head -1",
    "seq 3",
    "seq 1 2 9",
    "sed -n 2p file.txt",
    "sed 's/one/two/' file.txt | head -1",
    "sed -e 1d -e '$d' table.csv",
    "awk '{print $2}' file.txt",
    "awk -F, 'NR>1 {n[$2]++} END {print n[\"one\"]}' table.csv",
    "jq .a data.json",
    "jq -r '.b[2].c' data.json",
    "jq -c . data.json",
    "find . -name '*.py' | sort",
    "find src -type f -size -9k | sort",
    "diff file.txt other.txt",
    "diff -u other.txt other.txt",
    "cmp file.txt other.txt",
    "md5sum file.txt",
    "sha256sum file.txt other.txt",
    "od -c table.csv",
    "xxd table.csv",
    "base64 table.csv",
    "basename src/main.py .py",
    "dirname src/main.py",
    "realpath --relative-to . src/deep",
    "readlink link",
    "test -f file.txt && echo yes",
    "[ -d nothing ] || echo no",
    "unzip -l pack.zip | tail -1",
    "zcat text.gz | head -1",
    "git log --oneline",
    "git show --stat HEAD",
    "git diff --name-only",
    "git diff",
    "git branch -a",
    "git rev-parse HEAD",
    "git ls-files",
    "git show HEAD:src/main.py",
    "git blame src/main.py",
    "git grep -n TODO",
    "git tag",
    "git status --short",
    "git log -p -1",
    "git cat-file -p HEAD",
    "git -C src status -s",
    "cat file.txt | grep 1 | sort | uniq | wc -l",
    "cat nothing 2>/dev/null",
    "cat nothing 2>&1 | wc -l",
    "ls nothing file.txt 2>/dev/null",
    "cat file.txt > /dev/null",
    "cat *.csv | head -1 && echo ok",
    "expr 1 + 2",
    "stat -c %s file.txt",
    "file file.txt",
    "du -s src",
    "env LC_ALL=C",
    "cat <(echo)",
    "echo x > made",
    "rm file.txt",
)
ASKED = frozenset({"env LC_ALL=C", "cat <(echo)", "echo x > made", "rm file.txt"})
"""Those of them that are not allowed: they must not be run."""
OTHERS = (
    "ls -la",
    "ls -lR",
    "stat file.txt",
    "df .",
    "date",
    "uname -a",
    "id",
    "whoami",
    "hostname",
    "which ls",
    "type ls",
    "command -v git",
    "uptime",
    "free",
    "ps aux",
    "git status",
    "git log --stat",
    "git stash list",
    "git remote -v",
    "git describe --always",
    "git diff HEAD~1",
    "git log --format='%h %an'",
    "git shortlog -sn HEAD",
    "column -t -s, table.csv",
    "find . -newer file.txt",
    "tree",
    "rg one",
    "fd py",
    "lsof file.txt",
    "nproc",
    "shuf table.csv",
    "strings pack.zip",
    "python3 --version",
)


class World:
    """The directories, and commands run in one of them as the toolset runs them."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.work = lay_out(base)
        self.root = os.path.realpath(self.work)
        self.before = seen_files(base)

    def plan(self, command: str) -> CommandPlan:
        return plan(command, self.root)

    async def run(self, command: str) -> CommandResult | None:
        """Run it as the toolset would; None where a person would be asked first."""
        found = self.plan(command)
        if found.line is None:
            return None
        outcome = await run_line(found.line, root=self.root, limits=QUICK, steps=found.steps)
        assert not outcome.doubt, f"{command}: {outcome.doubt}"
        return outcome

    def changed(self) -> list[str]:
        after = seen_files(self.base)
        return sorted(name for name in {*after, *self.before} if after.get(name) != self.before.get(name))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("HOME", str(tmp_path / "base" / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "base" / "tmp"))
    return World(tmp_path / "base")


def tens(commands: Sequence[str]) -> list[Sequence[str]]:
    """Ten at a time: to look at every file takes as long as to run a command."""
    return [commands[at : at + 10] for at in range(0, len(commands), 10)]


def corpus() -> tuple[list[str], int]:
    """The harmless commands that can be tried anywhere, and how many others there are."""
    rows = [json.loads(line)["cmd"] for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    chosen = [cmd for cmd in rows if not FAR.search(cmd) and not LONG.search(cmd)]
    return chosen, len(rows) - len(chosen)


async def test_what_is_allowed_changes_nothing_and_prints_what_bash_prints(world: World) -> None:
    wrong: list[str] = []
    ran = 0
    for some in tens(SAME):
        outcomes = {command: await world.run(command) for command in some}
        assert not (names := world.changed()), f"one of {some} changed {names}"
        for command, outcome in outcomes.items():
            if outcome is None:
                assert command in ASKED, f"{command} is asked about"
                continue
            ran += 1
            code, out = bash(world, command)
            if (outcome.code, outcome.out) != (code, out) and outcome.code != 127:
                wrong.append(f"{command}: {outcome.code} {outcome.out!r}, in bash {code} {out!r}")
    assert not wrong
    assert ran == len(SAME) - len(ASKED) > NEEDED


def bash(world: World, command: str) -> tuple[int, str]:
    """What bash makes of it. Git has to be told what the runner tells it, not to write its index."""
    where = {
        "PATH": "/usr/bin:/bin:/usr/local/bin",
        "LANG": "C.UTF-8",
        "HOME": str(world.base / "home"),
        "GIT_OPTIONAL_LOCKS": "0",
    }
    ended = subprocess.run(
        ["bash", "-c", command],
        cwd=world.work,
        env={**where, "PAGER": "cat"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return ended.returncode, ended.stdout.decode("utf-8", "replace")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
async def test_other_commands_that_are_allowed_change_nothing(world: World) -> None:
    for some in tens(OTHERS):
        for command in some:
            assert await world.run(command) is not None, f"{command} is asked about: {world.plan(command).why}"
        assert not (names := world.changed()), f"one of {some} changed {names}"


@pytest.mark.nightly
@pytest.mark.skipif(not CORPUS.exists(), reason="the corpora are not part of the project and do not stand beside it")
async def test_harmless_commands_of_others_change_nothing(world: World) -> None:
    chosen, skipped = corpus()
    tried = chosen if NIGHTLY else chosen[::9]
    asked = 0
    for some in tens(tried):
        asked += [await world.run(command) for command in some].count(None)
        assert not (names := world.changed()), f"one of {some} changed {names}"
    print(f"{len(tried)} of {len(chosen)} run, {asked} of them asked about; {skipped} look elsewhere or take long")
    assert len(chosen) > skipped
    assert asked < len(tried) // 10
