"""A line of argv runs as bash would run it, with real programs, and stops where the world is not as it was judged."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.policy.shell.line import CommandLine, Join, Pipeline, Redirect, Simple, Word
from signoff.toolsets.builtin.shell.argv import Step, run_line
from signoff.toolsets.builtin.shell.subprocesses import USUAL, CommandResult, ProcessLimits

BASH = shutil.which("bash")


def word(text: str) -> Word:
    """A word; what holds a star is a pattern, and `~` in front is the home directory."""
    return Word(text, glob=text if "*" in text else "", tilde=text == "~" or text.startswith("~/"))


def simple(text: str, *redirects: Redirect) -> Simple:
    return Simple(tuple(word(one) for one in text.split(" ")), redirects)


def piped(*stages: str | Simple, join: Join = Join.ALWAYS) -> Pipeline:
    return Pipeline(tuple(simple(one) if isinstance(one, str) else one for one in stages), join)


def line(*pipelines: Pipeline | str) -> CommandLine:
    return CommandLine(tuple(piped(one) if isinstance(one, str) else one for one in pipelines))


def then(text: str) -> Pipeline:
    return piped(text, join=Join.AND)


def otherwise(text: str) -> Pipeline:
    return piped(text, join=Join.OR)


NOWHERE = Redirect(1)
NO_ERRORS = Redirect(2)
ERRORS_TO_OUT = Redirect(2, onto=1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"this is {Path(name).name}\n")
    return tmp_path


async def run(
    root: Path, *pipelines: Pipeline | str, limits: ProcessLimits = USUAL, steps: Sequence[Step] = ()
) -> CommandResult:
    return await run_line(line(*pipelines), root=str(root), limits=limits, steps=steps)


async def test_a_program_runs_and_tells_its_status(root: Path) -> None:
    assert await run(root, "cat a.txt") == CommandResult(0, "this is a.txt\n")
    failed = await run(root, "cat nothing")
    assert failed.code == 1 and "No such file" in failed.err and failed.out == ""
    assert (await run(root, "grep zzz a.txt")).text == "[exit code 1]"


async def test_a_writer_ends_when_its_reader_has_gone(root: Path) -> None:
    """`yes` never ends by itself: Python ignores SIGPIPE, and its children must not."""
    assert await run(root, piped("yes", "head -1"), limits=ProcessLimits(seconds=30)) == CommandResult(0, "y\n")


async def test_the_last_command_of_a_pipeline_decides(root: Path) -> None:
    assert (await run(root, piped("false", "true"))).code == 0
    assert (await run(root, piped("true", "false"))).code == 1
    assert (await run(root, piped("cat nothing", "wc -l"))).out.strip() == "0"
    assert (await run(root, piped("no-such-program", "cat"))).code == 0
    assert (await run(root, piped("cat a.txt", "no-such-program"))).code == 127


@pytest.mark.parametrize(
    ("pipelines", "out"),
    [
        (("true", then("echo 1"), otherwise("echo 2"), then("echo 3")), "1\n3\n"),
        (("false", then("echo 1"), otherwise("echo 2"), then("echo 3")), "2\n3\n"),
        (("false", "echo 1"), "1\n"),
        (("true", otherwise("echo 1"), then("echo 2")), "2\n"),
        (("false", then("echo 1"), then("echo 2")), ""),
    ],
)
async def test_what_joins_pipelines(root: Path, pipelines: tuple[Pipeline | str, ...], out: str) -> None:
    assert (await run(root, *pipelines)).out == out


async def test_a_signal_is_told_as_a_shell_tells_it(root: Path) -> None:
    assert (await run(root, "timeout --signal KILL --foreground 0.01 yes")).code == 137


async def test_cd_holds_for_the_rest_of_the_line_only(root: Path) -> None:
    assert (await run(root, "cd sub", then("cat c.txt"))).out == "this is c.txt\n"
    assert (await run(root, "cat a.txt")).out == "this is a.txt\n"
    assert (await run(root, piped("cd sub", "cat"), "pwd")).out == f"{root}\n", "in a pipeline it has no effect"
    failed = await run(root, "cd nowhere", then("echo 1"), otherwise("pwd"))
    assert failed.out == f"{root}\n" and "No such file" in failed.err
    assert (await run(root, "cd a.txt")).err == "signoff: cd: a.txt: Not a directory\n"
    assert (await run(root, "cd sub", "cd -")).out == f"{root}\n"
    assert (await run(root, "cd -")).code == 1


async def test_pwd_with_and_without_links(root: Path) -> None:
    (root / "link").symlink_to("sub")
    assert (await run(root, "cd link", "pwd", "pwd -P", "cd ..", "pwd")).out == f"{root}/link\n{root}/sub\n{root}\n"
    assert (await run(root, "cd -P link", "pwd")).out == f"{root}/sub\n"


async def test_redirects_in_their_order(root: Path) -> None:
    both = simple("cat a.txt nothing", ERRORS_TO_OUT)
    assert (await run(root, piped(both, "wc -l"))).out.strip() == "2"
    assert (await run(root, piped(simple("cat a.txt nothing", NOWHERE), "wc -l"))).out.strip() == "0"
    swapped = await run(root, piped(simple("cat a.txt nothing", ERRORS_TO_OUT, NOWHERE)))
    assert "No such file" in swapped.out and swapped.err == ""
    silent = await run(root, piped(simple("cat nothing", NO_ERRORS)))
    assert silent == CommandResult(1)
    crossed = simple("cat a.txt nothing", Redirect(3, onto=1), Redirect(1, onto=2), Redirect(2, onto=3))
    outcome = await run(root, piped(crossed))
    assert outcome.err == "this is a.txt\n" and "No such file" in outcome.out
    assert (await run(root, piped(simple("echo x", Redirect(1, onto=7))))).err == "signoff: 7: Bad file descriptor\n"


async def test_what_could_not_be_started_is_told_where_the_command_would_tell_it(root: Path) -> None:
    assert (await run(root, piped(simple("no-such-program", ERRORS_TO_OUT), "wc -l"))).out.strip() == "1"
    assert await run(root, piped(simple("no-such-program", NO_ERRORS))) == CommandResult(127)
    gone = Redirect(0, source=Word("gone"))
    assert await run(root, piped(simple("cat", NO_ERRORS, gone))) == CommandResult(1)
    assert "gone" in (await run(root, piped(simple("cat", gone, NO_ERRORS)))).err


async def test_input_from_a_file(root: Path) -> None:
    assert (await run(root, piped(simple("cat", Redirect(0, source=Word("a.txt")))))).out == "this is a.txt\n"
    assert (await run(root, "cd sub", piped(simple("cat", Redirect(0, source=word("*.txt")))))).out == "this is c.txt\n"
    many = await run(root, piped(simple("cat", Redirect(0, source=word("*.txt")))), otherwise("echo no"))
    assert many.out == "no\n" and "ambiguous redirect" in many.err
    assert (await run(root, piped(simple("cat", Redirect(0, source=Word("gone")))))).code == 1
    zero = simple("head -c 3", Redirect(0, source=Word("/dev/zero")))
    assert (await run(root, piped(zero))).out == "\ufffd" * 3


async def test_nobody_waits_for_a_pipe_or_reads_a_device(root: Path) -> None:
    os.mkfifo(root / "fifo")
    for place in ("fifo", "sub", "/dev/tty"):
        outcome = await run(
            root, piped(simple("cat", Redirect(0, source=Word(place)))), limits=ProcessLimits(seconds=30)
        )
        assert outcome.code == 1 and not outcome.stopped, place


async def test_there_is_no_input_and_no_terminal(root: Path) -> None:
    assert await run(root, "cat", limits=ProcessLimits(seconds=30)) == CommandResult(0)
    assert (await run(root, "tty")).out == "not a tty\n"
    assert (await run(root, piped(simple("cat /dev/tty", NO_ERRORS)))).code == 1


async def test_patterns_and_the_home_directory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root / "sub"))
    assert (await run(root, "echo *.txt no*match")).out == "a.txt b.txt no*match\n"
    assert (await run(root, "echo ~ ~/*.txt ~/x*")).out == f"{root}/sub {root}/sub/c.txt {root}/sub/x*\n"
    (root / "sub" / "id_rsa").touch()
    assert "id_rsa" in (await run(root, "cat ~/*")).doubt
    assert (await run(root, "cd", then("pwd"))).out == f"{root}/sub\n"
    literal = Simple((Word("echo"), Word("*.txt"), Word("~"), Word("$(id)"), Word("a;b|c"), Word("")))
    assert (await run(root, piped(literal))).out == "*.txt ~ $(id) a;b|c \n", "nothing reads the words again"


async def test_a_pattern_that_stands_for_a_secret_or_an_option_is_not_run(root: Path) -> None:
    (root / "sub" / "id_rsa").write_text("secret")
    outcome = await run(root, "cat sub/*")
    assert "id_rsa" in outcome.doubt and outcome.out == ""
    (root / "-rf").touch()
    outcome = await run(root, "echo hello", "ls *")
    assert "'-rf'" in outcome.doubt and "option" in outcome.doubt and outcome.out == "hello\n"


async def test_a_link_to_a_secret_is_not_followed(root: Path) -> None:
    (root / ".ssh").mkdir()
    (root / ".ssh" / "id_ed25519").write_text("secret")
    (root / "notes.txt").symlink_to(".ssh/id_ed25519")
    for text in ("cat notes.txt", "cat n*.txt", "grep --file=notes.txt a.txt"):
        outcome = await run(root, text)
        assert "leads to" in outcome.doubt and outcome.out == "", text
    taken = await run(root, piped(simple("cat", Redirect(0, source=Word("notes.txt")))))
    assert "leads to" in taken.doubt and taken.out == ""


async def test_the_way_to_the_root_is_not_held_against_it(tmp_path: Path) -> None:
    root = tmp_path / "secrets"
    root.mkdir()
    (root / "a.txt").write_text("x\n")
    assert (await run(root, "cat *.txt")).out == "x\n"


async def test_too_many_matches_are_not_run(root: Path) -> None:
    assert "more than 1 files" in (await run(root, "ls *.txt", limits=ProcessLimits(matches=1))).doubt


async def test_steps_add_words_and_variables(root: Path) -> None:
    step = Step({"GREETING": "hi"}, ("-n",), 1)
    assert (await run(root, "echo a", steps=[step])).out == "a"
    assert "GREETING=hi\n" in (await run(root, "env", steps=[Step({"GREETING": "hi"})])).out
    with pytest.raises(ValueError, match="2 commands, but 1 steps"):
        await run(root, "true", "true", steps=[step])


async def test_a_program_in_the_directory_is_never_taken(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by its name, nor by way of our own PATH, nor as a path."""
    for name in ("ls", "mine"):
        (root / name).write_text("#!/bin/sh\necho fooled\n")
        (root / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{root}::.:{os.environ['PATH']}")
    assert "fooled" not in (await run(root, "ls")).out
    for name in ("mine", "./mine", str(root / "mine"), "/usr/bin/../../" + str(root / "mine")):
        outcome = await run(root, name)
        assert outcome.code == 127 and outcome.out == "", name


async def test_what_a_shell_does_itself_is_done(root: Path) -> None:
    assert (await run(root, "true", then(":"), then("echo 1"))).out == "1\n"
    assert (await run(root, "type cd")).out == "cd is a shell builtin\n"
    assert (await run(root, "type -t cat if nothing")).out == "file\nkeyword\n"
    missing = await run(root, "type nothing-at-all")
    assert missing.code == 1 and "not found" in missing.err
    assert (await run(root, "command -v cd")).out == "cd\n"
    assert (await run(root, "command -v nothing-at-all")).code == 1
    assert (await run(root, "command echo 1")).out == "1\n"
    assert (await run(root, piped("pwd", "cat"))).out == f"{root}\n"
    assert (await run(root, "cd -Q sub")).doubt


def in_bash(text: str, root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BASH or "bash", "--noprofile", "--norc", "-c", text],
        cwd=root,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(root)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


WORDS = ("a.txt", "b.txt", "nothing", "sub", "*.txt", "sub/*", "x")
COMMANDS = (
    *(
        "true",
        "false",
        "pwd",
        "cd sub",
        "cd ..",
        "cd nothing",
        "cd link",
        "pwd -P",
        "cd -",
        "type cat",
        "command -v cat",
    ),
    *(f"{program} {one}" for program in ("cat", "echo", "wc -c", "ls") for one in WORDS),
    *("cat", "head -1", "wc -l", "tr a-z A-Z", "sort -r", "grep is", "no-such-program", "type -t echo cat", "yes no"),
)
REDIRECTS = {
    "": (),
    " 2>&1": (ERRORS_TO_OUT,),
    " >/dev/null": (NOWHERE,),
    " 2>/dev/null": (NO_ERRORS,),
    " <a.txt": (Redirect(0, source=Word("a.txt")),),
    " <nothing": (Redirect(0, source=Word("nothing")),),
    " 2>&1 >/dev/null": (ERRORS_TO_OUT, NOWHERE),
}
STAGE = st.tuples(st.sampled_from(COMMANDS), st.sampled_from(sorted(REDIRECTS)))
PIPELINE = st.tuples(st.sampled_from(list(Join)), st.lists(STAGE, min_size=1, max_size=3))


@pytest.mark.skipif(BASH is None, reason="needs bash")
@examples(800, daily=15)
@given(st.lists(PIPELINE, min_size=1, max_size=4))
async def test_a_line_does_what_bash_does(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[Join, list[tuple[str, str]]]]
) -> None:
    """What it prints, and its status; the words of error messages differ, whether there are any does not."""
    root = tmp_path_factory.getbasetemp() / "compared"
    if not root.exists():
        (root / "sub").mkdir(parents=True)
        (root / "link").symlink_to("sub")
        for name in ("a.txt", "b.txt", "sub/c.txt"):
            (root / name).write_text(f"this is {name}\n")
    pipelines, text = [], ""
    for join, stages in made:
        if any(command == "yes no" for command, _ in stages):  # it ends with its reader, or not at all
            stages = [("yes no", ""), ("head -2", "")]
        pipelines.append(piped(*(simple(command, *REDIRECTS[more]) for command, more in stages), join=join))
        text += (f" {join} " if text else "") + " | ".join(command + more for command, more in stages)
    pipelines[0] = pipelines[0]._replace(join=Join.ALWAYS)
    ours = await run_line(CommandLine(tuple(pipelines)), root=str(root), limits=ProcessLimits(seconds=30))
    theirs = in_bash(text, root)
    merged = "2>&1" in text  # then the order, and the words of errors, are part of the output
    assert (ours.code, ours.stopped, ours.doubt) == (theirs.returncode, "", ""), text
    if not merged:
        assert ours.out == theirs.stdout, text
        assert bool(ours.err) == bool(theirs.stderr), text
