"""Where `cd` leads, against bash itself: whatever is judged to run in a directory below the root really runs there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.disk_steps import DiskSteps
from signoff.links import followed
from signoff.policy.call_paths import Facts
from signoff.policy.engine import Policy
from signoff.policy.shell.command_facts import read_shell
from signoff.policy.shell.literal_words import Refused, read_line
from signoff.policy.shell.working_directories import directories_of
from signoff.toolsets.builtin.shell.argv import run_line

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash to compare with")

# `show N` tells where it runs, `fail` fails; everything else is what it is.
SERVER = r"""
show() { printf '%s\0%s\0' "$1" "$(pwd -P)" >&9; }
fail() { return 1; }
exec 8<&0 9>&1 0</dev/null 1>/dev/null 2>/dev/null
while IFS= builtin read -r -d '' directory <&8 && IFS= builtin read -r -d '' text <&8; do
    ( cd "$directory"; unset OLDPWD; eval -- "$text" )
    printf 'end\0' >&9
done
"""


class Shell:
    """A bash that is asked again and again, in a tree with directories, links in and out, a file, and odd names."""

    def __init__(self, room: Path) -> None:
        self.room = room
        self.root = room / "top"
        for directory in ("top/a/b/a", "top/b", "top/~", "top/- x", "top/.git/hooks", "out/a", "home/a"):
            (room / directory).mkdir(parents=True)
        (self.root / "file").touch()
        for name, target in {
            "inner": "a/b", "leak": "../out", "a/leak": "../../out/a", "a/up": "..", "b/back": "../a", "loop": "loop",
            "gone": "nowhere", "a/top": str(self.root),
        }.items():  # fmt: skip
            (self.root / name).symlink_to(target)
        (room / "out" / "in").symlink_to(self.root / "a")
        (room / "home" / "top").symlink_to(self.root)
        self.process = subprocess.Popen(
            [str(BASH), "--norc", "--noprofile", "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"HOME": str(room / "home"), "PATH": os.defpath, "LC_ALL": "C"},
        )

    def run(self, text: str) -> list[tuple[int, str]]:
        """Which `show` ran where, in order."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{self.root}\0{text}\0".encode())
        self.process.stdin.flush()
        said = b""
        while not said.endswith(b"end\0"):
            said += os.read(self.process.stdout.fileno(), 65536)
        parts = said.decode().split("\0")[:-2]
        # Bash keeps two slashes at the beginning, which mean no other directory here.
        places = [f"/{where.lstrip('/')}" for where in parts[1::2]]
        return [(int(number), where) for number, where in zip(parts[::2], places, strict=True)]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(Path(os.path.realpath(tmp_path_factory.mktemp("cd"))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(shell.room / "home"))
        yield shell
    shell.process.communicate()


STEPS = st.sampled_from("a b . .. ~ inner leak up top back gone loop file .git hooks nothing - ROOT ''".split())
TARGETS = st.one_of(
    st.lists(STEPS, min_size=1, max_size=4).map("/".join),
    st.sampled_from(
        ["", "-", "--", "-P a", "-L a", "-- a", "-- -", "a b", "'a'", "~", "~/a", "~/top/a", "'~'", "'- x'"]
    ),
    st.sampled_from(
        ["ROOT", "ROOT/a", "ROOT/../top", "ROOT/leak", "ROOT/../out/in", "/", "//", "ROOT//a/", "$HOME", "*"]
    ),
)
COMMANDS = st.one_of(
    TARGETS.map("cd {}".format),
    TARGETS.map("cd {}".format),
    st.sampled_from(
        ["show", "show", "fail", "show | cd a", "cd a | show", "cd a 2>/dev/null", "command cd a", "pushd a"]
    ),
)
LINES = st.lists(st.tuples(COMMANDS, st.sampled_from(["&&", "&&", "||", ";", "\n"])), min_size=1, max_size=7)


def numbered(pieces: list[tuple[str, str]], root: Path) -> str:
    """The line, with a `show` at its end, each with its own number."""
    text = " ".join(f"{command} {join}" for command, join in pieces).replace("ROOT", str(root)) + " show"
    parts = text.split("show")
    return "".join(f"{part}show {number}" for number, part in enumerate(parts[:-1]))


@given(pieces=LINES)
@example(pieces=[("cd a", "&&"), ("cd ROOT/../out/in", "&&"), ("cd ../b", "&&")])
@examples(nightly=20_000, daily=30)
def test_a_command_runs_in_a_directory_that_was_foreseen(shell: Shell, pieces: list[tuple[str, str]]) -> None:
    text = numbered(pieces, shell.root)
    line = read_line(text)
    if isinstance(line, Refused):
        return
    foreseen = {
        int(command.words[1].text): directories
        for command, directories in zip(line.commands, directories_of(line), strict=True)
        if command.words[0].text == "show"
    }
    resolved = followed(str(shell.root), read_shell(text).places, DiskSteps())
    facts = Facts(Call(tool="shell", start=str(shell.root), resolved=resolved), None)
    for number, where in shell.run(text):
        directories = foreseen[number]
        if None in directories:
            continue
        real = {directory: facts.below_start(directory) for directory in directories if directory is not None}
        if None in real.values():  # out of the root, which is asked about: bash may find a way back in by itself
            continue
        inside = os.path.relpath(where, shell.root) if f"{where}/".startswith(f"{shell.root}/") else None
        assert ("" if inside == "." else inside) in real.values(), (text, number, where, real)


@given(pieces=LINES)
@example(pieces=[("cd ''/ROOT", "&&")])
@example(pieces=[("cd a/leak/../a", "&&")])  # a/a is not there, and bash goes where the disk leads: to out/a
@example(pieces=[("cd a/leak", "&&"), ("cd ../a", "&&")])
@example(pieces=[("cd leak", "&&"), ("cd ../out/a", "&&")])
@example(pieces=[("cd ROOT/a/leak/../a", "&&")])
@example(pieces=[("cd a", "&&"), ("cd ROOT/../out/in", "&&"), ("cd ../b", "&&")])
@examples(nightly=20_000, daily=15)
def test_what_a_rule_allows_after_cd_runs_below_the_root(shell: Shell, pieces: list[tuple[str, str]]) -> None:
    """`pytest *` goes along into directories below, `show` (which no table knows) is for the root alone."""
    text = numbered(pieces, shell.root)
    for program, at_root in (("pytest", False), ("show", True)):
        rules = [{"allow": {"tool": "shell", "command": [f"{program} *", "fail", "pushd *", "command *"]}}]
        policy = Policy.from_rules(rules, root=str(shell.room))
        call = Call(tool="shell", args={"command": text.replace("show", program)}, start=str(shell.root))
        call = call.changed(resolved=followed(str(shell.root), policy.paths_of(call), DiskSteps()))
        if policy.judge(call).effect is not Effect.ALLOW:
            continue
        for _, where in shell.run(text):
            assert where == str(shell.root) if at_root else f"{where}/".startswith(f"{shell.root}/"), (text, where)
            assert ".git" not in where


@given(pieces=LINES)
@example(pieces=[("cd b/back/../a", "&&")])  # b/a is not there, and bash goes where the disk leads: to a
@example(pieces=[("cd nothing/../a", "&&")])
@example(pieces=[("cd b/back/../a/leak/..", "&&"), ("cd -", "&&"), ("cd ..", "&&")])
@examples(nightly=3_000, daily=15)
async def test_what_is_run_without_a_shell_goes_where_bash_goes(shell: Shell, pieces: list[tuple[str, str]]) -> None:
    text = numbered(pieces, shell.root)
    line = read_line(text.replace("fail", "false"))
    if isinstance(line, Refused) or "pushd" in text or "| cd" in text:
        return
    own = line._replace(
        pipelines=tuple(
            pipeline._replace(
                stages=tuple(
                    stage._replace(words=(stage.words[0]._replace(text="pwd"), stage.words[0]._replace(text="-P")))
                    if stage.words[0].text == "show"
                    else stage
                    for stage in pipeline.stages
                )
            )
            for pipeline in line.pipelines
        )
    )
    outcome = await run_line(own, root=str(shell.root))
    if outcome.doubt or "cd -" in text:  # bash tells the directory there
        return
    told = outcome.text.partition("[stderr]")[0].partition("[exit code")[0].splitlines()
    said = [where for where in told if where != "[no output]"]
    assert said == [where.replace("//", "/") for _, where in shell.run(text)], text
