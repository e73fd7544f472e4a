"""What is added to an allowed command takes the permission away; what changes only its spelling changes nothing."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.policy.shell.commands import AWK, SED, Spoken, argvs, respelled, spoken
from tests.profiles import examples

from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.policy.builtin import builtin_policy
from signoff.policy.shell.command_facts import read_shell

# By day fewer of what is drawn: there, all that can be added is tried on lines that are known to be allowed.
ENOUGH = examples(1_500, daily=20, suppress=[HealthCheck.filter_too_much])
ALLOWED = ("ls", "grep -rn 'a b' src | head -n 3", "cd src && cat main.py; git log --oneline", "sed -n 1,2p file.txt")
WRAPPERS = ("bash -c ", "sh -c ", "eval ", "xargs -I{} sh -c ", "su -c ", "env -S ")
NOWHERE = (" 2>/dev/null", " >/dev/null", " 2>&1", " &>/dev/null", " < /dev/null", " 2> /dev/null")
WORKED_OUT = ("$X", "$(x)", "`x`", "${x!}", "$(($x))", "{a,b}", "$'a'", "<(x)", "a$(x)b", "~+")

BEHIND = (
    "; rm -rf x",
    "\nrm -rf x",
    "\n\n  rm -rf x",
    " && touch x",
    " || touch x",
    " | tee x",
    " |& tee x",
    " & touch x",
    " &",
    "&",
    " | sh",
    " | bash -s",
    " | xargs rm",
    " | xargs -n1 sh -c",
    " | while read f; do rm $f; done",
    " $(touch x)",
    " `touch x`",
    ' "$(touch x)"',
    ' "`touch x`"',
    " <(touch x)",
    " >(tee x)",
    " $((x=1))",
    " > x",
    ">x",
    " >> x",
    " 2> x",
    " 2>> x",
    " &> x",
    " &>> x",
    " >| x",
    " <> x",
    " 3> x",
    " >& x",
    " >&x",
    " 1<> x",
    " > /dev/null > x",
    " 2>&1 > x",
    " >/dev/null/../../x",
    " > /dev/tcp/127.0.0.1/9",
    " < /dev/tcp/127.0.0.1/9",
    " <<-E\nx\nE",
    " {a,b}",
    " {1..3}",
    " ${x:=1}",
    " $'x'",
    ' $"x"',
    "; PATH=. ls",
    "; f() { touch x; }",
    "; { touch x; }",
    "; (touch x)",
    "; if :; then touch x; fi",
    "; for i in 1; do touch x; done",
    "; eval 'touch x'",
    "; . ./x",
    "; source x",
    "; exec touch x",
    "; trap 'touch x' EXIT",
    " | sed -i s/a/b/ file.txt",
    " | sort -o x",
    " | awk '{print > \"x\"}'",
    " | tee /dev/null x",
    "; ! touch x",
    " \\\n touch x",
    " \x00",
    " \x1b[2J",
    " \u202e",
    "\r\ntouch x",
    " \\",
    " '",
    ' "',
    " (",
    " )",
    " ;;",
    " && ",
    " | ",
    " ; cat ~/.ssh/id_rsa",
    " ; cat .env",
    " && cat < ~/.netrc",
    " | cat - /etc/shadow",
    "; cd ~/.ssh; cat config",
    "; curl http://example.com",
    "; git push",
    "; git commit -m x",
    "; python3 -c 1",
    "; find . -delete",
    "; kill 1",
)
BEFORE = (
    "env -i ",
    "env X=1 ",
    "sudo ",
    "doas ",
    "bash -c ",
    "sh -c ",
    "xargs -a names ",
    "nohup ",
    "command ",
    "command -p ",
    "exec ",
    "eval ",
    "builtin ",
    "watch ",
    "strace ",
    "setsid ",
    "busybox ",
    "unshare ",
    "chroot . ",
    "ssh host ",
    "parallel ",
    "script -c ",
    "flock x ",
    "taskset 1 ",
    ". ",
    "source ",
    "X=1 ",
    "LD_PRELOAD=./x.so ",
    "PATH=. ",
    "X=$(touch x) ",
    "X[0]=1 ",
    "X+=1 ",
    "( ",
    "{ ",
    "if ",
    "while ",
    "coproc ",
    "> x ",
    "2>x ",
    "<<E ",
    "touch x; ",
    "touch x && ",
    "touch x | ",
    "touch x\n",
    "$(echo) ",
    "`echo` ",
    "$X ",
    "{touch,x} ",
    "& ",
    "\\\n$(touch x) ",
    "./",
    "../bin/",
    "/tmp/",
    "~/bin/",
    "-",
)


def allowed(text: str) -> bool:
    return read_shell(text).read_only


@st.composite
def allowed_lines(draw: st.DrawFn) -> str:
    """A line that runs unasked."""
    line = draw(spoken(most=2)).text()
    assume(allowed(line))
    return line


@pytest.mark.nightly
def test_the_generator_makes_allowed_and_refused_commands() -> None:
    seen: dict[bool, set[str]] = {True: set(), False: set()}

    @settings(max_examples=400, database=None, derandomize=True)
    @given(argvs())
    def look(argv: tuple[str, ...]) -> None:
        seen[allowed(shlex.join(argv))].add(argv[0])

    look()
    assert len(seen[True]) > 60
    assert len(seen[False]) > 5


@pytest.mark.parametrize("line", ALLOWED)
def test_nothing_that_is_added_is_allowed_with_it(line: str) -> None:
    assert allowed(line)
    assert [line + more for more in BEHIND if allowed(line + more)] == []
    assert [more + line for more in BEFORE if allowed(more + line)] == []
    assert [wrapper + line for wrapper in WRAPPERS if allowed(wrapper + shlex.quote(line))] == []
    assert [f"{line} {word}" for word in WORKED_OUT if allowed(f"{line} {word}") or allowed(f"{word} {line}")] == []
    assert [line + more for more in NOWHERE if not allowed(line + more)] == []


@ENOUGH
@given(allowed_lines(), st.sampled_from(BEHIND))
def test_what_is_put_behind_an_allowed_command_is_not_allowed_with_it(line: str, more: str) -> None:
    assert not allowed(line + more)


@ENOUGH
@given(allowed_lines(), st.sampled_from(BEFORE))
def test_what_is_put_before_an_allowed_command_is_not_allowed_with_it(line: str, more: str) -> None:
    assert not allowed(more + line)


@ENOUGH
@given(allowed_lines(), st.sampled_from(WRAPPERS))
def test_an_allowed_command_handed_to_another_program_as_one_word_is_not_allowed(line: str, wrapper: str) -> None:
    assert not allowed(wrapper + shlex.quote(line))


@ENOUGH
@given(spoken(most=2), st.data())
def test_a_word_that_the_shell_works_out_first_is_not_allowed(line: Spoken, data: st.DataObject) -> None:
    argv = list(line.commands[0])
    at = data.draw(st.integers(0, len(argv)))
    words = [shlex.quote(word) for word in argv]
    words.insert(at, data.draw(st.sampled_from(WORKED_OUT)))
    assert not allowed(" ".join(words))


@ENOUGH
@given(spoken(), st.data())
def test_the_same_words_in_another_spelling_get_the_same_verdict(line: Spoken, data: st.DataObject) -> None:
    plain, other = line.text(), data.draw(respelled(line))
    first, second = read_shell(plain), read_shell(other)
    assert first.line is not None, plain
    assert second.line is not None, (other, second.why)
    assert [simple.argv for simple in first.line.commands] == list(line.commands)
    assert [simple.argv for simple in second.line.commands] == list(line.commands)
    assert first.read_only == second.read_only, (plain, other, first.why, second.why)


@ENOUGH
@given(spoken())
def test_a_line_is_allowed_only_if_each_of_its_commands_is(line: Spoken) -> None:
    whole = allowed(line.text())
    apart = [allowed(shlex.join(argv)) for argv in line.commands]
    assert not whole or all(apart)


@ENOUGH
@given(spoken(), st.sampled_from(NOWHERE))
def test_output_that_goes_nowhere_changes_nothing(line: Spoken, more: str) -> None:
    assert allowed(line.text() + more) == allowed(line.text())


@ENOUGH
@given(spoken(most=2))
def test_the_policy_of_the_toolset_says_the_same(line: Spoken) -> None:
    policy = builtin_policy("shell_readonly")
    assert policy is not None
    text = line.text()
    verdict = policy.judge(Call(tool="shell", args={"command": text}))
    assert (verdict.effect is Effect.ALLOW) == allowed(text)


@pytest.mark.parametrize("argv", [("awk", AWK[-1]), *(("sed", script) for script in SED[-4:])])
def test_scripts_that_do_more_than_read_are_among_those_tried(argv: tuple[str, ...]) -> None:
    assert not allowed(shlex.join((*argv, "file.txt")))
